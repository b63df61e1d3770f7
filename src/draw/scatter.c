/* Scatter plots: see scatter.h. */
#include "draw/scatter.h"

#include <math.h>
#include <stdio.h>

#include "draw/heatmap.h"
#include "draw/scale.h"

enum { LEGEND = 130, MOST_NAMES = 18, LINE = 17 };

/* From a point, relative: a group is one path however many points it has. */
static const char *const shapes[NR_COLOURS] = { "m-1.8,-1.8h3.6v3.6h-3.6z", "m0,-2.6l2.4,4.4h-4.8z", "m0,-2.7l2.7,2.7l-2.7,2.7l-2.7,-2.7z",
	"m-2.2,0a2.2,2.2 0 1 0 4.4,0a2.2,2.2 0 1 0 -4.4,0z", "m0,2.6l2.4,-4.4h-4.8z", "m-.8,-2.7h1.6v5.4h-1.6z", "m-2.7,-.8h5.4v1.6h-5.4z",
	"m-2.6,-2.6h1.7l3.5,5.2h-1.7z" };
static const char *shape_of(int32_t group) { return shapes[(group + 3 * (group / NR_COLOURS)) % NR_COLOURS]; }

struct place { double x, y, scale, side, top; };        /* the middle of the points; of the square */

static bool placed(const struct nr_scatter *c, int64_t i)
{
	return nr_ruler_takes(false, c->at[2 * i]) && nr_ruler_takes(false, c->at[2 * i + 1]);
}

static bool place_of(const struct nr_scatter *c, struct place *p)
{
	double low[2] = { INFINITY, INFINITY }, high[2] = { -INFINITY, -INFINITY };
	for (int64_t i = 0; i < c->n; i++)
		for (int k = 0; placed(c, i) && k < 2; k++) {
			low[k] = fmin(low[k], c->at[2 * i + k]);
			high[k] = fmax(high[k], c->at[2 * i + k]);
		}
	if (low[0] > high[0]) return false;
	struct nr_ruler wide[2];
	for (int k = 0; k < 2; k++) nr_ruler_fit(&wide[k], low[k], high[k], false);
	const bool one = wide[0].lo < low[0] && wide[1].lo < low[1];            /* all in one place: as wide as an axis would be */
	const double span = one ? fmax(wide[0].hi - wide[0].lo, wide[1].hi - wide[1].lo) : fmax(high[0] - low[0], high[1] - low[1]);
	*p = (struct place){ (low[0] + high[0]) / 2, (low[1] + high[1]) / 2, (p->side - 14) / fmax(span, 1e-30), p->side, p->top };
	if (c->reach > 0) *p = (struct place){ 0, 0, p->side / (2 * c->reach), p->side, p->top };
	return true;
}

static void add_group(struct nr_str *s, const struct nr_scatter *c, const struct place *p, int32_t g)
{
	const size_t before = s->len;
	nr_str_add(s, "<path");
	nr_paint(s, "m", g < 0 ? 6 : g);
	nr_str_add(s, " stroke-opacity=\"0\" fill-opacity=\".75\" d=\"");
	const size_t start = s->len;
	for (int64_t i = 0; i < c->n; i++) {
		const int32_t of = c->group ? c->group[i] : 0;
		if (!placed(c, i) || (of < 0 ? -1 : of) != g) continue;
		nr_str_printf(s, "M%.1f,%.1f%s", p->side / 2 + (c->at[2 * i] - p->x) * p->scale,
			p->top + p->side / 2 - (c->at[2 * i + 1] - p->y) * p->scale, shape_of(g < 0 ? 0 : g));
	}
	if (s->len == start && !s->failed) s->text[s->len = before] = 0;        /* an empty group leaves nothing */
	else nr_str_add(s, "\"/>");
}

