/* A study's folder, read for a report: its table, and the run folders of its stages by arm. What is missing or cannot be read
 * becomes a note. */
#ifndef NR_STUDY_READ_H
#define NR_STUDY_READ_H

#include "report/arms.h"
#include "study/study.h"

/* Runs of one stage that trains, with what the stages after it measured of them. */
struct nr_stage_runs { const char *name; struct nr_runfolder *run; int runs; struct nr_arms arms; };

struct nr_study_read {
	const char *dir;
	const struct nr_study_command *commands;
	json_t *table;                          /* as table.json has it */
	const json_t *arm;                      /* its arms */
	const char **name;                      /* (arms) */
	int arms, seeds;
	struct nr_stage_runs *stage;            /* at least one; if none trains, one with runs that have only measures */
	int stages;
	struct nr_columns tuning;               /* tune/sensitivity.csv; without columns if not there */
	struct nr_str notes;
};

/* Whether a folder is that of a study. */
bool nr_study_is_here(const char *dir);
int nr_study_read(struct nr_study_read *, const char *dir, const struct nr_study_command *, struct nr_arena *, struct nr_error *);
void nr_study_read_release(struct nr_study_read *);

/* Of the metric with this number; 0 is the one that decides. */
const char *nr_study_metric(const struct nr_study_read *, int metric);          /* NULL: there is none */
const json_t *nr_study_cell(const struct nr_study_read *, int metric, int arm); /* n, mean, half_width_95, by_seed, difference, published */
double nr_json_at(const json_t *, const char *key);                             /* a number, NAN if there is none */

/* "top‑1 on [CLS] (probe)" for probe.features.cls.top1, in the arena; the name itself if nothing is known of it. */
const char *nr_metric_title(const char *metric, struct nr_arena *);
/* Value of a metric as it is read: shares in percent, without the sign; the others with as many decimals as the largest mean over the
 * arms (`most`) asks for, so that a column is even. sign: a + before positive ones. */
const char *nr_metric_text(const char *metric, double, double most, bool sign, char *buf, size_t size);
/* That largest mean, without its sign; 0 without any. */
double nr_study_most(const struct nr_study_read *, int metric);
const char *nr_metric_unit(const char *metric);                                 /* "%" or "" */
double nr_metric_factor(const char *metric);                                    /* 100 or 1 */

#endif
