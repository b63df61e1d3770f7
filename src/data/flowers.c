/* Oxford Flowers-102 (Nilsback, Zisserman 2008, https://www.robots.ox.ac.uk/~vgg/data/flowers/102/):
 * jpg/image_%05d.jpg, labels 1..102 in
 * imagelabels.mat, the numbers of the pictures of each split in setid.mat. The test split is the large one. */
#include <string.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "data/listed.h"
#include "data/mat.h"

enum { CLASSES = 102, MOST = 100000 };

static const char *const names[] = {
	"pink primrose", "hard-leaved pocket orchid", "canterbury bells", "sweet pea", "english marigold", "tiger lily",
	"moon orchid", "bird of paradise", "monkshood", "globe thistle", "snapdragon", "colt's foot", "king protea",
	"spear thistle", "yellow iris", "globe-flower", "purple coneflower", "peruvian lily", "balloon flower",
	"giant white arum lily", "fire lily", "pincushion flower", "fritillary", "red ginger", "grape hyacinth",
		"corn poppy",
	"prince of wales feathers", "stemless gentian", "artichoke", "sweet william", "carnation", "garden phlox",
	"love in the mist", "mexican aster", "alpine sea holly", "ruby-lipped cattleya", "cape flower",
		"great masterwort",
	"siam tulip", "lenten rose", "barbeton daisy", "daffodil", "sword lily", "poinsettia",
		"bolero deep blue", "wallflower",
	"marigold", "buttercup", "oxeye daisy", "common dandelion", "petunia", "wild pansy", "primula", "sunflower",
	"pelargonium", "bishop of llandaff", "gaura", "geranium", "orange dahlia", "pink-yellow dahlia?",
		"cautleya spicata",
	"japanese anemone", "black-eyed susan", "silverbush", "californian poppy", "osteospermum", "spring crocus",
	"bearded iris", "windflower", "tree poppy", "gazania", "azalea", "water lily", "rose", "thorn apple",
		"morning glory",
	"passion flower", "lotus", "toad lily", "anthurium", "frangipani", "clematis", "hibiscus", "columbine",
		"desert-rose",
	"tree mallow", "magnolia", "cyclamen", "watercress", "canna lily", "hippeastrum", "bee balm",
		"ball moss", "foxglove",
	"bougainvillea", "camellia", "mallow", "mexican petunia", "bromelia", "blanket flower", "trumpet creeper",
	"blackberry lily", NULL
};

/* A whole number in 1..last, or 0. */
static int64_t whole(const struct nr_mat *m, int64_t i, int64_t last)
{
	const double v = nr_mat_at(m, i);
	return v >= 1 && v <= (double)last && v == (double)(int64_t)v ? (int64_t)v : 0;
}

static int read_split(struct nr_source *s, enum nr_split split, const char *variable,
	const struct nr_mat *labels, const char *path,
	struct nr_error *err)
{
	struct nr_mat ids;
	if (nr_mat_read(&ids, path, variable, MOST, err)) return err->code;
	int e = NR_OK;
	for (int64_t i = 0; i < ids.count && !e; i++) {
		const int64_t id = whole(&ids, i, labels->count);
		const char *file = nr_arena_printf(s->arena, "jpg/image_%05lld.jpg", (long long)id);
		if (!id)
			e = nr_fail(err, NR_EFORMAT, "cannot read", path,
				"number %lld of %s is %g instead of 1 to %lld", (long long)i, variable,
				nr_mat_at(&ids, i), (long long)labels->count);
		else if (!file) e = nr_fail(err, NR_EMEMORY, "cannot open", path, "out of memory");
		else e = nr_listed_add(s, split, file, (int32_t)nr_mat_at(labels, id - 1) - 1, err);
	}
	nr_mat_release(&ids);
	return e;
}

static int read_labels(const char *path, struct nr_mat *labels, struct nr_error *err)
{
	if (nr_mat_read(labels, path, "labels", MOST, err)) return err->code;
	for (int64_t i = 0; i < labels->count; i++)
		if (!whole(labels, i, CLASSES)) {
			nr_fail(err, NR_EFORMAT, "cannot read", path,
				"label %g of picture %lld is not from 1 to %d", nr_mat_at(labels, i),
				(long long)i + 1, CLASSES);
			nr_mat_release(labels);
			return err->code;
		}
	return NR_OK;
}

static int open_flowers(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	(void)conf;
	const char *images = nr_arena_printf(s->arena, "%s/imagelabels.mat", dir),
		*sets = nr_arena_printf(s->arena, "%s/setid.mat", dir);
	struct nr_mat labels;
	if (!images || !sets) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	s->channels = 3;
	/* of the training split, pictures scaled to a shorter side of 96 */
	memcpy(s->mean, (const float[]){ .4299f, .3797f, .2958f }, sizeof s->mean);
	memcpy(s->std, (const float[]){ .2890f, .2422f, .2667f }, sizeof s->std);
	if (nr_source_classes(s, names, err) || read_labels(images, &labels, err)) return err->code;
	const int e = read_split(s, NR_TRAIN, "trnid", &labels, sets, err) || read_split(s, NR_VAL, "valid",
		&labels, sets, err) ||
		read_split(s, NR_TEST, "tstid", &labels, sets, err) || nr_listed_probe(s, err);
	nr_mat_release(&labels);
	return e ? (int)err->code : NR_OK;
}

static const struct nr_data_file files[] = {
	{ .path = "imagelabels.mat", .md5 = "e0620be6f572b9609742df49c70aed4d", .bytes = 502 },
	{ .path = "setid.mat", .md5 = "a5357ecc9cb78c4bef273ce3793fc85c", .bytes = 14989 },
		{ .path = "jpg/image_00001.jpg" },
	{ .path = "jpg/image_08189.jpg" }, { 0 }
};
#define AT "https://www.robots.ox.ac.uk/~vgg/data/flowers/102/"
static const struct nr_download downloads[] = {
	{ .from = "official", .url = AT "102flowers.tgz", .file = "102flowers.tgz",
		.md5 = "52808999861908f626f3c1f4e79d11fa",
	  .bytes = 344862509, .inside = "" },
	{ .from = "official", .url = AT "imagelabels.mat", .file = "imagelabels.mat",
		.md5 = "e0620be6f572b9609742df49c70aed4d", .bytes = 502 },
	{ .from = "official", .url = AT "setid.mat", .file = "setid.mat",
		.md5 = "a5357ecc9cb78c4bef273ce3793fc85c", .bytes = 14989 },
	{ 0 }
};

const struct nr_dataset nr_dataset_flowers102 = {
	.name = "flowers102", .title = "kinds of flowers", .cite = "Nilsback, Zisserman 2008",
		.licence = "none stated; research use",
	.facts = "1020 + 1020 val + 6149 test, JPEG, 102 classes", .folder = "flowers-102", .files = files,
		.downloads = downloads,
	.open = open_flowers, .get = nr_listed_get, .label = nr_listed_label,
};
