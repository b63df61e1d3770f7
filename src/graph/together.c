/* Parts of a batch side by side: see together.h. */
#include "graph/together.h"

#include <omp.h>

#include "graph/plan.h"

/* ---- a twin ------------------------------------------------------------------------------------------------------------------- */

static void move(void *where, const struct nr_moved *moved)
{
	char *p;
	memcpy(&p, where, sizeof p);
	for (const struct nr_moved *m = moved; p && m->from; m++) {
		const char *from = (const char *)m->from;
		if (p < from || p >= from + m->n * (int64_t)sizeof(real)) continue;
		p = (char *)m->to + (p - from);
		memcpy(where, &p, sizeof p);
		return;
	}
}

static void move_call(struct nr_call *k, const struct nr_moved *moved, const struct nr_exec *ex)
{
	for (int i = 0; i < NR_MAXIN; i++) move(&k->x[i].p, moved), move(&k->dx[i].p, moved);
	for (int i = 0; i < NR_MAXOUT; i++) move(&k->y[i].p, moved), move(&k->dy[i].p, moved);
	move(&k->stash, moved), move(&k->scratch, moved), move(&k->pending, moved);
	k->ex = ex;
}

static void *copy(struct nr_arena *arena, const void *list, int64_t count, size_t size)
{
	void *to = nr_arena_alloc(arena, (size_t)(count ? count : 1) * size);
	if (to && count) memcpy(to, list, (size_t)count * size);
	return to;
}

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot plan", NULL, "out of memory"); }

static int fill(struct nr_plan *t, const struct nr_plan *p, const struct nr_moved *moved, struct nr_error *err)
{
	struct nr_moved all[8] = { { (const real *)(const void *)p->memory, (p->bytes + (int64_t)sizeof(real) - 1) / (int64_t)sizeof(real),
		(real *)(void *)t->memory } };
	for (int i = 0; i < 6 && moved[i].from; i++) all[i + 1] = moved[i];
	t->instr = copy(t->arena, p->instr, p->n_instr, sizeof *p->instr);
	t->commit = copy(t->arena, p->commit, p->n_commit, sizeof *p->commit);
	t->clear = copy(t->arena, p->clear, p->n_clear, sizeof *p->clear);
	t->first_write = copy(t->arena, p->first_write, p->n_first_write, sizeof *p->first_write);
	if (!t->instr || !t->commit || !t->clear || !t->first_write) return out_of_memory(err);
	for (int32_t i = 0; i < t->n_instr; i++) move_call(&t->instr[i].call, all, &t->exec);
	for (int32_t i = 0; i < t->n_commit; i++) move_call(&t->commit[i].call, all, &t->exec);
	for (int32_t i = 0; i < t->n_clear; i++) move(&t->clear[i].p, all);
	for (int32_t i = 0; i < p->n_buf; i++)          /* inputs that were filled once */
		if (p->buf[i].fixed && p->buf[i].first <= p->buf[i].last && p->buf[i].root == i)
			memcpy(t->memory + p->buf[i].offset, p->memory + p->buf[i].offset, (size_t)p->buf[i].bytes);
	for (int32_t i = 0; i < t->n_first_write; i++)
		t->first_write[i] = (uint8_t *)t->instr + (p->first_write[i] - (const uint8_t *)p->instr);
	return NR_OK;
}

int nr_plan_twin(struct nr_plan **out, const struct nr_plan *p, const struct nr_moved *moved, const struct nr_plan *host,
	struct nr_error *err)
{
	struct nr_arena *arena = nr_arena_make();
	struct nr_plan *t = arena ? nr_arena_alloc(arena, sizeof *t) : NULL;
	*out = NULL;
	if (!t) {
		nr_arena_free(arena);
		return out_of_memory(err);
	}
	*t = *p;
	t->arena = arena;
	t->guest = p->guest && host;
	t->memory = t->guest ? host->memory : nr_slab_make((size_t)p->bytes);
	const int code = t->memory ? fill(t, p, moved, err) : out_of_memory(err);
	if (code) nr_plan_free(t);
	else *out = t;
	return code;
}

/* ---- running -------------------------------------------------------------------------------------------------------------------- */

/* Numbers that a call tells the other parts before it runs. Those for onlookers alone run on one part only. */
static int64_t share_of(const struct nr_instr *in, const struct nr_exec *ex)
{
	const struct nr_node *k = in->call.node;
	if (!ex->train || in->watched || !k || !k->op->share) return 0;
	if (in->fn == k->op->forward) return k->op->share(k, 0);
	return in->fn == k->op->backward ? k->op->share(k, 1) : 0;
}

