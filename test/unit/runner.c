/* src/infer/{runner,smiles_runner}.c, src/optim/params.c: what a program gets in one call. */
#include "unit/built.h"
#include "unit/datasets.h"

#include <math.h>

#include "base/mem.h"
#include "base/real.h"
#include "norma/infer.h"
#include "norma/optim.h"
#include "norma/safetensors.h"

/* A model with first values in a file, and what our files say beside them. */
static struct nr_weights *opened(const char *text, const struct nr_st_meta *meta, int64_t n_meta)
{
	struct built b = build_whole(text, "", 3);
	for (int64_t i = 0; i < nr_store_count(b.store); i++) {
		const struct nr_entry *e = nr_store_at(b.store, i);
		for (int64_t k = 0; k < e->count; k++) nr_value(e)[k] += value() / 4;
	}
	const char *path = made_path("weights.safetensors");
	write_built(&b, path, "norma", meta, n_meta);
	discard(&b);
	return open_built(path, text, NULL);
}

static const struct nr_st_meta of_training[] = {
	{ "norma.classes", "[\"cat\",\"dog\"]" }, { "norma.normalize", "1" },
	{ "norma.mean", "0.4 0.4 0.4" }, { "norma.std", "0.2 0.2 0.2" },
	{ "norma.config", "filter: bilinear\ncrop_share: 0.8\n" },
};
#define VIT "vit:image=8,channels=1,patch=4,dim=8,depth=1,heads=2,classes=3"

static void pictures_become_the_input_of_the_training_at_any_place(void **state)
{
	(void)state;
	struct nr_weights *w = opened(VIT, of_training, 5);
	struct nr_runner one = { 0 }, three = { 0 };
	struct nr_augment_scratch *scratch;
	struct nr_picture p[3] = { { 0 } };
	struct nr_augment a;
	float image[3][64];
	char path[512];
	real want[3][3];
	nr_option_defaults(nr_augment_options, &a);
	a.filter = NR_FILTER_BILINEAR;
	a.normalize = true;
	for (int c = 0; c < 3; c++) a.mean[c] = 0.4, a.std[c] = 0.2;
	a = nr_augment_for_eval(&a, 8, 1, 0.8);
	assert_int_equal(nr_augment_scratch_make(&scratch, NULL), 0);
	assert_int_equal(nr_runner_open(&one, w, 1, NULL), 0);
	assert_int_equal(nr_runner_open(&three, w, 3, NULL), 0);
	for (int i = 0; i < 3; i++) {
		strcpy(path, made_path("%d.png", i));
		made_picture(path, i, 20 + i, 30, 3);
		assert_int_equal(nr_picture_read(&p[i], path, 1, NULL), 0);
		assert_int_equal(nr_augment_run(&a, NULL, &p[i], 0, 0, 0, image[i], scratch, NULL), 0);
		nr_runner_run(&one, image[i], NR_STATS_RUNNING);
		memcpy(want[i], nr_plan_data(one.plan, one.logits), sizeof want[i]);
		struct nr_answer best[5], same[1];
		assert_int_equal(nr_runner_classify(&one, path, best, 5, NULL), 0);     /* from the file */
		assert_memory_equal(nr_plan_data(one.plan, one.logits), want[i], sizeof want[i]);
		assert_int_equal(nr_runner_picture(&three, 2 - i, &p[i], NULL), 0);
		assert_true(best[0].probability >= best[1].probability && best[1].probability >= best[2].probability);
		assert_true(fabs(best[0].probability + best[1].probability + best[2].probability - 1) < 1e-12);
		assert_true(want[i][best[0].number] >= want[i][best[1].number]);
		for (int k = 0; k < 3; k++) {
			if (best[k].number < 2) assert_string_equal(best[k].name, best[k].number ? "dog" : "cat");
			else assert_null(best[k].name);
		}
		assert_int_equal(best[3].number, -1);
		assert_int_equal(nr_runner_best(&one, 0, same, 1, NULL), 0);
		assert_int_equal(same[0].number, best[0].number);
	}
	nr_runner_run(&three, NULL, NR_STATS_RUNNING);
	const real *y = nr_plan_data(three.plan, three.logits);
	for (int i = 0; i < 3; i++) assert_memory_equal(y + 3 * (2 - i), want[i], sizeof want[i]);
	assert_int_equal(nr_runner_picture(&three, 3, &p[0], NULL), NR_EVALUE);
	assert_int_equal(nr_runner_picture(&three, -1, &p[0], NULL), NR_EVALUE);
	assert_int_equal(nr_runner_file(&three, 0, "/nothing/here.png", NULL), NR_EIO);
	for (int i = 0; i < 3; i++) nr_picture_release(&p[i]);
	nr_augment_scratch_free(scratch);
	nr_runner_close(&one);
	nr_runner_close(&three);
	nr_weights_close(w);
}

static void an_output_that_is_not_finite_is_no_answer(void **state)
{
	(void)state;
	struct nr_weights *w = opened(VIT, of_training, 5);
	struct nr_runner r = { 0 };
	struct nr_error err = { 0 };
	struct nr_answer best;
	nr_value(nr_store_find(w->store, "head.bias"))[1] = (real)NAN;
	made_picture(made_path("x.png"), 1, 9, 9, 1);
	assert_int_equal(nr_runner_open(&r, w, 1, NULL), 0);
	assert_int_equal(nr_runner_classify(&r, made_path("x.png"), &best, 1, &err), NR_EDIVERGED);
	assert_non_null(strstr(err.subject, "x.png"));
	nr_runner_close(&r);
	nr_weights_close(w);
}

