/* The run database, reading: see rundb.h. The file may be anyone's: types and sizes are as SQLite finds them, not as the
 * schema says. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record/rundb_sql.h"

static const char *text(sqlite3_stmt *q, int column, struct nr_arena *a)
{
	const char *t = (const char *)sqlite3_column_text(q, column);
	const char *copy = t ? nr_arena_strdup(a, t) : "";
	return copy ? copy : "";
}

static double real_at(sqlite3_stmt *q, int column)
{
	return sqlite3_column_type(q, column) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(q, column);
}

/* Room for one more item in an array that grows by moving inside the arena. */
static void *more(struct nr_arena *a, void *items, int64_t count, size_t size)
{
	if (count && (count & (count - 1))) return items;       /* full only at powers of two */
	void *grown = nr_arena_alloc(a, (count ? 2 * (size_t)count : 1) * size);
	if (grown && count) memcpy(grown, items, (size_t)count * size);
	return grown;
}

static int finish(struct nr_rundb *s, sqlite3_stmt *q, int code, bool memory, struct nr_error *err)
{
	int result = NR_OK;
	if (!memory) result = nr_fail(err, NR_EMEMORY, "cannot read the run database", s->path, "out of memory");
	else if (code != SQLITE_DONE) result = nr_rundb_fail(s, "cannot read the run database", err);
	sqlite3_finalize(q);
	return result;
}

int nr_rundb_runs(struct nr_rundb *s, struct nr_arena *a, struct nr_run **out, int64_t *count, struct nr_error *err)
{
	static const char query[] = "SELECT id,name,dir,kind,status,started,finished,seconds,steps,seed,command,config,env,columns,host,pid"
				    " FROM runs ORDER BY started,id";
	sqlite3_stmt *q = NULL;
	struct nr_run *runs = NULL;
	int64_t n = 0;
	bool memory = true;
	int code = sqlite3_prepare_v2(s->db, query, -1, &q, NULL);
	while (!(code && code != SQLITE_ROW) && memory && (code = sqlite3_step(q)) == SQLITE_ROW) {
		struct nr_run *grown = more(a, runs, n, sizeof *runs);
		memory = grown;
		if (!memory) break;
		runs = grown;
		runs[n++] = (struct nr_run){
			.id = sqlite3_column_int64(q, 0), .name = text(q, 1, a), .dir = text(q, 2, a), .kind = text(q, 3, a),
			.status = text(q, 4, a), .started = sqlite3_column_int64(q, 5), .finished = sqlite3_column_int64(q, 6),
			.seconds = sqlite3_column_double(q, 7), .steps = sqlite3_column_int64(q, 8),
			.seeded = sqlite3_column_type(q, 9) != SQLITE_NULL, .seed = sqlite3_column_int64(q, 9), .command = text(q, 10, a),
			.config = text(q, 11, a), .env = text(q, 12, a), .columns = text(q, 13, a), .host = text(q, 14, a),
			.pid = sqlite3_column_int64(q, 15),
		};
	}
	*out = runs;
	*count = n;
	return finish(s, q, code, memory, err);
}

int nr_rundb_curve(struct nr_rundb *s, int64_t run, const char *name, struct nr_arena *a, struct nr_curve *c,
	struct nr_error *err)
{
	sqlite3_stmt *q = NULL;
	bool memory = true;
	*c = (struct nr_curve){ 0 };
	int code = sqlite3_prepare_v2(s->db, "SELECT step,value FROM metrics WHERE run=?1 AND name=?2 ORDER BY step", -1, &q, NULL);
	if (!code) {
		sqlite3_bind_int64(q, 1, run);
		sqlite3_bind_text(q, 2, name, -1, SQLITE_STATIC);
	}
	while (!(code && code != SQLITE_ROW) && memory && (code = sqlite3_step(q)) == SQLITE_ROW) {
		int64_t *step = more(a, c->step, c->count, sizeof *step);
		double *value = more(a, c->value, c->count, sizeof *value);
		memory = step && value;
		if (!memory) break;
		c->step = step;
		c->value = value;
		step[c->count] = sqlite3_column_int64(q, 0);
		value[c->count++] = real_at(q, 1);
	}
	return finish(s, q, code, memory, err);
}

int nr_rundb_results(struct nr_rundb *s, int64_t run, struct nr_arena *a, struct nr_metric **out, int64_t *count,
	struct nr_error *err)
{
	sqlite3_stmt *q = NULL;
	struct nr_metric *list = NULL;
	int64_t n = 0;
	bool memory = true;
	int code = sqlite3_prepare_v2(s->db, "SELECT name,value FROM results WHERE run=?1 ORDER BY name", -1, &q, NULL);
	if (!code) sqlite3_bind_int64(q, 1, run);
	while (!(code && code != SQLITE_ROW) && memory && (code = sqlite3_step(q)) == SQLITE_ROW) {
		struct nr_metric *grown = more(a, list, n, sizeof *list);
		memory = grown;
		if (!memory) break;
		list = grown;
		list[n++] = (struct nr_metric){ .name = text(q, 0, a), .value = real_at(q, 1) };
	}
	*out = list;
	*count = n;
	return finish(s, q, code, memory, err);
}
