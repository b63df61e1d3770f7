/* A sum of products in double. */
#ifndef NR_DOT_H
#define NR_DOT_H

#include <stdint.h>

/* Four running sums: the compiler may not reorder one. */
static inline double nr_dot_double(int64_t n, const double *a, const double *b)
{
	double s[4] = { 0 };
	int64_t i = 0;
	for (; i + 4 <= n; i += 4)
		for (int k = 0; k < 4; k++) s[k] += a[i + k] * b[i + k];
	for (; i < n; i++) s[0] += a[i] * b[i];
	return (s[0] + s[1]) + (s[2] + s[3]);
}

#endif
