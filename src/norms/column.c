/* y = weight (x - mean) rstd + bias, where mean and rstd = 1/sqrt(var + eps) belong to a channel (or group of channels)
 * of a sample or of the whole batch: a domain. Backward, with a = weight rstd and N values in the domain:
 *
 *   dx = a dy - sum(a dy)/N - (x - mean) rstd^2 sum(a dy (x - mean))/N
 *
 * With eta, y + eta x = (x - mean) (weight rstd + eta) + (bias + eta mean): the same passes, and dx + eta dy.
 *
 * Moments are taken chunk by chunk and merged over the domain in order, then the rows are written. A sample of many is
 * left to one thread, which then finds it in its cache again; few samples, or a whole batch, are spread over all
 * threads. The bits are the same. The second pass over the rows runs backwards: the last ones may still be in a cache.
 *
 * Padding stays out of the statistics and is normalised with them, so its dy counts and its dx is a dy. */
#include "norms/column.h"

#include "graph/net.h"
#include "math/column.h"
#include "math/row.h"
#include "math/stream.h"

enum { TILE = 128, MANY = 8 };          /* columns merged at a time; samples that are left to one thread each */

struct walk {                           /* over runs of rows that lie evenly in every view */
	const struct nr_column_attr *at;
	int64_t C, runs, rows;          /* rows: of a run */
	int64_t per, chunk, chunks;     /* chunks in a run, rows in a chunk, chunks in all */
	int64_t domains, in_domain;     /* chunks in a domain */
	const int32_t *valid;           /* (runs) or NULL */
	const real *weight, *bias;      /* (C) or NULL */
	const real *eta;                /* or NULL; with one domain only */
	const double *shared;           /* count, then two numbers for each channel: of all shards; or NULL */
	real *mean, *rstd;              /* (domains,C), kept */
	int stream;                     /* what is written goes past the caches */
};

/* About 64 chunks, but no smaller than NR_CHUNK rows: what a chunk leaves behind must be little beside it. */
static void split(struct walk *w)
{
	const int64_t most = nr_min64(nr_max64(w->runs * w->rows / 64, NR_CHUNK), 8 * NR_CHUNK);
	w->per = nr_max64((w->rows + most - 1) / most, 1);
	w->chunk = (w->rows + w->per - 1) / w->per;
	w->chunks = w->runs * w->per;
}

static int64_t tokens_of(const nr_t *x) { return x->nd >= 3 ? nr_rows_per_sample(x) : 1; }

/* even: rows of all samples are equally far apart, in every view */
static struct walk walk_of(const struct nr_call *k, int even)
{
	const struct nr_column_attr *at = k->node->attr;
	const int64_t C = k->x[0].c, rows = k->x[0].rows, T = tokens_of(k->node->in[0]);
	const int one = at->batch && even && !at->valid;
	struct walk w = { .at = at, .C = C, .runs = one ? 1 : rows / T, .rows = one ? rows : T, .mean = k->stash,
		.shared = k->shared, .stream = nr_streams(rows * C) };
	split(&w);
	w.domains = at->batch ? 1 : w.runs;
	w.in_domain = at->batch ? w.chunks : w.per;
	w.rstd = w.mean + w.domains * C;
	if (at->valid) w.valid = nr_ints(&k->x[at->valid]);
	if (at->weight) w.weight = k->x[at->weight].p, w.bias = k->x[at->weight + 1].p;
	if (at->eta) w.eta = k->x[at->eta].p;
	return w;
}

static int even(const struct nr_view *v) { return nr_packed(v) || v->t == 1; }
static int even_input(const struct nr_call *k) { return k->x[0].t == 1 || (nr_packed(&k->x[0]) && !nr_has_gaps(k->node->in[0])); }
static int64_t ld_of(const struct nr_view *v) { return nr_packed(v) || v->t > 1 ? v->c : v->bs; }

struct piece { int64_t row, rows, real_rows, domain; };

static struct piece piece_of(const struct walk *w, int64_t q)
{
	const int64_t run = q / w->per, from = q % w->per * w->chunk, rows = nr_min64(w->chunk, w->rows - from);
	const int64_t left = w->valid ? nr_max64(nr_min64(w->valid[run] - from, rows), 0) : rows;
	return (struct piece){ run * w->rows + from, rows, left, w->at->batch ? 0 : run };
}

