/* switch: y = weight (x - M) / sqrt(V + eps) + bias, where M and V mix the statistics of instance, layer and batch norm with
 * learned weights. Luo et al. 2019, Eq. 3 to 5.
 *
 *   M = p0 m_IN + p1 m_LN + p2 m_BN, V = q0 v_IN + q1 v_LN + q2 v_BN, p = softmax(mean_weight), q = softmax(var_weight)
 *
 * All but a token's own LN follow from the moments m, u (B,C) of each sample's channels, with the sample's share s_b of the
 * real tokens:  m_LN = mean_C m, v_LN = mean_C(u + (m - m_LN)^2);  m_BN = sum_B s m, v_BN = sum_B s (u + (m - m_BN)^2).
 * official: u is the unbiased variance, and so enters v_LN and v_BN. Backward goes the same way back: dM, dV summed over
 * tokens give dm, du, and dx = g r + dm / n + 2 du (x - m) / n (n - 1 if unbiased). */
#include <stdbool.h>

#include "graph/blocks.h"
#include "math/blend.h"
#include "math/column.h"
#include "math/row.h"
#include "norms/norms.h"

enum scope { TOKEN, SAMPLE };
enum variant { PLAIN, OFFICIAL };
static const char *const scopes[] = { "token", "sample", NULL }, *const variants[] = { "plain", "official", NULL };

struct switching { float eps, momentum; int32_t ln_scope, variant; bool use_bn, sync; };

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct switching, eps, 1e-5, 0, 1, "added to the variance"),
	NR_OPT_FLOAT(struct switching, momentum, 0.1, 0, 1, "weight of this batch in the running statistics"),
	NR_OPT_ENUM(struct switching, ln_scope, "token", scopes, "layer norm over a token's channels or over the whole sample"),
	NR_OPT_BOOL(struct switching, use_bn, "1", "include batch norm in the blend"),
	NR_OPT_ENUM(struct switching, variant, "plain", variants, "biased variances, or the released code's"),
	NR_OPT_BOOL(struct switching, sync, "0", "batch norm's " NR_SYNC_HELP),
	NR_OPT_END
};

enum { X, WEIGHT, BIAS, MEAN_WEIGHT, VAR_WEIGHT, RUNNING_MEAN, RUNNING_VAR };
enum { IN, LN, BN, KINDS };

/* ---- what a call works on ---------------------------------------------------------------------------------------- */

struct work {
	const struct switching *conf;
	int64_t B, T, C;
	struct nr_blocks b;             /* of rows, never across samples */
	const int32_t *valid;           /* (B) or NULL */
	int64_t real_rows;              /* of the batch, or of all its shards; 1 if there are none */
	const double *shared;           /* count, then two numbers for each channel: of all shards; or NULL */
	real *m, *u;                    /* kept: (B,C) */
	real *bn_mean, *bn_var;         /* (C) */
	real *ln_mean, *ln_var;         /* (B), or (rows) */
	real *mean, *var;               /* (B,C): M and V without the token's part */
	real *row_mean, *row_var;       /* (rows): the token's part; NULL: none */
	double p[KINDS], q[KINDS];
};

static int64_t length_of(const struct work *w, int64_t b)
{
	return w->valid ? nr_max64(nr_min64(w->valid[b], w->T), 0) : w->T;
}

static void softmax(const real *w, int n, double *p)
{
	double most = (double)w[0], sum = 0;
	for (int i = 1; i < n; i++) most = (double)w[i] > most ? (double)w[i] : most;
	for (int i = 0; i < n; i++) sum += p[i] = (double)nr_exp(w[i] - (real)most);
	for (int i = 0; i < n; i++) p[i] /= sum;
}

static int valid_at(const struct switching *c) { return c->use_bn ? RUNNING_VAR + 1 : RUNNING_MEAN; }

