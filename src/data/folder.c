/* folder: pictures of one's own, a folder for each class. PATH/train/CLASS/..., with val and test beside train where they
 * exist; or PATH/CLASS/..., from which `val` takes a share, chosen by a hash of the file's name, so that a picture stays
 * where it is when others are added. Classes are numbered in the order of their names, as torchvision's
 * ImageFolder does. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/dataset.h"
#include "data/listed.h"

enum { MAX_DEPTH = 8 };
struct folder { char *path; double val; };
static const struct nr_option options[] = {
	NR_OPT_STRING(struct folder, path, NULL, "folder with train/CLASS/..., or CLASS/..."),
	NR_OPT_FLOAT(struct folder, val, 0, 0, 0.9,
		"share of the pictures in PATH/CLASS/... to use as the split val"), NR_OPT_END
};

struct names { char **item; size_t count, room; };

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_picture(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot && dot > name && (!strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg") || !strcasecmp(dot, ".png"));
}

static bool is_folder(const struct nr_source *s, const char *path)
{
	struct stat st;
	const char *full = nr_arena_printf(s->arena, "%s/%s", s->dir, path);
	return full && !stat(full, &st) && S_ISDIR(st.st_mode);
}

/* Names in a folder below s->dir, sorted, without those that begin with a dot. */
static int list(struct nr_source *s, const char *path, struct names *out, struct nr_error *err)
{
	const char *full = nr_arena_printf(s->arena, "%s/%s", s->dir, path);
	DIR *d = full ? opendir(full) : NULL;
	*out = (struct names){ 0 };
	if (!d) return nr_fail(err, NR_EIO, "cannot read", full ? full : path, "%s", strerror(errno));
	int e = NR_OK;
	for (struct dirent *f; !e && (f = readdir(d));) {
		if (*f->d_name == '.') continue;
		if (out->count == out->room) {
			out->room = out->room ? 2 * out->room : 256;
			char **more = realloc(out->item, out->room * sizeof *more);
			if (more) out->item = more;
			else e = nr_fail(err, NR_EMEMORY, "cannot read", full, "out of memory");
		}
		if (!e && !(out->item[out->count++] = nr_arena_strdup(s->arena, f->d_name)))
			e = nr_fail(err, NR_EMEMORY, "cannot read", full, "out of memory");
	}
	closedir(d);
	if (e) free(out->item), *out = (struct names){ 0 };
	else if (out->count) qsort(out->item, out->count, sizeof *out->item, by_text);
	return e;
}

/* FNV-1a, its upper 32 bits mixed once more, as a number in [0,1). */
static double hash(const char *name)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
	return (double)(h >> 32) * 0x1p-32;
}

struct walk { struct nr_source *s; enum nr_split split; double val; int32_t class; struct nr_error *err; };

static int add_pictures(struct walk *w, const char *path, const char *inner, int depth)
{
	struct names n;
	if (list(w->s, path, &n, w->err)) return w->err->code;
	int e = NR_OK;
	for (size_t i = 0; i < n.count && !e; i++) {
		const char *full = nr_arena_printf(w->s->arena, "%s/%s", path, n.item[i]);
		const char *name = nr_arena_printf(w->s->arena, "%s/%s", inner, n.item[i]);
		if (!full || !name) e = nr_fail(w->err, NR_EMEMORY, "cannot read", path, "out of memory");
		else if (is_picture(n.item[i]))
			e = nr_listed_add(w->s, w->val > 0 && hash(name) < w->val ? NR_VAL : w->split, full,
				w->class, w->err);
		else if (depth < MAX_DEPTH && is_folder(w->s, full)) e = add_pictures(w, full, name, depth + 1);
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
static int read_split(struct nr_source *s, const char *path, enum nr_split split, double val, struct nr_error *err)
{
	struct names n;
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
		struct walk w = { s, split, val, find_class(s, n.item[i]), err };
		const char *inner = nr_arena_printf(s->arena, "%s/%s", path, n.item[i]);
		if (w.class < 0) e = nr_fail(err, NR_EFORMAT, "cannot use", inner,
			"class '%s' is not in train", n.item[i]);
		else e = inner ? add_pictures(&w, inner, n.item[i], 0) : nr_fail(err, NR_EMEMORY, "cannot open",
			path, "out of memory");
	}
	free(n.item);
	return e;
}

static int open_folder(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	const struct folder *o = conf;
	struct stat st;
	const bool here = *o->path == '/' || (!stat(o->path, &st) && S_ISDIR(st.st_mode));
	s->dir = here ? o->path : nr_arena_printf(s->arena, "%s/%s", dir, o->path);
	s->channels = 3;
	if (!s->dir || !nr_listed_make(s, err)) return nr_fail(err, NR_EMEMORY, "cannot open", o->path, "out of memory");
	const bool splits = is_folder(s, "train");
	if (splits && o->val > 0 && is_folder(s, "val"))
		return nr_fail(err, NR_EVALUE, "cannot divide", s->dir,
			"it has a folder 'val': leave out the option val");
	if (read_split(s, splits ? "train" : ".", NR_TRAIN, o->val, err)) return err->code;
	if (splits && is_folder(s, "val") && read_split(s, "val", NR_VAL, 0, err)) return err->code;
	if (splits && is_folder(s, "test") && read_split(s, "test", NR_TEST, 0, err)) return err->code;
	if (!s->count[NR_TRAIN]) {
		nr_fail(err, NR_EFORMAT, "cannot open", s->dir, "there are no class folders with pictures");
		return nr_hint(err, "it needs PATH/train/CLASS/*.jpg or PATH/CLASS/*.jpg; also .jpeg and .png");
	}
	return NR_OK;
}

const struct nr_dataset nr_dataset_folder = {
	.name = "folder", .title = "your own pictures, one folder per class", .cite = "", .licence = "yours",
	.facts = "PATH/train/CLASS/*.jpg or PATH/CLASS/*.jpg, also PNG", .conf_size = sizeof(struct folder),
		.options = options,
	.open = open_folder, .get = nr_listed_get, .label = nr_listed_label,
};
