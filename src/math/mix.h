/* Mixup (Zhang et al. 2018) and CutMix (Yun et al. 2019): images and soft targets mixed with a partner of the
 * batch. */
#ifndef NR_MIX_H
#define NR_MIX_H

#include "base/real.h"

enum nr_mix_partner {
	NR_MIX_FLIP, /* timm: sample B-1-i */
	NR_MIX_ROLL, /* big_vision: sample i-1, the last one for the first */
};
int64_t nr_mix_partner(enum nr_mix_partner, int64_t B, int64_t i);

/* y_i = lam x_i + (1-lam) x_partner(i); samples of n values; y is not x. */
void nr_mixup(int64_t B, int64_t n, const real *x, enum nr_mix_partner, real lam, real *y);

struct nr_box { int32_t y0, y1, x0, x1; }; /* rows y0 <= y < y1, columns x0 <= x < x1 */
/* timm's box: sides sqrt(1-lam) of the image, cut off at its border, centred at (cy,cx). */
struct nr_box nr_cutmix_box(int64_t h, int64_t w, double lam, int64_t cy, int64_t cx);
double nr_cutmix_lam(int64_t h, int64_t w, struct nr_box); /* the part of the image that stays */
/* y = x with the box taken from the partner. Images (planes,h,w,inner): planes = 1 for channels last, inner =
 * 1 for first. */
void nr_cutmix(int64_t B, int64_t planes, int64_t h, int64_t w, int64_t inner, const real *x,
	enum nr_mix_partner, struct nr_box, real *y);

/* target (B,C) = lam s(label_i) + (1-lam) s(label_partner), s: smoothing/C, and 1 - smoothing + smoothing/C
 * at the label. */
void nr_mix_targets(int64_t B, int64_t C, const int32_t *label, real smoothing, enum nr_mix_partner, real lam,
	real *target);

#endif
