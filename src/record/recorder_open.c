/* Beginning and resuming a run directory: see recorder.h. config.yaml is written last: a directory without it cannot be
 * resumed. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/save.h"
#include "base/str.h"
#include "record/recorder_env.h"
#include "record/recorder_run.h"
#include "record/tensorboard.h"

static const double DB_WAIT = 10;

static int no_memory(const char *dir, struct nr_error *err)
{
	return nr_fail(err, NR_EMEMORY, "cannot record into", dir, "out of memory");
}

static const char *path_of(const struct nr_recorder *r, const char *name) { return nr_arena_printf(r->arena, "%s/%s", r->dir, name); }

/* ---- names and columns ------------------------------------------------------------------------------------------------- */

static int copy_columns(struct nr_recorder *r, const char *const *columns, struct nr_error *err)
{
	while (columns && columns[r->count]) r->count++;
	r->columns = nr_arena_alloc(r->arena, ((size_t)r->count + 1) * sizeof *r->columns);
	r->cell = nr_arena_alloc(r->arena, ((size_t)r->count + 1) * sizeof *r->cell);
	r->column_step = nr_arena_alloc(r->arena, ((size_t)r->count + 1) * sizeof *r->column_step);
	if (!r->columns || !r->cell || !r->column_step) return no_memory(r->dir, err);
	memset(r->column_step, -1, (size_t)r->count * sizeof *r->column_step);
	for (int i = 0; i < r->count; i++) {
		const char *name = columns[i];
		bool bad = !*name || !nr_utf8_valid(name, strlen(name)) || strpbrk(name, "\r\n") || !strcmp(name, "step") ||
			   !strcmp(name, "epoch") || !strcmp(name, "seconds");
		for (int k = 0; k < i; k++) bad |= !strcmp(name, columns[k]);
		if (bad) return nr_fail(err, NR_EVALUE, "cannot use as a column", name,
			"it is empty, a duplicate, reserved or not text");
		r->columns[i] = nr_arena_strdup(r->arena, name);
		if (!r->columns[i]) return no_memory(r->dir, err);
	}
	return NR_OK;
}

/* The folder of a path, in the arena. */
static char *folder_of(struct nr_arena *a, const char *path)
{
	char *copy = nr_arena_strdup(a, path), *slash = copy ? strrchr(copy, '/') : NULL;
	if (!copy || !slash) return copy ? nr_arena_strdup(a, ".") : NULL;
	slash[slash == copy] = 0;
	return copy;
}

static char *real_path(struct nr_arena *a, const char *path)
{
	char *found = realpath(path, NULL), *copy = nr_arena_strdup(a, found ? found : path);
	free(found);
	return copy;
}

/* Where the database is, what the run is called there, and by which path: without that of the database, so that a root can move. */
static int name_run(struct nr_recorder *r, const char *db, const char *name, struct nr_error *err)
{
	const char *dir = real_path(r->arena, r->dir), *above = dir ? folder_of(r->arena, dir) : NULL;
	r->db_path = db ? nr_arena_strdup(r->arena, db) : above ? nr_arena_printf(r->arena, "%s/runs.db", above) : NULL;
	const char *folder = r->db_path ? folder_of(r->arena, r->db_path) : NULL;
	if (!dir || !folder) return no_memory(r->dir, err);
	if (db) nr_folder_make(folder, NULL);        /* if that fails, opening the database says why */
	const char *root = real_path(r->arena, folder);
	if (!root) return no_memory(r->dir, err);
	const size_t n = strlen(root);
	const char *base = strrchr(dir, '/');
	const bool below = !strncmp(dir, root, n) && dir[n] == '/' && dir[n + 1];
	r->run.dir = below ? dir + n + 1 : dir;
	const char *usual = below ? r->run.dir : base && base[1] ? base + 1 : dir;      /* in a study: ARM/seed-0/train */
	r->run.name = name && *name ? nr_arena_strdup(r->arena, name) : usual;
	return r->run.name ? NR_OK : no_memory(r->dir, err);
}

/* ---- cutting back ------------------------------------------------------------------------------------------------------ */

static int last_row(void *arg, const struct nr_csv_row *row, struct nr_error *err)
{
	(void)err;
	struct nr_recorder *r = arg;
	r->before = row->seconds;
	nr_recorder_count(r, row);
	return NR_OK;
}

