/* record/recorder.c and its files: what is written, and what a resume keeps. `unit-recorder sample DIR` writes three runs for
 * test/cli/runs.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>


#include "commas.h"
#include "rundir.h"

static void a_run_leaves_every_file_and_a_row(void **state)
{
	(void)state;
	struct nr_recorder *r = begin("a/b/all", -1);
	record_to(r, 1, 10);
	end(r, "done");
	all_have("a/b/all", 10);
	assert_int_equal(event_steps("a/b/all", "tick").count, 10);
	assert_int_equal(event_steps("a/b/all", "start").count, 1);
	assert_int_equal(event_steps("a/b/all", "stop").last, 10);
	assert_int_equal(store_steps("a/b/runs.db", "all", "loss", "done").count, 10);
	assert_int_equal(store_steps("a/b/runs.db", "all", "eval_top1", "done").count, 2);
	char *csv = slurp(at("a/b/all/metrics.csv"), NULL), *config = slurp(at("a/b/all/config.yaml"), NULL);
	assert_memory_equal(csv, "step,epoch,seconds,loss,lr,eval_top1\n1,0.1,", 43);
	assert_non_null(strstr(csv, ",0.333333333,,\n"));
	assert_non_null(strstr(csv, ",0.2,,1.66666663\n"));
	assert_string_equal(config, "epochs: 3\n");
	free(csv);
	free(config);
	static const char *const keys[] = { "command", "version", "host", "cpu", "cores", "threads", "isa", "compiler", "libraries",
		"started", "kind", "pid" };
	struct nr_error e = { 0 };
	json_t *env = nr_json_load(at("a/b/all/env.json"), &e);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (!json_object_get(env, keys[i])) fail_msg("env.json lacks %s", keys[i]);
	assert_string_equal(json_string_value(json_object_get(env, "command")), "norma train \xEF\xBF\xBDx");
	json_decref(env);
}

static void refused(const char *dir, const struct nr_run_info *info, bool resume, int64_t step, const char *part)
{
	struct nr_error e = { 0 };
	struct nr_recorder *r = NULL;
	char text[2048];
	const int code = nr_recorder_open(&r, at("%s", dir), NULL, info, resume, step, &e);
	assert_true(code < 0 && code == (int)e.code);
	assert_null(r);
	if (!strstr(nr_error_text(&e, text, sizeof text), part)) fail_msg("'%s' should contain '%s'", text, part);
}

static void a_directory_is_used_for_one_run_only(void **state)
{
	(void)state;
	const struct nr_run_info info = info_of("");
	struct nr_recorder *r = begin("once", -1);
	refused("once", &info, true, 0, "another process is recording");
	record_to(r, 1, 3);
	end(r, "done");
	refused("once", &info, false, 0, "--resume");
	all_have("once", 3);
	unlink(at("once/config.yaml"));
	refused("once", &info, false, 0, "--resume");   /* there are metrics */
	refused("once", &info, true, 0, "config.yaml");
	refused("nothing", &info, true, 0, "there is no run in it");
	assert_int_not_equal(access(at("nothing"), F_OK), 0);
	refused("once/metrics.csv", &info, false, 0, "metrics.csv");
}

static void a_beginning_that_was_killed_is_begun_anew(void **state)
{
	(void)state;
	mkdir(at("early"), 0777);
	append(at("early/metrics.csv"), "step,epoch,se", 13);
	append(at("early/events.jsonl"), "{\"eve", 5);
	struct nr_recorder *r = begin("early", -1);
	record_to(r, 1, 3);
	end(r, "done");
	all_have("early", 3);
	end(begin("early2", -1), "failed");             /* before its first record */
	end(begin("early2", -1), "failed");
	assert_int_equal(event_steps("early2", "start").count, 1);
	append(at("early2/last.safetensors"), "x", 1);
	const struct nr_run_info info = info_of("");
	refused("early2", &info, false, 0, "--resume");
}

static void a_resume_cuts_everything_back(void **state)
{
	(void)state;
	struct nr_recorder *r = begin("cut", -1);
	record_to(r, 1, 20);
	end(r, "interrupted");
	append(at("cut/metrics.csv"), "21,2.1,0.5,0.0", 14);
	append(at("cut/events.jsonl"), "{\"time\":\"", 9);
	append(tb_path("cut"), "\x10\0\0", 3);
	r = begin("cut", 12);
	all_have("cut", 12);
	assert_int_equal(event_steps("cut", "tick").last, 12);
	assert_int_equal(event_steps("cut", "stop").count, 0);
	assert_int_equal(event_steps("cut", "resume").first, 12);
	assert_int_equal(event_steps("cut", "warning").count, 0);
	assert_int_equal(store_steps("runs.db", "cut", "loss", "running").last, 12);
	record_to(r, 13, 15);
	end(r, "done");
	all_have("cut", 15);
	assert_false(event_steps("cut", "tick").twice);
	assert_int_equal(store_steps("runs.db", "cut", "loss", "done").count, 15);
	end(begin("cut", 0), "done");                   /* back to the very beginning */
	all_have("cut", 0);
	assert_int_equal(store_steps("runs.db", "cut", "loss", "done").count, 0);
}

