/* What ops of plug-ins are made of: see norma/op.h. */
#include "norma/op.h"

#include "base/real.h"
#include "math/row.h"

size_t nr_rows_scratch(const nr_t *x, int64_t sums) { return (size_t)((nr_chunks(nr_rows(x)) + 1) * sums) * sizeof(real); }

const real *nr_rows_each(const struct nr_call *k, int64_t sums, void (*row)(const struct nr_call *, int64_t, real *))
{
	const int64_t rows = k->x[0].rows, chunks = nr_chunks(rows);
	real *total = k->scratch, *part = sums ? total + sums : NULL;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < chunks; q++) {
		real *sum = sums ? part + q * sums : NULL;
		if (sums) memset(sum, 0, (size_t)sums * sizeof *sum);
		const int64_t end = nr_min64(rows, (q + 1) * NR_CHUNK);
		for (int64_t r = q * NR_CHUNK; r < end; r++) row(k, r, sum);
	}
	if (sums) nr_fold(chunks, sums, part, total, 0);
	return sums ? total : NULL;
}

void nr_put_all(int64_t n, const real *x, real *y, int add) { nr_row_put(n, x, y, add); }
real nr_sum_of(int64_t n, const real *x) { return nr_sum(n, x); }
real nr_dot_of(int64_t n, const real *a, const real *b) { return nr_dot(n, a, b); }
real nr_dot3_of(int64_t n, const real *a, const real *b, const real *c) { return nr_dot3(n, a, b, c); }
real nr_squares_of(int64_t n, const real *x, real about) { return nr_sum_sq_about(n, x, about); }
