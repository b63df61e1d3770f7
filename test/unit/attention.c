/* math/attention.c and fast/attention.c against a double computation that stores T x T, on odd shapes with
 * every option. */
#include "unit/values.h"

#include <omp.h>
#include <stdio.h>

#include "math/attention.h"

#define BOUND 5e-6 /* largest error over the largest reference value (at least 1); 2e-6 is seen */

static uint64_t seed;

static uint32_t next(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33);
}
static int64_t below(int64_t n)
{
	return (int64_t)(next() % (uint32_t)n);
}
static real uniform(void)
{
	return (real)((double)next() / 1073741824. - 1);
}

static void *get(size_t n, size_t size)
{
	void *p = malloc(n * size + !n);
	assert_non_null(p);
	return p;
}
static real *drawn(int64_t n)
{
	real *p = get((size_t)n, sizeof *p);
	for (int64_t i = 0; i < n; i++) p[i] = uniform();
	return p;
}
/* Outputs and scratch hold a NaN before the call: what is not written shows, and so does what must not be. */
static void poison(real *p, int64_t n)
{
	for (int64_t i = 0; i < n; i++) p[i] = (real)NAN;
}

struct operand {
	real *p;
	int64_t n, T, d;
	struct nr_heads s;
};

/* layout 0: (B,T,H,d); 1: the same with gaps between heads and rows; 2: (B,H,T,d). No float more than
 * needed. */
static struct operand operand(int64_t B, int64_t T, int64_t H, int64_t d, int layout)
{
	struct operand x = { .T = T, .d = d };
	const int64_t head = layout == 1 ? d + 2 : d;
	if (layout == 2)
		x.s = (struct nr_heads){ H * T * d, d, T * d };
	else
		x.s = (struct nr_heads){ T * (H * head + layout), H * head + layout, head };
	x.n = (B - 1) * x.s.batch + (T - 1) * x.s.row + (H - 1) * x.s.head + d;
	x.p = drawn(x.n);
	return x;
}
static int64_t at(const struct nr_heads *s, int64_t b, int64_t t, int64_t h)
{
	return b * s->batch + t * s->row + h * s->head;
}

struct options {
	int64_t B, H, Tq, Tk, d, dv, n_bias, n_mask, window;
	int klen, causal, layout, gbias;
	real dropout, scale;
	unsigned add;
};

struct fixture {
	struct nr_attention a;
	struct operand q, k, v, out, gout, gq, gk, gv, old[3];
	real *bias, *mask, *gbias, *old_bias, *lse, *P;
	int32_t *klen;
	/* the answers */
	double *out_, *gq_, *gk_, *gv_, *gbias_, *P_;
};

