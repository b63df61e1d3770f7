/* The rate of nr_gemm at every shape that the linear layers of the bench cases have, read off their plans: forward (NT), gradient of the
 * input (NN) and of the weight (TN). Operands go round in memory that the second-level caches do not hold, as in a step. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/table.h"
#include "bench.h"
#include "graph/plan.h"
#include "math/chunk.h"
#include "math/gemm.h"
#include "math/isa.h"

enum { MAX_LAYERS = 256, MIN_REPS = 7, MAX_REPS = 2000, MIN_RING = 8 << 20 };
static const char *const kinds[] = { "NT", "NN", "TN" };

/* A linear layer on so many tokens: y (tokens,out) = x (tokens,in) w (out,in)^T; `calls` of them in a forward pass. */
struct layer { int64_t tokens, in, out, calls; bool train; const char *from; };
struct layers { struct layer item[MAX_LAYERS]; int count; };

static void add_layer(struct layers *all, struct layer l)
{
	int i = 0;
	while (i < all->count &&
		(all->item[i].tokens != l.tokens || all->item[i].in != l.in || all->item[i].out != l.out || all->item[i].from != l.from))
		i++;
	if (i == MAX_LAYERS) return;
	if (i == all->count) all->item[all->count++] = l;
	else all->item[i].calls++;
}

/* A linear layer is a node with a parameter (out,in) between an input of `in` channels and an output of `out`. */
static void find_layers(struct layers *all, const struct nr_plan *p, const struct bench_target *t)
{
	for (int32_t i = 0; i < p->n_forward; i++) {
		const struct nr_node *k = p->instr[i].call.node;
		const nr_t *x = k->in[0], *w = k->n_in > 1 ? k->in[1] : NULL;
		if (!w || !(w->flags & NR_PARAM) || w->nd < 2 || x->dtype != NR_REAL || x->flags & NR_PARAM) continue;
		const int64_t in = nr_cols(x), out = w->d[0];
		if (nr_len(w) == in * out && nr_cols(k->out[0]) == out && nr_rows(k->out[0]) == nr_rows(x))
			add_layer(all, (struct layer){ nr_rows(x), in, out, 1, t->train, t->of->name });
	}
}

static int collect(struct layers *all, bool tiny, struct nr_error *err)
{
	if (!tiny) add_layer(all, (struct layer){ 1576, 768, 768, 1, true, "reference" });       /* that of share_of_ref */
	for (const struct bench_case *c = bench_cases; c->name; c++) {
		const struct bench_target t = { .of = c, .size = tiny ? &c->tiny : &c->full, .train = !bench_is_latency(c), .tiny = tiny };
		struct bench *b;
		if (bench_open(&b, &t, 0, err)) return err->code;
		find_layers(all, b->plan, &t);
		bench_close(b);
	}
	return NR_OK;
}

static int kinds_of(const struct layer *l) { return l->train ? 3 : 1; }

/* The product of a layer; operands as if they began at 0. */
static struct nr_gemm product(const struct layer *l, int kind)
{
	const int64_t M = l->tokens, I = l->in, O = l->out;
	switch (kind) {
	case 0: return (struct nr_gemm){ .m = M, .n = O, .k = I, .lda = I, .ldb = I, .tb = 1, .ldc = O };
	case 1: return (struct nr_gemm){ .m = M, .n = I, .k = O, .lda = O, .ldb = I, .ldc = I };
	default: return (struct nr_gemm){ .m = O, .n = I, .k = M, .lda = O, .ta = 1, .ldb = I, .ldc = I };
	}
}

/* Memory in which sets of operands lie one behind the other, and scratch. */
struct ring { real *memory; int64_t values; void *scratch; };

static int64_t line(int64_t values) { return (values + 15) / 16 * 16; }
static int64_t set_values(const struct nr_gemm *g) { return line(g->m * g->k) + line(g->k * g->n) + line(g->m * g->n); }
static int64_t sets_of(const struct ring *r, const struct nr_gemm *g) { return r->values / set_values(g); }

static struct nr_gemm at(const struct ring *r, struct nr_gemm g, int64_t set)
{
	real *a = r->memory + set * set_values(&g), *b = a + line(g.m * g.k);
	g.a = a;
	g.b = b;
	g.c = b + line(g.k * g.n);
	return g;
}

/* Median GFLOP/s. */
static double rate_of(const struct ring *r, const struct nr_gemm *g, bool tiny, double seconds)
{
	static double t[MAX_REPS];
	const int64_t least = tiny ? 1 : MIN_REPS, most = tiny ? 1 : MAX_REPS, sets = sets_of(r, g);
	int64_t n = 0;
	struct nr_gemm first = at(r, *g, 0);
	nr_gemm_run(&first, r->scratch);
	for (const double start = nr_clock(); n < most && (n < least || nr_clock() - start < seconds); n++) {
		const struct nr_gemm one = at(r, *g, (n + 1) % sets);
		const double s = nr_clock();
		nr_gemm_run(&one, r->scratch);
		t[n] = nr_clock() - s;
	}
	return 2e-9 * (double)g->m * (double)g->n * (double)g->k / bench_median(t, n);
}

