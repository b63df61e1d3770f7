/* folder: pictures of one's own, a folder for each class. PATH/train/CLASS/..., with val and test beside train where they
 * exist; or PATH/CLASS/..., from which `val` takes a share, chosen by a hash of the file's name, so that a picture stays
 * where it is when others are added; of a class of two or more at least one goes to each side. Classes are numbered in the
 * order of their names, as torchvision's ImageFolder does. survey.c looks at all pictures once. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/dataset.h"
#include "data/listed.h"
#include "data/names_in.h"
#include "data/survey.h"

enum { MAX_DEPTH = 8 };
enum { KINDS = 8 };
#define OWN_SHARE 0.1                           /* set apart if nothing else is said */
enum { FAIL, SKIP };
static const char *const when_bad[] = { "fail", "skip", NULL };
struct folder { char *path; double val; int32_t bad; };
static const struct nr_option options[] = {
	NR_OPT_STRING(struct folder, path, NULL, "folder with train/CLASS/..., or CLASS/..."),
	NR_OPT_FLOAT(struct folder, val, -1, -1, 0.9,
		"share of the training pictures to set apart as the split val; -1: 0.1 if there is neither val nor test"),
	NR_OPT_ENUM(struct folder, bad, "fail", when_bad, "pictures that cannot be read: fail names them all, skip leaves them out"),
	NR_OPT_END
};

/* Files that are no pictures, by their kind. */
struct others { int64_t count, of[KINDS]; char kind[KINDS][16]; int kinds; };

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void note_other(struct others *o, const char *name)
{
	const char *dot = strrchr(name, '.');
	char kind[16] = "no suffix";
	if (dot && strlen(dot) < sizeof kind)
		for (size_t i = 0; i <= strlen(dot); i++) kind[i] = (char)tolower((unsigned char)dot[i]);
	int k = 0;
	while (k < o->kinds && strcmp(o->kind[k], kind) != 0) k++;
	if (k == o->kinds && k < KINDS) memcpy(o->kind[o->kinds++], kind, sizeof kind);
	if (k < KINDS) o->of[k]++;
	o->count++;
}

static bool is_folder(const struct nr_source *s, const char *path)
{
	return nr_is_folder(nr_arena_printf(s->arena, "%s/%s", s->dir, path));
}

/* Names in a folder below s->dir. */
static int list(struct nr_source *s, const char *path, struct nr_names_in *out, struct nr_error *err)
{
	const char *full = nr_arena_printf(s->arena, "%s/%s", s->dir, path);
	return full ? nr_names_in(full, out, s->arena, err) : nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
}

struct walk {
	struct nr_source *s;
	enum nr_split split;
	double val;
	int32_t class;
	struct others *others;
	struct nr_error *err;
	struct { dev_t dev; ino_t ino; } above[MAX_DEPTH + 2];     /* the data set's folder, then those down to where the walk is */
};

/* Goes into a folder: false if a link led to where the walk came from, whose pictures would count again. */
static bool enter(struct walk *w, const char *path, int depth)
{
	struct stat st;
	const char *full = nr_arena_printf(w->s->arena, "%s/%s", w->s->dir, path);
	if (!full || stat(full, &st)) return true;              /* reading it says what is wrong */
	for (int i = 0; i < depth; i++)
		if (w->above[i].dev == st.st_dev && w->above[i].ino == st.st_ino) return false;
	w->above[depth].dev = st.st_dev;
	w->above[depth].ino = st.st_ino;
	return true;
}

static int add_pictures(struct walk *w, const char *path, const char *inner, int depth)
{
	struct nr_names_in n;
	if (!enter(w, path, depth + 1)) return NR_OK;
	if (list(w->s, path, &n, w->err)) return w->err->code;
	int e = NR_OK;
	for (size_t i = 0; i < n.count && !e; i++) {
		const char *full = nr_arena_printf(w->s->arena, "%s/%s", path, n.item[i]);
		const char *name = nr_arena_printf(w->s->arena, "%s/%s", inner, n.item[i]);
		if (!full || !name) e = nr_fail(w->err, NR_EMEMORY, "cannot read", path, "out of memory");
		else if (nr_is_picture_name(n.item[i]))
			e = nr_listed_add(w->s, w->val > 0 && nr_name_share(name) < w->val ? NR_VAL : w->split, full,
				w->class, w->err);
		else if (!is_folder(w->s, full)) note_other(w->others, n.item[i]);
		else if (depth < MAX_DEPTH) e = add_pictures(w, full, name, depth + 1);
	}
	free(n.item);
	return e;
}

