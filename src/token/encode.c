/* From a text to its ids: added tokens are taken out, the rest is normalised and cut into tokens; the special tokens are put around,
 * and what is too long is cut off. */
#include <stdlib.h>

#include "base/str.h"
#include "token/tokenizer_inner.h"
#include "token/unicode.h"

bool ids_reserve(struct id_list *l, size_t more)
{
	if (more > INT32_MAX / 4) return false;
	if (l->count + (int64_t)more <= l->room) return true;
	const int64_t room = 2 * (l->count + (int64_t)more) + 64;
	int32_t *id = realloc(l->id, (size_t)room * sizeof *id);
	if (!id) return false;
	l->id = id;
	l->room = room;
	return true;
}

bool text_reserve(struct text_room *t, size_t bytes)
{
	if (bytes <= t->room) return true;
	const size_t room = bytes + bytes / 2 + 64;
	char *text = realloc(t->text, room);
	if (!text) return false;
	t->text = text;
	t->room = room;
	return true;
}

int nr_encoder_make(struct nr_encoder **out, const struct nr_tokenizer *t, struct nr_error *err)
{
	struct nr_encoder *e = calloc(1, sizeof *e);
	*out = NULL;
	if (e) e->of = t;
	if (!e || (t->kind == NR_BPE && !bpe_cache_make(&e->cache))) {
		nr_encoder_free(e);
		return tokenizer_memory(t, err);
	}
	*out = e;
	return NR_OK;
}

void nr_encoder_free(struct nr_encoder *e)
{
	if (!e) return;
	free(e->part[0].id);
	free(e->part[1].id);
	free(e->ids.id);
	free(e->types.id);
	free(e->repaired.text);
	free(e->normal.text);
	free(e->prefixed.text);
	free(e->symbol);
	free(e->heap);
	bpe_cache_release(&e->cache);
	free(e);
}

/* ---- the tokens of a text --------------------------------------------------------------------------------------------------- */

static bool encode_piece(struct nr_encoder *e, const char *s, size_t n, struct id_list *out)
{
	return e->of->kind == NR_WORDPIECE ? wordpiece_encode(e->of, s, n, out) : bpe_encode(e, s, n, out);
}

static bool encode_normal(struct nr_encoder *e, const char *s, size_t n, struct id_list *out)
{
	const struct nr_tokenizer *t = e->of;
	if (t->normalizes) {
		if (!bert_normalize(&t->bert, s, n, &e->normal)) return false;
		s = e->normal.text;
		n = e->normal.bytes;
	}
	size_t done = 0, at = 0;
	for (struct added_match m; added_next(&t->normal, s, n, &at, done, &m); done = m.to) {
		if (m.from > done && !encode_piece(e, s + done, m.from - done, out)) return false;
		if (!ids_reserve(out, 1)) return false;
		out->id[out->count++] = m.id;
	}
	return done == n || encode_piece(e, s + done, n - done, out);
}

static bool encode_text(struct nr_encoder *e, const char *s, size_t n, struct id_list *out)
{
	size_t done = 0, at = 0;
	for (struct added_match m; added_next(&e->of->raw, s, n, &at, done, &m); done = m.to) {
		if (m.from > done && !encode_normal(e, s + done, m.from - done, out)) return false;
		if (!ids_reserve(out, 1)) return false;
		out->id[out->count++] = m.id;
	}
	return done == n || encode_normal(e, s + done, n - done, out);
}

/* U+FFFD for whatever is not UTF-8. */
static bool repair(struct nr_encoder *e, const char **s, size_t *n, size_t good)
{
	struct text_room *r = &e->repaired;
	r->bytes = 0;
	for (size_t at = 0; at < *n; good = nr_utf8_span(*s + at, *n - at)) {
		if (!text_reserve(r, r->bytes + good + 3)) return false;
		memcpy(r->text + r->bytes, *s + at, good);
		r->bytes += good;
		at += good;
		if (at == *n) break;
		r->bytes += nr_utf8_put(r->text + r->bytes, 0xfffd);
		at += nr_utf8_broken(*s + at, *n - at);
	}
	*s = r->text;
	*n = r->bytes;
	return true;
}

static bool encode_part(struct nr_encoder *e, const char *s, size_t n, struct id_list *out)
{
	out->count = 0;
	const size_t good = nr_utf8_span(s, n);
	if (good < n && !repair(e, &s, &n, good)) return false;
	return encode_text(e, s, n, out);
}

/* ---- cutting, special tokens ------------------------------------------------------------------------------------------------- */

struct span { int64_t from, count; };

static struct span keep(const struct nr_tokenizer *t, int64_t count, int64_t kept)
{
	return (struct span){ t->cut_left ? count - kept : 0, kept };
}

/* Both lengths when room ids in all may stay: the longer text loses first, then both have the same length, the second (or the
 * one that was longer) the odd one. */