static void add_legend(struct nr_str *s, const struct nr_scatter *c, const struct place *p)
{
	const int32_t shown = c->groups < MOST_NAMES ? c->groups : MOST_NAMES;
	char text[32];
	for (int32_t g = 0; g < shown; g++) {
		const double y = p->top + 12 + LINE * (double)g;
		snprintf(text, sizeof text, "%d", g);
		nr_str_add(s, "<path");
		nr_paint(s, "m", g);
		nr_str_printf(s, " stroke-opacity=\"0\" d=\"M%.1f,%.1f%s\"/>", p->side + 14, y, shape_of(g));
		nr_svg_text(s, "tick", "start", p->side + 24, y + 4, c->group_name && c->group_name[g] ? c->group_name[g] : text);
	}
	if (shown == c->groups) return;
	snprintf(text, sizeof text, "and %d more", c->groups - shown);
	nr_svg_text(s, "tick", "start", p->side + 8, p->top + 16 + LINE * (double)shown, text);
}

/* Numbers below the square and inside of its left edge; those that the label of the axis needs the room of are left out. */
static void add_ticks(struct nr_str *s, const struct nr_scatter *c, const struct place *p)
{
	const double half = p->side / (2 * p->scale);
	const struct nr_ruler x = { p->x - half, p->x + half, false, 0, p->side }, y = { p->y - half, p->y + half, false,
		p->top + p->side, p->top };
	const struct nr_ruler *axis[2] = { &x, &y };
	const double room = c->x_label ? 8.0 * (double)nr_utf8_width(c->x_label) + 12 : 0;
	for (int k = 0; k < 2; k++) {
		double tick[NR_MAX_TICKS], step;
		if (!(axis[k]->hi > axis[k]->lo)) continue;     /* a span too small for numbers of this size to differ */
		const int n = nr_ruler_ticks(axis[k], 5, tick, &step);
		for (int i = 0; i < n; i++) {
			const double at = nr_ruler_at(axis[k], tick[i]);
			char text[48];
			nr_tick_text(tick[i], step, text, sizeof text);
			if (k ? at < p->top + 12 || at > p->top + p->side - 8 : at < 10 || at > p->side - room) continue;
			nr_svg_path(s, "axis", NR_NO_COLOUR);
			if (k) nr_str_printf(s, "M.5,%.1fh4\"/>", at);
			else nr_str_printf(s, "M%.1f,%.1fv-4\"/>", at, p->top + p->side - .5);
			nr_svg_text(s, "tick", k ? "start" : "middle", k ? 8 : at, k ? at + 4 : p->top + p->side + 15, text);
		}
	}
}

/* From edge to edge of the square. */
static void add_diagonal(struct nr_str *s, const struct nr_scatter *c, const struct place *p)
{
	const double half = p->side / (2 * p->scale), low = fmax(p->x, p->y) - half, high = fmin(p->x, p->y) + half;
	add_ticks(s, c, p);
	if (low >= high) return;
	nr_svg_path(s, "axis", NR_NO_COLOUR);
	nr_str_printf(s, "M%.1f,%.1fL%.1f,%.1f\"/>", p->side / 2 + (low - p->x) * p->scale,
		p->top + p->side / 2 - (low - p->y) * p->scale, p->side / 2 + (high - p->x) * p->scale,
		p->top + p->side / 2 - (high - p->y) * p->scale);
}

/* ---- by value ---- */

struct range { double low, high; };

static struct range range_of(const struct nr_scatter *c)
{
	struct range r = { INFINITY, -INFINITY };
	for (int64_t i = 0; i < c->n; i++)
		if (placed(c, i) && isfinite(c->value[i])) r.low = fmin(r.low, c->value[i]), r.high = fmax(r.high, c->value[i]);
	return r;
}

/* STEPS colours, one path for each. */
enum { STEPS = 24 };

static int step_of(const struct range *r, double v)
{
	if (!isfinite(v)) return -1;
	const double share = r->high > r->low ? (v - r->low) / (r->high - r->low) : .5;
	return share >= 1 ? STEPS - 1 : (int)(share * STEPS);
}

