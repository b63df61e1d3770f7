/* Colours and strokes: see paint.h. web/report.css has the same for pages. */
#include "draw/paint.h"

#include <string.h>

/* Okabe and Ito's, moved until they stand out from the paper. */
static const char *const palette[NR_COLOURS] = { "#0068ad", "#c74e00", "#00805c", "#a63d86", "#8a6a00", "#2f7fb8", "#5f6368", "#8c2d2d" };
#define PAPER "#fff"
#define INK   "#1c1e21"
#define SOFT  "#5b6168"
#define FAINT "#e3e5e8"

enum { FILL = 1, STROKE = 2 };          /* what the colour of the palette is for */

static const struct look { const char *word, *attributes; int coloured; } looks[] = {
	{ "paper", " fill=\"" PAPER "\"", 0 },
	{ "grid", " fill=\"none\" stroke=\"" FAINT "\"", 0 },
	{ "axis", " fill=\"none\" stroke=\"" SOFT "\"", 0 },
	{ "l", " fill=\"none\" stroke-linejoin=\"round\" stroke-linecap=\"round\"", STROKE },
	{ "bold", " stroke-width=\"2\"", 0 },
	{ "thin", " stroke-width=\"1\" opacity=\".32\"", 0 },
	{ "bar", " stroke-width=\"1.4\"", 0 },
	{ "m", " stroke=\"" PAPER "\"", FILL },
	{ "band", " opacity=\".16\"", FILL },
	{ "tick", " fill=\"" SOFT "\"", 0 },
	{ "unit", " fill=\"" SOFT "\"", 0 },
	{ "end", " font-weight=\"600\"", FILL },
	{ "title", " fill=\"" INK "\" font-size=\"18\" font-weight=\"600\"", 0 },
	{ "panel", " fill=\"" INK "\" font-size=\"13\" font-weight=\"600\"", 0 },
	{ "caption", " fill=\"" SOFT "\" font-size=\"13\"", 0 },
	{ "bond", " fill=\"none\" stroke=\"" INK "\" stroke-linecap=\"round\" stroke-linejoin=\"round\"", 0 },
	{ "wedge", " fill=\"" INK "\"", 0 },
	{ "atom", "", FILL },
};

static const struct look *look_of(const char *word, size_t n)
{
	for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
		if (strlen(looks[i].word) == n && !memcmp(looks[i].word, word, n)) return &looks[i];
	return NULL;
}

void nr_paint(struct nr_str *s, const char *class_, int colour)
{
	const char *own = colour < 0 ? INK : palette[colour % NR_COLOURS];
	nr_str_printf(s, " class=\"%s", class_);
	if (colour >= 0) nr_str_printf(s, " s%d", colour % NR_COLOURS);
	nr_str_add(s, "\"");
	for (const char *p = class_; *p; p += strspn(p, " ")) {
		const size_t n = strcspn(p, " ");
		const struct look *look = look_of(p, n);
		if (look) nr_str_add(s, look->attributes);
		if (look && look->coloured) nr_str_printf(s, " %s=\"%s\"", look->coloured == FILL ? "fill" : "stroke", own);
		p += n;
	}
}

void nr_paint_letters(struct nr_str *s)
{
	nr_str_add(s, " font-family=\"system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', 'DejaVu Sans', sans-serif\"");
}

const char nr_paint_dark[] =
	"@media (prefers-color-scheme:dark){\n"
	"svg{color-scheme:dark;--paper:#15171a;--ink:#e6e8ea;--soft:#9aa1a9;--faint:#2c3036;--c:var(--ink)}\n"
	".s0{--c:#5ab4f0}.s1{--c:#ff9152}.s2{--c:#3ccf9f}.s3{--c:#e48fcb}.s4{--c:#e3c23a}.s5{--c:#9ad3f5}.s6{--c:#b3b8be}.s7{--c:#f08a8a}\n"
	".paper{fill:var(--paper)}\n"
	".tick,.unit,.caption{fill:var(--soft)}\n"
	".title,.panel,.wedge{fill:var(--ink)}\n"
	".bond{stroke:var(--ink)}\n"
	".grid{stroke:var(--faint)}\n"
	".axis{stroke:var(--soft)}\n"
	".l{stroke:var(--c)}\n"
	".m,.band,.end,.atom{fill:var(--c)}\n"
	".m{stroke:var(--paper)}\n"
	"}\n";
