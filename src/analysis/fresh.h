/* Features of augmented pictures, made when they are asked for: MAE's linear probing draws a random crop and a mirror image of every
 * picture in every epoch (He et al. 2022, arXiv:2111.06377, appendix A.1). */
#ifndef NR_FRESH_H
#define NR_FRESH_H

#include "infer/features.h"

struct nr_fresh;
/* Of the split of the evaluation, whose augmentation it takes over but for the crop (random_resized, with its usual shares) and the mirror
 * image (one half). */
int nr_fresh_open(struct nr_fresh **, const struct nr_weights *, const struct nr_evaluation *, int64_t batch, uint64_t seed,
	struct nr_error *);
void nr_fresh_close(struct nr_fresh *);                                  /* NULL is fine */
void nr_fresh_kind(struct nr_fresh *, enum nr_feature_kind);             /* what nr_fresh_take gives from now on */
/* x (n,width) of these samples; a pure function of seed, epoch and sample. As nr_probe.fresh wants it. */
int nr_fresh_take(void *fresh, const int32_t *sample, int64_t n, int64_t epoch, float *x, struct nr_error *);

#endif
