/* src/base/sort.c: rising keys, equal ones in the order they came in, parts of a list. */
#include <stdlib.h>

#include "unit/values.h"

#include "base/sort.h"

static void items_rise_and_equal_ones_keep_their_order(void **state)
{
	(void)state;
	enum { N = 1000, MOST = 37 };
	int32_t key[N], item[N], spare[N + MOST + 2];
	value_seed = 3;
	for (int i = 0; i < N; i++) key[i] = (int32_t)(fabs((double)value()) * 1000) % (MOST + 1), item[i] = (i * 7) % N;
	key[5] = MOST, key[6] = 0;
	assert_int_equal(nr_sort_spare(N, MOST), sizeof spare / sizeof *spare);
	nr_sort_by_key(item, N, key, MOST, spare);
	for (int i = 1; i < N; i++) {
		assert_true(key[item[i]] >= key[item[i - 1]]);
		/* 7 x 143 = 1 modulo 1000: where an item stood */
		if (key[item[i]] == key[item[i - 1]]) assert_true(item[i] * 143 % N > item[i - 1] * 143 % N);
	}
}

static void a_part_of_a_list_is_sorted_alone(void **state)
{
	(void)state;
	static const int32_t key[] = { 4, 3, 2, 1, 0 };
	int32_t item[] = { 0, 1, 2, 3, 4 }, spare[3 + 4 + 2];
	nr_sort_by_key(item + 1, 3, key, 4, spare);
	static const int32_t want[] = { 0, 3, 2, 1, 4 };
	assert_memory_equal(item, want, sizeof want);
	nr_sort_by_key(item, 0, key, 4, spare);
	assert_memory_equal(item, want, sizeof want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_rise_and_equal_ones_keep_their_order), cmocka_unit_test(a_part_of_a_list_is_sorted_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
