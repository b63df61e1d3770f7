/* src/models/{names,guess}.c: public names in and out of safetensors, what does not fit, what a file looks like. */
#include "models/names.h"
#include "models/guess.h"
#include "unit/built.h"

#include "norma/model.h"
#include "norma/safetensors.h"

#define TINY "vit:image=8,channels=3,patch=2,dim=8,depth=2,heads=2,classes=5"
#define SEVEN TINY ",classes=7"
#define LARGE TINY ",image=12"

/* Every value of its own, so that an exchange of any two shows. */
static struct built filled(const char *text, const char *norms)
{
	struct built b = build_whole(text, norms, 1);
	real v = 0;
	for (int64_t i = 0; i < nr_store_count(b.store); i++)
		for (int64_t k = 0; k < nr_store_at(b.store, i)->count; k++) nr_value(nr_store_at(b.store, i))[k] = v++;
	return b;
}

static void save(const struct built *b, const char *naming)
{
	write_built(b, temp_file(), naming, NULL, 0);
}

/* The message of an import that must fail. */
static const char *refused(const char *text, const char *norms, struct nr_import how, enum nr_err code)
{
	static char line[1200];
	struct nr_error err = { 0 };
	struct built b = build(text, norms, 2);
	const int got = nr_model_import(b.store, b.model.of, temp_file(), &how, &err);
	nr_error_text(&err, line, sizeof line);
	if (got != (int)code) fail_msg("code %d, not %d: %s", got, (int)code, line);
	discard(&b);
	return line;
}
static void says(const char *line, const char *what)
{
	if (!strstr(line, what)) fail_msg("'%s' does not say '%s'", line, what);
}

static const char *name_in(const char *naming, const char *entry, char *order, struct nr_arena *arena)
{
	struct nr_error err = { 0 };
	const struct nr_naming *n = nr_naming_find(nr_models()[0], naming, &err);
	assert_non_null(n);
	return nr_naming_text(n, entry, order, arena);
}

static void entries_have_the_names_of_public_checkpoints(void **state)
{
	(void)state;
	static const struct { const char *naming, *ours, *theirs; } cases[] = {
		{ "norma", "blocks.0.attn.in.weight", "blocks.0.attn.in.weight" },
		{ "timm", "blocks.11.attn.in.weight", "blocks.11.norm1.weight" },
		{ "timm", "blocks.0.mlp.in.bias", "blocks.0.norm2.bias" },
		{ "timm", "blocks.0.attn.qkv.weight", "blocks.0.attn.qkv.weight" },
		{ "timm", "final.weight", "norm.weight" },
		{ "timm", "fc.weight", "fc_norm.weight" },
		{ "timm", "blocks.0.mlp.fc1.weight", "blocks.0.mlp.fc1.weight" },
		{ "timm", "blocks.0.attn.scale.gamma", "blocks.0.ls1.gamma" },
		{ "timm", "blocks.3.attn.in.special.weight", "blocks.3.norm1.cls_norm_layer.weight" },
		{ "timm", "patch.out.weight", "patch_embed.norm.weight" },
		{ "huggingface", "cls_token", "vit.embeddings.cls_token" },
		{ "huggingface", "blocks.2.attn.proj.bias", "vit.encoder.layer.2.attention.output.dense.bias" },
		{ "huggingface", "blocks.2.mlp.fc2.weight", "vit.encoder.layer.2.output.dense.weight" },
		{ "huggingface", "head.bias", "classifier.bias" },
		{ "huggingface", "blocks.0.attn.qkv.bias", "vit.encoder.layer.0.attention.attention.query.bias "
			"vit.encoder.layer.0.attention.attention.key.bias vit.encoder.layer.0.attention.attention.value.bias" },
		{ "huggingface5", "blocks.0.attn.qkv.weight", "vit.layers.0.attention.q_proj.weight vit.layers.0.attention.k_proj.weight "
			"vit.layers.0.attention.v_proj.weight" },
	};
	struct nr_arena *arena = nr_arena_make();
	char order;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_string_equal(name_in(cases[i].naming, cases[i].ours, &order, arena), cases[i].theirs);
		assert_false(order);
	}
	assert_string_equal(name_in("timm", "patch.in.weight", &order, arena), "patch_embed.norm_pre.weight");
	assert_int_equal(order, '@');
	struct nr_error err = { 0 };
	char line[1200];
	assert_null(nr_naming_find(nr_models()[0], "tim", &err));
	says(nr_error_text(&err, line, sizeof line), "did you mean 'timm'");
	nr_arena_free(arena);
}

