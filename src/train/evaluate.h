/* Scores of a model on a split. */
#ifndef NR_EVALUATE_H
#define NR_EVALUATE_H

#include "norma/trainer.h"

struct nr_evaluation {
	const struct nr_source *source;
	enum nr_split split;
	const int32_t *index;               /* samples of the split, or NULL: all */
	int64_t count;                      /* how many; 0: all */
	struct nr_augment augment;          /* without chance */
	enum nr_stats stats;
	int workers;
	int64_t *confusion;                 /* (classes,classes) added to, row = truth; or NULL */
	float *logits, *pooled;             /* (count,classes), (count,width) in the order of the samples; or NULL */
	int32_t *label;                     /* (count) or NULL */
	int (*watch)(void *context, int64_t done, int64_t of);  /* non-zero stops; or NULL */
	void *context;
};
/* The augmentation for evaluation: resize and centre crop to the model's size, normalised as in training. */
struct nr_augment nr_augment_for_eval(const struct nr_augment *train, int64_t size, int32_t channels, double crop_share);
/* With batch statistics a last batch that is not full is left out: score.samples says how many counted. */
int nr_evaluate(struct nr_runner *, const struct nr_evaluation *, struct nr_score *, struct nr_error *);

#endif
