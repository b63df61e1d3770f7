/* Charts of lines and dots: see svg.h. */
#include "draw/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/html.h"
#include "draw/scale.h"

enum { WIDTH = 480, HEIGHT = 290, TOP = 30, BOTTOM = 40, MARGIN = 14, MAX_LABELS = 14, BUCKETS = 240, MARKERS = 5 };
static const double LETTER = 7.2;                       /* pixels of a letter, with room for the larger type on a phone */
static const double LABEL_APART = 15;                   /* pixels between labels, at least */

static const char *const dashes[NR_COLOURS] = { "", "7 4", "2.5 3.5", "9 3.5 2 3.5", "", "7 4", "2.5 3.5", "9 3.5 2 3.5" };
/* Drawn about (0,0), six pixels wide. */
static const char *const markers[NR_COLOURS] = {
	"M3.4,0A3.4,3.4 0 1 1 -3.4,0A3.4,3.4 0 1 1 3.4,0Z", "M-3,-3H3V3H-3Z", "M0,-4L3.7,2.8H-3.7Z", "M0,-4.3L4.3,0L0,4.3L-4.3,0Z",
	"M0,4L3.7,-2.8H-3.7Z", "M-1.3,-4H1.3V-1.3H4V1.3H1.3V4H-1.3V1.3H-4V-1.3H-1.3Z", "M-4,-2L0,-4L4,-2V2L0,4L-4,2Z",
	"M-4.5,-1.8H4.5V1.8H-4.5Z" };

struct frame { struct nr_ruler x, y; double left, right, top, bottom; };

/* From the ninth on colours repeat, with another dash and marker. */
static int colour_of(int arm) { return arm % NR_COLOURS; }
static const char *dash_of(int arm) { return dashes[(arm + arm / NR_COLOURS) % NR_COLOURS]; }
static const char *marker_of(int arm) { return markers[(arm + 3 * (arm / NR_COLOURS)) % NR_COLOURS]; }

void nr_svg_marker(struct nr_str *s, int arm, double x, double y)
{
	nr_str_add(s, "<path");
	nr_paint(s, "m", colour_of(arm));
	nr_str_printf(s, " transform=\"translate(%.1f,%.1f)\" d=\"%s\"/>", x, y, marker_of(arm));
}

void nr_svg_sample(struct nr_str *s, int arm)
{
	nr_str_add(s, "<svg class=\"sample\" width=\"40\" height=\"12\" viewBox=\"0 0 40 12\" aria-hidden=\"true\"><path");
	nr_paint(s, "l bold", colour_of(arm));
	nr_str_add(s, " d=\"M1,6L39,6\"");
	if (*dash_of(arm)) nr_str_printf(s, " stroke-dasharray=\"%s\"", dash_of(arm));
	nr_str_add(s, "/>");
	nr_svg_marker(s, arm, 20, 6);
	nr_str_add(s, "</svg>");
}

void nr_svg_open(struct nr_str *s, const char *name, struct nr_size size)
{
	nr_str_printf(s, "<svg class=\"chart\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" overflow=\"visible\" "
		"font-size=\"12\" role=\"img\" aria-label=\"", size.w, size.h, size.w, size.h);
	nr_html_text(s, name);
	nr_str_add(s, "\"");
}

void nr_svg_text_in(struct nr_str *s, const char *class_, int colour, const char *anchor, double x, double y, const char *text)
{
	nr_str_add(s, "<text");
	nr_paint(s, class_, colour);
	if (strcmp(anchor, "start") != 0) nr_str_printf(s, " text-anchor=\"%s\"", anchor);
	nr_str_printf(s, " x=\"%.1f\" y=\"%.1f\">", x, y);
	nr_html_text(s, text);
	nr_str_add(s, "</text>");
}

void nr_svg_text(struct nr_str *s, const char *class_, const char *anchor, double x, double y, const char *text)
{
	nr_svg_text_in(s, class_, NR_NO_COLOUR, anchor, x, y, text);
}

void nr_svg_path(struct nr_str *s, const char *class_, int colour)
{
	nr_str_add(s, "<path");
	nr_paint(s, class_, colour);
	nr_str_add(s, " d=\"");
}

void nr_svg_nothing(struct nr_str *s, struct nr_size size)
{
	nr_svg_text(s, "unit", "middle", size.w / 2, size.h / 2, "no finite value recorded");
}

/* ---- ranges ------------------------------------------------------------------------------------------------------------ */

static bool drawn(const struct nr_chart *c, bool log, double x, double y)
{
	return nr_ruler_takes(false, x) && nr_ruler_takes(log, y) && !(log && y < c->floor);
}

struct range { double x0, x1, y0, y1; int64_t count; bool positive; };

static void hold_y(struct range *r, double y)
{
	if (y < r->y0) r->y0 = y;
	if (y > r->y1) r->y1 = y;
}

