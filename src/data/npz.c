/* npz: pictures and labels as arrays in an NPZ file. Pictures are bytes (N,h,w), (N,h,w,1 or 3) or (N,1 or
 * 3,h,w), labels whole
 * numbers (N) or (N,1). Without names given, those of common files are tried for each split: x_train, y_train (Keras),
 * train_images, train_labels (MedMNIST), x, y, images, labels. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/dataset.h"
#include "data/npy.h"
#include "data/raw.h"

struct npz { char *path, *images, *labels; int64_t column, scale, classes; };
static const struct nr_option options[] = {
	NR_OPT_STRING(struct npz, path, NULL, "the .npz file"),
	NR_OPT_STRING(struct npz, images, "", "name of the training pictures; empty: one of the usual names"),
	NR_OPT_STRING(struct npz, labels, "", "name of the training labels; empty: one of the usual names"),
	NR_OPT_INT(struct npz, column, 0, 0, 1000, "column of the labels (N,columns)"),
	NR_OPT_INT(struct npz, scale, 1, 1, 255, "factor for pixels: 255 for values from 0 to 1"),
	NR_OPT_INT(struct npz, classes, 0, 0, 10000000, "number of classes; 0: the largest label plus 1"), NR_OPT_END
};

struct arrays { struct nr_raw raw; struct nr_npy x[NR_SPLITS]; };    /* raw first: nr_raw_get sees it */

static const char *const picture_names[NR_SPLITS][6] = {
	{ "x_train", "train_images", "x", "images", "imgs", NULL }, { "x_val", "val_images", NULL }, { "x_test",
		"test_images", NULL }, { NULL }
};
static const char *const label_names[NR_SPLITS][6] = {
	{ "y_train", "train_labels", "y", "labels", "latents_classes", NULL }, { "y_val", "val_labels", NULL },
		{ "y_test", "test_labels", NULL },
	{ NULL }
};

static void add_name(void *arg, const char *name)
{
	struct nr_str *s = arg;
	nr_str_printf(s, "%s%s", s->len ? ", " : "", name);
}

static int no_array(const char *path, const char *what, struct nr_error *err)
{
	struct nr_str all = { 0 };
	if (!nr_npz_names(path, add_name, &all, err)) {
		nr_fail(err, NR_EFORMAT, "cannot read", path,
			"there is no array of %s; it has: %s", what, nr_str_text(&all));
		nr_hint(err, "npz:path=...,images=NAME,labels=NAME");
	}
	nr_str_release(&all);
	return err->code;
}

/* The first of the names that is there; *found NULL: none. */
static int read_first(struct nr_npy *n, const char *path, const char *own, const char *const *names,
	const char **found, struct nr_error *err)
{
	const char *const only[] = { own, NULL };
	*found = NULL;
	for (const char *const *name = own && *own ? only : names; *name; name++) {
		bool there;
		if (nr_npz_read(n, path, *name, &there, err)) return err->code;
		if (!there) continue;
		*found = *name;
		break;
	}
	return NR_OK;
}

/* Sizes and strides of (N,h,w), (N,h,w,c) or (N,c,h,w). */
static int set_shape(struct nr_source *s, const struct nr_st_tensor *x, const char *name, struct nr_error *err)
{
	struct arrays *o = s->own;
	const int64_t *d = x->shape;
	const bool last = x->nd == 4 && (d[3] == 1 || d[3] == 3), first = x->nd == 4 && !last && (d[1] == 1 || d[1] == 3);
	if ((x->dtype != NR_ST_U8 && x->dtype != NR_ST_BOOL) || !(x->nd == 3 || last || first)) {
		nr_fail(err, NR_EFORMAT, "cannot use", name,
			"it is not an array of bytes (N,h,w), (N,h,w,c) or (N,c,h,w) with 1 or 3 channels");
		return nr_hint(err, "save (255 * x).astype('uint8')");
	}
	const int64_t c = last ? d[3] : first ? d[1] : 1, h = d[first ? 2 : 1], w = d[first ? 3 : 2];
	if (d[0] < 1 || d[0] > INT32_MAX || h < 1 || w < 1 || h > 65535 || w > 65535)
		return nr_fail(err, NR_EFORMAT, "cannot use", name, "%lld pictures of %lld x %lld",
			(long long)d[0], (long long)h, (long long)w);
	const int64_t sk = first ? h * w : 1, sx = first ? 1 : c;
	if (s->h && (h != s->h || w != s->w || c != s->channels || sk != o->raw.sk || sx != o->raw.sx))
		return nr_fail(err, NR_EFORMAT, "cannot use", name,
			"its pictures have another shape than those of another split");
	s->h = (int32_t)h;
	s->w = (int32_t)w;
	s->channels = (int32_t)c;
	o->raw.sk = sk;
	o->raw.sx = sx;
	o->raw.sy = first ? w : w * c;
	return NR_OK;
}

