/* Schedules: ends, warm-up and the odd settings; the recipes themselves are golden files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "norma/optim.h"

static struct nr_schedule schedule(const char *text)
{
	struct nr_schedule s;
	struct nr_error err = { 0 };
	nr_option_defaults(nr_schedule_options(), &s);
	assert_int_equal(nr_option_parse(nr_schedule_options(), &s, text, NULL, &err), 0);
	return s;
}

static void near(double got, double want) { assert_true(fabs(got - want) <= 1e-12); }

static void cosine_goes_from_base_to_final(void **state)
{
	const struct nr_schedule s = schedule("kind=cosine,base=2,final=1,total=10");
	near(nr_schedule_at(&s, 0), 2);
	near(nr_schedule_at(&s, 5), 1.5);
	near(nr_schedule_at(&s, 10), 1);
	near(nr_schedule_at(&s, 1000), 1);
}

static void linear_and_poly_fall_to_final(void **state)
{
	const struct nr_schedule a = schedule("kind=linear,base=1,total=4"),
				 b = schedule("kind=poly,power=2,base=1,total=4");
	near(nr_schedule_at(&a, 1), .75);
	near(nr_schedule_at(&b, 1), .5625);
	near(nr_schedule_at(&b, 4), 0);
}

static void warmup_arrives_at_its_end_or_one_step_earlier(void **state)
{
	struct nr_schedule s = schedule("kind=constant,base=8,warmup=4");
	near(nr_schedule_at(&s, 0), 0);
	near(nr_schedule_at(&s, 3), 6);
	near(nr_schedule_at(&s, 4), 8);
	s.inclusive = true;
	near(nr_schedule_at(&s, 3), 8);
	s.warmup = 1;
	near(nr_schedule_at(&s, 0), 0);
	near(nr_schedule_at(&s, 1), 8);
}

static void rsqrt_counts_from_the_end_of_warmup(void **state)
{
	const struct nr_schedule s = schedule("kind=rsqrt,base=1,warmup=10,timescale=30");
	near(nr_schedule_at(&s, 5), .5);
	near(nr_schedule_at(&s, 10), 1);
	near(nr_schedule_at(&s, 100), .5);
}

static void steps_fall_at_their_milestones(void **state)
{
	struct nr_schedule s = schedule("kind=step,base=1,gamma=0.1");
	char text[] = "8 11";
	s.milestones = text;
	near(nr_schedule_at(&s, 7), 1);
	near(nr_schedule_at(&s, 8), .1);
	near(nr_schedule_at(&s, 11), .01);
	s.milestones = NULL;
	near(nr_schedule_at(&s, 11), 1);
}

static void a_run_without_steps_is_at_its_end(void **state)
{
	const struct nr_schedule s = schedule("kind=cosine,base=1,final=0.5,warmup=3,total=3");
	near(nr_schedule_at(&s, 3), .5);
	near(nr_schedule_at(&s, 2), 2. / 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cosine_goes_from_base_to_final),
		cmocka_unit_test(linear_and_poly_fall_to_final),
		cmocka_unit_test(warmup_arrives_at_its_end_or_one_step_earlier),
		cmocka_unit_test(rsqrt_counts_from_the_end_of_warmup),
		cmocka_unit_test(steps_fall_at_their_milestones),
		cmocka_unit_test(a_run_without_steps_is_at_its_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
