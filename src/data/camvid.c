/* CamVid (Brostow et al. 2009) with the 11 classes and the division of SegNet (Badrinarayanan et al. 2017, arXiv:1511.00561):
 * train/ trainannot/ val/ valannot/ test/ testannot/, label maps of numbers, of which 11 is void. */
#include "data/dataset.h"
#include "data/label_maps.h"

static const char *const names[] = { "sky", "building", "pole", "road", "pavement", "tree", "sign", "fence", "car", "pedestrian",
	"bicyclist",
	NULL };
static const uint8_t colours[][3] = { { 128, 128, 128 }, { 128, 0, 0 }, { 192, 192, 128 }, { 128, 64, 128 }, { 60, 40, 222 },
	{ 128, 128, 0 }, { 192, 128, 128 }, { 64, 64, 128 }, { 64, 0, 128 }, { 64, 64, 0 }, { 0, 128, 192 } };
enum { VOID = 11 };

static int open_camvid(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	(void)conf;
	return nr_label_folder_open(s, &(struct nr_label_folder){ .root = dir, .ignored = VOID, .names = names, .colour = colours }, err);
}

static const struct nr_data_file files[] = { { .path = "train.txt" }, { NULL } };

const struct nr_dataset nr_dataset_camvid = {
	.name = "camvid", .title = "CamVid", .cite = "arXiv:1511.00561", .licence = "CC BY-NC 4.0",
	.facts = "367 / 101 / 233 street scenes, 480 x 360, a class of 11 for every pixel",
	.folder = "CamVid", .files = files,
	.open = open_camvid, .get = nr_listed_get, .label = nr_label_maps_none, .map = nr_label_maps_get,
};
