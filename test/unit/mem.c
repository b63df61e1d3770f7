/* base/mem.c: arenas and slabs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static void memory_is_aligned_and_zero(void **state)
{
	(void)state;
	struct nr_arena *a = nr_arena_make();
	for (size_t size = 0; size < 3000; size += 7) {
		unsigned char *p = nr_arena_alloc(a, size);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % (size >= 64 ? 64 : 16), 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xAB, size);
	}
	nr_arena_free(a);
}

static void reset_gives_back_and_zeroes_again(void **state)
{
	(void)state;
	struct nr_arena *a = nr_arena_make();
	char *kept = nr_arena_strdup(a, "kept");
	struct nr_mark m = nr_arena_mark(a);
	char *first = nr_arena_alloc(a, 100);
	memset(first, 1, 100);
	memset(nr_arena_alloc(a, 5 << 20), 1, 5 << 20);
	nr_arena_reset(a, m);
	char *second = nr_arena_alloc(a, 100);
	assert_ptr_equal(first, second);
	for (int i = 0; i < 100; i++)
		assert_int_equal(second[i], 0);
	assert_string_equal(kept, "kept");
	nr_arena_free(a);
}

static void mark_of_an_empty_arena_empties_it(void **state)
{
	(void)state;
	struct nr_arena *a = nr_arena_make();
	struct nr_mark m = nr_arena_mark(a);
	nr_arena_alloc(a, 10);
	nr_arena_reset(a, m);
	assert_null(nr_arena_mark(a).block);
	assert_non_null(nr_arena_alloc(a, 10));
	nr_arena_free(a);
	nr_arena_free(NULL);
}

static void printf_writes_into_the_arena(void **state)
{
	(void)state;
	struct nr_arena *a = nr_arena_make();
	assert_string_equal(nr_arena_printf(a, "blocks.%d.%s", 11, "attn"), "blocks.11.attn");
	nr_arena_free(a);
}

static void absurd_sizes_give_null(void **state)
{
	(void)state;
	struct nr_arena *a = nr_arena_make();
	assert_null(nr_arena_alloc(a, SIZE_MAX));
	assert_null(nr_arena_alloc(a, SIZE_MAX / 2));
	assert_null(nr_slab_make(SIZE_MAX));
	assert_null(nr_slab_make(SIZE_MAX / 8));
	nr_arena_free(a);
}

static void slabs_are_page_aligned_zero_and_writable_to_the_end(void **state)
{
	(void)state;
	const size_t sizes[] = { 0, 1, 4096, 100000, 2 << 20, (5 << 20) + 1 };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t n = sizes[i];
		char *p = nr_slab_make(n);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % (n >= 2 << 20 ? 2 << 20 : 4096), 0);
		if (n) {
			assert_int_equal(p[0] | p[n - 1], 0);
			p[0] = p[n - 1] = 1;
		}
		nr_slab_free(p, n);
	}
	nr_slab_free(NULL, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_aligned_and_zero),
		cmocka_unit_test(reset_gives_back_and_zeroes_again),
		cmocka_unit_test(mark_of_an_empty_arena_empties_it),
		cmocka_unit_test(printf_writes_into_the_arena),
		cmocka_unit_test(absurd_sizes_give_null),
		cmocka_unit_test(slabs_are_page_aligned_zero_and_writable_to_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
