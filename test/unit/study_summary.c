/* study/summary.c, tables.c and job.c: from the files of a study to its tables; numbers from scipy 1.17. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/save.h"
#include "base/str.h"
#include "study/job.h"
#include "study/results.h"
#include "unit/study_conf.h"

static const double score[3][5] = {
	{ .90, .91, .89, .92, .90 }, { .915, .922, .905, .93, .918 }, { .90, .93, .88, .925, NAN },
};

struct fixture { char dir[64]; struct nr_arena *arena; struct nr_study s; struct nr_error err; };

static int parse(struct fixture *f, const char *more)
{
	struct nr_yaml_errors errors;
	const char *text = nr_arena_printf(f->arena, "stages: [train]\nbase: {data: mnist}\ntitle: a_b\nseeds: 5\nmetric: train.top1\n"
						      "grid: {norm: [ln, bn, \"sep(bn,ln)\"]}\nout: %s\n%s", f->dir, more);
	f->err = (struct nr_error){ 0 };
	return nr_study_parse(&f->s, text, strlen(text), "s.yaml", commands, f->arena, &errors, &f->err);
}

static void leave(struct fixture *f, int64_t arm, int64_t seed)
{
	struct nr_job j;
	assert_int_equal(nr_job_make(&j, &f->s, arm, seed, 0, f->arena, &f->err), NR_OK);
	assert_int_equal(nr_folder_make(j.dir, &f->err), NR_OK);
	if (isnan(score[arm][seed])) {
		assert_int_equal(nr_mark_write(&j, NR_MARK_DIVERGED, 1, "the loss is not finite", &f->err), NR_OK);
		return;
	}
	const char *env = nr_arena_printf(f->arena, "{\"run\":\"model             vit: 10 parameters, 0.5 GFLOP forward per sample\\n"
						     "batch statistics  %s\\nsteps             10 of 4 samples, 5 an epoch\\n\"}",
		arm ? "5 norms" : "none");
	const char *path = nr_arena_printf(f->arena, "%s/env.json", j.dir);
	assert_int_equal(nr_save_file(path, env, strlen(env), &f->err), NR_OK);
	json_t *o = json_pack("{s:f, s:{s:f}}", "top1", score[arm][seed], "more", "loss", 1.5);
	assert_int_equal(nr_result_save(&j, o, &f->err), NR_OK);
	json_decref(o);
	assert_int_equal(nr_mark_write(&j, NR_MARK_DONE, 10, NULL, &f->err), NR_OK);
}

static int setup(void **state)
{
	struct fixture *f = *state = calloc(1, sizeof *f);
	snprintf(f->dir, sizeof f->dir, "/tmp/norma-study-XXXXXX");
	f->arena = nr_arena_make();
	if (!mkdtemp(f->dir) || parse(f, "")) return -1;
	for (int64_t a = 0; a < 3; a++)
		for (int64_t k = 0; k < 5; k++) leave(f, a, k);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", f->dir);
	nr_arena_free(f->arena);
	const int code = system(command);
	free(f);
	return code;
}

static void near(double got, double want)
{
	if (fabs(got - want) > 1e-9 * fabs(want)) fail_msg("%.15g instead of %.15g", got, want);
}

static void arms_are_compared_by_common_seeds(void **state)
{
	struct fixture *f = *state;
	struct nr_summary m;
	assert_int_equal(nr_summary_make(&m, &f->s, NULL, 0, f->arena, &f->err), NR_OK);
	near(m.cell[0].all.mean, 0.904);
	near(m.cell[0].all.half, 0.014157147769822733);
	const struct nr_comparison *b = &m.cell[1].against, *c = &m.cell[2].against;
	near(b->difference.mean, 0.014);
	near(b->difference.half, 0.003827065468754868);
	near(b->p_t, 0.0005291615484836228);
	near(b->p_t_holm, 2 * 0.0005291615484836228);
	near(b->p_wilcoxon, 0.0625);
	near(b->p_wilcoxon_holm, 0.125);
	assert_int_equal(b->needed, 0);
	assert_int_equal(m.cell[2].all.n, 4);
	assert_int_equal(c->difference.n, 4);
	near(c->p_t_holm, 0.5908012080539892);
	near(c->p_wilcoxon_holm, 0.75);
	assert_int_equal(c->needed, 109 - 4);
	near(m.level, 0.025);
	near(m.cost[0].seconds, 50);
	near(m.cost[0].flops, 5 * 3 * 0.5e9 * 40);
	assert_string_equal(m.cost[1].batch, "5 norms");
	assert_non_null(strstr(m.notes.item[0], "differ in what their batch statistics saw"));
}

static void a_paper_gets_the_columns_it_asks_for(void **state)
{
	struct fixture *f = *state;
	struct nr_summary m;
	struct nr_str latex = { 0 };
	assert_int_equal(nr_summary_make(&m, &f->s, NULL, 0, f->arena, &f->err), NR_OK);
	struct nr_study study = f->s;
	m.study = &study;
	study.columns = "time, wilcoxon n";
	nr_summary_latex(&m, &latex);
	assert_non_null(strstr(latex.text, "{@{}lrrr@{}}"));
	assert_non_null(strstr(latex.text, "Arm & $n$ & $p_W$ & time \\\\\n"));
	assert_null(strstr(latex.text, "siunitx"));
	nr_str_release(&latex);
	study.columns = "all";
	nr_summary_latex(&m, &latex);
	assert_non_null(strstr(latex.text, " & needed & "));
	nr_str_release(&latex);
	assert_int_equal(nr_tex_columns_check(&f->s, "n p,flops metric", &f->err), NR_OK);
	assert_int_equal(nr_tex_columns_check(&f->s, "n pvalue", &f->err), NR_ENAME);
	assert_string_equal(f->err.subject, "pvalue");
	f->err = (struct nr_error){ 0 };
}

static void tables_have_every_arm_in_every_form(void **state)
{
	struct fixture *f = *state;
	struct nr_summary m;
	char fault[] = "the loss is not finite";
	struct nr_study_run failed = { .arm = 2, .seed = 4, .status = NR_RUN_FAILED, .fault = fault };
	assert_int_equal(nr_summary_make(&m, &f->s, &failed, 1, f->arena, &f->err), NR_OK);
	struct nr_str text = { 0 }, markdown = { 0 }, latex = { 0 };
	nr_summary_text(&m, &text);
	nr_summary_markdown(&m, &markdown);
	nr_summary_latex(&m, &latex);
	assert_non_null(strstr(nr_str_text(&text), "90.40 ± 1.42"));
	assert_non_null(strstr(nr_str_text(&text), "+1.40 ± 0.38"));
	assert_non_null(strstr(nr_str_text(&text), "105 more"));
	assert_non_null(strstr(nr_str_text(&text), "sep(bn,ln), seed 4 failed in train: the loss is not finite"));
	assert_non_null(strstr(nr_str_text(&markdown), "| bn | 5 | 91.80 ± 1.14 | +1.40 ± 0.38 | 0.0011 | 0.125 | enough |"));
	assert_non_null(strstr(nr_str_text(&latex), "Arm & top-1 (\\%) & $\\Delta$ & $p$ \\\\\n"));
	assert_non_null(strstr(nr_str_text(&latex), "bn & $91.80 \\pm 1.14$ & $+1.40 \\pm 0.38$ & $0.0011$ \\\\\n"));
	for (const char *line = nr_str_text(&text); *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (strstr(line, "arm ") == line) assert_true(strcspn(line, "\n") <= 80);
	assert_int_equal(nr_summary_write(&m, &failed, 1, &f->err), NR_OK);
	json_t *o = nr_json_load(nr_arena_printf(f->arena, "%s/table.json", f->dir), &f->err);
	assert_int_equal(json_array_size(json_object_get(o, "arms")), 3);
	json_decref(o);
	nr_str_release(&text);
	nr_str_release(&markdown);
	nr_str_release(&latex);
}

static void results_of_other_settings_do_not_count(void **state)
{
	struct fixture *f = *state;
	struct nr_summary m;
	assert_int_equal(parse(f, "base2: 1"), NR_EFORMAT);
	assert_int_equal(parse(f, ""), NR_OK);
	f->s.arm[1].own.item[0].value = (const char *const[]){ "gn" };
	assert_int_equal(nr_summary_make(&m, &f->s, NULL, 0, f->arena, &f->err), NR_OK);
	assert_int_equal(m.cell[1].all.n, 0);
	assert_int_equal(m.cell[0].all.n, 5);
}

static void misspelt_metrics_are_said(void **state)
{
	struct fixture *f = *state;
	struct nr_summary m;
	assert_int_equal(parse(f, "also: [train.loss, train.more.lss]\n"), NR_OK);
	assert_int_equal(nr_summary_make(&m, &f->s, NULL, 0, f->arena, &f->err), NR_OK);
	near(m.cell[3].all.mean, 1.5);                  /* found below `more` */
	assert_non_null(strstr(m.notes.item[0], "train.more.loss"));
	f->s.metric = "train.topp1";
	assert_int_equal(nr_summary_make(&m, &f->s, NULL, 0, f->arena, &f->err), NR_ENAME);
}

