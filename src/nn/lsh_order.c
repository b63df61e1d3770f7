/* lsh_attention's sizes, and the order in which its tokens are cut into chunks: hashing and sorting. See lsh_attention.c. */
#include "nn/lsh.h"

#include <omp.h>

#include "math/chunk.h"
#include "math/gemm.h"
#include "nn/stream.h"

enum { HASHED = 64 };                   /* rows that are hashed at a time */

struct nr_lsh_sizes nr_lsh_sizes(const struct nr_node *k)
{
	const struct nr_lsh *c = k->attr;
	const nr_t *x = k->in[0];
	struct nr_lsh_sizes s = { .B = x->d[0], .T = x->d[1], .H = c->o.heads, .width = x->d[2], .C = x->d[2] / (c->local ? 3 : 2),
		.rounds = c->local ? 1 : c->o.rounds, .buckets = 1 };
	s.d = s.C / s.H;
	for (int i = 0; i < NR_LSH_FACTORS && c->o.buckets[i]; i++) s.buckets *= c->o.buckets[i], s.half += c->o.buckets[i] / 2;
	const int64_t multiple = c->o.multiple ? c->o.multiple : c->o.chunk;
	s.L = (s.T + multiple - 1) / multiple * multiple;
	s.chunk = c->o.chunk ? c->o.chunk : s.L / s.buckets;
	s.before = c->o.before, s.seen = 1 + c->o.before + c->o.after;
	if (c->o.chunk && s.T <= s.chunk) s.L = s.chunk = s.T, s.rounds = 1, s.before = 0, s.seen = 1;     /* plain attention */
	s.chunks = s.chunk > 0 ? s.rounds * s.L / s.chunk : 0;
	return s;
}

bool nr_lsh_hashes(const struct nr_node *k, const struct nr_lsh_sizes *s)
{
	return !((const struct nr_lsh *)k->attr)->local && s->chunks > 1;
}

static size_t lines(size_t bytes) { return (bytes + 63) / 64 * 64; }
static size_t reals(int64_t n) { return lines((size_t)n * sizeof(real)); }
static size_t ints(int64_t n) { return lines((size_t)n * sizeof(int32_t)); }

static size_t memory_of(const struct nr_lsh_sizes *s, char *at, struct nr_lsh_memory *m)
{
	char *const from = at;
	m->rotations = (real *)at, at += reals(s->d * s->rounds * s->half);
	m->hashed = (real *)at, at += reals(HASHED * s->rounds * s->half);
	m->norm = (real *)at, at += reals(s->L);
	m->gk = (real *)at, at += reals(s->L * s->d);
	m->bucket = (int32_t *)at, at += ints(s->rounds * s->L);
	m->count = (int32_t *)at, at += ints(s->buckets + 2);
	m->tile = at;
	return (size_t)(at - from) + nr_tile_bytes(s->d, s->chunk, s->seen * s->chunk);
}
size_t nr_lsh_bytes(const struct nr_lsh_sizes *s)
{
	static char none;
	struct nr_lsh_memory m;
	return lines(memory_of(s, &none, &m));
}

int nr_lsh_check(struct nr_node *k)
{
	const struct nr_lsh *c = k->attr;
	const nr_t *x = k->in[0];
	const int64_t parts = c->local ? 3 : 2;
	char s[64];
	if (nr_expect(k, x->nd == 3 && x->d[2] % parts == 0, "%s is not (B,T,%lldC)", nr_shape_text(x, s, sizeof s), (long long)parts) ||
	    nr_expect(k, c->o.heads > 0 && x->d[2] % (parts * c->o.heads) == 0, "%lld channels cannot be divided into %lld heads",
		      (long long)(x->d[2] / parts), (long long)c->o.heads) ||
	    nr_expect(k, c->o.chunk > 0 || (!c->local && c->o.multiple > 0), "a chunk needs a length") ||
	    nr_expect(k, c->local || c->o.rounds > 0, "attention needs at least one round of hashing"))
		return NR_ESHAPE;
	for (int i = 0; !c->local && i < NR_LSH_FACTORS && (!i || c->o.buckets[i]); i++)
		if (nr_expect(k, c->o.buckets[i] > 0 && c->o.buckets[i] % 2 == 0, "the number of buckets, %lld, is not even",
			      (long long)c->o.buckets[i]))
			return NR_ESHAPE;
	const struct nr_lsh_sizes z = nr_lsh_sizes(k);
	return nr_expect(k, c->o.chunk > 0 || z.L % z.buckets == 0,
		"%lld tokens (%lld, filled up to a multiple of %lld) cannot be divided into %lld buckets of equal length", (long long)z.L,
		(long long)z.T, (long long)c->o.multiple, (long long)z.buckets);
}