static struct range range_of(const struct nr_chart *c, bool log)
{
	struct range r = { .positive = true };
	for (int k = 0; k < c->count; k++) {
		const struct nr_series *v = &c->series[k];
		for (int64_t i = 0; i < v->n; i++) {
			if (!drawn(c, log, v->x[i], v->y[i])) continue;
			if (!r.count++) r.x0 = r.x1 = v->x[i], r.y0 = r.y1 = v->y[i];
			r.x0 = fmin(r.x0, v->x[i]);
			r.x1 = fmax(r.x1, v->x[i]);
			hold_y(&r, v->y[i]);
			if (v->lo && drawn(c, log, v->x[i], v->lo[i])) hold_y(&r, v->lo[i]);
			if (v->hi && drawn(c, log, v->x[i], v->hi[i])) hold_y(&r, v->hi[i]);
			r.positive &= v->y[i] > 0;
		}
	}
	return r;
}

static size_t letters(const char *text)
{
	size_t n = 0;
	for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
	return n;
}

static double right_margin(const struct nr_chart *c)
{
	size_t most = 0;
	int labels = 0;
	for (int k = 0; k < c->count; k++) {
		if (c->series[k].weight == NR_THIN || !c->series[k].label) continue;
		const size_t n = letters(c->series[k].label);
		most = n > most ? n : most;
		labels++;
	}
	return labels && labels <= MAX_LABELS ? 14 + LETTER * (double)(most < 18 ? most : 18) : MARGIN;
}

/* The wish is for round ends: the axis goes on to the next tick if that costs little. */
static void round_range(struct nr_ruler *y)
{
	double tick[NR_MAX_TICKS], step;
	if (y->log) {
		const double pad = pow(y->hi / y->lo, 0.03);
		y->lo /= pad, y->hi *= pad;
		return;
	}
	if (nr_ruler_ticks(y, 5, tick, &step) < 2) return;
	const double lo = floor(y->lo / step + 1e-6) * step, hi = ceil(y->hi / step - 1e-6) * step;
	const double span = y->hi - y->lo;
	y->lo = y->lo - lo < 0.34 * span ? lo : y->lo - 0.04 * span;
	y->hi = hi - y->hi < 0.34 * span ? hi : y->hi + 0.04 * span;
}

/* ---- axes -------------------------------------------------------------------------------------------------------------- */

static void add_y_axis(struct nr_str *s, const struct frame *f, const double *tick, int n, double step)
{
	char text[64];
	for (int i = 0; i < n; i++) {
		const double y = nr_ruler_at(&f->y, tick[i]);
		nr_svg_path(s, "grid", NR_NO_COLOUR);
		nr_str_printf(s, "M%.1f,%.1fH%.1f\"/>", f->left, y, f->right);
		nr_svg_text(s, "tick", "end", f->left - 7, y + 4, nr_tick_text(tick[i], step, text, sizeof text));
	}
}

static void add_x_axis(struct nr_str *s, const struct frame *f, bool whole)
{
	double tick[NR_MAX_TICKS], step;
	char text[64];
	const int n = nr_ruler_ticks(&f->x, 5, tick, &step);
	nr_svg_path(s, "axis", NR_NO_COLOUR);
	nr_str_printf(s, "M%.1f,%.1fH%.1f\"/>", f->left, f->bottom, f->right);
	for (int i = 0; i < n; i++) {
		if (whole && fabs(tick[i] - round(tick[i])) > 1e-9) continue;
		const double x = nr_ruler_at(&f->x, tick[i]);
		nr_svg_path(s, "axis", NR_NO_COLOUR);
		nr_str_printf(s, "M%.1f,%.1fv4\"/>", x, f->bottom);
		nr_svg_text(s, "tick", "middle", x, f->bottom + 17, nr_tick_text(tick[i], step, text, sizeof text));
	}
}

static void add_labels(struct nr_str *s, const struct nr_chart *c, const struct frame *f)
{
	nr_svg_text(s, "unit", "start", 2, 13, c->y_label);
	nr_svg_text(s, "unit", "end", f->right, f->bottom + 34, c->x_label);
}

/* Lines begin at 0 if that is near; dots keep clear of the edges. */
static void fit_x(struct nr_ruler *x, const struct nr_chart *c, const struct range *r)
{
	const bool log = c->x_log && r->x0 > 0, dots = c->count && c->series[0].weight == NR_DOTS;
	nr_ruler_fit(x, !log && !dots && r->x0 > 0 && r->x0 < 0.1 * r->x1 ? 0 : r->x0, r->x1, log);
	if (dots && log) x->lo /= pow(r->x1 / r->x0, 0.06), x->hi *= pow(r->x1 / r->x0, 0.06);
	else if (dots) x->lo -= 0.06 * (r->x1 - r->x0), x->hi += 0.06 * (r->x1 - r->x0);
}