static int32_t find_class(const struct nr_source *s, const char *name)
{
	char **found = bsearch(&name, s->class_name, (size_t)s->classes, sizeof *s->class_name, by_text);
	return found ? (int32_t)(found - s->class_name) : -1;
}

/* The folders below path are classes; those of the first split decide which there are. */
static int read_split(struct nr_source *s, const char *path, enum nr_split split, double val, struct others *others, struct nr_error *err)
{
	struct nr_names_in n;
	if (list(s, path, &n, err)) return err->code;
	size_t kept = 0;
	for (size_t i = 0; i < n.count; i++) {
		const char *inner = nr_arena_printf(s->arena, "%s/%s", path, n.item[i]);
		if (inner && is_folder(s, inner)) n.item[kept++] = n.item[i];
	}
	int e = NR_OK;
	if (!s->class_name) {
		s->class_name = nr_arena_alloc(s->arena, (kept + 1) * sizeof *s->class_name);
		s->classes = (int32_t)kept;
		if (!s->class_name || kept > 1000000) e = nr_fail(err, NR_EMEMORY, "cannot open", path,
			"too many classes");
		else if (kept) memcpy(s->class_name, n.item, kept * sizeof *n.item);
	}
	for (size_t i = 0; i < kept && !e; i++) {
		struct walk w = { s, split, val, find_class(s, n.item[i]), others, err, { { 0 } } };
		enter(&w, path, 0);
		const char *inner = nr_arena_printf(s->arena, "%s/%s", path, n.item[i]);
		if (w.class < 0) e = nr_fail(err, NR_EFORMAT, "cannot use", inner,
			"class '%s' is not in train", n.item[i]);
		else e = inner ? add_pictures(&w, inner, n.item[i], 0) : nr_fail(err, NR_EMEMORY, "cannot open",
			path, "out of memory");
	}
	free(n.item);
	return e;
}

/* ---- a split of its own -------------------------------------------------------------------------------------------------- */

/* Moves the picture of a class whose name has the least or the largest hash. */
static int move_one(struct nr_source *s, enum nr_split from, enum nr_split to, int32_t class, bool least, struct nr_error *err)
{
	struct nr_listed *l = s->own;
	int64_t best = -1;
	double at = 0;
	for (int64_t i = 0; i < s->count[from]; i++) {
		if (l->split[from].label[i] != class) continue;
		const char *inner = strchr(l->split[from].path[i], '/');
		const double h = nr_name_share(inner ? inner + 1 : l->split[from].path[i]);
		if (best < 0 || (least ? h < at : h > at)) best = i, at = h;
	}
	if (nr_listed_add(s, to, l->split[from].path[best], class, err)) return err->code;
	const size_t rest = (size_t)(--s->count[from] - best);
	memmove(l->split[from].path + best, l->split[from].path + best + 1, rest * sizeof *l->split[from].path);
	memmove(l->split[from].label + best, l->split[from].label + best + 1, rest * sizeof *l->split[from].label);
	return NR_OK;
}

/* Small classes may have been left without a picture on one side. */
static int even_out(struct nr_source *s, struct nr_error *err)
{
	const struct nr_listed *l = s->own;
	int64_t *have = calloc(2 * (size_t)s->classes + 1, sizeof *have), *set = have + s->classes;
	int e = have ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot divide", s->dir, "out of memory");
	for (int64_t i = 0; !e && i < s->count[NR_TRAIN]; i++) have[l->split[NR_TRAIN].label[i]]++;
	for (int64_t i = 0; !e && i < s->count[NR_VAL]; i++) set[l->split[NR_VAL].label[i]]++;
	for (int32_t k = 0; !e && k < s->classes; k++) {
		if (have[k] > 1 && !set[k]) e = move_one(s, NR_TRAIN, NR_VAL, k, true, err);
		if (!have[k] && set[k] > 1) e = move_one(s, NR_VAL, NR_TRAIN, k, false, err);
	}
	free(have);
	return e;
}

