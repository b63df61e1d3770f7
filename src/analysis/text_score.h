/* How well classes or values were told: accuracy, F1, Matthews' correlation; Pearson's and Spearman's. */
#ifndef NR_TEXT_SCORE_H
#define NR_TEXT_SCORE_H

#include "base/real.h"
#include "norma/err.h"

struct nr_text_score {                      /* NAN: not measured */
	double loss;                        /* mean cross entropy; mean squared error of values */
	double accuracy, f1, matthews;      /* f1: of class 1 of two (as GLUE has it), else the mean over classes */
	double pearson, spearman;           /* of values */
	int64_t samples;
};
/* output (n,classes): scores of classes; label outside 0 .. classes - 1: left out. confusion (classes,classes): NULL, or counts of truth
 * against prediction, added to. */
int nr_score_classes(int64_t n, int64_t classes, const real *output, const int32_t *label, int64_t *confusion, struct nr_text_score *,
	struct nr_error *);
/* output (n); a value that is NAN is left out. */
int nr_score_values(int64_t n, const real *output, const double *value, struct nr_text_score *, struct nr_error *);

#endif
