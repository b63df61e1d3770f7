/* Fuzzer: the files of CIFAR, STL, Aircraft, Flowers and Tiny ImageNet with any contents. What opens has labels within its classes. */
#include "files.h"
#include "norma/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct set { const char *name; const char *files[8]; } sets[] = {
	{ "cifar10", { "cifar-10-batches-bin/batches.meta.txt", "cifar-10-batches-bin/data_batch_1.bin", NULL } },
	{ "cifar100", { "cifar-100-binary/fine_label_names.txt", "cifar-100-binary/coarse_label_names.txt", "cifar-100-binary/test.bin",
		"cifar-100-binary/train.bin", NULL } },
	{ "stl10", { "stl10_binary/class_names.txt", "stl10_binary/fold_indices.txt", "stl10_binary/train_y.bin",
		"stl10_binary/test_y.bin", "stl10_binary/test_X.bin", "stl10_binary/train_X.bin", NULL } },
	{ "aircraft", { "fgvc-aircraft-2013b/data/variants.txt", "fgvc-aircraft-2013b/data/images_variant_train.txt",
		"fgvc-aircraft-2013b/data/images_variant_val.txt", "fgvc-aircraft-2013b/data/images_variant_test.txt", NULL } },
	{ "flowers102", { "flowers-102/setid.mat", "flowers-102/imagelabels.mat", NULL } },
	{ "tiny-imagenet", { "tiny-imagenet-200/wnids.txt", "tiny-imagenet-200/words.txt",
		"tiny-imagenet-200/val/val_annotations.txt", NULL } },
};

/* The first byte says which set. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size) return 0;
	const struct set *set = &sets[data[0] % (sizeof sets / sizeof *sets)];
	struct nr_source *s;
	struct nr_error err = { 0 };
	struct nr_picture p = { 0 };
	fuzz_split(data + 1, size - 1, set->files);
	if (!nr_source_open(&s, set->name, fuzz_folder(), &err)) {
		for (int split = 0; split < NR_SPLITS; split++)
			for (int64_t i = 0; i < s->count[split] && i < 16; i++) {
				const int32_t label = nr_source_label(s, (enum nr_split)split, i);
				assert(label >= -1 && label < s->classes);
				nr_source_get(s, (enum nr_split)split, i, &p, NULL, NULL);
			}
		nr_source_close(s);
	} else assert(err.what[0] || err.detail[0]);
	nr_picture_release(&p);
	fuzz_clear();
	return 0;
}
