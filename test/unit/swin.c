/* src/models/swin.c: windows that are not square, in the model, in files and in what other software is told. */
#include "models/guess.h"
#include "models/names.h"
#include "norma/infer.h"
#include "norma/safetensors.h"
#include "unit/built.h"
#include "unit/folder.h"

#define SWIN "swin:image=32,patch=2,dim=8,depths=2-1,heads=1-2,mlp=2,classes=3"

static int64_t rows_of(const struct built *b, const char *entry)
{
	const struct nr_entry *e = nr_store_find(b->store, entry);
	assert_non_null(e);
	return e->d[0];
}

static void tables_have_the_offsets_of_the_windows_of_a_stage(void **state)
{
	(void)state;
	static const struct { const char *text; int64_t first, second; } cases[] = {
		{ SWIN ",windows=4x2", 7 * 3, 7 * 3 }, { SWIN ",windows=4x2-1x8", 7 * 3, 1 * 15 }, { SWIN ",windows=4-3x2", 7 * 7, 5 * 3 },
		{ SWIN ",windows=20x3", 31 * 5, 15 * 5 }, { SWIN ",windows=20x3,clamp=0", 39 * 5, 39 * 5 },        /* grids of 16 and 8 */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct built b = build(cases[i].text, "", 1);
		assert_int_equal(rows_of(&b, "stages.0.blocks.1.attn.table"), cases[i].first);
		assert_int_equal(rows_of(&b, "stages.1.blocks.0.attn.table"), cases[i].second);
		discard(&b);
	}
}

static void windows_that_are_none_are_told(void **state)
{
	(void)state;
	static const char *const texts[] = { SWIN ",windows=4x", SWIN ",windows=x4", SWIN ",windows=4x2x2", SWIN ",windows=4-",
		SWIN ",windows=4x0" };
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct nr_arena *arena = nr_arena_make();
		struct rig r = rig();
		struct nr_model_spec m;
		char line[1200];
		assert_int_equal(nr_model_parse(&m, texts[i], arena, &r.err), 0);
		assert_int_equal(nr_norms_use(r.n, "", &m.norms, &r.err), 0);
		const struct nr_inputs in = nr_model_inputs(r.n, &m, 1);
		assert_null(nr_model_logits(r.n, &m, &in));
		nr_error_text(nr_net_error(r.n), line, sizeof line);
		if (!strstr(line, "windows is a positive number for each stage")) fail_msg("%s: %s", texts[i], line);
		release(&r);
		nr_arena_free(arena);
	}
}

/* ---- rows and columns change places ----------------------------------------------------------------------------------- */

enum { H = 10, W = 7, CH = 3, K = 3 };

/* Row (dy,dx) of a table of windows of wh x ww from (dx,dy) of another; one value for a head. */
static void turn_table(const struct nr_entry *from, const struct nr_entry *to, int64_t wh, int64_t ww)
{
	const int64_t heads = to->d[1], rows = 2 * wh - 1, cols = 2 * ww - 1;
	for (int64_t y = 0; y < rows; y++)
		for (int64_t x = 0; x < cols; x++)
			for (int64_t h = 0; h < heads; h++)
				nr_value(to)[(y * cols + x) * heads + h] = nr_value(from)[(x * rows + y) * heads + h];
}

/* The channels of four merged tokens, (0,0) (1,0) (0,1) (1,1) in rows and columns, with the middle two in each other's place. */
static void turn_merged(const struct nr_entry *from, const struct nr_entry *to, int64_t width)
{
	static const int64_t order[] = { 0, 2, 1, 3 };
	const int64_t C = width / 4;
	for (int64_t i = 0; i < to->count; i++) {
		const int64_t col = i % width;
		nr_value(to)[i] = nr_value(from)[i - col + order[col / C] * C + col % C];
	}
}