size_t nr_lsh_stash(const struct nr_lsh_sizes *s)
{
	return reals(s->B * s->H * s->L) + ints(s->B * s->H * s->rounds * s->L);
}

/* ---- one sample, one head -------------------------------------------------------------------------------------------------------- */

struct nr_lsh_unit nr_lsh_unit(const struct nr_call *k, int64_t u)
{
	struct nr_lsh_unit w = { .k = k, .c = k->node->attr, .s = nr_lsh_sizes(k->node) };
	w.b = u / w.s.H, w.h = u % w.s.H;
	w.valid = w.s.L;
	if (w.c->o.masked) w.valid = w.c->has_valid ? nr_ints(&k->x[1 + w.c->has_rotations])[w.b] : w.s.T;
	w.valid = nr_max64(0, nr_min64(w.valid, w.c->o.masked ? w.s.T : w.s.L));
	w.q = (const real *)k->x[0].p + w.b * k->x[0].bs + w.h * w.s.d;
	w.keys = w.c->local ? w.q + w.s.C : w.q;
	w.v = w.keys + w.s.C;
	w.lse = (real *)k->stash + u * w.s.L;
	w.order = (int32_t *)((char *)k->stash + reals(w.s.B * w.s.H * w.s.L)) + u * w.s.rounds * w.s.L;
	memory_of(&w.s, (char *)k->scratch + nr_lsh_bytes(&w.s) * (size_t)omp_get_thread_num(), &w.m);
	w.tile = nr_tile_at(w.s.d, w.s.chunk, w.s.seen * w.s.chunk, w.m.tile);
	return w;
}

void nr_lsh_norms(const struct nr_lsh_unit *w)
{
	for (int64_t t = 0; t < w->s.L; t++) {
		real sum = 0;
		const real *q = w->q + t * w->s.width;
		for (int64_t i = 0; t < w->s.T && i < w->s.d; i++) sum += q[i] * q[i];
		w->m.norm[t] = w->c->o.normalize_keys ? 1 / nr_sqrt(sum / (real)w->s.d + (real)1e-6) : 1;
	}
}

const int32_t *nr_lsh_keys(const struct nr_lsh_unit *w, int64_t c, int64_t j)
{
	const int64_t at = (c - w->s.before + j) % w->s.chunks;
	return w->order + (at < 0 ? at + w->s.chunks : at) * w->s.chunk;
}

/* ---- hashing ------------------------------------------------------------------------------------------------------------------------ */

static const real *rotations_of(const struct nr_lsh_unit *w)
{
	const int64_t each = w->s.d * w->s.rounds * w->s.half, head = w->c->o.one_rotation ? 0 : w->h;
	if (w->c->has_rotations)
		return (const real *)w->k->x[1].p + (w->c->o.layer * (w->c->o.one_rotation ? 1 : w->s.H) + head) * each;
	const struct nr_exec *ex = w->k->ex;        /* an evaluation always takes the same ones */
	const struct nr_rng rng = nr_rng_make(ex->train ? ex->seed : 0, NR_STREAM_ROTATIONS + (uint32_t)w->c->o.layer,
		ex->train ? (uint32_t)ex->step : 0);
	for (int64_t i = 0; i < each; i++) w->m.rotations[i] = (real)nr_rng_normal(rng, (uint64_t)(head * each + i));
	return w->m.rotations;
}

/* argmax [r, -r]: the first of the largest. */
static int32_t widest(const real *r, int64_t half)
{
	enum { LANES = 8 };
	real most[LANES] = { 0 };
	int64_t i = 0;
	for (; i + LANES <= half; i += LANES)
		for (int j = 0; j < LANES; j++) most[j] = nr_fabs(r[i + j]) > most[j] ? nr_fabs(r[i + j]) : most[j];
	for (; i < half; i++) most[0] = nr_fabs(r[i]) > most[0] ? nr_fabs(r[i]) : most[0];
	for (int j = 1; j < LANES; j++) most[0] = most[j] > most[0] ? most[j] : most[0];
	for (i = 0; i < half; i++)
		if (r[i] == most[0]) return (int32_t)i;
	for (i = 0; i < half; i++)
		if (-r[i] == most[0]) return (int32_t)(half + i);
	return 0;                               /* not a number */
}