static void setup(struct fixture *f, const struct options *o)
{
	const int64_t nP = o->B * o->H * o->Tq * o->Tk, one = o->Tq * o->Tk;
	memset(f, 0, sizeof *f);
	f->q = operand(o->B, o->Tq, o->H, o->d, o->layout);
	f->k = operand(o->B, o->Tk, o->H, o->d, o->layout);
	f->v = operand(o->B, o->Tk, o->H, o->dv, o->layout);
	f->out = operand(o->B, o->Tq, o->H, o->dv, o->layout);
	f->gout = operand(o->B, o->Tq, o->H, o->dv, o->layout);
	f->gq = operand(o->B, o->Tq, o->H, o->d, o->layout);
	f->gk = operand(o->B, o->Tk, o->H, o->d, o->layout);
	f->gv = operand(o->B, o->Tk, o->H, o->dv, o->layout);
	f->old[0] = operand(o->B, o->Tq, o->H, o->d, o->layout);
	f->old[1] = operand(o->B, o->Tk, o->H, o->d, o->layout);
	f->old[2] = operand(o->B, o->Tk, o->H, o->dv, o->layout);
	f->lse = drawn(o->B * o->H * o->Tq);
	f->P = drawn(nP);
	f->a = (struct nr_attention){
		.B = o->B, .H = o->H, .Tq = o->Tq, .Tk = o->Tk, .d = o->d, .dv = o->dv, .scale = o->scale,
		.q = f->q.p, .k = f->k.p, .v = f->v.p, .out = f->out.p, .lse = f->lse, .sq = f->q.s,
		.sk = f->k.s, .sv = f->v.s, .so = f->out.s, .gout = f->gout.p, .gq = f->gq.p, .gk = f->gk.p,
		.gv = f->gv.p, .sgo = f->gout.s, .sgq = f->gq.s, .sgk = f->gk.s, .sgv = f->gv.s,
		.window = o->window, .causal = o->causal, .dropout = o->dropout,
		.rng = nr_rng_make(0xdeadbeef00000007u, 5, 11), .add = o->add, .n_bias = o->n_bias,
		.n_mask = o->n_mask };
	if (o->n_bias) {
		f->a.bias = f->bias = drawn(o->n_bias * o->H * one);
		f->old_bias = drawn(o->n_bias * o->H * one);
		f->gbias = drawn(o->n_bias * o->H * one);
		if (o->gbias) f->a.gbias = f->gbias;
	}
	if (o->n_mask) {
		f->a.mask = f->mask = drawn(o->n_mask * one);
		for (int64_t i = 0; i < o->n_mask * one; i++)
			f->mask[i] = next() % 3 ? 0 : next() % 2 ? (real)-INFINITY : -100;
	}
	if (o->klen) {
		f->a.klen = f->klen = get((size_t)o->B, sizeof *f->klen);
		for (int64_t b = 0; b < o->B; b++) {
			f->klen[b] = (int32_t)below(o->Tk + 1);
			for (int64_t h = 0; h < o->H; h++) /* padding is never read */
				for (int64_t t = f->klen[b]; t < o->Tk; t++) {
					poison(f->k.p + at(&f->k.s, b, t, h), o->d);
					poison(f->v.p + at(&f->v.s, b, t, h), o->dv);
				}
		}
	}
	f->out_ = get((size_t)f->out.n, sizeof(double));
	f->gq_ = get((size_t)f->gq.n, sizeof(double));
	f->gk_ = get((size_t)f->gk.n, sizeof(double));
	f->gv_ = get((size_t)f->gv.n, sizeof(double));
	f->P_ = get((size_t)nP, sizeof(double));
	f->gbias_ = get((size_t)(o->n_bias * o->H * one), sizeof(double));
}

