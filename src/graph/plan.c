/* The planner's driver: runs the passes, takes the memory and resolves every pointer into a flat array of calls. */
#include "graph/plan.h"

#include <omp.h>
#include <stdlib.h>

#include "graph/store.h"

static void *address(const struct nr_plan *p, struct place at, size_t size)
{
	if (at.buf == NR_NOWHERE) return at.base ? (char *)at.base + at.off * (int64_t)size : NULL;
	return p->memory + p->buf[at.buf].offset + at.off * (int64_t)size;
}

static struct nr_view view(const struct nr_plan *p, const nr_t *t, struct place at)
{
	const int64_t c = nr_cols(t), rows = nr_rows(t), per = nr_rows_per_sample(t);
	return (struct nr_view){
		.p = address(p, at, nr_dtype_size(t->dtype)), .dtype = t->dtype, .rows = rows, .c = c, .t = per,
		.bs = at.bs ? at.bs : per * c,
	};
}

/* The seed: d loss / d loss = 1. */
static void seed(const struct nr_call *k)
{
	real *g = k->dy[0].p;
	for (int64_t i = 0; i < k->dy[0].rows * k->dy[0].c; i++) g[i] = 1;
}

/* Weights of inference that are read turned. */
static void bind_turned(struct nr_call *c, const struct nr_node *k)
{
	for (int j = 0; j < k->n_in; j++) {
		real *turned = k->op->turns >> j & 1 && k->in[j]->entry ? nr_store_turned(k->in[j]->entry) : NULL;
		if (!turned) continue;
		c->x[j].p = turned;
		c->turned |= 1u << j;
	}
}

static void bind(struct nr_plan *plan, const struct planner *p, struct nr_call *c, int32_t i, enum step_kind kind)
{
	const struct nr_node *k = p->node[i];
	const int backward = kind == STEP_BACKWARD;
	const uint32_t reads = backward                ? k->op->keeps
			       : kind == STEP_REBUILD && k->op->rebuild ? k->op->rebuild_keeps
								       : ~0u;
	c->node = k;
	c->ex = &plan->exec;
	const int32_t stash = nr_stash_of(p, i, kind);
	c->stash = stash >= 0 ? plan->memory + p->buf[stash].offset : NULL;
	c->again = kind == STEP_AGAIN;
	c->pending = p->pending[i] >= 0 ? plan->memory + p->buf[p->pending[i]].offset : NULL;
	c->scratch = plan->memory + plan->stats.arena_bytes;
	for (int j = 0; j < k->n_in; j++) {
		const struct place at = kind != STEP_FORWARD ? nr_place_in_backward(p, k->in[j]) : p->value[k->in[j]->id];
		c->x[j] = view(plan, k->in[j], at);
		if (!(reads & NR_KEEP_X(j))) c->x[j].p = NULL; /* an undeclared read must fail at once */
	}
	for (int j = 0; j < k->n_out; j++) {
		const struct place at = kind != STEP_FORWARD ? nr_place_in_backward(p, k->out[j]) : p->value[k->out[j]->id];
		c->y[j] = view(plan, k->out[j], at);
		const int made = kind == STEP_REBUILD && (p->rebuild[i] >> j & 1);
		if (!(reads & NR_KEEP_Y(j)) && !made) c->y[j].p = NULL;
		const int unread = at.buf >= 0 && p->buf[at.buf].first == p->buf[at.buf].last && !p->buf[at.buf].fixed;
		if (kind == STEP_FORWARD && k->op->optional >> j & 1 && unread) c->y[j].p = NULL;
	}
}

/* Gradients of a backward call: the first writer overwrites, later ones add. */
static void bind_grads(struct nr_plan *plan, const struct planner *p, struct nr_call *c, int32_t i, uint8_t *written)
{
	const struct nr_node *k = p->node[i];
	const int32_t now = p->back_time[i];
	for (int j = 0; j < k->n_out; j++) {
		const int32_t id = k->out[j]->id;
		c->dy[j] = view(plan, k->out[j], p->reached[id] ? p->grad[id] : (struct place){ .buf = NR_NOWHERE });
		if (j == 0) c->dy_empty = c->dy[0].p && !written[id];
		const struct buffer *b = p->grad[id].buf >= 0 ? &p->buf[nr_buffer_root(p, p->grad[id].buf)] : NULL;
		if (b && b->last == now && !b->fixed) c->dy_dead |= 1u << j;
	}
	for (int j = 1; j < k->n_out; j++) /* two outputs whose gradients are one memory: neither may be overwritten */
		for (int q = 0; q < j; q++)
			if (c->dy[j].p && c->dy[j].p == c->dy[q].p) c->dy_dead = 0;
	for (int j = 0; j < k->n_in; j++) {
		const nr_t *x = k->in[j];
		if (x->dtype != NR_REAL) continue;
		if (!p->reached[x->id]) {
			c->dx[j] = view(plan, x, (struct place){ .buf = p->sink });
			continue;
		}
		c->dx[j] = view(plan, x, p->grad[x->id]);
		c->want |= 1u << j;
		c->add[j] = written[x->id];
		if (!written[x->id] && x->flags & NR_PARAM) plan->first_write[plan->n_first_write++] = &c->add[j];
		written[x->id] = 1;
	}
}

