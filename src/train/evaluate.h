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
	int (*watch)(void *context, int64_t done, int64_t of);  /* non-zero stops; or NULL */
	void *context;
};
/* The augmentation for evaluation: resize and centre crop to the model's size, normalised as in training. */
struct nr_augment nr_augment_for_eval(const struct nr_augment *train, int64_t size, int32_t channels, double crop_share);
/* Runs the model over the samples; each gets a batch after it, whose first sample has this number. Returns 1 when watch stopped it.
 * With batch statistics a last batch that is not full is left out. */
typedef void nr_each_batch(void *out, const struct nr_runner *, const struct nr_batch *, int64_t first);
int nr_run_over(struct nr_runner *, const struct nr_evaluation *, nr_each_batch *each, void *out, struct nr_error *);
/* With batch statistics a last batch that is not full is left out: score.samples says how many counted. */
int nr_evaluate(struct nr_runner *, const struct nr_evaluation *, struct nr_score *, struct nr_error *);

#endif