static struct work work_of(const struct nr_call *k)
{
	const struct switching *c = k->node->attr;
	const struct nr_view *x = &k->x[X];
	const int64_t T = k->node->in[X]->nd >= 3 ? x->t : 1, B = x->rows / T, C = x->c;
	struct work w = { .conf = c, .B = B, .T = T, .C = C, .shared = k->shared,
		.valid = k->node->n_in > valid_at(c) ? nr_ints(&k->x[valid_at(c)]) : NULL };
	struct nr_view rows = *x;
	rows.t = T;
	w.b = nr_blocks_of(&rows, 0);
	for (int64_t b = 0; b < B; b++) w.real_rows += length_of(&w, b);
	w.real_rows = nr_max64(w.shared ? (int64_t)w.shared[0] : w.real_rows, 1);
	real *s = k->stash;
	w.m = s, w.u = s + B * C, w.mean = s + 2 * B * C, w.var = s + 3 * B * C;
	w.bn_mean = s + 4 * B * C, w.bn_var = w.bn_mean + C, w.ln_mean = w.bn_var + C;
	w.ln_var = w.ln_mean + (c->ln_scope == TOKEN ? x->rows : B);
	if (c->ln_scope == TOKEN) w.row_mean = w.ln_var + x->rows, w.row_var = w.row_mean + x->rows;
	softmax(k->x[MEAN_WEIGHT].p, c->use_bn ? 3 : 2, w.p);
	softmax(k->x[VAR_WEIGHT].p, c->use_bn ? 3 : 2, w.q);
	return w;
}

static int shape(struct nr_node *k)
{
	const struct switching *c = k->attr;
	const nr_t *x = k->in[X];
	const int64_t C = nr_cols(x), rows = nr_rows(x), T = x->nd >= 3 ? nr_rows_per_sample(x) : 1, B = T ? rows / T : 0;
	nr_out_like(k, 0, x);
	k->stash = (size_t)(4 * B * C + 2 * C + (c->ln_scope == TOKEN ? 4 * rows : 2 * B)) * sizeof(real);
	k->pending = (size_t)(c->use_bn ? 2 * C : 0) * sizeof(real);
	/* per block: four partial sums; per sample: dm, du, and a few numbers; per token: two */
	k->scratch = (size_t)(4 * B * nr_chunks(T) * C + 2 * B * C + 2 * C + 2 * rows) * sizeof(real) + (size_t)B * 8 * sizeof(double);
	return nr_expect(k, k->n_in == valid_at(c) || nr_len(k->in[valid_at(c)]) == B, "one length per sample");
}

/* ---- forward ---------------------------------------------------------------------------------------------------- */

enum { TILE = 128 };                    /* columns merged at a time */

/* m and u of sample b from its blocks. */
static void merge(const struct work *w, int64_t b, const real *means, const real *squares)
{
	const int64_t C = w->C, n = length_of(w, b);
	const double inv = 1 / (double)nr_max64(w->conf->variant == OFFICIAL && n > 1 ? n - 1 : n, 1);
	for (int64_t from = 0; from < C; from += TILE) {
		const int64_t wide = nr_min64(TILE, C - from);
		double mean[TILE] = { 0 }, m2[TILE] = { 0 };
		int64_t count = 0;
		for (int64_t i = 0; i < w->b.per; i++) {
			const int64_t q = b * w->b.per + i, rows = nr_max64(nr_min64(n - i * NR_CHUNK, NR_CHUNK), 0);
			nr_column_merge(wide, &count, mean, m2, rows, means + q * C + from, squares + q * C + from);
		}
		for (int64_t i = 0; i < wide; i++) {
			w->m[b * C + from + i] = (real)mean[i];
			w->u[b * C + from + i] = (real)(m2[i] * inv);
		}
	}
}

static void layer_of_sample(const struct work *w, int64_t b)
{
	const real *m = w->m + b * w->C, *u = w->u + b * w->C;
	double mean = 0, var = 0;
	for (int64_t i = 0; i < w->C; i++) mean += (double)m[i];
	mean /= (double)w->C;
	for (int64_t i = 0; i < w->C; i++) var += (double)u[i] + ((double)m[i] - mean) * ((double)m[i] - mean);
	w->ln_mean[b] = (real)mean;
	w->ln_var[b] = (real)(var / (double)w->C);
}

