/* src/models/{pvt,pvt_v2,swin,levit,t2t,stages}.c: names in and out, what a file looks like, pyramids of odd pictures, plans of presets. */
#include "models/guess.h"
#include "norma/model.h"
#include "norma/safetensors.h"
#include "unit/built.h"

#define PVT "pvt:image=32,patch=2,dims=8-12-16,depths=1-2-1,heads=1-2-2,mlp=2,sr=4-2-1,classes=3"
#define PVT_V2 "pvt_v2:image=32,dims=8-12-16,depths=1-2-1,heads=1-2-2,mlp=2-4-2,sr=4-2-1,classes=3"
#define SWIN "swin:image=32,patch=2,dim=8,depths=2-1,heads=1-2,windows=4,mlp=2,classes=3"
#define LEVIT "levit:image=32,dims=16-24,depths=1-2,heads=2-3,key=4,stride=8,classes=3"
#define T2T "t2t:image=32,width=8,dim=12,depth=2,heads=2,mlp=2,classes=3"

/* Values of their own; variances are positive. */
static void fill(struct nr_store *s)
{
	struct nr_error err = { 0 };
	assert_int_equal(nr_store_seal(s, &err), 0);
	int64_t v = 0;
	for (int64_t i = 0; i < nr_store_count(s); i++) {
		const struct nr_entry *e = nr_store_at(s, i);
		for (int64_t k = 0; k < e->count; k++) nr_value(e)[k] = strstr(e->name, "running_var")
			? (real)(1 + v++ % 7) : ((real)(v++ % 1009) / 509 - 1) / 4;
	}
}

static void every_naming_gives_back_the_same_bits_and_is_recognised(void **state)
{
	static const char *const texts[] = { PVT, PVT_V2, PVT_V2 ",linear=1", SWIN, LEVIT, LEVIT ",distilled=0", T2T,
		T2T ",tokens=transformer" };
	(void)state;
	char line[1200];
	for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
		struct built a = build(texts[t], "", 1);
		fill(a.store);
		for (const struct nr_naming *n = a.model.of->namings; n->name; n++) {
			struct nr_error err = { 0 };
			struct nr_import how = { .naming = n->name };
			assert_int_equal(nr_model_export(a.store, a.model.of, temp_file(), n->name, NULL, 0, &err), 0);
			struct built b = build(texts[t], "", 1);
			if (nr_model_import(b.store, b.model.of, temp_file(), &how, &err)) fail_msg("%s: %s", n->name,
				nr_error_text(&err, line, sizeof line));
			for (int64_t i = 0; i < nr_store_count(a.store); i++) {
				const struct nr_entry *e = nr_store_at(a.store, i), *f = nr_store_find(b.store, e->name);
				assert_memory_equal(nr_value(e), nr_value(f), (size_t)e->count * sizeof(real));
			}
			struct nr_st_file *f;
			struct nr_guess g;
			assert_int_equal(nr_st_open(&f, temp_file(), &err), 0);
			assert_true(nr_model_guess(&g, f, b.arena));
			struct nr_model_spec seen;
			assert_int_equal(nr_model_parse(&seen, g.model, b.arena, &err), 0);
			assert_string_equal(seen.of->name, a.model.of->name);
			static const char *const keys[] = { "dims", "depths", "mlp", "sr", "linear", "windows", "key", "classes",
				"channels", "patch", "width",
				"tokens", "distilled", "dim", "depth" };
			for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
				const struct nr_option *o = nr_option_find(a.model.of->options, keys[k]);
				char want[64], got[64];
				if (!o || (!strcmp(keys[k], "sr") && strstr(texts[t], "linear")) || (!strcmp(keys[k], "mlp") &&
					strstr(texts[t], "mlp=2,"))) continue;
				assert_string_equal(nr_option_text(o, seen.conf, got, sizeof got), nr_option_text(o, a.model.conf,
					want, sizeof want));
			}
			nr_st_close(f);
			discard(&b);
		}
		discard(&a);
	}
}

static void swin_of_the_original_code_merges_at_the_end_of_a_stage(void **state)
{
	(void)state;
	struct built b = build(SWIN, "", 1);
	struct nr_error err = { 0 };
	struct nr_st_file *f;
	fill(b.store);
	assert_int_equal(nr_model_export(b.store, b.model.of, temp_file(), "official", NULL, 0, &err), 0);
	assert_int_equal(nr_st_open(&f, temp_file(), &err), 0);
	assert_non_null(nr_st_find(f, "layers.0.downsample.reduction.weight"));
	assert_null(nr_st_find(f, "layers.1.downsample.reduction.weight"));
	assert_non_null(nr_st_find(f, "head.weight"));
	nr_st_close(f);
	discard(&b);
}

