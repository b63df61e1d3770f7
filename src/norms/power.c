/* power: y = weight x / sqrt(phi + eps) + bias, phi a running mean square per channel. Shen et al. 2020, Algorithms 1 and 2.
 *
 * phi moves forward, nu backward:  phi <- alpha_fwd phi + (1 - alpha_fwd) phiB, phiB = mean of x^2 over the real tokens;
 * with z = x / sqrt(phi* + eps), g = dy weight:  dx = (g - nu z) / sqrt(phi' + eps),  Gamma = mean(z^2), Lambda = mean(g z),
 * nu <- nu (1 - (1 - alpha_bwd) Gamma) + (1 - alpha_bwd) Lambda.  phi* is phiB in the first `warmup` steps, then the phi
 * before this step. The variants differ in phi', in warm-up and in what the means see (`choose`); pnv (PN-V of the paper)
 * is the exact norm by phiB. With groups a token's groups of channels are first divided by their root mean square. */
#include <stdbool.h>

#include "graph/blocks.h"
#include "graph/net.h"
#include "math/column.h"
#include "math/row.h"
#include "norms/norms.h"

enum variant { PAPER, OFFICIAL, DTN, PNV };
static const char *const variants[] = { "paper", "official", "dtn", "pnv", NULL };

struct power { float eps, alpha_fwd, alpha_bwd; int64_t warmup, groups; int32_t variant; bool sync; };

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct power, eps, 1e-5, 0, 1, "added to the mean square"),
	NR_OPT_FLOAT(struct power, alpha_fwd, 0.9, 0, 1, "weight of the old running mean square"),
	NR_OPT_FLOAT(struct power, alpha_bwd, 0.9, 0, 1, "weight of the old running gradient statistic"),
	NR_OPT_INT(struct power, warmup, 0, 0, 1e12, "steps that use the batch's own mean square"),
	NR_OPT_INT(struct power, groups, 0, -1, 1e6, "groups of channels divided by their RMS first; 0: none; -1: the attention heads"),
	NR_OPT_ENUM(struct power, variant, "paper", variants, "the paper's steps, those of released code, or the exact gradient"),
	NR_OPT_BOOL(struct power, sync, "0", NR_SYNC_HELP),
	NR_OPT_END
};

enum { X, WEIGHT, BIAS, PHI, NU, STEPS, VALID };
#define KEEPS (NR_KEEP_X(X) | NR_KEEP_X(WEIGHT) | NR_KEEP_X(NU) | NR_KEEP_X(VALID))

struct kept { real *inv, *back, *square; };     /* (C): 1/sqrt(phi* + eps), 1/sqrt(phi' + eps), mean x^2 that Gamma sees */
static struct kept kept(const struct nr_call *k)
{
	real *s = k->stash;
	const int64_t C = k->x[X].c;
	return (struct kept){ s, s + C, s + 2 * C };
}

struct next { real *phi, *nu, *steps; };        /* buffers after this step */
static struct next next_of(const struct nr_call *k)
{
	real *s = k->pending;
	const int64_t C = k->x[X].c;
	return (struct next){ s, s + C, s + 2 * C };
}

