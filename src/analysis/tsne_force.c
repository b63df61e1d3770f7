/* Forces of t-SNE over every pair. See tsne_inner.h. One pass: the sum of all q divides push only afterwards. */
#include "analysis/tsne_inner.h"

/* Adds the pairs of point i with points first..end. */
static void pairs(int64_t i, int64_t first, int64_t end, const double *x, const double *y, const double *p, struct nr_tsne_row *out)
{
	const double xi = x[i], yi = y[i];
	double ax = 0, ay = 0, rx = 0, ry = 0, z = 0;
#pragma omp simd reduction(+ : ax, ay, rx, ry, z)
	for (int64_t j = first; j < end; j++) {
		const double dx = xi - x[j], dy = yi - y[j], q = 1 / (1 + dx * dx + dy * dy), pq = p[j] * q, qq = q * q;
		ax += pq * dx;
		ay += pq * dy;
		rx += qq * dx;
		ry += qq * dy;
		z += q;
	}
	out->pull[0] += ax;
	out->pull[1] += ay;
	out->push[0] += rx;
	out->push[1] += ry;
	out->z += z;
}

static double stretch(const double *x, const double *y, int64_t i, int64_t j)
{
	const double dx = x[i] - x[j], dy = y[i] - y[j];
	return log1p(dx * dx + dy * dy);
}

void nr_tsne_exact(const struct nr_tsne_p *p, const double *x, const double *y, int stress, struct nr_tsne_row *row)
{
	const int64_t N = p->N;
#pragma omp parallel for schedule(static) if (N > 64)
	for (int64_t i = 0; i < N; i++) {
		const double *pi = p->value + i * N;
		row[i] = (struct nr_tsne_row){ 0 };
		pairs(i, 0, i, x, y, pi, &row[i]);
		pairs(i, i + 1, N, x, y, pi, &row[i]);
		for (int64_t j = 0; stress && j < N; j++) row[i].stress += pi[j] * stretch(x, y, i, j);
	}
}

static void pull(const struct nr_tsne_p *p, const double *x, const double *y, int64_t i, int stress, struct nr_tsne_row *row)
{
	const double xi = x[i], yi = y[i];
	double ax = 0, ay = 0;
	for (int64_t e = p->start[i]; e < p->start[i + 1]; e++) {
		const int32_t j = p->col[e];
		const double dx = xi - x[j], dy = yi - y[j], pq = p->value[e] / (1 + dx * dx + dy * dy);
		ax += pq * dx;
		ay += pq * dy;
	}
	row->pull[0] = ax;
	row->pull[1] = ay;
	row->stress = 0;
	for (int64_t e = p->start[i]; stress && e < p->start[i + 1]; e++) row->stress += p->value[e] * stretch(x, y, i, p->col[e]);
}

void nr_tsne_barnes_hut(const struct nr_tsne_p *p, struct nr_tree *tree, double theta, const double *x, const double *y, int stress,
	struct nr_tsne_row *row)
{
	nr_tree_push(tree, p->N, x, y, theta, row);
#pragma omp parallel for schedule(dynamic, 64) if (p->N > 64)
	for (int64_t i = 0; i < p->N; i++) pull(p, x, y, i, stress, &row[i]);
}