static void cut_longest(int64_t room, int64_t *a, int64_t *b)
{
	const bool swap = *a > *b;
	int64_t shorter = swap ? *b : *a, longer;
	longer = shorter > room ? shorter : shorter > room - shorter ? shorter : room - shorter;
	if (shorter + longer > room) {
		shorter = room / 2;
		longer = shorter + room % 2;
	}
	*a = swap ? longer : shorter;
	*b = swap ? shorter : longer;
}

static int cut(const struct nr_tokenizer *t, const struct nr_encode_how *how, bool pair, int64_t added, int64_t *a, int64_t *b,
	struct nr_error *err)
{
	const int64_t room = how->max_length - added;
	if (room < 0) {
		nr_fail(err, NR_EVALUE, "cannot cut the text", t->path,
			"%lld id%s no room for the %lld special tokens", (long long)how->max_length,
			how->max_length == 1 ? " has" : "s have", (long long)added);
		return nr_hint(err, "allow more ids");
	}
	const int64_t over = *a + *b - room;
	if (over <= 0) return NR_OK;
	if (!room) {
		*a = *b = 0;
		return NR_OK;
	}
	if (how->cut == NR_CUT_LONGEST_FIRST) {
		if (pair) cut_longest(room, a, b);
		else *a = room;
		return NR_OK;
	}
	int64_t *from = how->cut == NR_CUT_ONLY_FIRST ? a : b;
	if (how->cut == NR_CUT_ONLY_SECOND && !pair)
		return nr_fail(err, NR_EVALUE, "cannot cut the text", t->path,
			"only the second text may be cut, but there is none");
	if (*from <= over) {
		nr_fail(err, NR_EVALUE, "cannot cut the text", t->path,
			"the text that may be cut has %lld ids, but %lld must be removed", (long long)*from,
			(long long)over);
		return nr_hint(err, "cut the longest first, or allow more ids");
	}
	*from -= over;
	return NR_OK;
}

int nr_encode(struct nr_encoder *e, const char *text, size_t bytes, const char *pair, size_t pair_bytes, const struct nr_encode_how *how,
	struct nr_encoding *out, struct nr_error *err)
{
	static const struct nr_encode_how usual;
	const struct nr_tokenizer *t = e->of;
	if (!how) how = &usual;
	*out = (struct nr_encoding){ 0 };
	e->blank_first = t->bpe.blank_first || how->blank_first;
	e->part[1].count = 0;
	if (!encode_part(e, text, bytes, &e->part[0]) || (pair && !encode_part(e, pair, pair_bytes, &e->part[1])))
		return tokenizer_memory(t, err);

	const struct template *around = pair ? &t->pair : &t->single;
	int64_t a = e->part[0].count, b = e->part[1].count;
	const int64_t all[2] = { a, b }, added = how->plain ? 0 : around->added;
	if (how->max_length && cut(t, how, pair, added, &a, &b, err)) return err ? (int)err->code : NR_EVALUE;
	const struct span kept[2] = { keep(t, all[0], a), keep(t, all[1], b) };
	e->ids.count = e->types.count = 0;
	if (!ids_reserve(&e->ids, (size_t)(a + b + added)) || !ids_reserve(&e->types, (size_t)(a + b + added)))
		return tokenizer_memory(t, err);
	for (int64_t i = 0; i < around->count; i++) {
		const int32_t part = around->part[i], type = around->type[i];
		if (part >= 0 && how->plain) continue;
		const struct span s = part >= 0 ? (struct span){ 0, 1 } : kept[part == PART_B];
		if (!s.count) continue;                         /* a text without tokens need not have memory */
		const int32_t *from = part >= 0 ? &around->part[i] : e->part[part == PART_B].id + s.from;
		memcpy(e->ids.id + e->ids.count, from, (size_t)s.count * sizeof *from);
		for (int64_t k = 0; k < s.count; k++) e->types.id[e->ids.count + k] = how->plain ? part == PART_B : type;
		e->ids.count += s.count;
	}
	*out = (struct nr_encoding){ e->ids.id, e->types.id, e->ids.count };
	return NR_OK;
}

void nr_encoding_pad(const struct nr_tokenizer *t, const struct nr_encoding *e, int64_t width, int32_t *ids, int32_t *types, int32_t *mask)
{
	const int32_t pad = t->special[NR_TOKEN_PAD] < 0 ? 0 : t->special[NR_TOKEN_PAD];
	const int64_t first = t->pad_left ? width - e->count : 0;
	for (int64_t i = 0; i < width; i++) {
		const bool here = i >= first && i < first + e->count;
		ids[i] = here ? e->ids[i - first] : pad;
		if (types) types[i] = here ? e->types[i - first] : t->pad_type;
		if (mask) mask[i] = here;
	}
}
