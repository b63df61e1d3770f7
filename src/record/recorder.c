/* Recording: see recorder.h. */
#include "record/recorder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "record/recorder_env.h"
#include "record/recorder_run.h"
#include "record/tensorboard.h"

enum { MAX_PENDING = 1 << 16 };
static const double FLUSH_SECONDS = 1, LAST_WAIT = 1;

static double seconds_of(const struct nr_recorder *r) { return r->before + nr_clock() - r->began; }

static double wall(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the database -------------------------------------------------------------------------------------------------------- */

void nr_recorder_count(struct nr_recorder *r, const struct nr_csv_row *row)
{
	for (int i = 0; i < r->count; i++)
		if (row->cell[i].given && r->column_step[i] < row->step) r->column_step[i] = row->step, r->values++;
	r->step = row->step;
}

static int fill(void *arg, const struct nr_csv_row *row, struct nr_error *err)
{
	struct nr_recorder *r = arg;
	int code = NR_OK;
	for (int i = 0; i < r->count && !code; i++)
		if (row->cell[i].given)
			code = nr_rundb_metric(r->db, r->columns[i], row->step, row->epoch, row->seconds, row->cell[i].value, err);
	return code;
}

static int fill_from_csv(struct nr_recorder *r, struct nr_error *err)
{
	int64_t size;
	FILE *f = nr_file_stream(r->csv.path, err);
	if (!f) return NR_EIO;
	const int code = nr_csv_scan(f, r->csv.path, r->columns, INT64_MAX, fill, r, &size, err);
	fclose(f);
	return code;
}

int nr_recorder_attach(struct nr_recorder *r, bool resume, double wait, struct nr_error *err)
{
	int64_t kept = 0;
	r->n_pending = 0;
	r->flushed = nr_clock();
	int code = nr_rundb_open(&r->db, r->db_path, wait, true, err);
	if (!code) code = nr_rundb_begin(r->db, err);
	if (!code) code = nr_rundb_run(r->db, &r->run, resume ? r->step : -1, &kept, err);
	if (!code && kept != r->values) {       /* it was locked or damaged meanwhile, or is a new one */
		code = nr_rundb_forget(r->db, err);
		if (!code) code = fill_from_csv(r, err);
	}
	if (!code) code = nr_rundb_state(r->db, r->run.status, 0, r->step, r->before, err);
	if (!code) code = nr_rundb_commit(r->db, err);
	if (!code) return NR_OK;
	nr_rundb_close(r->db);
	r->db = NULL;
	return code;
}

int nr_recorder_lose(struct nr_recorder *r, const struct nr_error *why, struct nr_error *err)
{
	char text[1024];
	nr_rundb_close(r->db);
	r->db = NULL;
	r->n_pending = 0;
	if (r->warned) return NR_OK;
	r->warned = true;
	json_t *more = json_object();
	json_object_set_new(more, "text", nr_record_text(nr_error_text(why, text, sizeof text)));
	json_object_set_new(more, "effect", json_string("the run continues without the run database; its files have "
		"everything"));
	return nr_recorder_event(r, "warning", r->step, more, err);
}

static int send(struct nr_recorder *r, struct nr_error *err)
{
	int code = nr_rundb_begin(r->db, err);
	for (int64_t i = 0; i < r->n_pending && !code; i++) {
		const struct nr_pending *p = &r->pending[i];
		code = nr_rundb_metric(r->db, r->columns[p->column], p->step, p->epoch, p->seconds, p->value, err);
	}
	if (!code) code = nr_rundb_state(r->db, "running", 0, r->step, seconds_of(r), err);
	return code ? code : nr_rundb_commit(r->db, err);
}

static int flush(struct nr_recorder *r, struct nr_error *err)
{
	struct nr_error why = { 0 };
	if (!r->db || !r->n_pending) return NR_OK;
	if (send(r, &why)) return nr_recorder_lose(r, &why, err);
	r->n_pending = 0;
	r->flushed = nr_clock();
	return NR_OK;
}

/* Out of memory: the database is given up, the files go on. */
static int keep(struct nr_recorder *r, struct nr_pending p, struct nr_error *err)
{
	if (r->n_pending == r->room) {
		const int64_t room = r->room ? 2 * r->room : 256;
		struct nr_pending *grown = realloc(r->pending, (size_t)room * sizeof *grown);
		if (!grown) {
			struct nr_error why = { 0 };
			nr_fail(&why, NR_EMEMORY, "cannot write the run database", r->db_path, "out of memory");
			return nr_recorder_lose(r, &why, err);
		}
		r->pending = grown;
		r->room = room;
	}
	r->pending[r->n_pending++] = p;
	return NR_OK;
}

/* ---- records ---------------------------------------------------------------------------------------------------------- */

static int column_of(const struct nr_recorder *r, const char *name, struct nr_error *err)
{
	for (int i = 0; i < r->count; i++)
		if (!strcmp(r->columns[i], name)) return i;
	const char *near = nr_nearest(name, r->columns);
	nr_fail(err, NR_ENAME, "cannot record", name, "metrics.csv has no such column");
	if (near) nr_hint(err, "did you mean '%s'?", near);
	return -1;
}

static int write_csv(struct nr_recorder *r, const struct nr_csv_row *row, struct nr_error *err)
{
	struct nr_str line = { 0 };
	nr_csv_line(&line, row, r->count);
	const int code = line.failed ? nr_fail(err, NR_EMEMORY, "cannot write", r->csv.path, "out of memory")
				     : nr_runfile_append(&r->csv, line.text, line.len, err);
	nr_str_release(&line);
	return code;
}

static int write_scalars(struct nr_recorder *r, int64_t step, const struct nr_metric *m, int count, struct nr_error *err)
{
	struct nr_str record = { 0 };
	nr_tb_scalars(&record, wall(), step, m, count);
	const int code = record.failed ? nr_fail(err, NR_EMEMORY, "cannot write", r->tb.path, "out of memory")
				       : nr_runfile_append(&r->tb, record.text, record.len, err);
	nr_str_release(&record);
	return code;
}

int nr_recorder_metrics(struct nr_recorder *r, int64_t step, double epoch, const struct nr_metric *m, int count, struct nr_error *err)
{
	if (step < 0 || step < r->step)
		return nr_fail(err, NR_EVALUE, "cannot record", r->csv.path,
			"step %lld follows step %lld", (long long)step,
			(long long)r->step);
	memset(r->cell, 0, (size_t)r->count * sizeof *r->cell);
	for (int i = 0; i < count; i++) {
		const int c = column_of(r, m[i].name, err);
		if (c < 0) return NR_ENAME;
		r->cell[c] = (struct nr_cell){ .value = m[i].value, .given = true };
	}
	const struct nr_csv_row row = { .step = step, .epoch = epoch, .seconds = seconds_of(r), .cell = r->cell };
	int code = write_csv(r, &row, err);
	if (!code) code = write_scalars(r, step, m, count, err);
	if (code) return code;
	nr_recorder_count(r, &row);
	for (int c = 0; c < r->count && r->db && !code; c++)
		if (r->cell[c].given)
			code = keep(r, (struct nr_pending){ .column = c, .step = step, .epoch = epoch, .seconds = row.seconds,
				.value = r->cell[c].value }, err);
	if (!code && (nr_clock() - r->flushed >= FLUSH_SECONDS || r->n_pending >= MAX_PENDING)) code = flush(r, err);
	return code;
}

int nr_recorder_event(struct nr_recorder *r, const char *what, int64_t step, json_t *more, struct nr_error *err)
{
	char now[32];
	struct nr_str line = { 0 };
	const int64_t failures = nr_memory_failures();
	json_t *o = json_object();
	json_object_set_new(o, "time", json_string(nr_time_text(time(NULL), now, sizeof now)));
	json_object_set_new(o, "event", nr_record_text(what));
	json_object_set_new(o, "step", json_integer(step));
	json_object_set_new(o, "seconds", json_real(round(seconds_of(r) * 1e3) / 1e3));
	if (more) json_object_update_missing(o, more);
	json_decref(more);
	int code = nr_json_add(&line, o, err);
	if (!code) code = nr_memory_since(failures, "cannot write", r->events.path, err);      /* a word would be missing */
	if (!code) code = nr_runfile_append(&r->events, line.text, line.len, err);
	nr_str_release(&line);
	return code;
}

int nr_recorder_sync(struct nr_recorder *r, struct nr_error *err)
{
	int code = flush(r, err);
	if (!code) code = nr_runfile_sync(&r->csv, err);
	if (!code) code = nr_runfile_sync(&r->events, err);
	return code ? code : nr_runfile_sync(&r->tb, err);
}

/* ---- the end ---------------------------------------------------------------------------------------------------------- */

void nr_recorder_free(struct nr_recorder *r)
{
	if (!r) return;
	nr_rundb_close(r->db);
	nr_runfile_close(&r->csv);
	nr_runfile_close(&r->tb);
	nr_runfile_close(&r->events);
	free(r->pending);
	nr_arena_free(r->arena);
}

static int finish_row(struct nr_recorder *r, const char *status, const struct nr_metric *result, int count, struct nr_error *err)
{
	int code = nr_rundb_begin(r->db, err);
	for (int i = 0; i < count && !code; i++) code = nr_rundb_result(r->db, result[i].name, result[i].value, err);
	if (!code) code = nr_rundb_state(r->db, status, time(NULL), r->step, seconds_of(r), err);
	return code ? code : nr_rundb_commit(r->db, err);
}

/* A database that was given up gets a second chance: perhaps it was only locked. */
static int finish_store(struct nr_recorder *r, const char *status, const struct nr_metric *result, int count, struct nr_error *err)
{
	struct nr_error why = { 0 };
	int code = flush(r, err);
	if (code) return code;
	if (!r->db) code = nr_recorder_attach(r, true, r->wait < LAST_WAIT ? r->wait : LAST_WAIT, &why);
	if (!code) code = finish_row(r, status, result, count, &why);
	return code ? nr_recorder_lose(r, &why, err) : NR_OK;
}

int nr_recorder_close(struct nr_recorder *r, const char *status, const struct nr_metric *result, int count, struct nr_error *err)
{
	if (!r) return NR_OK;
	if (!status) status = "failed";
	int code = finish_store(r, status, result, count, err);
	json_t *more = json_object(), *results = json_object();
	json_object_set_new(more, "status", nr_record_text(status));
	for (int i = 0; i < count; i++) json_object_set_new(results, result[i].name, nr_record_number(result[i].value));
	json_object_set_new(more, "results", results);
	if (code) json_decref(more);
	else code = nr_recorder_event(r, "stop", r->step, more, err);
	if (!code) code = nr_recorder_sync(r, err);
	nr_recorder_free(r);
	return code;
}