static void teardown(struct fixture *f)
{
	void *all[] = { f->q.p, f->k.p, f->v.p, f->out.p, f->gout.p, f->gq.p, f->gk.p, f->gv.p, f->old[0].p,
		f->old[1].p, f->old[2].p, f->bias, f->mask, f->gbias, f->old_bias, f->lse, f->P, f->klen,
		f->out_, f->gq_, f->gk_, f->gv_, f->P_, f->gbias_ };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static int counts(const struct nr_attention *a, int64_t b, int64_t i, int64_t j)
{
	return !(a->klen && j >= a->klen[b]) && !(a->window && llabs(i - j) > a->window) &&
		!(a->causal && j > i);
}

/* Answers of one (b,h): the textbook, with P and its gradient in full. gbias_ is added to. */
static void answer(struct fixture *f, int64_t b, int64_t h)
{
	const struct nr_attention *a = &f->a;
	const double cut = floor(a->dropout * 65536 + .5), keep = 65536 / (65536 - cut);
	double *P = f->P_ + (b * a->H + h) * a->Tq * a->Tk, *gP = get((size_t)a->Tk, sizeof *gP);
	for (int64_t i = 0; i < a->Tq; i++) {
		double *p = P + i * a->Tk, max = -INFINITY, sum = 0, D = 0;
		const real *q = f->q.p + at(&f->q.s, b, i, h), *g = f->gout.p + at(&f->gout.s, b, i, h);
		for (int64_t j = 0; j < a->Tk; j++) {
			p[j] = -INFINITY;
			if (!counts(a, b, i, j)) continue;
			p[j] = 0;
			for (int64_t c = 0; c < a->d; c++)
				p[j] += (double)q[c] * f->k.p[at(&f->k.s, b, j, h) + c];
			p[j] *= a->scale;
			if (a->bias) p[j] += a->bias[((b % a->n_bias * a->H + h) * a->Tq + i) * a->Tk + j];
			if (a->mask) p[j] += a->mask[(b % a->n_mask * a->Tq + i) * a->Tk + j];
			max = fmax(max, p[j]);
		}
		for (int64_t j = 0; j < a->Tk; j++) sum += p[j] = max == -INFINITY ? 0 : exp(p[j] - max);
		for (int64_t j = 0; j < a->Tk; j++) {
			p[j] = sum > 0 ? p[j] / sum : 0;
			const double w = cut > 0 ? keep * nr_attention_keep(a, b, h, i, j) : 1;
			gP[j] = 0;
			if (!counts(a, b, i, j)) continue;
			for (int64_t c = 0; c < a->dv; c++) {
				const double v = f->v.p[at(&f->v.s, b, j, h) + c];
				f->out_[at(&f->out.s, b, i, h) + c] += p[j] * w * v;
				gP[j] += w * g[c] * v;
				f->gv_[at(&f->gv.s, b, j, h) + c] += p[j] * w * g[c];
			}
			D += p[j] * gP[j];
		}
		for (int64_t j = 0; j < a->Tk; j++) {
			const double s = p[j] * (gP[j] - D);
			if (!counts(a, b, i, j)) continue;
			for (int64_t c = 0; c < a->d; c++) {
				f->gq_[at(&f->gq.s, b, i, h) + c] +=
					s * a->scale * f->k.p[at(&f->k.s, b, j, h) + c];
				f->gk_[at(&f->gk.s, b, j, h) + c] += s * a->scale * q[c];
			}
			if (a->n_bias) f->gbias_[((b % a->n_bias * a->H + h) * a->Tq + i) * a->Tk + j] += s;
		}
	}
	free(gP);
}

static void start(double *to, int64_t n, const real *old, int add)
{
	for (int64_t i = 0; i < n; i++) to[i] = add ? old[i] : 0;
}

static void answers(struct fixture *f)
{
	const struct nr_attention *a = &f->a;
	start(f->out_, f->out.n, NULL, 0);
	start(f->gq_, f->gq.n, f->old[0].p, a->add & NR_ATTENTION_ADD_Q);
	start(f->gk_, f->gk.n, f->old[1].p, a->add & NR_ATTENTION_ADD_K);
	start(f->gv_, f->gv.n, f->old[2].p, a->add & NR_ATTENTION_ADD_V);
	start(f->gbias_, a->n_bias * a->H * a->Tq * a->Tk, f->old_bias, a->add & NR_ATTENTION_ADD_BIAS);
	for (int64_t b = 0; b < a->B; b++)
		for (int64_t h = 0; h < a->H; h++) answer(f, b, h);
}

/* Forward, tap and backward with exactly the scratch that was asked for, everything else poisoned or as
 * before. */
static void run(struct fixture *f, int threads)
{
	struct nr_attention *a = &f->a;
	const int64_t bytes = (int64_t)nr_attention_scratch(a, threads),
		      nb = a->n_bias * a->H * a->Tq * a->Tk;
	real *s = aligned_alloc(64, (size_t)bytes);
	assert_non_null(s);
	assert_int_equal(bytes % 64, 0);
	omp_set_num_threads(threads);
	a->scratch = s;
	a->threads = threads;
	poison(s, bytes / (int64_t)sizeof *s);
	poison(f->out.p, f->out.n);
	poison(f->lse, a->B * a->H * a->Tq);
	nr_attention_forward(a);
	poison(s, bytes / (int64_t)sizeof *s);
	poison(f->P, a->B * a->H * a->Tq * a->Tk);
	nr_attention_probs(a, f->P);
	poison(s, bytes / (int64_t)sizeof *s);
	const struct operand *g[] = { &f->gq, &f->gk, &f->gv };
	for (int i = 0; i < 3; i++)
		if (a->add >> i & 1)
			memcpy(g[i]->p, f->old[i].p, (size_t)g[i]->n * sizeof(real));
		else
			poison(g[i]->p, g[i]->n);
	if (a->gbias && a->add & NR_ATTENTION_ADD_BIAS)
		memcpy(f->gbias, f->old_bias, (size_t)nb * sizeof(real));
	else if (a->gbias)
		poison(f->gbias, nb);
	nr_attention_backward(a);
	free(s);
}

static void same(const char *what, const struct options *o, const double *want, const real *got, int64_t n)
{
	double top = 1, worst = 0;
	for (int64_t i = 0; i < n; i++) top = fmax(top, fabs(want[i]));
	for (int64_t i = 0; i < n; i++) {
		const double e = fabs(got[i] - want[i]) / top;
		worst = isnan(e) || e > worst ? e : worst;
	}
	if (!(worst <= BOUND))
		fail_msg(
			"%s of B %d H %d Tq %d Tk %d d %d dv %d layout %d bias %d mask %d window %d "
			"causal %d klen %d drop %g add %u: "
			"error %g on %s",
			what, (int)o->B, (int)o->H, (int)o->Tq, (int)o->Tk, (int)o->d, (int)o->dv, o->layout,
			(int)o->n_bias, (int)o->n_mask, (int)o->window, o->causal, o->klen,
			(double)o->dropout, o->add, worst, nr_isa_name(nr_isa_active()));
}

/* The same for a strided operand; what lies between its rows must be untouched (still NaN, or the old
 * value). */
static void same_rows(const char *what, const struct options *o, const double *want, const struct operand *x,
	const real *old)
{
	char *mine = calloc((size_t)x->n, 1);
	assert_non_null(mine);
	for (int64_t b = 0; b < o->B; b++)
		for (int64_t t = 0; t < x->T; t++)
			for (int64_t h = 0; h < o->H; h++) {
				const int64_t p = at(&x->s, b, t, h);
				same(what, o, want + p, x->p + p, x->d);
				memset(mine + p, 1, (size_t)x->d);
			}
	for (int64_t i = 0; i < x->n; i++)
		if (!mine[i]) assert_true(old ? x->p[i] == old[i] : isnan(x->p[i]));
	free(mine);
}

static void check(const struct options *o)
{
	struct fixture f;
	setup(&f, o);
	answers(&f);
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		run(&f, 2);
		same_rows("out", o, f.out_, &f.out, NULL);
		same("probabilities", o, f.P_, f.P, o->B * o->H * o->Tq * o->Tk);
		same_rows("gq", o, f.gq_, &f.gq, o->add & 1 ? f.old[0].p : NULL);
		same_rows("gk", o, f.gk_, &f.gk, o->add & 2 ? f.old[1].p : NULL);
		same_rows("gv", o, f.gv_, &f.gv, o->add & 4 ? f.old[2].p : NULL);
		if (f.a.gbias) same("gbias", o, f.gbias_, f.gbias, o->n_bias * o->H * o->Tq * o->Tk);
	}
	teardown(&f);
}

