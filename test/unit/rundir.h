/* Run directories for tests: recording, and reading back what is there. Included after cmocka.h. */
#ifndef NR_TEST_RUNDIR_H
#define NR_TEST_RUNDIR_H

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/recorder.h"
#include "record/recorder_csv.h"
#include "record/rundb.h"
#include "record/tensorboard.h"

static const char *const columns[] = { "loss", "lr", "eval_top1", NULL };
static char root[64];

static inline struct nr_run_info info_of(const char *config)
{
	return (struct nr_run_info){ .command = "norma train \xFFx", .kind = "train", .config = config, .columns = columns,
		.db_wait = 0.2 };
}

/* ---- reading back ------------------------------------------------------------------------------------------------------- */

static inline const char *at(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline const char *at(const char *fmt, ...)
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

static inline char *slurp(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	if (!f) fail_msg("cannot read %s", path);
	char *text = calloc(1, 4 << 20);
	const size_t n = fread(text, 1, (4 << 20) - 1, f);
	if (size) *size = n;
	fclose(f);
	return text;
}

static inline void append(const char *path, const char *text, size_t n)
{
	FILE *f = fopen(path, "ab");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
}

struct steps { int64_t first, last, count; bool twice; };

static inline void note(struct steps *s, int64_t step)
{
	if (!s->count) s->first = step;
	else s->twice |= step <= s->last;
	s->last = step;
	s->count++;
}

static inline int note_row(void *arg, const struct nr_csv_row *row, struct nr_error *err)
{
	(void)err;
	note(arg, row->step);
	return NR_OK;
}

/* Every line is whole. */
static inline struct steps csv_steps(const char *dir)
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

static inline struct steps event_steps(const char *dir, const char *what)
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

static inline const char *tb_path(const char *dir)
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
static inline struct steps tb_steps(const char *dir, int64_t most)
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

static inline struct steps store_steps(const char *store, const char *dir, const char *metric, const char *status)
{
	struct steps s = { 0 };
	struct nr_error e = { 0 };
	struct nr_rundb *db;
	struct nr_arena *a = nr_arena_make();
	struct nr_run *runs;
	struct nr_curve c;
	int64_t n, found = 0;
	assert_int_equal(nr_rundb_open(&db, at("%s", store), 1, false, &e), NR_OK);
	assert_int_equal(nr_rundb_runs(db, a, &runs, &n, &e), NR_OK);
	for (int64_t i = 0; i < n; i++) {
		if (strcmp(runs[i].dir, dir)) continue;
		found++;
		assert_string_equal(runs[i].status, status);
		assert_int_equal(nr_rundb_curve(db, runs[i].id, metric, a, &c, &e), NR_OK);
		for (int64_t k = 0; k < c.count; k++) note(&s, c.step[k]);
	}
	assert_int_equal(found, 1);
	nr_rundb_close(db);
	nr_arena_free(a);
	return s;
}

static inline void all_have(const char *dir, int64_t last)
{
	const struct steps c = csv_steps(dir), t = tb_steps(dir, last + 5);
	assert_false(c.twice);
	assert_int_equal(c.count, last);
	assert_int_equal(c.last, last);
	assert_int_equal(t.count, last);
	assert_int_equal(t.last, last);
	assert_true(last == 0 || c.first == 1);
}

static inline int record(struct nr_recorder *r, int64_t step, struct nr_error *e)
{
	const struct nr_metric m[] = { { "loss", 1.0 / (double)step }, { "eval_top1", (float)step / 3 } };
	return nr_recorder_metrics(r, step, (double)step / 10, m, step % 5 ? 1 : 2, e);
}

static inline struct nr_recorder *begin(const char *dir, int64_t resume_at)
{
	struct nr_error e = { 0 };
	struct nr_recorder *r = NULL;
	char text[1024];
	const struct nr_run_info info = info_of("epochs: 3\n");
	if (nr_recorder_open(&r, at("%s", dir), NULL, &info, resume_at >= 0, resume_at < 0 ? 0 : resume_at, &e))
		fail_msg("%s", nr_error_text(&e, text, sizeof text));
	return r;
}

static inline void record_to(struct nr_recorder *r, int64_t from, int64_t to)
{
	struct nr_error e = { 0 };
	for (int64_t i = from; i <= to; i++) {
		assert_int_equal(record(r, i, &e), NR_OK);
		assert_int_equal(nr_recorder_event(r, "tick", i, NULL, &e), NR_OK);
	}
}

static inline void end(struct nr_recorder *r, const char *status)
{
	struct nr_error e = { 0 };
	const struct nr_metric m[] = { { "top1", 0.9 }, { "nll", (double)NAN } };
	assert_int_equal(nr_recorder_close(r, status, m, 2, &e), NR_OK);
}

static inline int clear_root(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", root);
	return system(command);
}

static inline int make_root(void)
{
	snprintf(root, sizeof root, "/tmp/norma-recorder-XXXXXX");
	return mkdtemp(root) ? 0 : 1;
}

#endif
