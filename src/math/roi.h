/* RoIAlign (He et al. 2017, arXiv:1703.06870) from several levels of a pyramid, its gradient, and masks pooled likewise. Boxes are
 * x1 y1 x2 y2 in pixels of the picture. */
#ifndef NR_ROI_H
#define NR_ROI_H

#include <stddef.h>

#include "base/real.h"

enum { NR_ROI_LEVELS = 7 };

struct nr_roi {
	int64_t h, w;                   /* the result has h x w places */
	int64_t samples;                /* in each direction of a place; 0: as many as pixels of the map */
	int aligned;                    /* pixel centres at half numbers; else at whole ones, and boxes have at least one pixel */
};

/* Which level a box of side s (root of its area) is read from: floor(at + log2(s / side)), with 1e-6 added to the logarithm, or to
 * s / side (inside), clamped to those there are. torchvision: side 224, at 4 less the exponent of the first stride; mmdetection: side
 * 56, at 0, inside. */
struct nr_roi_pick { double side, at; int inside; };
int nr_roi_level(const struct nr_roi_pick *, int levels, const real box[4]);

struct nr_roi_maps {                    /* of B pictures, S boxes each */
	struct nr_roi roi;
	struct nr_roi_pick pick;
	int64_t B, S, C;
	int levels;
	struct { int64_t h, w; double scale; } level[NR_ROI_LEVELS];    /* scale: places of the map in a pixel, 1 / stride */
	int channels_first;             /* results are (C,h w) instead of (h w,C) */
	int threads;
};
size_t nr_roi_scratch(const struct nr_roi_maps *);                      /* bytes */
/* map[l] (B,h,w,C), box (B,S,4) -> out (B,S,h w C). */
void nr_roi_forward(const struct nr_roi_maps *, const real *const *map, const real *box, real *out, void *scratch);
/* dmap[l] (+)= the gradient, by add[l]; NULL: not wanted. Boxes get none. */
void nr_roi_backward(const struct nr_roi_maps *, const real *box, const real *dout, real *const *dmap, const uint8_t *add);

/* One box on one map (h,w,C). */
void nr_roi_one(const struct nr_roi *, int64_t h, int64_t w, int64_t C, const real *map, const real box[4], double scale, real *out);
/* The share of a mask (h,w) in each place of a box, or (threshold) whether it is at least half; pixel p is bit p % 8 of byte p / 8. */
void nr_roi_mask(const struct nr_roi *, int64_t h, int64_t w, const uint8_t *bits, const real box[4], int threshold, real *out);

#endif