static int shape(struct nr_node *k)
{
	const nr_t *x = k->in[X];
	const int64_t C = nr_cols(x);
	nr_out_like(k, 0, x);
	k->stash = (size_t)(3 * C) * sizeof(real);
	k->pending = (size_t)(2 * C + 1) * sizeof(real);
	k->scratch = (size_t)((3 * nr_blocks_most(x) + 6) * C) * sizeof(real);
	return nr_expect(k, k->n_in == VALID || nr_len(k->in[VALID]) * nr_rows_per_sample(x) == nr_rows(x), "one length per sample");
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

struct walk { struct nr_blocks b; const int32_t *valid; int64_t t; };
struct piece { int64_t row, rows, real_rows; };         /* padding follows the real rows */

static struct walk walk_of(const struct nr_call *k, int packed)
{
	const int32_t *valid = k->node->n_in > VALID ? nr_ints(&k->x[VALID]) : NULL;
	return (struct walk){ nr_blocks_of(&k->x[X], packed && !valid && !nr_has_gaps(k->node->in[X])), valid, k->x[X].t };
}
static struct piece piece_of(const struct walk *w, int64_t q)
{
	struct piece p;
	p.row = nr_block(&w->b, q, &p.rows);
	p.real_rows = w->valid ? nr_max64(nr_min64(w->valid[p.row / w->t] - p.row % w->t, p.rows), 0) : p.rows;
	return p;
}
static int64_t count_real(const struct walk *w)
{
	int64_t n = 0;
	for (int64_t q = 0; q < w->b.count; q++) n += piece_of(w, q).real_rows;
	return n;
}

/* What the shards of a batch tell each other: two sums for each channel, of real rows and of padding, then how many rows are real, and
 * how many there are. */
struct counts { real n, all; };
static struct counts counts_of(const struct nr_call *k, const struct walk *w)
{
	const double *s = k->shared ? k->shared + 2 * k->x[X].c : NULL;
	const double n = s ? s[0] : (double)count_real(w);
	return (struct counts){ (real)(n > 1 ? n : 1), (real)(s ? s[1] : (double)k->x[X].rows) };
}
static void tell(const struct nr_call *k, const struct walk *w, const real *first, const real *second, double *mine)
{
	const int64_t C = k->x[X].c;
	for (int64_t i = 0; i < C; i++) mine[i] = (double)first[i], mine[C + i] = (double)second[i];
	mine[2 * C] = (double)count_real(w);
	mine[2 * C + 1] = (double)k->x[X].rows;
}
static int64_t share(const struct nr_node *k, int backward)
{
	const struct power *c = k->attr;
	(void)backward;
	return c->sync ? 2 * nr_cols(k->in[X]) + 2 : 0;
}

static real *zeroed(real *p, int64_t C) { return memset(p, 0, (size_t)C * sizeof(real)); }

/* ---- forward ---------------------------------------------------------------------------------------------------- */

/* Sums of squares of the real rows and of the padding into real_sq, pad_sq (C). */
static void squares(const struct nr_call *k, const struct walk *w, real *real_sq, real *pad_sq, real *part)
{
	const struct nr_view *x = &k->x[X];
	const int64_t C = x->c, n = w->b.count;
	const int padded = w->valid && ((const struct power *)k->node->attr)->variant != PAPER;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < n; q++) {
		const struct piece p = piece_of(w, q);
		const real *row = nr_row(x, p.row);
		nr_column_active->sum_sq(p.real_rows, C, row, C, zeroed(part + q * C, C));
		if (padded) nr_column_active->sum_sq(p.rows - p.real_rows, C, row + p.real_rows * C, C, zeroed(part + (n + q) * C, C));
	}
	nr_fold(n, C, part, real_sq, 0);
	if (padded) nr_fold(n, C, part + n * C, pad_sq, 0);
	else zeroed(pad_sq, C);
}

/* Which mean squares the step uses, and what the buffers become. */
static void choose(const struct nr_call *k, const struct walk *w, const real *real_sq, const real *pad_sq)
{
	const struct power *c = k->node->attr;
	const struct counts rows = counts_of(k, w);
	const real *phi = k->x[PHI].p, n = rows.n, a = c->alpha_fwd;
	const int64_t C = k->x[X].c, t = 1 + (int64_t)nr_row(&k->x[STEPS], 0)[0];
	const int released = c->variant == OFFICIAL || c->variant == DTN;
	const struct kept s = kept(k);
	const struct next next = next_of(k);
	for (int64_t i = 0; i < C; i++) {
		const real batch = real_sq[i] / n;
		real moved = phi[i];
		if (released && t < c->warmup) moved = moved * (real)(t - 1) / (real)t + batch / (real)t;
		moved = a * moved + (1 - a) * batch;
		const real there = t <= c->warmup || c->variant == PNV ? batch : phi[i];
		const real back = !released ? there : c->variant == DTN && t >= c->warmup ? moved : batch;
		s.inv[i] = 1 / nr_sqrt(there + c->eps);
		s.back[i] = 1 / nr_sqrt(back + c->eps);
		s.square[i] = released ? (real_sq[i] + pad_sq[i]) / rows.all : batch;
		next.phi[i] = moved;
	}
	memcpy(next.nu, k->x[NU].p, (size_t)C * sizeof(real));  /* until backward has something to say */
	*next.steps = (real)t;
}

