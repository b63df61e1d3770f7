/* prepbn: from a norm of single tokens to repbn in the course of training, y = lam norm1(x) + (1 - lam) norm2(x). SLAB, Guo et al. 2024,
 * Eq. 3; norm1 is layer or rms, norm2 is repbn.
 *
 *   lam = 1                                       in step t < warm; norm2's running statistics stand still
 *   lam = r0 max(0, total - (t - warm)) / total   after that; the first such step moves norm2's statistics, whatever lam is
 *
 * t counts optimizer steps in the buffer `steps`, whatever is accumulated for one. The released code counts forward passes, one of 16 in
 * its LLaMA. In evaluation it is norm2 alone at any lam, as in the released code; at the end of training, which the paper speaks of, that
 * is the same. */
#include "graph/blocks.h"
#include "math/row.h"
#include "norms/norms.h"
#include "norms/repbn.h"

struct prepbn { struct nr_repbn norm2; int32_t first; float first_eps, r0; int64_t total, warm; };

static const char *const firsts[] = { "layer", "rms", NULL };
static const struct nr_option options[] = {
	NR_OPT_INT(struct prepbn, total, 0, 0, 1000000000, "steps from norm1 to repbn; 0: all steps of the run after `warm`"),
	NR_OPT_INT(struct prepbn, warm, 0, 0, 1000000000, "steps with norm1 alone before that"),
	NR_OPT_FLOAT(struct prepbn, r0, 1, 0, 1, "share of norm1 at first"),
	NR_OPT_ENUM(struct prepbn, first, "layer", firsts, "norm1"),
	NR_OPT_FLOAT(struct prepbn, first_eps, 1e-6, 0, 1, "eps of norm1"),
	{ .name = "eps", .type = NR_TFLOAT, .offset = offsetof(struct prepbn, norm2.eps), .size = sizeof(float), .text = "1e-5", .max = 1,
	  .help = "eps of repbn" },
	{ .name = "momentum", .type = NR_TFLOAT, .offset = offsetof(struct prepbn, norm2.momentum), .size = sizeof(float), .text = "0.1",
	  .max = 1, .help = "weight of this batch in repbn's running statistics" },
	{ .name = "eta", .type = NR_TFLOAT, .offset = offsetof(struct prepbn, norm2.eta), .size = sizeof(float), .text = "1", .min = -1e3,
	  .max = 1e3, .help = "initial share of the input that repbn adds" },
	{ .name = "sync", .type = NR_TBOOL, .offset = offsetof(struct prepbn, norm2.sync), .size = sizeof(bool), .text = "0",
	  .help = NR_SYNC_HELP },
	NR_OPT_END
};

enum { A, B, STEPS };

/* Share of norm1 in this step. The first pass of a step counts it: those that accumulate after it are one ahead. */
static real lam_of(const struct nr_call *k)
{
	const struct prepbn *c = k->node->attr;
	const double t = fmax(0, (double)*(const real *)k->x[STEPS].p - (k->ex->accumulate ? 1 : 0)) - (double)c->warm;
	if (!k->ex->train) return 0;
	if (t < 0) return 1;
	const double total = (double)(c->total ? c->total : k->ex->total - c->warm);
	return total > 0 ? (real)((double)c->r0 * fmax(0, total - t) / total) : c->r0;
}

static int shape(struct nr_node *k)
{
	nr_out_like(k, 0, k->in[A]);
	k->pending = sizeof(real);
	return 0;
}

static void forward(const struct nr_call *k)
{
	const struct nr_view *a = &k->x[A], *b = &k->x[B], *y = &k->y[0];
	const int64_t n = y->rows * y->c;
	const real lam = lam_of(k);
	*(real *)k->pending = *(const real *)k->x[STEPS].p + 1;
	/* the ends are exact: what has no share is not looked at */
	if (lam == 0 || lam == 1) {
		nr_array_put(n, lam == 1 ? a->p : b->p, y->p, 0);
		return;
	}
	nr_array_scale(n, lam, a->p, y->p);
	nr_array_axpy(n, 1 - lam, b->p, y->p);
}

static void backward(const struct nr_call *k)
{
	const real lam = lam_of(k), share[] = { lam, 1 - lam }, *dy = k->dy[0].p;
	const int64_t n = k->dy[0].rows * k->dy[0].c;
	for (int j = B; j >= A; j--) {                  /* dx[0] may take the place of dy: last */
		if (!(k->want >> j & 1)) continue;
		if (k->add[j]) nr_array_axpy(n, share[j], dy, k->dx[j].p);
		else nr_array_scale(n, share[j], dy, k->dx[j].p);
	}
}

static void commit(const struct nr_call *k)
{
	if (k->ex->train && !k->ex->accumulate) *(real *)k->x[STEPS].p = *(const real *)k->pending;
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_prepbn, x, text); }

static const struct nr_case cases[] = {
	{ "2x5x12", "total=7,r0=0.7" }, { "3x4x7 3:i1-4", "valid | total=3,r0=0.5,first=rms" }, { "9x1x3", "total=4,warm=9" },
	{ "1x1x5", "" }, { NULL, NULL },
};

static const struct nr_op op = {
	.name = "prepbn", .shape = shape, .forward = forward, .backward = backward, .commit = commit, .keeps = NR_KEEP_X(STEPS),
	.flags = NR_INPLACE_GRAD, .try_case = try_case, .cases = cases,
};

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct prepbn *c = conf;
	const char *first = nr_arena_printf(nr_net_arena(n), "%s:eps=%.9g", firsts[c->first], (double)c->first_eps);
	if (!first) return nr_net_fail(n, NR_EMEMORY, "prepbn", "out of memory");
	nr_t *steps = nr_buffer(n, "steps", NR_ZEROS, NR_SHAPE(1)), *a = nr_norm_make(n, "norm1", first, x);
	nr_push(n, "norm2");
	nr_t *b = nr_pop(n, nr_repbn(n, x, &c->norm2, steps, c->warm));
	return nr_apply(n, &op, c, sizeof *c, a, b, steps);
}

const struct nr_norm nr_norm_prepbn = {
	.name = "prepbn", .title = "progressive re-parameterized batch normalization", .cite = "arXiv:2405.11582",
	.equation = "y = lam norm1(x) + (1 - lam) repbn(x), lam from 1 to 0 during training; in evaluation repbn(x)",
	.about = "Training starts with layer norm and ends with repbn, which costs nothing at run time: the share of the first falls "
		 "linearly over `total` steps. Evaluations before the end already use repbn alone, as the released code does, and "
		 "are poor as long as its part is small. Steps are those of the optimizer.",
	.needs = NR_NEED_BATCH, .conf_size = sizeof(struct prepbn), .options = options, .build = build, .op = { &op },
};
