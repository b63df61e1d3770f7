/* data/dataset.c and the readers: pixels and labels of made-up files come back by their formula, and each
 * damaged file gives
 * one line that names it. */
#include "unit/datasets.h"
#include "unit/mats.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>
#include <zlib.h>

#include "data/dataset.h"
#include "data/idx.h"
#include "data/measure.h"

/* ---- helpers
 * ---------------------------------------------------------------------------------------------------------- */

static struct nr_source *opened(const char *text)
{
	struct nr_source *s;
	struct nr_error err = { 0 };
	if (nr_source_open(&s, text, made_dir, &err)) {
		char line[1500];
		fail_msg("%s: %s", text, nr_error_text(&err, line, sizeof line));
	}
	return s;
}

/* Opening fails; the message has both parts. */
static void refuses(const char *text, const char *subject, const char *part)
{
	struct nr_source *s;
	struct nr_error err = { 0 };
	char line[1500];
	const int e = nr_source_open(&s, text, made_dir, &err);
	nr_error_text(&err, line, sizeof line);
	assert_null(s);
	assert_int_equal(e, err.code);
	if (!e || !strstr(line, subject) || !strstr(line, part)) fail_msg("'%s' should name '%s' and say '%s'",
		line, subject, part);
	assert_null(strchr(line, '\n'));
}

static void has(const struct nr_source *s, enum nr_split split, int64_t i, int64_t n, int32_t want)
{
	struct nr_picture p = { 0 };
	struct nr_error err = { 0 };
	int32_t label = -2;
	assert_int_equal(nr_source_get(s, split, i, &p, &label, &err), 0);
	assert_int_equal(label, want);
	assert_int_equal(nr_source_label(s, split, i), want);
	for (int y = 0; y < p.h; y++)
		for (int x = 0; x < p.w; x++)
			for (int k = 0; k < p.channels; k++)
				if (p.pixels[(y * p.w + x) * p.channels + k] != made_pixel(n, y, x, k))
					fail_msg("picture %d, pixel %d %d %d: %d instead of %d", (int)i, y, x,
						k, p.pixels[(y * p.w + x) * p.channels + k],
						made_pixel(n, y, x, k));
	nr_picture_release(&p);
}

/* ---- IDX
 * -------------------------------------------------------------------------------------------------------------- */

static void put_idx(const char *dir, const char *stem, int n, bool transposed)
{
	uint8_t *b = malloc(16 + (size_t)n * 784);
	memcpy(b, (const uint8_t[]){ 0, 0, 8, 3, 0, 0, 0, (uint8_t)n, 0, 0, 0, 28, 0, 0, 0, 28 }, 16);
	for (int i = 0; i < n; i++)
		for (int y = 0; y < 28; y++)
			for (int x = 0; x < 28; x++) b[16 + i * 784 + (transposed ? x * 28 + y : y * 28 +
				x)] = made_pixel(i, y, x, 0);
	made_file(made_path("%s/%s-images-idx3-ubyte", dir, stem), b, 16 + (size_t)n * 784);
	memcpy(b, (const uint8_t[]){ 0, 0, 8, 1, 0, 0, 0, (uint8_t)n }, 8);
	for (int i = 0; i < n; i++) b[8 + i] = (uint8_t)(1 + i % 9);
	made_file(made_path("%s/%s-labels-idx1-ubyte", dir, stem), b, 8 + (size_t)n);
	free(b);
}

static void put_mnist(const char *dir)
{
	put_idx(dir, "train", 12, false);
	put_idx(dir, "t10k", 3, false);
}

static void idx_is_read(void **state)
{
	(void)state;
	put_mnist("mnist");
	struct nr_source *s = opened("mnist");
	assert_int_equal(s->count[NR_TRAIN], 12);
	assert_int_equal(s->count[NR_TEST], 3);
	assert_int_equal(s->count[NR_VAL], 0);
	assert_int_equal(s->h, 28);
	assert_int_equal(s->channels, 1);
	assert_string_equal(s->class_name[7], "7");
	for (int i = 0; i < 12; i++) has(s, NR_TRAIN, i, i, 1 + i % 9);
	has(s, NR_TEST, 2, 2, 3);
	nr_source_close(s);
}

/* The root may be the set's own folder. */
static void a_set_is_found_in_its_own_folder(void **state)
{
	(void)state;
	struct nr_source *s;
	put_mnist("elsewhere");
	assert_int_equal(nr_source_open(&s, "fashion-mnist", made_path("elsewhere"), NULL), 0);
	assert_string_equal(s->class_name[9], "Ankle boot");
	assert_string_equal(s->dir, made_path("elsewhere"));
	nr_source_close(s);
}

