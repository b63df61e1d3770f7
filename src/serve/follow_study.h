/* A study's folder as its page shows it: arms x seeds, with the state of each stage. */
#ifndef NR_SERVE_FOLLOW_STUDY_H
#define NR_SERVE_FOLLOW_STUDY_H

#include "base/mem.h"
#include "serve/entry.h"
#include "study/study.h"

struct nr_cell_state {
	char status[12];                        /* of the mark: "", "begun", "done", "failed", "diverged"; or "spared" */
	double seconds;
	char *fault;                            /* in the arena of marks */
	const struct nr_served *run;             /* NULL: the stage leaves no run folder, or not yet */
};

struct nr_study_view {
	struct nr_arena *arena;                 /* of what study.yaml says */
	struct timespec read;                   /* study.yaml */
	const char *title, *question, *metric;
	struct nr_study_arm *arm;
	const char **stage;
	int64_t *seed;
	int64_t arms, seeds, stages, parallel;
	struct nr_cell_state *cell;             /* (arms, seeds, stages) */
	struct timespec *looked;                /* (arms, seeds): the folder when its marks were read */
	struct timespec tabled;                 /* table.json */
	struct nr_str table;                    /* HTML of table.json */
	char headline[160];                     /* its best arm; "": none yet */
	struct nr_str fault;                    /* why study.yaml cannot be read */
	int64_t runs;                           /* entries that were placed */
	bool held;                              /* the study is running */
};

void nr_study_view_free(struct nr_study_view *);
/* table.json as HTML; a note if it cannot be read. Runs that it calls spared are noted in the view. */
void nr_study_table(struct nr_str *, const char *path, struct nr_study_view *);
/* The grid, the table, and what there is to say: HTML. */
void nr_study_body(struct nr_str *, const struct nr_study_view *);
bool nr_cell_running(const struct nr_study_view *, const struct nr_cell_state *);

#endif
