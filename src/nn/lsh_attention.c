/* lsh_attention: attention within buckets of similar queries, and local attention in chunks. Kitaev et al. 2020 (Reformer),
 * arXiv:2001.04451; the form of Hugging Face, and that of the Long Range Arena's code.
 *
 *   x (B,T,2C): qk and v, queries are keys;  or x (B,T,3C): q, k, v, nothing is sorted ("local")
 *
 * Every round hashes the queries: bucket = argmax [q R, -q R], of which several factors may be combined. Tokens are sorted by (round,
 * bucket, position) and cut into chunks of equal length; a chunk attends to itself and to neighbours, cyclically and across rounds.
 * What the rounds find is one softmax over all of it: their outputs are weighted by the exponentials of their log-sum-exps, and one pass
 * backward with the total serves all of them.
 *
 * With `masked`, padding is sorted into a bucket of its own, behind all others, and is no key. With `not_self` a token is its own
 * key only if it has no other; its value is then the output (in Hugging Face's code that is a score of -1e5, which leaves nothing
 * else). A local query that sees nothing but padding gets the mean of the values, as a softmax of equal scores gives it. The stash
 * keeps the order of the tokens, so that backward does not hash again. */
#include <omp.h>

#include "math/row.h"
#include "nn/lsh.h"
#include "nn/stream.h"

static int shape(struct nr_node *k)
{
	const struct nr_lsh *c = k->attr;
	if (nr_lsh_check(k)) return NR_ESHAPE;
	const struct nr_lsh_sizes z = nr_lsh_sizes(k);
	const nr_t *x = k->in[0], *r = c->has_rotations ? k->in[1] : NULL, *valid = c->has_valid ? k->in[1 + c->has_rotations] : NULL;
	const int64_t each = z.d * z.rounds * z.half;
	if (nr_expect(k, !r || (r->dtype == NR_REAL && nr_len(r) >= (c->o.layer + 1) * each * (c->o.one_rotation ? 1 : z.H)),
		      "the rotations are not (layers%s,%lld,%lld,%lld)", c->o.one_rotation ? "" : ",heads", (long long)z.d,
		      (long long)z.rounds, (long long)z.half) ||
	    nr_expect(k, !valid || (valid->dtype == NR_I32 && nr_len(valid) == z.B), "lengths must be %lld int32, one per sample",
		      (long long)z.B))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ z.B, z.T, z.C }, x->tok);
	nr_out(k, 1, NR_I32, 4, (int64_t[]){ z.B, z.H, z.rounds, z.L }, NULL);
	k->stash = nr_lsh_stash(&z);
	k->scratch = nr_lsh_bytes(&z) * (size_t)c->threads;
	return 0;
}

/* ---- tiles --------------------------------------------------------------------------------------------------------------------------- */

static void copy_row(const struct nr_lsh_unit *w, const real *from, int64_t t, real scale, real *to)
{
	if (t >= w->s.T) memset(to, 0, (size_t)w->s.d * sizeof(real));
	else if (scale == 1) memcpy(to, from + t * w->s.width, (size_t)w->s.d * sizeof(real));
	else nr_row_scale(w->s.d, scale, from + t * w->s.width, to);
}

static void gather(const struct nr_lsh_unit *w, int64_t c)
{
	const int32_t *query = w->order + c * w->s.chunk;
	for (int64_t i = 0; i < w->s.chunk; i++) copy_row(w, w->q, query[i], 1, w->tile.q + i * w->s.d);
	for (int64_t j = 0; j < w->s.seen; j++) {
		const int32_t *key = nr_lsh_keys(w, c, j);
		for (int64_t i = 0; i < w->s.chunk; i++) {
			const int64_t to = (j * w->s.chunk + i) * w->s.d;
			copy_row(w, w->keys, key[i], w->m.norm[key[i]], w->tile.k + to);
			copy_row(w, w->v, key[i], 1, w->tile.v + to);
		}
	}
}

