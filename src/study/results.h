/* What came of a study: numbers of each run, statistics of each arm, tables. */
#ifndef NR_STUDY_RESULTS_H
#define NR_STUDY_RESULTS_H

#include "base/json.h"
#include "study/stats.h"
#include "study/study.h"

struct nr_job;

/* ---- the result of a stage -------------------------------------------------------------------------------------------------- */

/* "cls.top1" is the key top1 of the object cls, at the top or, if there is only one, anywhere below. */
bool nr_result_number(json_t *, const char *path, double *);
/* Every number with its path, in the order of the file. */
void nr_result_each(json_t *, void (*each)(void *context, const char *path, double), void *context);
/* The error for a metric that the result does not have, with the nearest that it has. */
int nr_result_unknown(json_t *, const char *stage, const char *metric, struct nr_error *);
/* The time that a training itself states, also over several attempts; `other` for the rest. */
double nr_result_seconds(const struct nr_job *, json_t *, double other);
int nr_result_save(const struct nr_job *, json_t *, struct nr_error *);

/* By its task, else by its name: a share of one, which is read in percent; the smaller the better. */
bool nr_metric_is_share(const char *metric);
bool nr_metric_falls(const char *metric);

/* ---- the study ---------------------------------------------------------------------------------------------------------------- */

struct nr_comparison {                      /* of an arm with the baseline, by seeds that both have */
	struct nr_sample difference;
	double p_t, p_wilcoxon;             /* as they are */
	double p_t_holm, p_wilcoxon_holm;   /* corrected over the arms */
	int64_t needed;                     /* seeds still needed for a power of 0.8; -1: too many to say, or nothing to go by */
};
struct nr_arm_metric { struct nr_sample all; struct nr_comparison against; };
struct nr_arm_cost {
	double seconds, flops;              /* of all its runs; flops NAN: not stated */
	int64_t done;
	const char *batch;                  /* what its batch statistics saw; NULL: not stated */
};

/* ---- early stop (decide.c) --------------------------------------------------------------------------------------------------- */

#define NR_STUDY_LEVEL 0.05                         /* of all comparisons of a study together */

/* After so many seeds the study looks, with that level for the paired t test of each comparison. count 0: it does not stop. */
struct nr_looks { int64_t *at, count; double *level; };
struct nr_decision {
	int64_t seeds;                      /* that showed a difference; 0: none so far */
	int64_t looked;                     /* looks that were possible */
	double p, level;                    /* there */
};
int nr_looks_make(struct nr_looks *, const struct nr_study *, struct nr_arena *, struct nr_error *);
/* value: (arms, seeds), NAN: not there. A look needs the values of all seeds up to it, of the arm and of its baseline. */
int nr_looks_decide(const struct nr_looks *, const struct nr_study *, const double *value, struct nr_decision *, struct nr_error *);

/* No run of this arm is needed any more. A baseline is needed while one of its arms is open. */
bool nr_arm_settled(const struct nr_study *, const struct nr_decision *, int64_t arm);

struct nr_summary {
	const struct nr_study *study;
	struct nr_arena *arena;
	const char **metric;
	int64_t metrics;                    /* the main one first */
	int64_t comparisons;                /* arms that are no baseline */
	double *value;                      /* (metrics, arms, seeds), NAN: not there */
	struct nr_arm_metric *cell;         /* (metrics, arms) */
	struct nr_arm_cost *cost;           /* (arms) */
	struct nr_looks looks;
	struct nr_decision *decision;       /* (arms), of the main metric */
	struct nr_list notes;               /* what a reader has to know */
	const char *ours;                   /* model, data and epochs of the runs, beside published numbers */
	double level;                       /* of the tests that `needed` plans for: 0.05 over the comparisons */
};

/* From the files of the study; runs (may be NULL) adds why some failed. Lives in the arena. */
int nr_summary_make(struct nr_summary *, const struct nr_study *, const struct nr_study_run *, int64_t runs, struct nr_arena *,
	struct nr_error *);
/* A study's folder as it stands, finished or not: what nr_summary_json tells, from study.yaml and what the runs left. Nothing is run,
 * `dir` counts as its out. NULL and an error if study.yaml or a result cannot be read. */
json_t *nr_study_look(const char *dir, const struct nr_study_command *, struct nr_arena *, struct nr_error *);

/* ---- tables ------------------------------------------------------------------------------------------------------------------- */

/* 100 for a metric that is a share of one: these are read in percent; else 1. */
double nr_metric_scale(const char *metric);
void nr_summary_text(const struct nr_summary *, struct nr_str *);
void nr_summary_markdown(const struct nr_summary *, struct nr_str *);
/* For a column of a paper: the arms, and the columns that nr_study.columns names. */
void nr_summary_latex(const struct nr_summary *, struct nr_str *);
int nr_tex_columns_check(const struct nr_study *, const char *columns, struct nr_error *);
json_t *nr_summary_json(const struct nr_summary *, const struct nr_study_run *, int64_t runs);
/* results.csv, table.csv, table.md, table.tex and table.json in the study's folder. */
int nr_summary_write(const struct nr_summary *, const struct nr_study_run *, int64_t runs, struct nr_error *);

#endif
