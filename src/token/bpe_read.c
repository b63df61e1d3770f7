/* Byte-level BPE: the table of merges, and the tokens of single bytes. A token is written with one visible character for each byte:
 * printable Latin-1 stands for itself, the 68 others for U+0100 onwards. */
#include "token/bpe.h"

#include "token/unicode.h"

static bool stands_for_itself(int b) { return (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae; }

int32_t bpe_char_of_byte(int byte)
{
	int32_t next = 0x100;
	if (stands_for_itself(byte)) return byte;
	for (int b = 0; b < byte; b++) next += !stands_for_itself(b);
	return next;
}

int bpe_byte_of_char(int32_t c)
{
	if (c < 0x100) return stands_for_itself(c) ? c : -1;
	for (int b = 0; b < 256; b++)
		if (!stands_for_itself(b) && bpe_char_of_byte(b) == c) return b;
	return -1;
}

int bpe_start(struct nr_tokenizer *t, int64_t merges)
{
	t->bpe.bits = 4;
	while ((int64_t)1 << t->bpe.bits < 2 * merges) t->bpe.bits++;
	const size_t slots = (size_t)1 << t->bpe.bits;
	t->bpe.merge = nr_arena_alloc(t->arena, slots * sizeof *t->bpe.merge);
	if (!t->bpe.merge) return NR_EMEMORY;
	for (size_t i = 0; i < slots; i++) t->bpe.merge[i].rank = -1;
	return NR_OK;
}

struct bpe_merge *bpe_slot(const struct bpe_rules *r, uint32_t left, uint32_t right)
{
	const uint64_t key = ((uint64_t)left << 32 | right) * UINT64_C(0x9e3779b97f4a7c15), mask = (UINT64_C(1) << r->bits) - 1;
	uint64_t i = (key ^ key << 32) >> (64 - r->bits);
	while (r->merge[i].rank >= 0 && (r->merge[i].left != left || r->merge[i].right != right)) i = (i + 1) & mask;
	return &r->merge[i];
}

int bpe_add_merge(struct nr_tokenizer *t, const char *left, size_t n_left, const char *right, size_t n_right, int32_t rank,
	const char *where, struct nr_error *err)
{
	char joined[512];
	const int32_t a = vocab_find(&t->vocab, left, n_left), b = vocab_find(&t->vocab, right, n_right);
	if (a < 0 || b < 0) {
		const bool first = a < 0;
		nr_fail(err, NR_EFORMAT, "cannot read", t->path, "%s: '%.*s' is not in the vocabulary", where,
			first ? (int)n_left : (int)n_right,
			first ? left : right);
		return nr_hint(err, "the merges and the vocabulary must belong together");
	}
	if (n_left + n_right > sizeof joined) return nr_fail(err, NR_ELIMIT, "cannot read", t->path, "%s: a token is too long", where);
	memcpy(joined, left, n_left);
	memcpy(joined + n_left, right, n_right);
	const int32_t id = vocab_find(&t->vocab, joined, n_left + n_right);
	if (id < 0) {
		nr_fail(err, NR_EFORMAT, "cannot read", t->path, "%s: '%.*s' is not in the vocabulary", where,
			(int)(n_left + n_right), joined);
		return nr_hint(err, "the merges and the vocabulary must belong together");
	}
	*bpe_slot(&t->bpe, (uint32_t)a, (uint32_t)b) = (struct bpe_merge){ (uint32_t)a, (uint32_t)b, rank, id };
	return NR_OK;
}

void bpe_bytes(struct nr_tokenizer *t)
{
	for (int b = 0; b < 256; b++) {
		char c[4];
		t->bpe.of_byte[b] = vocab_find(&t->vocab, c, nr_utf8_put(c, bpe_char_of_byte(b)));
	}
}

void bpe_clip(struct nr_tokenizer *t)
{
	if (nr_tokenizer_find(t, "<|startoftext|>") < 0 || nr_tokenizer_find(t, "<|endoftext|>") < 0) return;
	static const char end[] = { '<', '/', 'w', '>' };
	t->bpe.clip = false;
	for (int b = 0; b < 256; b++) {
		char c[16];
		size_t n = nr_utf8_put(c, bpe_char_of_byte(b));
		memcpy(c + n, end, sizeof end);
		t->bpe.of_last[b] = vocab_find(&t->vocab, c, n + sizeof end);
		t->bpe.clip |= t->bpe.of_last[b] >= 0;
	}
	if (!t->bpe.clip) return;
	t->normalizes = true;
	t->bert = (struct bert_rules){ .lowercase = true };
	t->special[NR_TOKEN_CLS] = nr_tokenizer_find(t, "<|startoftext|>");
	t->special[NR_TOKEN_SEP] = nr_tokenizer_find(t, "<|endoftext|>");
}
