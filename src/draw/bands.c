/* Quantiles as bars: see scatter.h. */
#include <math.h>
#include <stdio.h>

#include "draw/scale.h"
#include "draw/scatter.h"

enum { WIDTH = 760, HEIGHT = 240, TOP = 26, BOTTOM = 36, RIGHT = 110, Q = 5 };

static bool whole(const double *q)
{
	for (int i = 0; i < Q; i++)
		if (!nr_ruler_takes(false, q[i])) return false;
	return true;
}

static bool range_of(const struct nr_bands *b, double *low, double *high)
{
	*low = INFINITY;
	*high = -INFINITY;
	for (int k = 0; k < b->count; k++)
		for (int64_t i = 0; b->of[k].q && i < b->n; i++) {
			const double *q = b->of[k].q + i * Q;
			if (!whole(q)) continue;
			*low = fmin(*low, q[0]);
			*high = fmax(*high, q[Q - 1]);
		}
	return *low <= *high;
}

static void add_axes(struct nr_str *s, const struct nr_bands *b, const struct nr_ruler *y, double left, double right)
{
	double tick[NR_MAX_TICKS], step;
	char text[64];
	const int n = nr_ruler_ticks(y, 5, tick, &step);
	for (int i = 0; i < n; i++) {
		const double at = nr_ruler_at(y, tick[i]);
		nr_svg_path(s, "grid", NR_NO_COLOUR);
		nr_str_printf(s, "M%.1f,%.1fH%.1f\"/>", left, at, right);
		nr_svg_text(s, "tick", "end", left - 7, at + 4, nr_tick_text(tick[i], step, text, sizeof text));
	}
	const int64_t every = b->n > 20 ? 10 : b->n > 8 ? 5 : 1;
	for (int64_t i = 0; i < b->n; i += every) {
		snprintf(text, sizeof text, "%lld", (long long)i);
		nr_svg_text(s, "tick", "middle", left + ((double)i + .5) * (right - left) / (double)b->n, HEIGHT - BOTTOM + 16, text);
	}
	nr_svg_text(s, "unit", "start", 2, 13, b->y_label);
	nr_svg_text(s, "unit", "end", right, HEIGHT - 4, b->x_label);
}

static void add_rect(struct nr_str *s, double x, double w, double from, double to)
{
	nr_str_printf(s, "M%.1f,%.1fh%.1fV%.1fh%.1fz", x, from, w, to, -w);
}

/* Two paths for a group: all pale bars, all full ones. */
static void add_bars(struct nr_str *s, const struct nr_bands *b, int k, const struct nr_ruler *y, double left, double slot)
{
	const double w = slot * .8 / b->count, x0 = left + slot * .1 + w * k;
	for (int pale = 1; pale >= 0; pale--) {
		nr_str_add(s, "<path");
		nr_paint(s, "m", k);
		nr_str_printf(s, " stroke-opacity=\"0\"%s d=\"", pale ? " fill-opacity=\".35\"" : "");
		for (int64_t i = 0; i < b->n; i++) {
			const double *q = b->of[k].q + i * Q, x = x0 + (double)i * slot;
			double at[Q];
			if (!whole(q)) continue;
			for (int j = 0; j < Q; j++) at[j] = nr_ruler_at(y, q[j]);
			if (pale) add_rect(s, x, w - .6, at[0], at[4]);
			if (!pale) add_rect(s, x, w - .6, at[1], fmin(at[1], at[2] + .7));
			if (!pale) add_rect(s, x, w - .6, fmax(at[3], at[2] - .7), at[3]);
		}
		nr_str_add(s, "\"/>");
	}
	nr_svg_text_in(s, "end", k, "start", WIDTH - RIGHT + 8, TOP + 14 + 17 * k, b->of[k].label);
}

struct nr_size nr_svg_bands(struct nr_str *s, const struct nr_bands *b)
{
	const struct nr_size size = { WIDTH, HEIGHT };
	const double left = 62, right = WIDTH - RIGHT;
	double low, high;
	nr_svg_open(s, b->name, size);
	nr_str_add(s, ">");
	if (range_of(b, &low, &high)) {
		struct nr_ruler y = { .from = HEIGHT - BOTTOM, .to = TOP };
		nr_ruler_fit(&y, low, high, false);
		add_axes(s, b, &y, left, right);
		for (int k = 0; k < b->count; k++)
			if (b->of[k].q) add_bars(s, b, k, &y, left, (right - left) / (double)b->n);
	} else {
		nr_svg_nothing(s, size);
	}
	nr_str_add(s, "</svg>\n");
	return size;
}
