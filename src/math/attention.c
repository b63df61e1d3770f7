/* Attention: the plain reference (one row of scores at a time), the threaded drivers, the sizes of
 * scratch. */
#include <omp.h>
#include <stdbool.h>
#include <string.h>

#include "math/attention.h"
#include "math/chunk.h"

#define NO_SCORE ((real)-1e29) /* below it a score does not count */
#define GROUPS 16              /* jobs of a bias gradient, about, whatever the number of threads */
#define SMALL 20000            /* multiplications below which a team is not worth waking */

const struct nr_attention_kernels *nr_attention_active = &nr_attention_plain;

static const real *head(const real *p, const struct nr_heads *s, int64_t b, int64_t h)
{
	return p + b * s->batch + h * s->head;
}

static real *head_out(real *p, const struct nr_heads *s, int64_t b, int64_t h)
{
	return p ? p + b * s->batch + h * s->head : NULL;
}

int nr_attention_keep(const struct nr_attention *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
	uint32_t c[4];
	nr_rng_block(a->rng, nr_attention_drop_block(a, b, h, i) + (uint64_t)j, c);
	const uint32_t w = c[i % 8 / 2];
	return (int)(i & 1 ? w >> 16 : w & 0xffff) >= nr_attention_threshold(a);
}

static real dot(int64_t n, const real *x, const real *y)
{
	real s = 0;
	for (int64_t i = 0; i < n; i++) s += x[i] * y[i];
	return s;
}

static void axpy(int64_t n, real f, const real *x, real *y)
{
	for (int64_t i = 0; i < n; i++) y[i] += f * x[i];
}

/* Scores of query i with the keys [lo, hi) it sees; -inf where one does not count. */
static void scores(
	const struct nr_attention *a, int64_t b, int64_t h, int64_t i, int64_t lo, int64_t hi, real *s)
{
	const real *q = head(a->q, &a->sq, b, h) + i * a->sq.row, *k = head(a->k, &a->sk, b, h);
	const real *bias = a->bias ? a->bias + ((b % a->n_bias * a->H + h) * nr_attention_rows(a) + i) * a->Tk : NULL;
	const real *mask = a->mask ? a->mask + (b % a->n_mask * nr_attention_rows(a) + i) * a->Tk : NULL;
	for (int64_t j = lo; j < hi; j++) {
		s[j] = a->scale * dot(a->d, q, k + j * a->sk.row);
		if (bias) s[j] += bias[j];
		if (mask) s[j] += mask[j];
		if (s[j] < NO_SCORE) s[j] = -INFINITY;
	}
}

static void plain_forward(const struct nr_attention *a, int64_t b, int64_t h, void *scratch)
{
	const real *v = head(a->v, &a->sv, b, h), up = nr_attention_rescale(a);
	real *s = scratch, *lse = a->lse + (b * a->H + h) * a->Tq;
	const bool drop = nr_attention_threshold(a) > 0;
	for (int64_t i = 0; i < a->Tq; i++) {
		real *o = head_out(a->out, &a->so, b, h) + i * a->so.row, max = -INFINITY, sum = 0;
		int64_t lo, hi;
		nr_attention_range(a, b, i, i + 1, &lo, &hi);
		scores(a, b, h, i, lo, hi, s);
		memset(o, 0, (size_t)a->dv * sizeof(real));
		for (int64_t j = lo; j < hi; j++) max = s[j] > max || isnan(s[j]) ? s[j] : max;
		if (max == -INFINITY) {
			lse[i] = INFINITY;
			continue;
		}
		for (int64_t j = lo; j < hi; j++) sum += nr_exp(s[j] - max);
		lse[i] = max + nr_log(sum);
		for (int64_t j = lo; j < hi; j++)
			if (!drop || nr_attention_keep(a, b, h, i, j))
				axpy(a->dv, nr_exp(s[j] - max) / sum * up, v + j * a->sv.row, o);
	}
}

static void plain_clear(real *p, const struct nr_heads *s, int64_t T, int64_t d)
{
	for (int64_t t = 0; p && t < T; t++) memset(p + t * s->row, 0, (size_t)d * sizeof(real));
}