/* Real rows of a domain. */
static int64_t rows_of(const struct walk *w, int64_t d)
{
	int64_t n = 0;
	for (int64_t q = d * w->in_domain; q < (d + 1) * w->in_domain; q++) n += piece_of(w, q).real_rows;
	return n;
}

/* Those of all shards; 1 if there are none, which then divides zeros. */
static double count_of(const struct walk *w, int64_t d)
{
	const double n = w->shared ? w->shared[0] : (double)rows_of(w, d);
	return n > 1 ? n : 1;
}

/* A domain's columns that one thread sees to between the passes over the rows; groups are not cut. */
struct share { int64_t d, from, n; };

static int64_t shares_per_domain(const struct walk *w)
{
	return w->at->groups < w->C ? 1 : (w->C + TILE - 1) / TILE;
}

static struct share share_of(const struct walk *w, int64_t i)
{
	const int64_t per = shares_per_domain(w), from = i % per * TILE;
	return (struct share){ i / per, from, per == 1 ? w->C : nr_min64(TILE, w->C - from) };
}

/* ---- statistics ------------------------------------------------------------------------------------------------- */

/* mean and sum of squares about it of n of a domain's columns. */
static void merge(const struct walk *w, int64_t d, int64_t from, int64_t n, const real *means, const real *squares, double *mean,
	double *m2)
{
	int64_t count = 0;
	memset(mean, 0, (size_t)n * sizeof *mean);
	memset(m2, 0, (size_t)n * sizeof *m2);
	for (int64_t q = d * w->in_domain; q < (d + 1) * w->in_domain; q++)
		nr_column_merge(n, &count, mean, m2, piece_of(w, q).real_rows, means + q * w->C + from, squares + q * w->C + from);
}

/* Into mean and rstd, which holds the sums of squares at first; those of all shards are there already. */
static void take(const struct walk *w, int64_t d, int64_t from, int64_t n, const real *means, const real *squares)
{
	double own_mean[TILE], own_m2[TILE];
	const double *mean = own_mean, *m2 = own_m2;
	if (w->shared) mean = w->shared + 1 + from, m2 = mean + w->C;
	else merge(w, d, from, n, means, squares, own_mean, own_m2);
	for (int64_t i = 0; i < n; i++) {
		w->mean[d * w->C + from + i] = (real)mean[i];
		w->rstd[d * w->C + from + i] = (real)m2[i];
	}
}

/* One mean and rstd for the channels of a group, each of which has n values. */
static void join_group(int64_t size, double n, real eps, real *mean, real *rstd)
{
	double m = 0, m2 = 0;
	for (int64_t i = 0; i < size; i++) m += (double)mean[i];
	m /= (double)size;
	for (int64_t i = 0; i < size; i++) {
		const double d = (double)mean[i] - m;
		m2 += (double)rstd[i] + n * d * d;
	}
	const real r = 1 / nr_sqrt((real)(m2 / (n * (double)size)) + eps);
	for (int64_t i = 0; i < size; i++) mean[i] = (real)m, rstd[i] = r;
}

/* The running values as they will be after this step; rstd still holds the sums of squares. */
static void run_on(const struct walk *w, const struct nr_call *k, int64_t from, int64_t end)
{
	/* the first pass of a step counts it: those that accumulate after it are one ahead */
	const int still = w->at->steps && *(const real *)k->x[w->at->steps].p - (real)(k->ex->accumulate != 0) < (real)w->at->warm;
	const real *mean = k->x[w->at->running].p, *var = k->x[w->at->running + 1].p, m = still ? 0 : w->at->momentum;
	const double n = count_of(w, 0);
	const real inv = (real)(1 / (n > 1 ? n - 1 : 1));
	real *next_mean = k->pending, *next_var = next_mean + w->C;
	for (int64_t i = from; i < end; i++) {
		next_mean[i] = (1 - m) * mean[i] + m * w->mean[i];
		next_var[i] = (1 - m) * var[i] + m * (w->rstd[i] * inv);
	}
}

/* Schneider et al. 2020 (arXiv:2006.16971), Eq. 3: mean and variance between the running ones, as of `prior` samples, and the batch's. */
static void lean(const struct walk *w, const struct nr_call *k, struct share s, real inv)
{
	const double n = (double)k->node->in[0]->d[0];
	const real share = (real)(n / (n + k->ex->prior)), rest = 1 - share;
	const real *mean = k->x[w->at->running].p, *var = k->x[w->at->running + 1].p;
	for (int64_t i = s.from; i < s.from + s.n; i++) {
		w->mean[i] = rest * mean[i] + share * w->mean[i];
		w->rstd[i] = 1 / nr_sqrt(rest * var[i] + share * (w->rstd[i] * inv) + w->at->eps);
	}
}