static void every_naming_gives_back_the_same_bits(void **state)
{
	(void)state;
	static const char *const namings[] = { "norma", "timm", "huggingface", "huggingface5" };
	static const char *const plans[] = { "", "patch=dual", "sep(bn,ln)", "dtn:lam=0.5 final=ln",
		"ln attn.qk=rms residual=layerscale:init=1e-4" };
	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
			struct nr_error err = { 0 };
			char line[1200];
			struct built a = filled(TINY, plans[k]), b = build(TINY, plans[k], 2);
			struct nr_import how = { .naming = NULL };
			save(&a, namings[i]);
			if (nr_model_import(b.store, b.model.of, temp_file(), &how, &err))
				fail_msg("%s, %s: %s", namings[i], plans[k], nr_error_text(&err, line, sizeof line));
			assert_string_equal(how.used, namings[i]);
			assert_int_equal(how.taken, nr_store_count(a.store));
			assert_int_equal(how.kept + how.ignored, 0);
			for (int64_t e = 0; e < how.taken; e++)
				assert_memory_equal(nr_value(nr_store_at(a.store, e)), nr_value(nr_store_at(b.store, e)),
					(size_t)nr_store_at(a.store, e)->count * sizeof(real));
			discard(&a);
			discard(&b);
		}
}

static void queries_keys_and_values_are_rows_one_after_another(void **state)
{
	(void)state;
	struct built a = filled(TINY, "");
	struct nr_st_file *f;
	struct nr_error err = { 0 };
	save(&a, "huggingface");
	assert_int_equal(nr_st_open(&f, temp_file(), &err), 0);
	const struct nr_st_tensor *v = nr_st_find(f, "vit.encoder.layer.1.attention.attention.value.weight");
	assert_non_null(v);
	assert_int_equal(v->nd, 2);
	assert_int_equal(v->shape[0], 8);
	float got[64];
	assert_int_equal(nr_st_to_f32(v, got, 64, &err), 0);
	const real *qkv = nr_value(nr_store_find(a.store, "blocks.1.attn.qkv.weight"));
	for (int i = 0; i < 64; i++) assert_true(got[i] == (float)qkv[2 * 64 + i]);
	nr_st_close(f);
	discard(&a);
}

static void the_norm_before_the_patch_embedding_goes_by_row_column_channel(void **state)
{
	(void)state;
	struct built a = filled(TINY, "patch=dual");
	struct nr_st_file *f;
	struct nr_error err = { 0 };
	save(&a, "timm");
	assert_int_equal(nr_st_open(&f, temp_file(), &err), 0);
	const struct nr_st_tensor *t = nr_st_find(f, "patch_embed.norm_pre.weight");
	assert_non_null(t);
	float got[12];
	assert_int_equal(nr_st_to_f32(t, got, 12, &err), 0);
	const real *ours = nr_value(nr_store_find(a.store, "patch.in.weight"));
	for (int c = 0; c < 3; c++)
		for (int pixel = 0; pixel < 4; pixel++) assert_true(got[pixel * 3 + c] == (float)ours[c * 4 + pixel]);
	nr_st_close(f);
	discard(&a);
}

static void two_entries_with_one_public_name_are_refused(void **state)
{
	(void)state;
	struct built a = filled(TINY, "patch.out=ln patch.pos=ln");
	struct nr_error err = { 0 };
	char line[1200];
	assert_int_equal(nr_model_export(a.store, a.model.of, temp_file(), "timm", NULL, 0, &err), NR_EVALUE);
	nr_error_text(&err, line, sizeof line);
	says(line, "'patch.out.weight' and 'patch.pos.weight' would both be called 'patch_embed.norm.weight'");
	says(line, "--to norma");
	save(&a, "norma");
	discard(&a);
}