/* Fills the mask; false: everything counts. */
static bool mask(const struct nr_lsh_unit *w, int64_t c)
{
	const int32_t *query = w->order + c * w->s.chunk;
	const int64_t n = w->s.seen * w->s.chunk;
	bool any = false;
	if (!w->c->o.masked && !w->c->o.not_self) return false;
	for (int64_t i = 0; i < w->s.chunk; i++)
		for (int64_t j = 0; j < w->s.seen; j++) {
			const int32_t *key = nr_lsh_keys(w, c, j);
			real *row = w->tile.mask + i * n + j * w->s.chunk;
			for (int64_t m = 0; m < w->s.chunk; m++) {
				const bool out = key[m] >= w->valid || (w->c->o.not_self && key[m] == query[i]);
				row[m] = out ? -INFINITY : 0;
				any |= out;
			}
		}
	return any;
}

static struct nr_attention problem(const struct nr_lsh_unit *w, int64_t c)
{
	gather(w, c);
	struct nr_attention a = nr_tile_attention(&w->tile, w->s.chunk, w->s.seen * w->s.chunk,
		w->c->o.scale != 0 ? (real)w->c->o.scale : 1 / nr_sqrt((real)w->s.d));
	a.partial = w->s.rounds > 1;
	if (mask(w, c)) a.mask = w->tile.mask, a.n_mask = 1;
	if (w->k->ex->train && !w->k->ex->no_dropout && w->c->o.dropout > 0) {
		a.dropout = (real)w->c->o.dropout;
		a.rng = nr_tile_rng(nr_rng_make(w->k->ex->seed, NR_STREAM_DROPOUT + w->c->stream, (uint32_t)w->k->ex->step),
			(uint64_t)((w->b * w->s.H + w->h) * w->s.chunks + c));
	}
	return a;
}

/* ---- forward ------------------------------------------------------------------------------------------------------------------ */

/* Adds what a chunk found to what earlier rounds found; -inf stands for nothing until the end. */
static void merge(const struct nr_lsh_unit *w, int64_t c, real *out)
{
	const int32_t *query = w->order + c * w->s.chunk;
	for (int64_t i = 0; i < w->s.chunk; i++) {
		const int32_t t = query[i];
		const real found = w->tile.lse[i], before = w->lse[t];
		if (found == INFINITY) continue;
		const real high = found > before ? found : before, total = high + nr_log(nr_exp(found - high) + nr_exp(before - high));
		w->lse[t] = total;
		if (t >= w->s.T) continue;
		real *y = out + t * w->s.C;
		if (before == -INFINITY) memcpy(y, w->tile.out + i * w->s.d, (size_t)w->s.d * sizeof(real));
		else {
			nr_row_scale(w->s.d, nr_exp(before - total), y, y);
			nr_row_axpy(w->s.d, nr_exp(found - total), w->tile.out + i * w->s.d, y);
		}
	}
}

/* A query that sees no key: its own value, or the mean of those in its chunks. Weights of the values, for both directions. */
typedef void weigh(const struct nr_lsh_unit *, int64_t t, int64_t key, real weight, real *y);
static void lonely(const struct nr_lsh_unit *w, int64_t c, int64_t t, weigh *each, real *y)
{
	if (w->c->o.not_self) {
		each(w, t, t, 1, y);
		return;
	}
	for (int64_t j = 0; j < w->s.seen; j++)
		for (int64_t i = 0; i < w->s.chunk; i++)
			each(w, t, nr_lsh_keys(w, c, j)[i], 1 / (real)(w->s.seen * w->s.chunk), y);
}

static void add_value(const struct nr_lsh_unit *w, int64_t t, int64_t key, real weight, real *y)
{
	(void)t;
	if (key < w->s.T) nr_row_axpy(w->s.d, weight, w->v + key * w->s.width, y);
}

static void forward_unit(const struct nr_call *k, int64_t u)
{
	struct nr_lsh_unit w = nr_lsh_unit(k, u);
	real *out = (real *)k->y[0].p + w.b * k->y[0].bs + w.h * w.s.d;
	nr_lsh_order(&w);
	nr_lsh_norms(&w);
	for (int64_t t = 0; t < w.s.L; t++) w.lse[t] = -INFINITY;
	for (int64_t c = 0; c < w.s.chunks; c++) {
		const struct nr_attention a = problem(&w, c);
		nr_tile_forward(&a, w.tile.dense);
		merge(&w, c, out);
	}
	for (int64_t i = 0; i < w.s.L; i++) {
		const int32_t t = w.order[i];
		if (w.lse[t] != -INFINITY) continue;
		w.lse[t] = INFINITY;                    /* as the kernel has it: no gradient through the scores */
		if (t >= w.s.T) continue;
		memset(out + t * w.s.C, 0, (size_t)w.s.d * sizeof(real));
		lonely(&w, i / w.s.chunk, t, add_value, out + t * w.s.C);
	}
}

