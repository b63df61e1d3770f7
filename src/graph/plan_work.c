/* What an instruction computes, and the bytes that it moves at least: each value that it reads or writes, once. */
#include "graph/plan.h"

static double bytes_of(const struct nr_view *v)
{
	return v->p ? (double)(v->rows * v->c) * (double)nr_dtype_size(v->dtype) : 0;
}

/* Does v lie in the memory of w? Then a view has nothing to copy. */
static int inside(const struct nr_view *v, const struct nr_view *w)
{
	if (!v->p || !w->p || v->rows <= 0 || w->rows <= 0) return 0;
	const char *end = (const char *)w->p + ((w->rows - 1) / w->t * w->bs + w->t * w->c) * (int64_t)nr_dtype_size(w->dtype);
	return (const char *)v->p >= (const char *)w->p && (const char *)v->p < end;
}
static int aliased(const struct nr_view *a, const struct nr_view *b) { return inside(a, b) || inside(b, a); }

static double forward_bytes(const struct nr_call *k)
{
	const struct nr_op *op = k->node->op;
	double sum = 0;
	for (int i = 0; i < k->node->n_in; i++) {
		const double all = bytes_of(&k->x[i]), most = op->gathers >> i & 1 ? bytes_of(&k->y[0]) : all;
		if (!(op->flags & NR_VIEW)) sum += all < most ? all : most;
		else if (!aliased(&k->x[i], &k->y[0])) sum += 2 * (all < bytes_of(&k->y[0]) ? all : bytes_of(&k->y[0]));
	}
	for (int j = 0; j < k->node->n_out && !(op->flags & NR_VIEW); j++) sum += bytes_of(&k->y[j]);
	return sum + (k->stash ? (double)k->node->stash : 0);
}

/* Views and sums find or leave a gradient where it is; one that is not there is copied or added to. A sum that is fused with what
 * reads it adds to its own gradient first. */
static double in_place_bytes(const struct nr_call *k)
{
	double sum = k->node->n_out > 1 ? bytes_of(&k->dy[0]) * (k->dy_empty ? 1 : 2) : 0;
	for (int j = 1; j < k->node->n_out; j++) sum += bytes_of(&k->dy[j]);
	for (int i = 0; i < k->node->n_in; i++)
		if (k->want >> i & 1 && !aliased(&k->dx[i], &k->dy[0])) sum += bytes_of(&k->dx[i]) * (k->add[i] ? 3 : 2);
	return sum;
}

static double backward_bytes(const struct nr_call *k)
{
	const int in_place = k->node->op->flags & (NR_VIEW | NR_SUM);
	double sum = (k->stash ? (double)k->node->stash : 0) + (in_place ? in_place_bytes(k) : 0);
	for (int j = 0; j < k->node->n_out; j++) sum += bytes_of(&k->y[j]) + (in_place ? 0 : bytes_of(&k->dy[j]));
	for (int i = 0; i < k->node->n_in; i++) {
		sum += bytes_of(&k->x[i]);
		if (!in_place && k->want >> i & 1) sum += bytes_of(&k->dx[i]) * (k->add[i] ? 2 : 1);
	}
	return sum;
}

struct nr_work nr_instr_work(const struct nr_plan *p, int32_t i)
{
	const struct nr_instr *in = &p->instr[i];
	const struct nr_op *op = in->call.node->op;
	double forward = 0, backward = 0;
	nr_node_cost(in->call.node, &forward, &backward);
	if (i < p->n_forward) return (struct nr_work){ NR_PASS_FORWARD, forward, forward_bytes(&in->call) };
	if (in->fn == op->backward) return (struct nr_work){ NR_PASS_BACKWARD, backward, backward_bytes(&in->call) };
	if (in->fn == op->forward || in->fn == op->rebuild || in->fn == op->undo)
		return (struct nr_work){ NR_PASS_AGAIN, forward, forward_bytes(&in->call) };
	return (struct nr_work){ NR_PASS_SEED, 0, bytes_of(&in->call.dy[0]) };
}

/* One thread does two million operations in about 20 us and moves a byte in the time of five at worst. To hand work to a thread that
 * waits costs 1 to 2 us, to one that sleeps 40 us, and when another process holds its CPU a slice of the scheduler. The rule looks at
 * the instruction alone, not at the number of threads. */
int nr_work_is_small(const struct nr_work *w)
{
	static const double operations = 2e6, per_byte = 5;
	return w->flops + per_byte * w->bytes < operations;
}
