/* dtn: Dynamic Token Normalization. Shao et al., ICLR 2022, Eq. 4 to 7 and Algorithm 1.
 *
 *   mu  = lm mean_C(x) + (1 - lm) P_h x_h                           Eq. 5, lm and lv of head h
 *   var = lv var_C(x)  + (1 - lv) (P_h x_h^2 - (P_h x_h)^2)
 *   y   = weight (x - mu) / sqrt(var + eps) + bias                  Eq. 4
 *   P_h = softmax_j(a_h . (dx^2 + dy^2, dx, dy)), tokens on a grid  Eq. 6
 *   a_h = (-1, 2 D1, 2 D2), D: one place of a sqrt(H) x sqrt(H) neighbourhood per head   Eq. 7
 *
 * The released code first scales each head of a token to mean square 1, divides the token's own variance by C - 1 and
 * looks in the mirrored direction: variant=official. Here: what options and tokens mean; dtn_run.c computes. */
#include "norms/dtn.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/str.h"
#include "norms/norms.h"

enum init { EQ7, TRUNC, ZERO };

struct dtn {
	float eps;
	int64_t heads, grid_h, grid_w, pool, band, special_tokens;
	int32_t variant, attention, init;
	const char *lam;
	bool only_var, tie, affine;
};

static const char *const variants[] = { "paper", "official", NULL };
/* in the order of enum nr_mix */
static const char *const attentions[] = { "pos", "uniform", "band", "free", NULL };
static const char *const inits[] = { "eq7", "trunc", "zero", NULL };

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct dtn, eps, 1e-5, 0, 1, "added to the variance"),
	NR_OPT_INT(struct dtn, heads, 0, 0, 65536,
		"groups of channels, each with its own P and weights; 0: the attention heads"),
	NR_OPT_INT(struct dtn, grid_h, 0, 0, 65536,
		"rows of the token grid; 0: the model's, or a single row"),
	NR_OPT_INT(struct dtn, grid_w, 0, 0, 65536,
		"columns of the token grid; 0: the model's, or a single row"),
	NR_OPT_INT(struct dtn, pool, 1, 1, 1024,
		"statistics across tokens see averages of pool x pool tokens"),
	NR_OPT_ENUM(struct dtn, variant, "paper", variants,
		"the paper's equations, or what the released code computes"),
	NR_OPT_ENUM(struct dtn, attention, "pos", attentions,
		"how tokens are weighted: by relative position, equally, in a band of neighbours, by a free matrix"),
	NR_OPT_INT(struct dtn, band, 3, 1, 1000000,
		"tokens in a band, in their order (local instance normalization)"),
	NR_OPT_STRING(struct dtn, lam, "learn",
		"weight of the token's own statistics: learn, or a number from 0 to 1"),
	NR_OPT_BOOL(struct dtn, only_var, "0", "use the token's own mean and blend only variances"),
	NR_OPT_BOOL(struct dtn, tie, "0", "one weight (mean_logit) for mean and variance, as in Eq. 5"),
	NR_OPT_INT(struct dtn, special_tokens, -1, -1, 65536,
		"leading tokens that are not on the grid and use their own statistics; -1: the model's"),
	NR_OPT_BOOL(struct dtn, affine, "1", "learn a weight and a bias per channel"),
	NR_OPT_ENUM(struct dtn, init, "eq7", inits,
		"initial P, also for attention=free: neighbourhoods (Eq. 7), N(0,.02) cut at two deviations, uniform"),
	NR_OPT_END
};

/* ---- initial values --------------------------------------------------------------------------------------------- */

/* Eq. 7. Heads beyond the square of floor(sqrt H) begin with a uniform P. */
static void eq7(int64_t heads, int64_t h, double a[3])
{
	const int64_t k = (int64_t)sqrt((double)heads);
	const double centre = (double)(k - 1) / 2;
	a[0] = a[1] = a[2] = 0;
	if (h >= k * k) return;
	a[0] = -1;
	a[1] = 2 * ((double)(h / k) - centre);
	a[2] = 2 * ((double)(h % k) - centre);
}

