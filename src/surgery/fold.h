/* Norms that become part of the layers around them, so that they need not be computed, or with less work. The outputs stay what they are,
 * up to rounding.
 *
 *   layer, rms, dyt, derf    y = W (gain n(x) + bias) + b          W' = W gain (columns), b' = b + W bias; n(x) stays
 *   batch, repbn, prepbn     y = W (s x + t) + b, from the         W' = W s, b' = b + W t; nothing stays
 *                            running statistics; none with a gain and taper
 *                            at its end likewise
 *   LayerScale               y = gamma (W x + b)                   W' = gamma W (rows), b' = gamma b
 *
 * A norm folds where all that reads it are linear layers with weights of their own (through pooling and cuts of tokens too): queries, keys
 * and values, or gate and value of a gated MLP, take it together. It does not where the residual stream reads it (post-norm). */
#ifndef NR_FOLD_H
#define NR_FOLD_H

#include "norma/infer.h"

struct nr_fold_site {
	const char *name, *norm;            /* "blocks.0.attn.in", "layer"; LayerScale: "blocks.0.attn.scale" */
	const char *became;                 /* "layer:affine=0", "none"; NULL: it stays as it is, and */
	const char *why;
};
extern const char nr_fold_bare[];           /* the `why` of a norm that learned nothing, or was folded before */
struct nr_folding {
	struct nr_fold_site *site;          /* in the arena of the weights */
	int64_t sites, folded;
	int64_t before, after;              /* parameters and buffers of the model */
};
/* After a failure the weights are as they were. Nothing that folds is no failure. */
int nr_fold_norms(struct nr_weights *, struct nr_folding *, struct nr_error *);
/* The norms of a net recorded with this store, whose layers change; what each site becomes is for the caller to record. output: the scope
 * whose tokens are what the model is for, or NULL. f in the arena, but for before and after. */
int nr_fold_recorded(const struct nr_net *, struct nr_store *, const char *output, struct nr_arena *, struct nr_folding *f,
	struct nr_error *);

/* For models with the option `folded` (LeViT), whose batch norms at LAYER.norm stand behind layers without a bias, or before a head: they
 * all become part of their layers (fold_deployed.c). *folded: how many norms. After a failure the weights are as they were. */
int nr_fold_deployed(struct nr_weights *, int64_t *folded, struct nr_error *);

#endif