/* Ranges first, then margins by what the ticks say. */
static void lay_out(struct nr_str *s, const struct nr_chart *c, const struct range *r, bool log, struct frame *f)
{
	double tick[NR_MAX_TICKS], step;
	char text[64];
	size_t widest = 0;
	fit_x(&f->x, c, r);
	nr_ruler_fit(&f->y, r->y0, r->y1, log);
	if (r->y1 > r->y0) round_range(&f->y);
	const int n = nr_ruler_ticks(&f->y, 5, tick, &step);
	for (int i = 0; i < n; i++) {
		const size_t w = letters(nr_tick_text(tick[i], step, text, sizeof text));
		widest = w > widest ? w : widest;
	}
	f->left = 12 + LETTER * (double)widest;
	f->right = WIDTH - right_margin(c);
	f->top = TOP;
	f->bottom = HEIGHT - BOTTOM;
	f->x.from = f->left, f->x.to = f->right;
	f->y.from = f->bottom, f->y.to = f->top;
	nr_str_add(s, ">");
	add_y_axis(s, f, tick, n, step);
	add_x_axis(s, f, c->x_whole);
	add_labels(s, c, f);
}

/* ---- lines ------------------------------------------------------------------------------------------------------------- */

/* A point alone is a line to itself, which round caps make a dot. */
static void add_line(struct nr_str *s, const struct nr_chart *c, const struct frame *f, const struct nr_series *v,
	const int64_t *keep, int64_t n)
{
	nr_str_add(s, "<path");
	nr_paint(s, v->weight == NR_BOLD ? "l bold" : "l thin", colour_of(v->arm));
	if (v->weight == NR_BOLD && *dash_of(v->arm)) nr_str_printf(s, " stroke-dasharray=\"%s\"", dash_of(v->arm));
	nr_str_add(s, " d=\"");
	int64_t run = 0;
	double x = 0, y = 0;
	for (int64_t k = 0; k <= n; k++) {
		const bool good = k < n && drawn(c, f->y.log, v->x[keep[k]], v->y[keep[k]]);
		if (!good && run == 1) nr_str_printf(s, "L%.1f,%.1f", x, y);
		run = good ? run + 1 : 0;
		if (!good) continue;
		x = nr_ruler_at(&f->x, v->x[keep[k]]), y = nr_ruler_at(&f->y, v->y[keep[k]]);
		nr_str_printf(s, "%c%.1f,%.1f", run == 1 ? 'M' : 'L', x, y);
	}
	nr_str_add(s, "\"/>");
}

/* Between lo and hi, behind a line: there and back. */
static void add_band(struct nr_str *s, const struct nr_chart *c, const struct frame *f, const struct nr_series *v, const int64_t *keep,
	int64_t n)
{
	const size_t before = s->len;
	nr_svg_path(s, "band", colour_of(v->arm));
	const size_t start = s->len;
	for (int64_t k = 0; k < 2 * n; k++) {
		const int64_t i = k < n ? keep[k] : keep[2 * n - 1 - k];
		const double y = k < n ? v->hi[i] : v->lo[i];
		if (!drawn(c, f->y.log, v->x[i], v->lo[i]) || !drawn(c, f->y.log, v->x[i], v->hi[i])) continue;
		nr_str_printf(s, "%c%.1f,%.1f", s->len == start ? 'M' : 'L', nr_ruler_at(&f->x, v->x[i]), nr_ruler_at(&f->y, y));
	}
	if (s->len == start && !s->failed) s->len = before;
	else nr_str_add(s, "Z\"/>");
}

/* A bar from lo to hi, if they are there, and the marker; the pointer shows the numbers. */
static void add_dots(struct nr_str *s, const struct nr_chart *c, const struct frame *f, const struct nr_series *v)
{
	for (int64_t i = 0; i < v->n; i++) {
		if (!drawn(c, f->y.log, v->x[i], v->y[i])) continue;
		const double x = nr_ruler_at(&f->x, v->x[i]), y = nr_ruler_at(&f->y, v->y[i]);
		if (v->lo && v->hi && drawn(c, f->y.log, v->x[i], v->lo[i]) && drawn(c, f->y.log, v->x[i], v->hi[i])) {
			const double low = nr_ruler_at(&f->y, v->lo[i]), high = nr_ruler_at(&f->y, v->hi[i]);
			nr_svg_path(s, "l bar", colour_of(v->arm));
			nr_str_printf(s, "M%.1f,%.1fV%.1fM%.1f,%.1fh8M%.1f,%.1fh8\"/>", x, low, high, x - 4, low, x - 4, high);
		}
		nr_svg_marker(s, v->arm, x, y);
	}
}

