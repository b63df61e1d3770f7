/* Reading a run folder: see runfolder.h. */
#include "report/runfolder.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum { MAX_BYTES = 1 << 30 };

/* ---- files ------------------------------------------------------------------------------------------------------------- */

/* NULL and an error if it cannot be read; ended by a zero byte that does not count. */
static char *load(const char *path, struct nr_arena *a, size_t *size, struct nr_error *err)
{
	FILE *f = nr_file_stream(path, err);
	long n = -1;
	if (!f) return NULL;
	if (!fseek(f, 0, SEEK_END)) n = ftell(f);
	if (n < 0 || n > MAX_BYTES) {
		nr_fail(err, NR_EIO, "cannot read", path, "%s", n > MAX_BYTES ? "it is larger than 1 GiB" : strerror(errno));
		fclose(f);
		return NULL;
	}
	char *text = nr_arena_alloc(a, (size_t)n + 1);
	rewind(f);
	if (!text) nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	else if ((*size = fread(text, 1, (size_t)n, f)) < (size_t)n && ferror(f)) {
		nr_fail(err, NR_EIO, "cannot read", path, "%s", strerror(errno));
		text = NULL;
	}
	fclose(f);
	return text;
}

static const char *path_in(const char *dir, const char *name, struct nr_arena *a)
{
	const char *path = nr_arena_printf(a, "%s/%s", dir, name);
	return path ? path : name;
}

static void note(struct nr_runfolder *r, const char *name, const struct nr_error *why)
{
	char text[1024];
	if (why->code == NR_EIO && strstr(why->detail, strerror(ENOENT))) nr_str_printf(&r->absent,
		"%s is missing\n", name);
	else nr_str_printf(&r->notes, "%s\n", nr_error_text(why, text, sizeof text));
}

static json_t *load_object(struct nr_runfolder *r, const char *dir, const char *name, struct nr_arena *a)
{
	struct nr_error why = { 0 };
	json_t *o = nr_json_load(path_in(dir, name, a), &why);
	if (o && !json_is_object(o)) {
		nr_fail(&why, NR_EFORMAT, "cannot read", name, "it is not a JSON object");
		json_decref(o);
		o = NULL;
	}
	if (!o) note(r, name, &why);
	return o;
}

int nr_columns_load(const char *path, struct nr_arena *a, struct nr_columns *c, struct nr_error *err)
{
	size_t size = 0;
	char *text = load(path, a, &size, err);
	return text ? nr_columns_parse(text, size, path, a, c, err) : err->code;
}

static void load_columns(struct nr_runfolder *r, const char *dir, const char *name, struct nr_arena *a, struct nr_columns *c)
{
	struct nr_error why = { 0 };
	if (!nr_columns_load(path_in(dir, name, a), a, c, &why)) return;
	*c = (struct nr_columns){ 0 };
	note(r, name, &why);
}

static int64_t be32(const unsigned char *b) { return (int64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3]; }

static void load_picture(struct nr_runfolder *r, const char *name, struct nr_picture_bytes *p, struct nr_arena *a)
{
	struct nr_error why = { 0 };
	size_t size = 0;
	const unsigned char *b = (const unsigned char *)load(path_in(r->dir, name, a), a, &size, &why);
	const bool png = b && size > 24 && !memcmp(b, "\x89PNG\r\n\x1a\n", 8) && !memcmp(b + 12, "IHDR", 4);
	if (b && !png) nr_fail(&why, NR_EFORMAT, "cannot read", name, "it is not a PNG file");
	if (png) *p = (struct nr_picture_bytes){ b, size, be32(b + 16), be32(b + 20) };
	else note(r, name, &why);
}

/* ---- events ------------------------------------------------------------------------------------------------------------ */

static void take_event(struct nr_runfolder *r, const json_t *e, struct nr_arena *a)
{
	const char *what = json_string_value(json_object_get(e, "event"));
	const json_t *seconds = json_object_get(e, "seconds"), *step = json_object_get(e, "step");
	if (!what) return;
	if (json_is_number(seconds)) r->seconds = json_number_value(seconds);
	if (json_is_integer(step)) r->step = (int64_t)json_integer_value(step);
	r->resumed += !strcmp(what, "resume");
	if (!strcmp(what, "resume") || !strcmp(what, "start")) r->status = "not finished";
	const char *status = json_string_value(json_object_get(e, "status"));
	if (!strcmp(what, "stop") && status) r->status = nr_arena_strdup(a, status);
	if (!strcmp(what, "warning")) {
		const char *text = json_string_value(json_object_get(e, "text"));
		nr_str_printf(&r->notes, "warning from the run: %s\n", text ? text : "(without a text)");
	}
}