static void logits(const char *text, int turned, const struct nr_store *from, struct nr_store **store, real *out)
{
	struct rig r = rig();
	struct nr_arena *arena = nr_arena_make();
	struct nr_model_spec m;
	assert_int_equal(nr_model_parse(&m, text, arena, &r.err), 0);
	assert_int_equal(nr_norms_use(r.n, "", &m.norms, &r.err), 0);
	nr_t *image = turned ? reals(&r, 4, 1, CH, W, H) : reals(&r, 4, 1, CH, H, W);
	nr_t *y = nr_model_logits(r.n, &m, &(struct nr_inputs){ .image = image });
	assert_int_equal(nr_plan_make(&r.plan, r.n, y, 0, &r.err), 0);
	value_seed = 9;
	real *x = r.data[0];
	for (int64_t c = 0; c < CH; c++)
		for (int64_t i = 0; i < H; i++)
			for (int64_t j = 0; j < W; j++) x[c * H * W + (turned ? j * H + i : i * W + j)] = value();
	for (int64_t i = 0; i < nr_store_count(r.store); i++) {
		const struct nr_entry *e = nr_store_at(r.store, i), *f = from ? nr_store_find(from, e->name) : NULL;
		if (f && strstr(e->name, "attn.table")) turn_table(f, e, 4, 2);
		else if (f && strstr(e->name, "merge.")) turn_merged(f, e, e->d[e->nd - 1]);
		else
			for (int64_t k = 0; k < e->count; k++) nr_value(e)[k] = f ? nr_value(f)[k] : value() / (e->nd == 1 ? 2 : 4);
	}
	memcpy(out, run(&r, y), K * sizeof *out);
	*store = r.store;
	r.store = NULL;
	release(&r);
	nr_arena_free(arena);
}

static void turned_windows_on_a_turned_picture_give_the_same(void **state)
{
	(void)state;
	static const char *const more[] = { "", ",pad_first=1", ",pad_first=1,clamp=0", ",shift_both=1" };
	for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
		char text[2][200];
		for (int t = 0; t < 2; t++)
			snprintf(text[t], sizeof text[t], "swin:image=16,patch=1,dim=8,depths=2-2,heads=2-2,mlp=2,classes=3,windows=%s%s",
				t ? "4x2" : "2x4", more[i]);
		struct nr_store *a, *b;
		real want[K], got[K];
		double exact[K];
		logits(text[0], 1, NULL, &a, want);
		logits(text[1], 0, a, &b, got);
		for (int k = 0; k < K; k++) exact[k] = (double)want[k];
		close_to(got, exact, K, 2e-5);
		assert_true(fabs((double)want[0] - (double)want[1]) > 1e-3);
		nr_store_free(a);
		nr_store_free(b);
	}
}

/* ---- in a file --------------------------------------------------------------------------------------------------------- */

/* Weights under these names; index: with torchvision's index beside each table; config: text of a config.json, or NULL. */
static void put(const char *text, const char *naming, int64_t index_cols, const char *config)
{
	struct built b = build(text, "", 1);
	struct nr_error err = { 0 };
	struct nr_st_file *f;
	enum { CELLS = 8 };
	static int64_t index[CELLS * CELLS];
	unlink(made_path("config.json"));
	assert_int_equal(nr_store_seal(b.store, &err), 0);
	assert_int_equal(nr_model_export(b.store, b.model.of, made_path("model.safetensors"), naming, NULL, 0, &err), 0);
	if (index_cols) {
		assert_int_equal(nr_st_open(&f, made_path("model.safetensors"), &err), 0);
		const int64_t n = nr_st_count(f), ww = index_cols, wh = CELLS / ww;
		struct nr_st_tensor *all = nr_arena_alloc(b.arena, (size_t)(2 * n) * sizeof *all);
		int64_t count = n;
		for (int64_t q = 0; q < CELLS; q++)
			for (int64_t k = 0; k < CELLS; k++)
				index[q * CELLS + k] = (q / ww - k / ww + wh - 1) * (2 * ww - 1) + q % ww - k % ww + ww - 1;
		for (int64_t i = 0; i < n; i++) {
			const char *tail = strstr((all[i] = *nr_st_get(f, i)).name, "_bias_table");
			if (tail)
				all[count++] = (struct nr_st_tensor){ nr_arena_printf(b.arena, "%.*s_index", (int)(tail - all[i].name),
					all[i].name), NR_ST_I64, 1, { CELLS * CELLS }, index, sizeof index };
		}
		assert_int_equal(nr_st_write(made_path("more.safetensors"), all, count, NULL, 0, &err), 0);
		nr_st_close(f);
		assert_int_equal(rename(made_path("more.safetensors"), made_path("model.safetensors")), 0);
	}
	if (config) made_with("config.json", config);
	discard(&b);
}

