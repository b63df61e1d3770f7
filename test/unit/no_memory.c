/* One allocation after the other fails, in the library itself: what is made is whole, or its maker says that it failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/save.h"
#include "base/str.h"
#include "base/table.h"
#include "report/report.h"
#include "study/job.h"
#include "study/results.h"
#include "unit/sanitized.h"
#include "unit/study_conf.h"
#include "rundir.h"

#ifndef SANITIZED
#define SHOWN __attribute__((visibility("default"))) /* so that the libraries use them, too */
static int64_t left;    /* the allocation that fails, counted down; none at 0 */
static bool failed;

static bool refused(void)
{
	if (!left || --left) return false;
	failed = true;
	errno = ENOMEM;
	return true;
}

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
SHOWN void *malloc(size_t n) { return refused() ? NULL : __libc_malloc(n); }
SHOWN void *calloc(size_t n, size_t size) { return refused() ? NULL : __libc_calloc(n, size); }
SHOWN void *realloc(void *p, size_t n) { return refused() ? NULL : __libc_realloc(p, n); }
SHOWN void *aligned_alloc(size_t align, size_t n) { return refused() ? NULL : __libc_memalign(align, n); }

/* Makes the same text again and again while its first, second, ... allocation fails; NULL: it said that it could not. Each ends with a
 * success, when there are no more allocations. */
static void is_whole_or_refused(char *(*make)(void))
{
	char *want = make();
	assert_non_null(want);
	int64_t refusals = 0;
	for (int64_t n = 1;; n++) {
		failed = false;
		left = n;
		char *got = make();
		left = 0;
		if (got && strcmp(got, want)) {
			size_t i = 0;
			while (got[i] == want[i]) i++;
			fail_msg("allocation %lld: '%.200s' instead of '%.200s'", (long long)n, got + i, want + i);
		}
		free(got);
		if (!failed) break;
		refusals += !got;
	}
	assert_true(refusals > 0);
	free(want);
}

/* ---- tables and texts ---------------------------------------------------------------------------------------------------- */

static char *make_table(void (*write)(const struct nr_table *, struct nr_str *))
{
	struct nr_str s = { 0 };
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "arm", NR_LEFT);
	nr_table_column(t, "top-1", NR_RIGHT);
	for (int i = 0; i < 100; i++) nr_table_cell(t, "%0500d", i);      /* more than its first block has room for */
	write(t, &s);
	nr_table_free(t);
	return nr_str_take(&s);
}
static char *make_text(void) { return make_table(nr_table_text); }
static char *make_csv(void) { return make_table(nr_table_csv); }
static char *make_markdown(void) { return make_table(nr_table_markdown); }

static void tables_are_whole_or_fail_the_text(void **state)
{
	(void)state;
	is_whole_or_refused(make_text);
	is_whole_or_refused(make_csv);
	is_whole_or_refused(make_markdown);
}

static char *make_kept(void)
{
	struct nr_str s = { 0 };
	struct nr_arena *arena = nr_arena_make();
	nr_str_add(&s, "sep(bn,ln)");
	for (int i = 0; i < 50; i++) nr_str_printf(&s, ", %d", i);
	const char *kept = arena ? nr_str_keep(&s, arena) : NULL;
	char *copy = kept ? strdup(kept) : NULL;
	nr_str_release(&s);
	nr_arena_free(arena);
	return copy;
}

static void a_cut_text_is_not_kept(void **state)
{
	(void)state;
	is_whole_or_refused(make_kept);
}

static char *make_json(void)
{
	json_t *o = json_object(), *list = json_array();
	for (int i = 0; i < 20; i++) json_array_append_new(list, json_integer(i));
	json_object_set_new(o, "list", list);
	json_object_set_new(o, "name", json_string("sep(bn,ln)"));
	json_object_set_new(o, "value", json_real(0.5));
	char *text = nr_json_dump(o, JSON_COMPACT);
	json_decref(o);
	return text;
}

static void json_that_lacks_a_part_is_not_written(void **state)
{
	(void)state;
	is_whole_or_refused(make_json);
}

/* ---- studies ------------------------------------------------------------------------------------------------------------- */

static int parse(struct nr_study *s, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_yaml_errors errors;
	char text[512];
	snprintf(text, sizeof text, "stages: [train]\nbase: {data: mnist}\ntitle: a_b\nseeds: 2\nmetric: train.top1\n"
				    "arms: [{name: first, norm: ln}, {name: second, norm: bn}, {norm: \"sep(bn,ln)\"}]\nout: %s\n",
		at("study"));
	return nr_study_parse(s, text, strlen(text), "s.yaml", commands, arena, &errors, err);
}

static char *make_names(void)
{
	struct nr_arena *arena = nr_arena_make();
	struct nr_study s;
	struct nr_error err = { 0 };
	struct nr_str names = { 0 };
	int code = arena ? parse(&s, arena, &err) : NR_EMEMORY;
	for (int64_t i = 0; !code && i < s.arms; i++) nr_str_printf(&names, "%s in %s; ", s.arm[i].name, s.arm[i].folder);
	nr_arena_free(arena);
	char *text = nr_str_take(&names);
	if (!code) return text;
	free(text);
	return NULL;
}