static void load_events(struct nr_runfolder *r, struct nr_arena *a)
{
	struct nr_error why = { 0 };
	size_t size = 0;
	char *line = load(path_in(r->dir, "events.jsonl", a), a, &size, &why);
	r->status = line ? "not finished" : "unknown";
	if (!line) note(r, "events.jsonl", &why);
	for (char *end; line && (end = strchr(line, '\n')); line = end + 1) {
		json_t *e = nr_json_parse(line, (size_t)(end - line), "events.jsonl", NULL);
		take_event(r, e, a);
		json_decref(e);
	}
}

/* ---- the run ----------------------------------------------------------------------------------------------------------- */

static const char *last_part(const char *dir, struct nr_arena *a)
{
	char *copy = nr_arena_strdup(a, dir);
	size_t n = copy ? strlen(copy) : 0;
	while (n > 1 && copy[n - 1] == '/') copy[--n] = 0;
	const char *slash = copy ? strrchr(copy, '/') : NULL;
	return slash && slash[1] ? slash + 1 : copy ? copy : dir;
}

static void find_seed(struct nr_runfolder *r)
{
	const char *text = nr_config_find(&r->settings, "seed");
	const json_t *seed = json_object_get(r->env, "seed");
	r->seed = -1;
	if (json_is_integer(seed)) r->seed = (int64_t)json_integer_value(seed);
	else if (text && !nr_parse_int(text, &r->seed)) r->seed = -1;
}

static bool has(const char *dir, const char *name, struct nr_arena *a) { return !access(path_in(dir, name, a), F_OK); }

void nr_runfolder_add(struct nr_runfolder *r, const char *dir, struct nr_arena *a)
{
	if (!r->probe && has(dir, "probe.json", a)) r->probe = load_object(r, dir, "probe.json", a);
	if (!r->spectrum.count && has(dir, "spectrum.csv", a)) load_columns(r, dir, "spectrum.csv", a, &r->spectrum);
	if (r->analysis || !has(dir, "analysis.json", a)) return;
	r->analysis = load_object(r, dir, "analysis.json", a);
	const struct nr_part_told *p;
	const char *part;
	for (int i = 0; (p = nr_part_told(i, &part)); i++) {
		const char *file = p->points && json_object_get(r->analysis, part) ? nr_arena_printf(a, "%s.csv", part) : NULL;
		if (file) load_columns(r, dir, file, a, &r->points[i]);
	}
}

const struct nr_columns *nr_runfolder_points(const struct nr_runfolder *r, const char *part)
{
	const char *name;
	for (int i = 0; nr_part_told(i, &name); i++)
		if (!strcmp(name, part)) return &r->points[i];
	return NULL;
}