static struct options plain(int64_t B, int64_t H, int64_t Tq, int64_t Tk, int64_t d, int64_t dv)
{
	return (struct options){
		.B = B, .H = H, .Tq = Tq, .Tk = Tk, .d = d, .dv = dv, .scale = 1 / nr_sqrt((real)d)
	};
}

static const int64_t lengths[] = { 1, 2, 3, 17, 65, 197, 300 }, widths[] = { 1, 7, 16, 32, 64, 80 };

static void odd_sizes_agree_with_double(void **state)
{
	(void)state;
	seed = 1;
	for (int t = 0; t < 7; t++)
		for (int w = 0; w < 6; w++) {
			struct options o = plain(
				lengths[t] > 64 ? 1 : 3, 2, lengths[t], lengths[t], widths[w], widths[w]);
			o.layout = (t + w) % 3;
			check(&o);
		}
}

static void queries_keys_and_widths_may_differ(void **state)
{
	(void)state;
	seed = 2;
	for (int t = 0; t < 7; t++)
		for (int w = 0; w < 6; w++) {
			struct options o =
				plain(2, 1, lengths[t], lengths[(t + 3) % 7], widths[w], widths[(w + 2) % 6]);
			o.layout = w % 3;
			check(&o);
		}
}

static void options_agree_with_double_in_any_mixture(void **state)
{
	(void)state;
	seed = 3;
	for (int n = 0; n < 400; n++) {
		struct options o = plain(1 + below(5), 1 + below(3), 1 + below(40), 1 + below(40),
			1 + below(40), 1 + below(40));
		o.layout = (int)below(3);
		o.klen = below(2) == 0;
		o.n_bias = below(2) ? 0 : below(3) == 0 ? 1
							: 1 + below(o.B);
		o.gbias = below(4) > 0;
		o.n_mask = below(4) ? 0 : 1 + below(o.B);
		o.window = below(4) ? 0 : 1 + below(12);
		o.causal = below(5) == 0;
		o.dropout = below(3) ? 0 : below(2) ? (real).1
						    : (real).6;
		o.add = next() % 16;
		if (below(8) == 0) o.scale = -o.scale;
		check(&o);
	}
}