/* ---- backward ----------------------------------------------------------------------------------------------------------------- */

struct back { const struct nr_call *k; real *gq, *gk, *gv; };   /* gk: of local keys; else NULL */

static void gather_back(const struct nr_lsh_unit *w, int64_t c)
{
	const int32_t *query = w->order + c * w->s.chunk;
	const struct nr_call *k = w->k;
	for (int64_t i = 0; i < w->s.chunk; i++) {
		const int64_t t = query[i], to = i * w->s.d;
		w->tile.lse[i] = t < w->s.T ? w->lse[t] : INFINITY;     /* what was filled up has no output */
		if (t < w->s.T) {
			const int64_t at = t * w->s.C + w->h * w->s.d;
			memcpy(w->tile.out + to, (const real *)k->y[0].p + w->b * k->y[0].bs + at, (size_t)w->s.d * sizeof(real));
			memcpy(w->tile.gout + to, (const real *)k->dy[0].p + w->b * k->dy[0].bs + at, (size_t)w->s.d * sizeof(real));
		} else {
			memset(w->tile.out + to, 0, (size_t)w->s.d * sizeof(real));
			memset(w->tile.gout + to, 0, (size_t)w->s.d * sizeof(real));
		}
	}
}

static void scatter(const struct nr_lsh_unit *w, const struct back *g, int64_t c)
{
	const int32_t *query = w->order + c * w->s.chunk;
	for (int64_t i = 0; i < w->s.chunk; i++)
		if (query[i] < w->s.T) nr_row_axpy(w->s.d, 1, w->tile.gq + i * w->s.d, g->gq + query[i] * w->s.width);
	for (int64_t j = 0; j < w->s.seen; j++) {
		const int32_t *key = nr_lsh_keys(w, c, j);
		for (int64_t i = 0; i < w->s.chunk; i++) {
			if (key[i] >= w->s.T) continue;
			const int64_t at = (j * w->s.chunk + i) * w->s.d;
			nr_row_axpy(w->s.d, 1, w->tile.gk + at, w->m.gk + key[i] * w->s.d);
			nr_row_axpy(w->s.d, 1, w->tile.gv + at, g->gv + key[i] * w->s.width);
		}
	}
}

/* Gradients of the keys as they were used, to those of what they were made of: k = q n, n = (mean q^2 + eps)^-1/2. */
static void finish_keys(const struct nr_lsh_unit *w, const struct back *g)
{
	for (int64_t t = 0; t < w->s.T; t++) {
		const real *gk = w->m.gk + t * w->s.d, *q = w->q + t * w->s.width, n = w->m.norm[t];
		real *to = (g->gk ? g->gk : g->gq) + t * w->s.width, dot = 0;
		nr_row_axpy(w->s.d, n, gk, to);
		if (!w->c->o.normalize_keys) continue;
		for (int64_t i = 0; i < w->s.d; i++) dot += q[i] * gk[i];
		nr_row_axpy(w->s.d, -n * n * n * dot / (real)w->s.d, q, to);
	}
}

static void add_back(const struct nr_lsh_unit *w, int64_t t, int64_t key, real weight, real *gv)
{
	const real *g = (const real *)w->k->dy[0].p + w->b * w->k->dy[0].bs + t * w->s.C + w->h * w->s.d;
	if (key < w->s.T) nr_row_axpy(w->s.d, weight, g, gv + key * w->s.width);
}

