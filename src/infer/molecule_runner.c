/* See graph_runner.h. */
#include "infer/molecule_runner.h"

#include <math.h>
#include <stdlib.h>

#include "base/real.h"
#include "base/sort.h"
#include "graph/comm.h"

const char *const nr_mol_objectives[] = { "auto", "mae", "mse", "bce", NULL };

double nr_mol_shown(enum nr_mol_objective objective, double score)
{
	return objective == NR_MOL_BCE ? 1 / (1 + exp(-score)) : score;
}

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot run the model", NULL, "out of memory"); }

int nr_mol_runner_open(struct nr_mol_runner *r, const struct nr_weights *w, const char *norms, const struct nr_mol_form *form,
	int64_t batch, int64_t largest, struct nr_error *err)
{
	*r = (struct nr_mol_runner){ .form = form, .sizes = nr_mol_sizes(largest), .outputs = nr_model_int(&w->model, "classes") };
	for (int64_t i = 0; i < r->sizes.count; i++) {
		struct nr_mol_shape *p = &r->shape[i];
		const int64_t nodes = r->sizes.largest - i * r->sizes.step;
		if (!(p->net = nr_net_make(w->store))) return out_of_memory(err);
		if (nr_norms_use(p->net, norms, &w->model.norms, err)) return err->code;
		nr_mol_inputs(&p->inputs, p->net, form, nr_mol_batch(batch, nodes), nodes, false);
		p->output = nr_model_logits(p->net, &w->model, &p->inputs.in);
		if (nr_plan_make_beside(&p->plan, p->net, p->output, 0, r->shape[0].plan, err)) return err->code;
	}
	return NR_OK;
}

/* Samples from the one at `at` in the order of sizes; returns how many. owner NULL: this process runs them. */
static int64_t run_some(struct nr_mol_runner *r, const struct nr_mol_list *l, const int32_t *order, int64_t at, int32_t *owner, int32_t of,
	double *score)
{
	const int64_t left = l->samples - at, outputs = r->outputs;
	int64_t i = r->sizes.count, n;
	do {                                            /* the smallest size that holds the last graph of its batch */
		const int64_t rows = r->shape[--i].inputs.in.nodes->d[0];
		n = rows < left ? rows : left;
	} while (i > 0 && nr_mol_size_of(&r->sizes, l->nodes[order[at + n - 1]]) < i);
	for (int64_t b = 0; owner && b < n; b++) owner[order[at + b]] = of;
	if (of != nr_comm_rank(r->comm)) return n;
	const struct nr_mol_shape *p = &r->shape[i];
	nr_mol_bind(r->form, l, p->plan, &p->inputs, order + at, n);
	nr_plan_run(p->plan, &(struct nr_exec){ .train = 0 }, NR_RUN_FORWARD);
	const real *y = nr_plan_data(p->plan, p->output);
	for (int64_t b = 0; b < n; b++)
		for (int64_t t = 0; t < outputs; t++) score[order[at + b] * outputs + t] = (double)y[b * outputs + t];
	return n;
}

int nr_mol_runner_run(struct nr_mol_runner *r, const struct nr_mol_list *l, double *score, struct nr_error *err)
{
	int32_t *order = malloc(((size_t)l->samples + nr_sort_spare(l->samples, l->largest)) * sizeof *order);
	int32_t *owner = r->comm ? malloc((size_t)l->samples * sizeof *owner + 1) : NULL;
	if (!order || (r->comm && !owner)) {
		free(order);
		return out_of_memory(err);
	}
	for (int64_t i = 0; i < l->samples; i++) order[i] = (int32_t)i;
	nr_sort_by_key(order, l->samples, l->nodes, l->largest, order + l->samples);
	for (int64_t at = 0, q = 0; at < l->samples; q++) at += run_some(r, l, order, at, owner, nr_comm_owner(r->comm, q), score);
	const int code = nr_comm_spread(r->comm, l->samples, (size_t)r->outputs * sizeof *score, owner, score, err);
	free(order);
	free(owner);
	return code;
}

void nr_mol_runner_close(struct nr_mol_runner *r)
{
	for (int64_t i = NR_TASK_SHAPES - 1; i >= 0; i--) {
		nr_plan_free(r->shape[i].plan);
		nr_net_free(r->shape[i].net);
	}
	*r = (struct nr_mol_runner){ 0 };
}
