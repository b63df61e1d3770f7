/* Times of single steps, the machine's limits and our own SGEMM rate beside them, and what other processes took meanwhile. The method
 * is that of peers/common.py, so that records compare. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench.h"
#include "graph/plan.h"
#include "math/gemm.h"

enum { WARM = 2, MIN_REPS = 5, MAX_REPS = 2000, REF_REPS = 15 };

/* CPU seconds that the whole machine was not idle. */
static double busy_seconds(void)
{
	double v[8] = { 0 };
	FILE *f = fopen("/proc/stat", "r");
	if (!f) return 0;
	const int n = fscanf(
		f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", v, v + 1, v + 2, v + 3, v + 4, v + 5, v + 6, v + 7);
	fclose(f);
	return n < 8 ? 0 : (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) / (double)sysconf(_SC_CLK_TCK);
}

static double own_seconds(void)
{
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
		1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

struct bench_load bench_load_start(void)
{
	return (struct bench_load){ busy_seconds(), own_seconds(), nr_clock() };
}

double bench_load_share(const struct bench_load *l)
{
	const double others = busy_seconds() - l->busy - (own_seconds() - l->own), wall = nr_clock() - l->wall;
	return others > 0 && wall > 0 ? others / wall : 0;
}

long bench_peak_rss_mib(void)
{
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	return r.ru_maxrss / 1024;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double bench_median(double *v, int64_t n)
{
	if (n <= 0) return 0;
	qsort(v, (size_t)n, sizeof *v, ascending);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* The value that this share does not exceed. */
static double percentile(const double *sorted, int64_t n, double share)
{
	const int64_t at = (int64_t)ceil(share * (double)n) - 1;
	return n <= 0 ? 0 : sorted[at < 0 ? 0 : at < n ? at : n - 1];
}

double bench_ref_gflops(bool tiny)
{
	const int64_t m = tiny ? 64 : 1576, n = tiny ? 32 : 768, k = n, reps = tiny ? 1 : REF_REPS;
	const size_t values = (size_t)(m * k + k * n + m * n), scratch = nr_gemm_scratch(m, n, k, 0, 0);
	const size_t bytes = values * sizeof(real) + 64 + scratch;
	real *a = nr_slab_make(bytes);
	if (!a) return 0;
	real *b = a + m * k, *c = b + k * n;
	for (int64_t i = 0; i < m * k + k * n; i++) a[i] = (real)(i % 17) / 17;
	char *work = (char *)a + (values * sizeof(real) + 63) / 64 * 64;
	const struct nr_gemm g = { .m = m, .n = n, .k = k, .a = a, .lda = k, .b = b, .ldb = n, .c = c, .ldc = n };
	double t[REF_REPS];
	for (int64_t i = 0; i < reps; i++) {
		const double start = nr_clock();
		nr_gemm_run(&g, work);
		t[i] = nr_clock() - start;
	}
	nr_slab_free(a, bytes);
	return 2e-9 * (double)m * (double)n * (double)k / bench_median(t, reps);
}


json_t *bench_rounded(double v) { return json_real(nearbyint(v * 1e3) / 1e3); }

static json_t *record(
	const struct bench *b, double *t, int64_t reps, double first, double ref, double foreign, long rss,
	const struct bench_limits *limits)
{
	const struct bench_target *g = &b->target;
	const struct nr_plan_stats plan = nr_plan_stats(b->plan);
	/* what is done: tokens that the plan leaves out do not count */
	const double forward = bench_forward_flops(b) - plan.left_out_flops;
	const double s = bench_median(t, reps), flops = (g->train ? 3 : 1) * forward;
	const double rate = flops / s * 1e-9, samples = (double)g->size->batch;
	char name[128];
	json_t *r = json_object();
	json_object_set_new(r, "case", json_string(bench_target_text(g, name, sizeof name)));
	json_object_set_new(r, "title", json_string(g->of->title));
	json_object_set_new(r, "dtype", json_string("f32"));
	json_object_set_new(r, "threads", json_integer(omp_get_max_threads()));
	json_object_set_new(r, "isa", json_string(nr_isa_name(nr_isa_active())));
	json_object_set_new(r, "tiny", json_boolean(g->tiny));
	json_object_set_new(r, "samples", json_integer(g->size->batch));
	json_object_set_new(r, "ms", bench_rounded(s * 1e3));
	json_object_set_new(r, "ms_best", bench_rounded(t[0] * 1e3));
	json_object_set_new(r, "ms_p95", bench_rounded(percentile(t, reps, .95) * 1e3));
	json_object_set_new(r, "reps", json_integer(reps));
	json_object_set_new(r, "first_s", bench_rounded(first));
	json_object_set_new(r, "ref_gflops", bench_rounded(ref));
	json_object_set_new(r, "foreign_cpu", bench_rounded(foreign));
	json_object_set_new(r, "steps_per_s", bench_rounded(1 / s));
	json_object_set_new(r, "samples_per_s", bench_rounded(samples / s));
	json_object_set_new(r, "gflop", bench_rounded(flops * 1e-9));
	json_object_set_new(r, "gflops", bench_rounded(rate));
	json_object_set_new(r, "share_of_ref", bench_rounded(ref > 0 ? rate / ref : 0));
	bench_limits_put(r, limits, rate);
	json_object_set_new(r, "peak_rss_mib", json_integer(rss));
	json_object_set_new(r, "params", json_integer(plan.param_count));
	json_object_set_new(r, "planned_mib", bench_rounded((double)(plan.arena_bytes + plan.scratch_bytes) / 0x1p20));
	if (g->train) json_object_set_new(r, "loss", bench_rounded(bench_loss(b)));
	return r;
}

/* The reference product is timed while the model is not in memory, so that the peak is the model's own. */
json_t *bench_measure(const struct bench_target *g, const struct bench_options *o, struct nr_error *err)
{
	static double t[MAX_REPS];
	struct bench_limits limits = bench_limits_before(g->tiny);
	const double ref = bench_ref_gflops(g->tiny);
	double start = nr_clock();
	struct bench *b;
	if (bench_open(&b, g, g->rebuild ? NR_PLAN_REBUILD : 0, err)) return NULL;
	bench_step(b);
	const double first = nr_clock() - start;
	for (int i = 0; i < WARM && !g->tiny; i++) bench_step(b);

	const struct bench_load load = bench_load_start();
	const int64_t least = g->tiny ? 1 : MIN_REPS, most = g->tiny ? 1 : MAX_REPS;
	int64_t reps = 0;
	for (start = nr_clock(); reps < most && (reps < least || nr_clock() - start < o->seconds); reps++) {
		const double s = nr_clock();
		bench_step(b);
		t[reps] = nr_clock() - s;
	}
	const double foreign = bench_load_share(&load);
	const long rss = bench_peak_rss_mib();
	bench_limits_measure(&limits, g->tiny);
	json_t *r = NULL;
	if (!isfinite(bench_loss(b)))
		nr_fail(err, NR_EDIVERGED, "the loss is not finite", g->of->name, "after %lld steps",
			(long long)b->exec.step);
	else if (!(r = record(b, t, reps, first, (ref + bench_ref_gflops(g->tiny)) / 2, foreign, rss, &limits)))
		nr_fail(err, NR_EMEMORY, "cannot write the record", g->of->name, "out of memory");
	bench_close(b);
	return r;
}

int bench_json_line(FILE *f, json_t *r, struct nr_error *err)
{
	const int failed =
		!r || json_dumpf(r, f, JSON_COMPACT | JSON_REAL_PRECISION(7)) || fputc('\n', f) == EOF || fflush(f);
	json_decref(r);
	return failed ? nr_fail(err, NR_EIO, "cannot write the record", NULL, "the output cannot be written") : NR_OK;
}
