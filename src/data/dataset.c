/* The registry of data sets and the sources that are opened from it. */
#include "data/dataset.h"

#include <errno.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/registry.h"
#include "base/str.h"
#include "data/listed.h"
#include "data/plain_path.h"
#include "fetch/checksum.h"

#define DATASET(id) &nr_dataset_##id,
static const struct nr_dataset *const built_in[] = {
#include "data/datasets.def"
	NULL
};
#undef DATASET

static const char *const splits[] = { "train", "val", "test", "extra", NULL };

const struct nr_dataset *const *nr_datasets(void) { return NR_REGISTRY(NR_OF_DATASETS, nr_dataset, built_in); }

const char *nr_split_name(enum nr_split s) { return s >= 0 && s < NR_SPLITS ? splits[s] : "?"; }

int nr_split_find(const char *name, struct nr_error *err)
{
	for (int i = 0; splits[i]; i++)
		if (!strcmp(splits[i], name)) return i;
	const char *near = nr_nearest(name, splits);
	nr_fail(err, NR_ENAME, "no split", name, "splits are train, val, test and extra");
	return near ? nr_hint(err, "did you mean '%s'?", near) : NR_ENAME;
}

const struct nr_dataset *nr_dataset_find(const char *name, struct nr_error *err)
{
	struct nr_near near = { .word = name };
	for (const struct nr_dataset *const *d = nr_datasets(); *d; d++) {
		if (!strcmp((*d)->name, name)) return *d;
		nr_near_try(&near, (*d)->name);
	}
	nr_fail(err, NR_ENAME, "no data set", name, "there is no such data set");
	if (near.best) nr_hint(err, "did you mean '%s'?", near.best);
	else nr_hint(err, "`norma data list` shows them");
	return NULL;
}

/* ---- where data lie
 * --------------------------------------------------------------------------------------------------- */