void nr_dtn_start(const struct nr_entry *e, const void *conf, real *v)
{
	double a[3];
	for (int64_t h = 0; h < e->d[0]; h++, v += 3) {
		eq7(e->d[0], h, a);
		for (int i = 0; i < 3; i++) v[i] = (real)a[i];
	}
}

struct fill { int64_t w; int official; };

/* The exponents that the positions would give. */
static void fill_free(const struct nr_entry *e, const void *conf, real *v)
{
	const struct fill *f = conf;
	const int64_t n = e->d[1];
	double a[3];
	for (int64_t h = 0; h < e->d[0]; h++) {
		eq7(e->d[0], h, a);
		for (int64_t i = 0; i < n; i++)
			for (int64_t j = 0; j < n; j++, v++) {
				const double sign = f->official ? -1 : 1, dx = sign * (double)(j % f->w - i % f->w);
				const double dy = sign * (double)(j / f->w - i / f->w);
				*v = (real)(a[0] * (dx * dx + dy * dy) + a[1] * dx + a[2] * dy);
			}
	}
}

/* ---- building --------------------------------------------------------------------------------------------------- */

/* The part of the conf that the tokens have a say in; 0 or the net has failed. */
static int geometry(struct nr_net *n, const nr_t *x, const struct dtn *c, struct nr_dtn *k)
{
	static const struct nr_tokens none;
	const struct nr_tokens *tok = x->tok ? x->tok : &none;
	const int64_t C = nr_cols(x), T = nr_rows_per_sample(x);
	k->heads = c->heads ? c->heads : tok->heads;
	k->special = c->special_tokens >= 0 ? c->special_tokens : tok->special;
	k->pool = c->pool;
	if (x->nd < 3) return nr_net_fail(n, NR_ESHAPE, "dtn", "it needs samples of tokens, (B,T,C)"), -1;
	if (tok->unordered)
		return nr_net_fail(n, NR_EVALUE, "dtn", "it needs tokens on a grid or a line; nodes of a graph have no order"), -1;
	if (!k->heads)
		return nr_net_fail(n, NR_EVALUE, "dtn", "the tokens do not say how many heads they feed: give heads=..."), -1;
	if (C % k->heads)
		return nr_net_fail(n, NR_ESHAPE, "dtn", "%lld channels cannot be split into %lld heads",
			(long long)C, (long long)k->heads), -1;
	const int64_t N = T - k->special, given = c->grid_h || c->grid_w;
	if (N < 0)
		return nr_net_fail(n, NR_ESHAPE, "dtn",
			"special_tokens=%lld, but there are %lld tokens", (long long)k->special, (long long)T), -1;
	k->h = given ? c->grid_h : tok->h ? tok->h : x->nd == 4 && !k->special ? x->d[1] : 1;
	k->w = given ? c->grid_w : tok->h ? tok->w : N / k->h;
	if (!k->h) k->h = N / k->w;
	if (!k->w) k->w = N / k->h;
	if (!tok->pos && k->h * k->w != N)
		return nr_net_fail(n, NR_ESHAPE, "dtn", "%lld tokens are not a grid of %lld x %lld",
			(long long)N, (long long)k->h, (long long)k->w), -1;
	if (k->h % k->pool || k->w % k->pool)
		return nr_net_fail(n, NR_ESHAPE, "dtn", "a grid of %lld x %lld cannot be pooled by %lld",
			(long long)k->h, (long long)k->w, (long long)k->pool), -1;
	if (k->pool > 1 && (tok->valid || tok->pos))
		return nr_net_fail(n, NR_EVALUE, "dtn", "pool needs whole grids: these tokens are %s",
			tok->pos ? "a part of a grid" : "padded"), -1;
	if (tok->pos && (c->attention == NR_MIX_BAND || c->attention == NR_MIX_FREE))
		return nr_net_fail(n, NR_EVALUE, "dtn", "attention=%s needs all tokens of the grid",
			attentions[c->attention]), -1;
	return 0;
}