static void resolve(struct nr_plan *plan, const struct planner *p, uint8_t *written)
{
	for (int32_t t = 0; t < p->n_step; t++) {
		const struct step *s = &p->step[t];
		struct nr_instr *in = &plan->instr[plan->n_instr];
		if (s->kind == STEP_SEED) {
			in->fn = seed;
			in->call.ex = &plan->exec;
			in->call.node = p->node[p->made_by[p->loss->id]];
			in->call.dy[0] = view(plan, p->loss, p->grad[p->loss->id]);
			written[p->loss->id] = 1;
		} else {
			const struct nr_op *op = p->node[s->node]->op;
			in->fn = s->kind == STEP_BACKWARD                 ? op->backward
				 : s->kind == STEP_UNDO                   ? op->undo
				 : s->kind == STEP_REBUILD && op->rebuild ? op->rebuild
									  : op->forward;
			bind(plan, p, &in->call, s->node, s->kind);
			if (!(p->flags & NR_PLAN_TRAIN)) bind_turned(&in->call, p->node[s->node]);
			in->watched = s->kind == STEP_FORWARD && nr_plan_only_watched(p, p->node[s->node]);
			if (s->kind == STEP_BACKWARD) bind_grads(plan, p, &in->call, s->node, written);
		}
		plan->n_instr++;
		if (t < p->n_forward) plan->n_forward = plan->n_instr;
		if (s->kind == STEP_FORWARD && p->node[s->node]->op->commit) {
			plan->commit[plan->n_commit] = *in;
			plan->commit[plan->n_commit++].fn = p->node[s->node]->op->commit;
		}
	}
}

/* Leaves whose gradient was zeros because of the tokens that are left out now: nobody else writes these. */
static void find_lost(struct nr_plan *plan, const struct planner *p)
{
	for (int32_t i = 0; i < p->n_recorded; i++) {
		const nr_t *t = p->net->tensor[i];
		if (!nr_plan_lost_grad(p, t)) continue;
		const int input = (t->flags & NR_INPUT) != 0;
		void *grad = input ? address(plan, p->grad[i], sizeof(real)) : nr_grad(t->entry);
		plan->clear[plan->n_clear++] = (struct clear){ grad, (size_t)nr_len(t) * sizeof(real), input };
	}
}

/* Instructions that no second thread is woken for. */
static void find_alone(struct nr_plan *plan)
{
	const char *env = getenv("NORMA_SHARE");
	if (plan->flags & NR_PLAN_SHARE || (env && !strcmp(env, "1"))) return;
	for (int32_t i = 0; i < plan->n_instr; i++) {
		const struct nr_work w = nr_instr_work(plan, i);
		plan->instr[i].alone = nr_work_is_small(&w);
	}
}

static void count(struct nr_plan *plan, const struct planner *p)
{
	struct nr_plan_stats *s = &plan->stats;
	s->instructions = plan->n_instr;
	s->forward = plan->n_forward;
	s->backward = plan->n_instr - plan->n_forward;
	s->narrowed = p->narrowed;
	s->left_out_flops = p->left_out_flops;
	s->fused = p->fused;
	s->rebuilt = p->rebuilt;
	s->aliased = p->aliased;
	for (int32_t b = 0; b < p->n_buf; b++)
		if (p->buf[b].first <= p->buf[b].last) s->no_reuse_bytes += p->buf[b].bytes;
	for (int64_t i = 0; i < nr_store_count(p->net->store); i++) {
		const struct nr_entry *e = nr_store_at(p->net->store, i);
		*(e->buffer ? &s->buffer_count : &s->param_count) += e->count;
	}
	for (int32_t i = 0; i < p->n_node; i++) {
		double f = 0, b = 0;
		nr_node_cost(p->node[i], &f, &b);
		s->forward_flops += f;
		if (p->back[i]) s->backward_flops += b;
		if (p->repeated[i]) s->backward_flops += f;
	}
}

/* Flops of a node; ops that say nothing cost two passes of arithmetic per value. */
void nr_node_cost(const struct nr_node *k, double *forward, double *backward)
{
	if (k->op->cost) {
		k->op->cost(k, forward, backward);
		return;
	}
	*forward = k->op->flags & NR_VIEW ? 0 : 2.0 * (double)nr_len(k->out[0]);
	*backward = 2 * *forward;
}

