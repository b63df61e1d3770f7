/* src/surgery/adapt.c: what adapts, and what does not; statistics between running ones and the batch's; starting anew. */
#include "unit/built.h"
#include "unit/datasets.h"

#include <math.h>

#include "base/mem.h"
#include "surgery/adapt.h"

enum { BATCH = 12, CLASSES = 4, SIDE = 8 };
#define VIT "vit:image=8,channels=1,patch=4,dim=12,depth=2,heads=2,classes=4,qkv_bias=0"

/* A model with values of its own; running statistics that no batch has. */
static struct nr_weights *opened(const char *norms)
{
	struct built b = build_whole(VIT, norms, 3);
	value_seed = 3;
	for (int64_t i = 0; i < nr_store_count(b.store); i++) {
		const struct nr_entry *e = nr_store_at(b.store, i);
		for (int64_t k = 0; k < e->count; k++) {
			const real v = value() / 4;
			nr_value(e)[k] += e->buffer ? v * v + (real)0.1 : v;
		}
	}
	const char *path = made_path("weights.safetensors");
	write_built(&b, path, "norma", NULL, 0);
	discard(&b);
	return open_built(path, VIT, norms);
}

static const float *pictures(int which)
{
	static float image[BATCH * SIDE * SIDE];
	value_seed = (uint32_t)(10 + which);
	for (int i = 0; i < BATCH * SIDE * SIDE; i++) image[i] = (float)value() + 0.5f * (float)which;
	return image;
}

