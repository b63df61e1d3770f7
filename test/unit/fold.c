/* src/surgery/{fold,fold_deployed}.c, src/models/levit_names.c: a ViT and LeViT give the same logits with their norms folded, LeViT under
 * each of its names, which tell the model by themselves; what cannot be folded stays as it was. */
#include <math.h>

#include "unit/built.h"
#include "unit/datasets.h"

#include "base/mem.h"
#include "norma/safetensors.h"
#include "surgery/fold.h"

#define VIT "vit:image=32,patch=8,dim=24,depth=2,heads=3,classes=5"
#define TINY "levit:image=32,dims=16-32-48,depths=1-3-2,heads=2-3-4,key=8,stride=4,classes=5"
enum { BATCH = 3, CLASSES = 5 };

/* Values of all parts away from their initial ones: fresh norms do nothing. */
static void shake(const struct nr_store *s)
{
	value_seed = 7;
	for (int64_t i = 0; i < nr_store_count(s); i++) {
		const struct nr_entry *e = nr_store_at(s, i);
		for (int64_t k = 0; k < e->count; k++) {
			const real v = value();
			nr_value(e)[k] += e->nd == 1 ? v / 2 : v / 16;
			if (strstr(e->name, "running_var")) nr_value(e)[k] = (real)0.5 + v * v;
		}
	}
}

static const char *made(const char *of, const char *name, const char *norms, const char *naming)
{
	struct built b = build_whole(of, norms, 5);
	const char *path = made_path("%s", name);
	shake(b.store);
	write_built(&b, path, naming, NULL, 0);
	discard(&b);
	return path;
}

static void logits_of(const struct nr_weights *w, real *out)
{
	struct nr_error err = { 0 };
	struct nr_runner r;
	float image[BATCH * 3 * 32 * 32];
	value_seed = 3;
	for (int64_t i = 0; i < BATCH * 3 * 32 * 32; i++) image[i] = (float)(4 * value());
	assert_int_equal(nr_runner_open(&r, w, BATCH, &err), 0);
	nr_runner_run(&r, image, NR_STATS_RUNNING);
	memcpy(out, nr_plan_data(r.plan, r.logits), BATCH * CLASSES * sizeof *out);
	nr_runner_close(&r);
}

/* As a share of the largest value. */
static double difference(const real *a, const real *b)
{
	double most = 0, size = 0;
	for (int i = 0; i < BATCH * CLASSES; i++) {
		most = fmax(most, fabs((double)a[i] - (double)b[i]));
		size = fmax(size, fabs((double)a[i]));
	}
	return most / size;
}

static void folded_norms_give_the_same_logits(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	real before[BATCH * CLASSES], after[BATCH * CLASSES], again[BATCH * CLASSES];
	struct nr_weights *w = open_built(made(TINY, "levit.safetensors", "", "norma"), TINY, NULL);
	int64_t folded = 0, size = 0;
	logits_of(w, before);
	for (int i = 0; i < BATCH * CLASSES; i++) size += fabs((double)before[i]) > 0.05;
	assert_true(size > 8);                                          /* there is something to compare */
	assert_int_equal(nr_fold_deployed(w, &folded, &err), 0);
	assert_int_equal(folded, 2 + 4 * 6 + 5 * 2 + 2);                 /* stem, blocks, downsamplings, heads */
	assert_null(nr_store_find(w->store, "stem.0.norm.weight"));
	logits_of(w, after);
	if (difference(before, after) > 1e-5) fail_msg("%g", difference(before, after));
	assert_int_equal(nr_fold_deployed(w, &folded, &err), NR_EUSAGE);    /* once is enough */
	static const char *const names[] = { "norma", "timm_folded", "official_folded" };
	for (int i = 0; i < 3; i++) {
		const char *path = made_path("folded-%d.safetensors", i);
		err = (struct nr_error){ 0 };
		assert_int_equal(nr_model_export(w->store, w->model.of, path, names[i], NULL, 0, &err), 0);
		struct nr_weights *back = open_built(path, w->model.text, "none");
		assert_string_equal(back->naming, names[i]);
		logits_of(back, again);
		assert_memory_equal(after, again, sizeof after);
		nr_weights_close(back);
	}
	nr_weights_close(w);
}

static void norms_of_the_sample_are_not_folded(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	real before[BATCH * CLASSES], after[BATCH * CLASSES];
	struct nr_weights *w = open_built(made(TINY, "layer.safetensors", "layer", "norma"), TINY, "layer");
	int64_t folded = 0;
	logits_of(w, before);
	assert_int_equal(nr_fold_deployed(w, &folded, &err), NR_EVALUE);
	assert_non_null(strstr(err.detail, "layer"));
	logits_of(w, after);
	assert_memory_equal(before, after, sizeof before);
	nr_weights_close(w);
}

static void every_naming_gives_the_same_logits(void **state)
{
	(void)state;
	static const char *const names[] = { "norma", "timm", "official", "huggingface" };
	real first[BATCH * CLASSES], other[BATCH * CLASSES];
	for (int i = 0; i < 4; i++) {
		struct nr_weights *w = open_built(made(TINY, names[i], "", names[i]), TINY, NULL);
		assert_string_equal(w->naming, names[i]);
		logits_of(w, i ? other : first);
		if (i) assert_memory_equal(first, other, sizeof first);
		nr_weights_close(w);
	}
}