/* mean and rstd of a domain's columns from the moments of its chunks. */
static void statistics(const struct walk *w, const struct nr_call *k, struct share s, const real *means,
	const real *squares)
{
	const int64_t size = w->C / w->at->groups, end = s.from + s.n;
	for (int64_t i = s.from; i < end; i += TILE) take(w, s.d, i, nr_min64(TILE, end - i), means, squares);
	if (w->at->running) run_on(w, k, s.from, end);
	const double n = count_of(w, s.d);
	const real eps = w->at->eps, inv = (real)(1 / (w->at->unbiased && n > 1 ? n - 1 : n));
	real *mean = w->mean + s.d * w->C, *rstd = w->rstd + s.d * w->C;
	if (w->at->running && k->ex->prior > 0) lean(w, k, s, inv);
	else if (size > 1)
		for (int64_t i = s.from; i < end; i += size) join_group(size, n, eps, mean + i, rstd + i);
	else
		for (int64_t i = s.from; i < end; i++) rstd[i] = 1 / nr_sqrt(rstd[i] * inv + eps);
}

/* In evaluation the running values take their place. */
static void take_running(const struct walk *w, const struct nr_call *k)
{
	const real *mean = k->x[w->at->running].p, *var = k->x[w->at->running + 1].p;
	for (int64_t i = 0; i < w->C; i++) {
		w->mean[i] = mean[i];
		w->rstd[i] = 1 / nr_sqrt(var[i] + w->at->eps);
	}
}

static int running(const struct nr_call *k)
{
	const struct nr_column_attr *at = k->node->attr;
	return at->batch && (!k->ex->train || at->frozen);
}

/* ---- forward ---------------------------------------------------------------------------------------------------- */

static void chunk_moments(const struct walk *w, const struct nr_view *x, int64_t q, real *means, real *squares)
{
	const struct piece p = piece_of(w, q);
	nr_column_active->moments(p.real_rows, w->C, nr_row(x, p.row), ld_of(x), means + q * w->C, squares + q * w->C);
}

static void scale_of(const struct walk *w, struct share s, real *scale)
{
	const real *rstd = w->rstd + s.d * w->C;
	scale += s.d * w->C;
	for (int64_t i = s.from; i < s.from + s.n; i++) scale[i] = w->weight ? w->weight[i] * rstd[i] : rstd[i];
}

/* The factors of y for a domain's columns: scale, and bias where x is added. */
static void factors_of_y(const struct walk *w, struct share s, real *scale, real *bias)
{
	scale_of(w, s, scale);
	for (int64_t i = s.from; w->eta && i < s.from + s.n; i++) {
		scale[i] += *w->eta;
		bias[i] = w->bias[i] + *w->eta * w->mean[i];
	}
}

static void chunk_write(const struct walk *w, const struct nr_view *x, int64_t q, const real *scale, const real *bias,
	const struct nr_view *y)
{
	const struct piece p = piece_of(w, q);
	const int64_t at = p.domain * w->C;
	nr_column_normalize *put = w->stream ? nr_column_active->normalize_stream : nr_column_active->normalize;
	put(p.rows, w->C, nr_row(x, p.row), ld_of(x), w->mean + at, scale + at, w->eta ? bias : w->bias,
		nr_row(y, p.row), ld_of(y));
}

