/* Times of one normalization alone, as bench/peers/norms.py takes them.
 *
 * Forward is the run of an inference plan y = norm(x), with the statistics of the batch as in training. Forward and
 * backward come from a training plan of sum(y dy). Its first run goes through everything; then only the instructions of
 * the norm's own scope are replayed, so that the product with dy costs nothing. For that, every buffer has memory of its
 * own and no kernel is told that it may overwrite dy. Statistics are committed in the measured time. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "laws/norm_trial.h"
#include "bench.h"
#include "graph/plan.h"
#include "math/random.h"
#include "norma/nn.h"
#include "norma/norm.h"

enum { MIN_REPS = 7, MAX_REPS = 20000, STREAM_X = 11, STREAM_DY = 12, COPY_CHUNK = 1 << 14 };

struct norm {
	struct nr_store *store;
	struct nr_net *net;
	struct nr_plan *infer, *train;
	nr_t *x, *dy, *y;
	struct nr_exec exec;
};

int bench_shape_parse(struct bench_shape *s, const char *text, struct nr_error *err)
{
	long long b, t, c;
	int end = 0;
	if (sscanf(text, "%lldx%lldx%lld%n", &b, &t, &c, &end) == 3 && !text[end] && b > 0 && t > 0 && c > 0 &&
		b < 1 << 20 && t < 1 << 20 && c < 1 << 20) {
		*s = (struct bench_shape){ b, t, c };
		return NR_OK;
	}
	nr_fail(err, NR_EUSAGE, "cannot read the shape", text, NULL);
	return nr_hint(err, "samples x tokens x channels, as in 64x196x384");
}

static int64_t root_of(int64_t n)
{
	int64_t r = (int64_t)sqrt((double)n);
	return r * r == n ? r : 0;
}

struct nr_tokens bench_tokens(struct bench_shape s, bool separate)
{
	struct nr_tokens t = { .special = s.T > 1 && (separate || (!root_of(s.T) && root_of(s.T - 1))) };
	int64_t heads = s.C / 64 > 0 ? s.C / 64 : 1;
	nr_grid_of(s.T - t.special, &t.h, &t.w);
	while (s.C % heads) heads--;
	t.heads = (int32_t)heads;
	return t;
}

/* ---- one norm --------------------------------------------------------------------------------------------------- */

static void norm_close(struct norm *m)
{
	nr_plan_free(m->infer);
	nr_plan_free(m->train);
	nr_net_free(m->net);
	nr_store_free(m->store);
}

static void fill(const struct norm *m, const struct nr_plan *p)
{
	nr_fill_normal(nr_len(m->x), nr_plan_data(p, m->x), 0, 1, nr_rng_make(1, STREAM_X, 0), 0);
	nr_fill_normal(nr_len(m->x), nr_plan_data(p, m->dy), 0, 1, nr_rng_make(1, STREAM_DY, 0), 0);
}

/* A combinator such as sep(bn,ln) is there to keep the special tokens apart. */
static bool separates(const char *text) { return strchr(text, '(') != NULL; }

static int norm_open(struct norm *m, const char *text, struct bench_shape s, struct nr_error *err)
{
	*m = (struct norm){ .exec = { .train = 1, .seed = 1 } };
	if (nr_store_make(&m->store, 1, err)) return err->code;
	if (!(m->net = nr_net_make(m->store))) return nr_fail(err, NR_EMEMORY, "cannot record", text, "out of memory");
	m->x = nr_input(m->net, "x", NR_REAL, NR_SHAPE(s.B, s.T, s.C));
	m->dy = nr_input(m->net, "dy", NR_REAL, NR_SHAPE(s.B, s.T, s.C));
	if (m->x) m->x->flags |= NR_GRAD;
	m->y = nr_norm_make(m->net, "norm", text, nr_with_tokens(m->net, m->x, bench_tokens(s, separates(text))));
	if (m->y && m->y == m->x) return NR_OK;
	if (nr_plan_make(&m->infer, m->net, m->y, 0, err)) return err->code;
	fill(m, m->infer);
	nr_t *sum = nr_weighted_sum(m->net, m->y, m->dy);
	if (nr_plan_make(&m->train, m->net, sum, NR_PLAN_TRAIN | NR_PLAN_NO_REUSE, err)) return err->code;
	fill(m, m->train);
	for (int32_t i = 0; i < m->train->n_instr; i++) m->train->instr[i].call.dy_dead = 0;
	nr_plan_run(m->train, &m->exec, NR_RUN_FORWARD | NR_RUN_BACKWARD | NR_RUN_COMMIT);
	return NR_OK;
}

static void run_forward(void *norm)
{
	struct norm *m = norm;
	m->exec.step++;
	nr_plan_run(m->infer, &m->exec, NR_RUN_FORWARD);
}

static void run_both(void *norm)
{
	struct norm *m = norm;
	m->exec.step++;
	m->train->exec = m->exec;
	for (int32_t i = 0; i < m->train->n_instr; i++) {
		const struct nr_instr *in = &m->train->instr[i];
		if (!strncmp(in->call.node->where.scope, "norm", 4)) in->fn(&in->call);
	}
	nr_plan_run(m->train, &m->exec, NR_RUN_COMMIT);
}

struct copy { int64_t n; const real *x; real *y; };

/* In pieces so small that memcpy writes through the cache, as kernels do. */
static void run_copy(void *copy)
{
	const struct copy *c = copy;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < (c->n + COPY_CHUNK - 1) / COPY_CHUNK; q++) {
		const int64_t from = q * COPY_CHUNK, left = c->n - from;
		memcpy(c->y + from, c->x + from, (size_t)(left < COPY_CHUNK ? left : COPY_CHUNK) * sizeof(real));
	}
}

static double median_time(void (*run)(void *), void *of, bool tiny, double seconds)
{
	static double t[MAX_REPS];
	const int64_t least = tiny ? 1 : MIN_REPS, most = tiny ? 1 : MAX_REPS;
	int64_t n = 0;
	for (int i = 0; i < 2; i++) run(of);
	for (const double start = nr_clock(); n < most && (n < least || nr_clock() - start < seconds); n++) {
		const double s = nr_clock();
		run(of);
		t[n] = nr_clock() - s;
	}
	return bench_median(t, n);
}

int bench_norm_time(const char *text, struct bench_shape s, bool tiny, double seconds, struct bench_times *out,
	struct nr_error *err)
{
	struct norm m;
	*out = (struct bench_times){ 0 };
	const int code = norm_open(&m, text, s, err);
	if (!code && m.y != m.x) {
		out->forward = median_time(run_forward, &m, tiny, seconds);
		out->both = median_time(run_both, &m, tiny, seconds);
		out->flops = nr_plan_stats(m.infer).forward_flops;
	}
	norm_close(&m);
	return code;
}

double bench_copy_time(struct bench_shape s, bool tiny, double seconds)
{
	struct copy c = { .n = s.B * s.T * s.C };
	const size_t bytes = 2 * (size_t)c.n * sizeof(real);
	real *x = nr_slab_make(bytes);
	if (!x) return 0;
	nr_fill_normal(c.n, x, 0, 1, nr_rng_make(1, STREAM_X, 0), 0);
	c.x = x;
	c.y = x + c.n;
	const double t = median_time(run_copy, &c, tiny, seconds);
	nr_slab_free(x, bytes);
	return t;
}
