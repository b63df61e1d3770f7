/* Attentive probing: a learned query attends to all frozen tokens of a picture, and a linear layer reads what it finds (Bardes et al.
 * 2024, V-JEPA, arXiv:2404.08471; Yu et al. 2022, CoCa, arXiv:2205.01917). It can use what a mean over tokens loses. */
#ifndef NR_ATTENTIVE_H
#define NR_ATTENTIVE_H

#include "analysis/probe.h"
#include "infer/features.h"

struct nr_token_set { int64_t count, tokens, width; float *x; int32_t *label; };         /* (count,tokens,width), (count) */
/* All tokens that the encoder's last block leaves, after the final norm; they must fit into memory. */
int nr_token_set_of(struct nr_token_set *, const struct nr_weights *, const struct nr_evaluation *, int64_t batch, struct nr_error *);
void nr_token_set_release(struct nr_token_set *);

struct nr_attentive {
	int64_t classes, heads, batch;
	double epochs;                      /* of AdamW steps with a cosine after a tenth of warm-up */
	double lr[NR_PROBE_MAX];            /* to choose from, on held-out training samples */
	int64_t lrs;
	double hold_out, weight_decay;
	uint64_t seed;
	int (*watch)(void *context, int64_t done, int64_t of);      /* steps; non-zero stops; or NULL */
	void *context;
};
/* Channels are standardised by the training tokens. The result is as nr_probe_run's: base_lr is the learning rate. */
int nr_attentive_run(const struct nr_attentive *, const struct nr_token_set *train, const struct nr_token_set *test,
	struct nr_probe_result *, struct nr_error *);

#endif
