/* src/base/equal.c: the first of equal pieces, many of them, empty ones, beginnings of others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/values.h"

#include "base/equal.h"

static void each_piece_finds_the_first_that_equals_it(void **state)
{
	(void)state;
	static const char *const text[] = { "", "a", "ab", "a", "", "abc", "ab", "b" };
	static const int32_t want[] = { 0, 1, 2, 1, 0, 5, 2, 7 };
	struct nr_piece piece[8];
	int32_t first[8];
	for (int i = 0; i < 8; i++) piece[i] = (struct nr_piece){ text[i], strlen(text[i]) };
	piece[4].data = NULL;                               /* no bytes need no address */
	assert_int_equal(nr_equal_pieces(piece, 8, first), 5);
	assert_memory_equal(first, want, sizeof want);
	assert_int_equal(nr_equal_pieces(NULL, 0, NULL), 0);
}

static void the_table_is_large_enough_for_all(void **state)
{
	(void)state;
	enum { N = 5000, DIFFERENT = 1250 };
	static uint16_t number[N];
	static struct nr_piece piece[N];
	static int32_t first[N];
	for (int i = 0; i < N; i++) {
		number[i] = (uint16_t)(i % DIFFERENT);
		piece[i] = (struct nr_piece){ &number[i], sizeof *number };
	}
	assert_int_equal(nr_equal_pieces(piece, N, first), DIFFERENT);
	for (int i = 0; i < N; i++) assert_int_equal(first[i], i % DIFFERENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_piece_finds_the_first_that_equals_it), cmocka_unit_test(the_table_is_large_enough_for_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
