/* Linear CKA. See cka.h. */
#include "analysis/cka.h"

#include <stdlib.h>

#include "math/cross.h"

static const char what[] = "cannot compute CKA";

/* |x'y|^2, Frobenius; x (N,A), y (N,B), product: A B values. */
static double cross_square(int64_t N, int64_t A, const double *x, int64_t B, const double *y, double *product)
{
	double s = 0;
	nr_cross_product(N, A, x, B, y, product);
	for (int64_t i = 0; i < A * B; i++) s += product[i] * product[i];
	return s;
}

int nr_cka(int64_t N, int64_t C1, const real *x, int64_t C2, const real *y, double *cka, struct nr_error *err)
{
	const int64_t most = C1 > C2 ? C1 : C2;
	if (N < 2 || C1 < 1 || C2 < 1)
		return nr_fail(err, NR_ESHAPE, what, NULL, "%lld rows with %lld and %lld channels", (long long)N, (long long)C1,
			(long long)C2);
	double *a = malloc((size_t)(N * C1) * sizeof *a), *b = malloc((size_t)(N * C2) * sizeof *b);
	double *product = malloc((size_t)(most * most) * sizeof *product), *mean = malloc((size_t)most * sizeof *mean);
	int code = 0;
	if (!a || !b || !product || !mean) {
		code = nr_fail(err, NR_EMEMORY, what, NULL, "out of memory");
	} else if (!nr_centre_columns(N, C1, x, mean, a) || !nr_centre_columns(N, C2, y, mean, b)) {
		code = nr_fail(err, NR_EVALUE, what, NULL, "a value is not finite");
	} else {
		const double xx = cross_square(N, C1, a, C1, a, product), yy = cross_square(N, C2, b, C2, b, product);
		if (xx > 0 && yy > 0)
			*cka = cross_square(N, C1, a, C2, b, product) / (sqrt(xx) * sqrt(yy));
		else
			code = nr_fail(err, NR_EVALUE, what, NULL, "the %s features are the same for every sample",
				xx > 0 ? "second" : "first");
	}
	free(a);
	free(b);
	free(product);
	free(mean);
	return code;
}