static void add_values(struct nr_str *s, const struct nr_scatter *c, const struct place *p, const struct range *r)
{
	for (int step = -1; step < STEPS; step++) {
		const size_t before = s->len;
		nr_str_add(s, "<path");
		if (step < 0) nr_paint(s, "m", 6), nr_str_add(s, " stroke-opacity=\"0\" d=\"");
		else nr_str_printf(s, " fill=\"#%06x\" fill-opacity=\".85\" d=\"", nr_heat((step + .5) / STEPS));
		const size_t start = s->len;
		for (int64_t i = 0; i < c->n; i++)
			if (placed(c, i) && step_of(r, c->value[i]) == step)
				nr_str_printf(s, "M%.1f,%.1f%s", p->side / 2 + (c->at[2 * i] - p->x) * p->scale,
					p->top + p->side / 2 - (c->at[2 * i + 1] - p->y) * p->scale, shapes[3]);
		if (s->len == start && !s->failed) s->text[s->len = before] = 0;
		else nr_str_add(s, "\"/>");
	}
}

static void add_bar(struct nr_str *s, const struct nr_scatter *c, const struct place *p, const struct range *r)
{
	const double x = p->side + 14, top = p->top + 22, tall = fmin(160, p->side - 40);
	char text[48];
	for (int i = 0; i < STEPS; i++)
		nr_str_printf(s, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"%.2f\" fill=\"#%06x\"/>", x,
			top + tall * (STEPS - 1 - i) / STEPS, tall / STEPS + .3, nr_heat((i + .5) / STEPS));
	if (c->value_name) nr_svg_text(s, "tick", "start", x, top - 8, c->value_name);
	nr_svg_text(s, "tick", "start", x + 18, top + 9, nr_short_text(r->high, text, sizeof text));
	nr_svg_text(s, "tick", "start", x + 18, top + tall, nr_short_text(r->low, text, sizeof text));
}

struct nr_size nr_svg_scatter(struct nr_str *s, const struct nr_scatter *c)
{
	const struct range range = c->value ? range_of(c) : (struct range){ 0 };
	const bool legend = c->legend && (c->value ? range.low <= range.high : c->groups > 1);
	const double side = c->side > 0 ? c->side : 340, top = c->y_label ? 22 : 4;
	const struct nr_size size = { side + (legend ? LEGEND : 10), top + side + (c->x_label ? 20 : 4) };
	struct place p = { .side = side, .top = top };
	nr_svg_open(s, c->name, size);
	nr_str_add(s, ">");
	nr_svg_path(s, "grid", NR_NO_COLOUR);
	nr_str_printf(s, "M.5,%.1fh%.1fv%.1fh-%.1fz\"/>", top + .5, side - 1, side - 1, side - 1);
	if (place_of(c, &p)) {
		if (c->diagonal) add_diagonal(s, c, &p);
		if (c->circle > 0) {
			nr_str_add(s, "<circle");
			nr_paint(s, "grid", NR_NO_COLOUR);
			nr_str_printf(s, " cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>", side / 2 - p.x * p.scale,
				top + side / 2 + p.y * p.scale, c->circle * p.scale);
		}
		for (int32_t g = -1; !c->value && g < (c->group ? c->groups : 1); g++) add_group(s, c, &p, g);
		if (c->value) add_values(s, c, &p, &range);
		if (legend && c->value) add_bar(s, c, &p, &range);
		else if (legend) add_legend(s, c, &p);
	} else {
		nr_svg_nothing(s, (struct nr_size){ side, top + side });
	}
	if (c->y_label) nr_svg_text(s, "unit", "start", 2, 14, c->y_label);
	if (c->x_label) nr_svg_text(s, "unit", "end", side, top + side + 15, c->x_label);
	nr_str_add(s, "</svg>\n");
	return size;
}
