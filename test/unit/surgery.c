/* src/train/{surgery,samples}.c: sep(ln,ln) of an ln model changes nothing; calibration brings outputs nearer; a failure leaves all. */
#include <math.h>

#include "unit/datasets.h"
#include "unit/rig.h"

#include "base/mem.h"
#include "surgery/surgery.h"

#define TINY "bert:vocab=20,dim=16,depth=2,heads=2,hidden=24,positions=12,length=8,dropout=0.5,attention_dropout=0.5"
enum { COUNT = 64, BATCH = 16, LENGTH = 8, WIDTH = 16 };

/* A model whose norms have gains and biases of their own, so that there is something to carry over. */
static struct nr_weights *made(const char *name)
{
	struct nr_error err = { 0 };
	struct nr_arena *arena = nr_arena_make();
	struct nr_store *store;
	struct nr_model_spec model;
	struct nr_weights *w;
	char line[1200];
	const char *path = made_path("%s", name);
	value_seed = 1;
	assert_int_equal(nr_model_parse(&model, TINY, arena, &err), 0);
	assert_int_equal(nr_store_make(&store, 5, &err), 0);
	struct nr_net *n = nr_net_make(store);
	assert_int_equal(nr_norms_use(n, "", &model.norms, &err), 0);
	const struct nr_inputs in = nr_model_inputs(n, &model, 1);
	assert_non_null(nr_model_tokens(n, &model, &in));
	assert_int_equal(nr_store_seal(store, &err), 0);
	for (int64_t i = 0; i < nr_store_count(store); i++) {
		const struct nr_entry *e = nr_store_at(store, i);
		for (int64_t k = 0; e->nd == 1 && k < e->count; k++) nr_value(e)[k] += value();
	}
	assert_int_equal(nr_model_export(store, model.of, path, "norma", NULL, 0, &err), 0);
	nr_net_free(n);
	nr_store_free(store);
	nr_arena_free(arena);
	const struct nr_weights_how how = { .model = TINY };
	if (nr_weights_open(&w, path, &how, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	return w;
}

static struct nr_samples texts(void)
{
	struct nr_samples s = { .count = COUNT, .batch = BATCH, .length = LENGTH, .ids = malloc(COUNT * LENGTH * sizeof(int32_t)),
		.valid = malloc(COUNT * sizeof(int32_t)) };
	for (int i = 0; i < COUNT; i++) {
		s.valid[i] = 3 + i % (LENGTH - 2);
		for (int k = 0; k < LENGTH; k++) s.ids[i * LENGTH + k] = k < s.valid[i] ? 1 + (i * 7 + k * (k + i)) % 19 : 0;
	}
	return s;
}

/* Last tokens of the first batch. */
static void outputs(const struct nr_weights *w, const struct nr_samples *s, real *out)
{
	struct nr_error err = { 0 };
	struct nr_net *n = nr_net_make(w->store);
	struct nr_plan *plan;
	assert_int_equal(nr_norms_use(n, w->norms, &w->model.norms, &err), 0);
	const struct nr_inputs in = nr_model_inputs(n, &w->model, BATCH);
	nr_t *tokens = nr_model_tokens(n, &w->model, &in);
	assert_int_equal(nr_plan_make(&plan, n, tokens, 0, &err), 0);
	memcpy(nr_plan_data(plan, in.ids), s->ids, BATCH * LENGTH * sizeof *s->ids);
	memcpy(nr_plan_data(plan, in.valid), s->valid, BATCH * sizeof *s->valid);
	nr_plan_run(plan, &(struct nr_exec){ .train = 0 }, NR_RUN_FORWARD);
	memcpy(out, nr_plan_data(plan, tokens), BATCH * LENGTH * WIDTH * sizeof *out);
	nr_plan_free(plan);
	nr_net_free(n);
}

/* Over the tokens that are no padding. */
static double distance(const struct nr_samples *s, const real *a, const real *b)
{
	double sum = 0;
	for (int i = 0; i < BATCH; i++)
		for (int k = 0; k < s->valid[i] * WIDTH; k++) {
			const double d = (double)a[i * LENGTH * WIDTH + k] - (double)b[i * LENGTH * WIDTH + k];
			sum += d * d;
		}
	return sqrt(sum);
}

static real before[BATCH * LENGTH * WIDTH], after[BATCH * LENGTH * WIDTH];

static void both_sides_as_before_change_nothing(void **state)
{
	(void)state;
	struct nr_weights *w = made("same.safetensors");
	struct nr_samples s = texts();
	struct nr_surgery cut = { 0 };
	struct nr_error err = { 0 };
	outputs(w, &s, before);
	assert_int_equal(nr_surgery(w, "sep(ln,ln) embed=ln", NULL, &cut, &err), 0);
	assert_int_equal(cut.sites, 4);
	assert_int_equal(cut.fresh, 0);
	assert_true(isnan(cut.change[0]) && isnan(cut.site[0].fitted));
	assert_string_equal(w->norms, "sep(ln,ln) embed=ln");
	outputs(w, &s, after);
	assert_memory_equal(before, after, sizeof before);
	cut = (struct nr_surgery){ 0 };
	assert_int_equal(nr_surgery(w, "ln", &s, &cut, &err), 0);               /* and back, calibrated: there is nothing to fit */
	outputs(w, &s, after);
	assert_true(distance(&s, before, after) < 1e-3);
	assert_true(cut.change[0] < 1e-4 && cut.change[1] < 1e-4 && cut.cosine[1] > 0.9999);
	nr_samples_release(&s);
	nr_weights_close(w);
}

static void calibration_brings_the_outputs_nearer(void **state)
{
	(void)state;
	static const char *const plans[] = { "sep(bn,ln) embed=ln", "bn", "rms" };
	for (int i = 0; i < 3; i++) {
		struct nr_samples s = texts();
		struct nr_surgery cut = { 0 };
		struct nr_error err = { 0 };
		struct nr_weights *w = made("near.safetensors");
		outputs(w, &s, before);
		assert_int_equal(nr_surgery(w, plans[i], NULL, &cut, &err), 0);
		outputs(w, &s, after);
		const double copied = distance(&s, before, after);
		nr_weights_close(w);
		w = made("near.safetensors");
		cut = (struct nr_surgery){ 0 };
		assert_int_equal(nr_surgery(w, plans[i], &s, &cut, &err), 0);
		outputs(w, &s, after);
		const double fitted = distance(&s, before, after);
		if (fitted >= 0.9 * copied) fail_msg("%s: %g fitted, %g copied", plans[i], fitted, copied);
		for (int64_t k = 0; k < cut.sites; k++) assert_true(cut.site[k].fitted <= cut.site[k].copied + 1e-9);
		assert_true(cut.cosine[0] > 0.5 && cut.change[1] < 1);
		nr_samples_release(&s);
		nr_weights_close(w);
	}
}

static int stop(void *context, int64_t done, int64_t of)
{
	(void)context, (void)of;
	return done == 2;
}

static void a_failure_leaves_the_weights_as_they_were(void **state)
{
	(void)state;
	struct nr_weights *w = made("kept.safetensors");
	struct nr_samples s = texts();
	struct nr_error err = { 0 };
	struct nr_surgery cut = { 0 };
	outputs(w, &s, before);
	assert_int_not_equal(nr_surgery(w, "sep(bn,", &s, &cut, &err), 0);
	err = (struct nr_error){ 0 };
	cut = (struct nr_surgery){ .watch = stop };
	assert_int_not_equal(nr_surgery(w, "bn", &s, &cut, &err), 0);
	assert_string_equal(err.what, "interrupted");
	assert_string_equal(w->norms, "");
	outputs(w, &s, after);
	assert_memory_equal(before, after, sizeof before);
	nr_samples_release(&s);
	nr_weights_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_as_before_change_nothing),
		cmocka_unit_test(calibration_brings_the_outputs_nearer),
		cmocka_unit_test(a_failure_leaves_the_weights_as_they_were),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