static void plain_backward(
	const struct nr_attention *a, int64_t b, int64_t h, real *gbias, int add_bias, void *scratch)
{
	const real *q = head(a->q, &a->sq, b, h), *k = head(a->k, &a->sk, b, h),
		   *v = head(a->v, &a->sv, b, h);
	const real *out = head(a->out, &a->so, b, h), *go = head(a->gout, &a->sgo, b, h);
	const real *lse = a->lse + (b * a->H + h) * a->Tq, up = nr_attention_rescale(a);
	real *gq = head_out(a->gq, &a->sgq, b, h), *gk = head_out(a->gk, &a->sgk, b, h);
	real *gv = head_out(a->gv, &a->sgv, b, h), *s = scratch;
	const bool drop = nr_attention_threshold(a) > 0;
	if (!(a->add & NR_ATTENTION_ADD_Q)) plain_clear(gq, &a->sgq, a->Tq, a->d);
	if (!(a->add & NR_ATTENTION_ADD_K)) plain_clear(gk, &a->sgk, a->Tk, a->d);
	if (!(a->add & NR_ATTENTION_ADD_V)) plain_clear(gv, &a->sgv, a->Tk, a->dv);
	if (gbias && !add_bias) memset(gbias, 0, (size_t)(a->Tq * a->Tk) * sizeof(real));
	for (int64_t i = 0; i < a->Tq; i++) {
		const real *g = go + i * a->sgo.row, D = dot(a->dv, g, out + i * a->so.row);
		int64_t lo, hi;
		nr_attention_range(a, b, i, i + 1, &lo, &hi);
		scores(a, b, h, i, lo, hi, s);
		for (int64_t j = lo; j < hi; j++) {
			const real p = nr_exp(s[j] - lse[i]);
			const real f = !drop ? 1 : nr_attention_keep(a, b, h, i, j) ? up
										    : 0;
			const real gs = p * (f * dot(a->dv, g, v + j * a->sv.row) - D);
			if (gq) axpy(a->d, gs * a->scale, k + j * a->sk.row, gq + i * a->sgq.row);
			if (gk) axpy(a->d, gs * a->scale, q + i * a->sq.row, gk + j * a->sgk.row);
			if (gv) axpy(a->dv, p * f, g, gv + j * a->sgv.row);
			if (gbias) gbias[i * a->Tk + j] += gs;
		}
	}
}

static void plain_probs(const struct nr_attention *a, int64_t b, int64_t h, real *P, void *scratch)
{
	const real *lse = a->lse + (b * a->H + h) * a->Tq;
	real *s = scratch;
	memset(P, 0, (size_t)(a->Tq * a->Tk) * sizeof(real));
	for (int64_t i = 0; i < a->Tq; i++) {
		int64_t lo, hi;
		nr_attention_range(a, b, i, i + 1, &lo, &hi);
		scores(a, b, h, i, lo, hi, s);
		for (int64_t j = lo; j < hi; j++) P[i * a->Tk + j] = nr_exp(s[j] - lse[i]);
	}
}

const struct nr_attention_kernels nr_attention_plain = { plain_forward, plain_backward, plain_probs };

/* ---- sizes ---- */

static int64_t up16(int64_t n)
{
	return (n + 15) / 16 * 16;
}

/* Bytes of one thread: all that fast/attention.c lays out, with whole vectors of 16 and spare rows; whole
 * cache lines. */
static size_t bytes_per_thread(const struct nr_attention *a)
{
	const int64_t d = up16(a->d), e = up16(a->dv), Q = up16(a->Tq), K = up16(a->Tk) + 16;
	const int64_t qb = nr_attention_block(a->Tq, NR_ATTENTION_QB),
		      kb = nr_attention_block(a->Tk, NR_ATTENTION_KB) + 16;
	const int64_t tiles = (2 * (qb + 4) + 4) * kb + 3 * up16(qb + 4);
	const int64_t forward = d * K + K * e + qb * e;
	const int64_t backward = (2 * d + 2 * e) * kb + kb * d + Q * (2 * d + e + 1) + 16;
	return (size_t)(up16(tiles + nr_max64(forward, backward)) + 16) * sizeof(real);
}

