/* What the kernel tests share: repeatable values, a walk over the CPU's instruction sets, runs at 1, 2 and 3 threads. */
#ifndef TEST_VALUES_H
#define TEST_VALUES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/real.h"
#include "math/isa.h"

static uint32_t value_seed = 1;

/* In [-.5, .5). */
static inline real value(void)
{
	value_seed = value_seed * 1664525u + 1013904223u;
	return (real)(value_seed >> 8) / (1 << 24) - (real).5;
}

static inline real *blank(int64_t n) { return calloc((size_t)(n > 0 ? n : 1), sizeof(real)); }

static inline real *values(int64_t n)
{
	real *x = blank(n);
	for (int64_t i = 0; i < n; i++) x[i] = value();
	return x;
}

static inline real *copy_of(const real *x, int64_t n)
{
	real *y = blank(n);
	memcpy(y, x, (size_t)n * sizeof(real));
	return y;
}

/* A copy at the beginning of a line, where whole rows may stream. */
static inline real *line_copy_of(const real *x, int64_t n)
{
	real *y = aligned_alloc(64, (size_t)(n * (int64_t)sizeof(real) + 127) / 64 * 64);
	memcpy(y, x, (size_t)n * sizeof(real));
	return y;
}

static inline void assert_same_bits(const real *x, const real *y, int64_t n)
{
	assert_memory_equal(x, y, (size_t)n * sizeof(real));
}

static inline void assert_near(const real *x, const real *y, int64_t n, double bound)
{
	for (int64_t i = 0; i < n; i++)
		if (!(fabs((double)x[i] - (double)y[i]) <= bound))
			fail_msg("at %ld: %.9g, want %.9g", (long)i, (double)x[i], (double)y[i]);
}

static inline double dot_of(const real *x, const real *y, int64_t n)
{
	double s = 0;
	for (int64_t i = 0; i < n; i++) s += (double)x[i] * (double)y[i];
	return s;
}

/* for (int s = isa_next(-1); s >= 0; s = isa_next(s)): each set selected in turn, the automatic choice at the end. */
static inline int isa_next(int s)
{
	for (s++; s < NR_ISA_COUNT; s++)
		if (nr_isa_supported((enum nr_isa)s)) {
			assert_int_equal(nr_isa_select(nr_isa_name((enum nr_isa)s), NULL), 0);
			return s;
		}
	assert_int_equal(nr_isa_select("auto", NULL), 0);
	return -1;
}

#endif
