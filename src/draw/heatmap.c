/* Heat maps: see heatmap.h. */
#include "draw/heatmap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/html.h"
#include "draw/png.h"

enum { WIDTH = 480, TOP = 24, BOTTOM = 40, BAR = 76, BAR_STEPS = 32, MOST_CELL = 56, MOST_TALL = 30, TILE = 84, GAP = 12 };
static const double LETTER = 7.2;                       /* pixels of a letter, with room for the larger type on a phone */

/* Five stops of viridis, which falls and rises in lightness alone for the colour-blind. */
uint32_t nr_heat(double share)
{
	static const uint8_t stop[5][3] = { { 68, 1, 84 }, { 59, 82, 139 }, { 33, 145, 140 }, { 94, 201, 98 }, { 253, 231, 37 } };
	const double s = isnan(share) ? 0 : fmin(fmax(share, 0), 1) * 4;
	const int i = s >= 4 ? 3 : (int)s;
	uint32_t rgb = 0;
	for (int k = 0; k < 3; k++) rgb = rgb << 8 | (uint32_t)(stop[i][k] + (s - i) * (stop[i + 1][k] - stop[i][k]) + .5);
	return rgb;
}

struct range { double low, high; };

static void hold(struct range *r, int64_t n, const double *v)
{
	for (int64_t i = 0; v && i < n; i++) {
		if (!isfinite(v[i])) continue;
		r->low = fmin(r->low, v[i]);
		r->high = fmax(r->high, v[i]);
	}
}

static double share_of(const struct range *r, double v) { return r->high > r->low ? (v - r->low) / (r->high - r->low) : .5; }

/* At most five letters for what cells usually hold. */
static const char *short_number(double v, char *buf, size_t size)
{
	if (snprintf(buf, size, "%.3g", v) > 5 && fabs(v) < 10) snprintf(buf, size, "%.*f", v < 0 ? 2 : 3, v);
	return buf;
}

static const char *number(double v, char *buf, size_t size) { return snprintf(buf, size, "%.3g", v), buf; }

/* The colours from low to high with both written beside them. */
static void add_bar(struct nr_str *s, double x, double y, double tall, const struct range *r)
{
	char text[32];
	const double step = tall / BAR_STEPS;
	for (int i = 0; i < BAR_STEPS; i++)
		nr_str_printf(s, "<path fill=\"#%06x\" d=\"M%.1f,%.1fh12v%.1fh-12z\"/>", nr_heat((i + .5) / BAR_STEPS), x,
			y + tall - (i + 1) * step, step + .3);
	nr_svg_text(s, "tick", "start", x + 17, y + 9, number(r->high, text, sizeof text));
	nr_svg_text(s, "tick", "start", x + 17, y + tall, number(r->low, text, sizeof text));
}

/* ---- one matrix --------------------------------------------------------------------------------------------------------- */

static const char *label_of(const char *const *label, int64_t i, char *buf, size_t size)
{
	if (label) return label[i];
	return snprintf(buf, size, "%lld", (long long)i), buf;
}

static double widest(const char *const *label, int64_t n)
{
	size_t most = 0;
	char buf[24];
	for (int64_t i = 0; i < n; i++) {
		const size_t w = nr_utf8_width(label_of(label, i, buf, sizeof buf));
		most = w > most ? w : most;
	}
	return LETTER * (double)most;
}

struct grid { double left, cell_w, cell_h; struct range range; bool slanted; };        /* slanted: names of columns that would not fit */

/* Whether every number fits into its cell. */
static bool fits(const struct nr_heatmap *m, const struct grid *g)
{
	size_t most = 0;
	char text[32];
	for (int64_t i = 0; i < m->rows * m->cols; i++) {
		const size_t n = isfinite(m->value[i]) ? strlen(short_number(m->value[i], text, sizeof text)) : 0;
		most = n > most ? n : most;
	}
	return g->cell_w >= LETTER * (double)most && g->cell_h >= 15;
}

