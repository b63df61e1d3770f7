/* dropout: y = x m / (1-p), m = 0 with probability p, per value (Srivastava et al. 2014) or, drop path, per sample
 * (Huang et al. arXiv:1603.09382). Masks come from counters and are made again in backward: nothing is kept. Identity
 * when not training. */
#include "math/random.h"
#include "nn/op.h"
#include "nn/stream.h"

struct drop { double p; uint32_t stream; int64_t whole; };       /* whole: values of a sample before it was narrowed; 0: it was not */

static int shape(struct nr_node *k)
{
	const struct drop *a = k->attr;
	nr_out_like(k, 0, k->in[0]);
	return nr_expect(k, a->p > 0 && a->p < 1, "probability %g is not in [0,1)", a->p);
}

static double p_of(const struct nr_call *k)
{
	return k->ex->train && !k->ex->no_dropout ? ((const struct drop *)k->node->attr)->p : 0;
}
static struct nr_rng rng_of(const struct nr_call *k, uint32_t kind)
{
	return nr_rng_make(k->ex->seed, kind + ((const struct drop *)k->node->attr)->stream, (uint32_t)k->ex->step);
}

/* ---- per value ------------------------------------------------------------------------------------------------- */

static void values(const struct nr_call *k, const real *x, const real *residual, real *y)
{
	const struct drop *a = k->node->attr;
	const int64_t n = k->x[0].rows * k->x[0].c, each = k->x[0].t * k->x[0].c;
	const struct nr_rng rng = rng_of(k, NR_STREAM_DROPOUT);
	if (!a->whole) {
		nr_dropout_forward(n, x, residual, y, p_of(k), rng, 0);
		return;
	}
#pragma omp parallel for schedule(static) if (n > 16384)
	for (int64_t i = 0; i < n; i += each) /* the tokens' own numbers in the whole */
		nr_dropout_forward(each, x + i, residual ? residual + i : NULL, y + i, p_of(k), rng, (uint64_t)(i / each * a->whole));
}
static const void *values_narrowed(const struct nr_node *k, int64_t tokens, struct nr_arena *arena)
{
	(void)tokens;
	struct drop *a = nr_arena_alloc(arena, sizeof *a);
	if (!a) return NULL;
	*a = *(const struct drop *)k->attr;
	a->whole = k->out[0]->d[1] * k->out[0]->d[2];
	return a;
}
static void values_forward(const struct nr_call *k) { values(k, k->x[0].p, NULL, k->y[0].p); }
static void values_backward(const struct nr_call *k)
{
	values(k, k->dy[0].p, k->add[0] ? k->dx[0].p : NULL, k->dx[0].p);
}
static nr_t *values_try(struct nr_net *n, nr_t **x, const char *options)
{
	nr_t *y = nr_dropout(n, x[0], *options == '1' ? 0.1 : 0.6);
	return strstr(options, "first") ? nr_span(n, y, 0, 2) : y;
}
static const struct nr_case values_cases[] = { { "2x5x7", "1" }, { "1", "6" }, { "3x70x2", "6" }, { "3x5x7", "6 first" },
	{ "4x70x9", "1 first" }, { NULL, NULL } };
const struct nr_op nr_op_dropout = {
	.name = "dropout", .shape = shape, .forward = values_forward, .backward = values_backward,
	.flags = NR_CHEAP | NR_INPLACE | NR_INPLACE_GRAD | NR_RANDOM | NR_NARROW, .tokenwise = 1, .narrowed = values_narrowed,
	.try_case = values_try, .cases = values_cases,
};

/* ---- per sample ------------------------------------------------------------------------------------------------ */

static void path(const struct nr_call *k, const real *x, const real *residual, real *y)
{
	const nr_t *t = k->node->in[0];
	nr_drop_path_forward(t->d[0], nr_len(t) / t->d[0], x, residual, y, p_of(k),
		rng_of(k, NR_STREAM_DROP_PATH), 0);
}
static void path_forward(const struct nr_call *k) { path(k, k->x[0].p, NULL, k->y[0].p); }
static void path_backward(const struct nr_call *k) { path(k, k->dy[0].p, k->add[0] ? k->dx[0].p : NULL, k->dx[0].p); }
static nr_t *path_try(struct nr_net *n, nr_t **x, const char *options)
{
	nr_t *y = nr_drop_path(n, x[0], *options == '1' ? 0.1 : 0.6);
	return strstr(options, "first") ? nr_span(n, y, 0, 2) : y;
}
static const struct nr_case path_cases[] = { { "5x3x7", "6" }, { "1x1", "1" }, { "4x70x2", "6" }, { "9", "6" },
	{ "9x4x3", "6 first" }, { NULL, NULL } };
const struct nr_op nr_op_drop_path = {
	.name = "drop_path", .shape = shape, .forward = path_forward, .backward = path_backward,
	.flags = NR_CHEAP | NR_INPLACE | NR_INPLACE_GRAD | NR_RANDOM | NR_NARROW, .tokenwise = 1, .try_case = path_try,
	.cases = path_cases,
};

/* ---- builders -------------------------------------------------------------------------------------------------- */

static nr_t *drop(struct nr_net *n, const struct nr_op *op, nr_t *x, double p)
{
	const struct drop a = { .p = p, .stream = nr_stream_next(n) };
	return p == 0 ? x : nr_apply(n, op, &a, sizeof a, x);
}
nr_t *nr_dropout(struct nr_net *n, nr_t *x, double p) { return drop(n, &nr_op_dropout, x, p); }
nr_t *nr_drop_path(struct nr_net *n, nr_t *x, double p) { return drop(n, &nr_op_drop_path, x, p); }
