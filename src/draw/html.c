/* HTML: see html.h. */
#include "draw/html.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text -------------------------------------------------------------------------------------------------------------- */

static const char *entity(char c)
{
	switch (c) {
	case '&': return "&amp;";
	case '<': return "&lt;";
	case '>': return "&gt;";
	case '"': return "&quot;";
	case '\'': return "&#39;";
	default: return NULL;
	}
}

static void add_valid(struct nr_str *s, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)text[i];
		const char *e = entity(text[i]);
		if (e) nr_str_add(s, e);
		else if ((c >= 0x20 && c != 0x7F) || c == '\n' || c == '\t') nr_str_add_n(s, text + i, 1);
	}
}

void nr_html_text(struct nr_str *s, const char *text)
{
	size_t left = text ? strlen(text) : 0;
	while (left) {
		const size_t n = nr_utf8_span(text, left);
		add_valid(s, text, n);
		if (n < left) nr_str_add(s, "\xEF\xBF\xBD");
		text += n < left ? n + 1 : n;
		left -= n < left ? n + 1 : n;
	}
}

void nr_html_printf(struct nr_str *s, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	const int n = vsnprintf(NULL, 0, fmt, ap);
	char *text = n < 0 ? NULL : malloc((size_t)n + 1);
	if (text) vsnprintf(text, (size_t)n + 1, fmt, again);
	else s->failed = true;
	va_end(again);
	va_end(ap);
	nr_html_text(s, text);
	free(text);
}

static void open_tag(struct nr_str *s, const char *tag, const char *class_)
{
	nr_str_printf(s, "<%s", tag);
	if (class_ && *class_) {
		nr_str_add(s, " class=\"");
		nr_html_text(s, class_);
		nr_str_add(s, "\"");
	}
	nr_str_add(s, ">");
}

void nr_html_element(struct nr_str *s, const char *tag, const char *class_, const char *text)
{
	open_tag(s, tag, class_);
	nr_html_text(s, text);
	nr_str_printf(s, "</%s>", tag);
}

/* ---- tables ------------------------------------------------------------------------------------------------------------ */

enum state { EMPTY, IN_HEAD, IN_ROW, IN_CELL };

static void end_cell(struct nr_html_table *t)
{
	if (t->state == IN_CELL) nr_str_add(t->s, "</td>");
	t->state = t->state == IN_CELL ? IN_ROW : t->state;
}

void nr_html_table_open(struct nr_html_table *t, const char *class_)
{
	t->state = EMPTY;
	nr_str_add(t->s, "<div class=\"wide\">");
	open_tag(t->s, "table", class_);
}

void nr_html_head(struct nr_html_table *t, const char *class_, const char *title)
{
	if (t->state == EMPTY) nr_str_add(t->s, "<thead><tr>");
	t->state = IN_HEAD;
	nr_html_element(t->s, "th", class_, title);
}

void nr_html_row(struct nr_html_table *t)
{
	end_cell(t);
	nr_str_add(t->s, t->state == IN_HEAD ? "</tr></thead><tbody>\n<tr>" : t->state == EMPTY ? "<tbody><tr>" : "</tr>\n<tr>");
	t->state = IN_ROW;
}

void nr_html_cell_open(struct nr_html_table *t, const char *class_)
{
	end_cell(t);
	open_tag(t->s, "td", class_);
	t->state = IN_CELL;
}

void nr_html_cell(struct nr_html_table *t, const char *class_, const char *text)
{
	nr_html_cell_open(t, class_);
	nr_html_text(t->s, text);
}

void nr_html_table_close(struct nr_html_table *t)
{
	end_cell(t);
	if (t->state == IN_HEAD) nr_str_add(t->s, "</tr></thead>");
	else if (t->state == IN_ROW) nr_str_add(t->s, "</tr></tbody>");
	nr_str_add(t->s, "</table></div>\n");
	if (t->caption) nr_html_element(t->s, "p", "notes", t->caption);
}

/* ---- figures ----------------------------------------------------------------------------------------------------------- */

void nr_html_figure_open(struct nr_str *s, const char *class_, const char *title, const char *note)
{
	open_tag(s, "figure", class_);
	nr_str_add(s, "<figcaption>");
	nr_html_element(s, "b", NULL, title);
	if (note && *note) {
		nr_str_add(s, " ");
		nr_html_element(s, "span", NULL, note);
	}
	nr_str_add(s, "</figcaption>");
}

void nr_html_figure_close(struct nr_str *s) { nr_str_add(s, "</figure>\n"); }

void nr_base64(struct nr_str *s, const void *bytes, size_t size)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *b = bytes;
	for (size_t i = 0; i < size; i += 3) {
		const size_t n = size - i < 3 ? size - i : 3;
		const unsigned v = (unsigned)b[i] << 16 | (n > 1 ? (unsigned)b[i + 1] << 8 : 0) | (n > 2 ? b[i + 2] : 0);
		const char four[] = { digit[v >> 18 & 63], digit[v >> 12 & 63], n > 1 ? digit[v >> 6 & 63] : '=',
			n > 2 ? digit[v & 63] : '=' };
		nr_str_add_n(s, four, 4);
	}
}

void nr_html_png(struct nr_str *s, const void *bytes, size_t size, int64_t width, int64_t height, const char *alt)
{
	nr_str_printf(s, "<img width=\"%lld\" height=\"%lld\" alt=\"", (long long)width, (long long)height);
	nr_html_text(s, alt);
	nr_str_add(s, "\" src=\"data:image/png;base64,");
	nr_base64(s, bytes, size);
	nr_str_add(s, "\"/>");
}
