/* A stage's files and settings: see job.h. */
#include "study/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/save.h"
#include "base/str.h"
#include "fetch/checksum.h"
#include "norma/version.h"
#include "plugin/plugin.h"
#include "study/settings.h"

static const char *const statuses[] = { "none", "begun", "done", "failed", "diverged", NULL };

char *nr_study_path(const struct nr_study *s, int64_t arm, int64_t seed, const char *name, struct nr_arena *arena)
{
	return nr_arena_printf(arena, "%s/%s/seed-%lld%s%s", s->out, s->arm[arm].folder, (long long)s->seed[seed], name ? "/" : "",
		name ? name : "");
}

/* Where data lie, who loads them and how often a training speaks change no result. */
static bool matters(const char *key)
{
	static const char *const idle[] = { "data_root", "workers", "log_every", "checkpoint_steps", "checkpoint_minutes", "isa", NULL };
	for (int i = 0; idle[i]; i++)
		if (!strcmp(key, idle[i])) return false;
	return true;
}

/* All that the result depends on: other settings give another hash. */
static char *describe(const struct nr_job *j, struct nr_arena *arena, struct nr_error *err)
{
	const struct nr_study_stage *stage = &j->study->stage[j->stage];
	const struct nr_settings *all = nr_study_settings(j->study, j->arm, j->stage, arena);
	struct nr_str s = { 0 };
	nr_str_printf(&s, "command=%s\n", stage->command->name);
	if (nr_study_option(stage->command, "seed") || stage->trains) nr_str_printf(&s, "seed=%lld\n", (long long)j->study->seed[j->seed]);
	if (stage->from && stage->from_stage >= 0) {
		struct nr_job source;
		if (nr_job_make(&source, j->study, j->arm, j->seed, stage->from_stage, arena, err)) return NULL;
		nr_str_printf(&s, "checkpoint=%s%s%s of %s\n", stage->from, stage->file ? "/" : "", stage->file ? stage->file : "",
			source.hash);
	} else if (stage->from) {
		nr_str_printf(&s, "checkpoint=%s\n", stage->from);
	}
	int plugins;
	const struct nr_plugin_file *file = nr_plugins(&plugins);
	for (int i = 0; i < plugins; i++) {
		const char *slash = strrchr(file[i].path, '/');
		nr_str_printf(&s, "plugin %s=sha256 %s\n", slash ? slash + 1 : file[i].path, file[i].sha256);
	}
	bool whole = all;
	for (int64_t i = 0; whole && i < all->count; i++) {
		const char *value = matters(all->item[i].key) ? nr_setting_text(&all->item[i], arena) : "";
		whole = value != NULL;
		if (whole && matters(all->item[i].key)) nr_str_printf(&s, "%s=%s\n", all->item[i].key, value);
	}
	char *text = whole && !s.failed ? nr_arena_strdup(arena, nr_str_text(&s)) : NULL;
	nr_str_release(&s);
	if (!text) nr_fail(err, NR_EMEMORY, "cannot describe a run", NULL, "out of memory");
	return text;
}

int nr_job_make(struct nr_job *j, const struct nr_study *s, int64_t arm, int64_t seed, int64_t stage, struct nr_arena *arena,
	struct nr_error *err)
{
	const char *name = s->stage[stage].name;
	*j = (struct nr_job){ .study = s, .arm = arm, .seed = seed, .stage = stage };
	j->base = nr_study_path(s, arm, seed, NULL, arena);
	j->dir = nr_study_path(s, arm, seed, name, arena);
	if (j->dir) {
		j->mark = nr_arena_printf(arena, "%s.mark", j->dir);
		j->json = nr_arena_printf(arena, "%s.json", j->dir);
		j->log = nr_arena_printf(arena, "%s.log", j->dir);
		j->raw = nr_arena_printf(arena, "%s.out", j->dir);
	}
	if (!j->base || !j->mark || !j->json || !j->log || !j->raw)
		return nr_fail(err, NR_EMEMORY, "cannot describe a run", NULL, "out of memory");
	if (!(j->settings = describe(j, arena, err))) return err->code;
	nr_checksum_bytes(j->settings, strlen(j->settings), NR_SHA256, j->hash);
	return NR_OK;
}

