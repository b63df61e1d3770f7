/* study/away.c and call.c: runs as commands and scripts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "study/slurm.h"
#include "study/study.h"
#include "unit/arena.h"

struct made { char *norm, *out; int64_t seed; bool json; };
static const struct nr_option rows[] = {
	NR_OPT_STRING(struct made, norm, "", "norm"),
	NR_OPT_STRING(struct made, out, "", "out"),
	NR_OPT_INT(struct made, seed, 0, 0, 9e15, "seed"),
	NR_OPT_BOOL(struct made, json, "0", "JSON"),
	NR_OPT_END
};
static const struct nr_study_command commands[] = { { "train", rows, sizeof(struct made), false, true }, { NULL, NULL, 0, false, false } };
static const char *const env[] = { "NORMA_DATA=/a b", "NORMA_ISA=avx2", NULL };
static struct nr_error err;

static void read(struct nr_study *s, const char *out)
{
	struct nr_yaml_errors errors = { 0 };
	char text[300];
	const int n = snprintf(text, sizeof text, "stages: [train]\ngrid: {norm: [\"sep(bn,ln)\", ln]}\nseeds: [0, 7]\n"
		"metric: train.loss\nout: \"%s\"\n", out);
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_study_parse(s, text, (size_t)n, "made-up.yaml", commands, arena, &errors, &err), 0);
}

static const struct nr_study_away away = { .norma = "/opt/norma", .folder = "/home/it's", .study = "runs/x/study.yaml", .flags = " --retry",
	.env = env };

static void runs_are_found_by_folder_or_name(void **state)
{
	(void)state;
	struct nr_study s;
	int64_t arm = -1, seed = -1;
	read(&s, "runs/x");
	assert_int_equal(nr_study_find_run(&s, "sep_bn_ln/seed-7", &arm, &seed, &err), 0);
	assert_true(arm == 0 && seed == 1);
	assert_int_equal(nr_study_find_run(&s, "sep(bn,ln)/seed-0", &arm, &seed, &err), 0);
	assert_true(arm == 0 && seed == 0);
	static const char *const wrong[] = { "", "ln", "ln/seed-1", "ln/seed-", "ln/7", "/seed-0", "lm/seed-0", "ln/seed-00x" };
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		err = (struct nr_error){ 0 };
		assert_int_equal(nr_study_find_run(&s, wrong[i], &arm, &seed, &err), NR_ENAME);
		assert_string_equal(err.subject, wrong[i]);
	}
	err = (struct nr_error){ 0 };
	nr_study_find_run(&s, "lm/seed-0", &arm, &seed, &err);
	assert_string_equal(err.hint, "did you mean 'ln/seed-0'?");
}

static void a_command_is_one_line_of_the_shell(void **state)
{
	(void)state;
	struct nr_study s;
	struct nr_str text = { 0 };
	const int64_t run[] = { 2, 1 };
	read(&s, "runs/x");
	assert_int_equal(nr_study_commands(&s, &away, run, 2, &text), 0);
	assert_string_equal(nr_str_text(&text),
		"cd '/home/it'\\''s' && NORMA_DATA='/a b' NORMA_ISA=avx2 "
		"/opt/norma study runs/x/study.yaml --retry --run sep_bn_ln/seed-7\n"
		"cd '/home/it'\\''s' && NORMA_DATA='/a b' NORMA_ISA=avx2 "
		"/opt/norma study runs/x/study.yaml --retry --run ln/seed-0\n");
	nr_str_release(&text);
}

static bool has(const struct nr_str *s, const char *line) { return strstr(nr_str_text(s), line) != NULL; }

static void a_script_starts_each_task_with_its_run(void **state)
{
	(void)state;
	struct nr_study s;
	struct nr_str text = { 0 };
	const int64_t run[] = { 0, 3 };
	char *words[] = { (char[]){ "--partition=short" }, (char[]){ "--exclusive" } };
	struct nr_study_away a = away;
	a.sbatch = (struct nr_list){ words, 2 };
	a.at_once = 5;
	read(&s, "runs/50% \\\"x\\\"");
	assert_int_equal(nr_study_script(&s, &a, run, 2, 3, &text), 0);
	assert_true(has(&text, "#!/bin/sh\n"));
	assert_true(has(&text, "\n#SBATCH --array=0-1%5\n"));
	assert_true(has(&text, "\n#SBATCH --job-name=\"norma-50%% \\\"x\\\"\"\n"));
	assert_true(has(&text, "\n#SBATCH --output=\"/home/it's/runs/50%% \\\"x\\\"/slurm/3-%a.log\"\n"));
	assert_true(has(&text, "\n#SBATCH --partition=short\n#SBATCH --exclusive\n"));
	assert_true(has(&text, "\ncd '/home/it'\\''s' || exit\nexport NORMA_DATA='/a b'\n"));
	assert_true(has(&text, "\nset -- \\\n\tsep_bn_ln/seed-0 \\\n\tln/seed-7\nshift \"$SLURM_ARRAY_TASK_ID\"\n"));
	assert_true(has(&text, "--run \"$1\" --threads \"${SLURM_CPUS_PER_TASK:-${SLURM_CPUS_ON_NODE:-1}}\"\n"));
	nr_str_release(&text);
	a.flags = " --threads 3";
	assert_int_equal(nr_study_script(&s, &a, run, 1, 3, &text), 0);
	assert_true(has(&text, "\n#SBATCH --array=0-0%5\n") && !has(&text, "SLURM_CPUS"));
	nr_str_release(&text);
	a.flags = " --launch 'srun --mpi=pmix'";                      /* threads of each rank */
	assert_int_equal(nr_study_script(&s, &a, run, 1, 3, &text), 0);
	assert_true(has(&text, "--threads \"${SLURM_CPUS_PER_TASK:-1}\"\n"));
	nr_str_release(&text);
}

static void calls_tell_both_outputs_and_the_code(void **state)
{
	(void)state;
	struct nr_str out = { 0 }, trouble = { 0 };
	int status = -1;
	static const char script[] = "i=0; while [ $i -lt 20000 ]; do echo out; echo err >&2; i=$((i + 1)); done; exit 5";
	const char *const both[] = { "sh", "-c", script, NULL };
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_call(both, &out, &trouble, &status, &err), 0);
	assert_int_equal(status, 5);
	assert_true(out.len == 80000 && trouble.len == 80000);
	const char *const killed[] = { "sh", "-c", "kill -9 $$", NULL };
	assert_int_equal(nr_call(killed, &out, &trouble, &status, &err), 0);
	assert_int_equal(status, 128 + 9);
	const char *const none[] = { "norma-no-such-command", NULL };
	assert_int_not_equal(nr_call(none, &out, &trouble, &status, &err), 0);
	assert_int_equal(status, 127);
	assert_string_equal(err.subject, "norma-no-such-command");
	nr_str_release(&out);
	nr_str_release(&trouble);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(runs_are_found_by_folder_or_name, setup, teardown),
		cmocka_unit_test_setup_teardown(a_command_is_one_line_of_the_shell, setup, teardown),
		cmocka_unit_test_setup_teardown(a_script_starts_each_task_with_its_run, setup, teardown),
		cmocka_unit_test(calls_tell_both_outputs_and_the_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
