/* src/models/{guess,guess_fail}.c, src/infer/weights.c: public files that do not say what they are, and what is said then. */
#include <stdlib.h>

#include "models/guess.h"
#include "models/names.h"
#include "norma/infer.h"
#include "norma/safetensors.h"
#include "unit/built.h"

static char dir[] = "/tmp/norma-guess-XXXXXX";

static const char *in_dir(const char *name)
{
	static char path[2][80];
	static int turn;
	turn = !turn;
	snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
	return path[turn];
}

static int make_dir(void **state)
{
	(void)state;
	return !mkdtemp(dir);
}
static int remove_dir(void **state)
{
	(void)state;
	unlink(in_dir("model.safetensors"));
	unlink(in_dir("config.json"));
	return rmdir(dir);
}

/* Weights of a model under these names, perhaps with a tensor more; config: text of a config.json, or NULL. */
static void put(const char *text, const char *naming, const char *more, const char *config)
{
	struct built b = build(text, "", 1);
	struct nr_error err = { 0 };
	struct nr_st_file *f;
	unlink(in_dir("config.json"));
	assert_int_equal(nr_store_seal(b.store, &err), 0);
	assert_int_equal(nr_model_export(b.store, b.model.of, in_dir("model.safetensors"), naming, NULL, 0, &err), 0);
	if (more) {
		assert_int_equal(nr_st_open(&f, in_dir("model.safetensors"), &err), 0);
		const int64_t n = nr_st_count(f);
		struct nr_st_tensor *all = nr_arena_alloc(b.arena, (size_t)(n + 1) * sizeof *all);
		for (int64_t i = 0; i < n; i++) all[i] = *nr_st_get(f, i);
		all[n] = all[0];
		all[n].name = more;
		assert_int_equal(nr_st_write(in_dir("more.safetensors"), all, n + 1, NULL, 0, &err), 0);
		nr_st_close(f);
		assert_int_equal(rename(in_dir("more.safetensors"), in_dir("model.safetensors")), 0);
	}
	if (config) {
		FILE *file = fopen(in_dir("config.json"), "w");
		assert_non_null(file);
		fputs(config, file);
		fclose(file);
	}
	discard(&b);
}

