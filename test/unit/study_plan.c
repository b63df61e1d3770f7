/* study/decide.c and tune.c: looks, decisions and tuning runs, without running any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "study/tune.h"
#include "unit/study_conf.h"
#include "unit/arena.h"

static struct nr_study s;
static struct nr_yaml_errors errors;
static struct nr_error err;

static int read(const char *more)
{
	const char *text = nr_arena_printf(arena, "stages: [train: {epochs: 9}, probe]\nbase: {data: mnist}\nmetric: train.top1\n"
						  "out: x\n%s", more);
	err = (struct nr_error){ 0 };
	errors = (struct nr_yaml_errors){ 0 };
	return nr_study_parse(&s, text, strlen(text), "s.yaml", commands, arena, &errors, &err);
}

static void looks(const char *stop, int64_t count, const int64_t *at)
{
	struct nr_looks l;
	assert_int_equal(read(nr_arena_printf(arena, "grid: {norm: [ln, bn, rms]}\nseeds: 8\n%s\n", stop)), NR_OK);
	assert_int_equal(nr_looks_make(&l, &s, arena, &err), NR_OK);
	assert_int_equal(l.count, count);
	for (int64_t i = 0; i < count; i++) assert_int_equal(l.at[i], at[i]);
	double level[8];
	if (count) nr_look_levels(l.at, count, 0.025, level);   /* two comparisons share 0.05 */
	for (int64_t i = 0; i < count; i++) assert_true(l.level[i] == level[i]);
}

static void looks_are_where_they_were_asked_for(void **state)
{
	(void)state;
	looks("", 0, NULL);
	looks("stop: decided", 7, (const int64_t[]){ 2, 3, 4, 5, 6, 7, 8 });
	looks("stop: {when: decided, looks: [3, 5]}", 3, (const int64_t[]){ 3, 5, 8 });
	looks("stop: {when: decided, looks: 4}", 4, (const int64_t[]){ 2, 4, 6, 8 });
	looks("stop: {when: decided, looks: [3, 20]}", 2, (const int64_t[]){ 3, 8 });
}

static void decisions_use_the_seeds_up_to_the_look(void **state)
{
	(void)state;
	struct nr_looks l;
	struct nr_decision d[3];
	assert_int_equal(read("grid: {norm: [ln, bn, rms]}\nseeds: 8\nstop: {when: decided, looks: [3, 5]}\n"), NR_OK);
	assert_int_equal(nr_looks_make(&l, &s, arena, &err), NR_OK);
	const double value[] = {
		0.10, 0.20, 0.30, 0.40, 0.50, 0.60, 0.70, NAN,
		0.20, 0.50, 0.40, 0.55, 0.65, 0.75, NAN, NAN,           /* differs, but not by three values at that level */
		0.11, 0.19, 0.32, 0.38, NAN, 0.61, 0.70, 0.80,          /* the fifth is missing: no second look */
	};
	assert_int_equal(nr_looks_decide(&l, &s, value, d, &err), NR_OK);
	const double five[] = { 0.10, 0.30, 0.10, 0.15, 0.15 };
	assert_int_equal(d[0].seeds, 0);
	assert_int_equal(d[1].seeds, 0);
	assert_int_equal(d[1].looked, 2);
	l.level[1] = 0.03;
	assert_int_equal(nr_looks_decide(&l, &s, value, d, &err), NR_OK);
	assert_int_equal(d[1].seeds, 5);
	assert_true(fabs(d[1].p - nr_t_test(five, 5)) < 1e-12 && d[1].level == l.level[1]);
	assert_int_equal(d[2].seeds, 0);
	assert_int_equal(d[2].looked, 1);
}

static void tuning_tries_the_same_in_every_arm(void **state)
{
	(void)state;
	struct nr_study t;
	assert_int_equal(read("grid: {norm: [ln, bn]}\nseeds: 2\n"
			      "tune: {lr: [0.1, 0.2, 0.4], wd: [0, 1], epochs: 2, seeds: 2, budget: 4}\n"), NR_OK);
	assert_int_equal(nr_tune_study(&s, &t, &err), NR_OK);
	assert_int_equal(t.arms, 8);
	assert_int_equal(t.stages, 1);                          /* the probe is not needed for the metric */
	assert_int_equal(t.seeds, 2);
	assert_int_equal(t.seed[0], NR_TUNE_SEED);
	assert_string_equal(t.out, "x/tune");
	for (int64_t k = 0; k < 4; k++) {
		const struct nr_settings *a = nr_study_settings(&t, k, 0, arena), *b = nr_study_settings(&t, 4 + k, 0, arena);
		assert_int_equal(a->count, 5);                  /* data, epochs, lr, norm, wd */
		for (int64_t i = 0; i < 5; i++)
			if (strcmp(a->item[i].key, "norm")) assert_string_equal(a->item[i].value[0], b->item[i].value[0]);
		assert_string_equal(a->item[1].value[0], "2");
	}
	struct nr_str text = { 0 };
	assert_int_equal(nr_study_text(&s, &text), NR_OK);
	assert_int_equal(nr_study_parse(&s, nr_str_text(&text), text.len, "s.yaml", commands, arena, &errors, &err), NR_OK);
	assert_int_equal(s.tune->axes, 2);
	assert_int_equal(s.tune->budget, 4);
	assert_int_equal(s.tune->own.count, 1);
	nr_str_release(&text);
}

static void each_arm_gets_its_best(void **state)
{
	(void)state;
	struct nr_study t, to;
	char dir[] = "/tmp/norma-tune-XXXXXX", command[64];
	assert_non_null(mkdtemp(dir));
	assert_int_equal(read("arms: [{name: A, norm: ln, lr: 0.9}, {name: B, norm: bn}]\ntune: {lr: [0.1, 0.2, 0.4]}\n"), NR_OK);
	assert_int_equal(nr_tune_study(&s, &t, &err), NR_OK);
	t.out = dir;
	static const double mean[] = { 1, 3, 2, 5, 4, NAN };
	struct nr_arm_metric cell[6] = { 0 };
	for (int i = 0; i < 6; i++) cell[i].all = (struct nr_sample){ 1, mean[i], NAN, NAN };
	const struct nr_summary m = { .study = &t, .arena = arena, .cell = cell, .metrics = 1 };
	assert_int_equal(nr_tune_apply(&s, &m, &to, &err), NR_OK);
	assert_int_equal(to.arm[0].own.count, 2);               /* replaced, not given twice */
	assert_string_equal(to.arm[0].own.item[1].value[0], "0.2");
	assert_string_equal(to.arm[1].own.item[1].value[0], "0.1");
	assert_string_equal(s.tune->notes.item[0], "tuned by train.top1, A: lr 0.1 1; lr 0.2 3; lr 0.4 2; taken: lr 0.2");
	assert_non_null(strstr(s.tune->notes.item[1], "lr 0.4 no result; taken: lr 0.1, at the end of the list (extend it)"));
	s.tune->better = -1;
	assert_int_equal(nr_tune_apply(&s, &m, &to, &err), NR_OK);
	assert_string_equal(to.arm[0].own.item[1].value[0], "0.1");
	snprintf(command, sizeof command, "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(looks_are_where_they_were_asked_for, setup, teardown),
		cmocka_unit_test_setup_teardown(decisions_use_the_seeds_up_to_the_look, setup, teardown),
		cmocka_unit_test_setup_teardown(tuning_tries_the_same_in_every_arm, setup, teardown),
		cmocka_unit_test_setup_teardown(each_arm_gets_its_best, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
