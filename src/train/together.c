/* A step whose shards run side by side, because norms with sync=1 take their statistics from all of them: every shard of this rank has a
 * twin of the plan with gradients and running statistics of its own. */
#include <math.h>

#include "train/trainer.h"

bool nr_trainer_shares(const struct nr_trainer *t) { return t->shards.count > 1 && nr_plan_share_most(t->shape[0].plan) > 0; }

static int refuse(const struct nr_trainer *t, struct nr_error *err)
{
	if (!t->run.teacher) return NR_OK;
	nr_fail(err, NR_EUSAGE, "cannot share statistics (sync=1) in", t->task->command,
		"its second network would see other statistics");
	return nr_hint(err, "leave sync=1 out, or train on one rank without --shards");
}

static int twins_of(struct nr_trainer *t, int64_t number, struct nr_error *err)
{
	struct nr_trainer_shape *s = &t->shape[number];
	struct nr_shards *h = &t->shards;
	s->twin = nr_arena_alloc(t->arena, (size_t)h->local * sizeof *s->twin);
	if (!s->twin) return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	s->twin[0] = s->plan;
	for (int64_t i = 1; i < h->local; i++) {
		struct nr_moved moved[NR_SHARD_PIECES + 1] = { { NULL } };
		real *to = h->beside[i];
		for (int64_t j = 0; j < h->pieces; to += h->piece[j++].n) moved[j] = (struct nr_moved){ h->piece[j].p, h->piece[j].n, to };
		if (nr_plan_twin(&s->twin[i], s->plan, moved, number ? t->shape[0].twin[i] : NULL, err)) return err->code;
	}
	return NR_OK;
}

int nr_trainer_twins(struct nr_trainer *t, struct nr_error *err)
{
	const size_t local = (size_t)t->shards.local;
	struct nr_together *g = &t->together;
	int64_t most = 0;
	if (!t->shards.together) return NR_OK;
	if (refuse(t, err)) return err->code;
	for (int64_t i = 0; i < t->shapes; i++) {
		if (twins_of(t, i, err)) return err->code;
		const int64_t n = nr_plan_share_most(t->shape[i].plan);
		if (n > most) most = n;
	}
	*g = (struct nr_together){ .comm = t->c.comm, .parts = t->shards.local, .all = t->shards.count,
		.plan = nr_arena_alloc(t->arena, local * sizeof *g->plan), .ex = nr_arena_alloc(t->arena, local * sizeof *g->ex),
		.mine = nr_arena_alloc(t->arena, local * (size_t)most * sizeof *g->mine),
		.others = nr_arena_alloc(t->arena, (size_t)(t->shards.count * most) * sizeof *g->others),
		.at = nr_arena_alloc(t->arena, local * sizeof *g->at) };
	t->held = nr_arena_alloc(t->arena, local * sizeof *t->held);
	if (g->plan && g->ex && g->mine && g->others && g->at && t->held) return NR_OK;
	return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
}

/* The batch of the local shard i, in the memory of its twin. */
static int bind(struct nr_trainer *t, int64_t i, int64_t a, struct nr_error *err)
{
	if (t->loader && nr_loader_next(t->loader, &t->held[i], err)) return err->code;
	const int64_t number = (t->state.step * t->shards.count + t->shards.first + i) * t->c.accumulate + a;
	struct nr_trainer_shape *s = nr_trainer_choose(t, number);
	struct nr_exec *ex = &t->together.ex[i];
	t->run.plan = t->together.plan[i] = s->twin[i];
	t->task->bind(&t->run, t->held[i], number);
	*ex = (struct nr_exec){ .train = 1, .accumulate = a > 0, .step = number, .total = t->total, .seed = (uint64_t)t->c.seed };
	if (a == 0 && i == 0) nr_trainer_look(t, s, ex);
	return NR_OK;
}

/* Which shape shard i has, for the task. */
static struct nr_trainer_shape *turn_to(struct nr_trainer *t, int64_t i)
{
	int64_t q = 0;
	while (t->shape[q].twin[i] != t->together.plan[i]) q++;
	t->run.shape = q;
	t->run.net = t->shape[q].net;
	t->run.plan = t->together.plan[i];
	return &t->shape[q];
}

/* Other inputs for the next pass over the same batches. */
static void again(struct nr_trainer *t, int64_t pass)
{
	for (int64_t i = 0; i < t->shards.local; i++) {
		struct nr_exec *ex = &t->together.ex[i];
		turn_to(t, i);
		if (pass) t->task->again(&t->run);
		ex->step = pass ? ex->step + 1 : ex->step * t->run.passes;
		ex->accumulate |= pass > 0;
	}
}

/* Loss of a pass over shard i, after the last one its measures. The batch stays until then. */
static int measure(struct nr_trainer *t, int64_t i, bool last, struct nr_error *err)
{
	double *said = t->shards.said + i * NR_SHARD_SAYS;
	const struct nr_trainer_shape *s = turn_to(t, i);
	const double loss = (double)*(const real *)nr_plan_data(t->run.plan, s->loss);
	said[NR_SAID_LOSS] += loss;
	if (!isfinite(loss)) nr_trainer_bad_loss(t, &t->together.ex[i], "loss", err);
	else if (last && t->task->measure) t->task->measure(&t->run, t->held[i], said + NR_SAID_MEASURES);
	return err->code;
}

int nr_trainer_together(struct nr_trainer *t, struct nr_error *err)
{
	struct nr_shards *s = &t->shards;
	int code = NR_OK, bad = NR_OK;  /* bad: the other ranks go on to the end of the step, and so does this one */
	nr_shards_begin_beside(s);
	for (int64_t a = 0; a < t->c.accumulate && !code; a++) {
		for (int64_t i = 0; i < s->local && !code; i++) code = bind(t, i, a, err);
		for (int64_t pass = 0; pass < t->run.passes && !code; pass++) {
			again(t, pass);
			code = nr_plan_run_together(&t->together, NR_RUN_FORWARD | NR_RUN_BACKWARD, err);
			for (int64_t i = 0; i < s->local && !code && !bad; i++) bad = measure(t, i, pass + 1 == t->run.passes, err);
			if (!code && !bad) code = nr_plan_run_together(&t->together, NR_RUN_COMMIT, err);
		}
		for (int64_t i = 0; t->loader && i < s->local; i++) {
			nr_loader_give_back(t->loader, t->held[i]);
			t->held[i] = NULL;
		}
	}
	nr_shards_end_beside(s);
	return code ? code : bad;
}