static void pack(const char *path)
{
	size_t n;
	uint8_t *b = made_read(path, &n);
	char gz[600];
	snprintf(gz, sizeof gz, "%s.gz", path);
	gzFile f = gzopen(gz, "wb");
	assert_int_equal(gzwrite(f, b, (unsigned)n), (int)n);
	gzclose(f);
	unlink(path);
	free(b);
}

static void idx_is_read_from_gz(void **state)
{
	(void)state;
	put_mnist("mnist");
	pack(made_path("mnist/train-images-idx3-ubyte"));
	pack(made_path("mnist/t10k-labels-idx1-ubyte"));
	struct nr_source *s = opened("mnist");
	has(s, NR_TRAIN, 11, 11, 3);
	has(s, NR_TEST, 2, 2, 3);
	nr_source_close(s);
	struct stat st;
	stat(made_path("mnist/train-images-idx3-ubyte.gz"), &st);
	made_cut(made_path("mnist/train-images-idx3-ubyte.gz"), st.st_size / 2);
	refuses("mnist", "train-images-idx3-ubyte.gz", "gzip data end");
	made_poke(made_path("mnist/train-images-idx3-ubyte.gz"), 0, 'x');
	refuses("mnist", "train-images-idx3-ubyte.gz", "not a gzip file");
}

static void emnist_is_turned_and_letters_count_from_one(void **state)
{
	(void)state;
	put_idx("emnist", "emnist-letters-train", 4, true);
	put_idx("emnist", "emnist-letters-test", 4, true);
	put_idx("emnist", "emnist-balanced-train", 4, true);
	put_idx("emnist", "emnist-balanced-test", 4, true);
	struct nr_source *s = opened("emnist:kind=letters");
	has(s, NR_TRAIN, 3, 3, 3);
	assert_int_equal(s->classes, 26);
	nr_source_close(s);
	s = opened("emnist");
	has(s, NR_TRAIN, 3, 3, 4);
	nr_source_close(s);
	refuses("emnist:kind=leters", "kind", "did you mean 'letters'?");
}

static void damaged_idx_is_refused(void **state)
{
	(void)state;
	const char *images = "train-images-idx3-ubyte", *labels = "train-labels-idx1-ubyte";
	put_mnist("mnist");
	made_cut(made_path("mnist/%s", images), 5000);
	refuses("mnist", images, "5000 bytes instead of 16 and the header's 9408");
	made_cut(made_path("mnist/%s", images), 10);
	refuses("mnist", images, "header alone needs 16");
	made_cut(made_path("mnist/%s", images), 2);
	refuses("mnist", images, "too few");
	made_cut(made_path("mnist/%s", images), 0);
	refuses("mnist", images, "empty");
	put_mnist("mnist");
	made_poke(made_path("mnist/%s", images), 0, 'P');
	refuses("mnist", images, "begins with 50000803 instead of 000008");
	put_mnist("mnist");
	made_poke(made_path("mnist/%s", images), 2, 13);
	refuses("mnist", images, "type 0x0d");
	put_mnist("mnist");
	made_poke(made_path("mnist/%s", images), 4, 255);
	refuses("mnist", images, "bytes instead of");
	put_mnist("mnist");
	made_poke(made_path("mnist/%s", labels), 10, 10);
	refuses("mnist", labels, "label 10 of picture 2 is not from 0 to 9");
	made_poke(made_path("mnist/%s", labels), 7, 11);
	made_cut(made_path("mnist/%s", labels), 19);
	refuses("mnist", labels, "11 labels for 12 pictures");
	unlink(made_path("mnist/t10k-labels-idx1-ubyte"));
	put_idx("mnist", "train", 12, false);
	refuses("mnist", "t10k-labels-idx1-ubyte", "No such file");
	struct nr_idx x;
	const uint8_t huge[20] = { 0, 0, 8, 4, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
		255, 255, 255 };
	assert_int_equal(nr_idx_parse(&x, huge, sizeof huge, "huge", NULL), NR_EFORMAT);
}

/* ---- CIFAR
 * ------------------------------------------------------------------------------------------------------------ */