static int last_seconds(void *arg, const struct nr_csv_row *row, struct nr_error *err)
{
	(void)err;
	double *s = arg;
	assert_true(row->seconds >= *s);
	*s = row->seconds;
	return NR_OK;
}

static void seconds_go_on_and_settings_may_change(void **state)
{
	(void)state;
	struct nr_error e = { 0 };
	double seconds = 0;
	int64_t size;
	struct nr_recorder *r = begin("more", -1);
	record_to(r, 1, 2);
	usleep(120000);
	record_to(r, 3, 3);
	end(r, "done");
	const struct nr_run_info info = info_of("epochs: 5\n");
	assert_int_equal(nr_recorder_open(&r, at("more"), NULL, &info, true, 3, &e), NR_OK);
	record_to(r, 4, 4);
	end(r, "done");
	char *config = slurp(at("more/config.yaml"), NULL), *events = slurp(at("more/events.jsonl"), NULL);
	assert_string_equal(config, "epochs: 5\n");
	assert_non_null(strstr(events, "\"settings\":\"changed\""));
	free(config);
	free(events);
	FILE *f = fopen(at("more/metrics.csv"), "rb");
	assert_int_equal(nr_csv_scan(f, "x", columns, 99, last_seconds, &seconds, &size, &e), NR_OK);
	fclose(f);
	assert_true(seconds > 0.12);
}

static void lines_that_are_no_records_are_named(void **state)
{
	(void)state;
	static const struct { const char *line; size_t n; } bad[] = {
		{ "x,1,1,1,1,1\n", 12 }, { "4,1,1,1,1\n", 10 }, { "4,1,1,1,1,1,1\n", 14 }, { "4,1,1,1,a,1\n", 12 }, { "\n", 1 },
		{ "4,1,1,\0,,\n", 10 }, { "99999999999999999999,1,1,,,\n", 28 }, { "1,1,1,,,\n", 9 }, { "4 ,1,1,,,\n", 10 },
	};
	const struct nr_run_info info = info_of("");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char dir[16];
		snprintf(dir, sizeof dir, "bad%zu", i);
		struct nr_recorder *r = begin(dir, -1);
		record_to(r, 1, 3);
		end(r, "done");
		append(at("%s/metrics.csv", dir), bad[i].line, bad[i].n);
		refused(dir, &info, true, 10, "line 5");
	}
	end(begin("badly", -1), "done");
	append(at("badly/events.jsonl"), "{}\n", 3);
	refused("badly", &info, true, 10, "line 3 is not an event");
	static const char *const others[] = { "loss", "lr", NULL };
	struct nr_run_info other = info;
	other.columns = others;
	end(begin("badcolumns", -1), "done");
	refused("badcolumns", &other, true, 10, "columns");
	static const char *const twice[] = { "loss", "loss", NULL };
	other.columns = twice;
	refused("badnames", &other, false, 0, "a duplicate");
}

static void damage_in_a_tensorboard_file_is_cut_off_with_a_warning(void **state)
{
	(void)state;
	struct nr_recorder *r = begin("tb", -1);
	record_to(r, 1, 5);
	end(r, "done");
	append(tb_path("tb"), "garbage garbage garbage", 23);
	end(begin("tb", 5), "done");
	all_have("tb", 5);
	assert_int_equal(event_steps("tb", "warning").count, 1);
}

static void wrong_names_and_steps_are_refused_and_leave_nothing(void **state)
{
	(void)state;
	struct nr_error e = { 0 };
	struct nr_recorder *r = begin("names", -1);
	const struct nr_metric wrong[] = { { "loss", 1 }, { "eval_topl", 1 } };
	record_to(r, 1, 5);
	assert_int_equal(nr_recorder_metrics(r, 6, 0, wrong, 2, &e), NR_ENAME);
	assert_non_null(strstr(e.hint, "eval_top1"));
	e = (struct nr_error){ 0 };
	assert_int_equal(record(r, 4, &e), NR_EVALUE);
	record_to(r, 6, 6);
	end(r, "done");
	all_have("names", 6);
}

static void a_step_may_have_several_records(void **state)
{
	(void)state;
	struct nr_error e = { 0 };
	struct nr_recorder *r = begin("several", -1);
	const struct nr_metric m[] = { { "loss", 7 }, { "eval_top1", 8 } };
	record_to(r, 1, 4);
	assert_int_equal(nr_recorder_metrics(r, 4, 0, m, 2, &e), NR_OK);
	end(r, "done");
	end(begin("several", 4), "done");
	assert_int_equal(csv_steps("several").count, 5);
	assert_int_equal(store_steps("runs.db", "several", "loss", "done").count, 4);
	assert_int_equal(store_steps("runs.db", "several", "eval_top1", "done").count, 1);
}

