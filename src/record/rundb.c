/* The run database, opening and writing: see rundb.h. */
#include "record/rundb.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "record/rundb_sql.h"

enum { SCHEMA = 1, APPLICATION = 0x4e524d41 };  /* "NRMA" */

static const char schema[] =
	"CREATE TABLE runs(id INTEGER PRIMARY KEY, name TEXT NOT NULL, dir TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,"
	" status TEXT NOT NULL, started INTEGER NOT NULL, finished INTEGER, seconds REAL NOT NULL DEFAULT 0,"
	" steps INTEGER NOT NULL DEFAULT 0, seed INTEGER, command TEXT, config TEXT, env TEXT, columns TEXT, host TEXT, pid INTEGER);"
	"CREATE TABLE metrics(run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, name TEXT NOT NULL, step INTEGER NOT NULL,"
	" epoch REAL, seconds REAL, value REAL, PRIMARY KEY(run, name, step)) WITHOUT ROWID;"
	"CREATE TABLE results(run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, name TEXT NOT NULL, value REAL,"
	" PRIMARY KEY(run, name)) WITHOUT ROWID;"
	"PRAGMA user_version=1; PRAGMA application_id=0x4e524d41;";

static const char *const sql[NR_SQL_COUNT] = {
	[NR_SQL_FORGET] = "DELETE FROM runs WHERE dir=?2",
	[NR_SQL_INSERT] = ("INSERT INTO runs(name,dir,kind,status,started,seed,command,config,env,columns,host,pid)"
			   " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)"),
	[NR_SQL_FIND] = "SELECT id FROM runs WHERE dir=?2",
	[NR_SQL_UPDATE] = ("UPDATE runs SET name=?1,kind=?3,status=?4,finished=NULL,seed=?6,command=?7,config=?8,env=?9,columns=?10,"
			   "host=?11,pid=?12 WHERE dir=?2"),
	[NR_SQL_CUT] = "DELETE FROM metrics WHERE run=?1 AND step>?2",
	[NR_SQL_KEPT] = "SELECT count(*) FROM metrics WHERE run=?1",
	[NR_SQL_CLEAR_RESULTS] = "DELETE FROM results WHERE run=?1",
	[NR_SQL_METRIC] = "INSERT OR REPLACE INTO metrics(run,name,step,epoch,seconds,value) VALUES(?1,?2,?3,?4,?5,?6)",
	[NR_SQL_RESULT] = "INSERT OR REPLACE INTO results(run,name,value) VALUES(?1,?2,?3)",
	[NR_SQL_STATE] = "UPDATE runs SET status=?2,finished=?3,steps=?4,seconds=?5 WHERE id=?1",
};

/* ---- opening ---------------------------------------------------------------------------------------------------------- */

int nr_rundb_fail(const struct nr_rundb *s, const char *what, struct nr_error *err)
{
	const int code = s->db ? sqlite3_errcode(s->db) : SQLITE_NOMEM;
	nr_fail(err, code == SQLITE_NOMEM ? NR_EMEMORY : code == SQLITE_NOTADB || code == SQLITE_CORRUPT ? NR_EFORMAT : NR_EIO, what,
		s->path, "%s", s->db ? sqlite3_errmsg(s->db) : "out of memory");
	if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT) nr_hint(err,
		"move it away: runs will write a new one, and their files have everything");
	return err && err->code ? (int)err->code : NR_EIO;
}

static int number(struct nr_rundb *s, const char *query, int64_t *value, struct nr_error *err)
{
	sqlite3_stmt *q = NULL;
	const bool ok = sqlite3_prepare_v2(s->db, query, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW;
	if (ok) *value = sqlite3_column_int64(q, 0);
	const int code = ok ? NR_OK : nr_rundb_fail(s, "cannot read the run database", err);
	sqlite3_finalize(q);
	return code;
}

/* Ours, of a version that we know, or (0) still empty. All three numbers are of one moment: another process may be making the
 * tables. */
static int check(struct nr_rundb *s, int64_t *version, struct nr_error *err)
{
	int64_t application = 0, objects = 0;
	const bool alone = sqlite3_get_autocommit(s->db);
	if (alone && sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL)) return nr_rundb_fail(s, "cannot read the run database", err);
	int code = number(s, "PRAGMA user_version", version, err);
	if (!code) code = number(s, "PRAGMA application_id", &application, err);
	if (!code) code = number(s, "SELECT count(*) FROM sqlite_master", &objects, err);
	if (code) return code;  /* the database is closed then, and SQLite's message kept */
	if (alone) sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
	if (objects && application != APPLICATION)
		return nr_fail(err, NR_EFORMAT, "cannot use the run database", s->path,
			"it is another program's database");
	if (*version > SCHEMA || (objects && *version < 1)) {
		nr_fail(err, NR_EFORMAT, "cannot use the run database", s->path,
			"it has version %lld, but this norma supports %d",
			(long long)*version, SCHEMA);
		nr_hint(err, "use the norma that wrote it, or another --store");
		return NR_EFORMAT;
	}
	return NR_OK;
}

