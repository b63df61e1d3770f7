/* microscope.csv of a run, read for the page: what each norm saw over time (train/microscope.h writes it). */
#ifndef NR_REPORT_MICROSCOPE_H
#define NR_REPORT_MICROSCOPE_H

#include <stdio.h>

#include "report/arms.h"

enum { NR_GROUP_SPECIAL, NR_GROUP_TOKENS, NR_TOKEN_GROUPS };

struct nr_microscope_file {
	const char **stat, **site;              /* names, sites in order of depth; in the arena */
	int64_t *step;                          /* rising */
	int stats, sites, steps;
	double *cell;                           /* (rows,stats) */
	int32_t *row;                           /* (groups,sites,steps): which row, -1: none */
};

/* All zero without steps where the file has no records. A last line without its end is being written and does not count; any
 * other line that is no record is an error. */
int nr_microscope_read(struct nr_microscope_file *, FILE *, const char *path, struct nr_arena *, struct nr_error *);
void nr_microscope_release(struct nr_microscope_file *);
/* NAN where nothing was measured. */
double nr_microscope_value(const struct nr_microscope_file *, int stat, int group, int site, int step);
/* How many steps the page shows, and the k-th of them: evenly spread, the first and the last among them. */
int nr_microscope_shown_steps(const struct nr_microscope_file *);
int nr_microscope_shown_step(const struct nr_microscope_file *, int k);

/* The files of several arms, side by side: each site once, where the arms agree on its place. */
struct nr_microscope_arm {
	int arm;
	struct nr_microscope_file file;
	int *place;                             /* by site of all arms: that of this file, -1: it has none */
};
struct nr_microscope_view {
	struct nr_microscope_arm *arm;
	int arms, sites;
	const char **site;
};
int nr_microscope_align(struct nr_microscope_view *, struct nr_arena *);                /* fills sites and places */
/* {"sites":[..],"stats":[[name,title]..],"arms":[{"arm":0,"steps":[..],"v":[stat][group][step][site]}]}: four digits,
 * null for what was not measured and for whole parts of it, at most 48 steps. No letter needs escaping in a page. */
void nr_microscope_json(struct nr_str *, const struct nr_microscope_view *);
/* What a column shows, for people. */
const char *nr_microscope_title(const char *stat);

/* The section of the page: the first run of each arm that has a microscope.csv; nothing if none has. */
void nr_microscope_section(struct nr_str *, const struct nr_arms *, struct nr_arena *);

#endif
