/* Cost grows as the work does: a small training step, and the same with more of one thing. Time, memory and the time to plan
 * stand beside the operations, each as a ratio to the base, which is run before each of them: the median of these runs. Memory
 * is what a step holds: activations and scratch as planned, parameters, gradients and both moments. */
#include <omp.h>
#include <string.h>

#include "base/clock.h"
#include "base/real.h"
#include "base/str.h"
#include "base/table.h"
#include "bench.h"
#include "math/isa.h"

enum { WARM = 1, PLANS = 3, MIN_REPS = 3, MAX_REPS = 500, SLABS = 4 };

static const struct bench_size base = { .batch = 4, .dim = 128, .depth = 4, .heads = 2, .length = 64, .vocab = 1000 },
			       tiny_base = { .batch = 2, .dim = 16, .depth = 1, .heads = 2, .length = 4, .vocab = 50 };
static const struct bench_case model = { .name = "scaling", .title = "BERT, both dropout views", .model = &bench_simcse };

/* What grows, and to how many times as much; the model itself stays for threads, of which there are so many. */
enum what { NOTHING, SAMPLES, TOKENS, WIDTH, BLOCKS, THREADS };
static const char *const titles[] = { "base", "samples", "tokens", "width", "blocks", "threads" };
static const struct row { enum what what; int64_t times; } rows[] = {
	{ NOTHING, 1 }, { SAMPLES, 2 }, { SAMPLES, 4 }, { SAMPLES, 8 }, { TOKENS, 2 }, { TOKENS, 4 }, { TOKENS, 8 }, { WIDTH, 2 },
	{ WIDTH, 4 }, { WIDTH, 8 }, { BLOCKS, 2 }, { BLOCKS, 5 }, { BLOCKS, 25 }, { THREADS, 1 }, { THREADS, 2 }, { THREADS, 4 },
	{ THREADS, 8 },
};
struct cost { int64_t value; double gflop, seconds, bytes, plan_seconds; };

/* Multiplies one size; returns what it is then. */
static int64_t grow(struct bench_size *s, const struct row *r)
{
	switch (r->what) {
	case SAMPLES: return s->batch *= r->times;
	case TOKENS: return s->length *= r->times;
	case WIDTH: return s->heads *= r->times, s->dim *= r->times;
	case BLOCKS: return s->depth *= r->times;
	default: return r->times;
	}
}

static int measure(const struct row *r, bool tiny, double seconds, struct cost *out, struct nr_error *err)
{
	static double t[MAX_REPS];
	struct bench_size size = tiny ? tiny_base : base;
	const struct bench_target target = { .of = &model, .size = &size, .train = true, .tiny = tiny };
	const int threads = omp_get_max_threads();
	struct bench *b = NULL;
	int code = NR_OK;
	*out = (struct cost){ .value = grow(&size, r), .plan_seconds = INFINITY };
	if (r->what == THREADS) omp_set_num_threads((int)r->times);
	for (int i = 0; i < PLANS && !code; i++) {      /* the best of them: the first finds code and memory cold */
		bench_close(b);
		if (!(code = bench_open(&b, &target, 0, err))) out->plan_seconds = fmin(out->plan_seconds, b->plan_seconds);
	}
	if (!code) {
		const struct nr_plan_stats plan = nr_plan_stats(b->plan);
		const int64_t least = tiny ? 1 : MIN_REPS, most = tiny ? 1 : MAX_REPS;
		int64_t n = 0;
		for (int i = 0; i < WARM; i++) bench_step(b);
		for (const double start = nr_clock(); n < most && (n < least || nr_clock() - start < seconds); n++) {
			const double s = nr_clock();
			bench_step(b);
			t[n] = nr_clock() - s;
		}
		out->seconds = bench_median(t, n);
		out->gflop = 1e-9 * (plan.forward_flops + plan.backward_flops);
		out->bytes = (double)(plan.arena_bytes + plan.scratch_bytes) + SLABS * (double)plan.param_count * sizeof(real);
	}
	bench_close(b);
	omp_set_num_threads(threads);
	return code;
}