/* y from the kept statistics. */
static void write(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[X], *y = &k->y[0];
	const struct walk w = walk_of(k, nr_packed(x) && nr_packed(y));
	const int64_t C = x->c;
	real *scale = k->scratch;
	nr_row_mul(C, kept(k).inv, k->x[WEIGHT].p, scale, 0);
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < w.b.count; q++) {
		const struct piece p = piece_of(&w, q);
		nr_column_active->normalize(p.rows, C, nr_row(x, p.row), C, NULL, scale, k->x[BIAS].p, nr_row(y, p.row), C);
	}
}

static void forward(const struct nr_call *k)
{
	const int64_t C = k->x[X].c;
	if (k->ex->train) {
		const struct walk w = walk_of(k, nr_packed(&k->x[X]));
		real *s = k->scratch;
		if (!k->shared) squares(k, &w, s, s + C, s + 2 * C);
		for (int64_t i = 0; k->shared && i < 2 * C; i++) s[i] = (real)k->shared[i];
		choose(k, &w, s, s + C);
	} else {
		const real *phi = k->x[PHI].p, eps = ((const struct power *)k->node->attr)->eps;
		real *inv = kept(k).inv;
		for (int64_t i = 0; i < C; i++) inv[i] = 1 / nr_sqrt(phi[i] + eps);
	}
	write(k);
}

static void commit(const struct nr_call *k)
{
	const size_t row = (size_t)k->x[X].c * sizeof(real);
	const struct next next = next_of(k);
	if (!k->ex->train) return;
	memcpy(k->x[PHI].p, next.phi, row);
	memcpy(k->x[NU].p, next.nu, row);
	memcpy(k->x[STEPS].p, next.steps, sizeof(real));
}

/* ---- backward --------------------------------------------------------------------------------------------------- */

struct sums { real *dy, *real_dot, *pad_dot; };         /* (C): of dy over all rows, of dy x over real rows and padding */

static void sum_up(const struct nr_call *k, const struct walk *w, struct sums s, real *part)
{
	const struct nr_view *x = &k->x[X], *dy = &k->dy[0];
	const int64_t C = x->c, n = w->b.count;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < n; q++) {
		const struct piece p = piece_of(w, q);
		const real *a = nr_row(x, p.row), *b = nr_row(dy, p.row);
		real *sum = zeroed(part + q * C, C), *dot = zeroed(part + (n + q) * C, C), *pad = zeroed(part + (2 * n + q) * C, C);
		nr_column_active->grad_sums(p.real_rows, C, a, C, b, C, NULL, sum, dot);
		a += p.real_rows * C, b += p.real_rows * C;
		nr_column_active->grad_sums(p.rows - p.real_rows, C, a, C, b, C, NULL, sum, pad);
	}
	nr_fold(n, C, part, s.dy, 0);
	nr_fold(n, C, part + n * C, s.real_dot, 0);
	nr_fold(n, C, part + 2 * n * C, s.pad_dot, 0);
}

/* dx = a dy + b x, and nu moves. */
static void factors(const struct nr_call *k, const struct walk *w, struct sums s, real *a, real *b)
{
	const struct power *c = k->node->attr;
	const real *weight = k->x[WEIGHT].p, *nu = k->x[NU].p, m = 1 - c->alpha_bwd;
	const struct counts rows = counts_of(k, w);
	const double *of_all = k->shared;
	const struct kept t = kept(k);
	for (int64_t i = 0, C = k->x[X].c; i < C; i++) {
		const real inv = t.inv[i], real_dot = of_all ? (real)of_all[i] : s.real_dot[i];
		const real dot = real_dot + (of_all ? (real)of_all[C + i] : s.pad_dot[i]);
		if (!k->ex->train || c->variant == PNV) {
			a[i] = weight[i] * inv;
			b[i] = k->ex->train ? -a[i] * inv * inv * dot / rows.n : 0;
			continue;
		}
		a[i] = weight[i] * t.back[i];
		b[i] = -nu[i] * inv * t.back[i];
		const real lambda = weight[i] * inv * (c->variant == PAPER ? real_dot / rows.n : dot / rows.all);
		next_of(k).nu[i] = nu[i] * (1 - m * t.square[i] * inv * inv) + m * lambda;
	}
}

