/* Planner, second half: where each value and each gradient lies. Views, joins and residual sums get a part of another
 * tensor's memory where that is safe; the kernels of those ops then find equal pointers and copy nothing. */
#include "graph/plan.h"

static const struct place none = { .buf = NR_NOWHERE };

static struct nr_node *maker(const struct planner *p, const nr_t *t)
{
	const int32_t m = p->made_by[t->id];
	return m < 0 ? NULL : p->node[m];
}

static struct place own(struct planner *p, const nr_t *t, const char *what)
{
	return (struct place){ .buf = nr_buffer_make(p, nr_tensor_bytes(t), what, t, maker(p, t)) };
}

/* Part of a (B,T,C) place, from token `from` on. */
static struct place part_of(struct place whole, const nr_t *t, int64_t from)
{
	if (!whole.bs) whole.bs = t->d[1] * t->d[2];
	whole.off += from * t->d[2];
	return whole;
}

/* A span's part of the place of its input: all of it where tokens were left out. */
static struct place span_of(struct place whole, const struct nr_node *span)
{
	const struct nr_span_attr *a = span->attr;
	return a->to - a->from == span->in[0]->d[1] ? whole : part_of(whole, span->in[0], a->from);
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

/* A join's input may be written straight into the joined tensor if its op can leave gaps and so can all who read it. */
static int can_write_into_join(const struct planner *p, const nr_t *t, const struct nr_node *join)
{
	const struct nr_node *m = maker(p, t);
	if (!m || !(m->op->flags & NR_STRIDED) || m->op->flags & NR_VIEW || t->flags & NR_TAP || m->out[0] != t) return 0;
	for (const int32_t *u = p->used_by[t->id]; *u >= 0; u++) {
		const struct nr_node *k = p->node[*u];
		for (int j = 0; j < k->n_in; j++)
			if (k->in[j] == t && (!nr_op_accepts_gaps(k->op, j) || (k->op == &nr_op_join && k != join))) return 0;
	}
	return 1;
}

static struct place value_place(struct planner *p, const nr_t *t)
{
	if (p->value[t->id].buf != NR_NOWHERE || p->value[t->id].base) return p->value[t->id];
	struct place at = none;
	const struct nr_node *m = maker(p, t);
	if (t->entry) {
		at.base = nr_value(t->entry);
	} else if (m && m->op == &nr_op_span) {
		at = span_of(value_place(p, m->in[0]), m);
		p->aliased++;
	} else if (m && m->op == &nr_op_reshape) {
		at = value_place(p, m->in[0]);
		if (at.bs) at = own(p, t, "value");
		else p->aliased++;
	} else {
		for (const int32_t *u = p->used_by[t->id]; *u >= 0; u++) {
			const struct nr_node *k = p->node[*u];
			if (k->op != &nr_op_join || !can_write_into_join(p, t, k)) continue;
			at = part_of(value_place(p, k->out[0]), k->out[0], k->in[0] == t ? 0 : k->in[0]->d[1]);
			p->aliased++;
			break;
		}
		if (at.buf == NR_NOWHERE) at = own(p, t, "value");
	}
	return p->value[t->id] = at;
}

int nr_plan_place_values(struct planner *p)
{
	for (int32_t i = 0; i < p->n_tensor; i++) p->value[i] = p->again[i] = none;
	for (int32_t i = 0; i < p->n_node; i++) {
		const struct nr_node *k = p->node[i];
		for (int j = 0; j < k->n_in; j++) {
			const struct place at = value_place(p, k->in[j]);
			if (k->in[j]->flags & NR_INPUT) p->buf[at.buf].fixed = 1;
		}
		for (int j = 0; j < k->n_out; j++) {
			const struct place at = value_place(p, k->out[j]);
			const int output = k->out[j] == p->loss || k->out[j]->flags & NR_TAP;
			if (output && at.buf != NR_NOWHERE) p->buf[at.buf].fixed = 1;
		}
	}
	for (int32_t i = 0; i < p->n_tensor; i++) { /* inputs that no node reads (lengths) still have a place to write to */
		const nr_t *t = p->net->tensor[i];
		if (t->flags & NR_INPUT) p->buf[value_place(p, t).buf].fixed = 1;
	}
	for (int32_t i = 0; i < p->n_node; i++) {
		const struct nr_node *k = p->node[i];
		p->stash[i] = k->stash ? nr_buffer_make(p, (int64_t)k->stash, "stash", NULL, k) : NR_NOWHERE;
		p->stash_again[i] = k->stash && p->repeated[i] ? nr_buffer_make(p, (int64_t)k->stash, "stash", NULL, k) : NR_NOWHERE;
		p->pending[i] = k->pending ? nr_buffer_make(p, (int64_t)k->pending, "pending", NULL, k) : NR_NOWHERE;
		if (p->pending[i] >= 0) p->buf[p->pending[i]].fixed = 1;
		for (int j = 0; j < k->n_out; j++)
			if (p->rebuild[i] >> j & 1 || (p->repeated[i] && k->out[j]->dtype == NR_REAL) || p->undone_by[k->out[j]->id] >= 0)
				p->again[k->out[j]->id] = own(p, k->out[j], "rebuilt");
	}
	return p->err->code;
}

/* ---- gradients -------------------------------------------------------------------------------------------------- */

/* The only node through which a gradient of t arrives, or NULL if there are several. */
static const struct nr_node *only_user(const struct planner *p, const nr_t *t)
{
	const struct nr_node *only = NULL;
	for (const int32_t *u = p->used_by[t->id]; *u >= 0; u++) {
		if (!p->back[*u]) continue;
		if (only) return NULL;
		only = p->node[*u];
	}
	return only;
}

/* The user whose backward runs first: the last one recorded. */
static int32_t first_in_backward(const struct planner *p, const nr_t *t)
{
	int32_t last = -1;
	for (const int32_t *u = p->used_by[t->id]; *u >= 0; u++)
		if (p->back[*u] && *u > last) last = *u;
	return last;
}

/* Do the spans of t cover it without overlap, and does nothing else send it a gradient? */
static int spans_tile(const struct planner *p, const nr_t *t)
{
	int64_t sum = 0;
	for (const int32_t *u = p->used_by[t->id]; *u >= 0; u++) {
		if (!p->back[*u]) continue;
		const struct nr_node *k = p->node[*u];
		if (k->op != &nr_op_span || !p->reached[k->out[0]->id]) return 0;
		const struct nr_span_attr *a = k->attr;
		sum += a->to - a->from;
		for (const int32_t *v = p->used_by[t->id]; v < u; v++) {
			const struct nr_span_attr *b = p->node[*v]->attr;
			if (p->back[*v] && a->from < b->to && b->from < a->to) return 0;
		}
	}
	return sum == t->d[1];
}

static int plain_maker(const struct planner *p, const nr_t *t)
{
	const struct nr_node *m = maker(p, t);
	return m && !(m->op->flags & (NR_VIEW | NR_SUM));
}

/* z = skip + branch, both gradients in the memory of dz: safe if the branch's gradient is read by its maker's backward
 * before anybody adds to the skip's. The branch must have no other user, and a maker that reads it at once. */
static int skip_waits(const struct planner *p, const struct nr_node *sum, const nr_t *skip, const nr_t *branch)
{
	if (only_user(p, branch) != sum || !plain_maker(p, branch)) return 0;
	const int32_t read = p->back_time[p->made_by[branch->id]];
	for (const int32_t *u = p->used_by[skip->id]; *u >= 0; u++)
		if (p->back[*u] && p->node[*u] != sum && p->back_time[*u] < read) return 0;
	return 1;
}

static int is_leaf(const nr_t *t) { return t->entry || t->flags & NR_INPUT; }

/* May input i of the sum share the memory of the sum's gradient? */
static int sum_shares(const struct planner *p, const struct nr_node *sum, int i)
{
	const nr_t *t = sum->in[i], *other = sum->in[1 - i];
	if (is_leaf(t) || !p->reached[t->id] || first_in_backward(p, t) != p->made_by[sum->out[0]->id]) return 0;
	const int other_shares = p->reached[other->id] && !is_leaf(other) && first_in_backward(p, other) == p->made_by[sum->out[0]->id];
	if (!other_shares) return 1;
	/* Both could: input 0 is taken as the skip unless only the other order is safe. */
	if (skip_waits(p, sum, sum->in[0], sum->in[1])) return 1;
	if (skip_waits(p, sum, sum->in[1], sum->in[0])) return 1;
	return i == 0;
}

static struct place grad_place(struct planner *p, const nr_t *t)
{
	if (p->grad[t->id].buf != NR_NOWHERE || p->grad[t->id].base) return p->grad[t->id];
	struct place at = none;
	const struct nr_node *m = maker(p, t), *user = only_user(p, t);
	const int32_t first = first_in_backward(p, t);
	if (t->flags & NR_PARAM) {
		at.base = nr_grad(t->entry);
	} else if (t->flags & NR_INPUT) {
		at = own(p, t, "gradient");
		p->buf[at.buf].fixed = 1;
	} else if (m && m->op == &nr_op_span && spans_tile(p, m->in[0]) && !is_leaf(m->in[0])) {
		at = span_of(grad_place(p, m->in[0]), m);
		p->aliased++;
	} else if (user && user->op == &nr_op_join && m && m->op->flags & NR_STRIDED && m->out[0] == t) {
		at = part_of(grad_place(p, user->out[0]), user->out[0], user->in[0] == t ? 0 : user->in[0]->d[1]);
		p->aliased++;
	} else if (user && user->op == &nr_op_reshape && !grad_place(p, user->out[0]).bs) {
		at = grad_place(p, user->out[0]);
		p->aliased++;
	} else if (first >= 0 && p->node[first]->op->flags & NR_SUM && (p->node[first]->in[0] == t || p->node[first]->in[1] == t) &&
		   sum_shares(p, p->node[first], p->node[first]->in[0] != t)) {
		at = grad_place(p, p->node[first]->out[0]);
		if (at.bs && !(m && m->op->flags & NR_STRIDED)) at = own(p, t, "gradient");
		else p->aliased++;
	} else {
		at = own(p, t, "gradient");
	}
	return p->grad[t->id] = at;
}

int nr_plan_place_grads(struct planner *p)
{
	for (int32_t i = 0; i < p->n_tensor; i++) p->grad[i] = none;
	p->sink = NR_NOWHERE;
	if (!(p->flags & NR_PLAN_TRAIN)) return 0;
	int64_t sink = 0;
	for (int32_t i = p->n_node - 1; i >= 0; i--) {
		const struct nr_node *k = p->node[i];
		for (int j = 0; p->back[i] && j < k->n_out; j++)
			if (p->reached[k->out[j]->id]) grad_place(p, k->out[j]);
		for (int j = 0; p->back[i] && j < k->n_in; j++) {
			const nr_t *x = k->in[j];
			if (p->reached[x->id]) grad_place(p, x);
			else if (x->dtype == NR_REAL && nr_tensor_bytes(x) > sink) sink = nr_tensor_bytes(x);
		}
	}
	for (int32_t i = 0; i < p->n_recorded; i++)
		if (nr_plan_lost_grad(p, p->net->tensor[i]) && p->net->tensor[i]->flags & NR_INPUT) grad_place(p, p->net->tensor[i]);
	if (sink) {
		p->sink = nr_buffer_make(p, sink, "sink", NULL, NULL);
		p->buf[p->sink].fixed = 1;
	}
	return p->err->code;
}
