/* One normalization on a small input. See norm_trial.h. */
#include "laws/norm_trial.h"

#include <math.h>

#include "norma/nn.h"

void nr_grid_of(int64_t tokens, int32_t *h, int32_t *w)
{
	int64_t high = (int64_t)sqrt((double)tokens);
	while (high > 1 && tokens % high) high--;
	*h = (int32_t)(high > 0 ? high : 1);
	*w = (int32_t)(tokens / *h);
}

static struct nr_tokens tokens_of(const struct nr_trial_shape *s, nr_t *valid)
{
	struct nr_tokens t = { .special = s->special, .heads = s->heads, .valid = valid };
	nr_grid_of(s->tokens, &t.h, &t.w);
	for (t.heads = s->heads ? s->heads : 3; s->channels % t.heads;) t.heads--;
	return t;
}

static int record(struct nr_trial *t, const char *text, const struct nr_trial_shape *s, struct nr_error *err)
{
	const int64_t T = s->special + s->tokens;
	const struct nr_norm_defaults defaults = { .norm = "layer", .placement = "pre", .eps = s->eps };
	if (nr_norms_use(t->net, NULL, &defaults, err)) return err->code;
	t->x = nr_input(t->net, "x", NR_REAL, NR_SHAPE(s->batch, T, s->channels));
	t->dy = nr_input(t->net, "dy", NR_REAL, NR_SHAPE(s->batch, T, s->channels));
	if (s->lengths) t->valid = nr_input(t->net, "valid", NR_I32, NR_SHAPE(s->batch));
	if (t->x) t->x->flags |= NR_GRAD;
	t->y = nr_norm_make(t->net, "", text, nr_with_tokens(t->net, t->x, tokens_of(s, t->valid)));
	t->y = nr_tap(t->net, "y", t->y);
	return nr_plan_make(&t->plan, t->net, nr_weighted_sum(t->net, t->y, t->dy), NR_PLAN_TRAIN, err);
}

int nr_trial_open(struct nr_trial *t, const char *text, const struct nr_trial_shape *s, struct nr_error *err)
{
	*t = (struct nr_trial){ .step = 0 };
	int code = nr_store_make(&t->store, 1, err);
	if (!code && !(t->net = nr_net_make(t->store))) code = nr_fail(err, NR_EMEMORY, "cannot try", text, "out of memory");
	if (!code) code = record(t, text, s, err);
	if (code) nr_trial_close(t);
	for (int64_t b = 0; !code && t->valid && b < s->batch; b++)
		nr_trial_lengths(t)[b] = (int32_t)(s->special + s->tokens);
	return code;
}

void nr_trial_close(struct nr_trial *t)
{
	nr_plan_free(t->plan);
	nr_net_free(t->net);
	nr_store_free(t->store);
	*t = (struct nr_trial){ .step = 0 };
}

real *nr_trial_x(const struct nr_trial *t) { return nr_plan_data(t->plan, t->x); }
real *nr_trial_dy(const struct nr_trial *t) { return nr_plan_data(t->plan, t->dy); }
int32_t *nr_trial_lengths(const struct nr_trial *t) { return nr_plan_data(t->plan, t->valid); }
const real *nr_trial_y(const struct nr_trial *t) { return nr_plan_data(t->plan, t->y); }
const real *nr_trial_dx(const struct nr_trial *t) { return nr_plan_grad(t->plan, t->x); }

static void run(struct nr_trial *t, unsigned phases)
{
	const struct nr_exec ex = { .train = 1, .step = ++t->step, .seed = 1 };
	nr_plan_run(t->plan, &ex, phases);
}

void nr_trial_run(struct nr_trial *t) { run(t, NR_RUN_FORWARD | NR_RUN_BACKWARD); }
void nr_trial_forward(struct nr_trial *t) { run(t, NR_RUN_FORWARD); }
