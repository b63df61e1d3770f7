/* Byte-level BPE: each word starts as its bytes; the pair of neighbours with the lowest rank is joined, leftmost first, until none is
 * left. Words that were met before come from a table, which is emptied when it is full. */
#include "token/bpe.h"

#include <stdlib.h>

enum { CACHE_BITS = 15, CACHE_WORDS = 3 << (CACHE_BITS - 2), CACHE_TEXT = 1 << 19, CACHE_IDS = 1 << 18, CACHED_BYTES = 48 };

bool bpe_cache_make(struct bpe_cache *c)
{
	c->word = calloc((size_t)1 << CACHE_BITS, sizeof *c->word);
	c->text = malloc(CACHE_TEXT);
	c->ids = malloc(CACHE_IDS * sizeof *c->ids);
	return c->word && c->text && c->ids;
}

void bpe_cache_release(struct bpe_cache *c)
{
	free(c->word);
	free(c->text);
	free(c->ids);
}

/* Where the word is, or the empty place for it (bytes 0). */
static struct bpe_word *cached(struct bpe_cache *c, uint64_t hash, const char *s, size_t n)
{
	const uint64_t mask = (UINT64_C(1) << CACHE_BITS) - 1;
	uint64_t i = hash >> (64 - CACHE_BITS);
	for (; c->word[i].bytes; i = (i + 1) & mask)
		if (c->word[i].hash == hash && c->word[i].bytes == n && !memcmp(c->text + c->word[i].text, s, n)) break;
	return &c->word[i];
}

static void remember(struct bpe_cache *c, uint64_t hash, const char *s, size_t n, const int32_t *ids, int64_t count)
{
	if (c->words >= CACHE_WORDS || c->used_text + n > CACHE_TEXT || c->used_ids + (size_t)count > CACHE_IDS) {
		memset(c->word, 0, sizeof *c->word << CACHE_BITS);
		c->words = c->used_text = c->used_ids = 0;
	}
	struct bpe_word *w = cached(c, hash, s, n);
	*w = (struct bpe_word){ hash, c->used_text, c->used_ids, (uint16_t)n, (uint16_t)count };
	memcpy(c->text + c->used_text, s, n);
	if (count) memcpy(c->ids + c->used_ids, ids, (size_t)count * sizeof *ids);
	c->used_text += (uint32_t)n;
	c->used_ids += (uint32_t)count;
	c->words++;
}

/* ---- joining ------------------------------------------------------------------------------------------------------------- */

static bool comes_before(struct bpe_step a, struct bpe_step b) { return a.rank != b.rank ? a.rank < b.rank : a.at < b.at; }

