/* taper: from rms to a linear map, y = g weight x r + (1 - g) c scale_weight x with r = 1 / sqrt(mean(x^2) + eps). TaperNorm, 2026.
 *
 * At g = 0 no statistic is left and the map folds into the next linear layer. c is a constant: the least-squares factor that brings weight
 * x nearest to weight x r over a batch, mean(|weight x|^2 r) / mean(|weight x|^2).
 *
 * The steps of g are our choice, the paper's are not published: g = 1 for `warm` steps, in which c is a moving average (a tenth of each
 * new batch); then c stands still, scale_weight starts from weight, and g falls along half a cosine to 0 at `total`. An evaluation, which
 * does not know how long the training was, takes the g of the next step from the buffer `gate`. */
#include "graph/blocks.h"
#include "math/row.h"
#include "norma/op.h"
#include "norms/norms.h"

struct taper { float eps, gate; int64_t warm, total; };

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct taper, eps, 1e-6, 0, 1, "added to the mean square"),
	NR_OPT_FLOAT(struct taper, gate, -1, -1, 1, "share of the norm, from 1 to 0; -1: falls in the course of training"),
	NR_OPT_INT(struct taper, warm, 0, 0, 1000000000, "steps before it falls; 0: a tenth of all"),
	NR_OPT_INT(struct taper, total, 0, 0, 1000000000, "step at which it is 0; 0: the last of the run"),
	NR_OPT_END
};

enum { X, WEIGHT, SCALE, FACTOR, STEPS, GATE, VALID };
struct attr { struct taper c; int8_t steps, valid; };   /* place among the inputs; 0: none. gate follows steps */

static const struct attr *attr_of(const struct nr_call *k) { return k->node->attr; }

/* Steps before this one. The first pass of a step counts it: those that accumulate after it are one ahead. */
static double steps_of(const struct nr_call *k)
{
	return attr_of(k)->steps ? fmax(0, (double)*(const real *)k->x[STEPS].p - (k->ex->accumulate ? 1 : 0)) : 0;
}

struct ends { double warm, total; };
static struct ends ends_of(const struct nr_call *k)
{
	const struct taper *c = &attr_of(k)->c;
	const double total = (double)(c->total ? c->total : k->ex->total);
	return (struct ends){ c->warm ? (double)c->warm : floor(total / 10), total };
}

static real gate_in(const struct nr_call *k, double step)
{
	const struct ends e = ends_of(k);
	if (step < e.warm || e.total <= e.warm) return 1;
	return step >= e.total ? 0 : (real)((1 + cos(M_PI * (step - e.warm) / (e.total - e.warm))) / 2);
}

static real gate_of(const struct nr_call *k)
{
	if (!attr_of(k)->steps) return attr_of(k)->c.gate;
	return k->ex->train ? gate_in(k, steps_of(k)) : *(const real *)k->x[GATE].p;
}

static real *gate_kept(const struct nr_call *k) { return (real *)k->stash + k->x[X].rows; }

static int shape(struct nr_node *k)
{
	const nr_t *x = k->in[X];
	nr_out_like(k, 0, x);
	k->stash = (size_t)(nr_rows(x) + 1) * sizeof(real);     /* r of each row, then the gate */
	k->scratch = nr_rows_scratch(x, 2 * nr_cols(x) > 2 ? 2 * nr_cols(x) : 2);
	k->pending = 3 * sizeof(real);
	return 0;
}

static int is_real(const struct nr_call *k, int64_t r)
{
	const int v = attr_of(k)->valid;
	const int64_t T = k->node->in[X]->d[k->node->in[X]->nd - 2];
	return !v || r % T < ((const int32_t *)k->x[v].p)[r / T];
}

enum { TILE = 512 };                    /* columns whose factors are on the stack */

/* to = a weight + b scale_weight for n channels from i on: what x is multiplied by. */
static const real *factors(const struct nr_call *k, int64_t i, int64_t n, real a, real b, real *to)
{
	nr_row_scale(n, a, (const real *)k->x[WEIGHT].p + i, to);
	nr_row_axpy(n, b, (const real *)k->x[SCALE].p + i, to);
	return to;
}

/* sum: |weight x|^2 r and |weight x|^2. */
static void forward_row(const struct nr_call *k, int64_t r, real *sum)
{
	const int64_t C = k->x[X].c;
	const real *x = nr_row(&k->x[X], r), *weight = k->x[WEIGHT].p, g = *gate_kept(k);
	const real rstd = 1 / nr_sqrt(nr_dot(C, x, x) / (real)C + attr_of(k)->c.eps), b = (1 - g) * *(const real *)k->x[FACTOR].p;
	const int counts = attr_of(k)->steps && is_real(k, r);
	real *y = nr_row(&k->y[0], r), tile[TILE];
	((real *)k->stash)[r] = rstd;
	for (int64_t i = 0; i < C; i += TILE) {
		const int64_t n = nr_min64(TILE, C - i);
		if (counts) {
			nr_row_mul(n, weight + i, x + i, tile, 0);
			const real square = nr_dot(n, tile, tile);
			sum[0] += square * rstd, sum[1] += square;
		}
		nr_row_mul(n, x + i, factors(k, i, n, g * rstd, b, tile), y + i, 0);
	}
}