#define GRAPHORMER "graphormer-nano:dim=8,depth=1,heads=2,hidden=8,classes=2"

struct heard { int64_t count, last; };
static void hear(void *context, int64_t i, const struct nr_error *why)
{
	struct heard *h = context;
	assert_true(why->code != NR_OK);
	h->count++;
	h->last = i;
}

static void molecules_are_read_alone_and_bad_ones_are_told(void **state)
{
	(void)state;
	static const struct nr_st_meta meta[] = { { "norma.objective", "bce" } };
	static const char *const smiles[] = { "CCO ethanol", "C1CC", "c1ccccc1", "CCCCCCCCN" };
	struct nr_weights *w = opened(GRAPHORMER, meta, 1);
	struct heard heard = { 0 };
	struct nr_molecule_runner *r;
	struct nr_error err = { 0 };
	double out[4][2], one[2];
	const struct nr_molecule_how how = { .bad = hear, .context = &heard }, value_how = { .outputs = NR_MOLECULE_VALUE };
	assert_int_equal(nr_molecule_runner_open(&r, w, &how, NULL), 0);
	assert_int_equal(nr_molecule_runner_outputs(r), 2);
	assert_true(nr_molecule_runner_probability(r));
	assert_int_equal(nr_molecule_runner_run(r, smiles, 4, out[0], &err), 0);
	assert_int_equal(heard.count, 1);
	assert_int_equal(heard.last, 1);
	for (int i = 0; i < 4; i++) {
		if (i == 1) {
			assert_true(isnan(out[i][0]) && isnan(out[i][1]));
			continue;
		}
		assert_int_equal(nr_molecule_runner_run(r, smiles + i, 1, one, NULL), 0);
		assert_memory_equal(one, out[i], sizeof one);
		assert_true(one[0] > 0 && one[0] < 1);
	}
	nr_molecule_runner_close(r);
	/* scores instead of probabilities; a bad molecule that nobody hears of is an error */
	assert_int_equal(nr_molecule_runner_open(&r, w, &value_how, NULL), 0);
	assert_false(nr_molecule_runner_probability(r));
	assert_int_equal(nr_molecule_runner_run(r, smiles, 1, one, NULL), 0);
	assert_true(fabs(1 / (1 + exp(-one[0])) - out[0][0]) < 1e-12);
	assert_int_equal(nr_molecule_runner_run(r, smiles, 4, out[0], &err), NR_EFORMAT);
	assert_int_equal(err.code, NR_EFORMAT);
	nr_molecule_runner_close(r);
	nr_weights_close(w);
	/* weights that do not say what they mean, and those of pictures */
	w = opened(GRAPHORMER, NULL, 0);
	assert_true(nr_molecule_runner_open(&r, w, NULL, NULL) != 0);
	assert_null(r);
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_molecule_runner_open(&r, w, NULL, &err), NR_EUSAGE);
	nr_weights_close(w);
	w = opened(VIT, NULL, 0);
	assert_true(nr_molecule_runner_open(&r, w, NULL, NULL) != 0);
	nr_weights_close(w);
}

static void parameters_are_listed_and_stepped(void **state)
{
	(void)state;
	struct rig r = rig();
	struct nr_params p;
	struct nr_optim o;
	nr_param(r.n, "weight", NR_ONES, NR_SHAPE(2, 3));
	nr_buffer(r.n, "running", NR_ZEROS, NR_SHAPE(4));
	nr_param(r.n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(3));
	nr_param(r.n, "still", NR_ONES, NR_SHAPE(1));
	nr_store_find(r.store, "still")->frozen = 1;
	assert_int_equal(nr_optim_init(&o, "adamwe", &r.err), NR_EVALUE);
	assert_non_null(strstr(r.err.hint, "adamw"));
	r.err = (struct nr_error){ 0 };
	assert_int_equal(nr_optim_init(&o, "sgd", &r.err), 0);
	assert_int_equal(o.kind, nr_optim_kind("sgd"));
	o.momentum = 0, o.lr = 0.5, o.weight_decay = 0;
	assert_int_equal(nr_params_init(&p, r.store, &o, &r.err), 0);
	assert_int_equal(p.count, 3);
	assert_ptr_equal(p.segment[0].value, nr_value(nr_store_find(r.store, "weight")));
	assert_int_equal(p.segment[0].count, 6);
	assert_true(p.segment[0].decay == 1 && p.segment[1].decay == 0 && p.segment[0].lr_scale == 1);
	assert_null(p.segment[2].grad);
	for (int i = 0; i < 6; i++) p.segment[0].grad[i] = 2;
	assert_int_equal(nr_params_step(&p, &o, NULL, 1, &r.err), 0);
	assert_true(p.segment[0].value[5] == 0 && *p.segment[2].value == 1);
	assert_int_equal(nr_params_step(&p, &o, &(struct nr_rates){ .lr = 1 }, 2, &r.err), 0);
	assert_true(p.segment[0].value[5] == -2);
	o.clip = NR_CLIP_GLOBAL;
	p.segment[0].grad[0] = (real)NAN;
	assert_int_equal(nr_params_step(&p, &o, NULL, 3, &r.err), NR_EDIVERGED);
	assert_int_equal(r.err.code, NR_EDIVERGED);
	nr_params_release(&p);
	nr_net_free(r.n);
	nr_store_free(r.store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, made_setup, made_teardown)
		T(pictures_become_the_input_of_the_training_at_any_place), T(an_output_that_is_not_finite_is_no_answer),
		T(molecules_are_read_alone_and_bad_ones_are_told), cmocka_unit_test(parameters_are_listed_and_stepped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