static int ring_make(struct ring *r, const struct layers *all, size_t *bytes, struct nr_error *err)
{
	const int64_t l2 = 4 * sysconf(_SC_LEVEL2_CACHE_SIZE) * omp_get_max_threads();
	int64_t scratch = 0;
	r->values = nr_max64(l2, MIN_RING) / (int64_t)sizeof(real);
	for (int i = 0; i < all->count; i++)
		for (int kind = 0; kind < 3; kind++) {
			const struct nr_gemm g = product(&all->item[i], kind);
			r->values = nr_max64(r->values, 2 * set_values(&g));
			scratch = nr_max64(scratch, (int64_t)nr_gemm_scratch_of(&g));
		}
	*bytes = (size_t)line(r->values) * sizeof(real) + (size_t)scratch;
	r->memory = nr_slab_make(*bytes);
	if (!r->memory) return nr_fail(err, NR_EMEMORY, "cannot run the products", NULL, "out of memory");
	r->scratch = r->memory + line(r->values);
	for (int64_t i = 0; i < r->values; i++) r->memory[i] = (real)(i % 13 - 6) / 13;
	return NR_OK;
}

static int report(struct nr_table *t, const struct bench_options *o, const struct layer *l, int kind, double rate,
	const struct bench_limits *limits, struct nr_error *err)
{
	const struct nr_gemm g = product(l, kind);
	if (o->json) {
		json_t *r = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:s, s:o}", "case", "gemm", "of", l->from, "kind",
			kinds[kind], "m", (json_int_t)g.m, "n", (json_int_t)g.n, "k", (json_int_t)g.k, "calls", (json_int_t)l->calls,
			"threads", omp_get_max_threads(), "isa", nr_isa_name(nr_isa_active()), "gflops", bench_rounded(rate));
		if (r) bench_limits_put(r, limits, rate);
		return bench_json_line(stdout, r, err);
	}
	nr_table_cell(t, "%s", l->from);
	nr_table_cell(t, "%s", kinds[kind]);
	nr_table_cell(t, "%lld", (long long)g.m);
	nr_table_cell(t, "%lld", (long long)g.n);
	nr_table_cell(t, "%lld", (long long)g.k);
	nr_table_cell(t, "%lld", (long long)l->calls);
	nr_table_cell(t, "%.1f", rate);
	nr_table_cell(t, "%.0f %%", 100 * rate / limits->gflops);
	return NR_OK;
}

/* Rates first, then the limits once more: a share of the better of two looks at the peak. */
static int measure(const struct bench_options *o, const struct layers *all, const struct ring *r, struct nr_table *t, struct nr_error *err)
{
	static double rate[MAX_LAYERS][3];
	struct bench_limits limits = { 0 };
	const double each = o->seconds / 3 / 12;        /* a case has some twelve layers */
	int code = NR_OK;
	bench_limits_measure(&limits, o->tiny);
	for (int i = 0; i < all->count; i++)
		for (int kind = 0; kind < kinds_of(&all->item[i]); kind++) {
			const struct nr_gemm g = product(&all->item[i], kind);
			rate[i][kind] = rate_of(r, &g, o->tiny, each);
		}
	bench_limits_measure(&limits, o->tiny);
	for (int kind = 0; kind < 3; kind++)
		for (int i = 0; i < all->count && !code; i++)
			if (kind < kinds_of(&all->item[i])) code = report(t, o, &all->item[i], kind, rate[i][kind], &limits, err);
	if (!code && !o->json)
		printf("GFLOP/s, median, and share of the peak of %.1f; NT forward, NN gradient of the input, TN gradient of the weight\n",
			limits.gflops);
	return code;
}

int bench_gemm(const struct bench_options *o, struct nr_error *err)
{
	static struct layers all;
	struct ring r;
	size_t bytes;
	if (collect(&all, o->tiny, err) || ring_make(&r, &all, &bytes, err)) return err->code;
	struct nr_table *t = nr_table_make();
	static const char *const titles[] = { "case", "kind", "m", "n", "k", "calls", "GFLOP/s", "of peak" };
	for (int i = 0; i < 8; i++) nr_table_column(t, titles[i], i < 2 ? NR_LEFT : NR_RIGHT);
	const int code = measure(o, &all, &r, t, err);
	if (!code && !o->json) {
		struct nr_str text = { 0 };
		nr_table_text(t, &text);
		fputs(nr_str_text(&text), stdout);
		nr_str_release(&text);
	}
	nr_table_free(t);
	nr_slab_free(r.memory, bytes);
	return code;
}
