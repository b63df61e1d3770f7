/* Products beside oneDNN's, for docs/performance.md: `dnnl_sgemm` on the whole product and nr_gemm_run in turn, in one process, at the
 * shapes that `norma bench gemm` lists. From the source tree, with Debian's libdnnl-dev:
 *
 *   gcc -O2 -fopenmp -Isrc -Iinclude -Ibuild/generated bench/peers/onednn_gemm.c build/lib/libnorma.a -ldnnl -lm -o onednn-gemm
 *   build/bin/norma bench gemm --json --seconds 0.02 | jq -r '"\(.kind) \(.m) \(.n) \(.k)"' | sort -u >shapes
 *   GOMP_SPINCOUNT=2000 ./onednn-gemm 0.1 <shapes
 *
 * Prints kind, m, n, k, our median rate and oneDNN's in GFLOP/s, and closes with how many shapes are at least as fast as, or within 3 %
 * of, oneDNN. NORMA_ISA and ONEDNN_MAX_CPU_ISA choose sets. Operands go round in 24 MiB of huge pages, or in two sets of them if they are
 * larger, so that they come from the last-level cache. */
#define _GNU_SOURCE
#include <oneapi/dnnl/dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "math/gemm.h"

enum { OURS, ONEDNN, SIDES, LEAST = 7, MOST = 4000 };
static const int64_t ring = 24 << 18; /* values */

struct shape {
	int64_t m, n, k;
	int ta, tb;
};

static int64_t line(int64_t values)
{
	return (values + 15) / 16 * 16;
}
static int64_t set_values(const struct shape *s)
{
	return line(s->m * s->k) + line(s->k * s->n) + line(s->m * s->n);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void run(int side, const struct shape *s, float *a, void *scratch)
{
	float *b = a + line(s->m * s->k), *c = b + line(s->k * s->n);
	const int64_t lda = s->ta ? s->m : s->k, ldb = s->tb ? s->k : s->n;
	if (side == OURS)
		nr_gemm_run(&(struct nr_gemm){ .m = s->m, .n = s->n, .k = s->k, .a = a, .lda = lda, .ta = s->ta, .b = b, .ldb = ldb,
				    .tb = s->tb, .c = c, .ldc = s->n }, scratch);
	else
		dnnl_sgemm(s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', s->m, s->n, s->k, 1, a, lda, b, ldb, 0, c, s->n);
}

/* Median seconds of both sides. */
static void measure(const struct shape *s, double seconds, float *memory, int64_t sets, void *scratch, double median[SIDES])
{
	static double took[SIDES][MOST];
	int n = 0;
	int64_t set = 0;
	for (int side = 0; side < SIDES; side++) run(side, s, memory, scratch);
	for (const double start = omp_get_wtime(); n < MOST && (n < LEAST || omp_get_wtime() - start < seconds); n++)
		for (int side = 0; side < SIDES; side++) {
			set = (set + 1) % sets;
			const double from = omp_get_wtime();
			run(side, s, memory + set * set_values(s), scratch);
			took[side][n] = omp_get_wtime() - from;
		}
	for (int side = 0; side < SIDES; side++) {
		qsort(took[side], (size_t)n, sizeof(double), by_value);
		median[side] = took[side][n / 2];
	}
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? atof(argv[1]) : .1;
	struct shape s;
	char kind[3];
	int shapes = 0, as_fast = 0, near = 0;
	while (scanf("%2s %ld %ld %ld", kind, &s.m, &s.n, &s.k) == 4) {
		s.ta = kind[0] == 'T', s.tb = kind[1] == 'T';
		const int64_t one = set_values(&s), values = 2 * one > ring ? 2 * one : ring;
		const size_t bytes = (size_t)values * sizeof(float);
		float *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		void *scratch = malloc(nr_gemm_scratch(s.m, s.n, s.k, s.ta, s.tb) + 1);
		if (memory == MAP_FAILED || !scratch) return 1;
		madvise(memory, bytes, MADV_HUGEPAGE);
		for (int64_t i = 0; i < values; i++) memory[i] = (float)(i % 13 - 6) / 13;
		double median[SIDES];
		measure(&s, seconds, memory, values / one, scratch, median);
		const double work = 2e-9 * (double)s.m * (double)s.n * (double)s.k;
		printf("%s %ld %ld %ld %.1f %.1f\n", kind, s.m, s.n, s.k, work / median[OURS], work / median[ONEDNN]);
		shapes++;
		as_fast += median[OURS] <= median[ONEDNN];
		near += .97 * median[OURS] <= median[ONEDNN];
		munmap(memory, bytes);
		free(scratch);
	}
	printf("%d shapes: %d at least as fast, %d within 3 %%\n", shapes, as_fast, near);
	return 0;
}
