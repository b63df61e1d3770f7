/* record/recorder.c in trouble: locked, damaged and shared stores, kills at random moments, full disks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "base/save.h"
#include "rundir.h"

static void a_locked_store_is_given_up_with_one_warning_and_filled_at_the_end(void **state)
{
	(void)state;
	struct nr_error e = { 0 };
	sqlite3 *db;
	struct nr_recorder *r = begin("lock/run", -1);
	record_to(r, 1, 3);
	assert_int_equal(nr_recorder_sync(r, &e), NR_OK);
	assert_int_equal(sqlite3_open(at("lock/runs.db"), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
	for (int i = 0; i < 3; i++) {
		record_to(r, 4 + i, 4 + i);
		assert_int_equal(nr_recorder_sync(r, &e), NR_OK);
	}
	assert_int_equal(event_steps("lock/run", "warning").count, 1);
	assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	end(r, "done");
	all_have("lock/run", 6);
	assert_int_equal(store_steps("lock/runs.db", "run", "loss", "done").count, 6);
	assert_int_equal(event_steps("lock/run", "warning").count, 1);
}

static void try_store(const char *name, const char *expect)
{
	struct nr_error e = { 0 };
	struct nr_recorder *r = NULL;
	const struct nr_run_info info = info_of("");
	char dir[64];
	snprintf(dir, sizeof dir, "with-%s", name);
	assert_int_equal(nr_recorder_open(&r, at("%s", dir), at("%s", name), &info, false, 0, &e), NR_OK);
	record_to(r, 1, 4);
	assert_int_equal(nr_recorder_sync(r, &e), NR_OK);
	end(r, "done");
	all_have(dir, 4);
	assert_int_equal(event_steps(dir, "warning").count, 1);
	assert_int_equal(event_steps(dir, "stop").count, 1);
	char *events = slurp(at("%s/events.jsonl", dir), NULL);
	if (!strstr(events, expect)) fail_msg("'%s' should contain '%s'", events, expect);
	free(events);
}

static void a_damaged_store_does_not_stop_a_run(void **state)
{
	(void)state;
	sqlite3 *db;
	append(at("garbage.db"), "this is no database, but it is long enough to look at................................", 84);
	try_store("garbage.db", "not a database");
	char *text = slurp(at("garbage.db"), NULL);
	assert_memory_equal(text, "this is no database", 19);
	free(text);
	mkdir(at("folder.db"), 0777);
	try_store("folder.db", "it is not a regular file");
	assert_int_equal(sqlite3_open(at("other.db"), &db), SQLITE_OK);
	sqlite3_exec(db, "CREATE TABLE t(x)", NULL, NULL, NULL);
	sqlite3_close(db);
	try_store("other.db", "another program");
	assert_int_equal(sqlite3_open(at("newer.db"), &db), SQLITE_OK);
	sqlite3_exec(db, "PRAGMA user_version=7", NULL, NULL, NULL);
	sqlite3_close(db);
	try_store("newer.db", "version 7");
}

static void a_store_that_is_overwritten_while_in_use_does_not_stop_a_run(void **state)
{
	(void)state;
	struct nr_error e = { 0 };
	struct nr_recorder *r = begin("smash/run", -1);
	record_to(r, 1, 3);
	assert_int_equal(nr_recorder_sync(r, &e), NR_OK);
	FILE *f = fopen(at("smash/runs.db"), "r+b");
	for (int i = 0; i < 65536; i++) fputc(0xA5, f);
	fclose(f);
	f = fopen(at("smash/runs.db-wal"), "wb");
	if (f) fclose(f);
	record_to(r, 4, 6);
	assert_int_equal(nr_recorder_sync(r, &e), NR_OK);
	end(r, "done");
	all_have("smash/run", 6);
	assert_true(event_steps("smash/run", "warning").count <= 1);
}

/* Runs fn in a child; its exit code. */
static int in_child(int (*fn)(int), int arg)
{
	const pid_t pid = fork();
	if (!pid) _exit(fn(arg));
	int status = -1;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int busy_run(int i)
{
	struct nr_error e = { 0 };
	struct nr_recorder *r;
	struct nr_run_info info = info_of("");
	char dir[32];
	info.db_wait = 30;
	snprintf(dir, sizeof dir, "study/v%d", i);
	if (nr_recorder_open(&r, at("%s", dir), at("study.db"), &info, false, 0, &e)) return 1;
	for (int64_t s = 1; s <= 60; s++)
		if (record(r, s, &e) || nr_recorder_sync(r, &e)) return 2;
	return nr_recorder_close(r, "done", NULL, 0, &e) ? 3 : 0;
}

static void several_runs_write_one_store_at_once(void **state)
{
	(void)state;
	pid_t pid[4];
	for (int i = 0; i < 4; i++) {
		pid[i] = fork();
		if (!pid[i]) _exit(busy_run(i));
	}
	for (int i = 0; i < 4; i++) {
		int status;
		char dir[32];
		waitpid(pid[i], &status, 0);
		assert_int_equal(status, 0);
		snprintf(dir, sizeof dir, "study/v%d", i);
		assert_int_equal(event_steps(dir, "warning").count, 0);
		assert_int_equal(store_steps("study.db", dir, "loss", "done").count, 60);
	}
}

/* ---- kills and full disks ---------------------------------------------------------------------------------------------- */

enum { KILLS = 25, LAST = 4000 };

static int64_t checkpoint(const char *path)
{
	FILE *f = fopen(path, "rb");
	long long step = 0;
	if (f && fscanf(f, "%lld", &step) != 1) step = 0;
	if (f) fclose(f);
	return step;
}

/* A training: records, and now and then a checkpoint. */
static int train(int sessions)
{
	struct nr_error e = { 0 };
	struct nr_recorder *r;
	const struct nr_run_info info = info_of("");
	const bool resume = access(at("killed/config.yaml"), F_OK) == 0;
	const int64_t from = checkpoint(at("checkpoint"));
	(void)sessions;
	if (nr_recorder_open(&r, at("killed"), at("killed.db"), &info, resume, from, &e)) return 1;
	for (int64_t s = from + 1; s <= LAST; s++) {
		if (record(r, s, &e) || nr_recorder_event(r, "tick", s, NULL, &e)) return 2;
		if (s % 37) continue;
		char text[32];
		const int n = snprintf(text, sizeof text, "%lld", (long long)s);
		if (nr_recorder_sync(r, &e) || nr_save_file(at("checkpoint"), text, (size_t)n, &e)) return 3;
	}
	return nr_recorder_close(r, "done", NULL, 0, &e) ? 4 : 0;
}

static void kills_at_random_moments_leave_no_step_twice(void **state)
{
	(void)state;
	const struct nr_rng rng = nr_rng_make((uint64_t)getpid(), 5, 0);
	int killed = 0;
	for (int i = 0; i < KILLS; i++) {
		const pid_t pid = fork();
		if (!pid) _exit(train(i));
		usleep((useconds_t)nr_rng_below(rng, (uint64_t)i, 40000));
		kill(pid, SIGKILL);
		int status;
		waitpid(pid, &status, 0);
		killed += WIFSIGNALED(status);
		if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
	}
	assert_true(killed > 0);
	assert_int_equal(in_child(train, 0), 0);
	const struct steps c = csv_steps("killed"), t = event_steps("killed", "tick");
	const struct steps s = store_steps("killed.db", "killed", "loss", "done");
	assert_false(c.twice || t.twice || s.twice);
	assert_int_equal(c.count, LAST);
	assert_int_equal(t.count, LAST);
	assert_int_equal(s.count, LAST);
	assert_int_equal(event_steps("killed", "warning").count, 0);
	int64_t size;
	bool damaged;
	FILE *f = fopen(tb_path("killed"), "rb");
	assert_int_equal(nr_tb_scan(f, "x", INT64_MAX, &size, &damaged, NULL), NR_OK);
	fclose(f);
	assert_false(damaged);
	/* version record of 40 bytes; records differ by the bytes of their step and by the second metric */
	int64_t want = 40;
	for (int64_t i = 1; i <= LAST; i++) want += 16 + 9 + (i < 128 ? 2 : 3) + 2 + 13 + (i % 5 ? 0 : 18);
	assert_int_equal(size, want);
}

/* Writes until something fails; the error must name a file of the run. 0: it did. */
static int until_full(struct nr_recorder *r, int64_t *steps)
{
	struct nr_error e = { 0 };
	for (*steps = 1; *steps < 100000; ++*steps)
		if (record(r, *steps, &e) || nr_recorder_event(r, "tick", *steps, NULL, &e) ||
			(*steps % 50 == 0 && nr_recorder_sync(r, &e)))
			break;
	const bool named = strstr(e.subject, "metrics.csv") || strstr(e.subject, "events.jsonl") || strstr(e.subject, "tfevents");
	return e.code == NR_EIO && named && *e.hint ? 0 : 1;
}

static int with_file_limit(int arg)
{
	(void)arg;
	int64_t steps;
	signal(SIGXFSZ, SIG_IGN);
	struct nr_recorder *r = begin("full/run", -1);
	const struct rlimit limit = { 10007, 10007 };
	setrlimit(RLIMIT_FSIZE, &limit);
	if (until_full(r, &steps)) return 1;
	return nr_recorder_close(r, "failed", NULL, 0, NULL) == NR_EIO ? 0 : 2;
}

static void a_full_disk_is_an_error_that_names_the_file_and_leaves_whole_records(void **state)
{
	(void)state;
	assert_int_equal(in_child(with_file_limit, 0), 0);
	const struct steps c = csv_steps("full/run");
	assert_true(c.count > 50 && !c.twice && c.first == 1 && c.last == c.count);
	assert_true(event_steps("full/run", "tick").count > 50);
	tb_steps("full/run", c.last + 1);
	struct nr_recorder *r = begin("full/run", 50);
	record_to(r, 51, 60);
	end(r, "done");
	all_have("full/run", 60);
}

static void a_small_file_system_that_fills_up_leaves_whole_records(void **state)
{
	(void)state;
	mkdir(at("small"), 0777);
	if (mount("tmpfs", at("small"), "tmpfs", 0, "size=400k")) {
		print_message("[   NOTE   ] no right to mount: skipped\n");
		skip();
	}
	int64_t steps;
	struct nr_recorder *r = begin("small/run", -1);
	const int wrong = until_full(r, &steps);
	const int code = nr_recorder_close(r, "failed", NULL, 0, NULL);
	const struct steps c = csv_steps("small/run"), t = event_steps("small/run", "tick");
	umount2(at("small"), MNT_DETACH);
	assert_int_equal(wrong, 0);
	(void)code;
	assert_true(c.count >= steps - 1 && !c.twice && c.last == c.count && t.count >= steps - 1);
}

int main(void)
{
	if (make_root()) return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_locked_store_is_given_up_with_one_warning_and_filled_at_the_end),
		cmocka_unit_test(a_damaged_store_does_not_stop_a_run),
		cmocka_unit_test(a_store_that_is_overwritten_while_in_use_does_not_stop_a_run),
		cmocka_unit_test(several_runs_write_one_store_at_once),
		cmocka_unit_test(kills_at_random_moments_leave_no_step_twice),
		cmocka_unit_test(a_full_disk_is_an_error_that_names_the_file_and_leaves_whole_records),
		cmocka_unit_test(a_small_file_system_that_fills_up_leaves_whole_records),
	};
	return cmocka_run_group_tests(tests, NULL, clear_root);
}