/* ---- what is said of it --------------------------------------------------------------------------------------------------- */

static void tell_others(const struct nr_source *s, const struct others *o)
{
	struct nr_str kinds = { 0 };
	for (int i = 0; i < o->kinds; i++) nr_str_printf(&kinds, "%s%s", i ? ", " : "", o->kind[i]);
	if (o->count) nr_log_line(NR_LOG_WARNING, "%lld %s of '%s' left out: %s",
		(long long)o->count, o->count > 1 ? "files" : "file", s->dir,
		nr_str_text(&kinds));
	nr_str_release(&kinds);
}

static int tell_empty(const struct nr_source *s, struct nr_error *err)
{
	const struct nr_listed *l = s->own;
	bool *have = calloc((size_t)s->classes + 1, sizeof *have);
	if (!have) return nr_fail(err, NR_EMEMORY, "cannot open", s->dir, "out of memory");
	for (int64_t i = 0; i < s->count[NR_TRAIN]; i++) have[l->split[NR_TRAIN].label[i]] = true;
	for (int32_t k = 0; k < s->classes; k++)
		if (!have[k]) nr_log_line(NR_LOG_WARNING, "class '%s' of '%s' has no training pictures", s->class_name[k], s->dir);
	free(have);
	return NR_OK;
}

static int read_all(struct nr_source *s, const struct folder *o, bool splits, double share, struct others *others, struct nr_error *err)
{
	if (read_split(s, splits ? "train" : ".", NR_TRAIN, share, others, err)) return err->code;
	if (splits && is_folder(s, "val") && read_split(s, "val", NR_VAL, 0, others, err)) return err->code;
	if (splits && is_folder(s, "test") && read_split(s, "test", NR_TEST, 0, others, err)) return err->code;
	if (!s->count[NR_TRAIN] && !s->count[NR_VAL]) {
		nr_fail(err, NR_EFORMAT, "cannot open", s->dir, "there are no class folders with pictures");
		return nr_hint(err, "it needs PATH/train/CLASS/*.jpg or PATH/CLASS/*.jpg; also .png, .webp and .tif");
	}
	return share > 0 && o->val < 0 ? even_out(s, err) : NR_OK;
}

static int open_folder(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	const struct folder *o = conf;
	struct stat st;
	struct others others = { 0 };
	const bool here = *o->path == '/' || (!stat(o->path, &st) && S_ISDIR(st.st_mode));
	s->dir = here ? o->path : nr_arena_printf(s->arena, "%s/%s", dir, o->path);
	s->channels = 3;
	if (!s->dir || !nr_listed_make(s, err)) return nr_fail(err, NR_EMEMORY, "cannot open", o->path, "out of memory");
	const bool splits = is_folder(s, "train"), divided = splits && (is_folder(s, "val") || is_folder(s, "test"));
	if (splits && o->val > 0 && is_folder(s, "val"))
		return nr_fail(err, NR_EVALUE, "cannot divide", s->dir,
			"it has a folder 'val': leave out the option val");
	const double share = o->val >= 0 ? o->val : divided ? 0 : OWN_SHARE;
	int64_t bad = 0;
	if (read_all(s, o, splits, share, &others, err) || nr_survey(s, dir, o->bad == SKIP, &bad, err) || tell_empty(s, err))
		return err->code;
	tell_others(s, &others);
	struct nr_str said = { 0 };
	if (share > 0)
		nr_str_printf(&said, "val is %lld of %lld pictures, chosen by their names (%.3g %% on average)",
			(long long)s->count[NR_VAL], (long long)(s->count[NR_TRAIN] + s->count[NR_VAL]), 100 * share);
	if (bad) nr_str_printf(&said, "%s%lld pictures that cannot be read are left out", said.len ? "; " : "", (long long)bad);
	s->said = said.len ? nr_str_keep(&said, s->arena) : NULL;
	return NR_OK;
}

const struct nr_dataset nr_dataset_folder = {
	.name = "folder", .title = "your own pictures, one folder per class", .cite = "", .licence = "yours",
	.facts = "PATH/CLASS/*.jpg or PATH/train/CLASS/*.jpg; also PNG, WebP, TIFF", .conf_size = sizeof(struct folder),
		.options = options,
	.open = open_folder, .get = nr_listed_get, .label = nr_listed_label,
};
