/* Necks and convolutions of detectors. Maps are tokens (B,T,C) with their grid, from the finest on.
 *
 * FPN (Lin et al. 2017, arXiv:1612.03144): a 1 x 1 convolution of each level, the way down that adds the coarser one to each, a 3 x 3
 * convolution of each sum. Then further, coarser levels: those of RetinaNet (arXiv:1708.02002) or the one of R-CNN.
 *
 *   parameters  levels.I.neck.lateral.conv, levels.I.neck.out.conv; of further levels neck.extra alone
 *   sites       neck.lateral, neck.out, neck.extra: no norm by default */
#ifndef NR_FPN_H
#define NR_FPN_H

#include <stdbool.h>

#include "norma/model.h"

enum nr_fpn_extra {
	NR_FPN_NO_EXTRA,
	NR_FPN_POOL,                /* every second place of the last level, as R-CNN's P6 */
	NR_FPN_CONV_INPUT,          /* 3 x 3 with stride 2 on the last level of the backbone, then on one another */
	NR_FPN_CONV_OUTPUT,         /* the same from the last level of the neck on */
};
struct nr_fpn {
	int64_t dim;                /* channels of all levels */
	enum nr_fpn_extra extra;
	int32_t extras;             /* how many further levels: 2 in RetinaNet */
	bool relu_between;          /* convolutions of further levels read relu of the one before (torchvision) */
};
/* Pixels between the places of a level with n of them: the power of two that leaves so many of size, rounded up or down; the quotient if
 * there is none. Of all levels of a picture of this height: those after the first are coarser by powers of two. */
double nr_level_stride(int64_t size, int64_t n);
void nr_level_strides(int64_t size, nr_t *const *map, int levels, double *stride);
/* Records the neck of `count` levels; out gets the maps. How many: 0 after an error. */
int nr_fpn(struct nr_net *, const struct nr_fpn *, nr_t *const *level, int count, nr_t *out[NR_MAXLEVELS]);

/* A convolution k x k of a map with padding for stride 1, the norm that the plan has for `site`, and relu if wanted. Parameters are
 * SITE.conv and SITE; with a norm there is no bias. */
struct nr_map_conv { int64_t out, k, stride; bool relu; };
nr_t *nr_map_conv(struct nr_net *, const char *site, nr_t *map, struct nr_map_conv);

#endif
