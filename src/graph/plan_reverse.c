/* Planner: reversible sums. Gomez et al. 2017, arXiv:1707.04585; Kitaev et al. 2020, arXiv:2001.04451.
 *
 *   y1 = x1 + f(x2),  y2 = x2 + g(y1)
 *
 * What lies in the branches f and g is dropped after forward. Backward repeats g from y1, takes it from y2 and so has x2; then f from x2,
 * and so on. Kept are the outputs of the last block, the inputs of the first, and integers (buckets, orders): a choice that rounding
 * could change is not made twice. A sum whose input somebody else reads, too, is kept as any other. */
#include "graph/plan.h"

static int is_output(const struct planner *p, const nr_t *t) { return t == p->loss || t->flags & NR_TAP; }
static int is_reversible(const struct nr_node *k) { return k->op->undo != NULL; }

static const struct nr_node *maker(const struct planner *p, const nr_t *t)
{
	return p->made_by[t->id] < 0 ? NULL : p->node[p->made_by[t->id]];
}

/* Does everybody who reads t belong to a branch, or is a reversible sum? */
static int stays_inside(const struct planner *p, const nr_t *t)
{
	for (const int32_t *u = p->used_by[t->id]; *u >= 0; u++)
		if (!p->repeated[*u] && !is_reversible(p->node[*u])) return 0;
	return !is_output(p, t);
}

static int can_be_repeated(const struct planner *p, const struct nr_node *k, const uint8_t *begins)
{
	for (int j = 0; j < k->n_out; j++)
		if (begins[k->out[j]->id] || (k->out[j]->dtype == NR_REAL && !stays_inside(p, k->out[j]))) return 0;
	return 1;
}

/* Branches, from their ends back to where they begin: at inputs and outputs of reversible sums. */
static void find_branches(struct planner *p, uint8_t *branch, uint8_t *begins)
{
	for (int32_t i = 0; i < p->n_node; i++)
		if (is_reversible(p->node[i])) begins[p->node[i]->in[0]->id] = 1;
	for (int32_t i = p->n_node - 1; i >= 0; i--) {
		const struct nr_node *k = p->node[i];
		int in_branch = 0;
		for (int j = 0; j < k->n_out; j++) in_branch |= branch[k->out[j]->id];
		if (is_reversible(k)) {
			branch[k->in[1]->id] = 1;
			continue;
		}
		if (!in_branch || !can_be_repeated(p, k, begins)) continue;
		p->repeated[i] = 1;
		p->rebuilt++;
		for (int j = 0; j < k->n_in; j++) branch[k->in[j]->id] |= k->in[j]->dtype == NR_REAL;
	}
}

int nr_plan_find_reversible(struct planner *p)
{
	uint8_t *branch = nr_plan_list(p, p->n_tensor, 1), *begins = nr_plan_list(p, p->n_tensor, 1);
	p->repeated = nr_plan_list(p, p->n_node, 1);
	p->undone_by = nr_plan_list(p, p->n_tensor, sizeof *p->undone_by);
	if (!branch || !begins || !p->repeated || !p->undone_by) return NR_EMEMORY;
	for (int32_t i = 0; i < p->n_tensor; i++) p->undone_by[i] = -1;
	if (!(p->flags & NR_PLAN_TRAIN)) return 0;
	find_branches(p, branch, begins);
	for (int32_t i = 0; i < p->n_node; i++) {
		const nr_t *skip = p->node[i]->n_in ? p->node[i]->in[0] : NULL;
		const struct nr_node *m = skip ? maker(p, skip) : NULL;
		if (is_reversible(p->node[i]) && p->back[i] && m && is_reversible(m) && stays_inside(p, skip) && p->undone_by[skip->id] < 0)
			p->undone_by[skip->id] = i;
	}
	return 0;
}

void nr_plan_ensure_node(struct planner *p, int32_t i, uint8_t *done)
{
	if (done[i] || !p->repeated[i]) return;
	done[i] = 1;
	for (int j = 0; j < p->node[i]->n_in; j++) nr_plan_ensure(p, p->node[i]->in[j], done);
	p->step[p->n_step++] = (struct step){ STEP_AGAIN, i };
}

void nr_plan_ensure(struct planner *p, const nr_t *t, uint8_t *done)
{
	const int32_t sum = p->undone_by[t->id], m = p->made_by[t->id];
	if (sum < 0) {
		if (m >= 0) nr_plan_ensure_node(p, m, done);
	} else if (!done[sum]) {
		done[sum] = 1;
		nr_plan_ensure(p, p->node[sum]->in[1], done);
		nr_plan_ensure(p, p->node[sum]->out[0], done);
		p->step[p->n_step++] = (struct step){ STEP_UNDO, sum };
	}
}
