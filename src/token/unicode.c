/* Characters: see unicode.h. */
#include "token/unicode.h"

#include <utf8proc.h>

size_t nr_utf8_put(char *to, int32_t point) { return (size_t)utf8proc_encode_char(point, (utf8proc_uint8_t *)to); }

bool nr_char_is_space(int32_t c)
{
	return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
		c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool nr_char_is_punctuation(int32_t c)
{
	if (c < 0x80) return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
	const utf8proc_category_t k = utf8proc_category(c);
	return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

bool nr_char_is_dropped(int32_t c)
{
	if (c == '\t' || c == '\n' || c == '\r') return false;
	if (c < 0x80) return c < 32 || c == 127;
	const utf8proc_category_t k = utf8proc_category(c);
	return c == 0xfffd || k == UTF8PROC_CATEGORY_CN || (k >= UTF8PROC_CATEGORY_CC && k <= UTF8PROC_CATEGORY_CO);
}

bool nr_char_is_mark(int32_t c) { return utf8proc_category(c) == UTF8PROC_CATEGORY_MN; }

bool nr_char_is_cjk(int32_t c)
{
	return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
		(c >= 0x2a700 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

enum nr_char_kind nr_char_kind(int32_t c)
{
	if (nr_char_is_space(c)) return NR_CHAR_SPACE;
	const utf8proc_category_t k = utf8proc_category(c);
	if (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO) return NR_CHAR_LETTER;
	return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO ? NR_CHAR_NUMBER : NR_CHAR_OTHER;
}

bool nr_char_is_word(int32_t c)
{
	const utf8proc_category_t k = utf8proc_category(c);
	return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NL) || k == UTF8PROC_CATEGORY_PC || c == 0x200c || c == 0x200d;
}

int nr_char_lower(int32_t c, int32_t *out)
{
	if (c == 0x130) {
		out[0] = 'i', out[1] = 0x307;
		return 2;
	}
	out[0] = utf8proc_tolower(c);
	return 1;
}

/* Table 3-7 of the Unicode standard: what may follow a first byte. */
size_t nr_utf8_broken(const char *s, size_t n)
{
	const uint8_t *u = (const uint8_t *)s, a = u[0];
	if (a < 0xc2 || a > 0xf4) return 1;
	const size_t need = a >= 0xf0 ? 4 : a >= 0xe0 ? 3 : 2;
	const uint8_t low = a == 0xe0 ? 0xa0 : a == 0xf0 ? 0x90 : 0x80, high = a == 0xed ? 0x9f : a == 0xf4 ? 0x8f : 0xbf;
	size_t i = 1;
	while (i < need && i < n && u[i] >= (i == 1 ? low : 0x80) && u[i] <= (i == 1 ? high : 0xbf)) i++;
	return i;
}
