/* Choosing the instruction set: names, refusals, and that every family switches. */
#include "unit/values.h"

#include "math/act.h"
#include "math/row.h"

static void every_set_has_a_name_that_selects_it(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		assert_int_equal(nr_isa_active(), s);
		assert_non_null(strstr(nr_isa_reason(), nr_isa_name((enum nr_isa)s)));
	}
	assert_int_equal(nr_isa_active(), nr_isa_best());
	assert_true(nr_isa_supported(NR_ISA_PLAIN));
	assert_false(nr_isa_supported(NR_ISA_COUNT));
	assert_string_equal(nr_isa_name(NR_ISA_PLAIN), "plain");
}

static void selection_switches_the_families(void **state)
{
	(void)state;
	assert_int_equal(nr_isa_select("plain", NULL), 0);
	assert_ptr_equal(nr_row_active, &nr_row_plain);
	assert_ptr_equal(nr_act_active, &nr_act_plain);
	assert_int_equal(nr_isa_select("auto", NULL), 0);
	if (nr_isa_best() != NR_ISA_PLAIN) assert_ptr_not_equal(nr_row_active, &nr_row_plain);
}

static void an_unknown_name_is_refused_and_changes_nothing(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	char text[512];
	assert_int_equal(nr_isa_select("avx9", &err), NR_ENAME);
	assert_int_equal(nr_isa_active(), nr_isa_best());
	assert_non_null(strstr(nr_error_text(&err, text, sizeof text), "'avx9'"));
	for (const char *const *name = nr_isa_choices; *name; name++) assert_non_null(strstr(text, *name));
}

static void a_set_that_the_cpu_lacks_is_refused(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	if (nr_isa_best() + 1 == NR_ISA_COUNT) skip();
	assert_int_equal(nr_isa_select(nr_isa_name(nr_isa_best() + 1), &err), NR_EVALUE);
	assert_int_equal(nr_isa_active(), nr_isa_best());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_set_has_a_name_that_selects_it),
		cmocka_unit_test(selection_switches_the_families),
		cmocka_unit_test(an_unknown_name_is_refused_and_changes_nothing),
		cmocka_unit_test(a_set_that_the_cpu_lacks_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
