/* Dots in rows: see dotplot.h. */
#include "draw/dotplot.h"

#include <math.h>

#include "draw/scale.h"

enum { WIDTH = 480, TOP = 10, BOTTOM = 40, ROW = 28, RIGHT = 16 };
static const double LETTER = 7.2;                       /* pixels of a letter, with room for the larger type on a phone */

static void hold(double *low, double *high, double v)
{
	if (!nr_ruler_takes(false, v)) return;
	*low = fmin(*low, v);
	*high = fmax(*high, v);
}

static bool range_of(const struct nr_dotplot *d, double *low, double *high)
{
	*low = INFINITY, *high = -INFINITY;
	for (int r = 0; r < d->count; r++) {
		for (int64_t i = 0; i < d->row[r].n; i++) hold(low, high, d->row[r].value[i]);
		hold(low, high, d->row[r].lo);
		hold(low, high, d->row[r].hi);
	}
	return *low <= *high;
}

static double label_width(const struct nr_dotplot *d)
{
	size_t most = 0;
	for (int r = 0; r < d->count; r++) {
		const size_t n = nr_utf8_width(d->row[r].label);
		most = n > most ? n : most;
	}
	return fmin(12 + LETTER * (double)most, WIDTH / 2.0);
}

static void add_axis(struct nr_str *s, const struct nr_ruler *x, double bottom, const char *label)
{
	double tick[NR_MAX_TICKS], step;
	char text[64];
	const int n = nr_ruler_ticks(x, 5, tick, &step);
	for (int i = 0; i < n; i++) {
		const double at = nr_ruler_at(x, tick[i]);
		nr_svg_path(s, "grid", NR_NO_COLOUR);
		nr_str_printf(s, "M%.1f,%dV%.1f\"/>", at, TOP, bottom);
		nr_svg_text(s, "tick", "middle", at, bottom + 16, nr_tick_text(tick[i], step, text, sizeof text));
	}
	nr_svg_text(s, "unit", "end", x->to, bottom + 33, label);
}

/* Dots of equal values lie below each other, so that none is hidden. */
static void add_row(struct nr_str *s, const struct nr_dot_row *r, const struct nr_ruler *x, double y)
{
	nr_str_printf(s, "<g data-arm=\"%d\">", r->arm);
	nr_svg_text_in(s, "end", r->arm, "end", x->from - 12, y + 4, r->label);
	if (nr_ruler_takes(false, r->lo) && nr_ruler_takes(false, r->hi)) {
		const double low = nr_ruler_at(x, r->lo), high = nr_ruler_at(x, r->hi);
		nr_svg_path(s, "l bar", r->arm);
		nr_str_printf(s, "M%.1f,%.1fH%.1fM%.1f,%.1fv8M%.1f,%.1fv8\"/>", low, y, high, low, y - 4, high, y - 4);
	}
	if (nr_ruler_takes(false, r->mean)) {
		nr_svg_path(s, "l bold", r->arm);
		nr_str_printf(s, "M%.1f,%.1fv18\"/>", nr_ruler_at(x, r->mean), y - 9);
	}
	for (int64_t i = 0; i < r->n; i++) {
		int64_t before = 0;
		for (int64_t k = 0; k < i; k++) before += r->value[k] == r->value[i];
		if (!nr_ruler_takes(false, r->value[i])) continue;
		nr_svg_marker(s, r->arm, nr_ruler_at(x, r->value[i]), y + 3 * (double)((before + 1) / 2 % 3) * (before % 2 ? 1 : -1));
	}
	nr_str_add(s, "</g>");
}

struct nr_size nr_svg_dotplot(struct nr_str *s, const struct nr_dotplot *d)
{
	const double bottom = TOP + ROW * (double)d->count;
	const struct nr_size size = { WIDTH, bottom + BOTTOM };
	double low, high;
	nr_svg_open(s, d->name, size);
	nr_str_add(s, ">");
	if (range_of(d, &low, &high)) {
		struct nr_ruler x = { .from = label_width(d) + 12, .to = WIDTH - RIGHT };
		nr_ruler_fit(&x, low, high, false);
		const double pad = .04 * (x.hi - x.lo);
		x.lo -= pad, x.hi += pad;
		add_axis(s, &x, bottom, d->x_label);
		for (int r = 0; r < d->count; r++) add_row(s, &d->row[r], &x, TOP + ROW * (r + .5));
	} else {
		nr_svg_nothing(s, size);
	}
	nr_str_add(s, "</svg>\n");
	return size;
}