static void put_cifar(const char *path, int n, int labels, int first)
{
	uint8_t *b = malloc((size_t)n * (size_t)(labels + 3072)), *r = b;
	for (int i = 0; i < n; i++) {
		for (int l = 0; l < labels; l++) *r++ = (uint8_t)(l == 0 ? (first + i) % 10 : 50 + (first + i) % 10);
		for (int k = 0; k < 3; k++)
			for (int y = 0; y < 32; y++)
				for (int x = 0; x < 32; x++) *r++ = made_pixel(first + i, y, x, k);
	}
	made_file(path, b, (size_t)(r - b));
	free(b);
}

static void put_cifar10(int batches)
{
	for (int i = 1; i <= batches; i++) put_cifar(made_path("cifar-10-batches-bin/data_batch_%d.bin", i), 3, 1, 3 * i);
	put_cifar(made_path("cifar-10-batches-bin/test_batch.bin"), 2, 1, 100);
}

static void cifar_is_read(void **state)
{
	(void)state;
	put_cifar10(5);
	struct nr_source *s = opened("cifar10");
	assert_int_equal(s->count[NR_TRAIN], 15);
	assert_int_equal(s->count[NR_TEST], 2);
	for (int i = 0; i < 15; i++) has(s, NR_TRAIN, i, 3 + i, (3 + i) % 10);
	has(s, NR_TEST, 1, 101, 1);
	assert_string_equal(s->class_name[9], "truck");
	assert_true(s->mean[0] > .49f && s->std[2] > .26f);
	nr_source_close(s);
	put_cifar(made_path("cifar-100-binary/train.bin"), 4, 2, 0);
	put_cifar(made_path("cifar-100-binary/test.bin"), 2, 2, 0);
	s = opened("cifar100");
	has(s, NR_TRAIN, 3, 3, 53);
	nr_source_close(s);
	s = opened("cifar100:labels=coarse");
	assert_int_equal(s->classes, 20);
	has(s, NR_TRAIN, 3, 3, 3);
	nr_source_close(s);
}

static void a_gap_between_batches_is_refused(void **state)
{
	(void)state;
	put_cifar10(1);
	struct nr_source *s = opened("cifar10");
	assert_int_equal(s->count[NR_TRAIN], 3);
	nr_source_close(s);
	put_cifar10(5);
	unlink(made_path("cifar-10-batches-bin/data_batch_3.bin"));
	refuses("cifar10", "data_batch_3.bin", "No such file");
}

static void damaged_cifar_is_refused(void **state)
{
	(void)state;
	put_cifar10(5);
	made_cut(made_path("cifar-10-batches-bin/data_batch_2.bin"), 3073 * 2 + 1);
	refuses("cifar10", "data_batch_2.bin", "6147 bytes are not a multiple of the record size 3073");
	put_cifar10(5);
	made_poke(made_path("cifar-10-batches-bin/test_batch.bin"), 3073, 77);
	refuses("cifar10", "test_batch.bin", "label 77 of picture 1 is not from 0 to 9");
	put_cifar(made_path("cifar-100-binary/train.bin"), 4, 2, 0);
	put_cifar(made_path("cifar-100-binary/test.bin"), 2, 2, 0);
	made_text(made_path("cifar-100-binary/fine_label_names.txt"), "apple\nbaby\n");
	refuses("cifar100", "fine_label_names.txt", "2 names instead of 100");
}

/* ---- STL-10
 * ----------------------------------------------------------------------------------------------------------- */

static void put_stl(const char *x, const char *y, int n)
{
	uint8_t *b = malloc((size_t)n * 27648), *p = b;
	for (int i = 0; i < n; i++)
		for (int k = 0; k < 3; k++)
			for (int column = 0; column < 96; column++)
				for (int row = 0; row < 96; row++) *p++ = made_pixel(i, row, column, k);
	made_file(made_path("stl10_binary/%s", x), b, (size_t)n * 27648);
	for (int i = 0; i < n; i++) b[i] = (uint8_t)(1 + i % 10);
	if (y) made_file(made_path("stl10_binary/%s", y), b, (size_t)n);
	free(b);
}

static void stl10_is_turned_and_counts_from_one(void **state)
{
	(void)state;
	put_stl("train_X.bin", "train_y.bin", 10);
	put_stl("test_X.bin", "test_y.bin", 2);
	struct nr_source *s = opened("stl10");
	assert_int_equal(s->count[NR_EXTRA], 0);
	has(s, NR_TRAIN, 9, 9, 9);
	nr_source_close(s);
	put_stl("unlabeled_X.bin", NULL, 3);
	s = opened("stl10");
	assert_int_equal(s->count[NR_EXTRA], 3);
	has(s, NR_EXTRA, 2, 2, -1);
	nr_source_close(s);
	made_poke(made_path("stl10_binary/train_y.bin"), 4, 0);
	refuses("stl10", "train_y.bin", "label 0 of picture 4 is not from 1 to 10");
	made_cut(made_path("stl10_binary/train_y.bin"), 4);
	refuses("stl10", "train_y.bin", "4 labels for 10 pictures");
	made_cut(made_path("stl10_binary/train_X.bin"), 27649);
	refuses("stl10", "train_X.bin", "not a multiple of the picture size");
}

