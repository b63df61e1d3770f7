/* How much of the last cache is ours. That streamed results have the same bits is tested beside the kernels (row.c, column.c). */
#include "unit/values.h"

#include "math/stream.h"

enum { MIB = 1 << 20 };

static void a_cache_of_our_own_is_ours(void **state)
{
	(void)state;
	assert_int_equal(nr_cache_share(32 * MIB, 2, 2), 32 * MIB);
	assert_int_equal(nr_cache_share(8 * MIB, 4, 8), 8 * MIB);
	assert_int_equal(nr_cache_share(0, 1, 2), 0);
}

static void a_cache_shared_with_others_is_divided(void **state)
{
	(void)state;
	assert_int_equal(nr_cache_share(256 * MIB, 128, 2), 4 * MIB);
	assert_int_equal(nr_cache_share(32 * MIB, 16, 4), 8 * MIB);
}

static void a_host_s_cache_told_as_ours_is_bounded(void **state)
{
	(void)state;
	assert_int_equal(nr_cache_share(260ll * MIB, 2, 2), 32 * MIB);
	assert_int_equal(nr_cache_share(260ll * MIB, 1, 1), 16 * MIB);
}

static void arrays_stream_when_two_do_not_fit(void **state)
{
	(void)state;
	const int64_t half = nr_last_cache() / 2 / (int64_t)sizeof(real);
	assert_false(nr_streams(half));
	assert_int_equal(nr_streams(half + 1), nr_last_cache() > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cache_of_our_own_is_ours),
		cmocka_unit_test(a_cache_shared_with_others_is_divided),
		cmocka_unit_test(a_host_s_cache_told_as_ours_is_bounded),
		cmocka_unit_test(arrays_stream_when_two_do_not_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
