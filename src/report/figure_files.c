/* Figures as files: see figure_files.h. Pages are well-formed, and each figure is written by nr_html_figure_open. */
#include "report/figure_files.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/save.h"
#include "draw/convert.h"
#include "draw/html.h"
#include "draw/sheet.h"

struct span { const char *at; size_t n; };              /* a piece of the page; at NULL: not there */

struct files {
	const char *dir, *format;
	struct nr_str names, captions;          /* names that are taken, each between two / */
	int count;
	struct nr_error *err;
};

static const char *find(struct span in, const char *what)
{
	return in.at ? memmem(in.at, in.n, what, strlen(what)) : NULL;
}

/* What stands between the first `from` and the `to` after it. */
static struct span between(struct span in, const char *from, const char *to)
{
	const char *a = find(in, from);
	if (!a) return (struct span){ 0 };
	const struct span rest = { a + strlen(from), in.n - (size_t)(a - in.at) - strlen(from) };
	const char *b = find(rest, to);
	return b ? (struct span){ rest.at, (size_t)(b - rest.at) } : (struct span){ 0 };
}

static double number_of(struct span tag, const char *from)
{
	const struct span v = between(tag, from, "\"");
	return v.at ? strtod(v.at, NULL) : 0;
}

/* The text without tags, still escaped. */
static void add_text(struct nr_str *s, struct span of)
{
	bool tag = false;
	for (size_t i = 0; i < of.n; i++) {
		if (of.at[i] == '<') tag = true;
		else if (of.at[i] == '>') tag = false;
		else if (!tag) nr_str_add_n(s, of.at + i, 1);
	}
}

static void add_unescaped(struct nr_str *s, struct span of)
{
	static const struct { const char *escaped, *is; } known[] = { { "&amp;", "&" }, { "&lt;", "<" }, { "&gt;", ">" },
		{ "&quot;", "\"" }, { "&#39;", "'" } };
	for (size_t i = 0; i < of.n;) {
		size_t k = 0;
		while (k < 5 && (strlen(known[k].escaped) > of.n - i || memcmp(of.at + i, known[k].escaped, strlen(known[k].escaped)))) k++;
		if (k < 5) nr_str_add(s, known[k].is), i += strlen(known[k].escaped);
		else nr_str_add_n(s, of.at + i++, 1);
	}
}

/* ---- names -------------------------------------------------------------------------------------------------------------- */

/* "curves", "Top-1 of [CLS]": curves-top-1-of-cls; with a number from the second of that name on. */
static void name_of(struct files *f, struct span section, const char *title, struct nr_str *name)
{
	enum { MOST = 80 };
	bool gap = true;
	nr_str_add_n(name, section.at, section.n);
	for (const char *p = title; *p && name->len < MOST; p++) {
		if (!isalnum((unsigned char)*p) || (unsigned char)*p > 126) {
			gap = true;
			continue;
		}
		const char c = (char)tolower((unsigned char)*p);
		if (gap && name->len) nr_str_add(name, "-");
		nr_str_add_n(name, &c, 1);
		gap = false;
	}
	const size_t stem = name->len;
	for (int i = 2;; i++) {
		struct nr_str taken = { 0 };
		nr_str_printf(&taken, "/%s/", nr_str_text(name));
		const bool is = strstr(nr_str_text(&f->names), nr_str_text(&taken)) != NULL;
		if (!is) nr_str_add(&f->names, nr_str_text(&taken));
		nr_str_release(&taken);
		if (!is || name->failed) break;
		name->len = stem;
		nr_str_printf(name, "-%d", i);
	}
}

/* ---- drawings ----------------------------------------------------------------------------------------------------------- */

/* The arms, if the drawing has only their letters: a line, a letter and a name for each. */
static struct nr_size key_of(struct nr_str *s, struct span legend)
{
	enum { LINE = 20 };
	struct nr_size size = { 480, 4 };
	nr_str_add(s, "<g font-size=\"12\">");
	for (struct span entry, rest = legend; (entry = between(rest, "<li data-arm=\"", "</li>")).at; size.h += LINE) {
		const struct span sample = between(entry, "<svg", "</svg>");
		const char *end = sample.at + sample.n + strlen("</svg>");
		nr_str_printf(s, "<g transform=\"translate(0,%.0f)\"><svg", size.h);
		nr_str_add_n(s, sample.at, sample.n);
		nr_str_add(s, "</svg><text");
		nr_paint(s, "unit", NR_NO_COLOUR);
		nr_str_add(s, " x=\"46\" y=\"10\">");
		add_text(s, (struct span){ end, entry.n - (size_t)(end - entry.at) });
		nr_str_add(s, "</text></g>");
		rest = (struct span){ entry.at + entry.n, rest.n - (size_t)(entry.at + entry.n - rest.at) };
	}
	nr_str_add(s, "</g>");
	return size;
}

