/* labelmaps: pictures of one's own with label maps, for segmentation. label_folder.c finds them, label_classes.c their classes. */
#include <string.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "data/label_maps.h"
#include "data/names_in.h"

enum { FAIL, SKIP };
static const char *const when_bad[] = { "fail", "skip", NULL };
struct labelmaps { char *path; double val; int32_t bad; int64_t ignore; bool stored; };
static const struct nr_option options[] = {
	NR_OPT_STRING(struct labelmaps, path, NULL, "folder with images/ and labels/ (masks/, annotations/), or train/ and trainannot/"),
	NR_OPT_FLOAT(struct labelmaps, val, -1, -1, 0.9,
		"share of the training pictures to set apart as the split val; -1: 0.1 if there is neither val nor test"),
	NR_OPT_ENUM(struct labelmaps, bad, "fail", when_bad,
		"pictures that cannot be read or have no label map: fail, or skip leaves them out"),
	NR_OPT_INT(struct labelmaps, ignore, -1, -1, 255, "number whose pixels do not count, beside 255; -1: none"),
	NR_OPT_BOOL(struct labelmaps, stored, "0", "label maps are of pixels as the files store them: EXIF data turn no picture"),
	NR_OPT_END
};

static int open_labelmaps(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	const struct labelmaps *o = conf;
	s->dir = *o->path == '/' || nr_is_folder(o->path) ? o->path : nr_arena_printf(s->arena, "%s/%s", dir, o->path);
	if (!s->dir) return nr_fail(err, NR_EMEMORY, "cannot open", o->path, "out of memory");
	return nr_label_folder_open(s, &(struct nr_label_folder){ .root = dir, .val = o->val, .skip = o->bad == SKIP, .ignored =
		(int32_t)o->ignore, .stored = o->stored }, err);
}

const struct nr_dataset nr_dataset_labelmaps = {
	.name = "labelmaps", .title = "your own pictures with label maps", .cite = "", .licence = "yours",
	.facts = "PATH/images/*.jpg and PATH/labels/*.png: a class for every pixel", .conf_size = sizeof(struct labelmaps),
	.options = options,
	.open = open_labelmaps, .get = nr_listed_get, .label = nr_label_maps_none, .map = nr_label_maps_get,
};
