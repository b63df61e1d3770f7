/* Characters as the tokenizers see them; categories are those of utf8proc. */
#ifndef NR_UNICODE_H
#define NR_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character at s, of valid UTF-8; returns its bytes. */
static inline size_t nr_utf8_get(const char *s, int32_t *point)
{
	const uint8_t *u = (const uint8_t *)s;
	if (u[0] < 0x80) {
		*point = u[0];
		return 1;
	}
	if (u[0] < 0xe0) {
		*point = (u[0] & 0x1f) << 6 | (u[1] & 0x3f);
		return 2;
	}
	if (u[0] < 0xf0) {
		*point = (u[0] & 0x0f) << 12 | (u[1] & 0x3f) << 6 | (u[2] & 0x3f);
		return 3;
	}
	*point = (u[0] & 0x07) << 18 | (u[1] & 0x3f) << 12 | (u[2] & 0x3f) << 6 | (u[3] & 0x3f);
	return 4;
}
size_t nr_utf8_put(char *to, int32_t point);            /* up to four bytes */

bool nr_char_is_space(int32_t);                         /* White_Space */
bool nr_char_is_punctuation(int32_t);                   /* P*, and all of ASCII that is neither letter, digit, blank nor control */
bool nr_char_is_dropped(int32_t);                       /* NUL, U+FFFD, and C* but tab, line feed and carriage return */
bool nr_char_is_mark(int32_t);                          /* Mn */
bool nr_char_is_cjk(int32_t);                           /* ideographs, as BERT lists them */
bool nr_char_is_word(int32_t);                          /* \w of regular expressions */
enum nr_char_kind { NR_CHAR_LETTER, NR_CHAR_NUMBER, NR_CHAR_SPACE, NR_CHAR_OTHER };
enum nr_char_kind nr_char_kind(int32_t);
/* Into out, up to 3 characters; İ becomes two. Returns how many. */
int nr_char_lower(int32_t, int32_t *out);

/* Bytes of a sequence at s that is not valid UTF-8 and stands for one U+FFFD: the longest beginning of a character, at least one. */
size_t nr_utf8_broken(const char *s, size_t n);

#endif
