/* Wrapping: see wrap.h. */
#include "base/wrap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static size_t width_of(const char *text, size_t n)
{
	size_t wide = 0;
	for (size_t i = 0; i < n; i++) wide += ((unsigned char)text[i] & 0xC0) != 0x80;
	return wide;
}

/* The next word, after the blanks and line feeds before it; its length. */
static size_t next_word(const char **text)
{
	*text += strspn(*text, " \n");
	return strcspn(*text, " \n");
}

static void wrap_n(struct nr_str *s, const char *text, const char *end, size_t indent, size_t width)
{
	size_t column = indent, n;
	for (bool first = true; (n = next_word(&text)) && text < end; text += n, first = false) {
		const size_t wide = width_of(text, n);
		if (!first && column + 1 + wide > width) {
			nr_str_add(s, "\n");
			nr_str_fill(s, ' ', indent);
			column = indent;
		} else if (!first) {
			nr_str_add(s, " ");
			column++;
		}
		nr_str_add_n(s, text, n);
		column += wide;
	}
}

void nr_wrap(struct nr_str *s, const char *text, size_t indent, size_t width) { wrap_n(s, text, text + strlen(text), indent, width); }

static bool is_plain(const char *line) { return *line && *line != '\n' && strncmp(line, "  ", 2) != 0; }

/* As it is; the second column of a list goes on below itself. */
static void add_literal(struct nr_str *s, const char *line, size_t n, size_t width)
{
	const size_t word = strspn(line, " ") + strcspn(line + strspn(line, " "), " "), text = word + strspn(line + word, " ");
	const bool list = width_of(line, n) > width && text >= word + 2 && text < n && !memchr(line, '#', n);
	nr_str_add_n(s, line, list ? text : n);
	if (list) wrap_n(s, line + text, line + n, text, width);
}

void nr_wrap_paragraphs(struct nr_str *s, const char *text, size_t width)
{
	while (*text) {
		const char *end = text;
		while (is_plain(end)) {
			end += strcspn(end, "\n");
			end += *end == '\n';
		}
		if (end > text) {
			wrap_n(s, text, end, 0, width);
			if (end[-1] == '\n') nr_str_add(s, "\n");
			text = end;
		} else {
			const size_t n = strcspn(text, "\n");
			add_literal(s, text, n, width);
			if (text[n]) nr_str_add(s, "\n");
			text += n + (text[n] == '\n');
		}
	}
}