static void apply(const struct nr_call *k, const struct walk *w, const real *a, const real *b, const real *zero)
{
	const struct nr_view *x = &k->x[X], *dy = &k->dy[0], *dx = &k->dx[X];
	const int64_t C = x->c;
	const int exact = ((const struct power *)k->node->attr)->variant == PNV;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < w->b.count; q++) {
		const struct piece p = piece_of(w, q);
		const int64_t n = exact ? p.real_rows : p.rows;         /* padding has no share in phiB */
		const real *xr = nr_row(x, p.row), *dyr = nr_row(dy, p.row);
		real *dxr = nr_row(dx, p.row);
		nr_column_active->grad_apply(n, C, xr, C, dyr, C, NULL, a, b, zero, 0, dxr, C, k->add[X]);
		nr_column_active->grad_apply(p.rows - n, C, xr + n * C, C, dyr + n * C, C, NULL, a, zero, zero, 0, dxr + n * C, C,
			k->add[X]);
	}
}

static struct walk walk_backward(const struct nr_call *k)
{
	return walk_of(k, nr_packed(&k->x[X]) && nr_packed(&k->dy[0]) && nr_packed(&k->dx[X]));
}

static void part(const struct nr_call *k, int backward, double *mine)
{
	const int64_t C = k->x[X].c;
	const struct walk w = backward ? walk_backward(k) : walk_of(k, nr_packed(&k->x[X]));
	real *v = k->scratch;
	if (backward) {
		sum_up(k, &w, (struct sums){ v, v + C, v + 2 * C }, v + 6 * C);
		tell(k, &w, v + C, v + 2 * C, mine);
	} else {
		squares(k, &w, v, v + C, v + 2 * C);
		tell(k, &w, v, v + C, mine);
	}
}

static void backward(const struct nr_call *k)
{
	const struct walk w = walk_backward(k);
	const int64_t C = k->x[X].c;
	real *v = k->scratch, *a = v + 3 * C, *b = v + 4 * C, *zero = zeroed(v + 5 * C, C);
	const struct sums s = { v, v + C, v + 2 * C };
	if (!k->shared) sum_up(k, &w, s, v + 6 * C);
	factors(k, &w, s, a, b);
	if (k->want & 1) apply(k, &w, a, b, zero);
	nr_row_add(C, s.real_dot, s.pad_dot, s.real_dot);
	if (k->want >> WEIGHT & 1) nr_row_mul(C, s.real_dot, kept(k).inv, k->dx[WEIGHT].p, k->add[WEIGHT]);
	if (k->want >> BIAS & 1) nr_row_put(C, s.dy, k->dx[BIAS].p, k->add[BIAS]);
}

static void cost(const struct nr_node *k, double *there, double *back)
{
	*there = 5 * (double)nr_len(k->in[X]);
	*back = 11 * (double)nr_len(k->in[X]);
}

/* ---- the norm --------------------------------------------------------------------------------------------------- */

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_power, x, text); }

static const struct nr_case cases[] = {
	{ "2x5x12", "" }, { "3x1x7", "warmup=3" }, { "1x150x3", "groups=3,eps=0.1" }, { "1x1x1", "eps=0.5" }, { "7x5", "" },
	{ "3x70x5 3:i1-70", "valid | alpha_fwd=0.5" }, { "2x5x4 2:i1-5", "valid | variant=official,groups=2" },
	{ "2x5x12", "variant=official,warmup=4,alpha_bwd=0.5" }, { "3x4x6 3:i1-4", "valid | variant=dtn" },
	{ "2x3x2", "variant=dtn,warmup=2" }, { NULL, NULL },
};
static const struct nr_case exact_cases[] = {
	{ "2x5x12", "variant=pnv" }, { "3x4x7 3:i1-4", "valid | variant=pnv,eps=0.01" }, { "1x150x4", "variant=pnv,groups=2" },
	{ "2x70x3 2:i1-70", "valid | variant=pnv,eps=0.1" }, { "1x1x1", "variant=pnv,eps=0.5" }, { "7x5", "variant=pnv" },
	{ NULL, NULL },
};