static int take_memory(struct nr_plan *plan, struct planner *p)
{
	int64_t scratch = 0;
	for (int32_t i = 0; i < p->n_node; i++)
		if ((int64_t)p->node[i]->scratch > scratch) scratch = (int64_t)p->node[i]->scratch;
	plan->stats.arena_bytes = nr_plan_pack(p);
	if (p->err->code) return p->err->code;
	plan->stats.scratch_bytes = (scratch + 63) / 64 * 64;
	plan->bytes = plan->stats.arena_bytes + plan->stats.scratch_bytes + 64;
	const int code = nr_memory_check((double)plan->bytes + nr_store_bytes(p->net->store), "cannot plan", NULL, p->err);
	if (code) return nr_hint(p->err, "%s", NR_SMALLER);
	plan->guest = p->host && p->host->bytes >= plan->bytes;
	plan->memory = plan->guest ? p->host->memory : nr_slab_make((size_t)plan->bytes);
	if (!plan->memory) {
		nr_fail(p->err, NR_EMEMORY, "cannot plan", NULL, "%lld MiB of activations were refused",
			(long long)(plan->bytes >> 20));
		return nr_hint(p->err, "%s", NR_SMALLER);
	}
	plan->buf = p->buf;
	plan->n_buf = p->n_buf;
	plan->n_tensor = p->n_tensor;
	plan->value = p->value;
	plan->grad = p->grad;
	return 0;
}

static int make(struct nr_plan *plan, struct planner *p)
{
	int rc;
	if ((rc = nr_store_reserve(p->net->store, p->err)) || (rc = nr_plan_prune(p)) || (rc = nr_plan_narrow(p)) ||
	    (rc = nr_plan_fuse(p)) || (rc = nr_plan_link(p)) || (rc = nr_plan_schedule(p)))
		return rc;
	p->value = nr_plan_list(p, p->n_tensor, sizeof *p->value);
	p->again = nr_plan_list(p, p->n_tensor, sizeof *p->again);
	p->grad = nr_plan_list(p, p->n_tensor, sizeof *p->grad);
	p->stash = nr_plan_list(p, p->n_node, sizeof *p->stash);
	p->stash_again = nr_plan_list(p, p->n_node, sizeof *p->stash_again);
	p->pending = nr_plan_list(p, p->n_node, sizeof *p->pending);
	p->cap_buf = 512;
	p->buf = nr_plan_list(p, p->cap_buf, sizeof *p->buf);
	if (p->err->code || nr_plan_place_values(p) || nr_plan_place_grads(p)) return p->err->code;
	nr_plan_lifetimes(p);
	nr_plan_inplace(p);
	if ((rc = take_memory(plan, p)) || (rc = nr_store_seal(p->net->store, p->err))) return rc;      /* sizes first, then values */
	plan->instr = nr_plan_list(p, p->n_step, sizeof *plan->instr);
	plan->commit = nr_plan_list(p, p->n_node, sizeof *plan->commit);
	plan->first_write = nr_plan_list(p, p->n_tensor, sizeof *plan->first_write);
	plan->clear = nr_plan_list(p, p->n_recorded, sizeof *plan->clear);
	uint8_t *written = nr_plan_list(p, p->n_tensor, 1);
	if (p->err->code) return p->err->code;
	resolve(plan, p, written);
	find_alone(plan);
	find_lost(plan, p);
	count(plan, p);
	return 0;
}

int nr_plan_make(struct nr_plan **out, struct nr_net *n, nr_t *loss, unsigned flags, struct nr_error *err)
{
	return nr_plan_make_beside(out, n, loss, flags, NULL, err);
}

int nr_plan_make_beside(struct nr_plan **out, struct nr_net *n, nr_t *loss, unsigned flags, const struct nr_plan *host,
	struct nr_error *err)
{
	*out = NULL;
	if (n->error.code) {
		if (err) *err = n->error;
		return n->error.code;
	}
	if (!loss) return nr_fail(err, NR_EUSAGE, "cannot plan", NULL, "no output was given");
	struct nr_error local = { 0 };
	struct nr_arena *arena = nr_arena_make();
	struct nr_plan *plan = arena ? nr_arena_alloc(arena, sizeof *plan) : NULL;
	if (!plan) {
		nr_arena_free(arena);
		return nr_fail(err, NR_EMEMORY, "cannot plan", NULL, "out of memory");
	}
	*plan = (struct nr_plan){ .net = n, .arena = arena, .loss = loss, .flags = flags, .threads = omp_get_max_threads() };
	struct planner p = { .net = n, .arena = arena, .flags = flags, .loss = loss, .host = host, .err = &local };
	const int rc = make(plan, &p);
	if (rc) {
		if (err) *err = local;
		nr_plan_free(plan);
		return rc;
	}
	*out = plan;
	return 0;
}

void nr_plan_free(struct nr_plan *p)
{
	if (!p) return;
	if (!p->guest) nr_slab_free(p->memory, (size_t)p->bytes);
	nr_arena_free(p->arena);
}
