/* Added tokens: strings that are looked for in the text before anything else happens to it. Of those that begin first the longest
 * counts. */
#include <stdlib.h>

#include "token/tokenizer_inner.h"
#include "token/unicode.h"

static int by_bytes(const void *a, const void *b)
{
	const struct added_token *x = a, *y = b;
	const int order = memcmp(x->text, y->text, x->bytes < y->bytes ? x->bytes : y->bytes);
	if (order || x->bytes != y->bytes) return order ? order : x->bytes < y->bytes ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

int added_set_make(struct added_set *set, struct nr_arena *arena, const struct added_token *all, int64_t count, bool normalized)
{
	set->token = nr_arena_alloc(arena, (size_t)(count + 1) * sizeof *set->token);
	if (!set->token) return NR_EMEMORY;
	for (int64_t i = 0; i < count; i++)
		if (all[i].normalized == normalized && all[i].bytes) set->token[set->count++] = all[i];
	qsort(set->token, (size_t)set->count, sizeof *set->token, by_bytes);
	for (int64_t i = 0; i < set->count; i++) set->start[(uint8_t)set->token[i].text[0] + 1]++;
	for (int c = 0; c < 256; c++) set->start[c + 1] += set->start[c];
	const bool one = set->count && set->token[0].text[0] == set->token[set->count - 1].text[0];
	set->first = one ? (uint8_t)set->token[0].text[0] : -1;
	return NR_OK;
}

/* The first token from `from` on, all with the same k bytes, whose byte k is c or more. */
static int32_t lower(const struct added_set *set, int32_t from, int32_t to, size_t k, int c)
{
	while (from < to) {
		const int32_t middle = from + (to - from) / 2;
		if ((uint8_t)set->token[middle].text[k] < c) from = middle + 1;
		else to = middle;
	}
	return from;
}

/* The longest token that the text begins with: the range of those that agree is narrowed byte by byte. */
static const struct added_token *token_at(const struct added_set *set, const char *s, size_t n)
{
	const struct added_token *best = NULL;
	int32_t from = set->start[(uint8_t)s[0]], to = set->start[(uint8_t)s[0] + 1];
	for (size_t k = 1; from < to; k++) {
		if (set->token[from].bytes == k) best = &set->token[from];
		while (from < to && set->token[from].bytes == k) from++;
		if (k == n) break;
		const int c = (uint8_t)s[k];
		from = lower(set, from, to, k, c);
		to = lower(set, from, to, k, c + 1);
	}
	return best;
}

static size_t char_before(const char *s, size_t at, int32_t *c)
{
	do at--;
	while (at && ((uint8_t)s[at] & 0xc0) == 0x80);
	nr_utf8_get(s + at, c);
	return at;
}

static bool stands_alone(const char *s, size_t n, size_t from, size_t to)
{
	int32_t c;
	if (from && (char_before(s, from, &c), nr_char_is_word(c))) return false;
	return to == n || (nr_utf8_get(s + to, &c), !nr_char_is_word(c));
}

static size_t candidate(const struct added_set *set, const char *s, size_t n, size_t at)
{
	if (set->first >= 0) {
		const char *p = memchr(s + at, set->first, n - at);
		return p ? (size_t)(p - s) : n;
	}
	while (at < n && set->start[(uint8_t)s[at]] == set->start[(uint8_t)s[at] + 1]) at++;
	return at;
}

bool added_next(const struct added_set *set, const char *s, size_t n, size_t *at, size_t done, struct added_match *m)
{
	if (!set->count) return false;
	for (size_t i = candidate(set, s, n, *at); i < n; i = candidate(set, s, n, i)) {
		const struct added_token *t = token_at(set, s + i, n - i);
		if (!t) {
			i++;
			continue;
		}
		*m = (struct added_match){ i, i + t->bytes, t->id };
		i = *at = m->to;
		if (t->single_word && !stands_alone(s, n, m->from, m->to)) continue;
		int32_t c;
		for (size_t p; t->lstrip && m->from > done && (p = char_before(s, m->from, &c), nr_char_is_space(c));) m->from = p;
		for (size_t k; t->rstrip && m->to < n && (k = nr_utf8_get(s + m->to, &c), nr_char_is_space(c));) m->to += k;
		if (m->from < done) m->from = done;
		if (m->to < done) m->to = done;
		return true;
	}
	return false;
}