/* Mean and variance of columns over the samples that are here. */
static void over_samples(const struct work *w, int64_t from, int64_t wide, double *mean, double *var)
{
	memset(mean, 0, (size_t)wide * sizeof *mean);
	memset(var, 0, (size_t)wide * sizeof *var);
	for (int64_t b = 0; b < w->B; b++) {
		const double share = (double)length_of(w, b) / (double)w->real_rows;
		const real *m = w->m + b * w->C + from;
		for (int64_t i = 0; i < wide; i++) mean[i] += share * (double)m[i];
	}
	for (int64_t b = 0; b < w->B; b++) {
		const double share = (double)length_of(w, b) / (double)w->real_rows;
		const real *m = w->m + b * w->C + from, *u = w->u + b * w->C + from;
		for (int64_t i = 0; i < wide; i++)
			var[i] += share * ((double)u[i] + ((double)m[i] - mean[i]) * ((double)m[i] - mean[i]));
	}
}

static void batch_of(const struct work *w, int64_t from, int64_t wide)
{
	double mean[TILE], var[TILE];
	const double *all = w->shared ? w->shared + 1 + from : NULL;
	if (!all) over_samples(w, from, wide, mean, var);
	for (int64_t i = 0; i < wide; i++) {
		w->bn_mean[from + i] = (real)(all ? all[i] : mean[i]);
		w->bn_var[from + i] = (real)(all ? all[w->C + i] / (double)w->real_rows : var[i]);
	}
}

/* The moments of each token of some rows, and their part in M and V. */
static void layer_of_tokens(const struct work *w, const struct nr_view *x, int64_t r, int64_t rows)
{
	for (const int64_t end = r + rows; r < end; r++) {
		const real *row = nr_row(x, r), mean = nr_sum(w->C, row) / (real)w->C;
		w->ln_mean[r] = mean;
		w->ln_var[r] = nr_sum_sq_about(w->C, row, mean) / (real)w->C;
		w->row_mean[r] = (real)w->p[LN] * mean;
		w->row_var[r] = (real)w->q[LN] * w->ln_var[r];
	}
}

/* M and V of sample b, without what each token adds. */
static void mix(const struct work *w, int64_t b)
{
	const int sample = w->conf->ln_scope == SAMPLE, bn = w->conf->use_bn;
	const double ln_mean = sample ? w->p[LN] * (double)w->ln_mean[b] : 0, ln_var = sample ? w->q[LN] * (double)w->ln_var[b] : 0;
	for (int64_t i = 0, at = b * w->C; i < w->C; i++, at++) {
		w->mean[at] = (real)(w->p[IN] * (double)w->m[at] + ln_mean + (bn ? w->p[BN] * (double)w->bn_mean[i] : 0));
		w->var[at] = (real)(w->q[IN] * (double)w->u[at] + ln_var + (bn ? w->q[BN] * (double)w->bn_var[i] : 0));
	}
}

static void of_samples(const struct nr_call *k, const struct work *w)
{
	const struct nr_view *x = &k->x[X];
	const int64_t C = w->C;
	real *means = k->scratch, *squares = means + w->b.count * C;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < w->b.count; q++) {
		int64_t rows, r = nr_block(&w->b, q, &rows);
		const int64_t n = nr_max64(nr_min64(length_of(w, r / w->T) - r % w->T, rows), 0);
		nr_column_active->moments(n, C, nr_row(x, r), C, means + q * C, squares + q * C);
		if (w->row_mean) layer_of_tokens(w, x, r, rows);
	}
#pragma omp parallel for schedule(static)
	for (int64_t b = 0; b < w->B; b++) {
		merge(w, b, means, squares);
		if (!w->row_mean) layer_of_sample(w, b);
	}
}

static void statistics(const struct nr_call *k, const struct work *w)
{
	const int64_t C = w->C;
	if (!w->shared) of_samples(k, w);
	if (!w->conf->use_bn) return;
	if (!k->ex->train) {
		memcpy(w->bn_mean, k->x[RUNNING_MEAN].p, (size_t)C * sizeof(real));
		memcpy(w->bn_var, k->x[RUNNING_VAR].p, (size_t)C * sizeof(real));
		return;
	}
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < C; i += TILE) batch_of(w, i, nr_min64(TILE, C - i));
	const real *mean = k->x[RUNNING_MEAN].p, *var = k->x[RUNNING_VAR].p, m = w->conf->momentum;
	real *next = k->pending;
	for (int64_t i = 0; i < C; i++) {
		next[i] = (1 - m) * mean[i] + m * w->bn_mean[i];
		next[C + i] = (1 - m) * var[i] + m * w->bn_var[i];
	}
}

