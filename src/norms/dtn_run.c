/* DTN, forward and backward (see dtn.c for the equations). The unit of work is one head of one sample: its tokens are
 * gathered, mixed (math/token_mix.h) and normalised (math/token.h) while they are in the second-level cache. Units of a
 * sample follow each other on one thread; where samples are few, they are shared out one by one.
 *
 * Kept for backward: mean and variance of each token (and the official variant's scaling of each head). The mixed
 * statistics are made again: that costs less than memory of twice the size of x would. */
#include <omp.h>

#include "math/row.h"
#include "math/token.h"
#include "norms/dtn.h"

enum {
	FEW = 8,        /* fewer runs of samples are split by heads */
	RUNS = 4,       /* attention=free: runs of samples, each with a sum of dlogit */
};

struct run {
	const struct nr_call *k;
	const struct nr_dtn *c;
	int64_t B, T, C, H, d, S, N;        /* S special tokens, N on the grid */
	int64_t rows, share;                /* mixed rows: N / share, share = pool^2 */
	int64_t per, runs;                  /* samples per run */
	int mixed;                          /* 0: lam = 1 or no tokens on a grid: each token by itself */
	real *mean, *var, *rms;             /* stash: (B,T) (B,T) (B,T,H) */
	/* scratch of the call */
	int32_t *at;                        /* (N) mixed row of each token, when pooled */
	real *dmean, *dvar;                 /* (B,T,H) */
	real *dweight, *dbias;              /* (B,C) */
	real *dlam_mean, *dlam_var;         /* (B,H) */
	real *da;                           /* (B,H,3) */
	real *dlogit;                       /* (runs,H,rows,rows) */
	/* (B,T,C) when runs are split, else each thread has its own (T,C) */
	real *dz;
	real *threads; int64_t own;         /* `own` values per thread */
	int64_t total;                      /* values of all of it */
};

struct buffers { real *centre, *zeros, *u, *mq, *dmq, *mix, *dz; };

static int64_t lines(int64_t n) { return (n + 15) / 16 * 16; }
static int split(const struct run *r) { return r->runs < FEW; }

static struct nr_token_mix mix_of(const struct run *r)
{
	const struct nr_dtn *c = r->c;
	return (struct nr_token_mix){ .kind = c->mix, .n = r->rows, .h = c->h / c->pool, .w = c->w / c->pool,
		.c = 2 * r->d, .valid = r->rows, .reach = c->reach };
}

/* Gives the buffer its place, none without a base; returns where the next one begins. */
static int64_t place(real **p, real *base, int64_t at, int64_t n)
{
	*p = base ? base + at : NULL;
	return at + lines(n);
}

static struct buffers buffers(const struct run *r, real *base, int back, int64_t *total)
{
	struct buffers b;
	const struct nr_token_mix mix = mix_of(r);
	const int64_t uv = r->mixed ? r->rows * 2 * r->d : 0;
	int64_t at = place(&b.centre, base, 0, r->d);
	at = place(&b.zeros, base, at, 2 * r->d);
	at = place(&b.u, base, at, uv);
	at = place(&b.mq, base, at, uv);
	at = place(&b.dmq, base, at, back ? uv : 0);
	at = place(&b.mix, base, at, r->mixed ? (int64_t)nr_token_mix_work(&mix, r->c->valid || r->c->place) : 0);
	at = place(&b.dz, base, at, back && !split(r) ? r->T * r->C : 0);
	*total = at;
	return b;
}