/* with: take the statistics from x; else they are there. */
static void forward(const struct nr_call *k, int with)
{
	const struct nr_view *x = &k->x[0], *y = &k->y[0];
	const struct walk w = walk_of(k, even_input(k) && even(y));
	real *scale = k->scratch, *means = scale + w.domains * w.C, *squares = means + w.chunks * w.C, *bias = squares + w.chunks * w.C;
	if (w.domains >= MANY) {
#pragma omp parallel for schedule(static)
		for (int64_t d = 0; d < w.domains; d++) {
			const struct share all = { d, 0, w.C };
			const int64_t from = d * w.per, end = from + w.per;
			for (int64_t q = from; with && q < end; q++) chunk_moments(&w, x, q, means, squares);
			if (with) statistics(&w, k, all, means, squares);
			factors_of_y(&w, all, scale, bias);
			for (int64_t q = end - 1; q >= from; q--) chunk_write(&w, x, q, scale, bias, y);
		}
		return;
	}
	const int64_t shares = w.domains * shares_per_domain(&w);
#pragma omp parallel
	{
#pragma omp for schedule(static)
		for (int64_t q = 0; q < (with && !w.shared ? w.chunks : 0); q++) chunk_moments(&w, x, q, means, squares);
#pragma omp for schedule(static)
		for (int64_t i = 0; i < shares; i++) {
			if (with) statistics(&w, k, share_of(&w, i), means, squares);
			factors_of_y(&w, share_of(&w, i), scale, bias);
		}
#pragma omp for schedule(static)
		for (int64_t q = w.chunks - 1; q >= 0; q--) chunk_write(&w, x, q, scale, bias, y);
	}
}

void nr_column_forward(const struct nr_call *k)
{
	if (running(k)) {
		const struct walk w = walk_of(k, 1);
		take_running(&w, k);
	}
	forward(k, !running(k));
}

void nr_column_rebuild(const struct nr_call *k) { forward(k, 0); }

void nr_column_commit(const struct nr_call *k)
{
	const struct nr_column_attr *at = k->node->attr;
	const int64_t C = k->x[0].c;
	if (!k->ex->train || at->frozen) return;
	memcpy(k->x[at->running].p, k->pending, (size_t)C * sizeof(real));
	memcpy(k->x[at->running + 1].p, (const real *)k->pending + C, (size_t)C * sizeof(real));
}

/* ---- backward --------------------------------------------------------------------------------------------------- */

struct grad {
	const struct nr_view *x, *dy, *dx;
	real *sum, *dot;                /* (chunks,C) of dy and dy (x - mean) */
	real *bias, *weight;            /* (domains,C): of a domain, and its part of the parameters' gradients */
	real *a, *b, *c;                /* (domains,C) */
	real *zero;                     /* (C) */
	int add, constant;              /* constant: statistics that do not depend on x */
};

static void chunk_sums(const struct walk *w, const struct grad *g, int64_t q)
{
	const struct piece p = piece_of(w, q);
	real *sum = g->sum + q * w->C, *dot = g->dot + q * w->C;
	memset(sum, 0, (size_t)w->C * sizeof(real));
	memset(dot, 0, (size_t)w->C * sizeof(real));
	nr_column_active->grad_sums(p.rows, w->C, nr_row(g->x, p.row), ld_of(g->x), nr_row(g->dy, p.row), ld_of(g->dy),
		w->mean + p.domain * w->C, sum, dot);
}

/* Sums of a domain's columns over its chunks. */
static void fold_sums(const struct walk *w, const struct grad *g, struct share s)
{
	const int64_t C = w->C, at = s.d * C + s.from, q = s.d * w->in_domain * C + s.from;
	memset(g->bias + at, 0, (size_t)s.n * sizeof(real));
	memset(g->weight + at, 0, (size_t)s.n * sizeof(real));
	nr_row_active->col_sum(w->in_domain, s.n, g->sum + q, C, g->bias + at);
	nr_row_active->col_sum(w->in_domain, s.n, g->dot + q, C, g->weight + at);
}

/* The factors of dx for a domain's columns. */
static void factors(const struct walk *w, const struct grad *g, struct share s)
{
	const int64_t C = w->C, size = C / w->at->groups, at = s.d * C + s.from;
	const double n = count_of(w, s.d) * (double)size;
	const real inv = (real)(1 / n), inv_var = w->at->unbiased && n > 1 ? (real)(1 / (n - 1)) : inv;
	const real *rstd = w->rstd + at;
	real *const sum = g->bias + at, *dot = g->weight + at, *a = g->a + at, *b = g->b + at, *c = g->c + at;
	const double *all = w->shared ? w->shared + 1 + s.from : NULL;
	fold_sums(w, g, s);
	scale_of(w, s, g->a);
	for (int64_t i = 0; i < s.n; i++) {
		const real sums = all ? (real)all[i] : sum[i], dots = all ? (real)all[C + i] : dot[i];
		b[i] = g->constant ? 0 : -a[i] * dots * (rstd[i] * rstd[i] * inv_var);
		c[i] = g->constant ? 0 : -a[i] * sums * inv;
		dot[i] *= rstd[i];
	}
	for (int64_t i = 0; size > 1 && i < s.n; i += size) {
		const real sb = nr_sum(size, b + i), sc = nr_sum(size, c + i);
		for (int64_t j = i; j < i + size; j++) b[j] = sb, c[j] = sc;
	}
}