/* Rows r .. of one sample as the kernels take them. */
static struct nr_blend blend_of(const struct nr_call *k, const struct work *w, int64_t r, int64_t rows)
{
	const int64_t at = r / w->T * w->C;
	return (struct nr_blend){ .rows = rows, .C = w->C, .x = nr_row(&k->x[X], r), .ldx = w->C, .mean = w->mean + at,
		.var = w->var + at, .row_mean = w->row_mean ? w->row_mean + r : NULL, .row_var = w->row_var ? w->row_var + r : NULL,
		.gain = k->x[WEIGHT].p, .bias = k->x[BIAS].p, .eps = w->conf->eps };
}

static void write(const struct nr_call *k, const struct work *w)
{
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < w->b.count; q++) {
		int64_t rows, r = nr_block(&w->b, q, &rows);
		const struct nr_blend b = blend_of(k, w, r, rows);
		nr_blend_active->forward(&b, nr_row(&k->y[0], r), w->C);
	}
}

static void forward(const struct nr_call *k)
{
	const struct work w = work_of(k);
	statistics(k, &w);
#pragma omp parallel for schedule(static)
	for (int64_t b = 0; b < w.B; b++) mix(&w, b);
	write(k, &w);
}

static void rebuild(const struct nr_call *k)
{
	const struct work w = work_of(k);
	write(k, &w);
}

static void commit(const struct nr_call *k)
{
	const size_t row = (size_t)k->x[X].c * sizeof(real);
	if (!k->ex->train || !((const struct switching *)k->node->attr)->use_bn) return;
	memcpy(k->x[RUNNING_MEAN].p, k->pending, row);
	memcpy(k->x[RUNNING_VAR].p, (const char *)k->pending + row, row);
}

/* ---- backward --------------------------------------------------------------------------------------------------- */

struct grad {
	real *parts[4];                 /* (blocks,C): of gain, bias, M, V */
	real *dm, *du;                  /* (B,C): first dM, dV summed over a sample's tokens */
	real *bn_mean, *bn_var;         /* (C): dM, dV summed over all samples */
	real *row_mean, *row_var;       /* (rows): summed over a token's channels, if LN sees tokens */
	double *weights;                /* (B,2,4): a sample's part of dp and dq; sums of dM, dV */
};

static struct grad grad_of(const struct nr_call *k, const struct work *w)
{
	struct grad g = { .weights = k->scratch };
	real *s = (real *)(g.weights + 8 * w->B);
	const int64_t Q = w->b.count * w->C, N = w->B * w->C;
	for (int i = 0; i < 4; i++) g.parts[i] = s + i * Q;
	g.dm = s + 4 * Q, g.du = g.dm + N, g.bn_mean = g.du + N, g.bn_var = g.bn_mean + w->C;
	if (w->row_mean) g.row_mean = g.bn_var + w->C, g.row_var = g.row_mean + w->B * w->T;
	return g;
}

static void block_sums(const struct nr_call *k, const struct work *w, const struct grad *g, int64_t q)
{
	int64_t rows, r = nr_block(&w->b, q, &rows);
	const struct nr_blend b = blend_of(k, w, r, rows);
	real *part[4];
	for (int i = 0; i < 4; i++) part[i] = memset(g->parts[i] + q * w->C, 0, (size_t)w->C * sizeof(real));
	nr_blend_active->sums(&b, nr_row(&k->dy[0], r), w->C, &(struct nr_blend_sums){ part[0], part[1], part[2], part[3],
		g->row_mean ? g->row_mean + r : NULL, g->row_var ? g->row_var + r : NULL });
}

/* What a choice of statistic is worth: dM times each kind's mean, dV times each kind's variance, over sample b. The means
 * are taken from a level of the sample, which softmax's gradient does not see, so that an offset costs no digits. */
