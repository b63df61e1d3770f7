/* The loader's floats as this library's numbers. */
#ifndef NR_FLOATS_H
#define NR_FLOATS_H

#include <string.h>

#include "norma/real.h"

static inline void nr_from_floats(real *to, const float *from, int64_t n)
{
	if (sizeof(real) == sizeof(float)) memcpy(to, from, (size_t)n * sizeof *from);
	else
		for (int64_t i = 0; i < n; i++) to[i] = from[i];
}

#endif
