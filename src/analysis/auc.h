/* Area under the ROC curve, as the Open Graph Benchmark's evaluator takes it. */
#ifndef NR_AUC_H
#define NR_AUC_H

#include <stdint.h>

#include "norma/err.h"

/* Chance that a sample of class 1 has a higher score than one of class 0; equal scores count one half. target is 1, 0 or NaN: not
 * known. NAN without both classes, or if a score is not finite. */
int nr_roc_auc(int64_t n, const double *score, const double *target, double *out, struct nr_error *);
/* Mean over the tasks that have both classes; score and target are (n, tasks). NAN: no task has. */
int nr_roc_auc_mean(int64_t n, int64_t tasks, const double *score, const double *target, double *out, struct nr_error *);

#endif
