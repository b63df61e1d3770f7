/* Samples of segmentation: a square of a picture and the same square of its label map. */
#ifndef NR_SEGMENT_VIEW_H
#define NR_SEGMENT_VIEW_H

#include "norma/data.h"

/* As Segmenter (Strudel et al. 2021, arXiv:2105.05633, section 4.1) and mmsegmentation make them: resized by a random factor, cut at
 * random, mirrored, recoloured; what a square lacks is filled with the mean colour and does not count. */
struct nr_segment_maker {
	int32_t size;                       /* of the square */
	int64_t side;                       /* shorter side before the factor; 0: the picture's */
	double zoom_min, zoom_max;
	double most;                        /* a square of which one class has more is drawn anew, ten times at most; 1: never */
	double flip;
	struct nr_augment colours;          /* what happens to the square itself, and how it becomes floats */
	struct nr_pixel_stats stats;
};
struct nr_segment_maker nr_segment_maker_of(const struct nr_augment *, const struct nr_source *);
/* For nr_loader_config.make; extra: (size,size) bytes of classes. */
nr_make_fn nr_segment_make;

#endif