void nr_runfolder_add_log(struct nr_runfolder *r, const char *path, struct nr_arena *a)
{
	struct nr_error ignored = { 0 };
	size_t size = 0;
	const char *line = access(path, R_OK) ? NULL : load(path, a, &size, &ignored);
	for (; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (!strncmp(line, "$ norma ", 8)) nr_str_printf(&r->commands, "%.*s\n", (int)strcspn(line + 2, "\n"), line + 2);
}

int nr_runfolder_read(struct nr_runfolder *r, const char *dir, struct nr_arena *a, struct nr_error *err)
{
	size_t size = 0;
	*r = (struct nr_runfolder){ .dir = nr_arena_strdup(a, dir), .name = last_part(dir, a), .seconds = NAN };
	if (!r->dir) return nr_fail(err, NR_EMEMORY, "cannot read", dir, "out of memory");
	char *config = load(path_in(dir, "config.yaml", a), a, &size, err);
	if (!config) return nr_hint(err, "give the folder of a run, as in norma train --out");
	if (nr_config_parse(config, a, &r->settings)) return nr_fail(err, NR_EMEMORY, "cannot read", dir, "out of memory");
	load_events(r, a);
	r->env = load_object(r, dir, "env.json", a);
	load_columns(r, dir, "metrics.csv", a, &r->metrics);
	if (has(dir, "classes.json", a)) r->classes = load_object(r, dir, "classes.json", a);
	if (has(dir, "objects.json", a)) r->objects = load_object(r, dir, "objects.json", a);
	if (has(dir, "predictions.csv", a)) load_columns(r, dir, "predictions.csv", a, &r->predictions);
	if (has(dir, "layer_gradients.csv", a)) load_columns(r, dir, "layer_gradients.csv", a, &r->layer_gradients);
	if (has(dir, "lambda.csv", a)) load_columns(r, dir, "lambda.csv", a, &r->lambda);
	nr_runfolder_add(r, dir, a);
	nr_runfolder_add(r, path_in(dir, "analyze", a), a);
	const char *sample = nr_runfolder_env(r, "sample");
	const bool picture = (!sample || !strcmp(sample, "picture")) && !r->objects;    /* nothing else can be probed */
	if (!r->probe && picture) nr_str_add(&r->absent, "probe.json is missing\n");
	if (!r->spectrum.count && picture) nr_str_add(&r->absent, "spectrum.csv is missing\n");
	const bool attention = has(dir, "attention.png", a);
	if (attention) load_picture(r, "attention.png", &r->attention, a);
	if (!attention || has(dir, "reconstruction.png", a)) load_picture(r, "reconstruction.png", &r->reconstruction, a);
	if (has(dir, "objects.png", a)) load_picture(r, "objects.png", &r->drawn, a);
	find_seed(r);
	const double recorded = nr_runfolder_last(r, "seconds");
	if (recorded > r->seconds || isnan(r->seconds)) r->seconds = recorded;
	return NR_OK;
}

void nr_runfolder_release(struct nr_runfolder *r)
{
	json_decref(r->env);
	json_decref(r->probe);
	json_decref(r->analysis);
	json_decref(r->classes);
	json_decref(r->objects);
	nr_str_release(&r->notes);
	nr_str_release(&r->absent);
	nr_str_release(&r->commands);
	r->env = r->probe = r->analysis = r->classes = r->objects = NULL;
}

/* ---- looking things up ------------------------------------------------------------------------------------------------- */

const char *nr_runfolder_env(const struct nr_runfolder *r, const char *key)
{
	const char *text = json_string_value(json_object_get(r->env, key));
	return text && *text ? text : NULL;
}

char *nr_runfolder_header(const struct nr_runfolder *r, const char *name, struct nr_arena *a)
{
	const size_t n = strlen(name);
	for (const char *line = nr_runfolder_env(r, "run"); line && *line;) {
		const size_t length = strcspn(line, "\n");
		if (!strncmp(line, name, n) && line[n] == ' ') {
			const size_t skip = n + strspn(line + n, " ");
			return nr_arena_printf(a, "%.*s", (int)(length - skip), line + skip);
		}
		line += length + (line[length] == '\n');
	}
	return NULL;
}

double nr_runfolder_last(const struct nr_runfolder *r, const char *metric)
{
	const struct nr_column *c = nr_column_find(&r->metrics, metric);
	for (int64_t i = c ? r->metrics.rows : 0; i-- > 0;)
		if (c->given[i]) return c->value[i];
	return NAN;
}

/* The entry of one kind of features: by name in an object, or in a list of results that say theirs. */
static const json_t *probe_of(const json_t *probe, const char *features)
{
	const json_t *found = json_object_get(json_object_get(probe, "features"), features), *results = json_object_get(probe, "results");
	for (size_t i = 0; !found && i < json_array_size(results); i++) {
		const json_t *one = json_array_get(results, i);
		const char *name = json_string_value(json_object_get(one, "features"));
		if (name && !strcmp(name, features)) found = one;
	}
	return found;
}

double nr_runfolder_probe(const struct nr_runfolder *r, const char *features, const char *key)
{
	const json_t *one = probe_of(r->probe, features), *value = json_object_get(one, key);
	if (one && !value && !strcmp(key, "samples")) value = json_object_get(r->probe, key);  /* may be said once for all */
	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}