static void chunk_apply(const struct walk *w, const struct grad *g, int64_t q)
{
	const struct piece p = piece_of(w, q);
	const int64_t C = w->C, at = p.domain * C, ldx = ld_of(g->x), lddy = ld_of(g->dy), lddx = ld_of(g->dx);
	const real *x = nr_row(g->x, p.row), *dy = nr_row(g->dy, p.row), *mean = w->mean + at, *a = g->a + at, eta = w->eta ? *w->eta : 0;
	real *dx = nr_row(g->dx, p.row);
	nr_column_grad *put = w->stream ? nr_column_active->grad_apply_stream : nr_column_active->grad_apply;
	put(p.real_rows, C, x, ldx, dy, lddy, mean, a, g->b + at, g->c + at, eta, dx, lddx, g->add);
	x += p.real_rows * ldx, dy += p.real_rows * lddy, dx += p.real_rows * lddx;
	put(p.rows - p.real_rows, C, x, ldx, dy, lddy, mean, a, g->zero, g->zero, eta, dx, lddx, g->add);
}

/* sum of dy x, from the sums of dy (x - mean) rstd and of dy. */
static real along_x(const struct walk *w, const struct grad *g)
{
	double sum = 0;
	for (int64_t i = 0; i < w->C; i++) sum += (double)g->weight[i] / (double)w->rstd[i] + (double)w->mean[i] * (double)g->bias[i];
	return (real)sum;
}

static struct walk walk_backward(const struct nr_call *k) { return walk_of(k, even_input(k) && even(&k->dy[0]) && even(&k->dx[0])); }

static struct grad grad_of(const struct nr_call *k, const struct walk *w)
{
	const int64_t D = w->domains * w->C, Q = w->chunks * w->C;
	real *s = k->scratch;
	return (struct grad){ .x = &k->x[0], .dy = &k->dy[0], .dx = &k->dx[0], .add = k->add[0], .constant = running(k),
		.zero = s, .sum = s + w->C, .dot = s + w->C + Q, .bias = s + w->C + 2 * Q, .weight = s + w->C + 2 * Q + D,
		.a = s + w->C + 2 * Q + 2 * D, .b = s + w->C + 2 * Q + 3 * D, .c = s + w->C + 2 * Q + 4 * D };
}

void nr_column_backward(const struct nr_call *k)
{
	const struct walk w = walk_backward(k);
	const int64_t shares = w.domains * shares_per_domain(&w);
	const struct grad g = grad_of(k, &w);
	memset(g.zero, 0, (size_t)w.C * sizeof(real));
	if (w.domains >= MANY) {
#pragma omp parallel for schedule(static)
		for (int64_t d = 0; d < w.domains; d++) {
			const int64_t from = d * w.per, end = from + w.per;
			for (int64_t q = from; q < end; q++) chunk_sums(&w, &g, q);
			factors(&w, &g, (struct share){ d, 0, w.C });
			for (int64_t q = (k->want & 1 ? end : from) - 1; q >= from; q--) chunk_apply(&w, &g, q);
		}
	} else {
#pragma omp parallel
		{
#pragma omp for schedule(static)
			for (int64_t q = 0; q < (w.shared ? 0 : w.chunks); q++) chunk_sums(&w, &g, q);
#pragma omp for schedule(static)
			for (int64_t i = 0; i < shares; i++) factors(&w, &g, share_of(&w, i));
#pragma omp for schedule(static)
			for (int64_t q = (k->want & 1 ? w.chunks : 0) - 1; q >= 0; q--) chunk_apply(&w, &g, q);
		}
	}
	const int i = w.at->weight;
	if (i && k->want >> i & 1) nr_fold(w.domains, w.C, g.weight, k->dx[i].p, k->add[i]);
	if (i && k->want >> (i + 1) & 1) nr_fold(w.domains, w.C, g.bias, k->dx[i + 1].p, k->add[i + 1]);
	if (w.eta && k->want >> w.at->eta & 1) nr_put(k->dx[w.at->eta].p, along_x(&w, &g), k->add[w.at->eta]);
}

