/* Uniformity of 10,000 embeddings of 768 channels beside our own SGEMM. Useful operations: 2 C for each of the N (N - 1) / 2 pairs;
 * normalising, exponentials and the halves of diagonal tiles are not counted. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/uniformity.h"
#include "base/clock.h"
#include "base/rng.h"
#include "bench.h"

enum { STREAM = 41 << 24 };
static const char what[] = "cannot bench uniformity";

static int report(const struct bench_options *o, int64_t N, int64_t C, double seconds, double rate, double ref, double foreign,
	const struct nr_pairs *p, const struct bench_limits *limits, long before, long peak, struct nr_error *err)
{
	const double input = (double)(N * C) * sizeof(real) / (1 << 20), matrix = (double)(N * N) * sizeof(real) / (1 << 20);
	if (o->json) {
		json_t *r = json_pack("{s:s, s:I, s:I, s:i, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:f}", "case", "uniformity", "rows",
			(json_int_t)N, "channels", (json_int_t)C, "threads", omp_get_max_threads(), "ms", seconds * 1e3, "gflops", rate,
			"ref_gflops", ref, "share_of_ref", rate / ref, "foreign_cpu", foreign, "peak_rss_mib", (json_int_t)peak,
			"taken_mib", (json_int_t)(peak - before), "uniformity", p->uniformity);
		if (r) bench_limits_put(r, limits, rate);
		return bench_json_line(stdout, r, err);
	}
	printf("uniformity %.6f of %lld x %lld: %.0f ms, %.1f GFLOP/s, %.2f of our SGEMM (%.1f), %.2f of the peak (%.1f) beside it\n",
		p->uniformity, (long long)N, (long long)C, seconds * 1e3, rate, rate / ref, ref, rate / limits->gflops, limits->gflops);
	printf("memory taken: %ld MiB beside an input of %.0f MiB; all pairs at once would be %.0f MiB%s\n", peak - before, input, matrix,
		foreign > 0.15 ? "   (other programs used the CPU)" : "");
	return NR_OK;
}

/* One call, the SGEMM before and after it, as often as the time allows: medians. */
static int measure(const struct bench_options *o, int64_t N, int64_t C, const real *x, struct nr_error *err)
{
	double t[BENCH_MAX_ROUNDS], share[BENCH_MAX_ROUNDS], ref[BENCH_MAX_ROUNDS];
	const double flops = (double)C * (double)N * (double)(N - 1), start = nr_clock();
	const struct bench_load load = bench_load_start();
	struct bench_limits limits = bench_limits_before(o->tiny);
	double last = bench_ref_gflops(o->tiny);
	const long before = bench_peak_rss_mib();
	struct nr_pairs p;
	int64_t n = 0;
	for (; n < BENCH_MAX_ROUNDS && (n == 0 || (!o->tiny && (n < 3 || nr_clock() - start < o->seconds))); n++) {
		const double from = nr_clock();
		const int code = nr_uniformity(N, C, x, 2, &p, err);
		if (code) return code;
		t[n] = nr_clock() - from;
		const double next = bench_ref_gflops(o->tiny);
		ref[n] = (last + next) / 2;
		share[n] = flops / t[n] * 1e-9 / ref[n];
		last = next;
	}
	const double r = bench_median(ref, n), foreign = bench_load_share(&load);
	const long peak = bench_peak_rss_mib();
	bench_limits_measure(&limits, o->tiny);
	return report(o, N, C, bench_median(t, n), r * bench_median(share, n), r, foreign, &p, &limits, before, peak, err);
}

int bench_uniformity(const struct bench_options *o, struct nr_error *err)
{
	const int64_t N = o->tiny ? 70 : 10000, C = o->tiny ? 12 : 768;
	const struct nr_rng rng = nr_rng_make(1, STREAM, 0);
	real *x = malloc((size_t)(N * C) * sizeof *x);
	if (!x) return nr_fail(err, NR_EMEMORY, what, NULL, "out of memory");
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < N * C; i++) x[i] = (real)nr_rng_normal(rng, (uint64_t)i) + (real).2;
	const int code = measure(o, N, C, x, err);
	free(x);
	return code;
}
