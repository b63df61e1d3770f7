/* Planner: lifetimes of buffers, sharing in place, and offsets in the arena. */
#include "graph/plan.h"

#include <stdlib.h>

int32_t nr_buffer_make(struct planner *p, int64_t bytes, const char *what, const nr_t *t, const struct nr_node *node)
{
	if (p->n_buf == p->cap_buf) {
		const int32_t cap = p->cap_buf * 2;
		struct buffer *more = nr_plan_list(p, cap, sizeof *more);
		if (!more) return 0; /* the error is seen after the pass */
		memcpy(more, p->buf, (size_t)p->n_buf * sizeof *more);
		p->buf = more;
		p->cap_buf = cap;
	}
	p->buf[p->n_buf] = (struct buffer){
		.bytes = (bytes + 63) / 64 * 64, .first = INT32_MAX, .last = -1, .root = p->n_buf, .what = what, .tensor = t, .node = node,
	};
	return p->n_buf++;
}

static void touch(struct planner *p, int32_t b, int32_t time)
{
	if (b < 0) return;
	struct buffer *x = &p->buf[b];
	if (time < x->first) x->first = time;
	if (time > x->last) x->last = time;
}

static void touch_kept(struct planner *p, const struct nr_node *k, uint32_t keeps, int32_t time)
{
	for (int j = 0; j < k->n_in; j++)
		if (keeps & NR_KEEP_X(j)) touch(p, nr_place_in_backward(p, k->in[j]).buf, time);
	for (int j = 0; j < k->n_out; j++)
		if (keeps & NR_KEEP_Y(j)) touch(p, nr_place_in_backward(p, k->out[j]).buf, time);
}

void nr_plan_lifetimes(struct planner *p)
{
	for (int32_t t = 0; t < p->n_step; t++) {
		const struct step *s = &p->step[t];
		if (s->kind == STEP_SEED) {
			touch(p, p->grad[p->loss->id].buf, t);
			continue;
		}
		const struct nr_node *k = p->node[s->node];
		touch(p, nr_stash_of(p, s->node, s->kind), t);
		switch (s->kind) {
		case STEP_FORWARD:
			for (int j = 0; j < k->n_in; j++) touch(p, p->value[k->in[j]->id].buf, t);
			for (int j = 0; j < k->n_out; j++) touch(p, p->value[k->out[j]->id].buf, t);
			break;
		case STEP_REBUILD:
			touch_kept(p, k, k->op->rebuild ? k->op->rebuild_keeps : 0xffff, t);
			for (int j = 0; j < k->n_out; j++) touch(p, p->again[k->out[j]->id].buf, t);
			break;
		case STEP_AGAIN:
		case STEP_UNDO: touch_kept(p, k, ~0u, t); break;
		case STEP_BACKWARD:
			touch_kept(p, k, k->op->keeps, t);
			for (int j = 0; j < k->n_out; j++) touch(p, p->grad[k->out[j]->id].buf, t);
			for (int j = 0; j < k->n_in; j++) touch(p, p->grad[k->in[j]->id].buf, t);
			break;
		case STEP_SEED: break;
		}
	}
	for (int32_t b = 0; b < p->n_buf; b++)
		if (p->buf[b].fixed) p->buf[b].first = 0, p->buf[b].last = p->n_step;
}

static int whole(const struct planner *p, struct place at, const nr_t *t)
{
	return at.buf >= 0 && !at.off && !at.bs && !p->buf[at.buf].fixed && p->buf[at.buf].bytes >= nr_tensor_bytes(t);
}

/* Lets `later` live in the memory of `earlier`, whose last use is the very instruction that first writes `later`. */
static void share(struct planner *p, int32_t earlier, int32_t later, int32_t time)
{
	const int32_t a = nr_buffer_root(p, earlier), b = nr_buffer_root(p, later);
	if (a == b || p->buf[a].fixed || p->buf[b].fixed || p->buf[a].last != time || p->buf[b].first != time ||
	    p->buf[b].bytes > p->buf[a].bytes)
		return;
	p->buf[b].root = a;
	p->buf[a].last = p->buf[b].last;
}

void nr_plan_inplace(struct planner *p)
{
	for (int32_t t = 0; t < p->n_step; t++) {
		const struct step *s = &p->step[t];
		if (s->kind != STEP_FORWARD && s->kind != STEP_UNDO && s->kind != STEP_BACKWARD) continue;
		const struct nr_node *k = p->node[s->node];
		const nr_t *x = k->in[0], *y = k->out[0];
		if (!k->n_in) continue;
		const struct place now = nr_place_in_backward(p, y);
		if (s->kind == STEP_UNDO && whole(p, now, y)) share(p, now.buf, p->again[x->id].buf, t);
		const struct place *px = &p->value[x->id], *py = &p->value[y->id];
		if (s->kind == STEP_FORWARD && k->op->flags & NR_INPLACE && whole(p, *px, x) && whole(p, *py, y))
			share(p, px->buf, py->buf, t);
		px = &p->grad[x->id], py = &p->grad[y->id];
		if (s->kind == STEP_BACKWARD && k->op->flags & NR_INPLACE_GRAD && whole(p, *px, x) && whole(p, *py, y))
			share(p, py->buf, px->buf, t);
	}
}

static int larger_first(const void *a, const void *b)
{
	const struct buffer *x = *(struct buffer *const *)a, *y = *(struct buffer *const *)b;
	if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
	return x->first != y->first ? (x->first > y->first) - (x->first < y->first) : (x->root > y->root) - (x->root < y->root);
}

/* What is placed already, by offset. */
struct taken { int64_t offset, end; int32_t first, last; };

/* The lowest offset at which so many bytes are free throughout a life. */
static int64_t lowest(const struct taken *t, int32_t n, const struct buffer *x)
{
	int64_t at = 0;
	for (int32_t j = 0; j < n && t[j].offset < at + x->bytes; j++)
		if (t[j].first <= x->last && x->first <= t[j].last && t[j].end > at) at = t[j].end;
	return at;
}

static void insert(struct taken *t, int32_t n, const struct buffer *x)
{
	int32_t lo = 0, hi = n;
	while (lo < hi) {
		const int32_t mid = lo + (hi - lo) / 2;
		if (t[mid].offset < x->offset) lo = mid + 1;
		else hi = mid;
	}
	memmove(t + lo + 1, t + lo, (size_t)(n - lo) * sizeof *t);
	t[lo] = (struct taken){ x->offset, x->offset + x->bytes, x->first, x->last };
}

/* Largest first, each at the lowest offset that is free during its life. */
int64_t nr_plan_pack(struct planner *p)
{
	struct buffer **order = nr_plan_list(p, p->n_buf, sizeof *order);
	struct taken *taken = nr_plan_list(p, p->n_buf, sizeof *taken);
	if (!order || !taken) return NR_EMEMORY;
	int32_t n = 0;
	for (int32_t b = 0; b < p->n_buf; b++)
		if (p->buf[b].root == b && p->buf[b].first <= p->buf[b].last) order[n++] = &p->buf[b];
	qsort(order, (size_t)n, sizeof *order, larger_first);
	int64_t top = 0;
	for (int32_t i = 0; i < n; i++) {
		struct buffer *x = order[i];
		x->offset = p->flags & NR_PLAN_NO_REUSE ? top : lowest(taken, i, x);
		insert(taken, i, x);
		if (x->offset + x->bytes > top) top = x->offset + x->bytes;
	}
	for (int32_t b = 0; b < p->n_buf; b++) p->buf[b].offset = p->buf[nr_buffer_root(p, b)].offset;
	return top;
}