static void differences_of_settings_are_named(void **state)
{
	struct fixture *f = *state;
	struct nr_job j;
	assert_int_equal(nr_job_make(&j, &f->s, 1, 0, 0, f->arena, &f->err), NR_OK);
	char more[] = "command=train\nseed=0\ndata=cifar10\nnorm=bn\n", fewer[] = "command=train\nseed=0\ndata=mnist\n",
	     gone[] = "command=train\nseed=0\ndata=mnist\nlr=1\nnorm=bn\n";
	const struct nr_stage_mark marks[] = { { .settings = more }, { .settings = fewer }, { .settings = gone } };
	assert_string_equal(nr_mark_difference(&marks[0], &j, f->arena), "data=cifar10 became data=mnist");
	assert_string_equal(nr_mark_difference(&marks[1], &j, f->arena), "norm=bn is new");
	assert_string_equal(nr_mark_difference(&marks[2], &j, f->arena), "lr=1 is gone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(arms_are_compared_by_common_seeds, setup, teardown),
		cmocka_unit_test_setup_teardown(a_paper_gets_the_columns_it_asks_for, setup, teardown),
		cmocka_unit_test_setup_teardown(tables_have_every_arm_in_every_form, setup, teardown),
		cmocka_unit_test_setup_teardown(results_of_other_settings_do_not_count, setup, teardown),
		cmocka_unit_test_setup_teardown(misspelt_metrics_are_said, setup, teardown),
		cmocka_unit_test_setup_teardown(differences_of_settings_are_named, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
