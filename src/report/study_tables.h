/* What a study found, in words and tables: who is ahead, by how much, at what cost, beside what papers print. */
#ifndef NR_STUDY_TABLES_H
#define NR_STUDY_TABLES_H

#include "report/study_read.h"

/* Paragraphs of HTML: who is ahead of the baseline, or that nothing was shown; and how far the study is. */
void nr_study_verdict(struct nr_str *, const struct nr_study_read *, struct nr_arena *);
/* The table of the main metric, that of the further ones, and what a reader has to know. */
void nr_study_results(struct nr_str *, const struct nr_study_read *, struct nr_arena *);
/* The notes of a table.json: what batch statistics saw, what failed. */
void nr_study_notes(struct nr_str *, const json_t *);
/* Published numbers beside the measured ones, with the difference in scale; nothing if the study has none. */
void nr_study_published(struct nr_str *, const struct nr_study_read *, struct nr_arena *);
/* Runs of the study by their state. */
struct nr_study_count { int done, running, waiting, failed, spared; };
struct nr_study_count nr_study_count(const struct nr_study_read *);

#endif