/* "learn", or a number; 0 or the net has failed. */
static int lambda(struct nr_net *n, const char *text, struct nr_dtn *k)
{
	double v = 0;
	k->learn = !strcmp(text, "learn");
	const bool good = k->learn || (nr_parse_double(text, &v) && v >= 0 && v <= 1);
	k->lam = (real)v;
	if (good) return 0;
	return nr_net_fail(n, NR_EVALUE, "dtn", "lam='%s' is neither learn nor a number from 0 to 1", text), -1;
}

static nr_t *matrix(struct nr_net *n, const struct dtn *c, const struct nr_dtn *k)
{
	/* the released code spares vectors only */
	const int init = (c->init == TRUNC ? NR_TRUNC_02 : NR_ZEROS) | (k->official ? 0 : NR_NO_DECAY);
	const int64_t N = k->h / k->pool * (k->w / k->pool);
	const struct fill f = { .w = k->w / k->pool, .official = k->official };
	struct nr_error err = { 0 };
	nr_t *p = c->attention == NR_MIX_POS ? nr_param(n, "pos", init, NR_SHAPE(k->heads, 3))
					     : nr_param(n, "logits", init, NR_SHAPE(k->heads, N, N));
	void (*fill)(const struct nr_entry *, const void *, real *) = c->attention == NR_MIX_POS ? nr_dtn_start : fill_free;
	if (p && c->init == EQ7 && nr_entry_fill(p->entry, fill, &f, sizeof f, &err))
		return nr_net_fail(n, NR_EMEMORY, "dtn", "out of memory");
	return p;
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_dtn, x, text); }

static const struct nr_case cases[] = {
	{ "2x12x6", "heads=3 grid=3x4 | eps=1e-3" },
	{ "2x12x6", "heads=3 grid=4x3 | variant=official,eps=1e-3" },
	{ "9x6x5", "heads=1 grid=2x3 | eps=1e-2" },                             /* samples, not heads, are shared out */
	{ "9x5x4", "special=1 heads=2 grid=2x2 | eps=1e-2,variant=official" },
	{ "2x8x6", "heads=2 grid=4x2 | pool=2,eps=1e-2" },
	{ "2x10x6", "special=2 heads=2 grid=2x4 | pool=2,eps=1e-2,variant=official" },
	{ "2x14x6", "special=2 heads=2 grid=3x4 | eps=1e-2" },
	{ "3x7x6 3:i1-7", "special=1 heads=2 valid | eps=1e-2" },
	{ "3x6x6 3:i1-6", "heads=2 grid=2x3 valid | eps=1e-2,variant=official" },
	{ "3x7x4 3:i1-7", "special=1 heads=2 valid | attention=band,eps=1e-1" },
	{ "3x7x4 3:i1-7", "special=1 heads=2 valid | attention=uniform,eps=1e-1" },
	{ "3x6x4 3:i1-6", "heads=2 valid | attention=free,eps=1e-1" },
	{ "2x6x6 2x5:i12u", "special=1 heads=2 grid=3x4 pos | eps=1e-2" },
	{ "2x5x6 2x5:i12u", "heads=2 grid=4x3 pos | attention=uniform,eps=1e-2" },
	{ "2x70x2", "attention=band,band=5,heads=1,eps=1e-1" },                 /* more than one tile of the band */
	{ "1x9x8", "heads=2 grid=3x3 | attention=uniform,eps=1e-2,affine=0" },
	{ "5x6x4", "heads=2 grid=2x3 | attention=free,eps=1e-2" },
	{ "2x8x4", "heads=2 grid=4x2 | attention=free,pool=2,init=zero,eps=1e-2,variant=official" },
	{ "2x12x8", "heads=4 grid=3x4 | only_var=1,eps=1e-2" },
	{ "2x12x8", "heads=4 grid=3x4 | tie=1,eps=1e-2" },
	{ "2x12x8", "heads=4 grid=3x4 | lam=0.5,eps=1e-2" },
	{ "2x6x4", "heads=2 grid=2x3 | lam=0,eps=1e-2" },
	{ "2x6x4", "heads=2 grid=2x3 | lam=1,eps=1e-2" },
	{ "2x6x4", "heads=2 grid=2x3 | lam=1,eps=1e-2,attention=free,variant=official" },
	{ "3x1x6", "heads=2 | eps=1e-1" },                                      /* one token */
	{ "2x2x6", "special=2 heads=3 | eps=1e-1" },                            /* special ones alone */
	{ "2x7x1", "heads=1,eps=1e-1" },                                        /* one channel */
	{ NULL, NULL },
};