static struct run run_of(const struct nr_node *n, real *stash, real *base, int back)
{
	const struct nr_dtn *c = n->attr;
	const nr_t *x = n->in[0];
	struct run r = { .c = c, .T = nr_rows_per_sample(x), .C = nr_cols(x), .H = c->heads };
	r.B = r.T ? nr_rows(x) / r.T : 0;
	r.d = r.C / r.H;
	r.N = r.T - c->special;
	r.mixed = r.N > 0 && (c->learn || c->lam != 1);
	r.S = r.mixed ? c->special : r.T;
	r.N = r.T - r.S;
	r.share = c->pool * c->pool;
	r.rows = r.N / r.share;
	r.per = back && c->mix == NR_MIX_FREE ? (r.B + RUNS - 1) / RUNS : 1;
	r.runs = r.per ? (r.B + r.per - 1) / r.per : 0;
	int64_t at = place(&r.mean, stash, 0, r.B * r.T);
	at = place(&r.var, stash, at, r.B * r.T);
	place(&r.rms, stash, at, c->official ? r.B * r.T * r.H : 0);
	real *map;
	at = place(&map, base, 0, c->pool > 1 ? r.N : 0);
	r.at = (int32_t *)(void *)map;
	if (back) {
		at = place(&r.dmean, base, at, r.B * r.T * r.H);
		at = place(&r.dvar, base, at, r.B * r.T * r.H);
		at = place(&r.dweight, base, at, r.B * r.C);
		at = place(&r.dbias, base, at, r.B * r.C);
		at = place(&r.dlam_mean, base, at, r.B * r.H);
		at = place(&r.dlam_var, base, at, r.B * r.H);
		at = place(&r.da, base, at, r.B * 3 * r.H);
		at = place(&r.dlogit, base, at, c->mix == NR_MIX_FREE ? r.runs * r.H * r.rows * r.rows : 0);
		at = place(&r.dz, base, at, split(&r) ? r.B * r.T * r.C : 0);
	}
	buffers(&r, base, back, &r.own);
	r.own = lines(r.own);
	r.total = place(&r.threads, base, at, r.own * n->threads);
	return r;
}

static struct run prepare(const struct nr_call *k, int back)
{
	struct run r = run_of(k->node, k->stash, k->scratch, back);
	const int64_t w = r.c->w, s = r.c->pool;
	r.k = k;
	for (int64_t i = 0; s > 1 && i < r.N; i++) r.at[i] = (int32_t)(i / w / s * (w / s) + i % w / s);
	return r;
}

int nr_dtn_shape(struct nr_node *n)
{
	const struct nr_dtn *c = n->attr;
	const nr_t *x = n->in[0], *valid = c->valid ? n->in[c->valid] : NULL;
	const nr_t *where = c->place ? n->in[c->place] : NULL;
	const int64_t T = nr_rows_per_sample(x), B = x->d[0];
	nr_out_like(n, 0, x);
	if (nr_expect(n, !valid || (valid->dtype == NR_I32 && nr_len(valid) == B), "one int32 length per sample"))
		return NR_ESHAPE;
	if (nr_expect(n, !where || (where->dtype == NR_I32 && nr_len(where) == B * (T - c->special)),
		"one int32 place per token"))
		return NR_ESHAPE;
	const struct run f = run_of(n, NULL, NULL, 0), b = run_of(n, NULL, NULL, 1);
	n->stash = (size_t)(2 * lines(B * T) + (c->official ? B * T * c->heads : 0)) * sizeof(real);
	n->scratch = (size_t)nr_max64(f.total, b.total) * sizeof(real);
	return 0;
}

void nr_dtn_cost(const struct nr_node *n, double *forward, double *backward)
{
	const struct run r = run_of(n, NULL, NULL, 0);
	const double values = (double)nr_len(n->in[0]), square = (double)r.rows * (double)r.rows;
	*forward = (r.c->official ? 16 : 13) * values + (4 * (double)(r.B * r.C) + 12 * (double)r.H) * square;
	*backward = (r.c->official ? 25 : 20) * values + (8 * (double)(r.B * r.C) + 12 * (double)r.H) * square;
}

/* ---- one unit --------------------------------------------------------------------------------------------------- */

/* Mean and variance of rows from .. to - 1 as tokens; in the official variant of z = x / sqrt(mean_head x^2 + eps). */
static void moments(const struct run *r, int64_t from, int64_t to)
{
	const int64_t C = r->C, d = r->d;
	const real n = r->c->official && C > 1 ? (real)(C - 1) : (real)C;
	for (int64_t i = from; i < to; i++) {
		const real *x = nr_row(&r->k->x[0], i);
		real mean = 0, square = 0, *rms = r->rms + i * r->H;
		for (int64_t h = 0; r->c->official && h < r->H; h++) {
			rms[h] = nr_sqrt(nr_dot(d, x + h * d, x + h * d) / (real)d + (real)r->c->eps);
			mean += nr_sum(d, x + h * d) / rms[h];
		}
		r->mean[i] = mean = (r->c->official ? mean : nr_sum(C, x)) / (real)C;
		if (!r->c->official) square = nr_sum_sq_about(C, x, mean);
		for (int64_t h = 0; r->c->official && h < r->H; h++)
			square += nr_sum_sq_about(d, x + h * d, mean * rms[h]) / (rms[h] * rms[h]);
		r->var[i] = square / n;
	}
}

