/* Scores of a model on a split. */
#ifndef NR_EVALUATE_H
#define NR_EVALUATE_H

#include "norma/data.h"
#include "norma/infer.h"

struct nr_score { double loss, top1, top5, ece; int64_t samples; };   /* shares of 1; ece: calibration error, 15 bins */
/* With batch statistics a last batch that is not full is left out: score.samples says how many counted. */
int nr_evaluate(struct nr_runner *, const struct nr_evaluation *, struct nr_score *, struct nr_error *);

/* Runs over the batches of this rank alone; each hears of no others. Without ranks as nr_run_over. */
int nr_run_own(struct nr_runner *, const struct nr_evaluation *, nr_each_batch *each, void *out, struct nr_error *);

/* Where data meet a model's head: an error unless both have as many classes. */
int nr_classes_fit(int64_t classes, const struct nr_source *, struct nr_error *);

#endif
