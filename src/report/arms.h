/* Arms: runs that differ in nothing but their seed, named by their norm plan; and what is measured of them. */
#ifndef NR_ARMS_H
#define NR_ARMS_H

#include "report/runfolder.h"
#include "report/interval.h"

enum { NR_MEASURES = 20 };

struct nr_arm {
	const char *name;                       /* the norm plan; with what else differs if plans repeat */
	const char *letter;                     /* "A", "B", ... */
	const char *label;                      /* for charts: the name if all are short, else the letter */
	const char *also;                       /* other settings in which arms differ, "" if none */
	int *run;                               /* indices of its runs; those that repeat a seed come last */
	int runs, distinct;                     /* distinct: with seeds that differ; intervals count only these */
	struct nr_estimate estimate[NR_MEASURES];
};

struct nr_arms {
	const struct nr_runfolder *run;
	struct nr_arm *arm;
	int count, runs;
	const char *differ;                     /* settings other than the norms in which arms differ, "" if none */
};

/* By everything in config.yaml but seed, out, store and microscope; in the order of the first run of each. */
int nr_arms_group(struct nr_arms *, const struct nr_runfolder *, int count, struct nr_arena *, struct nr_error *);

/* By what is known already: run i is one of the arm of[i], no seed comes twice. An arm may have no runs. */
int nr_arms_given(struct nr_arms *, const struct nr_runfolder *, int count, const int *of, const char *const *name, int arms,
	struct nr_arena *, struct nr_error *);

enum nr_measured { NR_PERCENT, NR_PLAIN, NR_DURATION };
struct nr_measure {
	const char *title;                      /* of a column: "probe top-1, [CLS]" */
	const char *unit;                       /* below it: "%" */
	const char *words;                      /* in a sentence: "linear probe top-1 on [CLS]" */
	int better;                             /* 1: the larger; -1: the smaller; 0: neither */
	enum nr_measured kind;
	int decimals;
	bool cost;                              /* what it takes, not what comes of it */
	double (*of)(const struct nr_runfolder *);              /* NAN if not measured */
	double (*samples)(const struct nr_runfolder *);         /* a share's samples; NULL: it is none */
};
extern const struct nr_measure nr_measures[NR_MEASURES + 1];    /* ends with a NULL title; those that decide come first */
extern const struct nr_measure *const nr_uniformity_measure, *const nr_rank_measure;

/* Fills the estimates: over seeds if there are several, else over samples if it is a share. mean is NAN if no run has it. */
void nr_arms_measure(struct nr_arms *);
struct nr_estimate nr_arm_estimate(const struct nr_arms *, int arm, const struct nr_measure *);
/* "83.21 %", "−2.104", "2 min 05 s"; returns buf. with_unit: also %. */
const char *nr_measure_text(const struct nr_measure *, double, bool with_unit, char *buf, size_t size);
/* The arm with the best mean but for one (-1: all count); -1 if none has one or nothing is better. */
int nr_best_arm(const struct nr_arms *, const struct nr_measure *, int except);

#endif