int64_t nr_plan_share_most(const struct nr_plan *p)
{
	const struct nr_exec ex = { .train = 1 };
	int64_t most = 0;
	for (int32_t i = 0; i < p->n_instr; i++) {
		const int64_t n = share_of(&p->instr[i], &ex);
		if (n > most) most = n;
	}
	return most;
}

/* Count, means and sums of squares of a part join those of another: Chan et al. 1979. */
static void merge_moments(int64_t n, double *a, const double *b)
{
	const int64_t C = (n - 1) / 2;
	const double all = a[0] + b[0], share = all > 0 ? b[0] / all : 0;
	for (int64_t i = 1; i <= C; i++) {
		const double d = b[i] - a[i];
		a[i] += d * share;
		a[C + i] += b[C + i] + d * d * a[0] * share;
	}
	a[0] = all;
}

/* By the tree over parts. */
static void merge(int64_t parts, int64_t n, bool moments, double *v)
{
	for (int64_t d = 1; d < parts; d *= 2)
		for (int64_t i = 0; i + d < parts; i += 2 * d) {
			double *a = v + i * n;
			const double *b = a + d * n;
			if (moments) merge_moments(n, a, b);
			else
				for (int64_t j = 0; j < n; j++) a[j] += b[j];
		}
}

static void call(const struct nr_plan *p, const struct nr_instr *in, const struct nr_call *k)
{
	const int threads = in->alone ? 1 : p->threads;
	if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
	in->fn(k);
}

/* Runs a part up to the next call that shares, or to the end. */
static int32_t run_on(const struct nr_plan *p, const struct nr_exec *ex, int32_t i, int32_t end)
{
	for (; i < end && !share_of(&p->instr[i], ex); i++) {
		if (p->instr[i].watched && !ex->after) continue;
		call(p, &p->instr[i], &p->instr[i].call);
		if (ex->after && i < p->n_forward) ex->after(ex->context, i);
	}
	return i;
}

static int share(const struct nr_together *g, struct nr_error *err)
{
	const struct nr_instr *first = &g->plan[0]->instr[g->at[0]];
	const struct nr_node *node = first->call.node;
	const int backward = first->fn != node->op->forward;
	const int64_t n = share_of(first, &g->ex[0]);
	for (int64_t i = 0; i < g->parts; i++) {
		const struct nr_instr *in = &g->plan[i]->instr[g->at[i]];
		if (omp_get_max_threads() != g->plan[i]->threads) omp_set_num_threads(g->plan[i]->threads);
		in->call.node->op->part(&in->call, backward, g->mine + i * n);
	}
	if (nr_comm_gather(g->comm, g->mine, (size_t)(g->parts * n) * sizeof *g->mine, g->others, err)) return err->code;
	merge(g->all, n, !backward && node->op->flags & NR_SHARES_MOMENTS, g->others);
	for (int64_t i = 0; i < g->parts; i++) {
		const struct nr_plan *p = g->plan[i];
		const int32_t at = g->at[i]++;
		struct nr_call k = p->instr[at].call;
		k.shared = g->others;
		call(p, &p->instr[at], &k);
		if (g->ex[i].after && at < p->n_forward) g->ex[i].after(g->ex[i].context, at);
	}
	return NR_OK;
}

static int run(const struct nr_together *g, bool backward, struct nr_error *err)
{
	for (int64_t i = 0; i < g->parts; i++) g->at[i] = backward ? g->plan[i]->n_forward : 0;
	for (;;) {
		for (int64_t i = 0; i < g->parts; i++) {
			const struct nr_plan *p = g->plan[i];
			g->at[i] = run_on(p, &g->ex[i], g->at[i], backward ? p->n_instr : p->n_forward);
		}
		if (g->at[0] == (backward ? g->plan[0]->n_instr : g->plan[0]->n_forward)) return NR_OK;
		if (share(g, err)) return err->code;
	}
}

int nr_plan_run_together(const struct nr_together *g, unsigned flags, struct nr_error *err)
{
	int code = NR_OK;
	for (int64_t i = 0; i < g->parts; i++) g->plan[i]->exec = g->ex[i];
	if (flags & NR_RUN_FORWARD) code = run(g, false, err);
	for (int64_t i = 0; i < g->parts && flags & NR_RUN_BACKWARD; i++) nr_plan_begin_backward(g->plan[i], &g->ex[i]);
	if (!code && flags & NR_RUN_BACKWARD) code = run(g, true, err);
	omp_set_num_threads(g->plan[0]->threads);
	for (int64_t i = 0; i < g->parts && !code && flags & NR_RUN_COMMIT; i++)
		for (int32_t j = 0; j < g->plan[i]->n_commit; j++) g->plan[i]->commit[j].fn(&g->plan[i]->commit[j].call);
	return code;
}
