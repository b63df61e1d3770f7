/* A program that only calls kernels, linked with libnorma.a, gets those of the set in use: it does not have to name math/isa.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "math/row.h"

static void a_set_was_chosen_before_main(void **state)
{
	(void)state;
	const char *asked = getenv("NORMA_ISA");
	if (asked && *asked) skip();
#ifdef __x86_64__
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) skip();
	assert_ptr_not_equal(nr_row_active, &nr_row_plain);
#else
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_set_was_chosen_before_main) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
