/* WordPiece: words between white space and punctuation, each cut into the longest tokens from the left ("##" inside a word). */
#include "token/tokenizer_inner.h"
#include "token/unicode.h"

enum { LETTER, BLANK, MARK };                   /* part of a word, between words, a word of its own */

static int class_of(int32_t c)
{
	return nr_char_is_space(c) ? BLANK : nr_char_is_punctuation(c) ? MARK : LETTER;
}

/* The longest token at the beginning of s: one pass for the hashes, then from the longest beginning down. */
static int32_t longest(const struct nr_tokenizer *t, const struct vocab_slots *in, bool inside, const char *s, size_t n, size_t *length)
{
	enum { MOST = 512 };
	uint64_t hash[MOST];
	if (n > t->longest) n = t->longest;
	if (n > MOST) n = MOST;
	uint64_t h = inside ? NR_HASH_INSIDE : NR_HASH_START;
	for (size_t i = 0; i < n; i++) hash[i] = h = nr_hash_byte(h, (uint8_t)s[i]);
	const uint64_t mask = (UINT64_C(1) << in->bits) - 1;
	const size_t skip = inside ? strlen(t->prefix) : 0;
	for (; n; n--) {
		const uint32_t tag = (uint32_t)(hash[n - 1] >> 8);
		for (uint64_t i = hash[n - 1] >> (64 - in->bits); in->slot[i].id >= 0; i = (i + 1) & mask) {
			if (in->slot[i].tag != tag) continue;
			const struct vocab_text token = t->vocab.token[in->slot[i].id];
			if (token.bytes != n + skip || memcmp(t->vocab.text + token.at + skip, s, n)) continue;
			*length = n;
			return in->slot[i].id;
		}
	}
	return -1;
}

static bool too_long(const struct nr_tokenizer *t, const char *s, size_t n)
{
	int64_t chars = 0;
	if ((int64_t)n <= t->max_chars) return false;
	for (size_t i = 0; i < n; i++) chars += ((uint8_t)s[i] & 0xc0) != 0x80;
	return chars > t->max_chars;
}

static void encode_word(const struct nr_tokenizer *t, const char *s, size_t n, struct id_list *out)
{
	const int64_t before = out->count;
	const struct vocab_slots *in = &t->vocab.whole;
	bool known = !too_long(t, s, n);
	for (size_t at = 0, length = 0; known && at < n; at += length) {
		const int32_t id = longest(t, in, in != &t->vocab.whole, s + at, n - at, &length);
		known = id >= 0;
		if (known) out->id[out->count++] = id;
		in = &t->inside;
	}
	if (known) return;
	out->count = before;
	out->id[out->count++] = t->special[NR_TOKEN_UNK];
}

bool wordpiece_encode(const struct nr_tokenizer *t, const char *s, size_t n, struct id_list *out)
{
	static const uint8_t ascii[128] = {
		[9] = BLANK, BLANK, BLANK, BLANK, BLANK, [' '] = BLANK,
		['!'] = MARK, MARK, MARK, MARK, MARK, MARK, MARK, MARK, MARK, MARK, MARK, MARK, MARK, MARK, MARK,
		[':'] = MARK, MARK, MARK, MARK, MARK, MARK, MARK, ['['] = MARK, MARK, MARK, MARK, MARK, MARK,
		['{'] = MARK, MARK, MARK, MARK,
	};
	if (!ids_reserve(out, n)) return false;         /* a token has a byte at least */
	const char *end = s + n, *word = s;
	while (s < end) {
		int32_t c = (uint8_t)*s;
		const size_t bytes = c < 0x80 ? 1 : nr_utf8_get(s, &c);
		const int class = c < 0x80 ? ascii[c] : class_of(c);
		if (class != LETTER) {
			if (s > word) encode_word(t, word, (size_t)(s - word), out);
			if (class == MARK) encode_word(t, s, bytes, out);
			word = s + bytes;
		}
		s += bytes;
	}
	if (s > word) encode_word(t, word, (size_t)(s - word), out);
	return true;
}
