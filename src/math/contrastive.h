/* Image-text losses of LiT / CLIP (softmax) and SigLIP (sigmoid) on embeddings (B,C), normalised here:
 *   softmax: logits t z_i.z_j;      mean over B of half the cross entropy along rows and half along columns
 *   sigmoid: logits t z_i.z_j + b;  mean over images of -sum_j log sigmoid(+-logit)
 * t = exp(log_t). Gradients are for the raw embeddings, log_t and b. */
#ifndef NR_CONTRASTIVE_H
#define NR_CONTRASTIVE_H

#include <stddef.h>

#include "base/real.h"

enum nr_contrastive_kind { NR_CONTRASTIVE_SOFTMAX, NR_CONTRASTIVE_SIGMOID };
struct nr_contrastive {
	int64_t B, C;
	enum nr_contrastive_kind kind;
	double log_t, bias;                /* bias: sigmoid only */
	const real *image, *text;          /* (B,C) */
	real *logits;                      /* (B,B) out */
	real *d_image, *d_text;            /* (B,C) out, overwritten */
	double loss, d_log_t, d_bias;      /* out */
};
size_t nr_contrastive_scratch(int64_t B, int64_t C); /* bytes */
void nr_contrastive_run(struct nr_contrastive *, void *scratch);

#endif
