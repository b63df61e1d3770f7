/* block_attention: BigBird's sparse attention. Zaheer et al. 2020, arXiv:2007.14062.
 *
 * Tokens are cut into blocks. The first and the last block see everything and are seen by all; any other block sees those two, itself,
 * its two neighbours, and some blocks drawn for (layer, head, block), which never change. A block that is listed among the drawn ones
 * although it is visible counts twice in the softmax, as in Hugging Face's code. Padding has no part: as queries it gives 0. */
#include <omp.h>
#include <stdbool.h>

#include "math/chunk.h"
#include "math/row.h"
#include "math/tile.h"
#include "nn/op.h"
#include "nn/sparse.h"
#include "nn/stream.h"

struct block_attention {
	int64_t heads, block, random, layer, seed;
	bool has_given, has_valid, zero_in_eval;    /* after qkv come the given blocks, then the lengths */
	int threads;
	uint32_t stream;
	float dropout;
};

struct sizes { int64_t B, T, H, d, C, block, blocks, keys; };   /* keys: most of a gathered tile */

static struct sizes sizes_of(const struct nr_node *k)
{
	const struct block_attention *c = k->attr;
	const nr_t *x = k->in[0];
	struct sizes s = { .B = x->d[0], .T = x->d[1], .H = c->heads, .C = x->d[2] / 3, .block = c->block };
	s.d = s.C / s.H;
	s.blocks = (s.T + s.block - 1) / s.block;
	s.keys = nr_min64((5 + c->random) * s.block, (1 + c->random) * s.T);
	return s;
}

static size_t thread_bytes(const struct sizes *s)
{
	const int64_t queries = nr_min64(s->block, s->T);
	const size_t tile = nr_tile_bytes(s->d, queries, s->keys), whole = nr_tile_dense_bytes(s->d, queries, s->T);
	return tile > whole ? tile : whole;
}

static int shape(struct nr_node *k)
{
	const struct block_attention *c = k->attr;
	const nr_t *x = k->in[0], *given = c->has_given ? k->in[1] : NULL, *valid = c->has_valid ? k->in[1 + c->has_given] : NULL;
	char s[64];
	if (nr_expect(k, x->nd == 3 && x->d[2] % 3 == 0, "%s is not (B,T,3C)", nr_shape_text(x, s, sizeof s)) ||
	    nr_expect(k, c->heads > 0 && x->d[2] % (3 * c->heads) == 0, "%lld channels cannot be divided into %lld heads",
		      (long long)x->d[2] / 3, (long long)c->heads) ||
	    nr_expect(k, c->block > 0 && c->random >= 0, "blocks of %lld tokens and %lld random ones make no sense",
		      (long long)c->block, (long long)c->random) ||
	    nr_expect(k, !valid || (valid->dtype == NR_I32 && nr_len(valid) == x->d[0]), "lengths must be %lld int32, one per sample",
		      (long long)x->d[0]))
		return NR_ESHAPE;
	const struct sizes z = sizes_of(k);
	const int64_t rows = nr_max64(z.blocks - 2, 0);
	if (nr_expect(k, !given || (given->dtype == NR_I32 && given->nd == 4 && given->d[0] > c->layer && given->d[1] == z.H &&
				    given->d[2] == rows && given->d[3] == c->random),
		      "the random blocks %s are not (layers,%lld,%lld,%lld)", given ? nr_shape_text(given, s, sizeof s) : "",
		      (long long)z.H, (long long)rows, (long long)c->random))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ z.B, z.T, z.C }, x->tok);
	k->stash = (size_t)(z.B * z.H * z.T) * sizeof(real);
	k->scratch = thread_bytes(&z) * (size_t)c->threads;
	return 0;
}

/* ---- which blocks ------------------------------------------------------------------------------------------------------------ */

enum { MOST_SEEN = 5 + 64 };

static bool among(const int32_t *list, int n, int32_t x)
{
	for (int i = 0; i < n; i++)
		if (list[i] == x) return true;
	return false;
}

/* Those that block i sees, beside ends and neighbours `random` drawn ones without repetition; how many. */
static int draw(const struct block_attention *c, const struct sizes *s, int64_t h, int64_t i, int32_t *seen, int n)
{
	const struct nr_rng rng = nr_rng_make((uint64_t)c->seed, NR_STREAM_BLOCKS + (uint32_t)c->layer, (uint32_t)h);
	const int before = n;
	for (int64_t r = 0; r < c->random && n < s->blocks; r++) {
		int64_t left = (int64_t)nr_rng_below(rng, (uint64_t)(i * c->random + r), (uint64_t)(s->blocks - before - r));
		int32_t b = 0;
		while (among(seen, n, b) || left-- > 0) b++;
		seen[n++] = b;
	}
	return n;
}

