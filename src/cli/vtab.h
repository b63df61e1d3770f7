/* norma vtab: what its files share. */
#ifndef NR_CLI_VTAB_H
#define NR_CLI_VTAB_H

#include "base/json.h"
#include "data/vtab.h"
#include "study.h"
#include "study/stats.h"

enum { VTAB_TASKS = 64, VTAB_RATES = 16, VTAB_SEEDS = 64 };

struct vtab_entry {                     /* a task, or an extra data set */
	const struct nr_vtab_task *task;        /* NULL: extra */
	const char *id, *data;                  /* its name; as --data has it */
	const char *missing;                    /* why it cannot be opened; NULL: it is there */
	int64_t train, val, test;
	int32_t classes;
	struct nr_vtab_origin origin;
};

struct vtab_score {                     /* of one checkpoint on one task */
	int64_t rate;                           /* chosen; -1: nothing measured */
	double val;                             /* mean over seeds, of the chosen rate */
	double test[VTAB_SEEDS];
	struct nr_sample sample;                /* of test */
};

struct vtab_all {
	struct vtab_entry entry[VTAB_TASKS];
	int64_t entries;
	const char **checkpoint, **name;        /* (checkpoints) */
	int64_t checkpoints, seeds, rates;
	double rate[VTAB_RATES];
	const char *pixels;
	struct vtab_score *score;               /* (checkpoints,entries) */
};

/* Looks for every task of the list (NULL or "": all) and for the extra sets. */
int vtab_find(struct cli *, struct vtab_all *, const char *tasks, const struct nr_list *extra, const char *pixels, const char *root);
void vtab_print_there(const struct vtab_all *);

/* Mean over the whole tasks of a group, seed by seed; n tasks; group NR_VTAB_GROUPS: the mean of all. n 0: none is there. */
struct nr_sample vtab_group(const struct vtab_all *, int64_t checkpoint, enum nr_vtab_group, int64_t *n);
void vtab_table(const struct vtab_all *, bool markdown, struct nr_str *);
json_t *vtab_json(const struct vtab_all *);

#endif