/* ---- MAT: SVHN, Flowers
 * ----------------------------------------------------------------------------------------------- */

/* y as double, or as uint8: both occur. */
static void put_svhn(const char *name, size_t n, bool doubles, int wrong)
{
	uint8_t *x = malloc(n * 3072 + 1), *small = malloc(n + 1);
	double *y = malloc((n + 1) * sizeof *y);
	for (size_t i = 0; i < n; i++) {
		for (int k = 0; k < 3; k++)
			for (int c = 0; c < 32; c++)
				for (int r = 0; r < 32; r++) x[(size_t)(r + 32 * (c + 32 * k)) +
					3072 * i] = made_pixel((int64_t)i, r, c, k);
		small[i] = (uint8_t)(1 + i % 10);
		if (wrong >= 0 && i == 1) small[i] = (uint8_t)wrong;
		y[i] = small[i];
	}
	FILE *f = mat_begin(made_path("svhn/%s", name));
	mat_put(f, "X", MAT_CLASS_UINT8, MAT_UINT8, 4, (int32_t[]){ 32, 32, 3, (int32_t)n }, x, n * 3072, true);
	if (doubles) mat_put(f, "y", MAT_CLASS_DOUBLE, MAT_DOUBLE, 2, (int32_t[]){ (int32_t)n, 1 }, y, n * sizeof *y, true);
	else mat_put(f, "y", MAT_CLASS_UINT8, MAT_UINT8, 2, (int32_t[]){ (int32_t)n, 1 }, small, n, true);
	fclose(f);
	free(x);
	free(y);
	free(small);
}

static void svhn_is_read_and_ten_is_zero(void **state)
{
	(void)state;
	put_svhn("train_32x32.mat", 11, true, -1);
	put_svhn("test_32x32.mat", 3, false, -1);
	struct nr_source *s = opened("svhn");
	assert_int_equal(s->count[NR_TRAIN], 11);
	for (int i = 0; i < 11; i++) has(s, NR_TRAIN, i, i, (1 + i) % 10);
	has(s, NR_TEST, 2, 2, 3);
	nr_source_close(s);
}

static void damaged_mat_is_refused(void **state)
{
	(void)state;
	put_svhn("train_32x32.mat", 11, true, 11);
	put_svhn("test_32x32.mat", 3, false, -1);
	refuses("svhn", "train_32x32.mat", "label 11 of picture 1 is not from 1 to 10");
	put_svhn("train_32x32.mat", 11, true, -1);
	struct stat st;
	stat(made_path("svhn/train_32x32.mat"), &st);
	made_cut(made_path("svhn/train_32x32.mat"), st.st_size / 2);
	refuses("svhn", "train_32x32.mat", "variable");
	made_cut(made_path("svhn/train_32x32.mat"), 100);
	refuses("svhn", "train_32x32.mat", "128 bytes");
	put_svhn("train_32x32.mat", 11, true, -1);
	made_poke(made_path("svhn/train_32x32.mat"), 125, 2);
	refuses("svhn", "train_32x32.mat", "HDF5");
	made_poke(made_path("svhn/train_32x32.mat"), 126, 'M');
	made_poke(made_path("svhn/train_32x32.mat"), 125, 1);
	refuses("svhn", "train_32x32.mat", "not a little-endian MAT v5");
	uint8_t flat[3072] = { 0 };
	FILE *f = mat_begin(made_path("svhn/train_32x32.mat"));
	mat_put(f, "X", MAT_CLASS_UINT8, MAT_UINT8, 2, (int32_t[]){ 32, 96 }, flat, sizeof flat, true);
	fclose(f);
	refuses("svhn", "train_32x32.mat", "not an array of 32 x 32 x 3 x N bytes");
	unlink(made_path("svhn/train_32x32.mat"));
	refuses("svhn", "svhn", "norma data get svhn");
}