/* Grids of the levels of a picture of h x w. */
static void levels_are(const char *text, const char *norms, int64_t h, int64_t w, const int64_t (*want)[2], int count)
{
	struct nr_arena *arena = nr_arena_make();
	struct rig r = rig();
	struct nr_model_spec m;
	nr_t *level[NR_MAXLEVELS];
	assert_int_equal(nr_model_parse(&m, text, arena, &r.err), 0);
	assert_int_equal(nr_norms_use(r.n, norms, &m.norms, &r.err), 0);
	nr_t *image = reals(&r, 4, 1, 3, h, w);
	const int got = m.of->levels(r.n, &(struct nr_inputs){ .image = image }, m.conf, level);
	assert_int_equal(got, count);
	for (int i = 0; i < count; i++) {
		assert_int_equal(level[i]->tok->h, want[i][0]);
		assert_int_equal(level[i]->tok->w, want[i][1]);
	}
	const nr_t *last = level[count - 1];
	const real *y = run(&r, level[count - 1]);
	for (int64_t i = 0; i < nr_len(last); i++) assert_true(isfinite(y[i]));
	release(&r);
	nr_arena_free(arena);
}

static void pyramids_take_pictures_of_any_shape(void **state)
{
	(void)state;
	levels_are(PVT, "", 40, 24, (const int64_t[][2]){ { 20, 12 }, { 10, 6 }, { 5, 3 } }, 3);
	levels_are(PVT_V2, "", 37, 53, (const int64_t[][2]){ { 10, 14 }, { 5, 7 }, { 3, 4 } }, 3);
	levels_are(PVT_V2 ",linear=1", "", 37, 21, (const int64_t[][2]){ { 10, 6 }, { 5, 3 }, { 3, 2 } }, 3);
	levels_are(SWIN, "", 37, 21, (const int64_t[][2]){ { 19, 11 }, { 10, 6 } }, 2);
	levels_are(SWIN ",pad_first=1", "", 37, 21, (const int64_t[][2]){ { 19, 11 }, { 10, 6 } }, 2);
	levels_are(LEVIT, "", 32, 32, (const int64_t[][2]){ { 4, 4 }, { 2, 2 } }, 2);
}

static void presets_bring_their_norm_plan_unless_another_is_given(void **state)
{
	static const struct { const char *norms; int dtn; } cases[] = { { "", 8 }, { "layer", 0 }, { "eps=1e-3", 8 } };
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nr_arena *arena = nr_arena_make();
		struct rig r = rig();
		struct nr_model_spec m;
		int64_t count, found = 0;
		assert_int_equal(nr_model_parse(&m, "dtn/pvt-nano", arena, &r.err), 0);
		assert_int_equal(nr_norms_use(r.n, cases[i].norms, &m.norms, &r.err), 0);
		const struct nr_inputs in = nr_model_inputs(r.n, &m, 1);
		nr_model_logits(r.n, &m, &in);
		assert_int_equal(nr_norms_done(r.n, &r.err), 0);
		const struct nr_site *site = nr_sites(r.n, &count);
		for (int64_t k = 0; k < count; k++) found += site[k].norm && !strncmp(site[k].norm, "dtn", 3);
		assert_int_equal(found, cases[i].dtn);
		release(&r);
		nr_arena_free(arena);
	}
}

static void settings_of_stages_that_do_not_fit_are_told(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "swin:depths=2-x", "depths is a positive number for each stage" }, { "swin:depths=2-2,heads=1-2-3",
		"heads has 3 numbers for 2 stages" },
		{ "pvt:sr=8-4-2-2", "cannot be reduced" }, { "levit:stride=12", "power of 2" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nr_arena *arena = nr_arena_make();
		struct rig r = rig();
		struct nr_model_spec m;
		char line[1200];
		assert_int_equal(nr_model_parse(&m, cases[i].text, arena, &r.err), 0);
		assert_int_equal(nr_norms_use(r.n, "", &m.norms, &r.err), 0);
		const struct nr_inputs in = nr_model_inputs(r.n, &m, 1);
		assert_null(nr_model_logits(r.n, &m, &in));
		nr_error_text(nr_net_error(r.n), line, sizeof line);
		if (!strstr(line, cases[i].says)) fail_msg("'%s' does not say '%s'", line, cases[i].says);
		release(&r);
		nr_arena_free(arena);
	}
}

static int clean_up(void **state)
{
	(void)state;
	remove(temp_file());
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_naming_gives_back_the_same_bits_and_is_recognised),
		cmocka_unit_test(swin_of_the_original_code_merges_at_the_end_of_a_stage),
		cmocka_unit_test(pyramids_take_pictures_of_any_shape),
		cmocka_unit_test(presets_bring_their_norm_plan_unless_another_is_given),
		cmocka_unit_test(settings_of_stages_that_do_not_fit_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, clean_up);
}
