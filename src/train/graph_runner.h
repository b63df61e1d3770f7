/* A model of graphs on lists of them: what evaluations and `norma predict` run. Graphs go by size, so that batches hold little padding;
 * what comes out of one depends neither on its neighbours nor on its place in the list. */
#ifndef NR_GRAPH_RUNNER_H
#define NR_GRAPH_RUNNER_H

#include "train/graphs.h"

enum nr_graph_objective { NR_GRAPH_AUTO, NR_GRAPH_MAE, NR_GRAPH_MSE, NR_GRAPH_BCE };
extern const char *const nr_graph_objectives[];         /* "auto", "mae", ...; ends with NULL */
/* What a user is told: a score itself, or for yes or no the probability. */
double nr_graph_shown(enum nr_graph_objective, double score);

struct nr_graph_runner {
	const struct nr_graph_form *form;
	struct nr_graph_sizes sizes;
	int64_t outputs;
	struct nr_graph_shape { struct nr_graph_inputs inputs; nr_t *output; struct nr_net *net; struct nr_plan *plan; }
		shape[NR_TASK_SHAPES];
};
/* For graphs of at most `largest` nodes; norms: plan of the whole graph. The form must outlive it. */
int nr_graph_runner_open(struct nr_graph_runner *, const struct nr_weights *, const char *norms, const struct nr_graph_form *,
	int64_t batch, int64_t largest, struct nr_error *);
/* score (samples, outputs), in the order of the list. */
int nr_graph_runner_run(struct nr_graph_runner *, const struct nr_graph_list *, double *score, struct nr_error *);
void nr_graph_runner_close(struct nr_graph_runner *);   /* also after a failure */

#endif