/* Another process may be switching, too; SQLite does not wait by itself here. The log has memory that processes share, which those of
 * several hosts cannot: a file system that others see gets a journal that is deleted after every change. */
static int use_log(struct nr_rundb *s, double wait, struct nr_error *err)
{
	static const char log[] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON";
	static const char plain[] = "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON";
	const double start = nr_clock();
	while (sqlite3_exec(s->db, nr_file_remote(s->path) ? plain : log, NULL, NULL, NULL)) {
		const int code = sqlite3_errcode(s->db);
		if ((code != SQLITE_BUSY && code != SQLITE_LOCKED) || nr_clock() - start > wait)
			return nr_rundb_fail(s, "cannot open the run database", err);
		usleep(5000);
	}
	return NR_OK;
}

static int prepare_to_write(struct nr_rundb *s, double wait, struct nr_error *err)
{
	int64_t version = 0;
	int code = check(s, &version, err);
	if (!code) code = use_log(s, wait, err);
	if (code || version) return code;
	code = nr_rundb_begin(s, err);
	if (!code) code = check(s, &version, err);      /* someone may have been faster */
	if (!code && !version && sqlite3_exec(s->db, schema, NULL, NULL, NULL))
		code = nr_rundb_fail(s, "cannot make the run database", err);
	return code ? code : nr_rundb_commit(s, err);
}

static int connect(struct nr_rundb *s, const char *name, int flags, double wait)
{
	sqlite3_close_v2(s->db);
	const int code = sqlite3_open_v2(name, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
	if (s->db) {
		sqlite3_busy_timeout(s->db, wait < 1e6 ? (int)(wait * 1000) : INT_MAX);
		sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	}
	return code;
}

/* A log cannot be joined on a disk where nothing may be written; then the file alone is read. */
static int connect_unchanging(struct nr_rundb *s)
{
	struct nr_str uri = { 0 };
	nr_str_add(&uri, "file:");
	for (const char *p = s->path; *p; p++)
		if (strchr("?#%", *p)) nr_str_printf(&uri, "%%%02X", (unsigned char)*p);
		else nr_str_add_n(&uri, p, 1);
	nr_str_add(&uri, "?immutable=1");
	const int code = uri.failed ? SQLITE_NOMEM : connect(s, uri.text, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, 0);
	nr_str_release(&uri);
	return code;
}

static int open_to_read(struct nr_rundb *s, double wait, struct nr_error *err)
{
	int64_t version = 0;
	struct nr_error first = { 0 };
	if (access(s->path, R_OK)) return nr_fail(err, NR_EIO, "cannot read the run database", s->path,
		"there is no such file");
	if (connect(s, s->path, SQLITE_OPEN_READWRITE, wait) || check(s, &version, &first)) {
		const int code = s->db ? sqlite3_errcode(s->db) : SQLITE_NOMEM;
		if (code != SQLITE_CANTOPEN && code != SQLITE_READONLY) {
			if (!first.code) return nr_rundb_fail(s, "cannot read the run database", err);
			if (!err->code) *err = first;
			return first.code;
		}
		if (connect_unchanging(s)) return nr_rundb_fail(s, "cannot read the run database", err);
		const int again = check(s, &version, err);
		if (again) return again;
	}
	return version ? NR_OK : nr_fail(err, NR_EFORMAT, "cannot read the run database", s->path, "it is empty");
}

int nr_rundb_open(struct nr_rundb **out, const char *path, double wait, bool write, struct nr_error *err)
{
	struct nr_rundb *s = calloc(1, sizeof *s);
	struct nr_error own = { 0 };
	if (!err) err = &own;
	*out = NULL;
	if (s) s->path = strdup(path);
	int code = NR_OK;
	struct stat st;
	if (!s || !s->path) code = nr_fail(err, NR_EMEMORY, "cannot open the run database", path, "out of memory");
	else if (!stat(path, &st) && !S_ISREG(st.st_mode))      /* SQLite would wait for a FIFO */
		code = nr_fail(err, NR_EIO, "cannot open the run database", path, "it is not a regular file");
	else if (!write) code = open_to_read(s, wait, err);
	else if (connect(s, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, wait))
		code = nr_rundb_fail(s, "cannot open the run database", err);
	else code = prepare_to_write(s, wait, err);
	if (code) nr_rundb_close(s);
	else *out = s;
	return code;
}

void nr_rundb_close(struct nr_rundb *s)
{
	if (!s) return;
	for (int i = 0; i < NR_SQL_COUNT; i++) sqlite3_finalize(s->statement[i]);
	sqlite3_close_v2(s->db);
	free(s->path);
	free(s);
}

/* ---- writing ---------------------------------------------------------------------------------------------------------- */

/* At once for writing: a transaction that began with reading could not wait for another writer. */
int nr_rundb_begin(struct nr_rundb *s, struct nr_error *err)
{
	return sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) ? nr_rundb_fail(s, "cannot write the run database", err) : NR_OK;
}

int nr_rundb_commit(struct nr_rundb *s, struct nr_error *err)
{
	return sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) ? nr_rundb_fail(s, "cannot write the run database", err) : NR_OK;
}

