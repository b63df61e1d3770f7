/* Planner, first half: which nodes run, fused how, in what order. */
#include "graph/plan.h"

#include <stdlib.h>

void *nr_plan_list(struct planner *p, int64_t count, size_t size)
{
	void *m = nr_arena_alloc(p->arena, (size_t)(count ? count : 1) * size);
	if (!m) nr_fail(p->err, NR_EMEMORY, "cannot plan", NULL, "out of memory");
	return m;
}

static int is_output(const struct planner *p, const nr_t *t) { return t == p->loss || t->flags & NR_TAP; }

/* 1. Only what the loss and the taps need. */
int nr_plan_prune(struct planner *p)
{
	struct nr_net *n = p->net;
	uint8_t *needed = nr_plan_list(p, n->n_tensor, 1);
	p->node = nr_plan_list(p, n->n_node, sizeof *p->node);
	if (!needed || !p->node) return NR_EMEMORY;
	uint8_t *keep = nr_plan_list(p, n->n_node, 1);
	if (!keep) return NR_EMEMORY;
	for (int32_t i = n->n_node - 1; i >= 0; i--) {
		const struct nr_node *k = n->node[i];
		for (int j = 0; j < k->n_out; j++) keep[i] |= is_output(p, k->out[j]) || needed[k->out[j]->id];
		for (int j = 0; keep[i] && j < k->n_in; j++) needed[k->in[j]->id] = 1;
	}
	for (int32_t i = 0; i < n->n_node; i++)
		if (keep[i]) p->node[p->n_node++] = n->node[i];
	return 0;
}

/* 3. Pairs that one pass over memory serves better. The pair runs at the producer's place, so the consumer's other
 * inputs must be leaves or older. */
static const struct nr_op *fused_op(const struct nr_node *consumer, const struct nr_node *producer)
{
	for (const struct nr_fuse *f = consumer->op->fuse; f && f->producer; f++)
		if (!strcmp(f->producer, producer->op->name)) return f->fused;
	return NULL;
}

static struct nr_node *fuse_pair(struct planner *p, const struct nr_node *a, const struct nr_node *b, const struct nr_op *op)
{
	struct nr_node *k = nr_plan_list(p, 1, sizeof *k);
	struct nr_fused_attr *attr = nr_plan_list(p, 1, sizeof *attr);
	if (!k || !attr) return NULL;
	*attr = (struct nr_fused_attr){ a->attr, b->attr, a->n_in };
	*k = *b;
	if (strlen(a->where.scope) > strlen(b->where.scope)) k->where = a->where; /* the one that says more */
	k->op = op;
	k->attr = attr;
	k->stash = k->scratch = k->pending = 0;
	k->n_in = 0;
	for (int i = 0; i < a->n_in; i++) k->in[k->n_in++] = a->in[i];
	for (int i = 1; i < b->n_in; i++) k->in[k->n_in++] = b->in[i];
	k->n_out = 0;
	if (op->shape(k)) return NULL;
	k->out[0] = a->out[0]; /* the tensors that others already refer to */
	k->out[1] = b->out[0];
	k->n_out = 2;
	return k;
}

int nr_plan_fuse(struct planner *p)
{
	const char *env = getenv("NORMA_FUSE");
	if (p->flags & NR_PLAN_NO_FUSE || (env && !strcmp(env, "0"))) return 0;
	int32_t *at = nr_plan_list(p, p->net->n_tensor, sizeof *at); /* node that makes a tensor; -1 leaf */
	if (!at) return NR_EMEMORY;
	const int32_t n_tensor = p->net->n_tensor;
	for (int32_t i = 0; i < n_tensor; i++) at[i] = -1;
	for (int32_t i = 0; i < p->n_node; i++)
		for (int j = 0; j < p->node[i]->n_out; j++) at[p->node[i]->out[j]->id] = i;
	for (int32_t i = 0; i < p->n_node; i++) {
		const struct nr_node *b = p->node[i];
		const int32_t j = b && b->n_in ? at[b->in[0]->id] : -1;
		const struct nr_node *a = j >= 0 ? p->node[j] : NULL;
		const struct nr_op *op = a && a->n_out == 1 && b->n_out == 1 ? fused_op(b, a) : NULL;
		if (!op || a->n_in + b->n_in - 1 > NR_MAXIN) continue;
		int ready = 1;
		for (int q = 1; q < b->n_in; q++) ready &= at[b->in[q]->id] < j;
		if (!ready) continue;
		struct nr_node *k = fuse_pair(p, a, b, op);
		if (!k) return p->net->error.code ? (*p->err = p->net->error, p->err->code) : NR_EMEMORY;
		p->node[j] = k;
		p->node[i] = NULL;
		at[b->out[0]->id] = j;
		p->fused++;
	}
	int32_t n = 0;
	for (int32_t i = 0; i < p->n_node; i++)
		if (p->node[i]) p->node[n++] = p->node[i];
	p->n_node = n;
	return 0;
}