static real sigmoid(real x) { return 1 / (1 + nr_exp(-x)); }
static real lam_of(const struct run *r, int input, int64_t h)
{
	return r->c->learn ? sigmoid(((const real *)r->k->x[input].p)[h]) : r->c->lam;
}
static real lam_mean(const struct run *r, int64_t h)
{
	return r->c->only_var ? 1 : lam_of(r, r->c->mean_logit, h);
}
static real lam_var(const struct run *r, int64_t h)
{
	return lam_of(r, r->c->var_logit ? r->c->var_logit : r->c->mean_logit, h);
}

/* Tokens from .. from + n - 1 of sample b, head h; as they are, each token by itself (lam = 1). */
static struct nr_token_unit unit(const struct run *r, const struct buffers *f, int64_t b, int64_t h,
	int64_t from, int64_t n)
{
	const int64_t row = b * r->T + from, C = r->C;
	const struct nr_call *k = r->k;
	return (struct nr_token_unit){ .n = n, .d = r->d,
		.x = nr_row(&k->x[0], b * r->T) + from * C + h * r->d, .ldx = C,
		.rms = r->c->official ? r->rms + row * r->H + h : NULL, .ldr = r->H,
		.mean = r->mean + row, .var = r->var + row,
		.centre = f->zeros, .mq = f->zeros, .lam_mean = 1, .lam_var = 1, .eps = (real)r->c->eps,
		.weight = r->c->weight ? (const real *)k->x[r->c->weight].p + h * r->d : NULL,
		.bias = r->c->bias ? (const real *)k->x[r->c->bias].p + h * r->d : NULL };
}

static void outputs(const struct run *r, int64_t b, int64_t h, int64_t from, struct nr_token_unit *u)
{
	u->y = nr_row(&r->k->y[0], b * r->T) + from * r->C + h * r->d;
	u->ldy = r->C;
}

static void gradients(const struct run *r, real *dz, int64_t b, int64_t h, int64_t from,
	struct nr_token_unit *u)
{
	const int64_t at = (b * r->T + from) * r->H + h;
	u->dy = nr_row(&r->k->dy[0], b * r->T) + from * r->C + h * r->d;
	u->dz = dz + from * r->C + h * r->d;
	u->lddy = u->lddz = r->C;
	u->dmean = r->dmean + at;
	u->dvar = r->dvar + at;
	u->ldd = r->H;
	if (!u->weight) return;
	u->dweight = r->dweight + b * r->C + h * r->d;
	u->dbias = r->dbias + b * r->C + h * r->d;
}

/* The grid's tokens of one head: centre, u, and the mixed statistics. a: room for 3. */
static struct nr_token_mix blend(const struct run *r, const struct buffers *f, int64_t b, int64_t h,
	struct nr_token_unit *u, real *a)
{
	const struct nr_call *k = r->k;
	struct nr_token_mix mix = mix_of(r);
	if (r->c->valid)
		mix.valid = nr_max64(0, nr_min64(r->N, nr_ints(&k->x[r->c->valid])[b] - r->c->special));
	if (r->c->place) mix.place = nr_ints(&k->x[r->c->place]) + b * r->N;
	if (r->c->mix == NR_MIX_FREE) mix.logit = (const real *)k->x[r->c->matrix].p + h * r->rows * r->rows;
	for (int i = 0; r->c->mix == NR_MIX_POS && i < 3; i++)
		a[i] = ((const real *)k->x[r->c->matrix].p)[h * 3 + i] * (i && r->c->official ? -1 : 1);
	mix.a = a;
	mix.work = f->mix;
	const int64_t counted = r->share > 1 ? r->N : mix.valid;
	memset(f->centre, 0, (size_t)r->d * sizeof(real));
	if (!u->rms) nr_row_active->col_sum(counted, r->d, u->x, u->ldx, f->centre);
	for (int64_t i = 0; u->rms && i < counted; i++)
		nr_row_axpy(r->d, 1 / u->rms[i * u->ldr], u->x + i * u->ldx, f->centre);
	nr_row_scale(r->d, 1 / (real)nr_max64(counted, 1), f->centre, f->centre);
	u->centre = f->centre;
	u->mq = f->mq;
	u->ldmq = 2 * r->d;
	u->at = r->share > 1 ? r->at : NULL;
	u->lam_mean = lam_mean(r, h);
	u->lam_var = lam_var(r, h);
	nr_token_active->gather(u, r->rows, 1 / (real)r->share, f->u);
	nr_token_mix_forward(&mix, f->u, f->mq);
	return mix;
}