static void backward_unit(const struct nr_call *k, int64_t u)
{
	struct nr_lsh_unit w = nr_lsh_unit(k, u);
	struct back g = { .k = k, .gq = (real *)k->dx[0].p + w.b * k->dx[0].bs + w.h * w.s.d };
	g.gk = w.c->local ? g.gq + w.s.C : NULL;
	g.gv = (w.c->local ? g.gk : g.gq) + w.s.C;
	for (int64_t t = 0; !k->add[0] && t < w.s.T; t++)
		for (int64_t at = 0; at < w.s.width; at += w.s.C) memset(g.gq + t * w.s.width + at, 0, (size_t)w.s.d * sizeof(real));
	memset(w.m.gk, 0, (size_t)(w.s.L * w.s.d) * sizeof(real));
	nr_lsh_norms(&w);
	for (int64_t c = 0; c < w.s.chunks; c++) {
		const struct nr_attention a = problem(&w, c);
		gather_back(&w, c);
		nr_tile_backward(&a, w.tile.dense);
		scatter(&w, &g, c);
	}
	finish_keys(&w, &g);
	for (int64_t i = 0; i < w.s.L; i++) {           /* as in forward: the first round's chunk of a token */
		const int32_t t = w.order[i];
		if (t < w.s.T && w.lse[t] == INFINITY) lonely(&w, i / w.s.chunk, t, add_back, g.gv);
	}
}

static int team(const struct nr_call *k)
{
	const int sized = ((const struct nr_lsh *)k->node->attr)->threads, most = omp_get_max_threads();
	return sized < most ? sized : most;
}

static void forward(const struct nr_call *k)
{
	const int64_t units = k->node->in[0]->d[0] * ((const struct nr_lsh *)k->node->attr)->o.heads;
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(k))
	for (int64_t u = 0; u < units; u++) forward_unit(k, u);
}

static void backward(const struct nr_call *k)
{
	const int64_t units = k->node->in[0]->d[0] * ((const struct nr_lsh *)k->node->attr)->o.heads;
	if (!(k->want & 1)) return;
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(k))
	for (int64_t u = 0; u < units; u++) backward_unit(k, u);
}

static void cost(const struct nr_node *k, double *f, double *b)
{
	const struct nr_lsh_sizes s = nr_lsh_sizes(k);
	const double pairs = (double)(s.B * s.H * s.rounds * s.L) * (double)(s.seen * s.chunk);
	*f = pairs * 4 * (double)s.d + (nr_lsh_hashes(k, &s) ? 2 * (double)(s.B * s.T * s.C * s.rounds * s.half) : 0);
	*b = pairs * 10 * (double)s.d;
}

/* ---- tests' entries, builders ------------------------------------------------------------------------------------------------------- */

struct try {
	int64_t heads, rounds, buckets, more, chunk, multiple, before, after;
	bool keys, masked, self, rotations, valid, one;
	float scale, dropout;
};
static const struct nr_option try_options[] = {
	NR_OPT_INT(struct try, heads, 1, 1, 1e6, "heads"), NR_OPT_INT(struct try, rounds, 1, 1, 64, "rounds of hashing"),
	NR_OPT_INT(struct try, buckets, 2, 0, 1e6, "buckets of a round"), NR_OPT_INT(struct try, more, 0, 0, 1e6, "second factor"),
	NR_OPT_INT(struct try, chunk, 0, 0, 1e6, "tokens of a chunk"), NR_OPT_INT(struct try, multiple, 0, 0, 1e6, "to fill up to"),
	NR_OPT_INT(struct try, before, 1, 0, 64, "chunks before"), NR_OPT_INT(struct try, after, 0, 0, 64, "chunks behind"),
	NR_OPT_BOOL(struct try, keys, "0", "keys are normalised"), NR_OPT_BOOL(struct try, masked, "0", "padding is no key"),
	NR_OPT_BOOL(struct try, self, "0", "no token sees itself"), NR_OPT_BOOL(struct try, rotations, "0", "they are given"),
	NR_OPT_BOOL(struct try, valid, "0", "lengths are given"), NR_OPT_BOOL(struct try, one, "0", "rotations serve all heads"),
	NR_OPT_FLOAT(struct try, scale, 0, 0, 100, "of the scores"), NR_OPT_FLOAT(struct try, dropout, 0, 0, 1, "of the probabilities"),
	NR_OPT_END
};