static json_t *as_json(const struct row *r, const struct cost *c, const struct cost *b, const struct bench_limits *l)
{
	json_t *o = json_pack("{s:s, s:s, s:I, s:I, s:i, s:s}", "case", "scaling", "what", titles[r->what], "times", (json_int_t)r->times,
		"value", (json_int_t)c->value, "threads", r->what == THREADS ? (int)r->times : omp_get_max_threads(), "isa",
		nr_isa_name(nr_isa_active()));
	const struct { const char *key; double value; } figures[] = { { "gflop", c->gflop }, { "gflop_ratio", c->gflop / b->gflop },
		{ "ms", 1e3 * c->seconds }, { "ms_ratio", c->seconds / b->seconds }, { "mib", c->bytes / 0x1p20 },
		{ "mib_ratio", c->bytes / b->bytes }, { "plan_ms", 1e3 * c->plan_seconds },
		{ "plan_ratio", c->plan_seconds / b->plan_seconds } };
	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
		json_object_set_new(o, figures[i].key, bench_rounded(figures[i].value));
	bench_limits_put(o, l, c->gflop / c->seconds);
	return o;
}

static void add_row(struct nr_table *t, const struct row *r, const struct cost *c, const struct cost *b, const struct bench_limits *l)
{
	nr_table_cell(t, "%s", titles[r->what]);
	if (r->what == NOTHING) nr_table_cell(t, "%s", "");
	else nr_table_cell(t, "%lld", (long long)c->value);
	nr_table_cell(t, "%.2fx", c->gflop / b->gflop);
	nr_table_cell(t, "%.2f", 1e3 * c->seconds);
	nr_table_cell(t, "%.2fx", c->seconds / b->seconds);
	nr_table_cell(t, "%.0f %%", 100 * c->gflop / c->seconds / l->gflops);
	nr_table_cell(t, "%.1f", c->bytes / 0x1p20);
	nr_table_cell(t, "%.2fx", c->bytes / b->bytes);
	nr_table_cell(t, "%.2f", 1e3 * c->plan_seconds);
	nr_table_cell(t, "%.2fx", c->plan_seconds / b->plan_seconds);
}

int bench_scaling(const struct bench_options *o, struct nr_error *err)
{
	enum { ROWS = sizeof rows / sizeof *rows, COLUMNS = 10 };
	static const char *const columns[COLUMNS] = { "more", "to", "operations", "ms", "time", "of peak", "MiB", "memory",
		"plan ms", "plan" };
	struct cost cost[ROWS], b;
	double step[ROWS], plan[ROWS];
	struct bench_limits limits = { 0 };
	bench_limits_measure(&limits, o->tiny);
	for (int i = 0; i < ROWS; i++) {
		if (measure(&rows[0], o->tiny, o->seconds / 24, &b, err) || measure(&rows[i], o->tiny, o->seconds / 6, &cost[i], err))
			return err->code;
		step[i] = b.seconds;
		plan[i] = b.plan_seconds;
	}
	b.seconds = bench_median(step, ROWS);
	b.plan_seconds = bench_median(plan, ROWS);
	bench_limits_measure(&limits, o->tiny);
	if (o->json) {
		for (int i = 0; i < ROWS; i++)
			if (bench_json_line(stdout, as_json(&rows[i], &cost[i], &b, &limits), err)) return err->code;
		return NR_OK;
	}
	struct nr_table *t = nr_table_make();
	struct nr_str text = { 0 };
	for (int i = 0; i < COLUMNS; i++) nr_table_column(t, columns[i], i ? NR_RIGHT : NR_LEFT);
	for (int i = 0; i < ROWS; i++) add_row(t, &rows[i], &cost[i], &b, &limits);
	nr_table_text(t, &text);
	fputs(nr_str_text(&text), stdout);
	nr_str_release(&text);
	nr_table_free(t);
	return NR_OK;
}