static void several_tiles_agree_with_double_under_every_option(void **state)
{
	(void)state;
	seed = 4;
	for (int n = 0; n < 7; n++) {
		struct options o = plain(1 + n % 2, 1, 305, n % 3 ? 1100 : 601, 24 + 9 * (n % 2), 16);
		o.klen = n == 1 || n == 5;
		o.n_bias = n == 2 || n == 5;
		o.gbias = 1;
		o.n_mask = n == 5;
		o.window = n == 3 || n == 6 ? 60 : 0;
		o.causal = n == 4 || n == 6;
		o.dropout = n >= 5 ? (real).1 : 0;
		o.add = n > 3 ? 15 : 0;
		check(&o);
	}
}

static void no_key_gives_zero_and_no_gradient(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s))
		for (int bias = 0; bias < 2; bias++) {
			struct options o = plain(2, 2, 5, 9, 16, 8);
			struct fixture f;
			o.n_bias = bias;
			o.gbias = o.klen = 1;
			setup(&f, &o);
			f.klen[0] = f.klen[1] = 0;
			run(&f, 1);
			for (int64_t i = 0; i < f.out.n; i++) assert_true(f.out.p[i] == 0);
			for (int64_t i = 0; i < f.gq.n; i++) assert_true(f.gq.p[i] == 0);
			for (int64_t i = 0; i < f.gk.n; i++) assert_true(f.gk.p[i] == 0);
			for (int64_t i = 0; bias && i < 2 * 5 * 9; i++) assert_true(f.gbias[i] == 0);
			teardown(&f);
		}
}

static void not_a_number_is_not_hidden(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s))
		for (int bias = 0; bias < 2; bias++) {
			struct options o = plain(1, 1, 17, 17, 16, 16);
			struct fixture f;
			o.n_bias = bias;
			setup(&f, &o);
			f.q.p[3 * f.q.s.row + 2] = (real)NAN;
			run(&f, 1);
			assert_true(isnan(f.out.p[3 * f.out.s.row]));
			assert_false(isnan(f.out.p[2 * f.out.s.row]));
			assert_true(isnan(f.gq.p[3 * f.gq.s.row]));
			teardown(&f);
		}
}

static void large_scores_do_not_overflow(void **state)
{
	(void)state;
	seed = 6;
	struct options o = plain(1, 1, 33, 600, 8, 8);
	o.scale = 300;
	struct fixture f;
	setup(&f, &o);
	answers(&f);
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		run(&f, 1);
		for (int64_t i = 0; i < f.out.n; i++) /* scores of some 1000: their rounding is 6e-5 */
			assert_true(fabs(f.out.p[i] - f.out_[i]) < 2e-3);
	}
	teardown(&f);
}

/* All results of one run, one after the other. */
static real *results(struct fixture *f, int threads, size_t *bytes)
{
	run(f, threads);
	const struct {
		const real *p;
		int64_t n;
	} x[] = { { f->out.p, f->out.n }, { f->P, f->a.B * f->a.H * f->a.Tq * f->a.Tk }, { f->gq.p, f->gq.n },
		{ f->gk.p, f->gk.n }, { f->gv.p, f->gv.n },
		{ f->gbias, f->a.n_bias * f->a.H * f->a.Tq * f->a.Tk } };
	int64_t n = 0;
	for (int i = 0; i < 6; i++) n += x[i].n;
	real *all = get((size_t)n, sizeof *all), *to = all;
	for (int i = 0; i < 6; to += x[i].n, i++)
		if (x[i].n) memcpy(to, x[i].p, (size_t)x[i].n * sizeof *to);
	*bytes = (size_t)n * sizeof *all;
	return all;
}