#define OP                                                                                                             \
	.shape = shape, .forward = forward, .backward = backward, .rebuild = write, .commit = commit, .cost = cost,    \
	.share = share, .part = part,                                                                                  \
	.keeps = KEEPS, .cheap = 1, .rebuild_keeps = NR_KEEP_X(X) | NR_KEEP_X(WEIGHT) | NR_KEEP_X(BIAS) | NR_KEEP_X(VALID), \
	.try_case = try_case
#define FLAGS (NR_CHEAP | NR_STRIDED | NR_INPLACE_GRAD | NR_BATCHWISE)

static const struct nr_op op = { .name = "power", OP, .flags = FLAGS | NR_APPROX_GRAD, .cases = cases };
static const struct nr_op op_exact = { .name = "power_exact", OP, .flags = FLAGS, .cases = exact_cases };

/* Each token's groups of channels over their root mean square. */
static nr_t *group_scale(struct nr_net *n, nr_t *x, int64_t groups)
{
	const int64_t C = nr_cols(x), B = x->nd >= 3 ? x->d[0] : 1;
	if (C % groups)
		return nr_net_fail(n, NR_ESHAPE, "power", "%lld channels in %lld groups", (long long)C, (long long)groups);
	nr_t *parts = nr_reshape(n, x, NR_SHAPE(B, -1, C / groups));
	nr_t *y = nr_norm_make(n, "", "rms:eps=1e-5,affine=0", parts);
	y = nr_reshape(n, y, nr_shape_of(x));
	return x->tok ? nr_with_tokens(n, y, *x->tok) : y;
}

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct power *c = conf;
	const int64_t groups = c->groups < 0 && x ? x->tok ? x->tok->heads : 0 : c->groups;
	if (c->groups < 0 && !groups)
		return nr_net_fail(n, NR_EUSAGE, "power", "the tokens do not say how many heads they have: give groups=N");
	if (groups && !(x = group_scale(n, x, groups))) return NULL;
	const int64_t C = nr_cols(x);
	nr_t *in[] = {
		[X] = x, [WEIGHT] = nr_param(n, "weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(C)),
		[BIAS] = nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(C)),
		[PHI] = nr_buffer(n, "running_phi", NR_ONES, NR_SHAPE(C)),
		[NU] = nr_buffer(n, "nu", NR_ZEROS, NR_SHAPE(C)), [STEPS] = nr_buffer(n, "steps", NR_ZEROS, NR_SHAPE(1)),
		[VALID] = x->tok ? x->tok->valid : NULL,
	};
	return nr_apply_list(n, c->variant == PNV ? &op_exact : &op, c, sizeof *c, in[VALID] ? VALID + 1 : VALID, in);
}

const struct nr_norm nr_norm_power = {
	.name = "power", .alias = "pn", .title = "power normalization", .cite = "arXiv:2003.07845",
	.equation = "y = weight x / sqrt(phi + eps) + bias; phi <- alpha_fwd phi + (1 - alpha_fwd) mean_BT x^2",
	.about = "Each channel is divided by a running root mean square over the real tokens of past batches; nothing is subtracted. "
		 "Because the divisor is not this batch's, the backward pass keeps its own running statistic nu and is not the "
		 "derivative of the forward pass. The released code divides by the batch's value in backward, counts padding in "
		 "nu and updates phi twice during warm-up (official); DTN's copy divides by the new phi (dtn). pnv normalises by the "
		 "batch with the exact gradient; official code always has groups = heads.",
	.needs = NR_NEED_BATCH, .conf_size = sizeof(struct power), .options = options, .build = build, .op = { &op, &op_exact },
};
