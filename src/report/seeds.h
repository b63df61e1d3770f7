/* The figure of every seed: a row for each arm, a dot for each of its runs, the mean and its 95 % interval. */
#ifndef NR_SEEDS_H
#define NR_SEEDS_H

#include "report/arms.h"
#include "report/study_read.h"

/* Of the metric that decides; nothing where no arm has two runs. */
void nr_seeds_of_study(struct nr_str *, const struct nr_study_read *, struct nr_arena *);
void nr_seeds_of_runs(struct nr_str *, const struct nr_arms *, struct nr_arena *);

#endif
