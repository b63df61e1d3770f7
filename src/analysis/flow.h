/* How the gradient flows through a model that has not been trained yet, by block: where norms sit decides whether it stays even over the
 * depth (pre-norm) or not (post-norm; Xiong et al. 2020, arXiv:2002.04745). */
#ifndef NR_FLOW_H
#define NR_FLOW_H

#include "base/mem.h"
#include "norma/err.h"

struct nr_flow {
	const char *plan;                   /* norm plan */
	int64_t blocks;
	/* (blocks): length of the gradient of a block's parameters, over the square root of their number */
	double *gradient;
	double *size;                       /* (blocks): mean length of a token behind the block */
	double loss;
};
/* First values from seed; the mean over `steps` batches of random pictures with random labels, of cross entropy. */
struct nr_flow_config { const char *model; int64_t batch, steps; uint64_t seed; };
int nr_flow_run(struct nr_flow *, const struct nr_flow_config *, const char *plan, struct nr_arena *, struct nr_error *);

#endif
