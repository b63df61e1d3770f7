/* The size of the last cache, from the cpuid leaf that Intel (4) and AMD (0x8000001d) fill alike. sysconf is no use: it gives
 * the sum over all parts of a divided cache, of which a core sees one. */
#include "math/stream.h"

#include <omp.h>

#include "math/chunk.h"

#ifndef NR_NO_FAST
#include <cpuid.h>

struct cache { int64_t bytes, cpus; };          /* cpus: that share it */

static struct cache largest(unsigned leaf)
{
	unsigned a, b, c, d;
	struct cache most = { 0, 1 };
	for (unsigned i = 0; i < 8 && __get_cpuid_count(leaf, i, &a, &b, &c, &d) && a & 31; i++) {
		const int64_t ways = (b >> 22) + 1, parts = (b >> 12 & 1023) + 1, line = (b & 4095) + 1;
		const int64_t bytes = ways * parts * line * ((int64_t)c + 1);
		if (bytes > most.bytes) most = (struct cache){ bytes, (a >> 14 & 4095) + 1 };
	}
	return most;
}

static int64_t our_share(void)
{
	const struct cache intel = largest(4), last = intel.bytes ? intel : largest(0x8000001d);
	return nr_cache_share(last.bytes, last.cpus, omp_get_num_procs());
}
#else
static int64_t our_share(void) { return 0; }
#endif

int64_t nr_cache_share(int64_t bytes, int64_t sharers, int64_t cpus)
{
	const int64_t most = 16 << 20; /* a CPU: twelve is the largest today, 96 MiB for eight cores */
	return nr_min64(cpus < sharers ? bytes / sharers * cpus : bytes, most * cpus);
}

int64_t nr_last_cache(void)
{
	static _Atomic int64_t bytes = -1;
	if (bytes < 0) bytes = our_share();
	return bytes;
}

int nr_streams(int64_t n)
{
	return nr_last_cache() > 0 && 2 * n * (int64_t)sizeof(real) > nr_last_cache();
}