/* Samples that share a bias form fixed groups: each is one job, done in sample order by one thread. */
static int64_t bias_groups(const struct nr_attention *a)
{
	const int64_t shared = a->gbias && a->n_bias > 0 ? (a->B + a->n_bias - 1) / a->n_bias : 1;
	if (shared <= 1) return 1;
	return nr_max64(1, nr_min64(shared, GROUPS / (a->n_bias * a->H)));
}

size_t nr_attention_scratch(const struct nr_attention *a, int threads)
{
	const int64_t extra = bias_groups(a) - 1; /* the first group writes to gbias itself */
	const size_t parts =
		extra ? (size_t)up16(extra * a->n_bias * a->H * nr_attention_rows(a) * a->Tk) * sizeof(real) : 0;
	return bytes_per_thread(a) * (size_t)(threads > 0 ? threads : 1) + parts;
}

/* ---- drivers ---- */

static int team(const struct nr_attention *a)
{
	const int n = a->threads > 0 ? a->threads : 1, most = omp_get_max_threads();
	if (a->B * a->H * a->Tq * a->Tk * (a->d + a->dv) < SMALL) return 1;
	return n < most ? n : most;
}

static void *my_scratch(const struct nr_attention *a)
{
	return (char *)a->scratch + bytes_per_thread(a) * (size_t)omp_get_thread_num();
}

typedef void one_unit(const struct nr_attention *a, int64_t b, int64_t h, real *P);

static void forward_of(const struct nr_attention *a, int64_t b, int64_t h, real *P)
{
	nr_attention_active->forward(a, b, h, my_scratch(a));
}
static void probs_of(const struct nr_attention *a, int64_t b, int64_t h, real *P)
{
	nr_attention_active->probs(a, b, h, P + (b * a->H + h) * a->Tq * a->Tk, my_scratch(a));
}
static void backward_of(const struct nr_attention *a, int64_t b, int64_t h, real *P)
{
	nr_attention_active->backward(a, b, h, NULL, 0, my_scratch(a));
}

static void all_units(const struct nr_attention *a, one_unit *one, real *P)
{
	const int64_t units = a->B * a->H;
	const int threads = team(a);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
	for (int64_t x = 0; x < units; x++) {
		const int64_t u = nr_dealt(x, units, threads);
		one(a, u / a->H, u % a->H, P);
	}
}

void nr_attention_forward(const struct nr_attention *a) { all_units(a, forward_of, NULL); }
void nr_attention_probs(const struct nr_attention *a, real *P) { all_units(a, probs_of, P); }

void nr_attention_backward(const struct nr_attention *a)
{
	const struct nr_attention_kernels *k = nr_attention_active;
	const int add = (a->add & NR_ATTENTION_ADD_BIAS) != 0;
	const int64_t one = nr_attention_rows(a) * a->Tk, made = a->Tq * a->Tk;
	if (!a->gbias) {
		all_units(a, backward_of, NULL);
		return;
	}
	/* job = (group g, bias n, head h): samples n, n + n_bias, ... of that group, in order */
	const int threads = team(a);
	const int64_t nb = a->n_bias, groups = bias_groups(a), all = nb * a->H, shared = (a->B + nb - 1) / nb;
	real *part = (real *)((char *)a->scratch +
		bytes_per_thread(a) * (size_t)(a->threads > 0 ? a->threads : 1));
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
	for (int64_t x = 0; x < groups * all; x++) {
		const int64_t u = nr_dealt(x, groups * all, threads), g = u / all, n = u % all / a->H, h = u % a->H;
		real *to = g ? part + ((g - 1) * all + u % all) * one : a->gbias + u % all * one;
		int more = g == 0 && add;
		for (int64_t s = shared * g / groups; s < shared * (g + 1) / groups; s++) {
			const int64_t b = s * nb + n;
			if (b >= a->B) break;
			k->backward(a, b, h, to, more, my_scratch(a));
			if (!more) memset(to + made, 0, (size_t)(one - made) * sizeof(real));
			more = 1;
		}
		if (!more) /* no sample uses it */
			memset(to, 0, (size_t)one * sizeof(real));
	}
	if (groups > 1) {
#pragma omp parallel for schedule(static) num_threads(threads)
		for (int64_t u = 0; u < all; u++)
			for (int64_t g = 1; g < groups; g++)
				axpy(one, 1, part + ((g - 1) * all + u) * one, a->gbias + u * one);
	}
}
