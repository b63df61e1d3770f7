/* SVHN, cropped digits (Netzer et al. 2011, http://ufldl.stanford.edu/housenumbers/): MAT v5 with X of 32 x 32
 * x 3 x N bytes, rows
 * running fastest, and y of N x 1 numbers 1..10, where 10 is the digit 0. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "data/mat.h"
#include "data/raw.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, PIXELS = 3 * PLANE, MOST = 1000000 };

struct svhn { struct nr_raw raw; struct nr_mat x[NR_SPLITS]; };    /* raw first: nr_raw_get sees it */

static int read_labels(struct nr_source *s, enum nr_split split, int64_t n, const char *path, struct nr_error *err)
{
	struct nr_mat y;
	if (nr_mat_read(&y, path, "y", MOST, err)) return err->code;
	uint8_t *label = malloc((size_t)n);
	int e = label ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot open", path, "out of memory");
	if (!e && y.count != n)
		e = nr_fail(err, NR_EFORMAT, "cannot read", path, "%lld labels for %lld pictures",
			(long long)y.count, (long long)n);
	for (int64_t i = 0; i < n && !e; i++) {
		const double v = nr_mat_at(&y, i);
		if (!(v >= 1 && v <= 10) || v != (double)(int)v)
			e = nr_fail(err, NR_EFORMAT, "cannot read", path,
				"label %g of picture %lld is not from 1 to 10", v, (long long)i);
		else label[i] = (uint8_t)((int)v % 10);
	}
	if (!e) e = nr_raw_labels(s, split, label, 1, n, 0, path, err);
	free(label);
	nr_mat_release(&y);
	return e;
}

static int read_split(struct nr_source *s, enum nr_split split, const char *path, struct nr_error *err)
{
	struct svhn *o = s->own;
	struct nr_mat *x = &o->x[split];
	if (nr_mat_read(x, path, "X", (int64_t)MOST * PIXELS, err)) return err->code;
	if (!nr_mat_bytes(x) || x->rank < 3 || x->dim[0] != SIDE || x->dim[1] != SIDE || x->dim[2] != 3)
		return nr_fail(err, NR_EFORMAT, "cannot read", path, "X is not an array of 32 x 32 x 3 x N bytes");
	if (nr_raw_add(s, split, (struct nr_raw_part){ nr_mat_bytes(x), PIXELS, x->dim[3] }, err)) return err->code;
	return read_labels(s, split, x->dim[3], path, err);
}

static int open_svhn(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	static const char *const names[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", NULL };
	(void)conf;
	struct svhn *o = s->own = nr_arena_alloc(s->arena, sizeof *o);
	if (!o) return nr_fail(err, NR_EMEMORY, "cannot open", dir, "out of memory");
	if (nr_source_classes(s, names, err)) return err->code;
	s->h = s->w = SIDE;
	s->channels = 3;
	memcpy(s->mean, (const float[]){ .4377f, .4438f, .4728f }, sizeof s->mean);
	memcpy(s->std, (const float[]){ .1980f, .2010f, .1970f }, sizeof s->std);
	o->raw.sy = 1;
	o->raw.sx = SIDE;
	o->raw.sk = PLANE;
	const char *train = nr_arena_printf(s->arena, "%s/train_32x32.mat", dir),
		*test = nr_arena_printf(s->arena, "%s/test_32x32.mat", dir);
	const char *extra = nr_arena_printf(s->arena, "%s/extra_32x32.mat", dir);
	if (!train || !test || !extra) return nr_fail(err, NR_EMEMORY, "cannot open", dir, "out of memory");
	if (read_split(s, NR_TRAIN, train, err) || read_split(s, NR_TEST, test, err)) return err->code;
	return access(extra, F_OK) ? NR_OK : read_split(s, NR_EXTRA, extra, err);
}

static void close_svhn(struct nr_source *s)
{
	struct svhn *o = s->own;
	for (int i = 0; o && i < NR_SPLITS; i++) nr_mat_release(&o->x[i]);
	nr_raw_close(s);
}

static const struct nr_data_file files[] = {
	{ .path = "train_32x32.mat", .md5 = "e26dedcc434d2e4c54c9b2d4a06d8373", .bytes = 182040794 },
	{ .path = "test_32x32.mat", .md5 = "eb5a983be6a315427106f1b164d9cef3", .bytes = 64275384 },
	{ .path = "extra_32x32.mat", .md5 = "a93ce644f1a588dc4d68dda5feec44a7", .bytes = 1329278602,
		.optional = true }, { 0 }
};
#define AT "http://ufldl.stanford.edu/housenumbers/"
static const struct nr_download downloads[] = {
	{ .from = "official", .url = AT "train_32x32.mat", .file = "train_32x32.mat",
		.md5 = "e26dedcc434d2e4c54c9b2d4a06d8373",
	  .bytes = 182040794 },
	{ .from = "official", .url = AT "test_32x32.mat", .file = "test_32x32.mat",
		.md5 = "eb5a983be6a315427106f1b164d9cef3",
	  .bytes = 64275384 },
	{ .from = "official", .url = AT "extra_32x32.mat", .file = "extra_32x32.mat",
		.md5 = "a93ce644f1a588dc4d68dda5feec44a7",
	  .bytes = 1329278602, .optional = true },
	{ 0 }
};

const struct nr_dataset nr_dataset_svhn = {
	.name = "svhn", .title = "digits of house numbers", .cite = "Netzer, Wang, Coates, Bissacco, Wu, Ng 2011",
	.licence = "non-commercial use", .facts = "73257 + 26032 test + 531131 extra, 32 x 32 RGB, 10 classes",
		.folder = "svhn",
	.files = files, .downloads = downloads, .open = open_svhn, .get = nr_raw_get, .label = nr_raw_label,
		.close = close_svhn,
};
