/* Fixed sin-cos position tables, in the three forms of the public recipes. Computed in double. */
#ifndef NR_SINCOS_H
#define NR_SINCOS_H

#include "base/real.h"

/* MAE (Moco v3): out (special + h w, dim), special leading zero rows; sin(col) cos(col) sin(row) cos(row), a
 * quarter each; frequencies 10000^(-i/(dim/4)). dim % 4 == 0. */
void nr_sincos_mae(int64_t h, int64_t w, int64_t dim, int64_t special, real *out);
/* big_vision: the same order, frequencies 10000^(-i/(dim/4-1)), no special rows. */
void nr_sincos_bigvision(int64_t h, int64_t w, int64_t dim, real *out);
/* Vaswani et al. 2017, T2T-ViT: out (n,dim); even channels sin, odd cos of pos / 10000^(2 floor(j/2)/dim). */
void nr_sincos_1d(int64_t n, int64_t dim, real *out);

#endif