static int seen_by(const struct nr_call *k, const struct sizes *s, int64_t h, int64_t i, int32_t seen[MOST_SEEN])
{
	const struct block_attention *c = k->node->attr;
	const int32_t near[] = { 0, (int32_t)i - 1, (int32_t)i, (int32_t)i + 1, (int32_t)s->blocks - 1 };
	int n = 0;
	for (int j = 0; j < 5; j++)
		if (!among(seen, n, near[j])) seen[n++] = near[j];
	if (!c->has_given && !(c->zero_in_eval && !k->ex->train)) return draw(c, s, h, i, seen, n);
	const int32_t *given = c->has_given ? nr_ints(&k->x[1]) + ((c->layer * s->H + h) * (s->blocks - 2) + i - 1) * c->random : NULL;
	for (int64_t r = 0; r < c->random; r++) {
		const int32_t b = given ? given[r] : 0;
		if (b >= 0 && b < s->blocks) seen[n++] = b;
	}
	return n;
}

/* ---- one sample, one head ----------------------------------------------------------------------------------------------------- */

struct unit {
	const struct nr_call *k;
	struct sizes s;
	int64_t b, h, valid;
	const real *q, *keys, *v;                   /* rows 3 C apart */
	real *gq, *gk, *gv, *lse, *memory;
	struct nr_attention_tile tile;
};

static struct unit unit_of(const struct nr_call *k, int64_t u)
{
	const struct block_attention *c = k->node->attr;
	struct unit w = { .k = k, .s = sizes_of(k->node) };
	w.b = u / w.s.H, w.h = u % w.s.H;
	w.valid = c->has_valid ? nr_ints(&k->x[1 + c->has_given])[w.b] : w.s.T;
	w.valid = nr_max64(0, nr_min64(w.valid, w.s.T));
	w.q = (const real *)k->x[0].p + w.b * k->x[0].bs + w.h * w.s.d;
	w.keys = w.q + w.s.C, w.v = w.keys + w.s.C;
	w.lse = (real *)k->stash + u * w.s.T;
	w.memory = (real *)((char *)k->scratch + thread_bytes(&w.s) * (size_t)omp_get_thread_num());
	w.tile = nr_tile_at(w.s.d, nr_min64(w.s.block, w.s.T), w.s.keys, w.memory);
	return w;
}

static bool is_end(const struct unit *w, int64_t i) { return i == 0 || i == w->s.blocks - 1; }

/* Rows of a block that are no padding. */
static int64_t rows_of(const struct unit *w, int64_t block) { return nr_max64(0, nr_min64(w->s.block, w->valid - block * w->s.block)); }

static int64_t gather(const struct unit *w, int64_t i)
{
	int32_t seen[MOST_SEEN];
	const int n = seen_by(w->k, &w->s, w->h, i, seen);
	int64_t at = 0;
	for (int j = 0; j < n; j++)
		for (int64_t r = 0, rows = rows_of(w, seen[j]); r < rows; r++, at++) {
			const int64_t from = (seen[j] * w->s.block + r) * 3 * w->s.C;
			memcpy(w->tile.k + at * w->s.d, w->keys + from, (size_t)w->s.d * sizeof(real));
			memcpy(w->tile.v + at * w->s.d, w->v + from, (size_t)w->s.d * sizeof(real));
		}
	return at;
}

static void scatter(const struct unit *w, int64_t i)
{
	int32_t seen[MOST_SEEN];
	const int n = seen_by(w->k, &w->s, w->h, i, seen);
	int64_t at = 0;
	for (int j = 0; j < n; j++)
		for (int64_t r = 0, rows = rows_of(w, seen[j]); r < rows; r++, at++) {
			const int64_t to = (seen[j] * w->s.block + r) * 3 * w->s.C;
			nr_row_axpy(w->s.d, 1, w->tile.gk + at * w->s.d, w->gk + to);
			nr_row_axpy(w->s.d, 1, w->tile.gv + at * w->s.d, w->gv + to);
		}
}