static void forward(const struct nr_call *k)
{
	*gate_kept(k) = gate_of(k);
	const real *sum = nr_rows_each(k, 2, forward_row);
	const real old = *(const real *)k->x[FACTOR].p, now = sum[1] > 0 ? sum[0] / sum[1] : old;
	real *next = k->pending;
	const double t = steps_of(k);
	next[0] = !attr_of(k)->steps || t >= ends_of(k).warm ? old : t == 0 ? now : old + (now - old) / 10;
	next[1] = (real)t + 1;
	next[2] = gate_in(k, t + 1);
}

/* sum: dweight, then dscale. */
static void backward_row(const struct nr_call *k, int64_t r, real *sum)
{
	const int64_t C = k->x[X].c;
	const real *x = nr_row(&k->x[X], r), *dy = nr_row(&k->dy[0], r), g = *gate_kept(k);
	const real rstd = ((const real *)k->stash)[r], a = g * rstd, b = (1 - g) * *(const real *)k->x[FACTOR].p;
	const real along = a * rstd * rstd * nr_dot3(C, dy, k->x[WEIGHT].p, x) / (real)C;
	real *dx = nr_row(&k->dx[X], r), tile[TILE], t[TILE];
	for (int64_t i = 0; i < C; i += TILE) {
		const int64_t n = nr_min64(TILE, C - i);
		nr_row_mul(n, dy + i, x + i, t, 0);
		nr_row_axpy(n, a, t, sum + i);
		nr_row_axpy(n, b, t, sum + C + i);
		nr_row_mul(n, dy + i, factors(k, i, n, a, b, tile), dx + i, k->add[X]);
		nr_row_axpy(n, -along, x + i, dx + i);
	}
}

static void backward(const struct nr_call *k)
{
	const int64_t C = k->x[X].c;
	const real *sum = nr_rows_each(k, 2 * C, backward_row);
	for (int i = WEIGHT; i <= SCALE; i++)
		if (k->want >> i & 1) nr_put_all(C, sum + (i - WEIGHT) * C, k->dx[i].p, k->add[i]);
}

static void commit(const struct nr_call *k)
{
	const real *next = k->pending;
	if (!k->ex->train || k->ex->accumulate || !attr_of(k)->steps) return;
	*(real *)k->x[FACTOR].p = next[0];
	*(real *)k->x[STEPS].p = next[1];
	*(real *)k->x[GATE].p = next[2];
	if ((double)next[1] <= ends_of(k).warm) memcpy(k->x[SCALE].p, k->x[WEIGHT].p, (size_t)k->x[X].c * sizeof(real));
}

static void cost(const struct nr_node *k, double *there, double *back)
{
	*there = 6 * (double)nr_len(k->in[X]);
	*back = 12 * (double)nr_len(k->in[X]);
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_taper, x, text); }

static const struct nr_case cases[] = {
	{ "2x5x12", "gate=0.5" }, { "3x1x7", "gate=1" }, { "1x70x3", "gate=0,eps=0.1" }, { "1x1x1", "gate=0.3" },
	{ "3x37x5 3:i1-37", "valid | warm=2,total=4" }, { NULL, NULL },
};

static const struct nr_op op = {
	.name = "taper", .shape = shape, .forward = forward, .backward = backward, .commit = commit, .cost = cost,
	.keeps = NR_KEEP_X(X) | NR_KEEP_X(WEIGHT) | NR_KEEP_X(SCALE) | NR_KEEP_X(FACTOR) | NR_KEEP_X(STEPS) | NR_KEEP_X(GATE),
	.flags = NR_STRIDED | NR_INPLACE_GRAD, .try_case = try_case, .cases = cases,
};

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct taper *c = conf;
	const int64_t C = nr_cols(x);
	struct attr a = { .c = *c };
	nr_t *in[VALID + 1] = { x, nr_param(n, "weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(C)),
		nr_param(n, "scale_weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(C)), nr_buffer(n, "c", NR_ONES, NR_SHAPE(1)) };
	int count = STEPS;
	if (c->gate < 0) {
		a.steps = (int8_t)count;
		in[count++] = nr_buffer(n, "steps", NR_ZEROS, NR_SHAPE(1));
		in[count++] = nr_buffer(n, "gate", NR_ONES, NR_SHAPE(1));
	}
	if (x->tok && x->tok->valid) a.valid = (int8_t)count, in[count++] = x->tok->valid;
	return nr_apply_list(n, &op, &a, sizeof a, count, in);
}

static const char *const laws[] = { "taper:gate=1 = rms", NULL };

const struct nr_norm nr_norm_taper = {
	.name = "taper", .title = "normalization that tapers off", .cite = "arXiv:2602.10408",
	.equation = "y = g weight x / sqrt(mean_C x^2 + eps) + (1 - g) c scale_weight x, g from 1 to 0",
	.about = "Training begins with rms and ends without a norm: a gate, the same in all layers, falls to zero, and what remains is a "
		 "fixed gain per channel that folds into the next layer. The constant c is fitted while the gate is still 1. How the "
		 "gate falls is our choice, as the authors' steps are not published.",
	.laws = laws, .conf_size = sizeof(struct taper), .options = options, .build = build, .op = { &op },
};