const char *nr_data_root(const char *root, struct nr_arena *arena, struct nr_error *err)
{
	const char *env = getenv("NORMA_DATA"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *path = NULL;
	if (root && *root) path = nr_arena_strdup(arena, root);
	else if (env && *env) path = nr_arena_strdup(arena, env);
	else if (cache && *cache == '/') path = nr_arena_printf(arena, "%s/norma/data", cache);
	else if (home && *home) path = nr_arena_printf(arena, "%s/.cache/norma/data", home);
	else {
		nr_fail(err, NR_EVALUE, "no folder for data", NULL, "neither NORMA_DATA nor HOME is set");
		return NULL;
	}
	if (!path) nr_fail(err, NR_EMEMORY, "no folder for data", NULL, "out of memory");
	for (size_t n = path ? strlen(path) : 0; n > 1 && path[n - 1] == '/'; n--) path[n - 1] = 0;
	return path;
}

static bool holds(const struct nr_dataset *d, const char *dir)
{
	struct nr_str path = { 0 };
	nr_str_printf(&path, "%s/%s.gz", dir, d->files[0].path);
	bool there = !path.failed && !access(path.text, F_OK);
	if (!there && !path.failed) {
		path.text[path.len - 3] = 0;
		there = !access(path.text, F_OK);
	}
	nr_str_release(&path);
	return there;
}

const char *nr_dataset_dir(const struct nr_dataset *d, const char *root, struct nr_arena *arena)
{
	if (!d->folder || holds(d, root)) return nr_arena_strdup(arena, root);
	const char *dir = nr_arena_printf(arena, "%s/%s", root, d->folder);
	if (!dir || holds(d, dir)) return dir;
	for (const char *const *a = d->also; a && *a; a++) {
		dir = **a == '/' ? *a : nr_arena_printf(arena, "%s/%s", root, *a);
		if (dir && holds(d, dir)) return dir;
	}
	return NULL;
}

/* Size and sum of the contents of path.gz. */
static int check_packed(const char *path, bool sum, struct nr_file_report *r, struct nr_error *err)
{
	struct nr_bytes b;
	if (nr_bytes_gunzip(&b, path, (size_t)1 << 32, err)) return err ? (int)err->code : NR_EFORMAT;
	r->gz = true;
	r->bytes = (int64_t)b.size;
	if (sum) nr_checksum_bytes(b.data, b.size, NR_MD5, r->md5);
	nr_bytes_release(&b);
	return NR_OK;
}

int nr_data_file_check(const struct nr_data_file *f, const char *dir, bool sum, struct nr_file_report *r,
	struct nr_error *err)
{
	*r = (struct nr_file_report){ .state = NR_FILE_RIGHT };
	struct nr_str path = { 0 };
	struct stat st;
	int e = NR_OK;
	nr_str_printf(&path, "%s/%s", dir, f->path);
	if (!stat(nr_str_text(&path), &st) && S_ISREG(st.st_mode)) {
		r->bytes = st.st_size;
		if (sum) e = nr_checksum_file(path.text, NR_MD5, r->md5, err);
	} else {
		nr_str_add(&path, ".gz");
		if (stat(nr_str_text(&path), &st) || !S_ISREG(st.st_mode)) r->state = NR_FILE_MISSING;
		else e = check_packed(path.text, sum, r, err);
	}
	if (path.failed) e = nr_fail(err, NR_EMEMORY, "cannot check", f->path, "out of memory");
	nr_str_release(&path);
	if (r->state == NR_FILE_RIGHT && f->bytes && r->bytes != f->bytes) r->state = NR_FILE_SIZE;
	if (r->state == NR_FILE_RIGHT && f->md5 && *r->md5 && strcmp(r->md5, f->md5)) r->state = NR_FILE_SUM;
	return e;
}

/* A part of a data set trains as well as the whole, but nobody should do so without knowing. */
static void warn_if_partial(const struct nr_source *s)
{
	for (const struct nr_data_file *f = s->of->files; nr_log_wants(NR_LOG_WARNING) && f && f->path; f++) {
		struct stat st;
		struct nr_str path = { 0 };
		nr_str_printf(&path, "%s/%s", s->dir, f->path);
		const bool there = !stat(nr_str_text(&path), &st);
		if (!there) nr_str_add(&path, ".gz");
		const bool packed = !there && !stat(nr_str_text(&path), &st);
		nr_str_release(&path);
		if (packed || (there && (!f->bytes || st.st_size == f->bytes)) || (!there && f->optional)) continue;
		if (there)
			nr_log_line(NR_LOG_WARNING,
				"%s in '%s' is not the official set: %s has %lld bytes instead of %lld", s->of->name,
				s->dir, f->path, (long long)st.st_size, (long long)f->bytes);
		else nr_log_line(NR_LOG_WARNING, "%s in '%s' is not the official set: no %s", s->of->name,
			s->dir, f->path);
		return;
	}
}

/* ---- class names
 * ------------------------------------------------------------------------------------------------------ */

int nr_source_classes(struct nr_source *s, const char *const *names, struct nr_error *err)
{
	int32_t n = 0;
	while (names[n]) n++;
	s->class_name = nr_arena_alloc(s->arena, ((size_t)n + 1) * sizeof *s->class_name);
	if (!s->class_name) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	for (int32_t i = 0; i < n; i++)
		if (!(s->class_name[i] = nr_arena_strdup(s->arena, names[i])))
			return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	s->classes = n;
	return NR_OK;
}

int nr_source_classes_read(struct nr_source *s, const char *path, int32_t want, struct nr_error *err)
{
	struct nr_bytes b;
	if (nr_bytes_map(&b, path, err)) return err->code;
	size_t size = b.size;
	while (size && strchr(" \r\n", b.data[size - 1])) size--;
	int32_t n = 1;
	for (size_t i = 0; i < size; i++) n += b.data[i] == '\n';
	char *text = size < 1 << 20 ? nr_arena_alloc(s->arena, size + 1) : NULL;
	char **name = size < 1 << 20 ? nr_arena_alloc(s->arena, ((size_t)n + 1) * sizeof *name) : NULL;
	int e = NR_OK;
	if (!text || !name) {
		e = nr_fail(err, NR_ELIMIT, "cannot read", path, "%zu bytes are too many for a list of names", b.size);
	} else {
		if (size) memcpy(text, b.data, size);
		char *rest = text;
		for (int32_t i = 0; i < n && !e; i++) {
			name[i] = strsep(&rest, "\n");
			if (name[i]) name[i][strcspn(name[i], "\r")] = 0;
			if (!name[i] || !*name[i]) e = nr_fail(err, NR_EFORMAT, "cannot read", path,
				"line %d is not the name of a class", i + 1);
		}
		if (!e && want && n != want) e = nr_fail(err, NR_EFORMAT, "cannot read", path,
			"%d names instead of %d", n, want);
	}
	nr_bytes_release(&b);
	if (e) return e;
	s->class_name = name;
	s->classes = n;
	return NR_OK;
}

/* ---- sources
 * ---------------------------------------------------------------------------------------------------------- */

static int not_there(const struct nr_dataset *d, const char *root, struct nr_error *err)
{
	nr_fail(err, NR_EIO, "cannot open", d->name, "no '%s' in '%s' or '%s/%s'", d->files[0].path, root, root,
		d->folder);
	if (d->downloads) return nr_hint(err, "norma data get %s --root %s", d->name, root);
	return nr_hint(err, "name its folder by --data-root (norma data: --root), or set NORMA_DATA");
}

/* NAME:key=value, or a path: the set, the value of its option path (NULL: it is among the options), and the options. */
static const struct nr_dataset *understand(const char *text, const char **path, const char **options, struct nr_arena *arena,
	struct nr_error *err)
{
	const char *colon = strchr(text, ':');
	char *name = nr_arena_strdup(arena, text);
	struct nr_error unknown = { 0 };
	if (!name) {
		nr_fail(err, NR_EMEMORY, "cannot open", text, "out of memory");
		return NULL;
	}
	if (colon) name[colon - text] = 0;
	*path = NULL;
	*options = colon ? colon + 1 : "";
	const struct nr_dataset *d = nr_dataset_find(name, &unknown);
	if (d) return d;
	d = nr_plain_path(text, path, options, arena, err);
	if (d || err->code) return d;
	*err = unknown;
	if (strpbrk(text, "/.")) {                      /* meant as a path, it seems */
		*err = (struct nr_error){ 0 };
		nr_fail(err, NR_ENAME, "no data set", text, "there is no such data set, file or folder");
		nr_hint(err, "your own: folder:path=DIR, text:path=FILE, molecules:path=FILE.csv; `norma data list` shows the others");
	}
	return NULL;
}

const struct nr_dataset *nr_dataset_of(const char *text, struct nr_error *err)
{
	const char *path, *options;
	struct nr_error own = { 0 };
	struct nr_arena *arena = nr_arena_make();
	const struct nr_dataset *d = arena ? understand(text, &path, &options, arena, err ? err : &own) : NULL;
	nr_arena_free(arena);
	return d;
}

static int fill(struct nr_source *s, const char *text, const char *root, struct nr_error *err)
{
	static const struct nr_option none[] = { NR_OPT_END };
	const char *path, *options;
	if (!(s->of = understand(text, &path, &options, s->arena, err))) return err->code;
	const struct nr_dataset *d = s->of;
	void *conf = nr_arena_alloc(s->arena, d->conf_size ? d->conf_size : 1);
	if (!conf || !(root = nr_data_root(root, s->arena, err)))
		return nr_fail(err, NR_EMEMORY, "cannot open", text, "out of memory");
	const struct nr_option *table = d->options ? d->options : none;
	nr_option_defaults(table, conf);
	if (nr_option_parse(table, conf, options, s->arena, err)) return err->code;
	if (path && nr_option_set(table, conf, "path", path, s->arena, err)) return err->code;
	for (const struct nr_option *o = table; o->name; o++) {
		const char *const *given = (const void *)((const char *)conf + o->offset);
		if (!o->text && o->type == NR_TSTRING && (!*given || !**given)) {
			nr_fail(err, NR_EVALUE, "cannot open", d->name, "option '%s' is missing", o->name);
			return nr_hint(err, "write %s:%s=...", d->name, o->name);
		}
	}
	if (!(s->dir = nr_dataset_dir(d, root, s->arena))) return not_there(d, root, err);
	if (d->open(s, s->dir, conf, err)) return err->code;
	if (d->folder) warn_if_partial(s);
	return NR_OK;
}

int nr_source_open(struct nr_source **out, const char *text, const char *root, struct nr_error *err)
{
	struct nr_error own = { 0 };
	struct nr_error *slot = err ? err : &own;
	struct nr_arena *arena = nr_arena_make();
	struct nr_source *s = arena ? nr_arena_alloc(arena, sizeof *s) : NULL;
	*out = NULL;
	if (!s) {
		nr_arena_free(arena);
		return nr_fail(slot, NR_EMEMORY, "cannot open", text, "out of memory");
	}
	s->arena = arena;
	const int e = fill(s, text, root, slot) ? (int)slot->code : NR_OK;
	if (e) nr_source_close(s);
	else *out = s;
	return e;
}

void nr_source_close(struct nr_source *s)
{
	if (!s) return;
	if (s->of && s->of->close) s->of->close(s);
	nr_arena_free(s->arena);
}

int nr_source_expect(const struct nr_source *s, enum nr_kind kind, struct nr_error *err)
{
	static const char *const names[] = { "pictures", "texts", "graphs" }, *const commands[] = { "train", "simcse", "graph" };
	if (s->of->kind == kind) return NR_OK;
	nr_fail(err, NR_EVALUE, "cannot use", s->of->name, "its samples are %s, but %s are needed", names[s->of->kind], names[kind]);
	return nr_hint(err, "`norma %s` takes them", commands[s->of->kind]);
}

const char *nr_source_text(const struct nr_source *s, enum nr_split split, int64_t i, int32_t column)
{
	const bool there = s->of->text && split >= 0 && split < NR_SPLITS && i >= 0 && i < s->count[split] &&
		column >= 0 && column < s->columns;
	return there ? s->of->text(s, split, i, column) : NULL;
}

struct nr_pixel_stats nr_source_pixel_stats(const struct nr_source *s)
{
	return (struct nr_pixel_stats){ s->channels, { s->mean[0], s->mean[1], s->mean[2] }, { s->std[0], s->std[1], s->std[2] } };
}

int32_t nr_source_label(const struct nr_source *s, enum nr_split split, int64_t i)
{
	return split >= 0 && split < NR_SPLITS && i >= 0 && i < s->count[split] && s->of->label ? s->of->label(s, split, i) : -1;
}

double nr_source_value(const struct nr_source *s, enum nr_split split, int64_t i)
{
	return split >= 0 && split < NR_SPLITS && i >= 0 && i < s->count[split] && s->of->value ? s->of->value(s, split, i) : NAN;
}

const struct nr_objects *nr_source_objects(const struct nr_source *s, enum nr_split split, int64_t i)
{
	return split >= 0 && split < NR_SPLITS && i >= 0 && i < s->count[split] && s->of->objects ? s->of->objects(s, split, i) : NULL;
}

int nr_source_map(const struct nr_source *s, enum nr_split split, int64_t i, const struct nr_picture *of, struct nr_picture *map,
	struct nr_error *err)
{
	char file[1024];
	if (!s->of->map) {
		nr_fail(err, NR_EVALUE, "cannot use", s->of->name, "its pictures have no label maps, a class for every pixel");
		return nr_hint(err, "camvid and ade20k have, and your own: labelmaps:path=DIR");
	}
	if (split < 0 || split >= NR_SPLITS || i < 0 || i >= s->count[split])
		return nr_fail(err, NR_EVALUE, "cannot read", s->of->name, "no label map %lld in split %s", (long long)i,
			nr_split_name(split));
	if (s->of->map(s, split, i, map, err)) return err ? (int)err->code : NR_EFORMAT;
	if (!of || (map->h == of->h && map->w == of->w)) return NR_OK;
	return nr_fail(err, NR_ESHAPE, "cannot use the label map of", nr_source_file(s, split, i, file, sizeof file),
		"it has %d x %d pixels, the picture %d x %d", map->w, map->h, of->w, of->h);
}

int nr_source_get(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p,
	int32_t *label, struct nr_error *err)
{
	if (split < 0 || split >= NR_SPLITS || i < 0 || i >= s->count[split])
		return nr_fail(err, NR_EVALUE, "cannot read", s->of->name,
			"no picture %lld in split %s of %lld", (long long)i,
			nr_split_name(split), (long long)(split >= 0 && split < NR_SPLITS ? s->count[split] : 0));
	if (!s->of->get && nr_source_expect(s, NR_PICTURES, err)) return err ? (int)err->code : NR_EVALUE;
	if (label) *label = s->of->label(s, split, i);
	return s->of->get(s, split, i, p, err);
}