static void predict(const struct nr_weights *w, struct nr_adapt how, int which, real *out)
{
	struct nr_error err = { 0 };
	struct nr_adapter *a;
	char line[512];
	if (nr_adapter_open(&a, w, BATCH, &how, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	const real *logits = nr_adapter_run(a, pictures(which), BATCH, &err);
	assert_non_null(logits);
	memcpy(out, logits, BATCH * CLASSES * sizeof *out);
	nr_adapter_close(a);
}

static double apart(const real *a, const real *b)
{
	double most = 0;
	for (int i = 0; i < BATCH * CLASSES; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
	return most;
}

static real *values_of(const struct nr_store *s, int64_t *n)
{
	const real *from = nr_store_values(s, n);
	real *copy = malloc((size_t)*n * sizeof *copy);
	memcpy(copy, from, (size_t)*n * sizeof *copy);
	return copy;
}

/* Which entries differ from the copy. */
static bool changed(const struct nr_entry *e, const real *base, const real *copy)
{
	return memcmp(nr_value(e), copy + (nr_value(e) - base), (size_t)e->count * sizeof(real)) != 0;
}

static bool gain_or_bias_of_a_norm(const char *name)
{
	const bool norm = (strstr(name, ".in.") || strstr(name, "final.")) && !strstr(name, "fc") && !strstr(name, "qkv");
	return norm && (strstr(name, ".weight") || strstr(name, ".bias"));
}

static void steps_change_gains_and_biases_of_norms_alone_and_are_undone(void **state)
{
	(void)state;
	static const char *const norms[] = { "ln", "bn", "gn", "sep(bn,ln)", "blocks[0:1].*=dtn blocks[1:].*=ln final=ln" };
	for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
		for (int kind = NR_ADAPT_TENT; kind <= NR_ADAPT_SAR; kind++) {
			struct nr_error err = { 0 };
			struct nr_weights *w = opened(norms[i]);
			struct nr_adapter *a;
			struct nr_adapt how = nr_adapt_defaults((enum nr_adapt_kind)kind);
			how.margin = 1, how.floor = 0;
			assert_int_equal(nr_adapter_open(&a, w, BATCH, &how, &err), 0);
			int64_t n, some = 0;
			real *before = values_of(w->store, &n);
			const real *base = nr_store_values(w->store, &n);
			for (int step = 0; step < 3; step++) assert_non_null(nr_adapter_run(a, pictures(step), BATCH, &err));
			for (int64_t k = 0; k < nr_store_count(w->store); k++) {
				const struct nr_entry *e = nr_store_at(w->store, k);
				const bool moved = changed(e, base, before);
				if (moved && (e->buffer || !gain_or_bias_of_a_norm(e->name))) fail_msg("%s: %s moved", norms[i], e->name);
				some += moved ? e->count : 0;
			}
			assert_true(some > 0 && some <= nr_adapter_free(a));
			nr_adapter_reset(a);
			assert_memory_equal(base, before, (size_t)n * sizeof *base);
			assert_non_null(nr_adapter_run(a, pictures(0), BATCH, &err));
			nr_adapter_close(a);
			assert_memory_equal(base, before, (size_t)n * sizeof *base);
			for (int64_t k = 0; k < nr_store_count(w->store); k++) assert_int_equal(nr_store_at(w->store, k)->frozen, 0);
			free(before);
			nr_weights_close(w);
		}
}

static void whole_norms_have_more_to_adapt(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	struct nr_weights *w = opened("blocks[0:1].*=dtn blocks[1:].*=ln final=ln");
	struct nr_adapt how = nr_adapt_defaults(NR_ADAPT_TENT);
	struct nr_adapter *a;
	assert_int_equal(nr_adapter_open(&a, w, BATCH, &how, &err), 0);
	const int64_t affine = nr_adapter_free(a);
	assert_int_equal(affine, 5 * 2 * 12);
	nr_adapter_close(a);
	how.whole = true;
	assert_int_equal(nr_adapter_open(&a, w, BATCH, &how, &err), 0);
	assert_int_equal(nr_adapter_free(a), affine + 2 * (2 * 3 + 2 + 2));     /* P, and lambda of mean and variance, for each head */
	nr_adapter_close(a);
	nr_weights_close(w);
}

static void a_prior_lies_between_running_and_batch_statistics(void **state)
{
	(void)state;
	real running[BATCH * CLASSES], batch[BATCH * CLASSES], mixed[BATCH * CLASSES];
	struct nr_weights *w = opened("bn");
	struct nr_adapt how = nr_adapt_defaults(NR_ADAPT_STATS);
	predict(w, (struct nr_adapt){ 0 }, 1, running);
	how.prior = 0;
	predict(w, how, 1, batch);
	assert_true(apart(running, batch) > 0.01);
	how.prior = 1e9;
	predict(w, how, 1, mixed);
	assert_true(apart(running, mixed) < 1e-4);
	how.prior = 1e-9;
	predict(w, how, 1, mixed);
	assert_true(apart(batch, mixed) < 1e-4);
	how.prior = BATCH;
	predict(w, how, 1, mixed);
	assert_true(apart(running, mixed) > 0.01 && apart(batch, mixed) > 0.01);
	nr_weights_close(w);
}

/* One batch norm alone, by hand: Eq. 3 with n samples, not tokens. */
static void the_prior_counts_samples(void **state)
{
	(void)state;
	enum { B = 3, T = 2, C = 2 };
	struct rig r = rig();
	nr_t *x = reals(&r, 3, B, T, C, 1), *y = nr_norm_make(r.n, "norm", "bn", x);
	assert_int_equal(nr_plan_make(&r.plan, r.n, y, 0, &r.err), 0);
	real *mean = nr_value(nr_store_find(r.store, "norm.running_mean")), *var = nr_value(nr_store_find(r.store, "norm.running_var"));
	for (int c = 0; c < C; c++) mean[c] = (real)(c + 1), var[c] = 2;
	memcpy(nr_plan_data(r.plan, x), data(&r, 0), B * T * C * sizeof(real));
	nr_plan_run(r.plan, &(struct nr_exec){ .train = 1, .prior = 5 }, NR_RUN_FORWARD);
	const real *got = nr_plan_data(r.plan, y);
	for (int c = 0; c < C; c++) {
		double m = 0, v = 0;
		for (int i = 0; i < B * T; i++) m += (double)data(&r, 0)[i * C + c] / (B * T);
		for (int i = 0; i < B * T; i++) v += pow((double)data(&r, 0)[i * C + c] - m, 2) / (B * T);
		m = (5 * (c + 1) + B * m) / (5 + B);
		v = (5 * 2 + B * v) / (5 + B);
		for (int i = 0; i < B * T; i++)
			assert_true(fabs((double)got[i * C + c] - ((double)data(&r, 0)[i * C + c] - m) / sqrt(v + 1e-5)) < 1e-4);
	}
	nr_plan_free(r.plan);
	nr_net_free(r.n);
	nr_store_free(r.store);
	free(r.data[0]);
}

static void norms_without_running_statistics_ignore_the_batch(void **state)
{
	(void)state;
	static const char *const norms[] = { "ln", "gn", "blocks[0:1].*=dtn blocks[1:].*=ln final=ln" };
	for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
		real plain[BATCH * CLASSES], stats[BATCH * CLASSES];
		struct nr_weights *w = opened(norms[i]);
		predict(w, (struct nr_adapt){ 0 }, 1, plain);
		predict(w, nr_adapt_defaults(NR_ADAPT_STATS), 1, stats);
		assert_memory_equal(plain, stats, sizeof plain);
		nr_weights_close(w);
	}
}

static double entropy(const real *logits)
{
	double sum = 0;
	for (int i = 0; i < BATCH; i++) {
		double z = 0;
		for (int k = 0; k < CLASSES; k++) z += exp((double)logits[i * CLASSES + k]);
		for (int k = 0; k < CLASSES; k++) {
			const double p = exp((double)logits[i * CLASSES + k]) / z;
			sum -= p * log(p) / BATCH;
		}
	}
	return sum;
}

static void steps_lower_the_entropy(void **state)
{
	(void)state;
	for (int kind = NR_ADAPT_TENT; kind <= NR_ADAPT_SAR; kind++) {
		struct nr_error err = { 0 };
		struct nr_weights *w = opened("ln");
		struct nr_adapt how = nr_adapt_defaults((enum nr_adapt_kind)kind);
		struct nr_adapter *a;
		how.lr = 0.01, how.margin = 1, how.floor = 0;
		assert_int_equal(nr_adapter_open(&a, w, BATCH, &how, &err), 0);
		const double first = entropy(nr_adapter_run(a, pictures(0), BATCH, &err));
		double last = 0;
		for (int i = 0; i < 20; i++) last = entropy(nr_adapter_run(a, pictures(0), BATCH, &err));
		assert_true(last < 0.95 * first);
		nr_adapter_close(a);
		nr_weights_close(w);
	}
}

static void unsure_pictures_are_left_out_and_a_collapse_starts_anew(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	struct nr_weights *w = opened("ln");
	struct nr_adapt how = nr_adapt_defaults(NR_ADAPT_SAR);
	struct nr_adapter *a;
	int64_t n;
	real *before = values_of(w->store, &n);
	how.margin = 1e-6;                                              /* none is as sure */
	assert_int_equal(nr_adapter_open(&a, w, BATCH, &how, &err), 0);
	assert_non_null(nr_adapter_run(a, pictures(0), BATCH, &err));
	assert_memory_equal(nr_store_values(w->store, &n), before, (size_t)n * sizeof *before);
	nr_adapter_close(a);
	how.margin = 1, how.floor = 100;                                /* any entropy is taken for a collapse */
	assert_int_equal(nr_adapter_open(&a, w, BATCH, &how, &err), 0);
	for (int i = 0; i < 3; i++) assert_non_null(nr_adapter_run(a, pictures(i), BATCH, &err));
	assert_int_equal(nr_adapter_restarts(a), 3);
	assert_memory_equal(nr_store_values(w->store, &n), before, (size_t)n * sizeof *before);
	nr_adapter_close(a);
	free(before);
	nr_weights_close(w);
}

static bool moves(const struct nr_weights *w, double leave, const char *entry)
{
	struct nr_error err = { 0 };
	struct nr_adapter *a;
	struct nr_adapt how = nr_adapt_defaults(NR_ADAPT_SAR);
	const struct nr_entry *e = nr_store_find(w->store, entry);
	how.margin = 1, how.floor = 0, how.leave = leave;
	assert_non_null(e);
	assert_int_equal(nr_adapter_open(&a, w, BATCH, &how, &err), 0);
	const real before = nr_value(e)[0];
	assert_non_null(nr_adapter_run(a, pictures(1), BATCH, &err));
	const bool moved = nr_value(e)[0] != before;
	nr_adapter_close(a);
	return moved;
}

/* Of two blocks a quarter is one, rounded. */
static void sar_leaves_the_last_blocks_and_what_follows_alone(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	struct nr_adapter *a;
	struct nr_adapt how = nr_adapt_defaults(NR_ADAPT_SAR);
	struct nr_weights *w = opened("ln");
	static const char *const of[] = { "blocks.0.attn.in.weight", "blocks.1.mlp.in.bias", "final.weight" };
	for (int i = 0; i < 3; i++) {
		assert_true(moves(w, 0, of[i]));
		assert_int_equal(moves(w, how.leave, of[i]), i == 0);
	}
	how.leave = 1;
	assert_int_equal(nr_adapter_open(&a, w, BATCH, &how, &err), NR_EVALUE);
	assert_non_null(strstr(err.detail, "or sar leaves them alone"));
	how.kind = NR_ADAPT_TENT;                               /* which knows nothing of it */
	assert_int_equal(nr_adapter_open(&a, w, BATCH, &how, NULL), 0);
	assert_int_equal(nr_adapter_free(a), 5 * 2 * 12);
	nr_adapter_close(a);
	nr_weights_close(w);
}

static void norms_without_parameters_cannot_adapt(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	struct nr_weights *w = opened("ln:affine=0");
	struct nr_adapter *a;
	const struct nr_adapt how = nr_adapt_defaults(NR_ADAPT_TENT);
	assert_int_equal(nr_adapter_open(&a, w, BATCH, &how, &err), NR_EVALUE);
	assert_non_null(strstr(err.detail, "no gain"));
	nr_weights_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_change_gains_and_biases_of_norms_alone_and_are_undone),
		cmocka_unit_test(whole_norms_have_more_to_adapt),
		cmocka_unit_test(a_prior_lies_between_running_and_batch_statistics),
		cmocka_unit_test(the_prior_counts_samples),
		cmocka_unit_test(norms_without_running_statistics_ignore_the_batch),
		cmocka_unit_test(steps_lower_the_entropy),
		cmocka_unit_test(unsure_pictures_are_left_out_and_a_collapse_starts_anew),
		cmocka_unit_test(sar_leaves_the_last_blocks_and_what_follows_alone),
		cmocka_unit_test(norms_without_parameters_cannot_adapt),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
