/* train/recorder.c and its files: what is written, what a resume keeps, and what kills, full disks, locks and damage leave.
 * `unit-recorder sample DIR` writes three runs for test/cli/runs.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/save.h"
#include "base/str.h"
#include "train/recorder.h"
#include "train/recorder_csv.h"
#include "train/runfile.h"
#include "train/runstore.h"
#include "train/tensorboard.h"

static const char *const columns[] = { "loss", "lr", "eval_top1", NULL };
static char root[64];

static struct nr_run_info info_of(const char *config)
{
	return (struct nr_run_info){ .command = "norma train \xFFx", .kind = "train", .config = config, .columns = columns, .store_wait = 0.2 };
}

/* ---- reading back ------------------------------------------------------------------------------------------------------- */

static const char *at(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static const char *at(const char *fmt, ...)
{
	static char buf[8][256];
	static int next;
	char *b = buf[next++ % 8];
	const int n = snprintf(b, 256, "%s/", root);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(b + n, 256 - (size_t)n, fmt, ap);
	va_end(ap);
	return b;
}

static char *slurp(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	if (!f) fail_msg("cannot read %s", path);
	char *text = calloc(1, 4 << 20);
	const size_t n = fread(text, 1, (4 << 20) - 1, f);
	if (size) *size = n;
	fclose(f);
	return text;
}

static void append(const char *path, const char *text, size_t n)
{
	FILE *f = fopen(path, "ab");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
}

struct steps { int64_t first, last, count; bool twice; };

static void note(struct steps *s, int64_t step)
{
	if (!s->count) s->first = step;
	else s->twice |= step <= s->last;
	s->last = step;
	s->count++;
}

static int note_row(void *arg, const struct nr_csv_row *row, struct nr_error *err)
{
	(void)err;
	note(arg, row->step);
	return NR_OK;
}

/* Every line is whole. */
static struct steps csv_steps(const char *dir)
{
	struct steps s = { 0 };
	struct nr_error e = { 0 };
	int64_t size;
	struct stat st;
	const char *path = at("%s/metrics.csv", dir);
	FILE *f = fopen(path, "rb");
	assert_int_equal(nr_csv_scan(f, path, columns, INT64_MAX, note_row, &s, &size, &e), NR_OK);
	fclose(f);
	stat(path, &st);
	assert_int_equal(size, st.st_size);
	return s;
}

static struct steps event_steps(const char *dir, const char *what)
{
	struct steps s = { 0 };
	char *text = slurp(at("%s/events.jsonl", dir), NULL);
	for (char *line = text, *end; *line; line = end + 1) {
		struct nr_error e = { 0 };
		end = strchr(line, '\n');
		assert_non_null(end);
		json_t *o = nr_json_parse(line, (size_t)(end - line), "events", &e);
		assert_non_null(o);
		assert_true(json_is_string(json_object_get(o, "time")));
		if (!strcmp(json_string_value(json_object_get(o, "event")), what)) note(&s, json_integer_value(json_object_get(o, "step")));
		json_decref(o);
	}
	free(text);
	return s;
}

static const char *tb_path(const char *dir)
{
	DIR *d = opendir(at("%s/tensorboard", dir));
	const char *found = NULL;
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.') found = at("%s/tensorboard/%s", dir, e->d_name);
	closedir(d);
	assert_non_null(found);
	return found;
}

/* Records, counted by how far a scan for each step gets. */
static struct steps tb_steps(const char *dir, int64_t most)
{
	struct steps s = { 0 };
	int64_t size, before = -1, all;
	bool damaged;
	struct stat st;
	const char *path = tb_path(dir);
	FILE *f = fopen(path, "rb");
	assert_int_equal(nr_tb_scan(f, path, INT64_MAX, &all, &damaged, NULL), NR_OK);
	stat(path, &st);
	assert_int_equal(all, st.st_size);
	assert_false(damaged);
	for (int64_t step = 0; step <= most; step++) {
		rewind(f);
		nr_tb_scan(f, path, step, &size, &damaged, NULL);
		if (before >= 0 && size > before) note(&s, step);
		before = size;
	}
	fclose(f);
	assert_int_equal(before, all);
	return s;
}

static struct steps store_steps(const char *store, const char *dir, const char *metric, const char *status)
{
	struct steps s = { 0 };
	struct nr_error e = { 0 };
	struct nr_runstore *db;
	struct nr_arena *a = nr_arena_make();
	struct nr_run *runs;
	struct nr_curve c;
	int64_t n, found = 0;
	assert_int_equal(nr_runstore_open(&db, at("%s", store), 1, false, &e), NR_OK);
	assert_int_equal(nr_runstore_runs(db, a, &runs, &n, &e), NR_OK);
	for (int64_t i = 0; i < n; i++) {
		if (strcmp(runs[i].dir, dir)) continue;
		found++;
		assert_string_equal(runs[i].status, status);
		assert_int_equal(nr_runstore_curve(db, runs[i].id, metric, a, &c, &e), NR_OK);
		for (int64_t k = 0; k < c.count; k++) note(&s, c.step[k]);
	}
	assert_int_equal(found, 1);
	nr_runstore_close(db);
	nr_arena_free(a);
	return s;
}

static void all_have(const char *dir, int64_t last)
{
	const struct steps c = csv_steps(dir), t = tb_steps(dir, last + 5);
	assert_false(c.twice);
	assert_int_equal(c.count, last);
	assert_int_equal(c.last, last);
	assert_int_equal(t.count, last);
	assert_int_equal(t.last, last);
	assert_true(last == 0 || c.first == 1);
}

static int record(struct nr_recorder *r, int64_t step, struct nr_error *e)
{
	const struct nr_metric m[] = { { "loss", 1.0 / (double)step }, { "eval_top1", (float)step / 3 } };
	return nr_recorder_metrics(r, step, (double)step / 10, m, step % 5 ? 1 : 2, e);
}

static struct nr_recorder *begin(const char *dir, int64_t resume_at)
{
	struct nr_error e = { 0 };
	struct nr_recorder *r = NULL;
	char text[1024];
	const struct nr_run_info info = info_of("epochs: 3\n");
	if (nr_recorder_open(&r, at("%s", dir), NULL, &info, resume_at >= 0, resume_at < 0 ? 0 : resume_at, &e))
		fail_msg("%s", nr_error_text(&e, text, sizeof text));
	return r;
}

static void record_to(struct nr_recorder *r, int64_t from, int64_t to)
{
	struct nr_error e = { 0 };
	for (int64_t i = from; i <= to; i++) {
		assert_int_equal(record(r, i, &e), NR_OK);
		assert_int_equal(nr_recorder_event(r, "tick", i, NULL, &e), NR_OK);
	}
}

static void end(struct nr_recorder *r, const char *status)
{
	struct nr_error e = { 0 };
	const struct nr_metric m[] = { { "top1", 0.9 }, { "nll", (double)NAN } };
	assert_int_equal(nr_recorder_close(r, status, m, 2, &e), NR_OK);
}

/* ---- the tests ----------------------------------------------------------------------------------------------------------- */

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
	refused("nothing", &info, true, 0, "holds no run");
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
	refused("badly", &info, true, 10, "line 3 is no event");
	static const char *const others[] = { "loss", "lr", NULL };
	struct nr_run_info other = info;
	other.columns = others;
	end(begin("badcolumns", -1), "done");
	refused("badcolumns", &other, true, 10, "columns");
	static const char *const twice[] = { "loss", "loss", NULL };
	other.columns = twice;
	refused("badnames", &other, false, 0, "there twice");
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
	static const char *const commas[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "C.UTF-8" };
	for (size_t i = 0; i < 4 && !setlocale(LC_ALL, commas[i]); i++) {}
	struct nr_recorder *r = begin("locale", -1);
	record_to(r, 1, 3);
	end(r, "done");
	end(begin("locale", 3), "done");
	setlocale(LC_ALL, "C");
	all_have("locale", 3);
}