static void opens_with(const char *part)
{
	struct nr_weights *w;
	struct nr_error err = { 0 };
	char line[2000];
	if (nr_weights_open(&w, made_path("model.safetensors"), NULL, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	if (!strstr(w->model.text, part)) fail_msg("%s does not have %s", w->model.text, part);
	nr_weights_close(w);
}

#define TIMM(args) "{\"architecture\": \"swin_nano\", \"model_args\": {" args "}}"

static void windows_are_read_from_a_config(void **state)
{
	(void)state;
	put("swin_nano:windows=4x2", "timm", 0, TIMM("\"img_size\": 32, \"window_size\": [4, 2]"));
	opens_with("windows=4x2");
	put("swin_nano:windows=4x2-2x8", "timm", 0, TIMM("\"img_size\": 32, \"window_size\": [[4, 2], [2, 8]]"));
	opens_with("windows=4x2-2x8");
	put("swin_nano:windows=8-2", "timm", 0, TIMM("\"img_size\": 32"));
	opens_with("windows=8-2");
	/* a picture of 8 x 32: grids of 4 x 16 and 2 x 8, which no window exceeds */
	put("swin_nano:windows=4x8-2x8", "timm", 0, TIMM("\"img_size\": [8, 32], \"window_size\": 8"));
	opens_with("windows=4x8-2x8");
	put("swin_nano:windows=4-2x4", "timm", 0, TIMM("\"img_size\": [8, 32]"));
	opens_with("windows=4-2x4");
}

static void windows_are_read_from_the_index_beside_their_table(void **state)
{
	(void)state;
	put("swin_nano:windows=4x2,pad_first=1,clamp=0", "torchvision", 2, NULL);
	opens_with("windows=4x2,pad_first=1,clamp=0");
	put("swin_nano:windows=2x4,pad_first=1,clamp=0", "torchvision", 4, NULL);
	opens_with("windows=2x4,pad_first=1,clamp=0");
}

static void windows_that_nothing_tells_are_asked_for(void **state)
{
	struct nr_weights *w;
	struct nr_error err = { 0 };
	char line[2000];
	(void)state;
	put("swin_nano:windows=4x2", "timm", 0, NULL);
	assert_int_equal(nr_weights_open(&w, made_path("model.safetensors"), NULL, &err), NR_EUSAGE);
	nr_error_text(&err, line, sizeof line);
	if (!strstr(line, "its windows are not square, and nothing says how many rows")) fail_msg("%s", line);
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_weights_open(&w, made_path("model.safetensors"), &(struct nr_weights_how){ .model = "swin_nano:windows=4x2" },
		&err), 0);
	nr_weights_close(w);
}

static void other_software_is_told_the_windows(void **state)
{
	(void)state;
	static const struct { const char *windows, *says; } cases[] = { { "4", "4" }, { "4x2", "[4, 2]" }, { "8-2", "[[8, 8], [2, 2]]" },
		{ "4x2-2x8", "[[4, 2], [2, 8]]" } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[80];
		snprintf(text, sizeof text, "swin_nano:windows=%s", cases[i].windows);
		struct built b = build(text, "", 1);
		const struct nr_model_file *file = b.model.of->file;
		const struct nr_naming *timm = nr_naming_find(b.model.of, "timm", NULL);
		const struct nr_naming *hf = nr_naming_find(b.model.of, "huggingface", NULL);
		json_t *j = file->config(&(struct nr_saved){ .model = &b.model, .store = b.store, .naming = timm });
		char *got = json_dumps(json_object_get(json_object_get(j, "model_args"), "window_size"), JSON_ENCODE_ANY);
		assert_string_equal(got, cases[i].says);
		assert_null(file->refuses(&b.model, timm));
		assert_int_equal(file->refuses(&b.model, hf) != NULL, i > 0);         /* one square window for all */
		free(got);
		json_decref(j);
		discard(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_have_the_offsets_of_the_windows_of_a_stage), cmocka_unit_test(windows_that_are_none_are_told),
		cmocka_unit_test(turned_windows_on_a_turned_picture_give_the_same), cmocka_unit_test(windows_are_read_from_a_config),
		cmocka_unit_test(windows_are_read_from_the_index_beside_their_table),
		cmocka_unit_test(windows_that_nothing_tells_are_asked_for), cmocka_unit_test(other_software_is_told_the_windows),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
