/* A model of graphs on lists of them: what evaluations and `norma predict` run. Graphs go by size, so that batches hold little padding;
 * what comes out of one depends neither on its neighbours nor on its place in the list. */
#ifndef NR_MOLECULE_RUNNER_H
#define NR_MOLECULE_RUNNER_H

#include "infer/molecule_batch.h"

enum nr_mol_objective { NR_MOL_AUTO, NR_MOL_L1, NR_MOL_MSE, NR_MOL_BCE };
extern const char *const nr_mol_objectives[];         /* "auto", "mae", ...; ends with NULL */
/* What a user is told: a score itself, or for yes or no the probability. */
double nr_mol_shown(enum nr_mol_objective, double score);

struct nr_mol_runner {
	const struct nr_mol_form *form;
	struct nr_mol_sizes sizes;
	int64_t outputs;
	struct nr_comm *comm;               /* ranks that run some of the batches each, and all get all; or NULL */
	struct nr_mol_shape { struct nr_mol_inputs inputs; nr_t *output; struct nr_net *net; struct nr_plan *plan; }
		shape[NR_TASK_SHAPES];
};
/* For graphs of at most `largest` nodes; norms: plan of the whole graph. The form must outlive it. */
int nr_mol_runner_open(struct nr_mol_runner *, const struct nr_weights *, const char *norms, const struct nr_mol_form *,
	int64_t batch, int64_t largest, struct nr_error *);
/* score (samples, outputs), in the order of the list. */
int nr_mol_runner_run(struct nr_mol_runner *, const struct nr_mol_list *, double *score, struct nr_error *);
void nr_mol_runner_close(struct nr_mol_runner *);   /* also after a failure */

#endif
