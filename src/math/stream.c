/* The size of the last cache, from the cpuid leaf that Intel (4) and AMD (0x8000001d) fill alike. sysconf is no use: it gives
 * the sum over all parts of a divided cache, of which a core sees one. */
#include "math/stream.h"

#include "norma/real.h"

#ifndef NR_NO_FAST
#include <cpuid.h>

static int64_t largest(unsigned leaf)
{
	unsigned a, b, c, d;
	int64_t most = 0;
	for (unsigned i = 0; i < 8 && __get_cpuid_count(leaf, i, &a, &b, &c, &d) && a & 31; i++) {
		const int64_t ways = (b >> 22) + 1, parts = (b >> 12 & 1023) + 1, line = (b & 4095) + 1;
		const int64_t bytes = ways * parts * line * ((int64_t)c + 1);
		if (bytes > most) most = bytes;
	}
	return most;
}
#else
static int64_t largest(unsigned leaf) { return 0 * leaf; }
#endif

int64_t nr_last_cache(void)
{
	static _Atomic int64_t bytes = -1;
	if (bytes < 0) bytes = largest(4) ? largest(4) : largest(0x8000001d);
	return bytes;
}

int nr_streams(int64_t n)
{
	return nr_last_cache() > 0 && 2 * n * (int64_t)sizeof(real) > nr_last_cache();
}
