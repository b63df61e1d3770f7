/* src/train/{weights,features}.c: pre-trained encoders in every naming, without a head; class token and mean of the patches. */
#include "models/guess.h"
#include "unit/datasets.h"
#include "unit/rig.h"

#include "analysis/probe_features.h"
#include "base/mem.h"
#include "fetch/checksum.h"
#include "infer/features.h"
#include "infer/weights.h"
#include "models/mae.h"
#include "norma/safetensors.h"

#define TINY "vit:image=8,channels=1,patch=2,dim=8,depth=2,heads=2"

/* A masked autoencoder with first values, its decoder included, in the names of `naming`. */
static void write_mae(const char *path, const char *naming)
{
	struct nr_error err = { 0 };
	struct nr_arena *arena = nr_arena_make();
	struct nr_store *store;
	struct nr_model_spec model;
	struct nr_mae o;
	struct nr_mae_graph g;
	nr_option_defaults(nr_mae_options, &o);
	assert_int_equal(nr_option_parse(nr_mae_options, &o, "decoder_dim=8,decoder_depth=1,decoder_heads=2", arena, &err), 0);
	assert_int_equal(nr_model_parse(&model, TINY, arena, &err), 0);
	assert_int_equal(nr_mae_encoder(&model, &o, arena, &err), 0);
	assert_int_equal(nr_store_make(&store, 3, &err), 0);
	struct nr_net *n = nr_net_make(store);
	assert_int_equal(nr_norms_use(n, "", &model.norms, &err), 0);
	assert_non_null(nr_mae_record(n, &model, &o, 2, &g));
	assert_int_equal(nr_store_seal(store, &err), 0);
	assert_int_equal(nr_model_export(store, model.of, path, naming, NULL, 0, &err), 0);
	nr_net_free(n);
	nr_store_free(store);
	nr_arena_free(arena);
}

