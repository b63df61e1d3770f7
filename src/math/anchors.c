/* See anchors.h. */
#include "math/anchors.h"

#include <stddef.h>

void nr_anchor_shapes(struct nr_anchor_level *l, int ratios, const double *ratio, int sizes, const double *size, int rounded)
{
	for (int r = 0; r < ratios; r++)
		for (int s = 0; s < sizes; s++) {
			const double root = sqrt(ratio[r]), x = size[s] * (1 / root) / 2, y = size[s] * root / 2;
			const float near = sqrtf((float)ratio[r]), side = (float)size[s];
			l->half[r * sizes + s][0] = rounded ? nearbyintf(1 / near * side / 2) : x;
			l->half[r * sizes + s][1] = rounded ? nearbyintf(near * side / 2) : y;
		}
}

int64_t nr_anchor_count_at(const struct nr_anchor_grid *g, int level) { return g->level[level].h * g->level[level].w * g->shapes; }

int64_t nr_anchor_count(const struct nr_anchor_grid *g)
{
	int64_t n = 0;
	for (int l = 0; l < g->levels; l++) n += nr_anchor_count_at(g, l);
	return n;
}

static void box_at(const struct nr_anchor_level *l, int shapes, int64_t i, double box[4])
{
	const int64_t place = i / shapes;
	const double x = (double)(place % l->w) * l->dx, y = (double)(place / l->w) * l->dy, *half = l->half[i % shapes];
	box[0] = x - half[0];
	box[1] = y - half[1];
	box[2] = x + half[0];
	box[3] = y + half[1];
}

void nr_anchor_box(const struct nr_anchor_grid *g, int64_t i, double box[4])
{
	int l = 0;
	for (int64_t n; l < g->levels - 1 && i >= (n = nr_anchor_count_at(g, l)); l++) i -= n;
	box_at(&g->level[l], g->shapes, i, box);
}

void nr_anchor_boxes(const struct nr_anchor_grid *g, double *box)
{
	for (int l = 0; l < g->levels; l++)
		for (int64_t i = 0; i < nr_anchor_count_at(g, l); i++, box += 4) box_at(&g->level[l], g->shapes, i, box);
}

/* ---- matches --------------------------------------------------------------------------------------------------------------- */

double nr_iou(const double a[4], const double b[4])
{
	const double x = fmin(a[2], b[2]) - fmax(a[0], b[0]), y = fmin(a[3], b[3]) - fmax(a[1], b[1]);
	if (!(x > 0 && y > 0)) return 0;
	const double both = x * y;
	return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both);
}

void nr_match(const struct nr_match_rule *o, int64_t n, const double *prior, int64_t m, const double *box, double *top, int32_t *match)
{
	for (int64_t g = 0; g < m; g++) top[g] = 0;
	for (int64_t i = 0; i < n; i++) {
		double best = -1;
		int32_t own = NR_MATCH_BACKGROUND;
		for (int64_t g = 0; g < m; g++) {
			const double iou = nr_iou(prior + 4 * i, box + 4 * g);
			if (iou > best) best = iou, own = (int32_t)g;
			if (iou > top[g]) top[g] = iou;
		}
		match[i] = m && best >= o->high ? own : best < o->low || !m ? NR_MATCH_BACKGROUND : NR_MATCH_BETWEEN;
	}
	if (o->low_quality == NR_MATCH_NO_LOW) return;
	for (int64_t i = 0; i < n; i++) {
		double best = -1;
		int32_t own = -1, that = -1;
		for (int64_t g = 0; g < m; g++) {
			const double iou = nr_iou(prior + 4 * i, box + 4 * g);
			if (iou > best) best = iou, own = (int32_t)g;
			if (iou >= top[g] && top[g] >= o->low_iou) that = (int32_t)g;
		}
		if (that >= 0) match[i] = o->low_quality == NR_MATCH_OWN ? own : that;
	}
}

/* ---- costs ----------------------------------------------------------------------------------------------------------------- */