static void add_cells(struct nr_str *s, const struct nr_heatmap *m, const struct grid *g)
{
	const bool told = fits(m, g);
	const double gap = told ? .5 : -.2;             /* many small cells leave none: it would show at some and not at others */
	char text[32];
	for (int64_t i = 0; i < m->rows * m->cols; i++) {
		if (!isfinite(m->value[i])) continue;
		const double x = g->left + (double)(i % m->cols) * g->cell_w, y = TOP + (double)(i / m->cols) * g->cell_h;
		const double share = share_of(&g->range, m->value[i]);
		nr_str_printf(s, "<path fill=\"#%06x\" d=\"M%.1f,%.1fh%.1fv%.1fh%.1fz\"/>", nr_heat(share), x, y, g->cell_w - gap,
			g->cell_h - gap, gap - g->cell_w);
		if (told)
			nr_str_printf(s, "<text font-size=\"11\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">"
				"<tspan fill=\"%s\">%s</tspan></text>", x + g->cell_w / 2, y + g->cell_h / 2 + 4,
				share < .55 ? "#fff" : "#000", short_number(m->value[i], text, sizeof text));
	}
}

/* How far slanted labels reach down. */
static double fall_of(const struct nr_heatmap *m, const struct grid *g)
{
	return g->slanted ? .65 * widest(m->col_label, m->cols) : 0;
}

static void add_slanted(struct nr_str *s, const char *label, double x, double y)
{
	nr_str_printf(s, "<g transform=\"translate(%.1f,%.1f) rotate(-40)\">", x, y);
	nr_svg_text(s, "tick", "end", 0, 0, label);
	nr_str_add(s, "</g>");
}

/* As many labels as there is room for, at even distances. */
static void add_labels(struct nr_str *s, const struct nr_heatmap *m, const struct grid *g)
{
	char buf[24];
	const double bottom = TOP + (double)m->rows * g->cell_h;
	const int64_t every = (int64_t)ceil((widest(m->col_label, m->cols) + 4) / g->cell_w), each = (int64_t)ceil(13 / g->cell_h);
	for (int64_t c = 0; c < m->cols; c += g->slanted ? 1 : every) {
		const char *label = label_of(m->col_label, c, buf, sizeof buf);
		const double x = g->left + ((double)c + .5) * g->cell_w;
		if (g->slanted) add_slanted(s, label, x + 4, bottom + 13);
		else nr_svg_text(s, "tick", "middle", x, bottom + 15, label);
	}
	for (int64_t r = 0; r < m->rows; r += each)
		nr_svg_text(s, "tick", "end", g->left - 6, TOP + ((double)r + .5) * g->cell_h + 4,
			label_of(m->row_label, r, buf, sizeof buf));
	if (m->y_label) nr_svg_text(s, "unit", "start", 2, 13, m->y_label);
	if (m->x_label) nr_svg_text(s, "unit", "end", g->left + (double)m->cols * g->cell_w, bottom + 32 + fall_of(m, g), m->x_label);
}

struct nr_size nr_svg_heatmap(struct nr_str *s, const struct nr_heatmap *m)
{
	struct grid g = { .range = { INFINITY, -INFINITY } };
	hold(&g.range, m->rows * m->cols, m->value);
	const bool empty = g.range.low > g.range.high;
	if (m->low != 0 || m->high != 0) g.range = (struct range){ m->low, m->high };
	g.left = 12 + widest(m->row_label, m->rows);
	g.cell_w = fmin(MOST_CELL, (WIDTH - g.left - BAR) / (double)(m->cols ? m->cols : 1));
	g.cell_h = fmin(fmax(g.cell_w, 14), fmin(MOST_TALL, 560 / (double)(m->rows ? m->rows : 1)));
	const double tall = fmax((double)m->rows * g.cell_h, 40);
	g.slanted = m->col_label && g.cell_w >= 11 && widest(m->col_label, m->cols) + 4 > g.cell_w;
	const struct nr_size size = { WIDTH, TOP + tall + BOTTOM + fall_of(m, &g) };
	nr_svg_open(s, m->name, size);
	nr_str_add(s, ">");
	if (empty) {
		nr_svg_nothing(s, size);
	} else {
		add_cells(s, m, &g);
		add_labels(s, m, &g);
		add_bar(s, g.left + (double)m->cols * g.cell_w + 12, TOP, fmin(tall, 160), &g.range);
	}
	nr_str_add(s, "</svg>\n");
	return size;
}

