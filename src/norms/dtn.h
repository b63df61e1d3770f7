/* DTN's op: what dtn.c settles when a graph is built, and dtn_run.c runs. */
#ifndef NR_DTN_H
#define NR_DTN_H

#include "math/token_mix.h"
#include "norma/graph.h"

struct nr_dtn {
	float eps;
	int official;                       /* heads scaled first, 1/(C-1), mirrored places */
	int only_var;
	int learn; real lam;                /* lam: when it is not learned */
	enum nr_mix mix;
	int64_t heads, special, reach;
	int64_t h, w, pool;                 /* the grid before pooling */
	/* which input they are; 0: there is none */
	int weight, bias, mean_logit, var_logit, matrix, valid, place;
};

/* Eq. 7 for a parameter (H,3), as nr_entry_fill calls it. */
void nr_dtn_start(const struct nr_entry *, const void *conf, real *);
int nr_dtn_shape(struct nr_node *);
void nr_dtn_forward(const struct nr_call *);
void nr_dtn_backward(const struct nr_call *);
void nr_dtn_cost(const struct nr_node *, double *forward, double *backward);

#endif
