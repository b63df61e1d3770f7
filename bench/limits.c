/* What the machine can do at most, measured beside a case in its process: multiply-adds from registers, and a copy from memory to
 * memory, both on all threads. The best of several short runs before and after counts, for nothing can be too fast. */
#include <fcntl.h>
#include <omp.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench.h"
#include "math/peak.h"
#include "math/stream.h"

enum { ROUNDS = 1 << 18, TINY_ROUNDS = 1 << 8, RUNS = 6, PARTS = 64 };

/* Operations per second of one run on every thread; a multiply-add counts as two. */
static double fma_rate(int64_t rounds)
{
	volatile real x = (real).5, y = 1; /* unknown to the compiler; all values tend to 2 */
	int threads = 1;
	const double start = nr_clock();
#pragma omp parallel
	{
		volatile real kept = nr_peak_active->chains(rounds, x, y);
		(void)kept;
#pragma omp single
		threads = omp_get_num_threads();
	}
	const double seconds = nr_clock() - start;
	return 2.0 * (double)(rounds * NR_PEAK_CHAINS * nr_peak_active->lanes * threads) / seconds;
}

/* Half of the memory to the other half, in parts of whole lines: bytes read and written per second. */
static double copy_rate(real *memory, int64_t values)
{
	const int64_t part = values / PARTS;
	const double start = nr_clock();
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < PARTS; i++) nr_peak_active->copy(part, memory + i * part, memory + values + i * part);
	return 2 * (double)values * sizeof(real) / (nr_clock() - start);
}

static double best_copy(bool tiny)
{
	const int64_t least = tiny ? 1 << 18 : 64 << 20, cache = nr_last_cache() + nr_last_cache() / 2;
	const int64_t bytes = (!tiny && cache > least ? cache : least) / (PARTS * 256) * (PARTS * 256);
	real *memory = nr_slab_make(2 * (size_t)bytes);
	double best = 0;
	if (!memory) return 0;
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < 2 * bytes / 4096; i++) memory[i * 4096 / (int64_t)sizeof(real)] = 1;    /* touches the pages */
	for (int i = 0; i < (tiny ? 1 : RUNS / 2); i++) best = fmax(best, copy_rate(memory, bytes / (int64_t)sizeof(real)));
	nr_slab_free(memory, 2 * (size_t)bytes);
	return best;
}

void bench_limits_measure(struct bench_limits *l, bool tiny)
{
	for (int i = 0; i < (tiny ? 1 : RUNS); i++) l->gflops = fmax(l->gflops, 1e-9 * fma_rate(tiny ? TINY_ROUNDS : ROUNDS));
	l->gbs = fmax(l->gbs, 1e-9 * best_copy(tiny));
}

/* The system forgets the largest resident size of this process. */
static bool forget_peak_rss(void)
{
	const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	const bool done = fd >= 0 && write(fd, "5", 1) == 1;
	if (fd >= 0) close(fd);
	return done;
}

struct bench_limits bench_limits_before(bool tiny)
{
	struct bench_limits l = { 0 };
	if (!forget_peak_rss()) return l;
	bench_limits_measure(&l, tiny);
	forget_peak_rss();
	return l;
}

void bench_limits_add(json_t *r, bool tiny)
{
	struct bench_limits l = { 0 };
	bench_limits_measure(&l, tiny);
	bench_limits_put(r, &l, 0);
}

void bench_limits_put(json_t *r, const struct bench_limits *l, double gflops)
{
	json_object_set_new(r, "peak_gflops", bench_rounded(l->gflops));
	json_object_set_new(r, "copy_gbs", bench_rounded(l->gbs));
	if (gflops > 0) json_object_set_new(r, "share_of_peak", bench_rounded(l->gflops > 0 ? gflops / l->gflops : 0));
}