static int32_t bucket_of(const struct nr_lsh_unit *w, const real *r)
{
	int64_t bucket = 0, product = 1;
	for (int i = 0; i < NR_LSH_FACTORS && w->c->o.buckets[i]; i++) {
		const int64_t half = w->c->o.buckets[i] / 2;
		bucket += product * widest(r, half);
		product *= w->c->o.buckets[i];
		r += half;
	}
	return (int32_t)bucket;
}

static void hash_rows(const struct nr_lsh_unit *w, const real *rotations, int64_t from, int64_t rows)
{
	const int64_t n = w->s.rounds * w->s.half;
	for (int64_t at = 0; at < w->s.d; at += NR_GEMM_K) {
		const struct nr_gemm_tile t = { .m = rows, .n = n, .k = nr_min64(NR_GEMM_K, w->s.d - at),
			.a = w->q + from * w->s.width + at, .lda = w->s.width, .b = rotations + at * n, .ldb = n,
			.base = at ? w->m.hashed : NULL, .ldbase = n, .c = w->m.hashed, .ldc = n };
		nr_gemm_active->tile(&t);
	}
	for (int64_t i = 0; i < rows; i++)
		for (int64_t r = 0; r < w->s.rounds; r++)
			w->m.bucket[r * w->s.L + from + i] = bucket_of(w, w->m.hashed + i * n + r * w->s.half);
}

/* Stable, by counting. */
static void sort_round(const struct nr_lsh_unit *w, int64_t r)
{
	const int32_t *bucket = w->m.bucket + r * w->s.L;
	int32_t *count = w->m.count, *order = w->order + r * w->s.L, at = 0;
	memset(count, 0, (size_t)(w->s.buckets + 2) * sizeof *count);
	for (int64_t t = 0; t < w->s.L; t++) count[bucket[t]]++;
	for (int64_t i = 0; i <= w->s.buckets; i++) {
		const int32_t n = count[i];
		count[i] = at;
		at += n;
	}
	for (int64_t t = 0; t < w->s.L; t++) order[count[bucket[t]]++] = (int32_t)t;
}

static bool any_padding(const struct nr_lsh_unit *w)
{
	if (!w->c->o.masked) return false;
	const int32_t *valid = w->c->has_valid ? nr_ints(&w->k->x[1 + w->c->has_rotations]) : NULL;
	bool any = w->s.T < w->s.L;
	for (int64_t b = 0; valid && b < w->s.B; b++) any |= valid[b] < w->s.L;
	return any;
}

void nr_lsh_order(struct nr_lsh_unit *w)
{
	int32_t *out = w->k->y[1].p ? nr_ints(&w->k->y[1]) + (w->b * w->s.H + w->h) * w->s.rounds * w->s.L : NULL;
	if (!nr_lsh_hashes(w->k->node, &w->s)) {
		for (int64_t t = 0; t < w->s.L; t++) w->order[t] = (int32_t)t;
		if (out) memset(out, 0, (size_t)(w->s.rounds * w->s.L) * sizeof *out);
		return;
	}
	const int64_t per_round = w->s.buckets + any_padding(w);
	if (w->k->again && out) {               /* rounding must not move a token to another bucket */
		for (int64_t r = 0; r < w->s.rounds; r++) {
			for (int64_t t = r * w->s.L; t < (r + 1) * w->s.L; t++) w->m.bucket[t] = out[t] - (int32_t)(r * per_round);
			sort_round(w, r);
		}
		return;
	}
	const real *rotations = rotations_of(w);
	for (int64_t t = 0; t < w->s.T; t += HASHED) hash_rows(w, rotations, t, nr_min64(HASHED, w->s.T - t));
	for (int64_t r = 0; r < w->s.rounds; r++) {
		int32_t *bucket = w->m.bucket + r * w->s.L;
		for (int64_t t = w->s.T; t < w->s.L; t++) bucket[t] = 0;         /* zero vectors hash to the first bucket */
		for (int64_t t = w->valid; t < w->s.L; t++) bucket[t] = (int32_t)w->s.buckets;
		sort_round(w, r);
		for (int64_t t = 0; out && t < w->s.L; t++) out[r * w->s.L + t] = bucket[t] + (int32_t)(r * per_round);
	}
}