static int cut_csv(struct nr_recorder *r, int64_t step, struct nr_error *err)
{
	int64_t size = 0;
	FILE *f = nr_file_stream(r->csv.path, err);
	if (!f) return NR_EIO;
	int code = step < 0 ? NR_OK : nr_csv_scan(f, r->csv.path, r->columns, step, last_row, r, &size, err);
	fclose(f);
	if (!code) code = nr_runfile_cut(&r->csv, size, err);
	if (code || size) return code;
	struct nr_str header = { 0 };
	nr_csv_header(&header, r->columns);
	code = header.failed ? no_memory(r->dir, err) : nr_runfile_append(&r->csv, header.text, header.len, err);
	nr_str_release(&header);
	return code;
}

struct events { const char *path; int64_t last; };

static int take_event(void *arg, char *line, size_t length, int64_t number, struct nr_error *err)
{
	const struct events *e = arg;
	struct nr_error why = { 0 };
	json_t *o = nr_json_parse(line, length, e->path, &why), *step = json_object_get(o, "step");
	if (!json_is_integer(step)) {
		json_decref(o);
		nr_fail(err, NR_EFORMAT, "cannot read", e->path, "line %lld is not an event", (long long)number);
		nr_hint(err, "remove this line and those after it, or start a new run");
		return NR_EFORMAT;
	}
	const bool wanted = json_integer_value(step) <= e->last;
	json_decref(o);
	return wanted;
}

static int cut_events(struct nr_recorder *r, int64_t step, struct nr_error *err)
{
	int64_t size = 0;
	struct events e = { .path = r->events.path, .last = step };
	FILE *f = nr_file_stream(e.path, err);
	if (!f) return NR_EIO;
	const int code = step < 0 ? NR_OK : nr_lines_scan(f, e.path, take_event, &e, &size, err);
	fclose(f);
	return code ? code : nr_runfile_cut(&r->events, size, err);
}

static int is_event_file(const struct dirent *d) { return !strncmp(d->d_name, "events.out.tfevents.", 20); }

static int cut_scalars(struct nr_recorder *r, const char *path, int64_t step, bool *damaged, struct nr_error *err)
{
	int64_t size = 0;
	bool bad = false;
	nr_runfile_close(&r->tb);
	int code = nr_runfile_open(&r->tb, path, err);
	FILE *f = code || step < 0 ? NULL : nr_file_stream(path, err);
	if (f) code = nr_tb_scan(f, path, step, &size, &bad, err);
	if (f) fclose(f);
	*damaged |= bad;
	return code ? code : nr_runfile_cut(&r->tb, size, err);
}

/* The last of its files goes on, others are only cut. */
static int open_scalars(struct nr_recorder *r, int64_t step, bool *damaged, struct nr_error *err)
{
	struct dirent **list = NULL;
	const char *folder = path_of(r, "tensorboard");
	if (!folder) return no_memory(r->dir, err);
	int code = nr_folder_make(folder, err);
	const int n = code ? 0 : scandir(folder, &list, is_event_file, alphasort);
	for (int i = 0; i < n; i++) {
		const char *path = nr_arena_printf(r->arena, "%s/%s", folder, list[i]->d_name);
		if (!code) code = path ? cut_scalars(r, path, step, damaged, err) : no_memory(r->dir, err);
		free(list[i]);
	}
	free(list);
	if (!code && r->tb.fd < 0) {
		const char *path = nr_arena_printf(r->arena, "%s/events.out.tfevents.%010lld.norma", folder, (long long)time(NULL));
		code = path ? nr_runfile_open(&r->tb, path, err) : no_memory(r->dir, err);
	}
	if (code || r->tb.size) return code;
	struct nr_str record = { 0 };
	nr_tb_begin(&record, (double)time(NULL));
	code = record.failed ? no_memory(r->dir, err) : nr_runfile_append(&r->tb, record.text, record.len, err);
	nr_str_release(&record);
	return code;
}

/* ---- opening ----------------------------------------------------------------------------------------------------------- */

static int is_checkpoint(const struct dirent *d)
{
	const char *dot = strrchr(d->d_name, '.');
	return dot && d->d_name[0] != '.' && !strcmp(dot, ".safetensors");
}

/* Whether there is anything that a new run would destroy: a record or a checkpoint. One that failed before both is begun
 * anew. */
