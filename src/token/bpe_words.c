/* GPT-2's pattern by hand: 's|'t|'re|'ve|'m|'ll|'d| ?letters+| ?numbers+| ?others+|blanks not before a non-blank|blanks. */
#include "token/bpe.h"
#include "token/unicode.h"

enum { L = NR_CHAR_LETTER, N = NR_CHAR_NUMBER, S = NR_CHAR_SPACE, O = NR_CHAR_OTHER };
static const uint8_t ascii[128] = {
	O, O, O, O, O, O, O, O, O, S, S, S, S, S, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O,
	S, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, N, N, N, N, N, N, N, N, N, N, O, O, O, O, O, O,
	O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O,
	O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O,
};

static inline int kind_at(const char *s, size_t *bytes)
{
	const uint8_t c = (uint8_t)*s;
	if (c < 0x80) {
		*bytes = 1;
		return ascii[c];
	}
	int32_t point;
	*bytes = nr_utf8_get(s, &point);
	return (int)nr_char_kind(point);
}

static const char *run_end(const char *s, const char *end, int kind)
{
	for (size_t bytes; s < end && kind_at(s, &bytes) == kind;) s += bytes;
	return s;
}

/* 's and its kind; NULL if it is none. */
static const char *contraction(const char *s, const char *end)
{
	const size_t left = (size_t)(end - s);
	if (left < 2) return NULL;
	if (s[1] == 's' || s[1] == 't' || s[1] == 'm' || s[1] == 'd') return s + 2;
	if (left < 3) return NULL;
	return (s[1] == 'r' && s[2] == 'e') || (s[1] == 'v' && s[2] == 'e') || (s[1] == 'l' && s[2] == 'l') ? s + 3 : NULL;
}

/* White space: all of it at the end of the text, else all but its last character, which may belong to the next word. */
static const char *blanks_end(const char *s, const char *end)
{
	const char *last = s, *p = s;
	for (size_t bytes; p < end && kind_at(p, &bytes) == S; p += bytes) last = p;
	return p == end || last == s ? p : last;
}

const char *bpe_word_end(const char *s, const char *end)
{
	size_t bytes, next = 0;
	int kind = kind_at(s, &bytes);
	if (*s == '\'') {
		const char *e = contraction(s, end);
		if (e) return e;
	}
	if (*s == ' ' && end - s > 1) {
		const int behind = kind_at(s + 1, &next);
		if (behind != S) kind = behind, bytes = 1 + next;
	}
	return kind == S ? blanks_end(s, end) : run_end(s + bytes, end, kind);
}

const char *bpe_clip_word_end(const char *s, const char *end)
{
	size_t bytes;
	const int kind = kind_at(s, &bytes);
	const char *e = *s == '\'' ? contraction(s, end) : NULL;
	if (e) return e;
	return kind == N ? s + bytes : run_end(s, end, kind);
}

const char *bpe_blanks_end(const char *s, const char *end) { return run_end(s, end, S); }