static const struct nr_op op = {
	.name = "dtn", .shape = nr_dtn_shape, .forward = nr_dtn_forward, .backward = nr_dtn_backward,
	.cost = nr_dtn_cost, .keeps = NR_KEEP_X_ALL,
	.flags = NR_CHEAP | NR_STRIDED | NR_INPLACE_GRAD, .try_case = try_case, .cases = cases,
};

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct dtn *c = conf;
	struct nr_dtn k = { .eps = c->eps, .official = c->variant == 1, .only_var = c->only_var,
		.mix = (enum nr_mix)c->attention, .reach = (c->band - 1) / 2 };
	if (geometry(n, x, c, &k) || lambda(n, c->lam, &k)) return NULL;
	nr_t *in[NR_MAXIN] = { x };
	int count = 1;
#define TAKE(field, tensor) (k.field = count, in[count++] = (tensor))
	if (c->affine) {
		TAKE(weight, nr_param(n, "weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(nr_cols(x))));
		TAKE(bias, nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(nr_cols(x))));
	}
	if (k.learn && !c->only_var)
		TAKE(mean_logit, nr_param(n, "mean_logit", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(k.heads)));
	if (k.learn && (c->only_var || !c->tie))
		TAKE(var_logit, nr_param(n, "var_logit", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(k.heads)));
	if (c->attention == NR_MIX_POS || c->attention == NR_MIX_FREE) TAKE(matrix, matrix(n, c, &k));
	if (x->tok && x->tok->valid) TAKE(valid, x->tok->valid);
	if (x->tok && x->tok->pos) TAKE(place, x->tok->pos);
#undef TAKE
	return nr_apply_list(n, &op, &k, sizeof k, count, in);
}

static const char *const laws[] = {
	"dtn:lam=1 = layer",
	"dtn:lam=0,attention=uniform = instance",
	"dtn:lam=0,attention=band,band=25 = instance",
	"dtn:attention=free = dtn",
	"dtn:lam=0.5 = dtn",
	NULL
};

const struct nr_norm nr_norm_dtn = {
	.name = "dtn", .title = "dynamic token normalization", .cite = "arXiv:2112.02624",
	.equation = "y = weight (x - mu) / sqrt(var + eps) + bias; mu = lm mean_C x + (1 - lm) P x; "
		    "var = lv var_C x + (1 - lv) (P x^2 - (P x)^2); P = softmax_j(a . (dx^2 + dy^2, dx, dy)), per head",
	.about = "Every head blends two kinds of statistics: those of the token itself, as in layer normalization, and those of each "
		 "channel over the surrounding tokens, weighted by their place on the grid. Both the blend and the neighbourhood are "
		 "learned, five numbers per head, so it can become layer, instance or local instance normalization. Special tokens have "
		 "no place on the grid and use their own statistics. Where sqrt(H) is even, the neighbourhoods of Eq. 7 begin between "
		 "four tokens, which then share the largest weight. No parameter decays; the released code decays those of the "
		 "neighbourhood (pos_proj.weight). It also scales each head of a token first, takes the "
		 "token's variance with 1/(C-1) and mirrors the direction of the neighbourhood: variant=official.",
	.laws = laws, .needs = NR_NEED_GRID | NR_NEED_HEADS, .conf_size = sizeof(struct dtn), .options = options,
	.build = build,
	.op = { &op },
};