static void arms_keep_their_names_or_the_study_is_not_read(void **state)
{
	(void)state;
	is_whole_or_refused(make_names);
}

static void leave_results(void)
{
	struct nr_arena *arena = nr_arena_make();
	struct nr_study s;
	struct nr_error err = { 0 };
	assert_int_equal(parse(&s, arena, &err), NR_OK);
	for (int64_t i = 0; i < s.arms * s.seeds; i++) {
		struct nr_job j;
		assert_int_equal(nr_job_make(&j, &s, i / s.seeds, i % s.seeds, 0, arena, &err), NR_OK);
		assert_int_equal(nr_folder_make(j.dir, &err), NR_OK);
		json_t *o = json_pack("{s:f}", "top1", 0.5 + 0.01 * (double)i);
		assert_int_equal(nr_result_save(&j, o, &err), NR_OK);
		json_decref(o);
		assert_int_equal(nr_mark_write(&j, NR_MARK_DONE, 10, NULL, &err), NR_OK);
	}
	nr_arena_free(arena);
}

static char *make_summary(void)
{
	static const char *const files[] = { "results.csv", "table.csv", "table.md", "table.tex", "table.json" };
	struct nr_arena *arena = nr_arena_make();
	struct nr_study s;
	struct nr_summary m;
	struct nr_error err = { 0 };
	struct nr_str all = { 0 };
	int code = arena ? parse(&s, arena, &err) : NR_EMEMORY;
	if (!code) code = nr_summary_make(&m, &s, NULL, 0, arena, &err);
	if (!code) code = nr_summary_write(&m, NULL, 0, &err);
	if (!code) nr_summary_text(&m, &all);
	nr_arena_free(arena);
	const int64_t after = left;
	left = 0;
	for (size_t i = 0; !code && i < sizeof files / sizeof *files; i++) {
		char *text = slurp(at("study/%s", files[i]), NULL);
		nr_str_add(&all, text);
		free(text);
	}
	left = after;
	char *text = nr_str_take(&all);
	if (!code) return text;
	free(text);
	return NULL;
}

static void tables_of_a_study_are_whole_or_not_written(void **state)
{
	(void)state;
	leave_results();
	is_whole_or_refused(make_summary);
}

/* ---- runs ---------------------------------------------------------------------------------------------------------------- */

static void events_are_whole_or_not_written(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	struct nr_recorder *r = begin("events/run", -1);
	int64_t written = 0, n = 0;
	do {
		failed = false;
		left = ++n;
		const int code = nr_recorder_event(r, "resume", 7, json_pack("{s:s}", "forced", "the data changed"), &err);
		left = 0;
		written += !code;
		err = (struct nr_error){ 0 };
	} while (failed);
	end(r, "done");
	assert_true(n > 5);
	assert_int_equal(event_steps("events/run", "resume").count, written);
	char *text = slurp(at("events/run/events.jsonl"), NULL);
	int64_t forced = 0;
	for (const char *p = text; (p = strstr(p, "the data changed")); p++) forced++;
	assert_int_equal(forced, written);
	free(text);
}

static char *make_report(void)
{
	struct nr_str s = { 0 };
	struct nr_error err = { 0 };
	char path[256], *folder = path;
	snprintf(path, sizeof path, "%s", at("reported/run"));
	const struct nr_report o = { .runs = { &folder, 1 }, .commands = commands, .title = "", .command = "norma report", .made = 0 };
	const int code = nr_report_page(&o, &s, &err);
	char *text = nr_str_take(&s);
	if (!code) return text;
	free(text);
	return NULL;
}

static void a_report_is_whole_or_not_made(void **state)
{
	(void)state;
	static const char *const names[] = { "loss", "samples_per_s", NULL };
	struct nr_run_info info = info_of("epochs: 3\n");
	struct nr_error err = { 0 };
	struct nr_recorder *r;
	info.columns = names;
	assert_int_equal(nr_recorder_open(&r, at("reported/run"), NULL, &info, false, 0, &err), NR_OK);
	for (int64_t i = 1; i < 5; i++) {
		const struct nr_metric m[] = { { "loss", 1.0 / (double)i }, { "samples_per_s", 100.0 } };
		assert_int_equal(nr_recorder_metrics(r, i, (double)i / 10, m, 2, &err), NR_OK);
	}
	end(r, "done");
	is_whole_or_refused(make_report);
}

static int open_root(void **state)
{
	(void)state;
	nr_json_watch_memory();
	snprintf(root, sizeof root, "%s/norma-no-memory-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	return mkdtemp(root) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_whole_or_fail_the_text),
		cmocka_unit_test(a_cut_text_is_not_kept),
		cmocka_unit_test(json_that_lacks_a_part_is_not_written),
		cmocka_unit_test(arms_keep_their_names_or_the_study_is_not_read),
		cmocka_unit_test(tables_of_a_study_are_whole_or_not_written),
		cmocka_unit_test(events_are_whole_or_not_written),
		cmocka_unit_test(a_report_is_whole_or_not_made),
	};
	return cmocka_run_group_tests(tests, open_root, clear_root);
}
#else
int main(void) { return 77; }
#endif
