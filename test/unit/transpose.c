/* transpose: every element arrives, on odd sizes, strided and added; permutations of up to five axes. */
#include "unit/values.h"

#include <omp.h>

#include "math/transpose.h"

static void every_element_arrives(void **state)
{
	(void)state;
	static const int64_t sizes[] = { 0, 1, 3, 4, 5, 17, 64, 67, 130 };
	for (int i = 0; i < 9; i++)
		for (int j = 0; j < 9; j++)
			for (int add = 0; add < 2; add++) {
				const int64_t m = sizes[i], n = sizes[j], ldx = n + 3, ldy = m + 2;
				real *x = values(m * ldx), *y = values(n * ldy), *old = copy_of(y, n * ldy);
				nr_matrix_transpose(m, n, x, ldx, y, ldy, add);
				for (int64_t r = 0; r < n; r++)
					for (int64_t c = 0; c < ldy; c++) {
						const real was = old[r * ldy + c];
						const real want = c < m ? x[c * ldx + r] + (add ? was : 0) : was;
						assert_true(y[r * ldy + c] == want);
					}
				free(x);
				free(y);
				free(old);
			}
}

static void batches_are_transposed_one_by_one(void **state)
{
	(void)state;
	const int64_t B = 3, T = 71, C = 37;
	real *x = values(B * T * C), *y = values(B * T * C), *z = blank(T * C);
	nr_transpose_batch(B, T, C, x, y, 0);
	for (int64_t b = 0; b < B; b++) {
		nr_matrix_transpose(T, C, x + b * T * C, C, z, T, 0);
		assert_same_bits(y + b * T * C, z, T * C);
	}
	free(x);
	free(y);
	free(z);
}

/* All orders of the axes, by counting through them. */
static void permutations_follow_the_indices(void **state)
{
	(void)state;
	const int64_t d[5] = { 2, 3, 67, 4, 5 };
	for (int nd = 1; nd <= 5; nd++) {
		int64_t total = 1, codes = 1;
		for (int i = 0; i < nd; i++) total *= d[i], codes *= nd;
		real *x = values(total), *y = values(total);
		for (int64_t code = 0; code < codes; code++) {
			int perm[5], seen = 0;
			int64_t rest = code;
			for (int i = 0; i < nd; i++, rest /= nd) seen |= 1 << (perm[i] = (int)(rest % nd));
			if (seen != (1 << nd) - 1) continue;
			for (int add = 0; add < 2; add++) {
				nr_permute(nd, d, perm, x, y, add);
				for (int64_t o = 0; o < total; o++) {
					int64_t at[5], left = o, from = 0;
					for (int i = nd - 1; i >= 0; i--) {
						at[perm[i]] = left % d[perm[i]];
						left /= d[perm[i]];
					}
					for (int i = 0; i < nd; i++) from = from * d[i] + at[i];
					assert_true(y[o] == (add ? x[from] + x[from] : x[from]));
				}
			}
		}
		free(x);
		free(y);
	}
}

static void an_empty_axis_writes_nothing(void **state)
{
	(void)state;
	real y = 3;
	nr_permute(3, (const int64_t[]){ 2, 0, 3 }, (const int[]){ 2, 1, 0 }, &y, &y, 0);
	assert_true(y == 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_element_arrives),
		cmocka_unit_test(batches_are_transposed_one_by_one),
		cmocka_unit_test(permutations_follow_the_indices),
		cmocka_unit_test(an_empty_axis_writes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