static void push(struct bpe_step *heap, int64_t *count, struct bpe_step s)
{
	int64_t i = (*count)++;
	for (; i && comes_before(s, heap[(i - 1) / 2]); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
	heap[i] = s;
}

static struct bpe_step pop(struct bpe_step *heap, int64_t *count)
{
	const struct bpe_step top = heap[0], last = heap[--*count];
	int64_t i = 0;
	for (int64_t child; (child = 2 * i + 1) < *count; i = child) {
		if (child + 1 < *count && comes_before(heap[child + 1], heap[child])) child++;
		if (!comes_before(heap[child], last)) break;
		heap[i] = heap[child];
	}
	heap[i] = last;
	return top;
}

static void consider(struct nr_encoder *e, int64_t *count, int32_t left, int32_t right)
{
	if (left < 0 || right < 0) return;
	const struct bpe_merge *m = bpe_slot(&e->of->bpe, (uint32_t)e->symbol[left].id, (uint32_t)e->symbol[right].id);
	if (m->rank >= 0) push(e->heap, count, (struct bpe_step){ m->rank, left, m->id });
}

static void join(struct nr_encoder *e, int32_t symbols)
{
	int64_t count = 0;
	for (int32_t i = 0; i + 1 < symbols; i++) consider(e, &count, i, i + 1);
	while (count) {
		const struct bpe_step s = pop(e->heap, &count);
		struct bpe_symbol *a = &e->symbol[s.at];
		if (a->id < 0 || a->after < 0) continue;
		struct bpe_symbol *b = &e->symbol[a->after];
		const struct bpe_merge *m = bpe_slot(&e->of->bpe, (uint32_t)a->id, (uint32_t)b->id);
		if (m->rank < 0 || m->id != s.id) continue;     /* one of the two has changed since */
		a->id = s.id;
		b->id = -1;
		a->after = b->after;
		if (a->after >= 0) e->symbol[a->after].before = s.at;
		consider(e, &count, a->before, s.at);
		consider(e, &count, s.at, a->after);
	}
}

/* Each join takes a symbol away and adds two steps at most. */
static bool room_for(struct nr_encoder *e, size_t n)
{
	if ((int64_t)n <= e->symbols) return true;
	if (n > INT32_MAX / 4) return false;
	const size_t room = 2 * n + 64;
	struct bpe_symbol *symbol = realloc(e->symbol, room * sizeof *symbol);
	if (symbol) e->symbol = symbol;
	struct bpe_step *heap = realloc(e->heap, 3 * room * sizeof *heap);
	if (heap) e->heap = heap;
	if (!symbol || !heap) return false;
	e->symbols = (int64_t)room;
	return true;
}

static int32_t whole_word(const struct nr_tokenizer *t, const char *s, size_t n)
{
	char c[4 * CACHED_BYTES];
	size_t used = 0;
	if (n > CACHED_BYTES) return -1;
	for (size_t i = 0; i < n; i++) {
		const int32_t id = t->bpe.of_byte[(uint8_t)s[i]];
		size_t bytes;
		const char *text = vocab_token(&t->vocab, id, &bytes);
		if (!text) return -1;
		memcpy(c + used, text, bytes);
		used += bytes;
	}
	return vocab_find(&t->vocab, c, used);
}

static bool encode_word(struct nr_encoder *e, const char *s, size_t n, struct id_list *out)
{
	const struct nr_tokenizer *t = e->of;
	if (!room_for(e, n)) return false;
	if (t->bpe.ignore_merges) {
		const int32_t id = whole_word(t, s, n);
		if (id >= 0) {
			out->id[out->count++] = id;
			return true;
		}
	}
	int32_t symbols = 0;
	for (size_t i = 0; i < n; i++) {
		int32_t id = (t->bpe.clip && i + 1 == n ? t->bpe.of_last : t->bpe.of_byte)[(uint8_t)s[i]];
		if (id < 0) id = t->bpe.unk;
		if (id < 0) continue;
		e->symbol[symbols] = (struct bpe_symbol){ id, symbols - 1, symbols + 1 };
		symbols++;
	}
	if (!symbols) return true;
	e->symbol[symbols - 1].after = -1;
	join(e, symbols);
	for (int32_t i = 0; i >= 0; i = e->symbol[i].after) out->id[out->count++] = e->symbol[i].id;
	return true;
}

bool bpe_encode(struct nr_encoder *e, const char *s, size_t n, struct id_list *out)
{
	if (e->blank_first && n && *s != ' ') {
		if (!text_reserve(&e->prefixed, n + 1)) return false;
		e->prefixed.text[0] = ' ';
		memcpy(e->prefixed.text + 1, s, n);
		s = e->prefixed.text;
		n++;
	}
	if (!ids_reserve(out, n)) return false;         /* a token has a byte at least */
	for (const char *end = s + n, *next; s < end; s = next) {
		if (e->of->bpe.clip && (s = bpe_blanks_end(s, end)) == end) break;
		next = (e->of->bpe.clip ? bpe_clip_word_end : bpe_word_end)(s, end);
		const size_t bytes = (size_t)(next - s);
		if (bytes > CACHED_BYTES) {
			if (!encode_word(e, s, bytes, out)) return false;
			continue;
		}
		const uint64_t hash = nr_hash(NR_HASH_START, s, bytes);
		const struct bpe_word *w = cached(&e->cache, hash, s, bytes);
		if (w->bytes) {
			for (int i = 0; i < w->count; i++) out->id[out->count + i] = e->cache.ids[w->ids + (uint32_t)i];
			out->count += w->count;
			continue;
		}
		const int64_t before = out->count;
		if (!encode_word(e, s, bytes, out)) return false;
		remember(&e->cache, hash, s, bytes, out->id + before, out->count - before);
	}
	return true;
}
