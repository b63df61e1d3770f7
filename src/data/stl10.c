/* STL-10, binary version (Coates, Ng, Lee 2011, https://cs.stanford.edu/~acoates/stl10/): no header; red,
 * green and blue plane,
 * each column by column; labels 1..10 in a file of their own, none for the unlabelled pictures. */
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "data/raw.h"

enum { SIDE = 96, PLANE = SIDE * SIDE, PIXELS = 3 * PLANE };
static const size_t LIMIT = (size_t)1 << 32;

static int read_split(struct nr_source *s, enum nr_split split, const char *x, const char *y, struct nr_error *err)
{
	const char *images = nr_arena_printf(s->arena, "%s/%s", s->dir, x);
	const char *labels = y ? nr_arena_printf(s->arena, "%s/%s", s->dir, y) : NULL;
	if (!images || (y && !labels)) return nr_fail(err, NR_EMEMORY, "cannot open", x, "out of memory");
	const struct nr_bytes *b = nr_raw_file(s, images, LIMIT, err);
	if (!b) return err->code;
	if (b->size % PIXELS) {
		nr_fail(err, NR_EFORMAT, "cannot read", images,
			"%zu bytes are not a multiple of the picture size %d", b->size, PIXELS);
		return nr_hint(err, "download it again: it is incomplete or another file");
	}
	const int64_t n = (int64_t)(b->size / PIXELS);
	if (nr_raw_add(s, split, (struct nr_raw_part){ b->data, PIXELS, n }, err)) return err->code;
	if (!y) return NR_OK;
	const struct nr_bytes *l = nr_raw_file(s, labels, LIMIT, err);
	if (!l) return err->code;
	if ((int64_t)l->size != n)
		return nr_fail(err, NR_EFORMAT, "cannot read", labels, "%zu labels for %lld pictures", l->size,
			(long long)n);
	return nr_raw_labels(s, split, l->data, 1, n, 1, labels, err);
}

static int open_stl10(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	static const char *const names[] = { "airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey",
		"ship", "truck", NULL };
	(void)conf;
	struct nr_raw *r = nr_raw_make(s, err);
	if (!r || nr_source_classes(s, names, err)) return err->code;
	s->h = s->w = SIDE;
	s->channels = 3;
	memcpy(s->mean, (const float[]){ .4467f, .4398f, .4066f }, sizeof s->mean);
	memcpy(s->std, (const float[]){ .2603f, .2566f, .2713f }, sizeof s->std);
	r->sy = 1;
	r->sx = SIDE;
	r->sk = PLANE;
	if (read_split(s, NR_TRAIN, "train_X.bin", "train_y.bin", err) || read_split(s, NR_TEST, "test_X.bin",
		"test_y.bin", err))
		return err->code;
	const char *extra = nr_arena_printf(s->arena, "%s/unlabeled_X.bin", dir);
	return extra && !access(extra, F_OK) ? read_split(s, NR_EXTRA, "unlabeled_X.bin", NULL, err) : NR_OK;
}

static const struct nr_data_file files[] = {
	{ .path = "train_X.bin", .md5 = "918c2871b30a85fa023e0c44e0bee87f", .bytes = 138240000 },
	{ .path = "train_y.bin", .md5 = "5a34089d4802c674881badbb80307741", .bytes = 5000 },
	{ .path = "test_X.bin", .md5 = "7f263ba9f9e0b06b93213547f721ac82", .bytes = 221184000 },
	{ .path = "test_y.bin", .md5 = "36f9794fa4beb8a2c72628de14fa638e", .bytes = 8000 },
	{ .path = "unlabeled_X.bin", .md5 = "5242ba1fed5e4be9e1e742405eb56ca4", .bytes = 2764800000 },
	{ .path = "class_names.txt", .md5 = "6de44d022411c4d5cda4673b7f147c3f", .bytes = 55, .optional = true },
	{ .path = "fold_indices.txt", .md5 = "4bbf8cd098ab9f87fe03fbcb37c06b28", .bytes = 47794, .optional = true }, { 0 }
};
static const struct nr_download downloads[] = {
	{ .from = "official", .url = "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
		.file = "stl10_binary.tar.gz",
	  .md5 = "91f7769df0f17e558f3565bffb0c7dfb", .bytes = 2640397119, .inside = "stl10_binary" },
	{ 0 }
};

const struct nr_dataset nr_dataset_stl10 = {
	.name = "stl10", .title = "ten kinds, most without labels", .cite = "Coates, Ng, Lee 2011",
	.licence = "ImageNet's: non-commercial research",
		.facts = "5000 + 8000 test + 100000 unlabelled, 96 x 96 RGB, 10 classes",
	.folder = "stl10_binary", .files = files, .downloads = downloads, .open = open_stl10, .get = nr_raw_get,
		.label = nr_raw_label,
	.close = nr_raw_close,
};
