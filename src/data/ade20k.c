/* ADE20K, scene parsing (Zhou et al. 2017, arXiv:1608.05442): images/ and annotations/ with training/ and validation/, label maps of
 * numbers from 1 to 150, of which 0, other things, does not count. */
#include "data/dataset.h"
#include "data/label_maps.h"

/* Mean and standard deviation of ImageNet, as everyone scales these pictures. */
static const float mean[] = { 0.485F, 0.456F, 0.406F }, std[] = { 0.229F, 0.224F, 0.225F };

static int open_ade20k(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	(void)conf;
	return nr_label_folder_open(s, &(struct nr_label_folder){ .root = dir, .val = -1, .ignored = 0, .mean = mean, .std = std,
		.trusted = true }, err);
}

static const struct nr_data_file files[] = { { .path = "objectInfo150.txt" }, { NULL } };
static const struct nr_download downloads[] = {
	{ .from = "official", .url = "https://data.csail.mit.edu/places/ADEchallenge/ADEChallengeData2016.zip",
		.file = "ADEChallengeData2016.zip",
	  .md5 = "7328b3957e407ddae1d3cbf487f149ef", .inside = "ADEChallengeData2016" },
	{ NULL },
};

const struct nr_dataset nr_dataset_ade20k = {
	.name = "ade20k", .title = "ADE20K", .cite = "arXiv:1608.05442", .licence = "research use",
	.facts = "20210 / 2000 scenes, a class of 150 for every pixel",
	.folder = "ADEChallengeData2016", .files = files, .downloads = downloads,
	.open = open_ade20k, .get = nr_listed_get, .label = nr_label_maps_none, .map = nr_label_maps_get,
};
