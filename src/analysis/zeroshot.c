/* See zeroshot.h. */
#include "analysis/zeroshot.h"

#include <stdlib.h>
#include <string.h>

#include "math/gemm.h"
#include "math/row.h"

void nr_unit_length(int64_t rows, int64_t dim, real *x)
{
#pragma omp parallel for schedule(static) if (rows * dim > 16384)
	for (int64_t r = 0; r < rows; r++) {
		const real length = nr_sqrt(nr_dot(dim, x + r * dim, x + r * dim));
		if (length > 0) nr_row_scale(dim, 1 / length, x + r * dim, x + r * dim);
	}
}

void nr_zeroshot_classes(int64_t classes, int64_t dim, const int64_t *first, real *text, real *out)
{
	nr_unit_length(first[classes], dim, text);
	memset(out, 0, (size_t)(classes * dim) * sizeof *out);
	for (int64_t k = 0; k < classes; k++)
		for (int64_t r = first[k]; r < first[k + 1]; r++) nr_row_axpy(dim, 1, text + r * dim, out + k * dim);
	nr_unit_length(classes, dim, out);                      /* the mean, whose length does not count */
}

int nr_zeroshot_scores(int64_t n, int64_t dim, real *image, int64_t classes, const real *of_class, real *scores, struct nr_error *err)
{
	const struct nr_gemm g = { .m = n, .n = classes, .k = dim, .a = image, .lda = dim, .b = of_class, .ldb = dim, .tb = 1, .c = scores,
		.ldc = classes };
	void *scratch = malloc(nr_gemm_scratch_of(&g) + 1);
	if (!scratch) return nr_fail(err, NR_EMEMORY, "cannot score pictures", NULL, "out of memory");
	nr_unit_length(n, dim, image);
	nr_gemm_run(&g, scratch);
	free(scratch);
	return NR_OK;
}
