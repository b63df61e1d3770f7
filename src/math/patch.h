/* Windows over pictures as rows of features: patches of a ViT, T2T's soft split, the columns of a convolution. */
#ifndef NR_PATCH_H
#define NR_PATCH_H

#include "math/chunk.h"
#include "math/isa.h"
#include "norma/patch.h"

/* A window kh x kw that moves by sh, sw over x (B,H,W,C), channels last, with ph, pw zeros around. */
struct nr_window {
	int64_t B, H, W, C;
	int64_t kh, kw, sh, sw, ph, pw;
};

/* Places of the window along one side; 0 when it does not fit. */
static inline int64_t nr_window_out(int64_t size, int64_t k, int64_t stride, int64_t pad)
{
	return size + 2 * pad < k ? 0 : (size + 2 * pad - k) / stride + 1;
}
static inline int64_t nr_window_h(const struct nr_window *w) { return nr_window_out(w->H, w->kh, w->sh, w->ph); }
static inline int64_t nr_window_w(const struct nr_window *w) { return nr_window_out(w->W, w->kw, w->sw, w->pw); }
static inline int64_t nr_window_rows(const struct nr_window *w) { return w->B * nr_window_h(w) * nr_window_w(w); }
static inline int64_t nr_window_cols(const struct nr_window *w) { return w->kh * w->kw * w->C; }

/* out (rows,kh*kw*C): windows row.. of all nr_window_rows (sample, y, x in this order). */
void nr_unfold(const struct nr_window *, enum nr_patch_order, const real *x, int64_t row, int64_t rows, real *out);
void nr_unfold_serial(const struct nr_window *, enum nr_patch_order, const real *x, int64_t row, int64_t rows, real *out);
/* Its transpose for whole samples b..b+n-1: dx, overwritten or added to, gets the sum of all windows' features in a fixed
 * order. cols: the windows of these samples only; dx: the whole (B,H,W,C). */
void nr_fold_windows(const struct nr_window *, enum nr_patch_order, const real *cols, int64_t b, int64_t n, real *dx, int add);

/* The same by one thread for n rows of windows of sample b, from row oy on: added to dx. cols (n,Wo,kh,kw,C): of these rows. */
void nr_fold_rows(const struct nr_window *, const real *cols, int64_t b, int64_t oy, int64_t n, real *dx);

/* Windows side by side that overhang neither side: n of them, `step` values apart, each with `run` values of kh lines of the picture. */
struct nr_patch_kernels {
	/* out (n,kh,run) = the windows' values; a line that is NULL lies outside and gives zeros. */
	void (*unfold)(int64_t n, int64_t kh, int64_t run, int64_t step, const real *const *line, real *out);
};
NR_FAMILY_DECLARE(patch);

/* image (B,C,H,W) to out (B,T,p*p*C), T = (H/p) (W/p); what does not fill a patch is left out. */
void nr_patch_split(int64_t B, int64_t C, int64_t H, int64_t W, int64_t p, enum nr_patch_order, const real *image, real *out,
	int add);
/* The way back; add = 0 sets what is in no patch to zero. */
void nr_patch_merge(int64_t B, int64_t C, int64_t H, int64_t W, int64_t p, enum nr_patch_order, const real *patches,
	real *image, int add);

#endif
