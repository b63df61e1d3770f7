/* Strings: see str.h. */
#include "base/str.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/points.h"
#include "norma/option.h"

enum { LONGEST = 128 };

static unsigned char fold(char c)
{
	if (c == '-')
		return '_';
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

size_t nr_distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	if (n > LONGEST || m > LONGEST)
		return SIZE_MAX;
	/* three rows are enough: a swap looks two rows back */
	uint16_t rows[3][LONGEST + 1], *two = rows[0], *one = rows[1], *row = rows[2];
	for (size_t j = 0; j <= m; j++)
		one[j] = (uint16_t)j;
	for (size_t i = 1; i <= n; i++) {
		row[0] = (uint16_t)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned char p = fold(a[i - 1]), q = fold(b[j - 1]);
			unsigned best = one[j - 1] + (p != q);
			if (one[j] + 1u < best)
				best = one[j] + 1u;
			if (row[j - 1] + 1u < best)
				best = row[j - 1] + 1u;
			if (i > 1 && j > 1 && p == fold(b[j - 2]) && q == fold(a[i - 2]) &&
			    two[j - 2] + 1u < best)
				best = two[j - 2] + 1u;
			row[j] = (uint16_t)best;
		}
		uint16_t *spare = two;
		two = one, one = row, row = spare;
	}
	return one[m];
}

static bool is_prefix(const char *word, const char *of)
{
	for (; *word; word++, of++)
		if (fold(*word) != fold(*of))
			return false;
	return true;
}

void nr_near_try(struct nr_near *near, const char *candidate)
{
	size_t n = strlen(near->word), m = strlen(candidate), limit = (n + 2) / 3;
	size_t gap = n > m ? n - m : m - n, d = SIZE_MAX;
	if (limit > 5)
		limit = 5;
	if (n && gap <= limit)
		d = nr_distance(near->word, candidate);
	if (d > limit && n >= 3 && is_prefix(near->word, candidate))
		d = limit;  /* half a word typed */
	if (d > limit || d >= (n > m ? n : m))
		return;
	if (!near->best || d < near->distance) {
		near->best = candidate;
		near->distance = d;
	}
}

const char *nr_nearest(const char *word, const char *const *list)
{
	struct nr_near near = { .word = word };
	for (; list && *list; list++)
		nr_near_try(&near, *list);
	return near.best;
}

const char *nr_nearest_option(const char *word, const struct nr_option *table)
{
	struct nr_near near = { .word = word };
	for (; table && table->name; table++)
		nr_near_try(&near, table->name);
	return near.best;
}

bool nr_parse_int(const char *s, int64_t *out)
{
	bool minus = *s == '-';
	if (*s == '-' || *s == '+')
		s++;
	if (!*s)
		return false;
	int64_t v = 0;  /* kept negative: its range is the larger one */
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, *s - '0', &v))
			return false;
	}
	if (!minus && __builtin_sub_overflow(0, v, &v))
		return false;
	*out = v;
	return true;
}

bool nr_parse_double(const char *s, double *out)
{
	/* strtod also takes leading spaces and hexadecimal: neither is ours */
	if (!*s || strspn(s, "+-.0123456789eEinfINFtyTYaA") != strlen(s))
		return false;
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!c)
		return false;
	char *end;
	double v = strtod_l(s, &end, c);
	freelocale(c);
	if (*end || end == s)
		return false;
	*out = v;
	return true;
}

const char *nr_double_text(double v, bool single, char *buf, size_t size)
{
	const locale_t before = nr_points_begin();
	bool whole = v > -1e15 && v < 1e15 && v == (double)(int64_t)v;
	if (whole)
		snprintf(buf, size, "%.0f", v);  /* 1000, not 1e+03 */
	for (int digits = 1; !whole && digits <= 17; digits++) {
		snprintf(buf, size, "%.*g", digits, v);
		double back = strtod(buf, NULL);
		if (single ? (float)back == (float)v : back == v)
			break;
	}
	nr_points_end(before);
	char *e = strchr(buf, 'e');  /* 1e-6, not 1e-06 */
	if (e && e[1] && e[2] == '0')
		memmove(e + 2, e + 3, strlen(e + 3) + 1);
	return buf;
}

/* Length of the character at s (n >= 1 bytes left), 0 if it is not valid; its code point goes to *point. */
static size_t utf8_next(const char *s, size_t n, uint32_t *point)
{
	const unsigned char *u = (const unsigned char *)s;
	if (u[0] < 0x80) {
		*point = u[0];
		return 1;
	}
	size_t need = u[0] >= 0xF0 ? 4 : u[0] >= 0xE0 ? 3 : 2;
	if (u[0] < 0xC2 || u[0] > 0xF4 || need > n)
		return 0;
	uint32_t p = u[0] & (0x7Fu >> need);
	for (size_t i = 1; i < need; i++) {
		if ((u[i] & 0xC0) != 0x80)
			return 0;
		p = p << 6 | (u[i] & 0x3Fu);
	}
	/* overlong forms, surrogates, beyond Unicode */
	if ((need == 3 && p < 0x800) || (need == 4 && (p < 0x10000 || p > 0x10FFFF)) ||
	    (p >= 0xD800 && p <= 0xDFFF))
		return 0;
	*point = p;
	return need;
}