static void what_does_not_fit_is_named(void **state)
{
	(void)state;
	struct built a = filled(TINY, "");
	save(&a, "timm");
	says(refused(TINY ",depth=3", "", (struct nr_import){ 0 }, NR_EFORMAT),
		"it has no tensor 'blocks.2.norm1.weight'");
	const char *line = refused(TINY ",depth=1", "", (struct nr_import){ 0 }, NR_EFORMAT);
	says(line, "the model has no tensor 'blocks.1.");
	says(line, "read with the names of timm");
	line = refused(SEVEN, "", (struct nr_import){ 0 }, NR_ESHAPE);
	says(line, "tensor 'head.weight' is 5x8, but the model needs 7x8");
	says(refused(TINY ",dim=12", "", (struct nr_import){ 0 }, NR_ESHAPE), "the model needs");
	line = refused(LARGE, "", (struct nr_import){ 0 }, NR_ESHAPE);
	says(line, "tensor 'pos_embed' is 1x17x8, but the model needs 1x37x8");
	says(line, "--resample");
	const struct nr_import wrong = { .resample = "tinm", .special = 1 };
	says(refused(LARGE, "", wrong, NR_ENAME), "did you mean 'timm'");
	says(refused(TINY, "", (struct nr_import){ .naming = "hugingface" }, NR_ENAME), "did you mean 'huggingface'");
	says(refused(TINY, "", (struct nr_import){ .naming = "huggingface" }, NR_EFORMAT), "it has no tensor 'vit.");
	save(&a, "huggingface");
	says(refused(TINY ",qkv_bias=0", "", (struct nr_import){ 0 }, NR_EFORMAT),
		"key.bias");
	discard(&a);
}

static void a_failed_import_changes_nothing(void **state)
{
	(void)state;
	struct built a = filled(TINY, ""), b = filled(SEVEN, "");
	struct nr_error err = { 0 };
	struct nr_import how = { .naming = NULL };
	nr_value(nr_store_find(a.store, "cls_token"))[0] = -5;
	save(&a, "timm");
	assert_int_equal(nr_model_import(b.store, b.model.of, temp_file(), &how, &err), NR_ESHAPE);
	assert_true(nr_value(nr_store_find(b.store, "cls_token"))[0] >= 0);
	discard(&a);
	discard(&b);
}

struct told { int64_t count[3]; char kept[256]; };
static void hear(void *context, enum nr_import_fate fate, const char *name)
{
	struct told *t = context;
	t->count[fate]++;
	if (fate == NR_KEPT) snprintf(t->kept + strlen(t->kept), sizeof t->kept - strlen(t->kept), "%s ", name);
}

static void a_partial_import_starts_another_head(void **state)
{
	(void)state;
	struct built a = filled(TINY, ""), b = build(SEVEN, "", 2);
	struct nr_error err = { 0 };
	struct told told = { { 0 }, "" };
	struct nr_import how = { .partial = true, .tell = hear, .context = &told };
	save(&a, "huggingface");
	assert_int_equal(nr_model_import(b.store, b.model.of, temp_file(), &how, &err), 0);
	assert_int_equal(how.kept, 2);
	assert_string_equal(told.kept, "head.weight head.bias ");
	assert_int_equal(told.count[NR_TAKEN], how.taken);
	const real *theirs = nr_value(nr_store_find(a.store, "pos_embed")), *ours = nr_value(nr_store_find(b.store, "pos_embed"));
	assert_memory_equal(theirs, ours, 17 * 8 * sizeof(real));
	discard(&a);
	discard(&b);
}

static void positions_are_resized_and_the_class_row_stays(void **state)
{
	(void)state;
	static const char *const kinds[] = { "timm", "mae", "dino", "bigvision" };
	struct built a = filled(TINY, "");
	real *pos = nr_value(nr_store_find(a.store, "pos_embed"));
	for (int i = 8; i < 17 * 8; i++) pos[i] = 3;            /* constant: every way of resizing keeps it */
	save(&a, "timm");
	for (int k = 0; k < 4; k++) {
		struct built b = build(LARGE, "", 2);
		struct nr_error err = { 0 };
		struct nr_import how = { .resample = kinds[k], .special = 1 };
		assert_int_equal(nr_model_import(b.store, b.model.of, temp_file(), &how, &err), 0);
		const real *got = nr_value(nr_store_find(b.store, "pos_embed"));
		assert_memory_equal(got, pos, 8 * sizeof *got);
		for (int i = 8; i < 37 * 8; i++) assert_true(fabs((double)got[i] - 3) < 1e-5);
		discard(&b);
	}
	discard(&a);
}

static void a_small_file_that_claims_a_large_model_gets_no_memory(void **state)
{
	(void)state;
	struct built a = filled(TINY, "");
	save(&a, "timm");
	/* 50 TB of weights: the first tensor that does not fit is said before any memory is taken */
	refused(TINY ",dim=65536,depth=1000", "", (struct nr_import){ 0 }, NR_ESHAPE);
	discard(&a);
}