static void put_flowers(double label, double id)
{
	double labels[6] = { 1, 102, 7, label, 5, 6 }, train[2] = { 1, 2 }, val[1] = { 3 }, test[3] = { 4, id, 6 };
	FILE *f = mat_begin(made_path("flowers-102/imagelabels.mat"));
	mat_put(f, "labels", MAT_CLASS_DOUBLE, MAT_DOUBLE, 2, (int32_t[]){ 1, 6 }, labels, sizeof labels, true);
	fclose(f);
	f = mat_begin(made_path("flowers-102/setid.mat"));
	mat_put(f, "trnid", MAT_CLASS_DOUBLE, MAT_DOUBLE, 2, (int32_t[]){ 1, 2 }, train, sizeof train, true);
	mat_put(f, "valid", MAT_CLASS_DOUBLE, MAT_DOUBLE, 2, (int32_t[]){ 1, 1 }, val, sizeof val, true);
	mat_put(f, "tstid", MAT_CLASS_DOUBLE, MAT_DOUBLE, 2, (int32_t[]){ 1, 3 }, test, sizeof test, true);
	fclose(f);
	for (int i = 1; i <= 6; i++) made_picture(made_path("flowers-102/jpg/image_%05d.jpg", i), i, 8 + i, 9, 3);
}

static void flowers_count_from_one(void **state)
{
	(void)state;
	put_flowers(4, 5);
	struct nr_source *s = opened("flowers102");
	assert_int_equal(s->count[NR_TRAIN], 2);
	assert_int_equal(s->count[NR_VAL], 1);
	assert_int_equal(s->count[NR_TEST], 3);
	assert_int_equal(s->h, 0);
	has(s, NR_TRAIN, 1, 2, 101);
	has(s, NR_TEST, 2, 6, 5);
	assert_string_equal(s->class_name[0], "pink primrose");
	struct nr_split_facts m;
	assert_int_equal(nr_source_measure(s, NR_TRAIN, &m, NULL, NULL, NULL), 0);
	assert_int_equal(m.h[0], 9);
	assert_int_equal(m.h[1], 10);
	nr_source_close(s);
	put_flowers(103, 5);
	refuses("flowers102", "imagelabels.mat", "label 103 of picture 4 is not from 1 to 102");
	put_flowers(1.5, 5);
	refuses("flowers102", "imagelabels.mat", "label 1.5");
	put_flowers(4, 7);
	refuses("flowers102", "setid.mat", "number 1 of tstid is 7");
	put_flowers(4, 5);
	unlink(made_path("flowers-102/jpg/image_00001.jpg"));
	refuses("flowers102", "image_00001.jpg", "unpack them, too");
}

/* ---- lists of files
 * --------------------------------------------------------------------------------------------------- */

static void put_aircraft(const char *train)
{
	made_text(made_path("fgvc-aircraft-2013b/data/variants.txt"), "707-320\nF/A-18\nBoeing 717\n");
	made_text(made_path("fgvc-aircraft-2013b/data/images_variant_train.txt"), train);
	made_text(made_path("fgvc-aircraft-2013b/data/images_variant_val.txt"), "0000002 F/A-18\n");
	made_text(made_path("fgvc-aircraft-2013b/data/images_variant_test.txt"), "0000001 707-320\r\n");
	for (int i = 1; i <= 3; i++) made_picture(made_path("fgvc-aircraft-2013b/data/images/%07d.jpg", i), i, 30, 40, 3);
}

static void aircraft_lose_their_banner(void **state)
{
	(void)state;
	put_aircraft("0000001 F/A-18\n0000003 Boeing 717\n");
	struct nr_source *s = opened("aircraft");
	struct nr_picture p = { 0 };
	has(s, NR_TRAIN, 0, 1, 1);
	has(s, NR_TRAIN, 1, 3, 2);
	has(s, NR_TEST, 0, 1, 0);
	assert_int_equal(nr_source_get(s, NR_TRAIN, 0, &p, NULL, NULL), 0);
	assert_int_equal(p.h, 10);
	nr_source_close(s);
	s = opened("aircraft:banner=1");
	assert_int_equal(nr_source_get(s, NR_TRAIN, 0, &p, NULL, NULL), 0);
	assert_int_equal(p.h, 30);
	nr_picture_release(&p);
	nr_source_close(s);
	put_aircraft("0000001 F/A-18\n0000003 Boeing\n");
	refuses("aircraft", "images_variant_train.txt", "line 2: no class 'Boeing'");
	put_aircraft("../../1 F/A-18\n");
	refuses("aircraft", "images_variant_train.txt", "line 1");
	refuses("aircraft:level=family", "families.txt", "No such file");
}