static bool holds_run(const struct nr_recorder *r)
{
	struct dirent **list = NULL;
	int lines = 0;
	const int n = scandir(r->dir, &list, is_checkpoint, NULL);
	for (int i = 0; i < n; i++) free(list[i]);
	free(list);
	const char *csv = path_of(r, "metrics.csv");
	FILE *f = csv ? nr_file_stream(csv, NULL) : NULL;
	for (int c; f && lines < 2 && (c = getc(f)) != EOF;) lines += c == '\n';
	if (f) fclose(f);
	return !csv || n > 0 || lines > 1;
}

static int check_folder(const struct nr_recorder *r, bool resume, struct nr_error *err)
{
	const char *config = path_of(r, "config.yaml");
	if (!config) return no_memory(r->dir, err);
	if (!resume) return nr_folder_make(r->dir, err);
	if (!access(config, F_OK)) return NR_OK;
	nr_fail(err, NR_EVALUE, "cannot resume", r->dir, "there is no run in it: config.yaml is missing");
	nr_hint(err, "give the directory of an earlier run, or leave out --resume");
	return NR_EVALUE;
}

static int open_files(struct nr_recorder *r, bool resume, int64_t step, bool *damaged, struct nr_error *err)
{
	const char *csv = path_of(r, "metrics.csv"), *events = path_of(r, "events.jsonl");
	if (!csv || !events) return no_memory(r->dir, err);
	int code = nr_runfile_open(&r->events, events, err);
	if (!code) code = nr_runfile_lock(&r->events, err);
	if (!code && !resume && holds_run(r)) {
		code = nr_fail(err, NR_EVALUE, "cannot start a run in", r->dir, "it already holds a run");
		nr_hint(err, "resume it with --resume, or choose another directory");
	}
	if (!code) code = nr_runfile_open(&r->csv, csv, err);
	if (!code) nr_save_sweep(r->dir, NULL);
	if (!resume) step = -1;                         /* leftovers of a beginning that was killed */
	if (!code) code = cut_events(r, step, err);
	if (!code) code = cut_csv(r, step, err);
	if (!code) code = open_scalars(r, step, damaged, err);
	return code;
}

static int save_json(struct nr_recorder *r, const json_t *o, struct nr_error *err)
{
	const char *path = path_of(r, "env.json");
	struct nr_str text = { 0 };
	char *dump = nr_json_dump(o, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
	if (dump) nr_str_printf(&text, "%s\n", dump);
	free(dump);
	const int code = !path || !text.len || text.failed ? no_memory(r->dir, err) : nr_save_file(path, text.text, text.len, err);
	nr_str_release(&text);
	return code;
}

/* env.json of the first session stays; the row's start, command and text come from it. */
static int write_env(struct nr_recorder *r, const struct nr_run_info *info, bool resume, struct nr_error *err)
{
	struct nr_error ignored = { 0 };
	struct tm tm = { 0 };
	const char *path = path_of(r, "env.json");
	json_t *env = resume && path ? nr_json_load(path, &ignored) : NULL;
	if (ignored.code == NR_EIO && !access(path, F_OK)) {    /* a FIFO or a device: nothing is written into it */
		if (err) *err = ignored;
		return NR_EIO;
	}
	const char *text = json_string_value(json_object_get(env, "started"));
	r->run.started = text && strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm) ? (int64_t)timegm(&tm) : (int64_t)time(NULL);
	const char *command = json_string_value(json_object_get(env, "command"));
	if (command) r->run.command = nr_arena_strdup(r->arena, command);
	int code = NR_OK;
	if (!env) {
		const int64_t failures = nr_memory_failures();
		env = nr_record_env(info, (time_t)r->run.started);
		code = nr_memory_since(failures, "cannot write", path, err);            /* an entry would be missing */
		if (!code) code = save_json(r, env, err);
	}
	char *dump = nr_json_dump(env, JSON_COMPACT);
	const json_t *seed = json_object_get(env, "seed");
	r->run.seeded = json_is_integer(seed);
	r->run.seed = json_integer_value(seed);
	r->run.env = dump ? nr_arena_strdup(r->arena, dump) : NULL;
	free(dump);
	json_decref(env);
	return code;
}

