/* study/file.c, arms.c, settings.c, check.c, text.c and job.c: from a file to runs, without running any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/str.h"
#include "study/job.h"
#include "study/results.h"
#include "study/settings.h"
#include "unit/arena.h"

struct made { char *data, *norm, *out; double lr; int64_t seed, epochs; struct nr_list tag; bool json; };
struct seen { char *data, *norm; double lr; int64_t k; bool json; };
static const struct nr_option train_rows[] = {
	NR_OPT_STRING(struct made, data, "", "data"),
	NR_OPT_STRING(struct made, norm, "", "norm"),
	NR_OPT_STRING(struct made, out, "", "out"),
	NR_OPT_FLOAT(struct made, lr, 1e-3, 0, 1, "rate"),
	NR_OPT_INT(struct made, seed, 0, 0, 9e15, "seed"),
	NR_OPT_INT(struct made, epochs, 1, 1, 100, "epochs"),
	NR_OPT_LIST(struct made, tag, "tags"),
	NR_OPT_BOOL(struct made, json, "0", "JSON"),
	NR_OPT_END
};
static const struct nr_option probe_rows[] = {
	NR_OPT_STRING(struct seen, data, "", "data"),
	NR_OPT_STRING(struct seen, norm, "", "norm"),
	NR_OPT_FLOAT(struct seen, lr, 1, 0, 10, "rate"),
	NR_OPT_INT(struct seen, k, 1, 1, 9, "neighbours"),
	NR_OPT_BOOL(struct seen, json, "0", "JSON"),
	NR_OPT_END
};
static const struct nr_study_command commands[] = {
	{ "train", train_rows, sizeof(struct made), false, true },
	{ "probe", probe_rows, sizeof(struct seen), true, false },
	{ NULL, NULL, 0, false, false },
};

static struct nr_yaml_errors errors;
static struct nr_error err;

static int read(struct nr_study *s, const char *text)
{
	err = (struct nr_error){ 0 };
	return nr_study_parse(s, text, strlen(text), "dir/made up.yaml", commands, arena, &errors, &err);
}

#define STAGES "base: {data: mnist}\nstages: [train: {epochs: 3}, probe]\n"

static void grid_makes_every_combination_with_names(void **state)
{
	(void)state;
	struct nr_study s;
	assert_int_equal(read(&s, STAGES "grid:\n  norm: [ln, \"sep(bn,ln)\"]\n  lr: [0.1, 0.2]\n"
				  "  probe.k: {few: 1, many: 9}\nseeds: 3\n"), NR_OK);
	assert_int_equal(s.arms, 8);
	assert_int_equal(s.seeds, 3);
	assert_string_equal(s.arm[0].name, "ln, lr=0.1, few");
	assert_string_equal(s.arm[7].name, "sep(bn,ln), lr=0.2, many");
	assert_string_equal(s.arm[7].folder, "sep_bn_ln_lr=0.2_many");
	assert_string_equal(s.out, "runs/made up");
	assert_string_equal(s.metric, "probe.cls.top1");
}

static void arms_and_grid_multiply(void **state)
{
	(void)state;
	struct nr_study s;
	assert_int_equal(read(&s, STAGES "arms: [{name: A, norm: ln}, {norm: bn, epochs: 7}]\ngrid: {lr: [0.1, 0.2]}\n"
				  "seeds: [5, 7]\nbaseline: \"A, lr=0.2\"\n"), NR_OK);
	assert_int_equal(s.arms, 4);
	assert_string_equal(s.arm[3].name, "bn, epochs=7, lr=0.2");
	assert_int_equal(s.first, 1);
	assert_int_equal(s.seed[1], 7);
}

static const char *value(const struct nr_study *s, int64_t arm, int64_t stage, const char *key)
{
	const struct nr_settings *all = nr_study_settings(s, arm, stage, arena);
	for (int64_t i = 0; i < all->count; i++)
		if (!strcmp(all->item[i].key, key)) return nr_setting_text(&all->item[i], arena);
	return "";
}

static void options_find_their_stage_and_arms_count_most(void **state)
{
	(void)state;
	struct nr_study s;
	assert_int_equal(read(&s, "base: {data: mnist, lr: 0.5, tag: [x, y]}\nstages: [train: {epochs: 3, lr: 0.4}, probe: {lr: 3}]\n"
				  "arms: [{norm: ln}, {norm: bn, lr: 0.3, epochs: 9, probe.lr: 7}]\n"), NR_OK);
	assert_string_equal(value(&s, 0, 0, "lr"), "0.4");
	assert_string_equal(value(&s, 0, 1, "lr"), "3");
	assert_string_equal(value(&s, 1, 0, "lr"), "0.3");
	assert_string_equal(value(&s, 1, 1, "lr"), "7");
	assert_string_equal(value(&s, 1, 0, "epochs"), "9");
	assert_string_equal(value(&s, 0, 0, "tag"), "[x, y]");
	assert_string_equal(value(&s, 0, 1, "norm"), "");       /* the checkpoint says it */
	assert_string_equal(value(&s, 0, 1, "data"), "mnist");
}