static void put_tiny(const char *wnids, const char *annotations)
{
	made_text(made_path("tiny-imagenet-200/wnids.txt"), wnids);
	made_text(made_path("tiny-imagenet-200/words.txt"),
		"n00000001\tentity\nn02000000\tdog, domestic dog\nn01000000\tgoldfish, Carassius\n");
	made_text(made_path("tiny-imagenet-200/val/val_annotations.txt"), annotations);
	for (int i = 0; i < 3; i++)
		made_picture(made_path("tiny-imagenet-200/train/n02000000/images/n02000000_%d.JPEG", 5 * i), i, 64, 64, 3);
	made_picture(made_path("tiny-imagenet-200/train/n01000000/images/n01000000_0.JPEG"), 7, 64, 64, 3);
	made_picture(made_path("tiny-imagenet-200/val/images/val_0.JPEG"), 9, 64, 64, 3);
}

static void tiny_imagenet_is_ordered_by_wnid(void **state)
{
	(void)state;
	put_tiny("n02000000\nn01000000\n", "val_0.JPEG\tn02000000\t0\t32\t44\t62\n");
	struct nr_source *s = opened("tiny-imagenet");
	assert_int_equal(s->classes, 2);
	assert_string_equal(s->class_name[0], "goldfish");
	assert_string_equal(s->class_name[1], "dog");
	has(s, NR_TRAIN, 0, 7, 0);
	for (int i = 0; i < 3; i++) has(s, NR_TRAIN, 1 + i, i, 1);    /* _0 _5 _10: by number, not by text */
	has(s, NR_VAL, 0, 9, 1);
	nr_source_close(s);
	put_tiny("n02000000\nn01000000\n", "val_0.JPEG\tn03000000\t0\t32\t44\t62\n");
	refuses("tiny-imagenet", "val_annotations.txt", "line 1: wnid 'n03000000' is not in wnids.txt");
	put_tiny("n02000000\n../etc\n", "val_0.JPEG\tn02000000\n");
	refuses("tiny-imagenet", "wnids.txt", "line 2 is not a wnid");
	put_tiny("n02000000\nn02000000\n", "val_0.JPEG\tn02000000\n");
	refuses("tiny-imagenet", "wnids.txt", "twice");
	put_tiny("n02000000\nn09000000\n", "val_0.JPEG\tn02000000\n");
	refuses("tiny-imagenet", "n09000000", "No such file");
}

static void folders_are_classes(void **state)
{
	(void)state;
	char text[256];
	made_picture(made_path("own/train/cat/a.png"), 1, 5, 6, 3);
	made_picture(made_path("own/train/ant/deep/b.PNG"), 2, 7, 8, 3);
	made_text(made_path("own/train/ant/notes.txt"), "no picture");
	made_picture(made_path("own/val/cat/c.png"), 3, 5, 5, 1);
	snprintf(text, sizeof text, "folder:path=%s", made_path("own"));
	struct nr_source *s = opened(text);
	assert_int_equal(s->classes, 2);
	assert_string_equal(s->class_name[0], "ant");
	has(s, NR_TRAIN, 0, 2, 0);
	has(s, NR_TRAIN, 1, 1, 1);
	struct nr_picture p = { 0 };
	assert_int_equal(nr_source_get(s, NR_VAL, 0, &p, NULL, NULL), 0);
	assert_int_equal(p.channels, 3);    /* grey is expanded */
	nr_picture_release(&p);
	nr_source_close(s);
	/* links that lead back up: nothing counts twice */
	made_picture(made_path("circle/a/1.png"), 1, 8, 8, 3);
	made_picture(made_path("circle/b/1.png"), 2, 8, 8, 3);
	assert_int_equal(symlink(".", made_path("circle/a/self")), 0);
	assert_int_equal(symlink("..", made_path("circle/a/up")), 0);
	s = opened("folder:path=circle,val=0");
	assert_int_equal(s->count[NR_TRAIN], 2);
	nr_source_close(s);
	refuses("folder", "folder", "option 'path' is missing");
	refuses("folder:path=", "folder", "option 'path' is missing");
	made_picture(made_path("own/val/dog/d.png"), 4, 5, 5, 3);
	refuses(text, "val/dog", "class 'dog' is not in train");
	mkdir(made_path("hollow"), 0777);
	refuses("folder:path=hollow", "hollow", "no class folders");
	made_text(made_path("broken/x/x.png"), "not a picture");
	refuses("folder:path=broken", "broken/x/x.png", "bad=skip");
}

