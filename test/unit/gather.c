/* gather: rows by index, and the gradient that adds them up in order. */
#include "unit/values.h"

#include <omp.h>

#include "math/gather.h"

static int32_t *indices(int64_t n, int64_t rows)
{
	int32_t *x = calloc((size_t)(n + 1), sizeof *x);
	for (int64_t i = 0; i < n; i++) x[i] = (int32_t)(((double)value() + .5) * (double)rows);
	return x;
}

static void the_first_bad_index_is_named(void **state)
{
	(void)state;
	assert_int_equal(nr_gather_check(4, (const int32_t[]){ 0, 2, 3, -1 }, 3), 2);
	assert_int_equal(nr_gather_check(3, (const int32_t[]){ 0, 2, -1 }, 3), 2);
	assert_int_equal(nr_gather_check(2, (const int32_t[]){ 0, 2 }, 3), -1);
	assert_int_equal(nr_gather_check(0, NULL, 3), -1);
}

static void rows_are_copied_and_bad_ones_are_zero(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		const int64_t n = 77, C = 13, rows = 9;
		real *table = values(rows * C), *y = values(n * C), *z = values(n * C), *old = copy_of(z, n * C);
		int32_t *id = indices(n, rows);
		id[3] = -1;
		id[5] = (int32_t)rows;
		nr_gather(n, C, table, rows, id, y, 0);
		nr_gather(n, C, table, rows, id, z, 1);
		for (int64_t i = 0; i < n; i++)
			for (int64_t c = 0; c < C; c++) {
				const real want = i == 3 || i == 5 ? 0 : table[id[i] * C + c];
				assert_true(y[i * C + c] == want);
				assert_true(z[i * C + c] == old[i * C + c] + want);
			}
		free(table);
		free(y);
		free(z);
		free(old);
		free(id);
	}
}

/* Exact: the plain loop adds in the same order. */
static void gradients_add_up_in_order_at_any_thread_count(void **state)
{
	(void)state;
	static const int64_t sizes[][3] = { { 700, 150, 40 }, { 1000, 64, 2 }, { 5, 3, 1000 }, { 1, 1, 1 }, { 0, 4, 3 } };
	for (int set = isa_next(-1); set >= 0; set = isa_next(set))
		for (int s = 0; s < 5; s++)
			for (int add = 0; add < 2; add++) {
				const int64_t n = sizes[s][0], C = sizes[s][1], rows = sizes[s][2];
				const int32_t padding = s == 0 ? 7 : -1;
				real *dy = values(n * C), *start = values(rows * C);
				real *want = add ? copy_of(start, rows * C) : blank(rows * C);
				int32_t *id = indices(n, rows);
				if (n > 4) id[4] = -9, id[2] = (int32_t)rows;
				for (int64_t i = 0; i < n; i++) {
					if (id[i] < 0 || id[i] >= rows || id[i] == padding) continue;
					for (int64_t c = 0; c < C; c++) want[id[i] * C + c] += dy[i * C + c];
				}
				void *scratch = malloc(nr_scatter_scratch(n, rows));
				for (int threads = 1; threads <= 3; threads++) {
					real *d = copy_of(start, rows * C);
					omp_set_num_threads(threads);
					nr_scatter(n, C, d, rows, id, padding, dy, add, scratch);
					assert_same_bits(d, want, rows * C);
					free(d);
				}
				omp_set_num_threads(2);
				free(scratch);
				free(dy);
				free(start);
				free(want);
				free(id);
			}
}

static void tokens_are_taken_per_sample_and_given_back(void **state)
{
	(void)state;
	for (int set = isa_next(-1); set >= 0; set = isa_next(set)) {
		const int64_t B = 5, T = 19, n = 7, C = 131;
		real *x = values(B * T * C), *y = values(B * n * C), *dy = values(B * n * C), *start = values(B * T * C);
		int32_t *id = indices(B * n, T);   /* some repeat */
		id[2] = (int32_t)T;
		nr_gather_tokens(B, T, n, C, x, T * C, id, y, n * C, 0);
		for (int64_t i = 0; i < B * n; i++)
			for (int64_t c = 0; c < C; c++)
				assert_true(y[i * C + c] == (i == 2 ? 0 : x[(i / n * T + id[i]) * C + c]));
		for (int add = 0; add < 2; add++) {
			real *want = add ? copy_of(start, B * T * C) : blank(B * T * C);
			for (int64_t i = 0; i < B * n; i++)
				for (int64_t c = 0; c < C && i != 2; c++) want[(i / n * T + id[i]) * C + c] += dy[i * C + c];
			for (int threads = 1; threads <= 3; threads++) {
				real *d = copy_of(start, B * T * C);
				omp_set_num_threads(threads);
				nr_scatter_tokens(B, T, n, C, d, T * C, id, dy, n * C, add);
				assert_same_bits(d, want, B * T * C);
				free(d);
			}
			free(want);
		}
		omp_set_num_threads(2);
		free(x);
		free(y);
		free(dy);
		free(start);
		free(id);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_bad_index_is_named),
		cmocka_unit_test(rows_are_copied_and_bad_ones_are_zero),
		cmocka_unit_test(gradients_add_up_in_order_at_any_thread_count),
		cmocka_unit_test(tokens_are_taken_per_sample_and_given_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