static struct nr_lsh_options try_of(struct nr_net *n, nr_t **x, const char *text)
{
	struct try t;
	nr_option_defaults(try_options, &t);
	nr_option_parse(try_options, &t, text, nr_net_arena(n), NULL);
	return (struct nr_lsh_options){ .heads = t.heads, .rounds = t.rounds, .buckets = { t.buckets, t.more }, .chunk = t.chunk,
		.multiple = t.multiple, .before = t.before, .after = t.after, .normalize_keys = t.keys, .masked = t.masked,
		.not_self = t.self, .one_rotation = t.one, .scale = t.scale, .dropout = t.dropout, .rotations = t.rotations ? x[1] : NULL,
		.valid = t.valid ? x[1 + t.rotations] : NULL };
}
static nr_t *lsh_try(struct nr_net *n, nr_t **x, const char *text) { return nr_lsh_attention(n, x[0], try_of(n, x, text), NULL); }
static nr_t *local_try(struct nr_net *n, nr_t **x, const char *text) { return nr_local_attention(n, x[0], try_of(n, x, text)); }

static const struct nr_case lsh_cases[] = {
	{ "2x11x12 3x2x1", "heads=2,buckets=2,multiple=4,scale=0.7,one=1,rotations=1" },
	{ "1x12x8 2x4x2x2", "heads=2,rounds=2,buckets=4,chunk=3,keys=1,masked=1,self=1,rotations=1" },
	{ "2x10x6 1x3x2x1 2:i1-10", "heads=1,rounds=2,buckets=2,chunk=3,keys=1,masked=1,self=1,rotations=1,valid=1" },
	{ "1x16x8 2x2x1x3", "heads=2,buckets=2,more=4,chunk=4,after=1,keys=1,rotations=1" },
	{ "3x5x6 3:i1-5", "heads=1,rounds=2,buckets=2,chunk=8,keys=1,masked=1,self=1,valid=1" },
	{ "1x1x2", "heads=1,chunk=4,self=1,masked=1" },
	{ "2x16x8", "heads=2,rounds=2,buckets=4,chunk=4,keys=1,self=1,dropout=0.25" }, { NULL, NULL },
};
static const struct nr_case local_cases[] = {
	{ "2x11x12", "heads=2,chunk=3,masked=1" }, { "3x9x6 3:i1-9", "heads=1,chunk=2,before=1,after=1,masked=1,valid=1" },
	{ "1x4x3", "heads=1,chunk=5,masked=1" }, { "2x12x6", "heads=1,chunk=4,before=0,after=1,dropout=0.3" }, { NULL, NULL },
};
#define BOTH                                                                                                                      \
	.shape = shape, .forward = forward, .backward = backward, .cost = cost,                                                    \
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1) | NR_KEEP_X(2) | NR_KEEP_Y(0), .optional = 2, .flags = NR_STRIDED | NR_RANDOM
const struct nr_op nr_op_lsh_attention = { .name = "lsh_attention", BOTH, .try_case = lsh_try, .cases = lsh_cases };
const struct nr_op nr_op_local_attention = { .name = "local_attention", BOTH, .try_case = local_try, .cases = local_cases };

static nr_t *apply(struct nr_net *n, nr_t *x, struct nr_lsh_options o, bool local, nr_t **buckets)
{
	if (buckets) *buckets = NULL;
	if (!x) return NULL;
	nr_t *in[3] = { x }, *valid = !o.masked ? NULL : o.valid ? o.valid : x->tok ? x->tok->valid : NULL;
	const struct nr_lsh a = { .o = o, .local = local, .has_rotations = o.rotations && !local, .has_valid = valid != NULL,
		.threads = omp_get_max_threads(), .stream = nr_stream_next(n) };
	int count = 1;
	if (a.has_rotations) in[count++] = o.rotations;
	if (valid) in[count++] = valid;
	nr_t *y = nr_apply_list(n, local ? &nr_op_local_attention : &nr_op_lsh_attention, &a, sizeof a, count, in);
	if (y && buckets) *buckets = y->src->out[1];
	return y;
}
nr_t *nr_lsh_attention(struct nr_net *n, nr_t *x, struct nr_lsh_options o, nr_t **buckets)
{
	return apply(n, x, o, false, buckets);
}
nr_t *nr_local_attention(struct nr_net *n, nr_t *x, struct nr_lsh_options o) { return apply(n, x, o, true, NULL); }
