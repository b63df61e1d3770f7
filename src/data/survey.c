/* See survey.h. Sums are made for each picture on its own and added in order: the same bits for any number of threads. */
#include "data/survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/save.h"
#include "base/str.h"
#include "data/listed.h"
#include "fetch/checksum.h"

enum { FULL = 20000,
	TOLD = 50,
	MANY = 2000,
	VERSION = 2 };

struct seen {
	double mean[3], square[3];
	int32_t h, w;
	char *why;
}; /* of one picture; h 0: it was not looked at */
struct survey {
	int64_t count, pictures, bad; /* files; those of the training that were measured; those that cannot be read */
	struct place {
		int8_t split;
		int32_t i;
	} * place;
	struct seen *seen;
	bool every; /* all are looked at, not some */
	char digest[65];
};

/* ---- the files ------------------------------------------------------------------------------------------------------------ */

static int no_memory(const struct nr_source *s, struct nr_error *err)
{
	return nr_fail(err, NR_EMEMORY, "cannot look at the pictures of", s->dir, "out of memory");
}

/* What tells one state of the folder from another: names, sizes and times of all files. */
static int list_files(const struct nr_source *s, struct survey *v, bool skip, struct nr_error *err)
{
	const struct nr_listed *l = s->own;
	struct nr_str all = { 0 }, path = { 0 };
	for (int k = 0; k < NR_SPLITS; k++) v->count += s->count[k];
	v->every = skip || v->count <= FULL;
	nr_str_printf(&all, "%d %d\n%s", VERSION, v->every, l->stamp ? l->stamp : "");
	v->place = malloc((size_t)(v->count + 1) * sizeof *v->place);
	v->seen = calloc((size_t)v->count + 1, sizeof *v->seen);
	for (int64_t k = 0, n = 0; k < NR_SPLITS && v->place && v->seen; k++)
		for (int64_t i = 0; i < s->count[k]; i++) {
			struct stat st = { 0 };
			v->place[n++] = (struct place){ (int8_t)k, (int32_t)i };
			path.len = 0;
			nr_str_printf(&path, "%s/%s", l->dir, l->split[k].path[i]);
			if (stat(nr_str_text(&path), &st)) st.st_size = -1;
			nr_str_printf(&all, "%d %s %lld %lld.%ld\n", (int)k, l->split[k].path[i], (long long)st.st_size,
				(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
		}
	const bool failed = !v->place || !v->seen || all.failed || path.failed;
	if (!failed) nr_checksum_bytes(nr_str_text(&all), all.len, NR_SHA256, v->digest);
	nr_str_release(&all);
	nr_str_release(&path);
	return failed ? no_memory(s, err) : NR_OK;
}

/* ---- looking -------------------------------------------------------------------------------------------------------------- */

static void look(const struct nr_source *s, const struct survey *v, int64_t n, struct nr_picture *p)
{
	struct seen *to = &v->seen[n];
	struct nr_error err = { 0 };
	if (nr_listed_get(s, (enum nr_split)v->place[n].split, v->place[n].i, p, &err)) {
		to->why = strdup(err.detail);
		return;
	}
	to->h = p->h, to->w = p->w;
	if (v->place[n].split != NR_TRAIN) return;
	const int64_t pixels = (int64_t)p->h * p->w;
	uint64_t one[3] = { 0 }, two[3] = { 0 };
	for (int64_t i = 0; i < pixels; i++)
		for (int k = 0; k < 3; k++) {
			const uint32_t value = p->pixels[3 * i + k];
			one[k] += value, two[k] += value * value;
		}
	for (int k = 0; k < 3; k++) {
		to->mean[k] = (double)one[k] / (double)pixels / 255;
		to->square[k] = (double)two[k] / (double)pixels / 65025;
	}
}

static void look_at_all(const struct nr_source *s, const struct survey *v)
{
	const int64_t some = v->every ? v->count : FULL;
	if (some > MANY)
		nr_log_line(NR_LOG_INFO, "looking at %lld of %lld pictures in '%s', once", (long long)some, (long long)v->count, s->dir);
#pragma omp parallel
	{
		struct nr_picture p = { 0 };
#pragma omp for schedule(dynamic, 4)
		for (int64_t i = 0; i < some; i++) look(s, v, (int64_t)((double)i / (double)some * (double)v->count), &p);
		nr_picture_release(&p);
	}
}

/* Each picture counts the same, whatever its size. */
static void measure(struct nr_source *s, struct survey *v)
{
	double mean[3] = { 0 }, square[3] = { 0 };
	int32_t h = 0, w = 0;
	bool one_size = true;
	for (int64_t i = 0; i < v->count; i++) {
		const struct seen *x = &v->seen[i];
		v->bad += x->why != NULL;
		if (!x->h) continue;
		one_size = one_size && (!h || (x->h == h && x->w == w));
		h = x->h, w = x->w;
		if (v->place[i].split != NR_TRAIN) continue;
		v->pictures++;
		for (int k = 0; k < 3; k++) mean[k] += x->mean[k], square[k] += x->square[k];
	}
	for (int k = 0; k < 3 && v->pictures; k++) {
		const double m = mean[k] / (double)v->pictures;
		s->mean[k] = (float)m;
		/* of pictures of one colour there is none, yet they can be scaled */
		s->std[k] = (float)fmax(sqrt(fmax(square[k] / (double)v->pictures - m * m, 0)), 1.0 / 255);
	}
	if (one_size) s->h = h, s->w = w;
}

/* ---- what was seen before --------------------------------------------------------------------------------------------------- */

static char *cache_path(const struct nr_source *s, const char *root)
{
	char hex[65], *full = realpath(s->dir, NULL);
	if (full) nr_checksum_bytes(full, strlen(full), NR_SHA256, hex);
	char *path = full ? nr_arena_printf(s->arena, "%s/folders/%.16s.json", root, hex) : NULL;
	free(full);
	return path;
}

static bool read_cache(struct nr_source *s, struct survey *v, const char *path)
{
	struct nr_error ignored = { 0 };
	json_t *j = path && !access(path, R_OK) ? nr_json_load(path, &ignored) : NULL;
	const char *digest = json_string_value(json_object_get(j, "digest"));
	const json_t *mean = json_object_get(j, "mean"), *std = json_object_get(j, "std"), *bad = json_object_get(j, "bad");
	const bool holds = digest && !strcmp(digest, v->digest) && json_array_size(mean) == 3 && json_array_size(std) == 3;
	for (size_t k = 0; holds && k < 3; k++) {
		s->mean[k] = (float)json_number_value(json_array_get(mean, k));
		s->std[k] = (float)json_number_value(json_array_get(std, k));
	}
	if (holds) {
		s->h = (int32_t)json_integer_value(json_object_get(j, "h"));
		s->w = (int32_t)json_integer_value(json_object_get(j, "w"));
	}
	for (size_t k = 0; holds && k < json_array_size(bad); k++) {
		const json_t *b = json_array_get(bad, k);
		const int64_t i = json_integer_value(json_object_get(b, "file"));
		const char *why = json_string_value(json_object_get(b, "why"));
		if (i < 0 || i >= v->count || !why || v->seen[i].why) continue;
		v->bad += (v->seen[i].why = strdup(why)) != NULL;
	}
	json_decref(j);
	return holds;
}

/* Without a place for it, the next one looks again. */
static void write_cache(const struct nr_source *s, const struct survey *v, const char *root, const char *path)
{
	struct nr_error ignored = { 0 };
	struct nr_str text = { 0 };
	json_t *bad = json_array();
	for (int64_t i = 0; i < v->count; i++)
		if (v->seen[i].why) json_array_append_new(bad, json_pack("{s:I, s:s}", "file", (json_int_t)i, "why", v->seen[i].why));
	json_t *j = json_pack("{s:s, s:s, s:[f,f,f], s:[f,f,f], s:i, s:i, s:I, s:o}", "folder", s->dir, "digest", v->digest, "mean",
		(double)s->mean[0], (double)s->mean[1], (double)s->mean[2], "std", (double)s->std[0], (double)s->std[1],
		(double)s->std[2], "h", s->h, "w", s->w, "measured", (json_int_t)v->pictures, "bad", bad);
	const char *dir = nr_arena_printf(s->arena, "%s/folders", root);
	if (path && dir && j && !nr_json_add(&text, j, &ignored) && !nr_folder_make(dir, &ignored))
		nr_save_file(path, nr_str_text(&text), text.len, &ignored);
	nr_str_release(&text);
}

/* ---- pictures that cannot be read ------------------------------------------------------------------------------------------- */

static const char *name_of(const struct nr_source *s, const struct survey *v, int64_t i, char *buf, size_t size)
{
	return nr_source_file(s, (enum nr_split)v->place[i].split, v->place[i].i, buf, size);
}

static int refuse(const struct nr_source *s, const struct survey *v, struct nr_error *err)
{
	char name[1024];
	int64_t told = 0, first = 0;
	while (!v->seen[first].why) first++;
	for (int64_t i = first; i < v->count && v->bad > 1; i++) {
		if (!v->seen[i].why || told++ >= TOLD) continue;
		nr_log_line(NR_LOG_ERROR, "cannot read '%s': %s", name_of(s, v, i, name, sizeof name), v->seen[i].why);
	}
	if (told > TOLD) nr_log_line(NR_LOG_ERROR, "and %lld more", (long long)(told - TOLD));
	if (v->bad > 1)
		nr_fail(err, NR_EFORMAT, "cannot use", s->dir, "%lld of %lld pictures cannot be read", (long long)v->bad,
			(long long)v->count);
	else
		nr_fail(err, NR_EFORMAT, "cannot read", name_of(s, v, first, name, sizeof name), "%s", v->seen[first].why);
	return nr_hint(err, "copy them again, or leave them out: --data '%s:bad=skip'", s->dir);
}

static void leave_out(struct nr_source *s, const struct survey *v)
{
	struct nr_listed *l = s->own;
	struct nr_str names = { 0 };
	char name[1024];
	int64_t kept[NR_SPLITS] = { 0 }, told = 0;
	for (int64_t i = 0; i < v->count; i++) {
		const int k = v->place[i].split;
		if (v->seen[i].why) {
			if (told++ < 3) nr_str_printf(&names, "%s'%s'", told > 1 ? ", " : "", name_of(s, v, i, name, sizeof name));
			continue;
		}
		l->split[k].path[kept[k]] = l->split[k].path[v->place[i].i];
		l->split[k].label[kept[k]++] = l->split[k].label[v->place[i].i];
	}
	memcpy(s->count, kept, sizeof kept);
	nr_log_line(NR_LOG_WARNING, "%lld pictures of '%s' cannot be read and are left out: %s%s", (long long)v->bad, s->dir,
		nr_str_text(&names), told > 3 ? ", ..." : "");
	nr_str_release(&names);
}

int nr_survey(struct nr_source *s, const char *root, bool skip, int64_t *left_out, struct nr_error *err)
{
	struct survey v = { 0 };
	int code = list_files(s, &v, skip, err);
	const char *path = code ? NULL : cache_path(s, root);
	if (!code && !read_cache(s, &v, path)) {
		look_at_all(s, &v);
		measure(s, &v);
		write_cache(s, &v, root, path);
	}
	if (!code && v.bad && !skip) code = refuse(s, &v, err);
	if (!code && v.bad) leave_out(s, &v);
	*left_out = v.bad;
	for (int64_t i = 0; v.seen && i < v.count; i++) free(v.seen[i].why);
	free(v.seen);
	free(v.place);
	return code;
}