/* A few along the line, at other places for each arm, so that lines that lie on each other show both. */
static void add_markers(struct nr_str *s, const struct nr_chart *c, const struct frame *f, const struct nr_series *v)
{
	const int64_t count = v->n < 2 * MARKERS ? v->n : MARKERS;
	for (int64_t k = 0; k < count; k++) {
		const double shift = 0.5 + 0.13 * (v->arm % 4) - 0.2;
		const int64_t i = count == v->n ? k : (int64_t)(((double)k + shift) * (double)(v->n - 1) / (double)count);
		if (drawn(c, f->y.log, v->x[i], v->y[i]))
			nr_svg_marker(s, v->arm, nr_ruler_at(&f->x, v->x[i]), nr_ruler_at(&f->y, v->y[i]));
	}
}

static void add_series(struct nr_str *s, const struct nr_chart *c, const struct frame *f, const struct nr_series *v)
{
	int64_t *keep = malloc((3 * BUCKETS + 2) * sizeof *keep);
	if (!keep) {
		s->failed = true;
		return;
	}
	const int64_t n = nr_thin(v->y, v->n, BUCKETS, f->y.log, keep);
	nr_str_printf(s, "<g data-arm=\"%d\">", v->arm);
	if (v->weight == NR_DOTS) {
		add_dots(s, c, f, v);
	} else {
		if (v->lo && v->hi) add_band(s, c, f, v, keep, n);
		add_line(s, c, f, v, keep, n);
		if (v->weight == NR_BOLD) add_markers(s, c, f, v);
	}
	nr_str_add(s, "</g>");
	free(keep);
}

/* ---- labels at the ends ------------------------------------------------------------------------------------------------ */

struct end { const struct nr_series *of; double x, y; };

static int by_height(const void *a, const void *b)
{
	const struct end *v = a, *w = b;
	return (v->y > w->y) - (v->y < w->y);
}

/* From the top each gets at least its distance to the one above; if that leaves the drawing, all are pushed up again. */
static void spread(struct end *e, int n, double bottom)
{
	qsort(e, (size_t)n, sizeof *e, by_height);
	for (int i = 1; i < n; i++) e[i].y = fmax(e[i].y, e[i - 1].y + LABEL_APART);
	if (n && e[n - 1].y > bottom) e[n - 1].y = bottom;
	for (int i = n - 2; i >= 0; i--) e[i].y = fmin(e[i].y, e[i + 1].y - LABEL_APART);
}

static void add_ends(struct nr_str *s, const struct nr_chart *c, const struct frame *f)
{
	struct end e[MAX_LABELS];
	int n = 0;
	if (right_margin(c) <= MARGIN) return;
	for (int k = 0; k < c->count; k++) {
		const struct nr_series *v = &c->series[k];
		int64_t last = v->n - 1;
		while (last >= 0 && !drawn(c, f->y.log, v->x[last], v->y[last])) last--;
		if (v->weight != NR_THIN && v->label && last >= 0 && n < MAX_LABELS)
			e[n++] = (struct end){ v, nr_ruler_at(&f->x, v->x[last]), nr_ruler_at(&f->y, v->y[last]) };
	}
	spread(e, n, f->bottom);
	for (int i = 0; i < n; i++) {
		nr_str_printf(s, "<g data-arm=\"%d\">", e[i].of->arm);
		nr_svg_text_in(s, "end", colour_of(e[i].of->arm), "start", f->right + 8, e[i].y + 4, e[i].of->label);
		nr_str_add(s, "</g>");
	}
}

/* ---- the chart --------------------------------------------------------------------------------------------------------- */

bool nr_chart_is_log(const struct nr_chart *c)
{
	const struct range r = range_of(c, false);
	return c->scale == NR_LOG || (c->scale == NR_LOG_IF_WIDE && r.count && r.positive && r.y1 > 10 * r.y0);
}

struct nr_size nr_svg_chart(struct nr_str *s, const struct nr_chart *c)
{
	const struct nr_size size = { WIDTH, HEIGHT };
	const bool log = nr_chart_is_log(c);
	const struct range r = range_of(c, log);
	struct frame f = { 0 };
	nr_svg_open(s, c->name, size);
	if (!r.count) {
		nr_str_add(s, ">");
		nr_svg_nothing(s, size);
		nr_str_add(s, "</svg>\n");
		return size;
	}
	lay_out(s, c, &r, log, &f);
	for (int k = 0; k < c->count; k++)
		if (c->series[k].weight == NR_THIN) add_series(s, c, &f, &c->series[k]);
	for (int k = 0; k < c->count; k++)
		if (c->series[k].weight != NR_THIN) add_series(s, c, &f, &c->series[k]);
	add_ends(s, c, &f);
	nr_str_add(s, "</svg>\n");
	return size;
}
