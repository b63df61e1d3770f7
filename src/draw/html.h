/* HTML as text: every string from outside is escaped on its way in. What is written is also well-formed XML, void elements
 * included, but for the doctype. */
#ifndef NR_HTML_H
#define NR_HTML_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* The text with & < > " ' escaped, fit for content and for quoted attributes; bytes that are no UTF-8 become U+FFFD, control
 * characters that XML forbids are left out. NULL is empty. */
void nr_html_text(struct nr_str *, const char *);
/* printf whose result is escaped as a whole. */
void nr_html_printf(struct nr_str *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* <tag class="...">text</tag>; class_ may be NULL. */
void nr_html_element(struct nr_str *, const char *tag, const char *class_, const char *text);

/* A table whose cells come row by row:
 *   struct nr_html_table t = { .s = s, .caption = "below it, where it does not scroll" }; nr_html_table_open(&t, "class");
 *   nr_html_head(&t, "arm", ""); ...; nr_html_row(&t); nr_html_cell(&t, "number", "12"); ...; nr_html_table_close(&t); */
struct nr_html_table { struct nr_str *s; const char *caption; int state; };
void nr_html_table_open(struct nr_html_table *, const char *class_);
void nr_html_head(struct nr_html_table *, const char *class_, const char *title);
void nr_html_row(struct nr_html_table *);
void nr_html_cell(struct nr_html_table *, const char *class_, const char *text);
/* A cell whose content is written by the caller, as HTML, until the next call for this table. */
void nr_html_cell_open(struct nr_html_table *, const char *class_);
void nr_html_table_close(struct nr_html_table *);

/* <figure> with its caption first (title in bold, then the note); the caller writes the picture and then closes. */
void nr_html_figure_open(struct nr_str *, const char *class_, const char *title, const char *note);
void nr_html_figure_close(struct nr_str *);
/* <img> with the PNG inside it. */
void nr_html_png(struct nr_str *, const void *bytes, size_t size, int64_t width, int64_t height, const char *alt);
void nr_base64(struct nr_str *, const void *bytes, size_t size);

#endif
