/* The rate of nr_gemm at the shapes of transformers: forward (NT), gradient of the input (NN) and of the weight (TN). */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/table.h"
#include "bench.h"
#include "math/gemm.h"

enum { REPS = 400 };

/* A linear layer on so many tokens: ViT-Ti at batch 8, the MAE's encoder and decoder at batch 128, ViT-S at batch 4. */
static const struct layer { int64_t tokens, in, out; } layers[] = {
	{ 1576, 192, 576 }, { 1576, 192, 192 }, { 1576, 192, 768 }, { 1576, 768, 192 }, { 1576, 768, 768 },
	{ 2176, 128, 384 }, { 2176, 128, 512 }, { 2176, 512, 128 },
	{ 8320, 64, 192 }, { 8320, 64, 256 }, { 8320, 256, 64 },
	{ 788, 384, 1152 }, { 788, 384, 1536 }, { 788, 1536, 384 },
};
static const char *const kinds[] = { "NT", "NN", "TN" };

struct operands { real *a, *b, *c; void *scratch; };

static struct nr_gemm product(const struct layer *l, int kind, const struct operands *x)
{
	const int64_t M = l->tokens, I = l->in, O = l->out;
	if (kind == 0)
		return (struct nr_gemm){ .m = M,
			.n = O,
			.k = I,
			.a = x->a,
			.lda = I,
			.b = x->b,
			.ldb = I,
			.tb = 1,
			.c = x->c,
			.ldc = O };
	if (kind == 1)
		return (struct nr_gemm){
			.m = M, .n = I, .k = O, .a = x->a, .lda = O, .b = x->b, .ldb = I, .c = x->c, .ldc = I
		};
	return (struct nr_gemm){
		.m = O, .n = I, .k = M, .a = x->a, .lda = O, .ta = 1, .b = x->b, .ldb = I, .c = x->c, .ldc = I
	};
}

/* Median GFLOP/s. */
static double rate_of(const struct nr_gemm *g, const struct operands *x, double seconds)
{
	static double t[REPS];
	int64_t n = 0;
	nr_gemm_run(g, x->scratch);
	for (const double start = nr_clock(); n < REPS && (n < 5 || nr_clock() - start < seconds); n++) {
		const double s = nr_clock();
		nr_gemm_run(g, x->scratch);
		t[n] = nr_clock() - s;
	}
	return 2e-9 * (double)g->m * (double)g->n * (double)g->k / bench_median(t, n);
}

static void report(struct nr_table *t, const struct bench_options *o, const struct nr_gemm *g, int kind,
	double rate, struct nr_error *err)
{
	if (o->json) {
		bench_json_line(stdout,
			json_pack("{s:s, s:s, s:I, s:I, s:I, s:f}", "case", "gemm", "kind", kinds[kind], "m",
				(json_int_t)g->m, "n", (json_int_t)g->n, "k", (json_int_t)g->k, "gflops",
				rate),
			err);
		return;
	}
	nr_table_cell(t, "%s", kinds[kind]);
	nr_table_cell(t, "%lld", (long long)g->m);
	nr_table_cell(t, "%lld", (long long)g->n);
	nr_table_cell(t, "%lld", (long long)g->k);
	nr_table_cell(t, "%.1f", rate);
}

static int all_shapes(struct nr_table *t, const struct bench_options *o, struct operands *x, struct nr_error *err)
{
	for (int kind = 0; kind < 3; kind++)
		for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
			const struct nr_gemm g = product(&layers[i], kind, x);
			report(t, o, &g, kind, rate_of(&g, x, o->seconds), err);
		}
	return err->code;
}

int bench_gemm(const struct bench_options *o, struct nr_error *err)
{
	int64_t most = 0, scratch = 0;
	for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
		const struct layer *l = &layers[i];
		const int64_t wide = l->in > l->out ? l->in : l->out;
		if (l->tokens * wide > most) most = l->tokens * wide;
		if (wide * wide > most) most = wide * wide;
		for (int kind = 0; kind < 3; kind++) {
			const struct nr_gemm g = product(l, kind, &(struct operands){ NULL, NULL, NULL, NULL });
			const int64_t bytes = (int64_t)nr_gemm_scratch_of(&g);
			if (bytes > scratch) scratch = bytes;
		}
	}
	const size_t part = (size_t)most * sizeof(real), bytes = 3 * part + (size_t)scratch + 4096;
	char *memory = nr_slab_make(bytes);
	if (!memory) return nr_fail(err, NR_EMEMORY, "cannot run the products", NULL, "out of memory");
	struct operands x = { (real *)memory, (real *)(memory + part), (real *)(memory + 2 * part),
		memory + (3 * part + 63) / 64 * 64 };
	for (int64_t i = 0; i < 2 * most; i++) x.a[i] = (real)(i % 13 - 6) / 13;
	struct nr_table *t = nr_table_make();
	static const char *const titles[] = { "kind", "m", "n", "k", "GFLOP/s" };
	for (int i = 0; i < 5; i++) nr_table_column(t, titles[i], i ? NR_RIGHT : NR_LEFT);
	const int code = all_shapes(t, o, &x, err);
	if (!code && !o->json) {
		struct nr_str text = { 0 };
		nr_table_text(t, &text);
		printf("GFLOP/s, median; NT forward, NN gradient of the input, TN gradient of the weight\n%s",
			nr_str_text(&text));
		nr_str_release(&text);
	}
	nr_table_free(t);
	nr_slab_free(memory, bytes);
	return code;
}
