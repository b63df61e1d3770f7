/* Parts of a batch that run side by side: each has a plan of its own, and ops whose statistics are of the whole batch wait for each
 * other. */
#ifndef NR_TOGETHER_H
#define NR_TOGETHER_H

#include "graph/comm.h"
#include "norma/graph.h"

/* The same plan in memory of its own. from, to: what its calls find elsewhere, too (gradients, running statistics); ends with a NULL from.
 * host: the twin of the plan whose memory this one is a guest of; NULL: none. It reads the other's tables, which is freed after it. */
struct nr_moved { const real *from; int64_t n; real *to; };
int nr_plan_twin(struct nr_plan **, const struct nr_plan *, const struct nr_moved *, const struct nr_plan *host, struct nr_error *);

struct nr_together {
	struct nr_comm *comm;               /* NULL: all parts are here */
	int64_t parts, all;                 /* here, and everywhere */
	struct nr_plan **plan;              /* (parts) */
	struct nr_exec *ex;                 /* (parts) */
	double *mine, *others;              /* (parts, most), (all, most) */
	int32_t *at;                        /* (parts) */
};
/* Numbers that a node of the plan shares at most; 0: no node shares any. */
int64_t nr_plan_share_most(const struct nr_plan *);
/* run: as for nr_plan_run. */
int nr_plan_run_together(const struct nr_together *, unsigned run, struct nr_error *);

#endif