static void numbers_that_are_not_finite_come_back(void **state)
{
	(void)state;
	struct nr_error e = { 0 };
	struct nr_recorder *r = begin("nan", -1);
	const struct nr_metric m[] = { { "loss", (double)NAN }, { "lr", (double)INFINITY } };
	assert_int_equal(nr_recorder_metrics(r, 1, 0, m, 2, &e), NR_OK);
	json_t *more = json_object();
	json_object_set_new(more, "loss", nr_record_number((double)NAN));
	assert_int_equal(nr_recorder_event(r, "diverged", 1, more, &e), NR_OK);
	end(r, "diverged");
	r = begin("nan", 1);
	end(r, "diverged");
	char *csv = slurp(at("nan/metrics.csv"), NULL), *events = slurp(at("nan/events.jsonl"), NULL);
	assert_non_null(strstr(csv, ",nan,inf,\n"));
	assert_non_null(strstr(events, "\"loss\":\"nan\""));
	assert_non_null(strstr(events, "\"nll\":\"nan\""));
	free(csv);
	free(events);
	assert_int_equal(store_steps("runs.db", "nan", "loss", "diverged").count, 1);
	assert_int_equal(csv_steps("nan").count, 1);
}

static void the_locale_does_not_matter(void **state)
{
	(void)state;
	if (!commas_begin()) skip();
	struct nr_recorder *r = begin("locale", -1);
	record_to(r, 1, 3);
	end(r, "done");
	end(begin("locale", 3), "done");
	commas_end();
	all_have("locale", 3);
}

/* ---- samples for test/cli/runs.sh ---------------------------------------------------------------------------------------- */

static int samples(const char *dir)
{
	static const struct { const char *name, *kind, *status; int64_t steps; double loss; } runs[] = {
		{ "vit-ln-0", "train", "done", 300, 0.4 },
		{ "vit-bn-0", "train", "interrupted", 120, 0.6 },
		{ "vit-dtn-0", "finetune", NULL, 200, 0.3 },
	};
	static const char *const names[] = { "train_loss", "lr", "eval_loss", "eval_top1", NULL };
	snprintf(root, sizeof root, "%s", dir);
	for (int i = 0; i < 3; i++) {
		struct nr_error e = { 0 };
		struct nr_recorder *r;
		json_t *env = json_pack("{s:i, s:s, s:s}", "seed", i, "model", "vit_tiny", "run", "line one\nline two");
		const struct nr_run_info info = { .command = "norma train --data x\x1b[31m", .kind = runs[i].kind,
			.config = "epochs: 3\nlr: 0.1\n", .columns = names, .env = env };
		if (nr_recorder_open(&r, at("%s", runs[i].name), NULL, &info, false, 0, &e)) return 1;
		json_decref(env);
		for (int64_t s = 10; s <= runs[i].steps; s += 10) {
			const double x = (double)s / 300, loss = runs[i].loss + 2 * exp(-4 * x);
			const struct nr_metric m[] = { { "train_loss", loss }, { "lr", 0.1 * (1 - x) }, { "eval_loss", loss + 0.1 * x * x },
				{ "eval_top1", 1 - loss / 4 } };
			if (nr_recorder_metrics(r, s, 3 * x, m, s % 50 ? 2 : 4, &e)) return 2;
		}
		const struct nr_metric best[] = { { "best_top1", 0.9 } };
		if (nr_recorder_sync(r, &e)) return 3;
		if (runs[i].status && nr_recorder_close(r, runs[i].status, best, 1, &e)) return 4;
	}
	return 0;       /* the last one is left as a killed process leaves it */
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "sample")) _exit(samples(argv[2]));     /* at once, as if killed: the last run is open */
	if (make_root()) return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_leaves_every_file_and_a_row),
		cmocka_unit_test(a_directory_is_used_for_one_run_only),
		cmocka_unit_test(a_beginning_that_was_killed_is_begun_anew),
		cmocka_unit_test(a_resume_cuts_everything_back),
		cmocka_unit_test(seconds_go_on_and_settings_may_change),
		cmocka_unit_test(lines_that_are_no_records_are_named),
		cmocka_unit_test(damage_in_a_tensorboard_file_is_cut_off_with_a_warning),
		cmocka_unit_test(wrong_names_and_steps_are_refused_and_leave_nothing),
		cmocka_unit_test(a_step_may_have_several_records),
		cmocka_unit_test(numbers_that_are_not_finite_come_back),
		cmocka_unit_test(the_locale_does_not_matter),
	};
	return cmocka_run_group_tests(tests, NULL, clear_root);
}
