/* Statistics of attention. See attention_stats.h. A unit is one head of one sample; units are added in order. */
#include "analysis/attention_stats.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/attention_distance.h"
#include "chem/molgraph.h"
#include "math/row.h"

static const double left_out = -1e29;           /* scores below it: attention does not count them, as in math/attention.h */

/* Logits of query i to the first n keys; returns the largest. */
static double logits_of(const struct nr_attention_shape *s, int64_t n, const real *qkv, const real *bias, int64_t i, double *out)
{
	const int64_t width = s->H * s->d;
	const double scale = 1 / sqrt((double)s->d);
	double top = -INFINITY;
	for (int64_t j = 0; j < n; j++) {
		out[j] = scale * (double)nr_dot(s->d, qkv + i * 3 * width, qkv + j * 3 * width + width);
		if (bias) out[j] += (double)bias[i * s->T + j];
		top = fmax(top, out[j]);
	}
	return top;
}

/* How far two tokens are from each other: on the grid, or in bonds. */
struct distances { const real *grid; const int32_t *steps; int64_t N; };

static double distance_of(const struct distances *d, int64_t i, int64_t j)
{
	if (d->grid) return (double)d->grid[i * d->N + j];
	const int32_t steps = d->steps[i * d->N + j];
	return steps > 0 && steps <= NR_PATH_UNREACHABLE ? steps - 1 : (double)NAN;
}

/* One head of one sample of n tokens: qkv at its queries, bias its own (T,T); row: room for T. */
static struct nr_head_sums unit(const struct nr_attention_shape *s, int64_t n, const real *qkv, const real *bias,
	const struct distances *far, double *row)
{
	const int64_t S = s->special, N = n - S;
	struct nr_head_sums u = { .samples = 1, .most_entropy = log((double)n) };
	int64_t pairs = 0;
	for (int64_t i = 0; i < n; i++) {
		double sum = 0, dot = 0, apart = 0, near = 0, placed = 0;
		const double top = logits_of(s, n, qkv, bias, i, row);
		for (int64_t j = 0; j < n; j++) {
			if (row[j] < left_out) continue;
			pairs++;
			u.logit_square += row[j] * row[j];
			u.logit_max = fmax(u.logit_max, fabs(row[j]));
			const double e = exp(row[j] - top);
			sum += e;
			dot += e * (row[j] - top);
			if (j < S) continue;
			near += e;
			const double distance = far && i >= S ? distance_of(far, i - S, j - S) : (double)NAN;
			if (!isnan(distance)) apart += e * distance, placed += e;
		}
		const double entropy = log(sum) - dot / sum;
		if (i < S) {
			if (!i && s->cls) u.cls_entropy = entropy;
			continue;
		}
		u.entropy += entropy / (double)N;
		u.on_special += (1 - near / sum) / (double)N;
		u.distance += placed > 0 ? apart / placed / (double)N : 0;
	}
	u.logit_square /= (double)pairs;
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
	to->most_entropy += u->most_entropy;
	to->samples += u->samples;
}

int nr_attention_stats(const struct nr_attention_shape *s, const struct nr_attention_batch *b, struct nr_head_sums *sum,
	struct nr_error *err)
{
	const int64_t B = b->B, N = s->T - s->special, grid_size = !b->steps && s->h * s->w == N ? N * N : 0;
	struct nr_head_sums *part = malloc((size_t)(B * s->H) * sizeof *part);
	double *row = malloc((size_t)(B * s->H * s->T) * sizeof *row);
	real *grid = grid_size ? malloc((size_t)grid_size * sizeof *grid) : NULL;
	const int whole = part && row && (grid || !grid_size);
	if (whole && grid) nr_grid_distance(s->h, s->w, grid);
#pragma omp parallel for schedule(dynamic, 1)
	for (int64_t k = 0; k < (whole ? B * s->H : 0); k++) {
		const int64_t i = k / s->H, h = k % s->H, square = s->T * s->T;
		const struct distances far = { grid, b->steps ? b->steps + i * N * N : NULL, N };
		const real *bias = b->bias ? b->bias + (b->biases ? k : h) * square : NULL;
		part[k] = unit(s, b->nodes ? s->special + b->nodes[i] : s->T, b->qkv + i * s->T * 3 * s->H * s->d + h * s->d, bias,
			grid || b->steps ? &far : NULL, row + k * s->T);
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
	const double top = logits_of(s, s->T, qkv + head * s->d, bias ? bias + head * s->T * s->T : NULL, i, out);
	for (int64_t j = 0; j < s->T; j++) sum += out[j] = exp(out[j] - top);
	for (int64_t j = 0; j < s->T; j++) out[j] /= sum;
}