static void sample_sums(const struct work *w, const struct grad *g, int64_t b)
{
	const int64_t C = w->C, q = b * w->b.per;
	const real *m = w->m + b * C, *u = w->u + b * C, level = nr_sum(C, m) / (real)C;
	real *sm = memset(g->dm + b * C, 0, (size_t)C * sizeof(real)), *sv = memset(g->du + b * C, 0, (size_t)C * sizeof(real));
	double *p = g->weights + 8 * b, *v = p + 4;
	nr_row_active->col_sum(w->b.per, C, g->parts[2] + q * C, C, sm);
	nr_row_active->col_sum(w->b.per, C, g->parts[3] + q * C, C, sv);
	memset(p, 0, 8 * sizeof *p);
	for (int64_t i = 0; i < C; i++) {
		p[IN] += (double)sm[i] * ((double)m[i] - (double)level);
		v[IN] += (double)sv[i] * (double)u[i];
		if (w->conf->use_bn) {
			p[BN] += (double)sm[i] * ((double)w->bn_mean[i] - (double)level);
			v[BN] += (double)sv[i] * (double)w->bn_var[i];
		}
		p[KINDS] += (double)sm[i];
		v[KINDS] += (double)sv[i];
	}
	if (!w->row_mean) {
		p[LN] = p[KINDS] * ((double)w->ln_mean[b] - (double)level);
		v[LN] = v[KINDS] * (double)w->ln_var[b];
	}
	for (int64_t r = b * w->T; w->row_mean && r < (b + 1) * w->T; r++) {
		p[LN] += (double)g->row_mean[r] * ((double)w->ln_mean[r] - (double)level);
		v[LN] += (double)g->row_var[r] * (double)w->ln_var[r];
	}
}

/* Through softmax into the weights of the mean (which = 0) or of the variance. */
static void weight_gradient(const struct nr_call *k, const struct work *w, const struct grad *g, int which)
{
	const int n = w->conf->use_bn ? 3 : 2, in = which ? VAR_WEIGHT : MEAN_WEIGHT;
	const double *p = which ? w->q : w->p;
	double d[KINDS] = { 0 }, mean = 0;
	for (int64_t b = 0; b < w->B; b++)
		for (int i = 0; i < n; i++) d[i] += g->weights[8 * b + 4 * which + i];
	for (int i = 0; i < n; i++) mean += p[i] * d[i];
	for (int i = 0; i < n && k->want >> in & 1; i++) nr_put((real *)k->dx[in].p + i, (real)(p[i] * (d[i] - mean)), k->add[in]);
}

/* dM and dV of sample b into shift and slope of dx: through m and u, and through the LN and BN that are made of them. */
static void shares(const struct nr_call *k, const struct work *w, const struct grad *g, int64_t b)
{
	const int64_t C = w->C, n = length_of(w, b);
	const int sample = !w->row_mean, bn = w->conf->use_bn && k->ex->train;
	const double inv = n ? 1 / (double)n : 0, share = (double)n / (double)w->real_rows;
	const double inv_var = w->conf->variant == OFFICIAL && n > 1 ? 1 / (double)(n - 1) : inv;
	const double ln_dm = sample ? w->p[LN] * g->weights[8 * b + KINDS] / (double)C : 0;
	const double ln_dv = sample ? w->q[LN] * g->weights[8 * b + 4 + KINDS] / (double)C : 0;
	const double ln_mean = sample ? (double)w->ln_mean[b] : 0;
	for (int64_t i = 0, at = b * C; i < C; i++, at++) {
		const double m = (double)w->m[at];
		double dm = w->p[IN] * (double)g->dm[at], du = w->q[IN] * (double)g->du[at] + ln_dv;
		if (sample) dm += ln_dm + 2 * ln_dv * (m - ln_mean);
		if (bn) {
			const double dv = w->q[BN] * (double)g->bn_var[i];
			dm += share * (w->p[BN] * (double)g->bn_mean[i] + 2 * dv * (m - (double)w->bn_mean[i]));
			du += share * dv;
		}
		g->dm[at] = (real)(dm * inv);
		g->du[at] = (real)(2 * du * inv_var);
	}
}