static struct buffers own_buffers(const struct run *r, int back)
{
	int64_t total;
	struct buffers f = buffers(r, r->threads + r->own * omp_get_thread_num(), back, &total);
	memset(f.zeros, 0, (size_t)(2 * r->d) * sizeof(real));
	return f;
}

/* ---- forward ---------------------------------------------------------------------------------------------------- */

static void unit_forward(const struct run *r, const struct buffers *f, int64_t b, int64_t h)
{
	real a[3];
	struct nr_token_unit u = unit(r, f, b, h, 0, r->S);
	outputs(r, b, h, 0, &u);
	nr_token_active->normalize(&u);
	if (!r->mixed) return;
	u = unit(r, f, b, h, r->S, r->N);
	outputs(r, b, h, r->S, &u);
	blend(r, f, b, h, &u, a);
	nr_token_active->normalize(&u);
}

void nr_dtn_forward(const struct nr_call *k)
{
	const struct run r = prepare(k, 0);
	const int threads = (int)nr_min64(k->node->threads, omp_get_max_threads());
#pragma omp parallel num_threads(threads)
	{
		const struct buffers f = own_buffers(&r, 0);
		if (split(&r)) {
#pragma omp for schedule(static)
			for (int64_t i = 0; i < r.B * r.T; i += NR_CHUNK)
				moments(&r, i, nr_min64(i + NR_CHUNK, r.B * r.T));
#pragma omp for schedule(dynamic)
			for (int64_t i = 0; i < r.B * r.H; i++) unit_forward(&r, &f, i / r.H, i % r.H);
		} else {
#pragma omp for schedule(dynamic)
			for (int64_t b = 0; b < r.B; b++) {
				moments(&r, b * r.T, (b + 1) * r.T);
				for (int64_t h = 0; h < r.H; h++) unit_forward(&r, &f, b, h);
			}
		}
	}
}

/* ---- backward --------------------------------------------------------------------------------------------------- */

/* dlogit: that of this run and head, or NULL. dz: the sample's. */
static void unit_backward(const struct run *r, const struct buffers *f, int64_t b, int64_t h, real *dz,
	real *dlogit)
{
	const struct nr_dtn *c = r->c;
	const int want = c->matrix && r->k->want >> c->matrix & 1;
	real a[3], lam[2] = { 0 }, *da = r->da + (b * r->H + h) * 3;
	real *of_mean = r->dlam_mean + b * r->H + h, *of_var = r->dlam_var + b * r->H + h;
	struct nr_token_unit u = unit(r, f, b, h, 0, r->S);
	gradients(r, dz, b, h, 0, &u);
	da[0] = da[1] = da[2] = 0;
	if (u.dweight) {
		memset(u.dweight, 0, (size_t)r->d * sizeof(real));
		memset(u.dbias, 0, (size_t)r->d * sizeof(real));
	}
	nr_token_active->gradients(&u);
	if (r->mixed) {
		u = unit(r, f, b, h, r->S, r->N);
		gradients(r, dz, b, h, r->S, &u);
		const struct nr_token_mix mix = blend(r, f, b, h, &u, a);
		u.dmq = f->dmq;
		u.dlam = lam;
		if (u.at) memset(f->dmq, 0, (size_t)(r->rows * 2 * r->d) * sizeof(real));
		nr_token_active->gradients(&u);
		nr_token_mix_backward(&mix, f->u, f->dmq, f->mq, want && c->mix == NR_MIX_POS ? da : NULL,
			want ? dlogit : NULL);
		nr_token_active->scatter(&u, 1 / (real)r->share, f->u, f->mq);
	}
	for (int i = 1; c->official && i < 3; i++) da[i] = -da[i];
	*of_mean = lam[0] * u.lam_mean * (1 - u.lam_mean);
	*of_var = lam[1] * u.lam_var * (1 - u.lam_var);
	if (!c->var_logit) *of_mean += *of_var;  /* one weight for both */
}

