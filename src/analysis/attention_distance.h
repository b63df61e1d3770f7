/* Mean attention distance (Dosovitskiy et al. 2021; DTN): d = 1/T sum_i sum_j A_ij |p_i - p_j|, in tokens of
 * the grid. */
#ifndef NR_ATTENTION_DISTANCE_H
#define NR_ATTENTION_DISTANCE_H

#include "base/real.h"

/* out (T,T), T = h w, row-major grid. */
void nr_grid_distance(int64_t h, int64_t w, real *out);
/* attn (B,H,S+T,S+T), S leading special tokens whose rows and columns are dropped; renormalise: what is left
 * of each row is divided by its sum. per_head (H), per_token (H,T; may be NULL): means over the batch. */
void nr_attention_distance(int64_t B, int64_t H, int64_t S, int64_t h, int64_t w, const real *attn,
	int renormalise, double *per_head, real *per_token);

#endif
