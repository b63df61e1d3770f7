/* Attention inside the windows of a grid, shifted cyclically (Swin, Liu et al. 2021, arXiv:2103.14030, section 3.2): a window's tokens are
 * gathered into the cache by the thread that computes it and its result is put where it belongs, so neither shift nor windows are ever
 * made in memory. Parts of a window that the shift brought together from opposite ends of the grid are masked with -100. */
#ifndef NR_ATTENTION_WINDOWS_H
#define NR_ATTENTION_WINDOWS_H

#include "math/attention.h"

struct nr_windows {
	/* Of one window: H, d, dv, scale, dropout, rng, bias (H,n,n), gbias, threads, scratch. q, k, v, out, gout, gq, gk, gv with their
	 * strides and lse are of the whole grid, B of the samples; Tq and Tk are the n tokens of a window. */
	struct nr_attention a;
	int64_t h, w, roll_h, roll_w;       /* the grid; the part of it that is shifted, from its upper left corner */
	int64_t wh, ww, sh, sw;             /* a window; the shift */
};

static inline int64_t nr_windows_count(const struct nr_windows *w) { return w->h / w->wh * (w->w / w->ww); }
size_t nr_windows_scratch(const struct nr_windows *);           /* bytes, for a.threads; a.gbias not NULL: for the bias' gradient too */
void nr_windows_forward(const struct nr_windows *);             /* lse (B,windows,H,n) */
void nr_windows_backward(const struct nr_windows *);

#endif