/* dx of rows from .. to - 1 of sample b, from dz and what the tokens' own statistics got from all heads. */
static void spread(const struct run *r, const real *dz, int64_t b, int64_t from, int64_t to)
{
	const int64_t C = r->C, H = r->H;
	const real n = r->c->official && C > 1 ? (real)(C - 1) : (real)C;
	for (int64_t t = from; t < to; t++) {
		const int64_t i = b * r->T + t;
		const real *rms = r->c->official ? r->rms + i * H : NULL;
		const real dmean = nr_sum(H, r->dmean + i * H) / (real)C, dvar = 2 * nr_sum(H, r->dvar + i * H) / n;
		nr_token_active->spread(rms ? H : 1, rms ? r->d : C, nr_row(&r->k->x[0], i), rms, r->mean[i],
			dmean, dvar, dz + t * C, nr_row(&r->k->dx[0], i), r->k->add[0]);
	}
}

/* Head h of the samples of run q, which share a sum of dlogit. */
static void run_backward(const struct run *r, const struct buffers *f, int64_t q, int64_t h)
{
	const int64_t square = r->rows * r->rows, end = nr_min64(r->B, (q + 1) * r->per);
	real *dlogit = r->c->mix == NR_MIX_FREE ? r->dlogit + (q * r->H + h) * square : NULL;
	if (dlogit) memset(dlogit, 0, (size_t)square * sizeof(real));
	for (int64_t b = q * r->per; b < end; b++) unit_backward(r, f, b, h, r->dz + b * r->T * r->C, dlogit);
}

/* The partial sums (parts,n) become the gradient of an input. */
static void fold(const struct run *r, int input, int64_t parts, int64_t n, const real *part)
{
	const struct nr_call *k = r->k;
	if (input && k->want >> input & 1) nr_fold(parts, n, part, k->dx[input].p, k->add[input]);
}

void nr_dtn_backward(const struct nr_call *k)
{
	const struct run r = prepare(k, 1);
	const struct nr_dtn *c = r.c;
	const int threads = (int)nr_min64(k->node->threads, omp_get_max_threads());
#pragma omp parallel num_threads(threads)
	{
		const struct buffers f = own_buffers(&r, 1);
		if (split(&r)) {
#pragma omp for schedule(dynamic)
			for (int64_t i = 0; i < r.runs * r.H; i++) run_backward(&r, &f, i / r.H, i % r.H);
#pragma omp for schedule(static)
			for (int64_t i = 0; i < r.B * nr_chunks(r.T); i++) {
				const int64_t b = i / nr_chunks(r.T), t = i % nr_chunks(r.T) * NR_CHUNK;
				spread(&r, r.dz + b * r.T * r.C, b, t, nr_min64(t + NR_CHUNK, r.T));
			}
		} else {
#pragma omp for schedule(dynamic)
			for (int64_t b = 0; b < r.B; b++) {
				for (int64_t h = 0; h < r.H; h++) unit_backward(&r, &f, b, h, f.dz, NULL);
				spread(&r, f.dz, b, 0, r.T);
			}
		}
	}
	fold(&r, c->weight, r.B, r.C, r.dweight);
	fold(&r, c->bias, r.B, r.C, r.dbias);
	fold(&r, c->mean_logit, r.B, r.H, r.dlam_mean);
	fold(&r, c->var_logit, r.B, r.H, r.dlam_var);
	if (c->mix == NR_MIX_POS) fold(&r, c->matrix, r.B, 3 * r.H, r.da);
	else if (r.mixed) fold(&r, c->matrix, r.runs, r.H * r.rows * r.rows, r.dlogit);
	else if (c->matrix && !k->add[c->matrix])
		memset(k->dx[c->matrix].p, 0, (size_t)nr_len(k->node->in[c->matrix]) * sizeof(real));
}