/* Who makes and uses each tensor, and where gradients flow. */
int nr_plan_link(struct planner *p)
{
	p->n_tensor = p->net->n_tensor;
	const int32_t T = p->n_tensor;
	int32_t *uses = nr_plan_list(p, T, sizeof *uses);
	p->made_by = nr_plan_list(p, T, sizeof *p->made_by);
	p->used_by = nr_plan_list(p, T, sizeof *p->used_by);
	p->need_grad = nr_plan_list(p, T, 1);
	p->reached = nr_plan_list(p, T, 1);
	p->back = nr_plan_list(p, p->n_node, 1);
	p->back_time = nr_plan_list(p, p->n_node, sizeof *p->back_time);
	p->rebuild = nr_plan_list(p, p->n_node, 1);
	if (!uses || !p->made_by || !p->used_by || !p->need_grad || !p->reached || !p->back || !p->back_time || !p->rebuild)
		return NR_EMEMORY;
	for (int32_t i = 0; i < T; i++) p->made_by[i] = -1;
	for (int32_t i = 0; i < p->n_node; i++)
		for (int j = 0; j < p->node[i]->n_in; j++) uses[p->node[i]->in[j]->id]++;
	for (int32_t i = 0; i < T; i++) {
		p->used_by[i] = nr_plan_list(p, uses[i] + 1, sizeof **p->used_by);
		if (!p->used_by[i]) return NR_EMEMORY;
		uses[i] = 0;
	}
	for (int32_t i = 0; i < p->n_node; i++) {
		const struct nr_node *k = p->node[i];
		for (int j = 0; j < k->n_in; j++) p->used_by[k->in[j]->id][uses[k->in[j]->id]++] = i;
		for (int j = 0; j < k->n_out; j++) p->made_by[k->out[j]->id] = i;
	}
	for (int32_t i = 0; i < T; i++) p->used_by[i][uses[i]] = -1;
	if (!(p->flags & NR_PLAN_TRAIN)) return 0;

	for (int32_t i = 0; i < T; i++) {
		const nr_t *t = p->net->tensor[i];
		p->need_grad[i] = (t->flags & NR_PARAM && !t->entry->frozen) || (t->flags & NR_INPUT && t->flags & NR_GRAD);
	}
	for (int32_t i = 0; i < p->n_node; i++) {
		const struct nr_node *k = p->node[i];
		int any = 0;
		for (int j = 0; j < k->n_in; j++) any |= p->need_grad[k->in[j]->id];
		for (int j = 0; any && k->op->backward && j < k->n_out; j++)
			p->need_grad[k->out[j]->id] = k->out[j]->dtype == NR_REAL;
	}
	if (!p->need_grad[p->loss->id])
		return nr_fail(p->err, NR_EVALUE, "cannot plan training", p->loss->name, "no parameter has a gradient from the loss");
	p->reached[p->loss->id] = 1;
	for (int32_t i = p->n_node - 1; i >= 0; i--) {
		const struct nr_node *k = p->node[i];
		for (int j = 0; j < k->n_out; j++) p->back[i] |= p->reached[k->out[j]->id];
		if (!k->op->backward) p->back[i] = 0;
		for (int j = 0; p->back[i] && j < k->n_in; j++) p->reached[k->in[j]->id] |= p->need_grad[k->in[j]->id];
		if (p->back[i] && k->op->flags & NR_SUM) p->reached[k->out[0]->id] = 1; /* its memory holds the sum's gradient */
	}
	return 0;
}