static void what_a_checkpoint_of_ours_holds_for_training_is_passed_over(void **state)
{
	(void)state;
	struct built a = filled(TINY, ""), b = build(TINY, "", 2);
	struct nr_error err = { 0 };
	struct nr_st_file *f;
	save(&a, "norma");
	assert_int_equal(nr_st_open(&f, temp_file(), &err), 0);
	const int64_t n = nr_st_count(f);
	struct nr_st_tensor all[64];
	for (int64_t i = 0; i < n; i++) all[i] = *nr_st_get(f, i);
	all[n] = *nr_st_find(f, "head.bias");
	all[n].name = "optim.m.head.bias";
	const struct nr_st_meta meta = { "norma", "1" };
	char more[80];
	snprintf(more, sizeof more, "%s.full", temp_file());
	assert_int_equal(nr_st_write(more, all, n + 1, &meta, 1, &err), 0);
	struct nr_import how = { .naming = NULL };
	assert_int_equal(nr_model_import(b.store, b.model.of, more, &how, &err), 0);
	assert_int_equal(how.ignored, 1);
	assert_int_equal(nr_st_write(more, all, n + 1, NULL, 0, &err), 0);              /* a file of others: no such licence */
	assert_int_equal(nr_model_import(b.store, b.model.of, more, &how, &err), NR_EFORMAT);
	unlink(more);
	nr_st_close(f);
	discard(&a);
	discard(&b);
}

static void guess_is(const char *text, const char *norms, const char *naming, const char *want)
{
	struct built a = build(text, norms, 1);
	struct nr_error err = { 0 };
	struct nr_st_file *f;
	struct nr_guess g;
	assert_int_equal(nr_store_seal(a.store, &err), 0);
	save(&a, naming);
	assert_int_equal(nr_st_open(&f, temp_file(), &err), 0);
	assert_int_equal(nr_model_guess(&g, f, a.arena), 1);
	assert_string_equal(g.model, want);
	assert_string_equal(g.norms, norms);
	assert_string_equal(g.naming, naming);
	nr_st_close(f);
	discard(&a);
}

static void a_file_looks_like_its_model(void **state)
{
	(void)state;
	guess_is("ti/16", "", "timm", "vit_tiny_patch16_224");
	guess_is("deit_tiny_patch16_224:classes=10", "patch=dual", "huggingface", "vit_tiny_patch16_224:classes=10");
	guess_is("vit_micro", "", "norma", "vit_micro");
	guess_is("vit_tiny_patch16_384", "patch=post", "timm", "vit_tiny_patch16_384");
	guess_is("dtn/t", "", "norma", "dtn/t");
	guess_is("vit:image=16,patch=4,dim=128,depth=2,heads=2,classes=3,pool=avg,class_token=0,mlp=2", "", "huggingface5",
		"vit:image=16,patch=4,dim=128,depth=2,heads=2,mlp=2,pool=avg,classes=3,class_token=0");
	guess_is("test_vit:classes=5", "", "timm", "test_vit:classes=5");
	/* any other file looks like nothing */
	struct nr_error err = { 0 };
	const float one = 1;
	const struct nr_st_tensor t = { .name = "a.weight", .dtype = NR_ST_F32, .nd = 1, .shape = { 1 }, .data = &one, .bytes = 4 };
	struct nr_st_file *f;
	struct nr_guess g;
	struct nr_arena *arena = nr_arena_make();
	assert_int_equal(nr_st_write(temp_file(), &t, 1, NULL, 0, &err), 0);
	assert_int_equal(nr_st_open(&f, temp_file(), &err), 0);
	assert_int_equal(nr_model_guess(&g, f, arena), 0);
	nr_st_close(f);
	nr_arena_free(arena);
	says(refused(TINY, "", (struct nr_import){ 0 }, NR_EFORMAT), "none of its 1 tensors belong to this model");
}

static int clean_up(void **state)
{
	(void)state;
	unlink(temp_file());
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_have_the_names_of_public_checkpoints),
		cmocka_unit_test(every_naming_gives_back_the_same_bits),
		cmocka_unit_test(queries_keys_and_values_are_rows_one_after_another),
		cmocka_unit_test(the_norm_before_the_patch_embedding_goes_by_row_column_channel),
		cmocka_unit_test(two_entries_with_one_public_name_are_refused),
		cmocka_unit_test(what_does_not_fit_is_named),
		cmocka_unit_test(a_failed_import_changes_nothing),
		cmocka_unit_test(a_partial_import_starts_another_head),
		cmocka_unit_test(positions_are_resized_and_the_class_row_stays),
		cmocka_unit_test(a_small_file_that_claims_a_large_model_gets_no_memory),
		cmocka_unit_test(what_a_checkpoint_of_ours_holds_for_training_is_passed_over),
		cmocka_unit_test(a_file_looks_like_its_model),
	};
	return cmocka_run_group_tests(tests, NULL, clean_up);
}
