/* src/graph/plan_reverse.c: reversible sums, by the model that has them: the same values and gradients, memory that depth does not
 * change. */
#include "unit/rig.h"

#include "base/mem.h"
#include "models/text_heads.h"

enum { B = 2, T = 24 };

struct text { struct rig r; struct nr_arena *arena; struct nr_model_spec model; struct nr_inputs in; nr_t *label, *loss; };

static struct text built(const char *options, const char *norms, unsigned flags)
{
	struct text x = { .r = rig(), .arena = nr_arena_make() };
	char text[1200];
	snprintf(text, sizeof text, "reformer:vocab=19,dim=16,heads=2,hidden=24,positions=24,length=24,chunk=4,buckets=4,rounds=2,%s",
		options);
	if (nr_model_parse(&x.model, text, x.arena, &x.r.err) || nr_norms_use(x.r.n, norms, &x.model.norms, &x.r.err))
		fail_msg("%s: %s", norms, nr_error_text(&x.r.err, text, sizeof text));
	x.in = nr_model_inputs(x.r.n, &x.model, B);
	x.label = nr_input(x.r.n, "label", NR_I32, NR_SHAPE(B));
	x.loss = nr_cross_entropy(x.r.n, nr_model_logits(x.r.n, &x.model, &x.in), x.label, 0, -1);
	if (nr_norms_done(x.r.n, &x.r.err) || nr_plan_make(&x.r.plan, x.r.n, x.loss, NR_PLAN_TRAIN | flags, &x.r.err))
		fail_msg("%s: %s", norms, nr_error_text(&x.r.err, text, sizeof text));
	int32_t *ids = nr_plan_data(x.r.plan, x.in.ids), *valid = nr_plan_data(x.r.plan, x.in.valid);
	for (int i = 0; i < B * T; i++) ids[i] = 1 + i * i % 17;
	valid[0] = T, valid[1] = 13;
	memset(nr_plan_data(x.r.plan, x.label), 0, B * sizeof(int32_t));
	return x;
}

static real trained(struct text *x)
{
	nr_plan_run(x->r.plan, &(struct nr_exec){ .train = 1, .seed = 3, .step = 5 }, NR_RUN_FORWARD | NR_RUN_BACKWARD);
	return *(real *)nr_plan_data(x->r.plan, x->loss);
}

static void discard(struct text *x)
{
	release(&x->r);
	nr_arena_free(x->arena);
}

/* The loss has the same bits; gradients differ by the rounding of what is rebuilt. */
static void gradients_are_those_of_kept_activations(void **state)
{
	static const char *const norms[] = { "ln", "bn", "dtn", "sep(bn,ln)", "rms", "placement=sandwich", NULL };
	static const char *const options[] = { "depth=3,layers=lsh", "depth=4,layers=local/lsh,dropout=0.2,attention_dropout=0.2",
		"depth=2,layers=local,ff_chunk=7", "depth=1,layers=lsh,pool=mean", NULL };
	(void)state;
	for (int i = 0; options[i]; i++)
		for (int j = 0; norms[j]; j++) {
			char reversible[256];
			if (strstr(options[i], "ff_chunk") && strcmp(norms[j], "ln") && strcmp(norms[j], "rms")) continue;
			snprintf(reversible, sizeof reversible, "%s,reversible=1", options[i]);
			struct text kept = built(options[i], norms[j], 0), made = built(reversible, norms[j], NR_PLAN_POISON);
			assert_true(trained(&kept) == trained(&made));
			int64_t n, m;
			const real *g = nr_store_grads(kept.r.store, &n), *h = nr_store_grads(made.r.store, &m);
			double largest = 0, worst = 0;
			assert_int_equal(n, m);
			for (int64_t k = 0; k < n; k++) {
				assert_true(isfinite(h[k]));
				largest = fmax(largest, fabs((double)g[k]));
				worst = fmax(worst, fabs((double)g[k] - (double)h[k]));
			}
			if (worst > 1e-4 * largest) fail_msg("%s, %s: %g of %g", options[i], norms[j], worst, largest);
			discard(&kept);
			discard(&made);
		}
}

/* A deeper model keeps its buckets in addition, and nothing else. */
static void memory_does_not_grow_with_depth(void **state)
{
	(void)state;
	int64_t bytes[2], kept[2];
	for (int i = 0; i < 2; i++) {
		char text[64];
		snprintf(text, sizeof text, "depth=%d,layers=lsh,reversible=1", i ? 16 : 4);
		struct text x = built(text, "ln", 0);
		bytes[i] = nr_plan_stats(x.r.plan).arena_bytes;
		discard(&x);
		snprintf(text, sizeof text, "depth=%d,layers=lsh", i ? 16 : 4);
		x = built(text, "ln", 0);
		kept[i] = nr_plan_stats(x.r.plan).arena_bytes;
		discard(&x);
	}
	const int64_t buckets = B * 2 * 2 * T * (int64_t)sizeof(int32_t);       /* samples, heads, rounds, tokens */
	assert_true(bytes[1] - bytes[0] <= 12 * buckets);
	assert_true(kept[1] > 3 * kept[0]);
}

/* Rebuilding of cheap outputs beside it leaves everything as it was. */
static void cheap_outputs_are_rebuilt_beside_it(void **state)
{
	(void)state;
	struct text a = built("depth=3,layers=lsh,reversible=1", "ln", 0);
	struct text b = built("depth=3,layers=lsh,reversible=1", "ln", NR_PLAN_REBUILD);
	assert_true(trained(&a) == trained(&b));
	int64_t n;
	const real *g = nr_store_grads(a.r.store, &n), *h = nr_store_grads(b.r.store, &n);
	assert_memory_equal(g, h, (size_t)n * sizeof *g);
	discard(&a);
	discard(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gradients_are_those_of_kept_activations),
		cmocka_unit_test(memory_does_not_grow_with_depth),
		cmocka_unit_test(cheap_outputs_are_rebuilt_beside_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