/* Does backward of any user read tensor t, or of its own node? */
static int kept_for_backward(const struct planner *p, const nr_t *t)
{
	for (const int32_t *u = p->used_by[t->id]; *u >= 0; u++) {
		const struct nr_node *k = p->node[*u];
		for (int j = 0; p->back[*u] && j < k->n_in; j++)
			if (k->in[j] == t && k->op->keeps & NR_KEEP_X(j)) return 1;
	}
	const int32_t m = p->made_by[t->id];
	for (int j = 0; m >= 0 && p->back[m] && j < p->node[m]->n_out; j++)
		if (p->node[m]->out[j] == t && p->node[m]->op->keeps & NR_KEEP_Y(j)) return 1;
	return 0;
}

static uint32_t rebuild_reads(const struct nr_op *op)
{
	return op->rebuild ? op->rebuild_keeps : 0xffffu; /* forward reads every input */
}

/* 4. Cheap outputs are made again if what they are made from stays anyway. */
static void choose_rebuilds(struct planner *p)
{
	for (int32_t i = 0; i < p->n_node; i++) {
		const struct nr_node *k = p->node[i];
		const uint32_t cheap = k->op->cheap | (k->op->flags & NR_CHEAP ? 1u : 0u);
		for (int j = 0; j < k->n_out && !p->repeated[i]; j++) {
			const nr_t *y = k->out[j];
			if (!(cheap >> j & 1) || is_output(p, y) || !kept_for_backward(p, y)) continue;
			int possible = 1;
			const uint32_t reads = rebuild_reads(k->op);
			for (int q = 0; q < k->n_in; q++) {
				const nr_t *x = k->in[q];
				const int32_t m = p->made_by[x->id];
				const int gone = m >= 0 && (p->rebuild[m] || p->repeated[m] || p->undone_by[x->id] >= 0);
				if (reads & NR_KEEP_X(q) && m >= 0 && (gone || !kept_for_backward(p, x))) possible = 0;
			}
			for (int q = 0; q < k->n_out; q++)
				if (k->op->rebuild && reads & NR_KEEP_Y(q) && (q == j || !kept_for_backward(p, k->out[q]))) possible = 0;
			if (possible) p->rebuild[i] |= (uint8_t)(1u << j);
		}
		p->rebuilt += p->rebuild[i] != 0;
	}
}

/* What the branches of reversible sums dropped and backward of node i reads. */
static void ensure_reads(struct planner *p, int32_t i, uint8_t *done)
{
	const struct nr_node *k = p->node[i];
	if (k->op->undo && p->undone_by[k->in[0]->id] == i) nr_plan_ensure(p, k->in[0], done);
	for (int j = 0; j < k->n_in; j++)
		if (k->op->keeps & NR_KEEP_X(j)) nr_plan_ensure(p, k->in[j], done);
	nr_plan_ensure_node(p, i, done);
}

/* 5. Forward, seed, backward in reverse; rebuilds just before the first backward that reads them. */
int nr_plan_schedule(struct planner *p)
{
	if (nr_plan_find_reversible(p)) return NR_EMEMORY;
	if (p->flags & NR_PLAN_TRAIN && p->flags & NR_PLAN_REBUILD) choose_rebuilds(p);
	p->step = nr_plan_list(p, 3 * (int64_t)p->n_node + 1, sizeof *p->step);
	uint8_t *done = nr_plan_list(p, p->n_node, 1);
	if (!p->step || !done) return NR_EMEMORY;
	for (int32_t i = 0; i < p->n_node; i++) p->step[p->n_step++] = (struct step){ STEP_FORWARD, i };
	p->n_forward = p->n_step;
	if (!(p->flags & NR_PLAN_TRAIN)) return 0;
	p->step[p->n_step++] = (struct step){ STEP_SEED, -1 };
	for (int32_t i = p->n_node - 1; i >= 0; i--) {
		if (!p->back[i]) continue;
		const struct nr_node *k = p->node[i];
		ensure_reads(p, i, done);
		for (int j = 0; j < k->n_in; j++) {
			const int32_t m = p->made_by[k->in[j]->id];
			if (m < 0 || !p->rebuild[m] || done[m] || !(k->op->keeps & NR_KEEP_X(j))) continue;
			p->step[p->n_step++] = (struct step){ STEP_REBUILD, m };
			done[m] = 1;
		}
		if (p->rebuild[i] && !done[i]) p->step[p->n_step++] = (struct step){ STEP_REBUILD, i }, done[i] = 1;
		p->back_time[i] = p->n_step;
		p->step[p->n_step++] = (struct step){ STEP_BACKWARD, i };
	}
	return 0;
}
