/* src/graph/together.c: a batch in parts side by side, whose norms share statistics, is the whole batch but for rounding. */
#include "unit/rig.h"

#include "base/mem.h"
#include "graph/together.h"
#include "models/text_heads.h"

enum { WHOLE = 4, PARTS = 2, T = 128 };
static const int32_t lengths[WHOLE] = { T, 3, 1, 70 };     /* the parts have different counts */

struct text { struct rig r; struct nr_arena *arena; struct nr_model_spec model; struct nr_inputs in; nr_t *label, *loss; };

static struct text built(const char *norms, int64_t batch)
{
	struct text x = { .r = rig(), .arena = nr_arena_make() };
	char text[1200];
	if (nr_model_parse(&x.model, "bert:vocab=19,dim=16,depth=2,heads=2,hidden=24,positions=128", x.arena, &x.r.err) ||
	    nr_norms_use(x.r.n, norms, &x.model.norms, &x.r.err))
		fail_msg("%s: %s", norms, nr_error_text(&x.r.err, text, sizeof text));
	x.in = nr_model_inputs(x.r.n, &x.model, batch);
	x.label = nr_input(x.r.n, "label", NR_I32, NR_SHAPE(batch));
	x.loss = nr_scale(x.r.n, nr_cross_entropy(x.r.n, nr_model_logits(x.r.n, &x.model, &x.in), x.label, 0, -1), (double)batch / WHOLE);
	if (nr_norms_done(x.r.n, &x.r.err) || nr_plan_make(&x.r.plan, x.r.n, x.loss, NR_PLAN_TRAIN, &x.r.err))
		fail_msg("%s: %s", norms, nr_error_text(&x.r.err, text, sizeof text));
	return x;
}

static void discard(struct text *x)
{
	release(&x->r);
	nr_arena_free(x->arena);
}

static void fill(const struct text *x, const struct nr_plan *plan, int64_t from, int64_t batch)
{
	int32_t *ids = nr_plan_data(plan, x->in.ids), *valid = nr_plan_data(plan, x->in.valid), *label = nr_plan_data(plan, x->label);
	for (int64_t i = 0; i < batch * T; i++) ids[i] = (int32_t)(1 + (i + from * T) * (i + from * T) % 17);
	for (int64_t i = 0; i < batch; i++) valid[i] = lengths[from + i], label[i] = (int32_t)((from + i) % 2);
	if (x->in.types) memset(nr_plan_data(plan, x->in.types), 0, (size_t)(batch * T) * sizeof(int32_t));
}

/* The largest difference of a part of the slabs, once the whole's and once a share of the sum of both parts', and the largest value. */
static double apart(int64_t n, const real *whole, const real *a, const real *b, double share, double *largest)
{
	double worst = 0;
	for (int64_t i = 0; i < n; i++) {
		*largest = fmax(*largest, fabs((double)whole[i]));
		worst = fmax(worst, fabs((double)whole[i] - share * ((double)a[i] + (double)b[i])));
	}
	return worst;
}

/* Gradients, loss and running statistics of two parts against those of the batch: differences over the largest values. */
static void compare(const char *norms, double *grads, double *buffers)
{
	struct text whole = built(norms, WHOLE), part = built(norms, WHOLE / PARTS);
	const struct nr_exec ex = { .train = 1, .seed = 3 };
	struct nr_exec both[PARTS] = { ex, ex };
	int64_t params, all;
	fill(&whole, whole.r.plan, 0, WHOLE);
	nr_plan_run(whole.r.plan, &ex, NR_RUN_FORWARD | NR_RUN_BACKWARD | NR_RUN_COMMIT);
	const real *g = nr_store_grads(part.r.store, &params), *v = nr_store_values(part.r.store, &all);
	real *other = calloc((size_t)all, sizeof *other);       /* as a store's: not every gradient is written */
	memcpy(other + params, v + params, (size_t)(all - params) * sizeof *other);
	const struct nr_moved moved[] = { { g, params, other }, { v + params, all - params, other + params }, { NULL } };
	struct nr_plan *twin, *plan[PARTS] = { part.r.plan };
	assert_int_equal(nr_plan_twin(&twin, part.r.plan, moved, NULL, &part.r.err), 0);
	plan[1] = twin;
	const int64_t most = nr_plan_share_most(twin);
	int32_t at[PARTS];
	const struct nr_together together = { .parts = PARTS, .all = PARTS, .plan = plan, .ex = both, .at = at,
		.mine = calloc((size_t)(PARTS * most + 1), sizeof(double)), .others = calloc((size_t)(PARTS * most + 1), sizeof(double)) };
	for (int i = 0; i < PARTS; i++) fill(&part, plan[i], i * (WHOLE / PARTS), WHOLE / PARTS);
	assert_int_equal(nr_plan_run_together(&together, NR_RUN_FORWARD | NR_RUN_BACKWARD | NR_RUN_COMMIT, &part.r.err), 0);
	double largest = 1e-30, most_buffer = 1e-30;
	*grads = apart(params, nr_store_grads(whole.r.store, &params), g, other, 1, &largest) / largest;
	const real *kept = nr_store_values(whole.r.store, &all) + params;
	*buffers = apart(all - params, kept, v + params, other + params, 0.5, &most_buffer) / most_buffer;
	free(together.mine);
	free(together.others);
	nr_plan_free(twin);
	free(other);
	discard(&part);
	discard(&whole);
}

static void parts_with_sync_are_the_batch(void **state)
{
	static const char *const norms[] = { "batch:sync=1", "sep(batch:sync=1,ln)", "repbn:sync=1", "prepbn:sync=1,r0=0.5,total=9",
		"switch:sync=1", "switch:sync=1,ln_scope=sample", "power:sync=1", "power:sync=1,variant=official,warmup=4",
		"power:sync=1,variant=dtn", "power:sync=1,variant=pnv", "ln", NULL };
	(void)state;
	for (int i = 0; norms[i]; i++) {
		double grads, buffers;
		compare(norms[i], &grads, &buffers);
		if (grads > 2e-4 || buffers > 1e-5) fail_msg("%s: gradients %g, buffers %g", norms[i], grads, buffers);
	}
}

static void parts_without_sync_see_themselves(void **state)
{
	double grads, buffers;
	(void)state;
	compare("batch", &grads, &buffers);
	assert_true(grads > 1e-3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_with_sync_are_the_batch),
		cmocka_unit_test(parts_without_sync_see_themselves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