/* The dense problem of query block i: keys gathered, or for the ends all of them where they lie. */
static struct nr_attention problem(const struct unit *w, int64_t i, int64_t keys)
{
	const struct block_attention *c = w->k->node->attr;
	const struct nr_heads in = { 0, 3 * w->s.C, 0 }, out = { 0, w->s.C, 0 };
	const int64_t first = i * w->s.block;
	struct nr_attention a = nr_tile_attention(&w->tile, rows_of(w, i), keys, 1 / nr_sqrt((real)w->s.d));
	a.q = w->q + first * 3 * w->s.C, a.sq = in;
	a.lse = w->lse + first;
	a.out = (real *)w->k->y[0].p + w->b * w->k->y[0].bs + first * w->s.C + w->h * w->s.d, a.so = out;
	if (is_end(w, i)) a.k = w->keys, a.v = w->v, a.sk = a.sv = in;
	if (w->k->ex->train && !w->k->ex->no_dropout && c->dropout > 0) {
		a.dropout = (real)c->dropout;
		a.rng = nr_tile_rng(nr_rng_make(w->k->ex->seed, NR_STREAM_DROPOUT + c->stream, (uint32_t)w->k->ex->step),
			(uint64_t)((w->b * w->s.H + w->h) * w->s.blocks + i));
	}
	return a;
}

/* Ends use no gathered rows: their scratch is all of the memory. */
static void *dense_of(const struct unit *w, int64_t i) { return is_end(w, i) ? w->memory : w->tile.dense; }

static void clear_rows(real *p, int64_t from, int64_t to, int64_t row, int64_t d)
{
	for (int64_t t = from; t < to; t++) memset(p + t * row, 0, (size_t)d * sizeof(real));
}

static void forward_unit(const struct nr_call *k, int64_t u)
{
	struct unit w = unit_of(k, u);
	clear_rows((real *)k->y[0].p + w.b * k->y[0].bs + w.h * w.s.d, w.valid, w.s.T, w.s.C, w.s.d);
	for (int64_t i = 0; i < w.s.blocks && rows_of(&w, i); i++) {
		const struct nr_attention a = problem(&w, i, is_end(&w, i) ? w.valid : gather(&w, i));
		nr_tile_forward(&a, dense_of(&w, i));
	}
}

static void backward_unit(const struct nr_call *k, int64_t u)
{
	struct unit w = unit_of(k, u);
	const struct nr_heads in = { 0, 3 * w.s.C, 0 };
	w.gq = (real *)k->dx[0].p + w.b * k->dx[0].bs + w.h * w.s.d;
	w.gk = w.gq + w.s.C, w.gv = w.gk + w.s.C;
	for (int j = 0; j < 3 && !k->add[0]; j++) clear_rows(w.gq + j * w.s.C, 0, w.s.T, 3 * w.s.C, w.s.d);
	for (int64_t i = 0; i < w.s.blocks && rows_of(&w, i); i++) {
		struct nr_attention a = problem(&w, i, is_end(&w, i) ? w.valid : gather(&w, i));
		a.gout = (const real *)k->dy[0].p + w.b * k->dy[0].bs + i * w.s.block * w.s.C + w.h * w.s.d;
		a.sgo = (struct nr_heads){ 0, w.s.C, 0 };
		a.gq = w.gq + i * w.s.block * 3 * w.s.C, a.sgq = in;
		a.add = NR_ATTENTION_ADD_Q;
		if (is_end(&w, i)) {
			a.gk = w.gk, a.gv = w.gv, a.sgk = a.sgv = in;
			a.add |= NR_ATTENTION_ADD_K | NR_ATTENTION_ADD_V;
		}
		nr_tile_backward(&a, dense_of(&w, i));
		if (!is_end(&w, i)) scatter(&w, i);
	}
}

static int team(const struct nr_call *k)
{
	const int sized = ((const struct block_attention *)k->node->attr)->threads, most = omp_get_max_threads();
	return sized < most ? sized : most;
}

static void forward(const struct nr_call *k)
{
	const int64_t units = k->node->in[0]->d[0] * ((const struct block_attention *)k->node->attr)->heads;
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(k))
	for (int64_t u = 0; u < units; u++) forward_unit(k, u);
}

static void backward(const struct nr_call *k)
{
	const int64_t units = k->node->in[0]->d[0] * ((const struct block_attention *)k->node->attr)->heads;
	if (!(k->want & 1)) return;
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(k))
	for (int64_t u = 0; u < units; u++) backward_unit(k, u);
}

static void cost(const struct nr_node *k, double *f, double *b)
{
	const struct sizes s = sizes_of(k);
	const int64_t ends = nr_min64(2, s.blocks), seen = nr_min64(s.T, s.keys);
	const double pairs = (double)(s.B * s.H * s.block) * ((double)(ends * s.T) + (double)((s.blocks - ends) * seen));
	*f = pairs * 4 * (double)s.d;
	*b = pairs * 10 * (double)s.d;
}