static void hashes_follow_settings_and_sources_only(void **state)
{
	(void)state;
	struct nr_study s, t;
	struct nr_job a, b, c, d;
	assert_int_equal(read(&s, STAGES "arms: [{norm: ln}, {norm: bn}]\nseeds: 2\nout: x\n"), NR_OK);
	assert_int_equal(read(&t, "stages: [train: {epochs: 3}, probe]\nbase: {data: mnist}\n"
				  "arms: [{norm: bn}, {norm: gn}]\nout: y\n"), NR_OK);
	nr_job_make(&a, &s, 1, 0, 1, arena, &err);
	nr_job_make(&b, &t, 0, 0, 1, arena, &err);
	nr_job_make(&c, &s, 0, 0, 1, arena, &err);
	nr_job_make(&d, &s, 1, 1, 1, arena, &err);
	assert_string_equal(a.hash, b.hash);
	assert_string_not_equal(a.hash, c.hash);        /* another norm in the stage before */
	assert_string_not_equal(a.hash, d.hash);        /* another seed there */
	assert_string_equal(a.mark, "x/bn/seed-0/probe.mark");
}

static void text_form_is_the_same_study(void **state)
{
	(void)state;
	struct nr_study s, t;
	struct nr_str text = { 0 };
	assert_int_equal(read(&s, STAGES "title: \"a \\\"b\\\" \\\\ c\"\ngrid: {norm: [ln, \"sep(bn,ln)\"], tag: [[a, b], c]}\n"
				  "seeds: 2\nbaseline: \"ln, c\"\n"), NR_OK);
	assert_int_equal(nr_study_text(&s, &text), NR_OK);
	if (read(&t, nr_str_text(&text))) fail_msg("%s", nr_error_text(&err, (char[2048]){ 0 }, 2048));
	assert_string_equal(s.title, t.title);
	assert_int_equal(t.first, s.first);
	assert_int_equal(t.arms, 4);
	for (int64_t i = 0; i < 4; i++) {
		struct nr_job a, b;
		nr_job_make(&a, &s, i, 1, 1, arena, &err);
		nr_job_make(&b, &t, i, 1, 1, arena, &err);
		assert_string_equal(a.hash, b.hash);
		assert_string_equal(a.dir, b.dir);
	}
	nr_str_release(&text);
}

/* One error with these words, at this line. */
static void wrong(const char *text, int64_t line, const char *words, const char *hint)
{
	struct nr_study s;
	if (!read(&s, text)) fail_msg("accepted: %s", text);
	for (int i = 0; i < errors.count; i++) {
		const struct nr_yaml_error *e = &errors.item[i];
		if (e->line == line && strstr(e->text, words) && (!hint || (e->hint && strstr(e->hint, hint)))) return;
	}
	fail_msg("%s: no '%s' in line %d, but %s", text, words, (int)line, nr_error_text(&err, (char[2048]){ 0 }, 2048));
}