/* ---- the marker -------------------------------------------------------------------------------------------------------------- */

int nr_mark_read(const struct nr_job *j, struct nr_stage_mark *m, struct nr_arena *arena, struct nr_error *err)
{
	*m = (struct nr_stage_mark){ .status = NR_MARK_NONE };
	if (access(j->mark, F_OK)) return NR_OK;
	json_t *o = nr_json_load(j->mark, err);
	if (!o) {
		nr_hint(err, "remove it to repeat the stage");
		return err->code;
	}
	const char *status = json_string_value(json_object_get(o, "status")), *text = json_string_value(json_object_get(o, "settings"));
	const char *fault = json_string_value(json_object_get(o, "fault")), *version = json_string_value(json_object_get(o, "version"));
	for (int i = 1; status && statuses[i]; i++)
		if (!strcmp(status, statuses[i])) m->status = (enum nr_mark_status)i;
	m->settings = nr_arena_strdup(arena, text ? text : "");
	m->fault = nr_arena_strdup(arena, fault ? fault : "");
	m->version = nr_arena_strdup(arena, version ? version : "");
	m->seconds = json_number_value(json_object_get(o, "seconds"));
	json_decref(o);
	return m->settings && m->fault && m->version ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot read", j->mark, "out of memory");
}

bool nr_mark_counts(const struct nr_stage_mark *m, const struct nr_study_how *how)
{
	return m->status == NR_MARK_DONE || (m->status == NR_MARK_DIVERGED && !how->retry);
}

int nr_mark_write(const struct nr_job *j, enum nr_mark_status status, double seconds, const char *fault, struct nr_error *err)
{
	struct nr_str s = { 0 };
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:f}", "status", statuses[status], "version", NR_VERSION, "hash", j->hash, "settings",
		j->settings, "seconds", seconds);
	json_t *why = o && fault ? json_string(fault) : NULL;
	if (why) json_object_set_new(o, "fault", why);
	int code = nr_json_add(&s, o, err);
	if (!code) code = nr_save_file(j->mark, nr_str_text(&s), s.len, err);
	nr_str_release(&s);
	return code;
}

/* The line of `text` that begins like `line` up to '='; NULL: none. */
static const char *same_setting(const char *text, const char *line)
{
	const size_t n = strcspn(line, "=\n") + 1;
	for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s == '\n')
		if (!strncmp(s, line, n)) return s;
	return NULL;
}

static bool equal_lines(const char *a, const char *b)
{
	const size_t n = strcspn(a, "\n");
	return n == strcspn(b, "\n") && !strncmp(a, b, n);
}

const char *nr_mark_difference(const struct nr_stage_mark *m, const struct nr_job *j, struct nr_arena *arena)
{
	const char *text = NULL;
	for (const char *s = j->settings; *s && !text; s += strcspn(s, "\n"), s += *s == '\n') {
		const char *old = same_setting(m->settings, s);
		const int n = (int)strcspn(s, "\n");
		if (!old) text = nr_arena_printf(arena, "%.*s is new", n, s);
		else if (!equal_lines(old, s)) text = nr_arena_printf(arena, "%.*s became %.*s", (int)strcspn(old, "\n"), old, n, s);
	}
	for (const char *s = m->settings; *s && !text; s += strcspn(s, "\n"), s += *s == '\n')
		if (!same_setting(j->settings, s)) text = nr_arena_printf(arena, "%.*s is gone", (int)strcspn(s, "\n"), s);
	return text ? text : "they differ";
}

int nr_job_set_aside(const struct nr_job *j, struct nr_error *err)
{
	const char *const files[] = { j->mark, j->json, j->log, j->raw, j->dir };
	char old[4096];
	int n = 1;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)       /* a number that none of them has yet */
		for (; snprintf(old, sizeof old, "%s.old%d", files[i], n), access(old, F_OK) == 0; n++) i = 0;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(old, sizeof old, "%s.old%d", files[i], n);
		if (rename(files[i], old) && errno != ENOENT)
			return nr_fail(err, NR_EIO, "cannot set aside", files[i], "%s", strerror(errno));
	}
	return NR_OK;
}