static void block_apply(const struct nr_call *k, const struct work *w, const struct grad *g, int64_t q)
{
	int64_t rows, r = nr_block(&w->b, q, &rows);
	const int64_t C = w->C, b = r / w->T, n = nr_max64(nr_min64(length_of(w, b) - r % w->T, rows), 0);
	const real *dy = nr_row(&k->dy[0], r);
	real *dx = nr_row(&k->dx[X], r);
	struct nr_blend_grad d = { w->m + b * C, g->dm + b * C, g->du + b * C, NULL, NULL, NULL };
	if (w->row_mean) d.row_center = w->ln_mean + r, d.row_shift = g->row_mean + r, d.row_slope = g->row_var + r;
	struct nr_blend part = blend_of(k, w, r, n);
	nr_blend_active->apply(&part, dy, C, &d, dx, C, k->add[X]);
	if (n == rows) return;
	part = blend_of(k, w, r + n, rows - n);         /* padding has a share in its own token's statistics only */
	d.center = d.shift = d.slope = NULL;
	if (w->row_mean) d.row_center += n, d.row_shift += n, d.row_slope += n;
	nr_blend_active->apply(&part, dy + n * C, C, &d, dx + n * C, C, k->add[X]);
}

static void sums(const struct nr_call *k, const struct work *w, const struct grad *g)
{
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < w->b.count; q++) block_sums(k, w, g, q);
#pragma omp parallel for schedule(static)
	for (int64_t b = 0; b < w->B; b++) sample_sums(w, g, b);
	nr_fold(w->B, w->C, g->dm, g->bn_mean, 0);
	nr_fold(w->B, w->C, g->du, g->bn_var, 0);
}

static int64_t share(const struct nr_node *k, int backward)
{
	const struct switching *c = k->attr;
	(void)backward;
	return c->sync && c->use_bn ? 1 + 2 * nr_cols(k->in[X]) : 0;
}

/* Forward: batch norm's moments; backward: dM and dV, summed. */
static void part(const struct nr_call *k, int backward, double *mine)
{
	const struct work w = work_of(k);
	const int64_t C = w.C;
	mine[0] = 0;
	for (int64_t b = 0; b < w.B; b++) mine[0] += (double)length_of(&w, b);
	if (backward) {
		const struct grad g = grad_of(k, &w);
		sums(k, &w, &g);
		for (int64_t i = 0; i < C; i++) mine[1 + i] = (double)g.bn_mean[i], mine[1 + C + i] = (double)g.bn_var[i];
		return;
	}
	of_samples(k, &w);
	for (int64_t i = 0; i < C; i += TILE) over_samples(&w, i, nr_min64(TILE, C - i), mine + 1 + i, mine + 1 + C + i);
	for (int64_t i = 0; i < C; i++) mine[1 + C + i] *= mine[0];
}

static void backward(const struct nr_call *k)
{
	const struct work w = work_of(k);
	const struct grad g = grad_of(k, &w);
	const int64_t C = w.C;
	if (!w.shared) sums(k, &w, &g);
	for (int64_t i = 0; w.shared && i < C; i++) g.bn_mean[i] = (real)w.shared[1 + i], g.bn_var[i] = (real)w.shared[1 + C + i];
	for (int i = 0; i < 2; i++) weight_gradient(k, &w, &g, i);
	for (int i = 0; i < 2; i++)
		if (k->want >> (WEIGHT + i) & 1) nr_fold(w.b.count, C, g.parts[i], k->dx[WEIGHT + i].p, k->add[WEIGHT + i]);
	if (!(k->want & 1)) return;
	if (w.row_mean) {                       /* of a token: through its own mean and variance */
		nr_array_scale(w.B * w.T, (real)(w.p[LN] / (double)C), g.row_mean, g.row_mean);
		nr_array_scale(w.B * w.T, (real)(2 * w.q[LN] / (double)C), g.row_var, g.row_var);
	}
#pragma omp parallel for schedule(static)
	for (int64_t b = 0; b < w.B; b++) shares(k, &w, &g, b);
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < w.b.count; q++) block_apply(k, &w, &g, q);
}

static void cost(const struct nr_node *k, double *there, double *back)
{
	*there = 16 * (double)nr_len(k->in[X]);
	*back = 26 * (double)nr_len(k->in[X]);
}

/* ---- the norm --------------------------------------------------------------------------------------------------- */

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_switch, x, text); }