/* Pictures are read once; what was seen is kept until a file changes. */
static void pictures_that_cannot_be_read_are_told_before_any_training(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++) made_picture(made_path("some/c%d/%d.png", i % 2, i), i, 3 + i, 4, 3);
	made_text(made_path("some/c0/x.png"), "no picture");
	made_text(made_path("some/c1/y.jpg"), "");
	for (int again = 0; again < 2; again++) {
		refuses("folder:path=some,val=0", "some", "2 of 8 pictures cannot be read");
		struct nr_source *s = opened("folder:path=some,val=0,bad=skip");
		assert_int_equal(s->count[NR_TRAIN], 6);
		assert_non_null(strstr(s->said, "2 pictures that cannot be read are left out"));
		for (int i = 0; i < 6; i++) has(s, NR_TRAIN, i, i < 3 ? 2 * i : 2 * i - 5, i >= 3);
		nr_source_close(s);
	}
	assert_int_equal(unlink(made_path("some/c0/x.png")), 0);
	refuses("folder:path=some,val=0", "some/c1/y.jpg", "it is empty");
	assert_int_equal(unlink(made_path("some/c1/y.jpg")), 0);
	nr_source_close(opened("folder:path=some,val=0"));
}

static void mean_and_std_of_a_folder_are_those_of_its_training_pictures(void **state)
{
	(void)state;
	made_picture(made_path("two/train/c/a.png"), 1, 5, 6, 3);
	made_picture(made_path("two/train/c/b.png"), 2, 9, 4, 3);
	made_picture(made_path("two/val/c/z.png"), 3, 30, 30, 3);
	struct nr_source *s = opened("folder:path=two"), *kept = opened("folder:path=two");
	assert_int_equal(s->h, 0);
	for (int k = 0; k < 3; k++) {
		double mean = 0, square = 0;
		for (int y = 0; y < 9; y++)
			for (int x = 0; x < 6; x++) {
				const double a = made_pixel(1, y, x, k) / 255.0, b = made_pixel(2, y, x, k) / 255.0;
				if (y < 5) mean += a / 60, square += a * a / 60;
				if (x < 4) mean += b / 72, square += b * b / 72;
			}
		assert_true(fabs((double)s->mean[k] - mean) < 1e-6 && fabs((double)s->std[k] - sqrt(square - mean * mean)) < 1e-6);
	}
	assert_memory_equal(s->mean, kept->mean, sizeof s->mean);
	assert_memory_equal(s->std, kept->std, sizeof s->std);
	nr_source_close(kept);
	nr_source_close(s);
}

static void a_folder_without_a_split_gets_one_from_every_class(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) made_picture(made_path("flat/c%d/%d.png", i % 20, i), i, 2, 2, 3);
	struct nr_source *s = opened("folder:path=flat");
	int train[20] = { 0 }, val[20] = { 0 };
	for (int64_t i = 0; i < s->count[NR_TRAIN]; i++) train[nr_source_label(s, NR_TRAIN, i)]++;
	for (int64_t i = 0; i < s->count[NR_VAL]; i++) val[nr_source_label(s, NR_VAL, i)]++;
	for (int k = 0; k < 20; k++) assert_true(train[k] >= 1 && val[k] >= 1 && train[k] + val[k] == 3);
	assert_non_null(strstr(s->said, "10 %"));
	nr_source_close(s);
	made_picture(made_path("flat2/train/c/a.png"), 1, 5, 6, 3);
	made_picture(made_path("flat2/test/c/b.png"), 2, 9, 4, 3);
	s = opened("folder:path=flat2");                /* there is one: nothing is taken from train */
	assert_true(s->count[NR_TRAIN] == 1 && !s->count[NR_VAL] && !s->said);
	nr_source_close(s);
}

static void a_share_of_a_folder_is_held_out_by_name(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) made_picture(made_path("all/c%d/%d.png", i % 2, i), i, 2, 2, 3);
	struct nr_source *s = opened("folder:path=all,val=0.3"), *again;
	assert_int_equal(s->count[NR_TRAIN] + s->count[NR_VAL], 60);
	assert_in_range(s->count[NR_VAL], 8, 28);
	const int64_t val = s->count[NR_VAL];
	for (int i = 60; i < 64; i++) made_picture(made_path("all/c0/%d.png", i), i, 2, 2, 3);
	again = opened("folder:path=all,val=0.3");
	assert_in_range(again->count[NR_VAL], val, val + 4);
	nr_source_close(again);
	nr_source_close(s);
}