/* ---- the store ----------------------------------------------------------------------------------------------------------- */

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
	try_store("folder.db", "unable to open");
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
	info.store_wait = 30;
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
	const struct steps c = csv_steps("killed"), t = event_steps("killed", "tick"), s = store_steps("killed.db", "killed", "loss", "done");
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
		if (record(r, *steps, &e) || nr_recorder_event(r, "tick", *steps, NULL, &e) || (*steps % 50 == 0 && nr_recorder_sync(r, &e))) break;
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

/* ---- samples for test/cli/runs.sh ---------------------------------------------------------------------------------------- */

static int samples(const char *dir)
{
	static const struct { const char *name, *kind, *status; int64_t steps; double loss; } runs[] = {
		{ "vit-ln-0", "train", "done", 300, 0.4 }, { "vit-bn-0", "train", "interrupted", 120, 0.6 }, { "vit-dtn-0", "finetune", NULL, 200, 0.3 },
	};
	static const char *const names[] = { "train_loss", "lr", "eval_loss", "eval_top1", NULL };
	snprintf(root, sizeof root, "%s", dir);
	for (int i = 0; i < 3; i++) {
		struct nr_error e = { 0 };
		struct nr_recorder *r;
		json_t *env = json_pack("{s:i, s:s, s:s}", "seed", i, "model", "vit_tiny", "run", "line one\nline two");
		const struct nr_run_info info = { .command = "norma train --data x\x1b[31m", .kind = runs[i].kind, .config = "epochs: 3\nlr: 0.1\n",
			.columns = names, .env = env };
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

static int clear_root(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", root);
	return system(command);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "sample")) return samples(argv[2]);
	snprintf(root, sizeof root, "/tmp/norma-recorder-XXXXXX");
	if (!mkdtemp(root)) return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_leaves_every_file_and_a_row),
		cmocka_unit_test(a_directory_is_used_for_one_run_only),
		cmocka_unit_test(a_beginning_that_was_killed_is_begun_anew),
		cmocka_unit_test(a_resume_cuts_everything_back),
		cmocka_unit_test(seconds_go_on_and_settings_may_change),
		cmocka_unit_test(lines_that_are_no_records_are_named),
		cmocka_unit_test(damage_in_a_tensorboard_file_is_cut_off_with_a_warning),
		cmocka_unit_test(wrong_names_and_steps_are_refused_and_leave_nothing),
		cmocka_unit_test(numbers_that_are_not_finite_come_back),
		cmocka_unit_test(the_locale_does_not_matter),
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
