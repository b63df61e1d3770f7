/* Statistics of attention. See attention_stats.h. A unit is one head of one sample; units are added in order. */
#include "analysis/attention_stats.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/attention_distance.h"
#include "math/row.h"

/* Logits of query i to all keys; returns the largest. */
static double logits_of(const struct nr_attention_shape *s, const real *qkv, const real *bias, int64_t i, double *out)
{
	const int64_t width = s->H * s->d;
	const double scale = 1 / sqrt((double)s->d);
	double top = -INFINITY;
	for (int64_t j = 0; j < s->T; j++) {
		out[j] = scale * (double)nr_dot(s->d, qkv + i * 3 * width, qkv + j * 3 * width + width);
		if (bias) out[j] += (double)bias[i * s->T + j];
		top = fmax(top, out[j]);
	}
	return top;
}

/* One head of one sample: qkv at its queries, bias its own (T,T); row: room for T. */
static struct nr_head_sums unit(const struct nr_attention_shape *s, const real *qkv, const real *bias, const real *grid, double *row)
{
	const int64_t S = s->special, N = s->T - S;
	struct nr_head_sums u = { .samples = 1 };
	for (int64_t i = 0; i < s->T; i++) {
		double sum = 0, dot = 0, apart = 0, near = 0;
		const double top = logits_of(s, qkv, bias, i, row);
		for (int64_t j = 0; j < s->T; j++) {
			u.logit_square += row[j] * row[j];
			u.logit_max = fmax(u.logit_max, fabs(row[j]));
			const double e = exp(row[j] - top);
			sum += e;
			dot += e * (row[j] - top);
			if (j < S) continue;
			near += e;
			if (grid && i >= S) apart += e * (double)grid[(i - S) * N + j - S];
		}
		const double entropy = log(sum) - dot / sum;
		if (i < S) {
			if (!i && s->cls) u.cls_entropy = entropy;
			continue;
		}
		u.entropy += entropy / (double)N;
		u.on_special += (1 - near / sum) / (double)N;
		u.distance += near > 0 ? apart / near / (double)N : 0;
	}
	u.logit_square /= (double)(s->T * s->T);
	return u;
}

static void add(struct nr_head_sums *to, const struct nr_head_sums *u)
{
	to->distance += u->distance;
	to->entropy += u->entropy;
	to->cls_entropy += u->cls_entropy;
	to->on_special += u->on_special;
	to->logit_square += u->logit_square;
	to->logit_max = fmax(to->logit_max, u->logit_max);
	to->samples += u->samples;
}

int nr_attention_stats(const struct nr_attention_shape *s, int64_t B, const real *qkv, const real *bias, struct nr_head_sums *sum,
	struct nr_error *err)
{
	const int64_t N = s->T - s->special, grid_size = s->h * s->w == N ? N * N : 0;
	struct nr_head_sums *part = malloc((size_t)(B * s->H) * sizeof *part);
	double *row = malloc((size_t)(B * s->H * s->T) * sizeof *row);
	real *grid = grid_size ? malloc((size_t)grid_size * sizeof *grid) : NULL;
	const int whole = part && row && (grid || !grid_size);
	if (whole && grid) nr_grid_distance(s->h, s->w, grid);
#pragma omp parallel for schedule(dynamic, 1)
	for (int64_t k = 0; k < (whole ? B * s->H : 0); k++) {
		const int64_t b = k / s->H, h = k % s->H;
		part[k] = unit(s, qkv + b * s->T * 3 * s->H * s->d + h * s->d, bias ? bias + h * s->T * s->T : NULL, grid, row + k * s->T);
	}
	for (int64_t k = 0; whole && k < B * s->H; k++) add(&sum[k % s->H], &part[k]);
	free(part);
	free(row);
	free(grid);
	return whole ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot measure attention", NULL, "out of memory");
}

void nr_attention_weights(const struct nr_attention_shape *s, const real *qkv, const real *bias, int64_t head, int64_t i, double *out)
{
	double sum = 0;
	const double top = logits_of(s, qkv + head * s->d, bias ? bias + head * s->T * s->T : NULL, i, out);
	for (int64_t j = 0; j < s->T; j++) sum += out[j] = exp(out[j] - top);
	for (int64_t j = 0; j < s->T; j++) out[j] /= sum;
}