static void errors_name_line_and_nearest_match(void **state)
{
	(void)state;
	wrong(STAGES "sedes: 3\n", 3, "unknown key 'sedes'", "seeds");
	wrong("base: {data: mnist}\nstages: [trian]\n", 2, "no stage can run 'trian'", "train");
	wrong(STAGES "grid: {nrom: [ln]}\n", 3, "no stage has an option 'nrom'", "norm");
	wrong(STAGES "grid: {probe.kk: [1]}\n", 3, "probe has no option 'kk'", NULL);
	wrong(STAGES "grid: {probe.k: [10]}\n", 3, "'k' of probe", NULL);
	wrong(STAGES "grid: {norm: [ln, lnn]}\n", 3, "'norm' of train", "ln");
	wrong(STAGES "grid: {norm: []}\n", 3, "'norm' has no values", NULL);
	wrong(STAGES "grid: {norm: [{a: 1}]}\n", 3, "should be a value", NULL);
	wrong(STAGES "arms:\n  - {name: a, norm: ln}\n  - {name: a, norm: bn}\n", 5, "two arms are called 'a'", NULL);
	wrong(STAGES "base2: 1\ngrid: {epochs: [x]}\n", 4, "'epochs' of train", NULL);     /* all errors at once */
	wrong("base: {epochs: [1, 2], data: mnist}\nstages: [train]\n", 1, "takes one value", "grid");
	wrong("base: {out: x, data: mnist}\nstages: [train]\n", 1, "'out' is set by the study itself", NULL);
	wrong("base: {data: mnist}\nstages: [probe]\n", 2, "has no checkpoint", NULL);
	wrong("base: {data: mnist}\nstages: [train, train]\n", 2, "two stages are called", NULL);
	wrong("base: {data: mnist}\nstages: [train: {from: x}]\n", 2, "takes no checkpoint", NULL);
	wrong("stages: [train]\n", 1, "has no data set", NULL);
	wrong(STAGES "metric: prob.top1\n", 3, "not STAGE.KEY", "probe.top1");
	wrong(STAGES "parallel: 0\n", 3, "'parallel'", NULL);
	wrong(STAGES "seeds: -1\n", 3, "'seeds'", NULL);
	wrong("- 1\n", 1, "a study is a mapping", NULL);
	wrong("", 1, "a study is a mapping", NULL);
	wrong("stages: 3\n", 1, "'stages' should be a list", NULL);
}

static void too_large_grids_are_refused(void **state)
{
	(void)state;
	struct nr_str text = { 0 };
	nr_str_add(&text, STAGES "grid: {lr: [0.1");
	for (int i = 1; i < 40; i++) nr_str_printf(&text, ", 0.1%02d", i);
	nr_str_add(&text, "], epochs: [1");
	for (int i = 2; i <= 40; i++) nr_str_printf(&text, ", %d", i);
	nr_str_add(&text, "]}\n");
	wrong(nr_str_text(&text), 3, "more than 1000 arms", NULL);
	nr_str_release(&text);
}

static void results_are_found_by_path(void **state)
{
	(void)state;
	json_t *o = json_loads("{\"top1\":0.5,\"cls\":{\"top1\":0.25,\"n\":3},\"a.b\":1,\"text\":\"x\",\"list\":[1]}", 0, NULL);
	double v = 0;
	assert_true(nr_result_number(o, "cls.top1", &v) && v == 0.25);
	assert_true(nr_result_number(o, "a.b", &v) && v == 1);
	assert_true(nr_result_number(o, "n", &v) && v == 3);
	assert_true(nr_result_number(o, "top1", &v) && v == 0.5);
	assert_false(nr_result_number(o, "text", &v));
	assert_false(nr_result_number(o, "cls", &v));
	struct nr_error e = { 0 };
	assert_int_equal(nr_result_unknown(o, "probe", "probe.cls.topp1", &e), NR_ENAME);
	assert_non_null(strstr(e.hint, "probe.cls.top1"));
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(grid_makes_every_combination_with_names, setup, teardown),
		cmocka_unit_test_setup_teardown(arms_and_grid_multiply, setup, teardown),
		cmocka_unit_test_setup_teardown(options_find_their_stage_and_arms_count_most, setup, teardown),
		cmocka_unit_test_setup_teardown(hashes_follow_settings_and_sources_only, setup, teardown),
		cmocka_unit_test_setup_teardown(text_form_is_the_same_study, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_name_line_and_nearest_match, setup, teardown),
		cmocka_unit_test_setup_teardown(too_large_grids_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(results_are_found_by_path, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
