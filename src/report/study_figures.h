/* Pictures of a study as a whole: accuracy against cost, uniformity against accuracy, and what tuning saw. */
#ifndef NR_STUDY_FIGURES_H
#define NR_STUDY_FIGURES_H

#include "report/study_read.h"

/* A section; nothing if no arm has a result. */
void nr_study_trade_offs(struct nr_str *, const struct nr_study_read *, struct nr_arena *);
/* A section; nothing if the study was not tuned. */
void nr_study_tuning(struct nr_str *, const struct nr_study_read *, struct nr_arena *);

#endif
