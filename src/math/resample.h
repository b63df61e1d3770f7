/* Resampling of channel-last maps (h,w,C) to (H,W,C), separable, with its adjoint: position tables and
 * feature maps.
 *
 * The public recipes differ (names of enum nr_resample): timm widens the kernel when shrinking and
 * renormalises at the border; MAE, DeiT and HF do not; DINO's coordinate step is old/(new+0.1); big_vision
 * aligns the corners. */
#ifndef NR_RESAMPLE_H
#define NR_RESAMPLE_H

#include <stddef.h>

#include "base/real.h"

enum nr_resample {
	NR_RESAMPLE_TIMM,             /* bicubic a = -.5, antialias */
	NR_RESAMPLE_BICUBIC,          /* MAE: a = -.75, border clamped */
	NR_RESAMPLE_DINO,             /* as MAE, step old / (new + 0.1) */
	NR_RESAMPLE_BILINEAR,         /* half-pixel centres, as PyTorch with align_corners = false */
	NR_RESAMPLE_BILINEAR_CORNERS, /* big_vision: first and last samples stay where they are */
};

/* The weights of one axis: to (to,from) row-major, each row non-zero only in first <= k < last. */
struct nr_axis { int64_t from, to; real *weight; int32_t *first, *last; };
size_t nr_axis_bytes(int64_t from, int64_t to);
struct nr_axis nr_axis_init(enum nr_resample, int64_t from, int64_t to, void *memory); /* aligned to 8 */

/* One row of the result: row i between the rows of x (h,n), n values; then across, from w places of C channels to W. The adjoint of
 * the latter adds to d_line. */
void nr_resample_row(const struct nr_axis *rows, int64_t i, int64_t n, const real *x, real *line);
void nr_resample_across(const struct nr_axis *cols, int64_t C, const real *line, real *y);
void nr_resample_across_back(const struct nr_axis *cols, int64_t C, const real *dy, real *d_line);

/* tmp: H w C reals. y = (Y resampled along h, then w). dx is overwritten, or added to. */
void nr_resample_forward(
	const struct nr_axis *rows, const struct nr_axis *cols, int64_t C, const real *x, real *y, real *tmp);
void nr_resample_backward(const struct nr_axis *rows, const struct nr_axis *cols, int64_t C, const real *dy,
	real *dx, int add, real *tmp);

#endif
