/* Tuning before a study: every arm gets the same number of runs with the same values, on seeds of its own, and its real runs then
 * use what was best for it.
 *
 *   tune:
 *     lr: [1e-3, 2e-3, 4e-3]                   an option with a list is tuned: every combination, if there are several
 *     epochs: 2                                one with a value holds for the tuning runs only
 *     metric: train.eval_top1                  default: the study's. Not the test set's, if that is to stay unseen
 *     better: higher                           default: lower for losses, higher for the rest
 *     seeds: 1                                 of each combination
 *     budget: 8                                combinations of an arm at most; more are drawn at random, the same for every arm
 *
 * The folder OUT/tune is a study too; sensitivity.csv there has the metric against the values. */
#ifndef NR_STUDY_TUNE_H
#define NR_STUDY_TUNE_H

#include "study/results.h"

enum { NR_TUNE_SEED = 1000000 };            /* the first seed of tuning runs: none that a study is likely to have */
enum { NR_TUNE_AXES = 8 };

struct nr_tune {
	struct nr_factor axis[NR_TUNE_AXES];
	int64_t axes, seeds, budget;        /* budget 0: all */
	struct nr_settings own;             /* of the tuning runs */
	const char *metric;                 /* NULL: the study's */
	int better;                         /* 1: higher, -1: lower, 0: by the metric's name */
	struct nr_list notes;               /* one for each arm, when it is done */
};

/* One entry: an option with its values, or metric, better, seeds, budget. stage NULL: see study.h. */
int nr_tune_set(struct nr_study *, const struct nr_setting *, struct nr_error *);
/* The same from a flag: "lr=1e-3,2e-3". */
int nr_tune_flag(struct nr_study *, const char *text, struct nr_error *);
/* The study of the tuning runs; also checks it. */
int nr_tune_study(const struct nr_study *, struct nr_study *to, struct nr_error *);
/* The study with each arm's best settings, from the tuning study's summary; writes OUT/tune/sensitivity.csv. */
int nr_tune_apply(const struct nr_study *, const struct nr_summary *tuning, struct nr_study *to, struct nr_error *);
/* Curves of the metric against the values of one option, arm by arm; nothing for several options. */
void nr_tune_plot(const struct nr_study *, const struct nr_summary *tuning, struct nr_str *);
/* As `tune:`, for the record. */
void nr_tune_write(const struct nr_study *, struct nr_str *);

#endif