static const struct nr_case cases[] = {
	{ "2x5x12", "eps=1e-3" }, { "3x4x7 3:i1-4", "valid | eps=0.01" }, { "2x70x3 2:i1-70", "valid | eps=0.1,ln_scope=sample" },
	{ "3x4x7", "ln_scope=sample,momentum=0.5" }, { "3x1x5", "eps=0.1" }, { "1x70x2", "eps=0.1" }, { "1x1x2", "eps=0.5" },
	{ "2x5x6", "variant=official,eps=1e-3" }, { "3x1x4", "variant=official,eps=0.1" }, { "7x5", "eps=0.1" },
	{ "2x3x133", "eps=0.1" }, { NULL, NULL },
};
static const struct nr_case alone_cases[] = {
	{ "2x5x12", "use_bn=0,eps=1e-3" }, { "3x4x7 3:i1-4", "valid | use_bn=0,eps=0.1,ln_scope=sample" },
	{ "2x70x3", "use_bn=0,variant=official,eps=0.1" }, { "1x1x2", "use_bn=0,eps=0.5" }, { NULL, NULL },
};

#define KEEPS                                                                                                          \
	(NR_KEEP_X(X) | NR_KEEP_X(WEIGHT) | NR_KEEP_X(MEAN_WEIGHT) | NR_KEEP_X(VAR_WEIGHT) | NR_KEEP_X(5) | NR_KEEP_X(7))
#define OP                                                                                                             \
	.shape = shape, .forward = forward, .backward = backward, .rebuild = rebuild, .commit = commit, .cost = cost,  \
	.share = share, .part = part,                                                                                  \
	.keeps = KEEPS, .cheap = 1, .rebuild_keeps = KEEPS | NR_KEEP_X(BIAS), .try_case = try_case
#define FLAGS (NR_CHEAP | NR_STRIDED | NR_INPLACE_GRAD)

static const struct nr_op op = { .name = "switch", OP, .flags = FLAGS | NR_BATCHWISE | NR_SHARES_MOMENTS, .cases = cases };
/* Without BN no sample sees another. */
static const struct nr_op op_alone = { .name = "switch_alone", OP, .flags = FLAGS, .cases = alone_cases };

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	struct switching c = *(const struct switching *)conf;
	const int64_t C = nr_cols(x), kinds = c.use_bn ? 3 : 2;
	nr_t *valid = x->tok ? x->tok->valid : NULL, *in[NR_MAXIN] = { x };
	int count = WEIGHT;
	if (c.variant == OFFICIAL) c.ln_scope = SAMPLE;
	if (c.variant == OFFICIAL && valid)
		return nr_net_fail(n, NR_EVALUE, "switch", "the official variant has no padding mask; use variant=plain");
	in[count++] = nr_param(n, "weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(C));
	in[count++] = nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(C));
	in[count++] = nr_param(n, "mean_weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(kinds));
	in[count++] = nr_param(n, "var_weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(kinds));
	if (c.use_bn) {
		in[count++] = nr_buffer(n, "running_mean", NR_ZEROS, NR_SHAPE(C));
		in[count++] = nr_buffer(n, "running_var", c.variant == OFFICIAL ? NR_ZEROS : NR_ONES, NR_SHAPE(C));
	}
	if (valid) in[count++] = valid;
	return nr_apply_list(n, c.use_bn ? &op : &op_alone, &c, sizeof c, count, in);
}

const struct nr_norm nr_norm_switch = {
	.name = "switch", .alias = "sn", .title = "switchable normalization", .cite = "arXiv:1806.10779",
	.equation = "y = weight (x - M) / sqrt(V + eps) + bias; M = softmax(mean_weight) . (m_IN, m_LN, m_BN), V likewise",
	.about = "Means and variances over a sample's tokens, a token's channels and the whole batch are blended with learned "
		 "weights, one set for the means and one for the variances, so training chooses between instance, layer and batch "
		 "norm. In transformers LN is per token (ln_scope=token); the convolutional original takes the whole sample. The "
		 "released code uses an unbiased instance variance, derives the other two from it and starts running_var at 0 "
		 "(official); it has no mask. use_bn=0 leaves the batch out.",
	.needs = NR_NEED_BATCH, .conf_size = sizeof(struct switching), .options = options, .build = build, .op = { &op, &op_alone },
};