static void bits_are_the_same_for_any_number_of_threads(void **state)
{
	(void)state;
	seed = 5;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s))
		for (int n = 0; n < 4; n++) {
			struct options o = plain(n ? 23 : 2, 3, n ? 33 : 150, n ? 33 : 150, 20, 16);
			struct fixture f;
			o.n_bias = n == 3 ? 4 : n;
			o.gbias = 1;
			o.klen = n == 2;
			o.dropout = n == 1 ? (real).1 : 0;
			setup(&f, &o);
			size_t bytes;
			real *one = results(&f, 1, &bytes);
			for (int threads = 2; threads <= 3; threads++) {
				real *more = results(&f, threads, &bytes);
				assert_memory_equal(one, more, bytes);
				free(more);
			}
			free(one);
			teardown(&f);
		}
}

static void unwanted_gradients_are_skipped(void **state)
{
	(void)state;
	seed = 8;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s))
		for (int w = 0; w < 16; w++) {
			struct options o = plain(2, 2, 9, 300 - 60 * (w % 4), 8 + w % 3, 8);
			struct fixture f;
			o.n_bias = 1;
			o.gbias = w >> 3;
			setup(&f, &o);
			answers(&f);
			real **g[] = { &f.a.gq, &f.a.gk, &f.a.gv };
			for (int i = 0; i < 3; i++)
				if (!(w >> i & 1)) *g[i] = NULL;
			run(&f, 1);
			if (w & 1) same("gq", &o, f.gq_, f.gq.p, f.gq.n);
			if (w & 2) same("gk", &o, f.gk_, f.gk.p, f.gk.n);
			if (w & 4) same("gv", &o, f.gv_, f.gv.p, f.gv.n);
			teardown(&f);
		}
}

static void dropout_keeps_the_promised_share(void **state)
{
	(void)state;
	const struct nr_attention a = {
		.H = 3, .Tq = 200, .Tk = 200, .dropout = (real).1, .rng = nr_rng_make(1, 2, 3)
	};
	int64_t kept = 0, pairs = 0, n = 0;
	for (int64_t h = 0; h < 3; h++)
		for (int64_t i = 0; i < 200; i++)
			for (int64_t j = 0; j < 200; j++, n++) {
				const int k = nr_attention_keep(&a, 0, h, i, j);
				kept += k;
				pairs += k &&
					nr_attention_keep(
						&a, 0, h, i ^ 1, j); /* the neighbour in the same word */
			}
	assert_true(fabs((double)kept / (double)n - .9) < .0035); /* four standard deviations */
	assert_true(fabs((double)pairs / (double)n - .81) < .01);
}

static void packed_form_is_the_separate_one(void **state)
{
	(void)state;
	enum { B = 2,
		T = 5,
		H = 3,
		D = 4 };
	real qkv[B * T * 3 * H * D], out[B * T * H * D], g[B * T * 3 * H * D];
	struct nr_attention a = nr_attention_packed(B, T, H, D, qkv, out);
	nr_attention_packed_grad(&a, out, g);
	assert_ptr_equal(
		a.v + a.sv.batch + 4 * a.sv.row + 2 * a.sv.head, qkv + (((1 * T + 4) * 3 + 2) * H + 2) * D);
	assert_ptr_equal(
		a.gk + a.sgk.batch + 4 * a.sgk.row + 2 * a.sgk.head, g + (((1 * T + 4) * 3 + 1) * H + 2) * D);
	assert_int_equal(a.so.row, H * D);
	assert_true(a.scale == (real).5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(odd_sizes_agree_with_double),
		cmocka_unit_test(queries_keys_and_widths_may_differ),
		cmocka_unit_test(options_agree_with_double_in_any_mixture),
		cmocka_unit_test(several_tiles_agree_with_double_under_every_option),
		cmocka_unit_test(no_key_gives_zero_and_no_gradient),
		cmocka_unit_test(not_a_number_is_not_hidden),
		cmocka_unit_test(large_scores_do_not_overflow),
		cmocka_unit_test(bits_are_the_same_for_any_number_of_threads),
		cmocka_unit_test(unwanted_gradients_are_skipped),
		cmocka_unit_test(dropout_keeps_the_promised_share),
		cmocka_unit_test(packed_form_is_the_separate_one),
	};
	return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
