/* Tiny-ImageNet (CS231n, Stanford 2015): train/WNID/images/WNID_K.JPEG; val/images with
 * val/val_annotations.txt; the number of a
 * class is the rank of its wnid in sorted order, as torchvision's ImageFolder counts. Whatever wnids.txt lists
 * is the set. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "data/listed.h"

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* WNID_K.JPEG by K, so that the order does not depend on the file system. */
static int by_length_then_text(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	const size_t n = strlen(x), m = strlen(y);
	return n != m ? (n < m ? -1 : 1) : strcmp(x, y);
}

static int read_class(struct nr_source *s, const char *wnid, int32_t class, struct nr_error *err)
{
	enum { MOST = 100000 };
	const char *path = nr_arena_printf(s->arena, "%s/train/%s/images", s->dir, wnid);
	DIR *d = path ? opendir(path) : NULL;
	if (!d) return nr_fail(err, NR_EIO, "cannot read", path, "%s", strerror(errno));
	char **name = NULL;
	size_t n = 0, room = 0;
	int e = NR_OK;
	for (struct dirent *f; !e && (f = readdir(d));) {
		if (*f->d_name == '.') continue;
		if (n == room) {
			room = room ? 2 * room : 512;
			char **more = realloc(name, room * sizeof *name);
			if (more) name = more;
			if (!more || n > MOST) e = nr_fail(err, NR_ELIMIT, "cannot read", path, "too many files");
		}
		if (!e && !(name[n++] = nr_arena_printf(s->arena, "train/%s/images/%s", wnid, f->d_name)))
			e = nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	}
	closedir(d);
	if (!e && !n) e = nr_fail(err, NR_EFORMAT, "cannot read", path, "no pictures in it");
	if (!e) qsort(name, n, sizeof *name, by_length_then_text);
	for (size_t i = 0; i < n && !e; i++) e = nr_listed_add(s, NR_TRAIN, name[i], class, err);
	free(name);
	return e;
}

static int read_val(struct nr_source *s, char **wnid, struct nr_error *err)
{
	const char *path = nr_arena_printf(s->arena, "%s/val/val_annotations.txt", s->dir);
	char **line;
	int64_t *number, n;
	if (!path) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	if (nr_listed_lines(s, path, &line, &number, &n, err)) return err->code;
	for (int64_t i = 0; i < n; i++) {
		const char *file = strsep(&line[i], "\t"), *id = line[i] ? strsep(&line[i], "\t") : NULL;
		if (!id || !*file || strchr(file, '/'))
			return nr_fail(err, NR_EFORMAT, "cannot read", path,
				"line %lld is not a file name, a tab and a wnid",
				(long long)number[i]);
		char **found = bsearch(&id, wnid, (size_t)s->classes, sizeof *wnid, by_text);
		if (!found) return nr_fail(err, NR_EFORMAT, "cannot read", path,
			"line %lld: wnid '%s' is not in wnids.txt", (long long)number[i], id);
		const char *picture = nr_arena_printf(s->arena, "val/images/%s", file);
		if (!picture || nr_listed_add(s, NR_VAL, picture, (int32_t)(found - wnid), err))
			return nr_fail(err, NR_EMEMORY, "cannot open", path, "out of memory");
	}
	return NR_OK;
}

/* Names from words.txt where it has them, "n01443537 goldfish, Carassius auratus" cut at the first comma. */
static int read_words(struct nr_source *s, char **wnid, struct nr_error *err)
{
	const char *path = nr_arena_printf(s->arena, "%s/words.txt", s->dir);
	char **line;
	int64_t *number, n;
	struct nr_error none = { 0 };
	s->class_name = nr_arena_alloc(s->arena, ((size_t)s->classes + 1) * sizeof *s->class_name);
	if (!path || !s->class_name) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	memcpy(s->class_name, wnid, (size_t)s->classes * sizeof *wnid);
	if (nr_listed_lines(s, path, &line, &number, &n, &none)) return NR_OK;    /* wnids do as names */
	for (int64_t i = 0; i < n; i++) {
		const char *id = strsep(&line[i], "\t");
		char **found = line[i] ? bsearch(&id, wnid, (size_t)s->classes, sizeof *wnid, by_text) : NULL;
		if (found) line[i][strcspn(line[i], ",")] = 0, s->class_name[found - wnid] = line[i];
	}
	return NR_OK;
}

static int open_tiny(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	(void)conf;
	const char *path = nr_arena_printf(s->arena, "%s/wnids.txt", dir);
	char **wnid;
	int64_t *number, n;
	if (!path) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	if (nr_listed_lines(s, path, &wnid, &number, &n, err)) return err->code;
	if (n < 1 || n > 100000) return nr_fail(err, NR_EFORMAT, "cannot read", path, "%lld classes", (long long)n);
	for (int64_t i = 0; i < n; i++)
		if (strlen(wnid[i]) != 9 || *wnid[i] != 'n' || strspn(wnid[i] + 1, "0123456789") != 8)
			return nr_fail(err, NR_EFORMAT, "cannot read", path,
				"line %lld is not a wnid such as n01443537", (long long)number[i]);
	s->classes = (int32_t)n;
	s->channels = 3;
	s->h = s->w = 64;
	memcpy(s->mean, (const float[]){ .4802f, .4481f, .3975f }, sizeof s->mean);
	memcpy(s->std, (const float[]){ .2770f, .2691f, .2821f }, sizeof s->std);
	qsort(wnid, (size_t)n, sizeof *wnid, by_text);
	for (int32_t i = 0; i < s->classes; i++) {
		if (i && !strcmp(wnid[i], wnid[i - 1])) return nr_fail(err, NR_EFORMAT, "cannot read", path,
			"%s occurs twice", wnid[i]);
		if (read_class(s, wnid[i], i, err)) return err->code;
	}
	return read_val(s, wnid, err) || read_words(s, wnid, err) || nr_listed_probe(s, err) ? (int)err->code : NR_OK;
}

static const struct nr_data_file files[] = { { .path = "wnids.txt" }, { .path = "words.txt", .optional = true },
	{ .path = "val/val_annotations.txt" }, { 0 } };
static const char *const also[] = { "tiny-imagenet-20", "tiny-imagenet", NULL };
static const struct nr_download downloads[] = {
	{ .from = "official", .url = "http://cs231n.stanford.edu/tiny-imagenet-200.zip", .file = "tiny-imagenet-200.zip",
	  .md5 = "90528d7ca1a48142e341f4ef8d21d0de", .bytes = 248100043, .inside = "tiny-imagenet-200" },
	{ 0 }
};

const struct nr_dataset nr_dataset_tiny_imagenet = {
	.name = "tiny-imagenet", .title = "200 classes of ImageNet, made small",
		.cite = "CS231n, Stanford 2015; arXiv:1409.0575",
	.licence = "ImageNet's: non-commercial research", .facts = "100000 + 10000 val, 64 x 64 JPEG, 200 classes",
	.folder = "tiny-imagenet-200", .also = also, .files = files, .downloads = downloads, .open = open_tiny,
		.get = nr_listed_get,
	.label = nr_listed_label,
};