/* *changed: a resumed run has other settings than before. */
static int write_config(struct nr_recorder *r, const char *config, bool *changed, struct nr_error *err)
{
	const char *path = path_of(r, "config.yaml");
	if (!path || !r->run.config) return no_memory(r->dir, err);
	const size_t n = strlen(config);
	char *old = malloc(n + 2);
	FILE *f = nr_file_stream(path, NULL);
	const bool same = f && old && fread(old, 1, n + 1, f) == n && !memcmp(old, config, n);
	*changed = f && !same;
	if (f) fclose(f);
	free(old);
	return same ? NR_OK : nr_save_file(path, config, n, err);
}

static int fill_row(struct nr_recorder *r, const struct nr_run_info *info, struct nr_error *err)
{
	char host[HOST_NAME_MAX + 1] = "";
	json_t *columns = json_array();
	for (int i = 0; i < r->count; i++) json_array_append_new(columns, json_string(r->columns[i]));
	char *dump = nr_json_dump(columns, JSON_COMPACT);
	json_decref(columns);
	if (gethostname(host, sizeof host - 1)) host[0] = 0;
	r->run.kind = nr_arena_strdup(r->arena, info->kind ? info->kind : "");
	r->run.command = nr_arena_strdup(r->arena, info->command ? info->command : "");
	r->run.config = nr_arena_strdup(r->arena, info->config ? info->config : "");
	r->run.columns = dump ? nr_arena_strdup(r->arena, dump) : NULL;
	r->run.host = nr_arena_strdup(r->arena, host);
	r->run.status = "running";
	r->run.pid = getpid();
	free(dump);
	return r->run.kind && r->run.command && r->run.config && r->run.columns && r->run.host ? NR_OK : no_memory(r->dir, err);
}

static int say_hello(struct nr_recorder *r, const struct nr_run_info *info, bool resume, int64_t step, bool changed, bool damaged,
	struct nr_error *err)
{
	json_t *session = nr_record_session(info);
	if (changed) json_object_set_new(session, "settings", json_string("changed"));
	if (info->forced) json_object_set_new(session, "forced", json_string(info->forced));
	int code = nr_recorder_event(r, resume ? "resume" : "start", step, session, err);
	if (!code && damaged)
		code = nr_recorder_event(r, "warning", step,
			json_pack("{s:s, s:s}", "text", "a TensorBoard file was damaged", "effect",
				"it was truncated where the damage begins"), err);
	return code;
}

static int open_all(struct nr_recorder *r, const char *db, const struct nr_run_info *info, bool resume, int64_t step,
	struct nr_error *err)
{
	bool damaged = false, changed = false;
	struct nr_error why = { 0 };
	int code = copy_columns(r, info->columns, err);
	if (!code) code = check_folder(r, resume, err);
	if (!code) code = open_files(r, resume, step, &damaged, err);
	if (!code) code = name_run(r, db, info->name, err);
	if (!code) code = fill_row(r, info, err);
	if (!code) code = write_env(r, info, resume, err);
	if (!code) code = write_config(r, r->run.config, &changed, err);
	if (!code) code = say_hello(r, info, resume, step, changed && resume, damaged, err);
	if (!code && nr_recorder_attach(r, resume, r->wait, &why)) code = nr_recorder_lose(r, &why, err);
	return code;
}

int nr_recorder_open(struct nr_recorder **out, const char *dir, const char *db, const struct nr_run_info *info, bool resume,
	int64_t step, struct nr_error *err)
{
	struct nr_arena *arena = nr_arena_make();
	struct nr_recorder *r = arena ? nr_arena_alloc(arena, sizeof *r) : NULL;
	struct nr_error own = { 0 };
	if (!err) err = &own;
	*out = NULL;
	if (!r) {
		nr_arena_free(arena);
		return no_memory(dir, err);
	}
	r->arena = arena;
	r->csv.fd = r->events.fd = r->tb.fd = -1;
	r->began = nr_clock();
	r->wait = info->db_wait > 0 ? info->db_wait : DB_WAIT;
	r->dir = nr_arena_strdup(arena, dir);
	int code = r->dir ? NR_OK : no_memory(dir, err);
	if (!code && step < 0) code = nr_fail(err, NR_EVALUE, "cannot resume", dir, "there is no step %lld", (long long)step);
	if (!code) code = open_all(r, db, info, resume, resume ? step : 0, err);
	if (code) nr_recorder_free(r);
	else *out = r;
	return code;
}
