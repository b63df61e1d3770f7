/* Gradients on their way: see buckets.h. */
#include "graph/buckets.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "graph/plan.h"

enum { BYTES = 4 << 20, AT_A_TIME = 3 };

struct bucket { int64_t from, n; int32_t ready; struct nr_comm_sum sum; };

struct nr_buckets {
	struct nr_arena *arena;
	struct nr_comm *comm;
	enum nr_overlap overlap;
	bool bf16;
	void (*leave)(void *, int64_t, int64_t);
	void *context;
	real *grads, *room;
	int64_t count, left, arrived;
	struct bucket *bucket;          /* (count) in the order in which they leave */
	struct nr_error err;            /* of this step; kept until its end */
	pthread_t thread;
	bool running;
	atomic_int done;                /* the last call of backward that is done */
};

/* When the values of each parameter are whole: the last call that writes them. */
static int32_t ready_at(const struct nr_plan *p, int64_t from, int64_t n)
{
	const real *grads = nr_store_grads(p->net->store, &(int64_t){ 0 });
	for (int32_t i = p->n_instr - 1; i >= p->n_forward; i--) {
		const struct nr_call *k = &p->instr[i].call;
		for (int j = 0; k->node && j < k->node->n_in; j++) {
			if (!(k->want >> j & 1) || !k->node->in[j]->entry) continue;
			const int64_t at = (const real *)k->dx[j].p - grads;
			if (at < from + n && at + k->node->in[j]->entry->count > from) return i;
		}
	}
	return p->n_forward;
}

static int by_ready(const void *a, const void *b)
{
	const struct bucket *x = a, *y = b;
	if (x->ready != y->ready) return x->ready < y->ready ? -1 : 1;
	return x->from > y->from ? -1 : x->from < y->from;
}

/* From the end of the slab, where backward begins. */
static int cut(struct nr_buckets *b, const struct nr_plan *p, struct nr_error *err)
{
	const int64_t each = BYTES / (int64_t)sizeof(real);
	int64_t n;
	b->grads = nr_store_grads(p->net->store, &n);
	b->count = n > 0 ? (n + each - 1) / each : 0;
	b->bucket = nr_arena_alloc(b->arena, (size_t)(b->count + 1) * sizeof *b->bucket);
	if (!b->bucket) return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	for (int64_t i = 0; i < b->count; i++) {
		struct bucket *q = &b->bucket[i];
		q->n = n < each ? n : each;
		q->from = n -= q->n;
		q->ready = ready_at(p, q->from, q->n);
	}
	qsort(b->bucket, (size_t)b->count, sizeof *b->bucket, by_ready);
	return NR_OK;
}

int nr_buckets_open(struct nr_buckets **out, struct nr_comm *comm, const struct nr_plan *first, real *room, enum nr_overlap overlap,
	bool bf16, void (*leave)(void *, int64_t, int64_t), void *context, struct nr_error *err)
{
	struct nr_arena *arena = nr_arena_make();
	struct nr_buckets *b = *out = arena ? nr_arena_alloc(arena, sizeof *b) : NULL;
	if (!b) {
		nr_arena_free(arena);
		return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	}
	*b = (struct nr_buckets){ .arena = arena, .comm = comm, .overlap = overlap, .bf16 = bf16, .leave = leave,
		.context = context, .room = room };
	if (overlap == NR_OVERLAP_AUTO) b->overlap = nr_comm_hosts(comm) > 1 ? NR_OVERLAP_BETWEEN : NR_OVERLAP_AFTER;
	return cut(b, first, err);
}

void nr_buckets_close(struct nr_buckets *b)
{
	if (b) nr_arena_free(b->arena);
}

int64_t nr_buckets_count(const struct nr_buckets *b) { return b->count; }

/* Those whose last writer is done leave, a few at a time; those on their way go on. false: nothing happened. */
static bool advance(struct nr_buckets *b, int32_t done)
{
	const int64_t left = b->left, arrived = b->arrived;
	if (b->err.code) return false;
	while (b->left < b->count && b->left < b->arrived + AT_A_TIME && b->bucket[b->left].ready <= done) {
		struct bucket *q = &b->bucket[b->left];
		if (b->leave) b->leave(b->context, q->from, q->n);
		q->sum.bf16 = b->bf16;
		nr_comm_sum_begin(&q->sum, b->comm, q->n, b->grads + q->from, b->room + q->from, (int)b->left++);
	}
	for (int64_t i = b->arrived; i < b->left; i++) {
		const int code = nr_comm_sum_poll(&b->bucket[i].sum, &b->err);
		if (code < 0) return false;
		if (code == 1 && i == b->arrived) b->arrived++;
	}
	return b->left > left || b->arrived > arrived;
}

static void between(void *context, int32_t call)
{
	struct nr_buckets *b = context;
	atomic_store_explicit(&b->done, call, memory_order_release);
	if (!b->running) advance(b, call);
}

static void *travel(void *context)
{
	struct nr_buckets *b = context;
	for (double last = nr_clock(); b->arrived < b->count && !b->err.code;) {
		if (advance(b, atomic_load_explicit(&b->done, memory_order_acquire))) last = nr_clock();
		else nr_comm_pause(nr_clock() - last + 2e-3);   /* asleep: the CPU is backward's */
	}
	return NULL;
}

int nr_buckets_begin(struct nr_buckets *b, const struct nr_plan *p, struct nr_exec *ex, struct nr_error *err)
{
	b->left = b->arrived = 0;
	atomic_store(&b->done, -1);
	for (int64_t i = 0; i < b->count; i++) b->bucket[i].ready = ready_at(p, b->bucket[i].from, b->bucket[i].n);
	if (b->overlap == NR_OVERLAP_AFTER) return NR_OK;
	ex->behind = between;
	ex->behind_context = b;
	if (b->overlap == NR_OVERLAP_THREAD) {
		if (pthread_create(&b->thread, NULL, travel, b)) return nr_fail(err, NR_EIO, "cannot start a thread", NULL, NULL);
		b->running = true;
	}
	return NR_OK;
}

int nr_buckets_end(struct nr_buckets *b, struct nr_error *err)
{
	atomic_store_explicit(&b->done, INT32_MAX, memory_order_release);
	if (b->running) pthread_join(b->thread, NULL);
	b->running = false;
	for (double last = nr_clock(); b->arrived < b->count && !b->err.code;) {
		if (advance(b, INT32_MAX)) last = nr_clock();
		else nr_comm_pause(nr_clock() - last);
	}
	b->left = b->arrived = 0;
	const int code = b->err.code;
	if (code && err) *err = b->err;
	b->err.code = 0;
	return code;
}