static int read_labels(struct nr_source *s, enum nr_split split, const struct nr_st_tensor *y,
	const struct npz *c, const char *name,
	struct nr_error *err)
{
	struct arrays *o = s->own;
	const int64_t n = s->count[split], columns = y->nd == 2 ? y->shape[1] : 1, all = nr_st_elements(y);
	if (y->nd < 1 || y->nd > 2 || y->shape[0] != n || c->column >= columns)
		return nr_fail(err, NR_EFORMAT, "cannot use", name,
			"it is not an array of %lld labels, or has no column %lld", (long long)n,
			(long long)c->column);
	int64_t *value = malloc((size_t)all * sizeof *value);
	int32_t *label = nr_arena_alloc(s->arena, (size_t)n * sizeof *label);
	int e = value && label ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot read", name, "out of memory");
	struct nr_st_tensor named = *y;
	named.name = name;
	if (!e) e = nr_st_to_i64(&named, value, all, err);
	const int64_t last = c->classes ? c->classes : 10000000;
	for (int64_t i = 0; i < n && !e; i++) {
		const int64_t v = value[i * columns + c->column];
		if (v < 0 || v >= last)
			e = nr_fail(err, NR_EFORMAT, "cannot use", name,
				"label %lld of picture %lld is not from 0 to %lld", (long long)v, (long long)i,
				(long long)last - 1);
		label[i] = (int32_t)v;
		if (!e && v >= s->classes) s->classes = (int32_t)v + 1;
	}
	free(value);
	o->raw.split[split].label = label;
	return e;
}

static int read_split(struct nr_source *s, const struct npz *c, const char *path, enum nr_split split,
	struct nr_error *err)
{
	struct arrays *o = s->own;
	const bool train = split == NR_TRAIN;
	const char *x_name, *y_name;
	if (read_first(&o->x[split], path, train ? c->images : NULL, picture_names[split], &x_name,
		err)) return err->code;
	if (!x_name) return train ? no_array(path, "pictures", err) : NR_OK;
	const struct nr_st_tensor *x = &o->x[split].array;
	if (set_shape(s, x, x_name, err)) return err->code;
	const size_t stride = (size_t)s->h * (size_t)s->w * (size_t)s->channels;
	if (nr_raw_add(s, split, (struct nr_raw_part){ x->data, stride, x->shape[0] }, err)) return err->code;
	struct nr_npy y;
	if (read_first(&y, path, train ? c->labels : NULL, label_names[split], &y_name, err)) return err->code;
	if (!y_name) return no_array(path, "labels", err);
	const int e = read_labels(s, split, &y.array, c, y_name, err);
	nr_npy_close(&y);
	return e;
}

static int open_npz(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	const struct npz *c = conf;
	struct stat st;
	const char *path = *c->path == '/' || !stat(c->path, &st) ? c->path : nr_arena_printf(s->arena, "%s/%s",
		dir, c->path);
	struct arrays *o = s->own = nr_arena_alloc(s->arena, sizeof *o);
	if (!path || !o) return nr_fail(err, NR_EMEMORY, "cannot open", c->path, "out of memory");
	s->dir = path;
	o->raw.scale = (int32_t)c->scale;
	for (enum nr_split i = NR_TRAIN; i <= NR_TEST; i++)
		if (read_split(s, c, path, i, err)) return err->code;
	if (c->classes) s->classes = (int32_t)c->classes;
	return NR_OK;
}

static void close_npz(struct nr_source *s)
{
	struct arrays *o = s->own;
	for (int i = 0; o && i < NR_SPLITS; i++) nr_npy_close(&o->x[i]);
}

const struct nr_dataset nr_dataset_npz = {
	.name = "npz", .title = "your own NumPy arrays", .cite = "", .licence = "yours",
	.facts = "x and y, x_train and y_train, train_images and train_labels", .conf_size = sizeof(struct npz),
	.options = options, .open = open_npz, .get = nr_raw_get, .label = nr_raw_label, .close = close_npz,
};
