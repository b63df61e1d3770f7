/* What a model makes of a split: features for probes. */
#ifndef NR_FEATURES_H
#define NR_FEATURES_H

#include "infer/evaluate.h"

/* As nr_runner_open, without the head, which a pre-trained encoder does not have; logits is NULL. */
int nr_runner_open_encoder(struct nr_runner *, const struct nr_weights *, int64_t batch, struct nr_error *);

/* The same, and what comes out of each block stays readable: nr_plan_tap(plan, "block0", NULL), ... */
int nr_runner_open_layers(struct nr_runner *, const struct nr_weights *, int64_t batch, struct nr_error *);

struct nr_feature_set { int64_t count, width; float *x; int32_t *label; };  /* (count,width), (count) */
/* Pooled features of samples of a split (index NULL: all). watch as in nr_evaluation. */
int nr_features_of(struct nr_feature_set *, const struct nr_weights *, const struct nr_evaluation *, int64_t batch, struct nr_error *);
void nr_features_release(struct nr_feature_set *);

/* As the linear evaluation of DINO reads a model: the class token after each of the last blocks that has one, side by side, each through
 * the final norm; `mean`: then the mean of the last patch tokens. That alone if there is no class token. pooled is all of it. */
int nr_runner_open_blocks(struct nr_runner *, const struct nr_weights *, int64_t batch, int64_t blocks, bool mean, struct nr_error *);
int nr_block_features_of(struct nr_feature_set *, const struct nr_weights *, const struct nr_evaluation *, int64_t batch, int64_t blocks,
	bool mean, struct nr_error *);

/* What a linear probe may read. The kind that the model's own head reads is exactly that (with a norm or layer between the
 * pooling and the head); the other one is taken from the encoder's last tokens, after the final norm unless it follows the mean. */
enum nr_feature_kind { NR_FEATURE_CLS, NR_FEATURE_MEAN, NR_FEATURE_KINDS };
extern const char *const nr_feature_names[];            /* "cls", "mean"; ends with NULL */
struct nr_token_features {
	int64_t count, width;
	float *x[NR_FEATURE_KINDS];         /* (count,width): the class token, the mean of the patch tokens; NULL: not wanted */
	int32_t *label;                     /* (count) */
};
/* want: bits 1 << kind. No class token but NR_FEATURE_CLS wanted is an error. */
int nr_token_features_of(struct nr_token_features *, const struct nr_weights *, const struct nr_evaluation *, int64_t batch, unsigned want,
	struct nr_error *);
int nr_token_features_make(struct nr_token_features *, int64_t count, int64_t width, unsigned want, struct nr_error *);
void nr_token_features_release(struct nr_token_features *);
bool nr_has_class_token(const struct nr_weights *);
/* Those of the first n samples of what an encoder's runner has just run, to out (n,width). */
void nr_runner_features(const struct nr_runner *, const struct nr_weights *, enum nr_feature_kind, int64_t n, float *out);

/* Class token (if it is there: it may join late) and mean of the patch tokens after every block, in the order of the blocks. */
struct nr_layer_features { int64_t layers; struct nr_token_features *layer; };
int nr_layer_features_of(struct nr_layer_features *, const struct nr_weights *, const struct nr_evaluation *, int64_t batch, unsigned want,
	struct nr_error *);
void nr_layer_features_release(struct nr_layer_features *);

#endif