/* The same without values: a hole of the size that the weights would have, of which only names and shapes are looked at. */
static void put_hollow(const char *text, const char *naming)
{
	struct built b = build(text, "", 1);
	const struct nr_naming *names = nr_naming_find(b.model.of, naming, NULL);
	char *header = nr_arena_alloc(b.arena, 1 << 16), order;
	size_t length = 1;
	int64_t at = 0;
	strcpy(header, "{");
	for (int64_t i = 0; i < nr_store_count(b.store); i++) {
		const struct nr_entry *e = nr_store_at(b.store, i);
		const char *name = nr_naming_text(names, e->name, &order, b.arena);
		length += (size_t)sprintf(header + length, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", i ? "," : "", name);
		for (int d = 0; d < e->nd; d++) length += (size_t)sprintf(header + length, "%s%lld", d ? "," : "", (long long)e->d[d]);
		const int64_t end = at + 4 * e->count;
		length += (size_t)sprintf(header + length, "],\"data_offsets\":[%lld,%lld]}", (long long)at, (long long)end);
		at = end;
		assert_true(length < (1 << 16) - 512);
	}
	header[length++] = '}';
	FILE *f = fopen(in_dir("model.safetensors"), "w");
	assert_non_null(f);
	const uint64_t n = length;
	assert_int_equal(fwrite(&n, 8, 1, f) + fwrite(header, length, 1, f), 2);
	assert_int_equal(fflush(f) || ftruncate(fileno(f), (off_t)(8 + length) + (off_t)at), 0);
	fclose(f);
	unlink(in_dir("config.json"));
	discard(&b);
}

/* It does not open, and the message has these words. */
static void refused(const char *one, const char *two)
{
	struct nr_weights *w;
	struct nr_error err = { 0 };
	char line[4096];
	assert_int_equal(nr_weights_open(&w, dir, NULL, &err), NR_EUSAGE);
	nr_error_text(&err, line, sizeof line);
	if (!strstr(line, one) || !strstr(line, two)) fail_msg("'%s' or '%s' is missing: %s", one, two, line);
}

static void opens_as(const char *model, const char *want)
{
	struct nr_weights *w;
	struct nr_error err = { 0 };
	char line[4096];
	if (nr_weights_open(&w, dir, &(struct nr_weights_how){ .model = model }, &err))
		fail_msg("%s", nr_error_text(&err, line, sizeof line));
	assert_string_equal(w->model.text, want);
	nr_weights_close(w);
}

static void several_architectures_that_fit_are_listed(void **state)
{
	(void)state;
	put_hollow("vit_base_patch32_clip_224", "timm");         /* the activation is not in the file */
	refused("vit_base_patch32_clip_224, vit_base_patch32_clip_quickgelu_224", "choose one with --model");
}

static void the_architecture_that_a_config_names_decides(void **state)
{
	(void)state;
	put("test_vit:classes=5,heads=1", "timm", NULL, "{\"architecture\": \"test_vit\"}");       /* heads are not in the file */
	opens_as(NULL, "test_vit:classes=5");
}

static void tensors_that_were_not_understood_are_named(void **state)
{
	(void)state;
	put("test_vit:classes=5", "timm", "blocks.0.attn.strange.weight", NULL);
	refused("tensors that were not understood: 'blocks.0.attn.strange.weight'", "test_vit");
}

static void an_unknown_architecture_is_not_taken_for_a_known_one(void **state)
{
	(void)state;
	put("test_vit:classes=5", "timm", NULL, "{\"architecture\": \"vit_of_tomorrow\"}");
	refused("its config.json names 'vit_of_tomorrow', which is not known", "--model test_vit:classes=5");
}

static void the_number_of_classes_comes_from_the_file(void **state)
{
	(void)state;
	put("test_vit:classes=37", "timm", NULL, NULL);
	opens_as(NULL, "test_vit:classes=37");
	opens_as("test_vit", "test_vit:classes=37");
	put("test_vit:classes=37", "timm", NULL, "{\"architecture\": \"test_vit\", \"num_classes\": 37}");
	opens_as(NULL, "test_vit:classes=37");
}

#define NAMES(more) "{\"architecture\": \"test_vit\"" more "}"

static void arguments_beside_an_architecture_change_it(void **state)
{
	(void)state;
	put("test_vit:classes=5,depth=2,act=relu", "timm", NULL, NAMES(", \"model_args\": {\"depth\": 2, \"act_layer\": \"relu\"}"));
	opens_as(NULL, "test_vit:depth=2,act=relu,classes=5");
	put("test_vit:classes=5", "timm", NULL, NAMES(", \"model_args\": {\"norm_layer\": \"rmsnorm\"}"));
	refused("its config.json sets 'norm_layer', which is not understood", "test_vit");
	put("test_vit:classes=5", "timm", NULL, NAMES(", \"global_pool\": \"max\""));
	refused("its config.json pools tokens by 'max'", "test_vit");
	put("test_vit:classes=5", "timm", NULL, NAMES(", \"model_args\": {\"img_size\": [64, 32]}"));
	refused("its config.json is for pictures of 64 x 32", "test_vit");
}

static void tensors_of_another_model_than_the_config_names_are_refused(void **state)
{
	(void)state;
	put("test_vit:classes=5,depth=2", "timm", NULL, NAMES(""));
	refused("names 'test_vit', which has another depth than the 2 of its tensors", "depth=2");
	put("test_vit:classes=5,patch_bias=0", "timm", NULL, NAMES(""));
	refused("which has another patch_bias than the 0 of its tensors", "test_vit");
}

#define HF(more) "{\"model_type\": \"vit\", \"num_attention_heads\": 2, \"hidden_act\": \"gelu\"" more "}"

static void a_config_of_hugging_face_must_fit_the_tensors(void **state)
{
	(void)state;
	const char *vit = "vit:image=32,patch=16,dim=32,depth=2,heads=2,classes=5";
	put(vit, "huggingface", NULL, HF(", \"hidden_size\": 32, \"num_hidden_layers\": 2"));
	opens_as(NULL, "vit:image=32,dim=32,depth=2,heads=2,classes=5");
	put(vit, "huggingface", NULL, HF(", \"hidden_size\": 768"));
	refused("its config.json has hidden_size 768, its tensors have 32", "--model");
	put(vit, "huggingface", NULL, "{\"model_type\": \"swin\", \"num_attention_heads\": 2}");
	refused("its config.json is that of another kind of model, 'swin'", "--model");
	put(vit, "huggingface", NULL, "{\"model_type\": \"vit\", \"num_attention_heads\": 2, \"hidden_act\": \"mish\"}");
	refused("its config.json wants the activation 'mish', which is not known", "--model");
	put(vit, "huggingface", NULL, "{\"model_type\": \"vit\",");
	refused("the config.json beside it cannot be read", "--model");
	put(vit, "huggingface_base", NULL, HF(""));             /* ViTModel's names */
	opens_as(NULL, "vit:image=32,dim=32,depth=2,heads=2,classes=5");
}

static void activation_and_eps_of_hierarchical_models_come_from_the_config(void **state)
{
	struct nr_weights *w;
	struct nr_error err = { 0 };
	(void)state;
	put("swin_nano:pad_first=1,shift_both=1", "huggingface", NULL, "{\"model_type\": \"swin\", \"embed_dim\": 32, \"depths\": [2, 2], "
		"\"hidden_size\": 64, \"image_size\": 32, \"hidden_act\": \"relu\", \"layer_norm_eps\": 0.001}");
	assert_int_equal(nr_weights_open(&w, dir, NULL, &err), 0);
	assert_string_equal(w->model.text, "swin_nano:pad_first=1,shift_both=1,act=relu");
	assert_string_equal(w->norms, "layer eps=0.001 patch.out=layer:eps=1e-5 merge.in=layer:eps=1e-5");
	nr_weights_close(w);
	put("pvt_nano", "huggingface", NULL, "{\"model_type\": \"pvt\", \"num_attention_heads\": [4, 4, 4], \"layer_norm_eps\": 0.001, "
		"\"hidden_act\": \"silu\"}");
	assert_int_equal(nr_weights_open(&w, dir, NULL, &err), 0);
	assert_non_null(strstr(w->model.text, "act=silu"));
	assert_string_equal(w->norms, "layer eps=0.001 patch.out=layer:eps=0.001 attn.reduced=layer:eps=0.001");
	nr_weights_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_architectures_that_fit_are_listed),
		cmocka_unit_test(the_architecture_that_a_config_names_decides),
		cmocka_unit_test(tensors_that_were_not_understood_are_named),
		cmocka_unit_test(an_unknown_architecture_is_not_taken_for_a_known_one),
		cmocka_unit_test(the_number_of_classes_comes_from_the_file),
		cmocka_unit_test(arguments_beside_an_architecture_change_it),
		cmocka_unit_test(tensors_of_another_model_than_the_config_names_are_refused),
		cmocka_unit_test(a_config_of_hugging_face_must_fit_the_tensors),
		cmocka_unit_test(activation_and_eps_of_hierarchical_models_come_from_the_config),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