static sqlite3_stmt *prepared(struct nr_rundb *s, enum nr_rundb_statement i)
{
	if (!s->statement[i]) sqlite3_prepare_v3(s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statement[i], NULL);
	return s->statement[i];
}

/* Runs a statement whose values are bound (NULL: it could not be prepared). */
static int done(struct nr_rundb *s, sqlite3_stmt *q, struct nr_error *err)
{
	const int code = q ? sqlite3_step(q) : SQLITE_ERROR;
	const int result = code == SQLITE_DONE || code == SQLITE_ROW ? NR_OK : nr_rundb_fail(s, "cannot write the run database", err);
	if (q) sqlite3_reset(q), sqlite3_clear_bindings(q);
	return result;
}

static int cut(struct nr_rundb *s, int64_t step, struct nr_error *err)
{
	sqlite3_stmt *q = prepared(s, NR_SQL_CUT);
	if (q) sqlite3_bind_int64(q, 1, s->run), sqlite3_bind_int64(q, 2, step);
	return done(s, q, err);
}

int nr_rundb_forget(struct nr_rundb *s, struct nr_error *err) { return cut(s, INT64_MIN, err); }

/* The one number of a query. */
static int64_t answer(sqlite3_stmt *q)
{
	const int64_t v = q && sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
	if (q) sqlite3_reset(q), sqlite3_clear_bindings(q);
	return v;
}

/* Numbers as in the statements above. */
static sqlite3_stmt *with_run(struct nr_rundb *s, enum nr_rundb_statement i, const struct nr_run *r)
{
	sqlite3_stmt *q = prepared(s, i);
	const int last = q ? sqlite3_bind_parameter_count(q) : 0;
	const char *const text[] = { [1] = r->name, r->dir, r->kind, r->status, [7] = r->command, r->config, r->env, r->columns, r->host };
	for (int k = 1; k <= 11 && k <= last; k++)
		if (text[k]) sqlite3_bind_text(q, k, text[k], -1, SQLITE_STATIC);
	if (last >= 5) sqlite3_bind_int64(q, 5, r->started);
	if (last >= 6 && r->seeded) sqlite3_bind_int64(q, 6, r->seed);
	if (last >= 12) sqlite3_bind_int64(q, 12, r->pid);
	return q;
}

int nr_rundb_run(struct nr_rundb *s, const struct nr_run *r, int64_t keep, int64_t *kept, struct nr_error *err)
{
	*kept = 0;
	int code = keep < 0 ? done(s, with_run(s, NR_SQL_FORGET, r), err) : NR_OK;
	if (code) return code;
	s->run = answer(with_run(s, NR_SQL_FIND, r));
	code = done(s, with_run(s, s->run ? NR_SQL_UPDATE : NR_SQL_INSERT, r), err);
	if (code || !s->run) {
		s->run = sqlite3_last_insert_rowid(s->db);
		return code;
	}
	sqlite3_stmt *q = prepared(s, NR_SQL_CLEAR_RESULTS);
	if (q) sqlite3_bind_int64(q, 1, s->run);
	code = done(s, q, err);
	if (!code) code = cut(s, keep, err);
	q = prepared(s, NR_SQL_KEPT);
	if (q) sqlite3_bind_int64(q, 1, s->run);
	*kept = answer(q);
	return code;
}

int nr_rundb_metric(struct nr_rundb *s, const char *name, int64_t step, double epoch, double seconds, double value,
	struct nr_error *err)
{
	sqlite3_stmt *q = prepared(s, NR_SQL_METRIC);
	if (!q) return nr_rundb_fail(s, "cannot write the run database", err);
	sqlite3_bind_int64(q, 1, s->run);
	sqlite3_bind_text(q, 2, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(q, 3, step);
	sqlite3_bind_double(q, 4, epoch);
	sqlite3_bind_double(q, 5, seconds);
	sqlite3_bind_double(q, 6, value);               /* NaN becomes NULL */
	return done(s, q, err);
}

int nr_rundb_result(struct nr_rundb *s, const char *name, double value, struct nr_error *err)
{
	sqlite3_stmt *q = prepared(s, NR_SQL_RESULT);
	if (!q) return nr_rundb_fail(s, "cannot write the run database", err);
	sqlite3_bind_int64(q, 1, s->run);
	sqlite3_bind_text(q, 2, name, -1, SQLITE_STATIC);
	sqlite3_bind_double(q, 3, value);
	return done(s, q, err);
}

int nr_rundb_state(struct nr_rundb *s, const char *status, int64_t finished, int64_t steps, double seconds, struct nr_error *err)
{
	sqlite3_stmt *q = prepared(s, NR_SQL_STATE);
	if (!q) return nr_rundb_fail(s, "cannot write the run database", err);
	sqlite3_bind_int64(q, 1, s->run);
	sqlite3_bind_text(q, 2, status, -1, SQLITE_STATIC);
	if (finished) sqlite3_bind_int64(q, 3, finished);
	sqlite3_bind_int64(q, 4, steps);
	sqlite3_bind_double(q, 5, seconds);
	return done(s, q, err);
}