static struct nr_weights *opened(const char *path, const char *model)
{
	struct nr_weights *w;
	struct nr_error err = { 0 };
	char line[1200];
	const struct nr_weights_how how = { .model = model };
	if (nr_weights_open(&w, path, &how, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	return w;
}

static void a_masked_autoencoder_opens_as_its_encoder(void **state)
{
	(void)state;
	static const char *const namings[] = { "norma", "mae", "huggingface", "huggingface5", "huggingface5_mae" };
	for (size_t i = 0; i < sizeof namings / sizeof *namings; i++) {
		const char *path = made_path("mae-%s.safetensors", namings[i]);
		write_mae(path, namings[i]);
		struct nr_weights *w = opened(path, TINY ",pos=sincos");
		struct nr_runner r;
		struct nr_error err = { 0 };
		assert_null(nr_store_find(w->store, "head.weight"));
		assert_null(nr_store_find(w->store, "decoder.mask_token"));
		assert_non_null(nr_store_find(w->store, "blocks.1.mlp.fc2.weight"));
		assert_int_equal(nr_runner_open(&r, w, 2, &err), NR_EVALUE);            /* there is nothing to predict with */
		assert_non_null(strstr(err.detail, "no head"));
		assert_int_equal(nr_runner_open_encoder(&r, w, 2, NULL), 0);
		assert_null(r.logits);
		nr_runner_close(&r);
		nr_weights_close(w);
	}
}

static void a_masked_autoencoder_looks_like_its_encoder(void **state)
{
	(void)state;
	static const char *const namings[] = { "norma", "timm", "huggingface" };
	for (size_t i = 0; i < sizeof namings / sizeof *namings; i++) {
		const char *path = made_path("guess-%s.safetensors", namings[i]);
		struct nr_arena *arena = nr_arena_make();
		struct nr_st_file *f;
		struct nr_guess g;
		write_mae(path, namings[i]);
		assert_int_equal(nr_st_open(&f, path, NULL), 0);
		assert_int_equal(nr_model_guess(&g, f, arena), 1);
		assert_string_equal(g.naming, namings[i]);
		assert_string_equal(g.model, "vit:image=8,channels=1,patch=2,dim=8,depth=2,heads=1");
		nr_st_close(f);
		nr_arena_free(arena);
	}
}

/* Two classes of grey pictures, read as a folder. */
static struct nr_source *pictures(void)
{
	struct nr_source *s;
	char text[300], line[1200];
	struct nr_error err = { 0 };
	for (int i = 0; i < 12; i++) made_picture(made_path("set/train/%c/%d.png", i % 2 ? 'b' : 'a', i), i, 8, 8, 1);
	for (int i = 0; i < 6; i++) made_picture(made_path("set/val/%c/%d.png", i % 2 ? 'b' : 'a', i), 40 + i, 8, 8, 1);
	snprintf(text, sizeof text, "folder:path=%s/set", made_dir);
	if (nr_source_open(&s, text, NULL, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	return s;
}

static struct nr_evaluation over(const struct nr_source *s, enum nr_split split)
{
	struct nr_augment a;
	nr_option_defaults(nr_augment_options, &a);
	a.normalize = false;
	return (struct nr_evaluation){ .source = s, .split = split, .augment = nr_augment_for_eval(&a, 8, 1, 1), .workers = 1 };
}

static void features_are_the_class_token_and_the_mean_of_the_patches(void **state)
{
	(void)state;
	char path[512];
	strcpy(path, made_path("features.safetensors"));        /* its text takes turns with others */
	write_mae(path, "norma");
	struct nr_source *s = pictures();
	struct nr_evaluation e = over(s, NR_TRAIN);
	/* the same weights, pooled one way and the other */
	struct nr_weights *cls = opened(path, TINY ",pos=sincos"), *mean = opened(path, TINY ",pos=sincos,pool=avg,fc_norm=0");
	struct nr_token_features a, b;
	struct nr_feature_set pooled;
	for (int64_t batch = 5; batch <= 12; batch += 7) {
		assert_int_equal(nr_token_features_of(&a, cls, &e, batch, 3, NULL), 0);
		assert_int_equal(nr_token_features_of(&b, mean, &e, batch, 3, NULL), 0);
		assert_int_equal(a.count, 12);
		assert_int_equal(a.width, 8);
		assert_near(a.x[NR_FEATURE_CLS], b.x[NR_FEATURE_CLS], 12 * 8, 1e-6);
		assert_near(a.x[NR_FEATURE_MEAN], b.x[NR_FEATURE_MEAN], 12 * 8, 1e-6);
		assert_int_equal(nr_features_of(&pooled, mean, &e, batch, NULL), 0);
		assert_same_bits(pooled.x, b.x[NR_FEATURE_MEAN], 12 * 8);
		for (int i = 0; i < 12; i++) assert_int_equal(a.label[i], nr_source_label(s, NR_TRAIN, i));
		nr_token_features_release(&a);
		nr_token_features_release(&b);
		nr_features_release(&pooled);
	}
	struct nr_weights *none;
	struct nr_error err = { 0 };
	const struct nr_weights_how how = { .model = TINY ",pos=sincos,class_token=0,pool=avg,fc_norm=0", .resample = "timm",
		.partial = true };
	assert_int_equal(nr_weights_open(&none, path, &how, NULL), 0);
	assert_int_equal(nr_token_features_of(&a, none, &e, 4, 1u << NR_FEATURE_CLS, &err), NR_EUSAGE);
	assert_non_null(strstr(err.hint, "--features mean"));
	nr_weights_close(none);
	nr_weights_close(cls);
	nr_weights_close(mean);
	nr_source_close(s);
}

static void kept_features_are_found_again_and_only_for_the_same_case(void **state)
{
	(void)state;
	char path[512], dir[512];
	strcpy(path, made_path("kept.safetensors"));
	strcpy(dir, made_path("cache"));
	write_mae(path, "norma");
	struct nr_source *s = pictures();
	struct nr_evaluation e = over(s, NR_TRAIN);
	struct nr_weights *w = opened(path, TINY ",pos=sincos");
	struct nr_feature_cache cache = { .dir = dir, .checkpoint = "one", .resample = "timm" };
	struct nr_feature_origin from;
	struct nr_token_features first, f;
	assert_int_equal(nr_probe_features(&first, &from, &cache, w, &e, "folder", 4, 3, NULL), 0);
	assert_false(from.cached);
	assert_int_equal(nr_probe_features(&f, &from, &cache, w, &e, "folder", 4, 1u << NR_FEATURE_MEAN, NULL), 0);
	assert_true(from.cached && !f.x[NR_FEATURE_CLS]);
	assert_same_bits(f.x[NR_FEATURE_MEAN], first.x[NR_FEATURE_MEAN], 12 * 8);
	assert_memory_equal(f.label, first.label, 12 * sizeof *f.label);
	nr_token_features_release(&f);
	made_poke(from.path, 3, 0xff);                     /* a damaged file is made again */
	assert_int_equal(nr_probe_features(&f, &from, &cache, w, &e, "folder", 4, 3, NULL), 0);
	assert_false(from.cached);
	nr_token_features_release(&f);
	e.count = 5;                                                                    /* fewer samples are another case, as is */
	assert_int_equal(nr_probe_features(&f, &from, &cache, w, &e, "folder", 4, 3, NULL), 0);
	assert_false(from.cached);
	nr_token_features_release(&f);
	strcpy(cache.checkpoint, "two");                                                /* another checkpoint */
	assert_int_equal(nr_probe_features(&f, &from, &cache, w, &e, "folder", 4, 3, NULL), 0);
	assert_false(from.cached);
	nr_token_features_release(&f);
	cache.dir = NULL;
	assert_int_equal(nr_probe_features(&f, &from, &cache, w, &e, "folder", 4, 3, NULL), 0);
	assert_true(!from.cached && !*from.path);
	nr_token_features_release(&f);
	nr_token_features_release(&first);
	nr_weights_close(w);
	nr_source_close(s);
}

/* What is kept of several files follows from all of them, not from their index alone. */
static void the_checksum_of_several_files_is_of_all(void **state)
{
	(void)state;
	static const char index[] = "{\"weight_map\": {\"a\": \"m-1.safetensors\", \"b\": \"m-2.safetensors\"}}";
	struct nr_error err = { 0 };
	float x[] = { 1, 2 };
	const struct nr_st_tensor a = { "a", NR_ST_F32, 1, { 1 }, x, 4 }, b = { "b", NR_ST_F32, 1, { 1 }, x + 1, 4 };
	char sum[3][65];
	made_text(made_path("model.safetensors.index.json"), index);
	assert_int_equal(nr_st_write(made_path("m-1.safetensors"), &a, 1, NULL, 0, &err), 0);
	for (int i = 0; i < 2; i++, x[1]++) {
		assert_int_equal(nr_st_write(made_path("m-2.safetensors"), &b, 1, NULL, 0, &err), 0);
		assert_int_equal(nr_weights_checksum(made_path("."), sum[i], &err), 0);
	}
	assert_string_not_equal(sum[0], sum[1]);
	assert_int_equal(nr_weights_checksum(made_path("m-1.safetensors"), sum[0], &err), 0);
	assert_int_equal(nr_checksum_file(made_path("m-1.safetensors"), NR_SHA256, sum[2], &err), 0);
	assert_string_equal(sum[0], sum[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_masked_autoencoder_opens_as_its_encoder, made_setup, made_teardown),
		cmocka_unit_test_setup_teardown(a_masked_autoencoder_looks_like_its_encoder, made_setup, made_teardown),
		cmocka_unit_test_setup_teardown(features_are_the_class_token_and_the_mean_of_the_patches, made_setup, made_teardown),
		cmocka_unit_test_setup_teardown(kept_features_are_found_again_and_only_for_the_same_case, made_setup, made_teardown),
		cmocka_unit_test_setup_teardown(the_checksum_of_several_files_is_of_all, made_setup, made_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