size_t nr_utf8_span(const char *s, size_t size)
{
	size_t i = 0;
	while (i < size) {
		uint64_t eight;         /* of ASCII at once */
		while (size - i >= 8 && (memcpy(&eight, s + i, 8), !(eight & UINT64_C(0x8080808080808080)))) i += 8;
		if (i == size) break;
		uint32_t point;
		size_t n = utf8_next(s + i, size - i, &point);
		if (!n)
			break;
		i += n;
	}
	return i;
}

bool nr_utf8_valid(const char *s, size_t size)
{
	return nr_utf8_span(s, size) == size;
}

static size_t width_of(uint32_t p)
{
	static const struct { uint32_t from, to; } none[] = {
		{ 0x300, 0x36F }, { 0x483, 0x489 }, { 0x591, 0x5BD }, { 0x610, 0x61A }, { 0x64B, 0x65F },
		{ 0x200B, 0x200F }, { 0x20D0, 0x20FF }, { 0xFE00, 0xFE0F }, { 0xFE20, 0xFE2F },
		{ 0xFEFF, 0xFEFF },
	}, wide[] = {
		{ 0x1100, 0x115F }, { 0x2E80, 0x303E }, { 0x3041, 0xA4CF }, { 0xAC00, 0xD7A3 },
		{ 0xF900, 0xFAFF },
		{ 0xFE30, 0xFE6F }, { 0xFF00, 0xFF60 }, { 0xFFE0, 0xFFE6 }, { 0x1F300, 0x1F64F },
		{ 0x1F680, 0x1F6FF }, { 0x1F900, 0x1F9FF }, { 0x20000, 0x3FFFD },
	};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		if (p >= none[i].from && p <= none[i].to)
			return 0;
	for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
		if (p >= wide[i].from && p <= wide[i].to)
			return 2;
	return p < 0x20 || p == 0x7F ? 0 : 1;
}

size_t nr_utf8_width(const char *s)
{
	size_t columns = 0;
	for (size_t left = strlen(s); left;) {
		uint32_t point = 0xFFFD;
		size_t n = utf8_next(s, left, &point);
		columns += width_of(point);
		s += n ? n : 1;
		left -= n ? n : 1;
	}
	return columns;
}

static bool fail(struct nr_str *s)
{
	s->failed = true;
	nr_memory_note_failure();
	return false;
}

/* Room for more bytes and the final zero. */
static bool grow(struct nr_str *s, size_t more)
{
	if (s->failed)
		return false;
	if (more < s->cap - s->len)
		return true;
	size_t cap = s->cap ? s->cap : 64;
	while (cap - s->len <= more && cap <= SIZE_MAX / 4)
		cap *= 2;
	char *text = cap - s->len > more ? realloc(s->text, cap) : NULL;
	if (!text)
		return fail(s);
	s->text = text;
	s->cap = cap;
	return true;
}

void nr_str_add_n(struct nr_str *s, const char *text, size_t n)
{
	if (!grow(s, n))
		return;
	memcpy(s->text + s->len, text, n);
	s->len += n;
	s->text[s->len] = 0;
}

void nr_str_add(struct nr_str *s, const char *text)
{
	nr_str_add_n(s, text, strlen(text));
}

void nr_str_fill(struct nr_str *s, char c, size_t count)
{
	if (!grow(s, count))
		return;
	memset(s->text + s->len, c, count);
	s->len += count;
	s->text[s->len] = 0;
}

void nr_str_printf(struct nr_str *s, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	const locale_t before = nr_points_begin();
	int n = vsnprintf(NULL, 0, fmt, ap);
	if (n < 0)
		fail(s);
	else if (grow(s, (size_t)n)) {
		if (vsnprintf(s->text + s->len, (size_t)n + 1, fmt, again) == n)
			s->len += (size_t)n;
		else
			s->text[s->len] = 0, fail(s);
	}
	nr_points_end(before);
	va_end(again);
	va_end(ap);
}

const char *nr_str_text(const struct nr_str *s)
{
	return s->text ? s->text : "";
}

char *nr_str_take(struct nr_str *s)
{
	if (!s->text && grow(s, 0))
		s->text[0] = 0;
	char *text = s->failed ? NULL : s->text;
	if (s->failed)
		free(s->text);
	*s = (struct nr_str){ 0 };
	return text;
}

char *nr_str_keep(struct nr_str *s, struct nr_arena *arena)
{
	char *text = s->failed ? NULL : nr_arena_strdup(arena, nr_str_text(s));
	nr_str_release(s);
	return text;
}

void nr_str_release(struct nr_str *s)
{
	free(s->text);
	*s = (struct nr_str){ 0 };
}