/* ---- the registry
 * ----------------------------------------------------------------------------------------------------- */

static void names_are_unique_and_described(void **state)
{
	(void)state;
	for (const struct nr_dataset *const *d = nr_datasets(); *d; d++) {
		assert_ptr_equal(nr_dataset_find((*d)->name, NULL), *d);
		assert_true((*d)->title && (*d)->licence && (*d)->cite && (*d)->facts && (*d)->open);
		assert_true((*d)->kind != NR_PICTURES || ((*d)->get && (*d)->label));
		assert_true((*d)->kind != NR_TEXTS || (*d)->text);
		assert_true(!(*d)->folder || ((*d)->files && (*d)->files[0].path));
		for (const struct nr_data_file *f = (*d)->files; f && f->path; f++) assert_true(!f->md5 ||
			strlen(f->md5) == 32);
		for (const struct nr_download *x = (*d)->downloads; x && x->url; x++) {
			assert_true(x->from && x->file && !strchr(x->file, '/'));
			assert_true((!x->md5 || strlen(x->md5) == 32) && (!x->sha256 || strlen(x->sha256) == 64));
		}
	}
}

static void mistakes_come_with_the_nearest_name(void **state)
{
	(void)state;
	refuses("cifar11", "cifar11", "did you mean 'cifar10'?");
	refuses("zzzzzzzzzzz", "zzzzzzzzzzz", "norma data list");
	refuses("cifar10", "cifar10", "norma data get cifar10");
	refuses("cifar10:labels=fine", "labels", "unknown option");
	struct nr_error err = { 0 };
	assert_int_equal(nr_split_find("test", &err), NR_TEST);
	assert_true(nr_split_find("tset", &err) < 0);
	assert_non_null(strstr(err.hint, "test"));
}

static void pictures_out_of_range_are_refused(void **state)
{
	(void)state;
	put_mnist("mnist");
	struct nr_source *s = opened("mnist");
	struct nr_picture p = { 0 };
	assert_int_equal(nr_source_get(s, NR_TRAIN, 12, &p, NULL, NULL), NR_EVALUE);
	assert_int_equal(nr_source_get(s, NR_TRAIN, -1, &p, NULL, NULL), NR_EVALUE);
	assert_int_equal(nr_source_get(s, NR_VAL, 0, &p, NULL, NULL), NR_EVALUE);
	assert_int_equal(nr_source_label(s, NR_VAL, 0), -1);
	nr_source_close(s);
}

static void *read_many(void *arg)
{
	const struct nr_source *s = arg;
	struct nr_picture p = { 0 };
	for (int round = 0; round < 20; round++)
		for (int64_t i = 0; i < s->count[NR_TRAIN]; i++)
			if (nr_source_get(s, NR_TRAIN, i, &p, NULL, NULL) || p.pixels[40] != made_pixel(i, 1,
				12, 0)) return arg;
	nr_picture_release(&p);
	return NULL;
}

static void several_threads_read_one_source(void **state)
{
	(void)state;
	pthread_t t[4];
	put_mnist("mnist");
	struct nr_source *s = opened("mnist");
	for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&t[i], NULL, read_many, s), 0);
	for (int i = 0; i < 4; i++) {
		void *bad;
		pthread_join(t[i], &bad);
		assert_null(bad);
	}
	nr_source_close(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, made_setup, made_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(idx_is_read), TEST(a_set_is_found_in_its_own_folder), TEST(idx_is_read_from_gz),
		TEST(emnist_is_turned_and_letters_count_from_one), TEST(damaged_idx_is_refused), TEST(cifar_is_read),
		TEST(a_gap_between_batches_is_refused), TEST(damaged_cifar_is_refused),
			TEST(stl10_is_turned_and_counts_from_one),
		TEST(svhn_is_read_and_ten_is_zero), TEST(damaged_mat_is_refused), TEST(flowers_count_from_one),
		TEST(aircraft_lose_their_banner), TEST(tiny_imagenet_is_ordered_by_wnid), TEST(folders_are_classes),
		TEST(pictures_that_cannot_be_read_are_told_before_any_training),
		TEST(mean_and_std_of_a_folder_are_those_of_its_training_pictures),
		TEST(a_folder_without_a_split_gets_one_from_every_class),
		TEST(a_share_of_a_folder_is_held_out_by_name), TEST(names_are_unique_and_described),
		TEST(mistakes_come_with_the_nearest_name), TEST(pictures_out_of_range_are_refused),
			TEST(several_threads_read_one_source),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
