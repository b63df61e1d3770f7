/* bfloat16: the upper half of a float. Storage only; all sums stay in real. */
#ifndef NR_BF16_H
#define NR_BF16_H

#include <string.h>

#include "base/real.h"

/* Rounded to nearest, ties to even; NaN stays a (quiet) NaN, overflow becomes inf. */
static inline uint16_t nr_bf16_of(float x)
{
	uint32_t u;
	memcpy(&u, &x, sizeof u);
	const uint32_t near = (u + 0x7fff + (u >> 16 & 1)) >> 16, nan = u >> 16 | 0x40;
	return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? nan : near);
}

static inline float nr_bf16_float(uint16_t h)
{
	const uint32_t u = (uint32_t)h << 16;
	float x;
	memcpy(&x, &u, sizeof x);
	return x;
}

/* Arrays, threaded over fixed chunks. The arrays may not overlap. */
void nr_bf16_pack(int64_t n, const real *x, uint16_t *y);
void nr_bf16_unpack(int64_t n, const uint16_t *x, real *y);

#endif