/* ---- shards that share ------------------------------------------------------------------------------------------ */

int64_t nr_column_share(const struct nr_node *k, int backward)
{
	const struct nr_column_attr *at = k->attr;
	(void)backward;
	return at->sync ? 1 + 2 * nr_cols(k->in[0]) : 0;
}

static void part_of_moments(const struct nr_call *k, double *mine)
{
	const struct walk w = walk_of(k, even_input(k) && even(&k->y[0]));
	real *means = (real *)k->scratch + w.domains * w.C, *squares = means + w.chunks * w.C;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < w.chunks; q++) chunk_moments(&w, &k->x[0], q, means, squares);
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < w.C; i += TILE)
		merge(&w, 0, i, nr_min64(TILE, w.C - i), means, squares, mine + 1 + i, mine + 1 + w.C + i);
	mine[0] = (double)rows_of(&w, 0);
}

void nr_column_part(const struct nr_call *k, int backward, double *mine)
{
	if (!backward) {
		part_of_moments(k, mine);
		return;
	}
	const struct walk w = walk_backward(k);
	const struct grad g = grad_of(k, &w);
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < w.chunks; q++) chunk_sums(&w, &g, q);
	fold_sums(&w, &g, (struct share){ 0, 0, w.C });
	mine[0] = (double)rows_of(&w, 0);
	for (int64_t i = 0; i < w.C; i++) {
		mine[1 + i] = (double)g.bias[i];
		mine[1 + w.C + i] = (double)g.weight[i];
	}
}

/* ---- the op ----------------------------------------------------------------------------------------------------- */

int nr_column_shape(struct nr_node *k)
{
	const nr_t *x = k->in[0];
	const struct nr_column_attr *at = k->attr;
	const int64_t C = nr_cols(x), T = tokens_of(x), B = nr_rows(x) / nr_max64(T, 1);
	struct walk one = { .runs = 1, .rows = B * T }, each = { .runs = B, .rows = T };
	split(&one);
	split(&each);
	const int64_t chunks = at->batch ? nr_max64(one.chunks, each.chunks) : each.chunks, domains = at->batch ? 1 : B;
	nr_out_like(k, 0, x);
	k->stash = (size_t)(2 * domains * C) * sizeof(real);
	k->scratch = (size_t)((2 * chunks + 5 * domains + 1) * C) * sizeof(real);
	if (at->running) k->pending = (size_t)(2 * C) * sizeof(real);
	if (at->valid && nr_expect(k, k->in[at->valid]->dtype == NR_I32 && nr_len(k->in[at->valid]) == B,
		"one length per sample"))
		return NR_ESHAPE;
	return nr_expect(k, x->nd >= 2 && at->groups > 0 && C % at->groups == 0, "%lld channels in %lld groups", (long long)C,
		(long long)at->groups);
}

nr_t *nr_column_apply(struct nr_net *n, const struct nr_op *op, nr_t *x, struct nr_column_attr at, int affine, nr_t *eta,
	nr_t *steps)
{
	nr_t *in[8] = { x };
	int count = 1;
	const int64_t C = nr_cols(x);
	if (affine) {
		at.weight = (int8_t)count;
		in[count++] = nr_param(n, "weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(C));
		in[count++] = nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(C));
	}
	if (eta) {
		at.eta = (int8_t)count;
		in[count++] = eta;
	}
	if (at.batch) {
		at.running = (int8_t)count;
		in[count++] = nr_buffer(n, "running_mean", NR_ZEROS, NR_SHAPE(C));
		in[count++] = nr_buffer(n, "running_var", NR_ONES, NR_SHAPE(C));
	}
	if (x->tok && x->tok->valid) {
		at.valid = (int8_t)count;
		in[count++] = x->tok->valid;
	}
	if (steps) {
		at.steps = (int8_t)count;
		in[count++] = steps;
	}
	for (int i = 1; at.frozen && i <= at.running + 1; i++)
		if (in[i]) in[i]->entry->frozen = 1;
	return nr_apply_list(n, op, &at, sizeof at, count, in);
}

void nr_column_cost(const struct nr_node *k, double *forward_flops, double *backward_flops)
{
	*forward_flops = 7. * (double)nr_len(k->in[0]);
	*backward_flops = 11. * (double)nr_len(k->in[0]);
}
