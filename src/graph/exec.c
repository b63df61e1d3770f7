/* Replay: walks the array of calls. Nothing here allocates or fails. */
#include <math.h>
#include <omp.h>

#include "base/real.h"
#include "base/str.h"
#include "graph/plan.h"

/* Tests: everything that does not live between runs becomes NaN, so that reading what was not written shows. */
static void poison(const struct nr_plan *p)
{
	for (int32_t b = 0; b < p->n_buf; b++)
		if (!p->buf[b].fixed && p->buf[b].first <= p->buf[b].last && p->buf[b].root == b)
			memset(p->memory + p->buf[b].offset, 0xff, (size_t)p->buf[b].bytes);
	memset(p->memory + p->stats.arena_bytes, 0xff, (size_t)p->stats.scratch_bytes);
}

struct team { int most, now; };     /* threads of the kernels; what OpenMP is set to */

static void set_team(struct team *t, int threads)
{
	if (t->now != threads) omp_set_num_threads(t->now = threads);
}

static void call(const struct nr_instr *in, struct team *t)
{
	set_team(t, in->alone ? 1 : t->most);
	in->fn(&in->call);
}

static void run_forward(const struct nr_plan *p, const struct nr_exec *ex, struct team *t)
{
	for (int32_t i = 0; i < p->n_forward; i++) {
		if (p->instr[i].watched && !ex->after) continue;
		call(&p->instr[i], t);
		if (!ex->after) continue;
		set_team(t, t->most);
		ex->after(ex->context, i);
	}
}

/* Which writers of gradients add, and zeros where nobody writes. */
void nr_plan_begin_backward(const struct nr_plan *p, const struct nr_exec *ex)
{
	for (int32_t i = 0; i < p->n_first_write; i++) *p->first_write[i] = ex->accumulate != 0;
	for (int32_t i = 0; i < p->n_clear; i++)
		if (p->clear[i].always || !ex->accumulate) memset(p->clear[i].p, 0, p->clear[i].bytes);
}

static void run_backward(const struct nr_plan *p, const struct nr_exec *ex, struct team *t)
{
	nr_plan_begin_backward(p, ex);
	for (int32_t i = p->n_forward; i < p->n_instr; i++) {
		call(&p->instr[i], t);
		if (!ex->behind) continue;
		set_team(t, t->most);
		ex->behind(ex->behind_context, i);
	}
}

void nr_plan_run(struct nr_plan *p, const struct nr_exec *ex, unsigned run)
{
	p->exec = *ex;
	if (omp_get_max_threads() > p->threads) omp_set_num_threads(p->threads); /* scratch is planned for so many */
	struct team team = { omp_get_max_threads(), omp_get_max_threads() };
	if (p->flags & NR_PLAN_POISON && run & NR_RUN_FORWARD) poison(p);
	if (run & NR_RUN_FORWARD) run_forward(p, ex, &team);
	if (run & NR_RUN_BACKWARD) run_backward(p, ex, &team);
	set_team(&team, team.most);
	if (run & NR_RUN_COMMIT)
		for (int32_t i = 0; i < p->n_commit; i++) p->commit[i].fn(&p->commit[i].call);
}

static int finite_view(const struct nr_view *v)
{
	for (int64_t r = 0; v->p && v->dtype == NR_REAL && r < v->rows; r++) {
		const real *x = nr_row(v, r);
		for (int64_t i = 0; i < v->c; i++)
			if (!isfinite(x[i])) return 0;
	}
	return 1;
}

const struct nr_node *nr_plan_first_bad(struct nr_plan *p, const struct nr_exec *ex)
{
	p->exec = *ex;
	for (int32_t i = 0; i < p->n_forward; i++) {
		const struct nr_call *k = &p->instr[i].call;
		p->instr[i].fn(k);
		for (int j = 0; j < k->node->n_out; j++)
			if (!finite_view(&k->y[j])) return k->node;
	}
	return NULL;
}

static void *kept(const struct nr_plan *p, struct place at, size_t size)
{
	if (at.buf == NR_NOWHERE) return at.base;
	return p->buf[at.buf].fixed ? p->memory + p->buf[at.buf].offset + at.off * (int64_t)size : NULL;
}

void *nr_plan_data(const struct nr_plan *p, const nr_t *t)
{
	return t && t->id < p->n_tensor ? kept(p, p->value[t->id], nr_dtype_size(t->dtype)) : NULL;
}

int32_t nr_plan_made(const struct nr_plan *p, const nr_t *t, struct nr_view *v)
{
	for (int32_t i = 0; i < p->n_forward; i++) {
		const struct nr_call *k = &p->instr[i].call;
		for (int j = 0; j < k->node->n_out; j++) {
			if (k->node->out[j] != t) continue;
			*v = k->y[j];
			return v->p ? i : -1;
		}
	}
	const int64_t c = nr_cols(t), per = nr_rows_per_sample(t);
	*v = (struct nr_view){ .p = nr_plan_data(p, t), .dtype = t->dtype, .rows = nr_rows(t), .c = c, .t = per, .bs = per * c };
	return v->p ? 0 : -1;
}

real *nr_plan_grad(const struct nr_plan *p, const nr_t *t)
{
	return t && t->id < p->n_tensor ? kept(p, p->grad[t->id], sizeof(real)) : NULL;
}

const nr_t *nr_plan_tap(const struct nr_plan *p, const char *name, struct nr_error *err)
{
	struct nr_near near = { .word = name };
	for (int32_t i = 0; i < p->n_tensor; i++) {
		const nr_t *t = p->net->tensor[i];
		if (!(t->flags & NR_TAP)) continue;
		if (!strcmp(t->name, name)) return t;
		nr_near_try(&near, t->name);
	}
	nr_fail(err, NR_ENAME, "no tap", name, "the graph does not have it");
	if (near.best) nr_hint(err, "did you mean '%s'?", near.best);
	return NULL;
}

struct nr_plan_stats nr_plan_stats(const struct nr_plan *p) { return p->stats; }