/* Layer, rms and curves keep their statistics or curve and lose gain and bias; batch norms and constants leave nothing. */
static void norms_before_layers_fold(void **state)
{
	(void)state;
	static const struct { const char *norms; int64_t folded; const char *plan; } cases[] = {
		{ "ln", 5, "attn.in=layer:affine=0,eps=1e-06" }, { "rms", 5, "final=rms:affine=0" }, { "ln:bias=0,offset=1", 5,
			"mlp.in=layer:affine=0" },
		{ "rms:scale=depth", 5, "scale=depth" }, { "dyt", 5, "attn.in=dyt:affine=0" }, { "derf", 5, "attn.in=derf:affine=0" },
		{ "batch", 5, "attn.in=none" }, { "repbn", 5, "mlp.in=none" }, { "prepbn:total=3", 5, "final=none" },
		{ "taper:gate=0", 5, "final=none" },
		{ "ln residual=layerscale:init=0.5", 9, "residual=plain" }, { "ln residual=rezero", 9, "residual=plain" },
		{ "ln placement=sandwich", 5, "final=layer:affine=0" }, { "ln placement=post", 1, "blocks[1].mlp.res=layer:affine=0" },
		{ "ln mlp.inner=rms", 7, "mlp.inner=rms:affine=0" }, { "ln blocks[1].mlp.in=batch", 5, "blocks[1].mlp.in=none" },
		{ "ln placement=mix", 3, "blocks[1].mlp.in=layer" }, { "ln attn.in=seednorm", 3, "mlp.in=layer" },
		{ "ln placement=parallel", 3, "attn.in=layer" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nr_error err = { 0 };
		struct nr_folding f;
		char line[1200];
		real before[BATCH * CLASSES], after[BATCH * CLASSES];
		struct nr_weights *w = open_built(made(VIT, "vit.safetensors", cases[i].norms, "norma"), VIT, cases[i].norms);
		logits_of(w, before);
		if (nr_fold_norms(w, &f, &err)) fail_msg("%s: %s", cases[i].norms, nr_error_text(&err, line, sizeof line));
		logits_of(w, after);
		if (!(difference(before, after) < 1e-5)) fail_msg("%s: %g", cases[i].norms, difference(before, after));
		if (f.folded != cases[i].folded) fail_msg("%s: %d folded, plan %s", cases[i].norms, (int)f.folded, w->norms);
		if (!strstr(w->norms, cases[i].plan)) fail_msg("%s: plan %s", cases[i].norms, w->norms);
		assert_true(f.after < f.before);
		nr_weights_close(w);
	}
}

/* Not a value changes, and each site says why. */
static void norms_that_others_read_stay(void **state)
{
	(void)state;
	static const struct { const char *norms, *why; } cases[] = {
		{ "blocks[0].mlp.res=ln", "the residual stream reads it" }, { "sep(bn,ln)", "special tokens" },
		{ "dtn", "depends on the tokens" },
		{ "ln:affine=0", "it has no gain" }, { "attn.qk=rms", "which is not a linear layer" }, { "taper", "its gate is not 0" },
		{ "attn.out=ln", "the residual stream reads it" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nr_error err = { 0 };
		struct nr_folding f;
		real before[BATCH * CLASSES], after[BATCH * CLASSES];
		struct nr_weights *w = open_built(made(VIT, "vit.safetensors", cases[i].norms, "norma"), VIT, cases[i].norms);
		logits_of(w, before);
		assert_int_equal(nr_fold_norms(w, &f, &err), 0);
		if (f.folded || !strstr(f.site[0].why, cases[i].why)) fail_msg("%s: %d, %s", cases[i].norms, (int)f.folded, f.site[0].why);
		logits_of(w, after);
		assert_memory_equal(before, after, sizeof before);
		nr_weights_close(w);
	}
}

/* Names of Graham's code count the branches of the whole model, those of Hugging Face the branches of a stage. */
static void branches_are_counted_as_there(void **state)
{
	(void)state;
	static const struct { const char *naming, *name; } want[] = {
		{ "official", "patch_embed.2.c.weight" }, { "official", "blocks.0.m.qkv.c.weight" }, { "official", "blocks.2.kv.c.weight" },
		{ "official", "blocks.2.q.1.bn.weight" }, { "official", "blocks.3.m.0.c.weight" }, { "official",
			"blocks.6.m.attention_biases" },
		{ "official", "blocks.10.proj.1.c.weight" }, { "official", "blocks.15.m.2.bn.running_var" }, { "official",
			"head_dist.l.bias" },
		{ "huggingface", "levit.encoder.stages.0.layers.2.keys_values.linear.weight" },
		{ "huggingface", "levit.encoder.stages.0.layers.3.module.linear_up.batch_norm.bias" },
		{ "huggingface", "levit.encoder.stages.1.layers.4.module.queries_keys_values.linear.weight" },
		{ "huggingface", "levit.encoder.stages.1.layers.6.attention_biases" }, { "huggingface",
			"classifier_distill.linear.weight" },
		{ "timm", "stages.1.downsample.attn_downsample.q.ln.linear.weight" },
	};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		struct nr_error err = { 0 };
		struct nr_st_file *f;
		const char *path = made(TINY, "counted.safetensors", "", want[i].naming);
		assert_int_equal(nr_st_open(&f, path, &err), 0);
		if (!nr_st_find(f, want[i].name)) fail_msg("no '%s' under the names %s", want[i].name, want[i].naming);
		nr_st_close(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folded_norms_give_the_same_logits), cmocka_unit_test(norms_of_the_sample_are_not_folded),
		cmocka_unit_test(norms_before_layers_fold), cmocka_unit_test(norms_that_others_read_stay),
		cmocka_unit_test(every_naming_gives_the_same_logits), cmocka_unit_test(branches_are_counted_as_there),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
