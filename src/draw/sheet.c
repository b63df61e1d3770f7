/* Files of drawings: see sheet.h. */
#include "draw/sheet.h"

#include <math.h>
#include <string.h>

#include "base/save.h"
#include "draw/html.h"

enum { MARGIN = 20, GAP = 24, HEAD = 52, TITLE = 22, LINE = 19, LEAST = 520 };
static const double LETTER = 6.6;               /* pixels of a letter of the caption */

/* The colours of a report's page (report/page.c): Okabe and Ito's, moved until they stand out from the paper. */
static const char style[] =
	"svg{color-scheme:light dark;--paper:#fff;--ink:#1c1e21;--soft:#5b6168;--faint:#e3e5e8;--c0:#0068ad;--c1:#c74e00;--c2:#00805c;\n"
	" --c3:#a63d86;--c4:#8a6a00;--c5:#2f7fb8;--c6:#5f6368;--c7:#8c2d2d;\n"
	" font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto Sans\",\"Liberation Sans\",\"DejaVu Sans\",sans-serif}\n"
	"@media (prefers-color-scheme:dark){svg{--paper:#15171a;--ink:#e6e8ea;--soft:#9aa1a9;--faint:#2c3036;--c0:#5ab4f0;--c1:#ff9152;\n"
	" --c2:#3ccf9f;--c3:#e48fcb;--c4:#e3c23a;--c5:#9ad3f5;--c6:#b3b8be;--c7:#f08a8a}}\n"
	".paper{fill:var(--paper)}\n"
	"svg.chart{font-size:12px;overflow:visible;font-variant-numeric:tabular-nums}\n"
	"text{fill:var(--soft)}\n"
	"text.title{fill:var(--ink);font-size:18px;font-weight:650}\n"
	"text.panel{fill:var(--ink);font-size:13px;font-weight:650}\n"
	"text.caption{font-size:13px}\n"
	".grid{stroke:var(--faint);fill:none}\n"
	".axis{stroke:var(--soft);fill:none}\n"
	".s0{--c:var(--c0)}.s1{--c:var(--c1)}.s2{--c:var(--c2)}.s3{--c:var(--c3)}\n"
	".s4{--c:var(--c4)}.s5{--c:var(--c5)}.s6{--c:var(--c6)}.s7{--c:var(--c7)}\n"
	".l{fill:none;stroke:var(--c);stroke-linejoin:round;stroke-linecap:round}\n"
	".bold{stroke-width:2}\n"
	".thin{stroke-width:1;opacity:.32}\n"
	".m{fill:var(--c);stroke:var(--paper);stroke-width:1}\n"
	".bond{fill:none;stroke:var(--ink);stroke-linecap:round;stroke-linejoin:round}\n"
	".wedge{fill:var(--ink)}\n"
	"text.atom{fill:var(--c,var(--ink))}\n"
	"text.end{fill:var(--c);font-weight:600}\n";

void nr_sheet_put(struct nr_sheet *s, const char *title, struct nr_size size)
{
	const double x = MARGIN + s->x, y = HEAD + s->y, head = title ? TITLE : 0;
	if (title) {
		nr_str_printf(&s->body, "<text class=\"panel\" x=\"%.0f\" y=\"%.0f\">", x, y + 10);
		nr_html_text(&s->body, title);
		nr_str_add(&s->body, "</text>");
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
			nr_str_printf(s, "<text class=\"caption\" x=\"%d\" y=\"%.0f\">", MARGIN, y + LINE * lines);
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
	const double wide = fmax(fmax(s->wide, LEAST), 10.5 * (double)nr_utf8_width(title));
	const size_t letters = (size_t)(fmin(wide, 1100) / LETTER);
	const double w = wide + 2 * MARGIN, h = HEAD + s->tall + 30 + LINE * lines_of(NULL, caption, letters, 0);
	nr_str_add(to, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
	nr_str_printf(to, " width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n<title>", w, h, w, h);
	nr_html_text(to, title);
	nr_str_add(to, "</title>\n<desc>");
	nr_html_text(to, caption);
	nr_str_printf(to, "</desc>\n<style>%s</style>\n<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n", style, w, h);
	nr_str_printf(to, "<text class=\"title\" x=\"%d\" y=\"30\">", MARGIN);
	nr_html_text(to, title);
	nr_str_add(to, "</text>\n");
	nr_str_add(to, nr_str_text(&s->body));
	lines_of(to, caption, letters, HEAD + s->tall + 24);
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