/* Where the arms' names did not fit beside the charts, the legend begins with letters. */
static bool has_letters(struct span legend)
{
	const struct span after = between(legend, "</svg>", "<span");
	return after.at && after.n > 1;
}

static bool put_drawing(struct nr_sheet *sheet, struct span figure, struct span legend)
{
	struct span svg = between(figure, "<svg class=\"chart\"", "</svg>"), img = between(figure, "<img ", "/>");
	if (svg.at) {
		nr_str_add(&sheet->panel, "<svg class=\"chart\"");
		nr_str_add_n(&sheet->panel, svg.at, svg.n);
		nr_str_add(&sheet->panel, "</svg>");
		nr_sheet_put(sheet, NULL, (struct nr_size){ number_of(svg, " width=\""), number_of(svg, " height=\"") });
		if (find(svg, "data-arm=") && has_letters(legend)) {
			nr_sheet_row(sheet);
			nr_sheet_put(sheet, NULL, key_of(&sheet->panel, legend));
		}
	} else if (img.at) {
		const struct nr_size size = { number_of(img, "width=\""), number_of(img, "height=\"") };
		const struct span src = between(img, "src=\"", "\"");
		nr_str_printf(&sheet->panel, "<image width=\"%.0f\" height=\"%.0f\" href=\"", size.w, size.h);
		nr_str_add_n(&sheet->panel, src.at, src.n);
		nr_str_add(&sheet->panel, "\"/>");
		nr_sheet_put(sheet, NULL, size);
	}
	return svg.at || img.at;
}

static int save(struct files *f, const char *name, const struct nr_str *svg)
{
	struct nr_str path = { 0 };
	nr_str_printf(&path, "%s/%s.%s", f->dir, name, f->format);
	int code;
	if (path.failed || svg->failed) code = nr_fail(f->err, NR_EMEMORY, "cannot write", name, "out of memory");
	else if (!strcmp(f->format, "svg")) code = nr_save_file(path.text, svg->text, svg->len, f->err);
	else code = nr_svg_convert(svg->text, svg->len, f->format, path.text, f->err);
	nr_str_release(&path);
	return code;
}

static int write_figure(struct files *f, struct span figure, struct span section, struct span legend)
{
	struct nr_sheet sheet = { .bare = true };
	struct nr_str title = { 0 }, caption = { 0 }, name = { 0 }, svg = { 0 };
	const struct span head = between(figure, "<figcaption>", "</figcaption>");
	int code = NR_OK;
	add_unescaped(&title, between(head, "<b>", "</b>"));
	add_unescaped(&caption, between(head, "<span>", "</span>"));
	if (put_drawing(&sheet, figure, legend)) {
		name_of(f, section, nr_str_text(&title), &name);
		nr_sheet_add(&sheet, nr_str_text(&title), nr_str_text(&caption), &svg);
		code = save(f, nr_str_text(&name), &svg);
		nr_str_printf(&f->captions, "%s.%s\n%s. %s\n\n", nr_str_text(&name), f->format, nr_str_text(&title), nr_str_text(&caption));
		f->count++;
	}
	nr_sheet_release(&sheet);
	nr_str_release(&title);
	nr_str_release(&caption);
	nr_str_release(&name);
	nr_str_release(&svg);
	return code;
}

/* ---- the page ----------------------------------------------------------------------------------------------------------- */

static int write_all(struct files *f, const char *page)
{
	int code = NR_OK;
	for (const char *at = page; !code && (at = strstr(at, "<section id=\""));) {
		const char *end = strstr(at, "</section>");
		struct span all = { at, end ? (size_t)(end - at) : strlen(at) };
		const struct span id = between(all, "<section id=\"", "\""), legend = between(all, "<ul class=\"legend\"", "</ul>");
		for (const char *p; !code && (p = find(all, "<figure")) != NULL;) {
			const struct span rest = { p, all.n - (size_t)(p - all.at) }, figure = between(rest, "<figure", "</figure>");
			if (!figure.at) break;
			code = write_figure(f, figure, id, legend);
			all = (struct span){ figure.at + figure.n, rest.n - (size_t)(figure.at + figure.n - p) };
		}
		at = end ? end : at + all.n;
	}
	return code;
}

int nr_figure_files(const char *page, const char *dir, const char *format, int *count, struct nr_error *err)
{
	struct files f = { .dir = dir, .format = format, .err = err };
	struct nr_str path = { 0 };
	int code = nr_folder_make(dir, err);
	if (!code) code = write_all(&f, page);
	nr_str_printf(&path, "%s/captions.txt", dir);
	if (!code && (path.failed || f.captions.failed || f.names.failed))
		code = nr_fail(err, NR_EMEMORY, "cannot write", dir, "out of memory");
	if (!code) code = nr_save_file(path.text, nr_str_text(&f.captions), f.captions.len, err);
	*count = f.count;
	nr_str_release(&path);
	nr_str_release(&f.names);
	nr_str_release(&f.captions);
	return code;
}
