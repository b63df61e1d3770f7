/* norma runs: what its two halves share. */
#ifndef NR_CLI_RUNS_H
#define NR_CLI_RUNS_H

#include "base/json.h"
#include "cli.h"
#include "record/rundb.h"

enum runs_kind { RUNS_OTHER, RUNS_LOSS, RUNS_ACCURACY };

struct runs_metric {
	const char *name;
	enum runs_kind kind;
	struct nr_curve curve;
	double last, best, low, high;           /* best: NaN if it is not known which way is better */
	int64_t low_step, high_step;
};
struct runs_row {
	struct nr_run *run;
	const char *status, *dir;               /* dir: as seen from here */
	struct runs_metric main[3];             /* by kind; no name: none */
};

int runs_read_metric(struct cli *, struct nr_rundb *, int64_t run, const char *name, struct runs_metric *);
int runs_rank(const char *metric);              /* 1: of held-out data, 0: not */
json_t *runs_columns(const struct nr_run *);    /* a list, empty if the store has none */
json_t *runs_json(const struct runs_row *);
json_t *runs_metric_json(const struct runs_metric *, bool curve);
/* Without control characters and broken UTF-8; lines are kept if wanted. */
const char *runs_clean(struct cli *, const char *text, bool lines);
int runs_show(struct cli *, struct nr_rundb *, const struct runs_row *, bool json);

#endif