/* ---- many small maps ---------------------------------------------------------------------------------------------------- */

static void add_map(struct nr_str *s, const struct nr_tile *t, const struct range *r, double x, double y, double w, double h)
{
	uint8_t *rgb = malloc((size_t)(t->h * t->w * 3) + 1);
	if (!rgb) {
		s->failed = true;
		return;
	}
	for (int64_t i = 0; i < t->h * t->w; i++) {
		const uint32_t c = isfinite(t->value[i]) ? nr_heat(share_of(r, t->value[i])) : 0x808080;
		for (int k = 0; k < 3; k++) rgb[3 * i + k] = (uint8_t)(c >> (16 - 8 * k));
	}
	nr_svg_image(s, &(struct nr_raster){ t->w, t->h, rgb }, x, y, w, h);
	free(rgb);
}

static void add_tile(struct nr_str *s, const struct nr_tile *t, const struct range *shared, double x, double y)
{
	const double most = (double)(t->h > t->w ? t->h : t->w), w = TILE * (double)t->w / most, h = TILE * (double)t->h / most;
	struct range own = { INFINITY, -INFINITY };
	char low[32], high[32], text[80];
	if (t->rgb) nr_svg_image(s, &(struct nr_raster){ t->w, t->h, t->rgb }, x, y, w, h);
	if (t->rgb || !t->value) return;
	hold(&own, t->h * t->w, t->value);
	add_map(s, t, shared ? shared : &own, x, y, w, h);
	if (shared || own.low > own.high) return;
	snprintf(text, sizeof text, "%s … %s", short_number(own.low, low, sizeof low), short_number(own.high, high, sizeof high));
	nr_svg_text(s, "tick", "start", x, y + TILE + 13, text);
}

struct nr_size nr_svg_tiles(struct nr_str *s, const struct nr_tiles *t)
{
	struct range all = { INFINITY, -INFINITY };
	for (int64_t i = 0; i < t->rows * t->cols; i++)
		if (!t->tile[i].rgb) hold(&all, t->tile[i].h * t->tile[i].w, t->tile[i].value);
	const bool bar = t->one_range && all.low <= all.high;
	const double left = t->row_label ? 12 + widest(t->row_label, t->rows) : 2, row = TILE + (t->one_range ? GAP : GAP + 14);
	double col = TILE + GAP;
	if (!t->one_range) col = fmax(col, 16 * LETTER);        /* the range below a tile */
	if (t->col_label) col = fmax(col, widest(t->col_label, t->cols) + 8);
	const double wide = left + (double)t->cols * col + (bar ? BAR : 0);
	const struct nr_size size = { fmax(wide, WIDTH), TOP + (double)t->rows * row + 4 };
	nr_svg_open(s, t->name, size);
	nr_str_add(s, ">");
	for (int64_t i = 0; i < t->rows * t->cols; i++)
		if (t->tile[i].h > 0 && t->tile[i].w > 0)
			add_tile(s, &t->tile[i], t->one_range ? &all : NULL, left + (double)(i % t->cols) * col,
				TOP + (double)(i / t->cols) * row);
	for (int64_t i = 0; t->col_label && i < t->cols; i++)
		nr_svg_text(s, "tick", "start", left + (double)i * col, TOP - 7, t->col_label[i]);
	for (int64_t i = 0; t->row_label && i < t->rows; i++)
		nr_svg_text(s, "tick", "end", left - 8, TOP + (double)i * row + TILE / 2.0, t->row_label[i]);
	if (bar) add_bar(s, left + (double)t->cols * col, TOP, TILE, &all);
	nr_str_add(s, "</svg>\n");
	return size;
}