static double offset_cost(const struct nr_box_cost *o, const double p[4], const real t[4], const real x[4], double *d)
{
	const double w = p[2] - p[0], h = p[3] - p[1];
	const double want[4] = { ((t[0] + (double)t[2]) / 2 - (p[0] + p[2]) / 2) / w, ((t[1] + (double)t[3]) / 2 - (p[1] + p[3]) / 2) / h,
		log(((double)t[2] - t[0]) / w), log(((double)t[3] - t[1]) / h) };
	double sum = 0;
	for (int j = 0; j < 4; j++) {
		const double e = (double)x[j] - want[j] / o->std[j], size = fabs(e);
		sum += size < o->beta ? e * e / (2 * o->beta) : size - o->beta / 2;
		if (d) d[j] = size < o->beta ? e / o->beta : (e > 0) - (e < 0);
	}
	return sum;
}

/* 1 - GIoU of a with t, and its gradient by a. As torchvision, 1e-7 is added to divisors. */
static double giou_cost(const double a[4], const real t[4], double da[4])
{
	const double eps = 1e-7, w = a[2] - a[0], h = a[3] - a[1];
	double side[2], hull[2], dside[4], dhull[4];
	for (int j = 0; j < 2; j++) {
		side[j] = fmin(a[j + 2], t[j + 2]) - fmax(a[j], t[j]);
		hull[j] = fmax(a[j + 2], t[j + 2]) - fmin(a[j], t[j]);
		dside[j] = a[j] > t[j] ? -1 : 0;
		dside[j + 2] = a[j + 2] < t[j + 2] ? 1 : 0;
		dhull[j] = a[j] < t[j] ? -1 : 0;
		dhull[j + 2] = a[j + 2] > t[j + 2] ? 1 : 0;
	}
	const int meet = side[0] > 0 && side[1] > 0;
	const double both = meet ? side[0] * side[1] : 0;
	const double all = w * h + ((double)t[2] - t[0]) * ((double)t[3] - t[1]) - both, around = hull[0] * hull[1];
	for (int j = 0; da && j < 4; j++) {
		const double darea = (j < 2 ? -1 : 1) * (j % 2 ? w : h);
		const double dboth = meet ? dside[j] * side[1 - j % 2] : 0, dall = darea - dboth, daround = dhull[j] * hull[1 - j % 2];
		da[j] = -dboth / (all + eps) + both * dall / ((all + eps) * (all + eps)) + (daround - dall) / (around + eps) -
			(around - all) * daround / ((around + eps) * (around + eps));
	}
	return 1 - both / (all + eps) + (around - all) / (around + eps);
}

static double box_cost(const struct nr_box_cost *o, const double p[4], const real t[4], const real x[4], double *d)
{
	double a[4], da[4], size[2];
	int held[2];
	for (int j = 0; j < 2; j++) {
		const double s = p[j + 2] - p[j], log_size = (double)x[j + 2] * o->std[j + 2];
		held[j] = log_size > o->limit || (o->both_sides && log_size < -o->limit);
		size[j] = s * exp(fmax(fmin(log_size, o->limit), o->both_sides ? -o->limit : -HUGE_VAL));
		const double centre = (p[j] + p[j + 2]) / 2 + (double)x[j] * o->std[j] * s;
		a[j] = centre - size[j] / 2;
		a[j + 2] = centre + size[j] / 2;
	}
	const double loss = giou_cost(a, t, d ? da : NULL);
	for (int j = 0; d && j < 2; j++) {
		d[j] = (da[j] + da[j + 2]) * o->std[j] * (p[j + 2] - p[j]);
		d[j + 2] = held[j] ? 0 : (da[j + 2] - da[j]) / 2 * size[j] * o->std[j + 2];
	}
	return loss;
}

double nr_box_cost(const struct nr_box_cost *o, const double prior[4], const real truth[4], const real x[4], double *d)
{
	return (o->kind == NR_BOX_GIOU ? box_cost : offset_cost)(o, prior, truth, x, d);
}
