/* bfloat16 arrays: threaded drivers; the loops are in the row family. */
#include "math/bf16.h"

#include "math/row.h"

void nr_bf16_pack(int64_t n, const real *x, uint16_t *y)
{
#pragma omp parallel for schedule(static) if (n > NR_ARRAY_CHUNK)
	for (int64_t i = 0; i < n; i += NR_ARRAY_CHUNK)
		nr_row_active->bf16_pack(nr_min64(NR_ARRAY_CHUNK, n - i), x + i, y + i);
}

void nr_bf16_unpack(int64_t n, const uint16_t *x, real *y)
{
#pragma omp parallel for schedule(static) if (n > NR_ARRAY_CHUNK)
	for (int64_t i = 0; i < n; i += NR_ARRAY_CHUNK)
		nr_row_active->bf16_unpack(nr_min64(NR_ARRAY_CHUNK, n - i), x + i, y + i);
}