int64_t nr_block_keys(const struct nr_node *k)
{
	const struct sizes s = sizes_of(k);
	return nr_max64(s.T, s.keys);
}

void nr_block_look(const struct nr_call *k, int64_t u, int32_t *room, nr_sparse_row *each, void *context)
{
	const struct unit w = unit_of(k, u);
	const struct nr_sparse_head head = { .q = w.q, .k = w.keys, .d = w.s.d, .width = 3 * w.s.C, .tokens = w.s.T,
		.scale = 1 / sqrt((double)w.s.d) };
	for (int64_t i = 0; i < w.s.blocks && rows_of(&w, i); i++) {
		int32_t seen[MOST_SEEN];
		int64_t n = 0;
		for (int64_t t = 0; is_end(&w, i) && t < w.valid; t++) room[n++] = (int32_t)t;
		for (int j = 0, blocks = is_end(&w, i) ? 0 : seen_by(k, &w.s, w.h, i, seen); j < blocks; j++)
			for (int64_t r = 0, rows = rows_of(&w, seen[j]); r < rows; r++) room[n++] = (int32_t)(seen[j] * w.s.block + r);
		for (int64_t r = 0; r < rows_of(&w, i); r++) each(context, &head, i * w.s.block + r, n, room);
	}
}

/* ---- tests' entries, the builder ------------------------------------------------------------------------------------------- */

struct try { int64_t heads, block, random; bool given, valid; float dropout; };
static const struct nr_option try_options[] = {
	NR_OPT_INT(struct try, heads, 1, 1, 1e6, "heads"),
	NR_OPT_INT(struct try, block, 4, 1, 1e9, "tokens of a block"),
	NR_OPT_INT(struct try, random, 1, 0, 64, "random blocks"),
	NR_OPT_BOOL(struct try, given, "0", "they are given"),
	NR_OPT_BOOL(struct try, valid, "0", "lengths are given"),
	NR_OPT_FLOAT(struct try, dropout, 0, 0, 1, "of the probabilities"),
	NR_OPT_END
};

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text)
{
	struct try t;
	nr_option_defaults(try_options, &t);
	nr_option_parse(try_options, &t, text, nr_net_arena(n), NULL);
	return nr_block_attention(n, x[0], (struct nr_block_attention_options){ .heads = t.heads, .block = t.block, .random = t.random,
		.dropout = t.dropout, .given = t.given ? x[1] : NULL, .valid = t.valid ? x[1 + t.given] : NULL });
}

static const struct nr_case cases[] = {
	{ "2x19x12", "heads=2,block=3,random=1" }, { "1x1x3", "heads=1" }, { "1x5x6", "heads=2,block=2,random=0" },
	{ "2x8x6", "heads=1,block=2,random=3" }, { "3x17x12 3:i1-17", "heads=2,block=2,random=2,valid=1" },
	{ "1x18x6 1x1x4x2:i6", "heads=1,block=3,random=2,given=1" },
	{ "2x14x12 1x2x5x1:i7 2:i1-14", "heads=2,block=2,random=1,given=1,valid=1" }, { "2x21x6", "heads=1,block=4,dropout=0.3" },
	{ NULL, NULL },
};
const struct nr_op nr_op_block_attention = {
	.name = "block_attention", .shape = shape, .forward = forward, .backward = backward, .cost = cost,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1) | NR_KEEP_X(2) | NR_KEEP_Y(0), .flags = NR_STRIDED | NR_RANDOM, .try_case = try_case,
	.cases = cases,
};

nr_t *nr_block_attention(struct nr_net *n, nr_t *qkv, struct nr_block_attention_options o)
{
	if (!qkv) return NULL;
	nr_t *in[3] = { qkv }, *valid = o.valid ? o.valid : qkv->tok ? qkv->tok->valid : NULL;
	const struct block_attention a = { .heads = o.heads, .block = o.block, .random = o.random, .layer = o.layer, .seed = o.seed,
		.has_given = o.given != NULL, .has_valid = valid != NULL, .zero_in_eval = o.zero_in_eval, .dropout = o.dropout,
		.threads = omp_get_max_threads(), .stream = nr_stream_next(n) };
	int count = 1;
	if (o.given) in[count++] = o.given;
	if (valid) in[count++] = valid;
	return nr_apply_list(n, &nr_op_block_attention, &a, sizeof a, count, in);
}
