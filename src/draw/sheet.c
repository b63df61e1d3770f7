/* Files of drawings: see sheet.h. */
#include "draw/sheet.h"

#include <math.h>
#include <string.h>

#include "base/save.h"
#include "draw/html.h"

enum { MARGIN = 20, EDGE = 8, GAP = 24, HEAD = 52, TITLE = 22, LINE = 19, LEAST = 520 };
static const double LETTER = 6.6;               /* pixels of a letter of the caption */

/* Where the first panel begins. */
static double left_of(const struct nr_sheet *s) { return s->bare ? EDGE : MARGIN; }
static double top_of(const struct nr_sheet *s) { return s->bare ? EDGE : HEAD; }

void nr_sheet_put(struct nr_sheet *s, const char *title, struct nr_size size)
{
	const double x = left_of(s) + s->x, y = top_of(s) + s->y, head = title ? TITLE : 0;
	if (title) {
		nr_svg_text(&s->body, "panel", "start", x, y + 10, title);
	}
	nr_str_printf(&s->body, "<g transform=\"translate(%.0f,%.0f)\">", x, y + head);
	nr_str_add(&s->body, nr_str_text(&s->panel));
	nr_str_add(&s->body, "</g>\n");
	s->body.failed = s->body.failed || s->panel.failed;
	nr_str_release(&s->panel);
	s->panel = (struct nr_str){ 0 };
	s->wide = fmax(s->wide, s->x + size.w);
	s->tall = fmax(s->tall, s->y + size.h + head);
	s->x += size.w + GAP;
}

void nr_sheet_row(struct nr_sheet *s)
{
	s->x = 0;
	s->y = s->tall + (s->tall > 0 ? GAP : 0);
}

/* Words in lines of at most `wide` letters; returns the number of lines. Nothing is written if s is NULL. */
static int lines_of(struct nr_str *s, const char *text, size_t wide, double y)
{
	int lines = 0;
	for (const char *p = text + strspn(text, " "); *p; lines++) {
		size_t n = strlen(p);
		if (n > wide) {
			for (n = wide; n && p[n] != ' '; n--) {}
			if (!n) n = strcspn(p, " ");
		}
		if (s) {
			nr_str_add(s, "<text");
			nr_paint(s, "caption", NR_NO_COLOUR);
			nr_str_printf(s, " x=\"%d\" y=\"%.0f\">", MARGIN, y + LINE * lines);
			nr_html_printf(s, "%.*s", (int)n, p);
			nr_str_add(s, "</text>\n");
		}
		p += n;
		p += strspn(p, " ");
	}
	return lines;
}

void nr_sheet_add(struct nr_sheet *s, const char *title, const char *caption, struct nr_str *to)
{
	const double wide = s->bare ? s->wide : fmax(fmax(s->wide, LEAST), 10.5 * (double)nr_utf8_width(title));
	const size_t letters = (size_t)(fmin(wide, 1100) / LETTER);
	const double below = s->bare ? EDGE : 30 + LINE * lines_of(NULL, caption, letters, 0);
	const double w = wide + 2 * left_of(s), h = top_of(s) + s->tall + below;
	nr_str_add(to, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
	nr_paint_letters(to);
	nr_str_printf(to, " width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n<title>", w, h, w, h);
	nr_html_text(to, title);
	nr_str_add(to, "</title>\n<desc>");
	nr_html_text(to, caption);
	nr_str_printf(to, "</desc>\n<style>%s</style>\n<rect", nr_paint_dark);
	nr_paint(to, "paper", NR_NO_COLOUR);
	nr_str_printf(to, " width=\"%.0f\" height=\"%.0f\"/>\n", w, h);
	if (!s->bare) nr_svg_text(to, "title", "start", MARGIN, 30, title);
	nr_str_add(to, "\n");
	nr_str_add(to, nr_str_text(&s->body));
	if (!s->bare) lines_of(to, caption, letters, HEAD + s->tall + 24);
	nr_str_add(to, "</svg>\n");
	to->failed = to->failed || s->body.failed;
}

int nr_sheet_save(struct nr_sheet *s, const char *dir, const char *name, const char *title, const char *caption, struct nr_error *err)
{
	struct nr_str path = { 0 }, text = { 0 };
	nr_str_printf(&path, "%s/%s", dir, name);
	nr_sheet_add(s, title, caption, &text);
	const int code = path.failed || text.failed ? nr_fail(err, NR_EMEMORY, "cannot draw", name, "out of memory")
						    : nr_save_file(nr_str_text(&path), text.text, text.len, err);
	nr_str_release(&path);
	nr_str_release(&text);
	nr_sheet_release(s);
	return code;
}

void nr_sheet_release(struct nr_sheet *s)
{
	nr_str_release(&s->panel);
	nr_str_release(&s->body);
	*s = (struct nr_sheet){ 0 };
}
