/* src/models/{clip_text,clip_text_file,naming}.c, src/analysis/zeroshot.c: text towers in and out of files, which token they read, and
 * classes made of texts. */
#include "analysis/zeroshot.h"
#include "base/safetensors.h"
#include "models/guess.h"
#include "models/names.h"
#include "norma/nn.h"
#include "norma/safetensors.h"
#include "unit/built.h"

#define CLIP "clip_text:vocab=20,dim=8,depth=2,heads=2,hidden=16,positions=6,length=6,classes=5,end=19"
#define SIGLIP "clip_text:vocab=20,dim=8,depth=2,heads=2,hidden=16,positions=6,length=6,classes=8,causal=0,ends=0,pad=1,head_bias=1"

static void fill(struct nr_store *s)
{
	struct nr_error err = { 0 };
	int64_t v = 0;
	assert_int_equal(nr_store_seal(s, &err), 0);
	for (int64_t i = 0; i < nr_store_count(s); i++) {
		const struct nr_entry *e = nr_store_at(s, i);
		for (int64_t k = 0; k < e->count; k++, v++) nr_value(e)[k] = (real)(v * 7919 % 1009) / 509 - 1;
	}
}

static void every_naming_gives_back_the_same_bits(void **state)
{
	(void)state;
	char line[1200];
	for (int siglip = 0; siglip < 2; siglip++) {
		struct built a = build(siglip ? SIGLIP : CLIP, "", 1);
		fill(a.store);
		for (const struct nr_naming *n = a.model.of->namings; n->name; n++) {
			struct nr_error err = { 0 };
			struct nr_guess g;
			struct nr_st_file *f;
			if (siglip != (strstr(n->name, "siglip") != NULL)) continue;
			struct built b = build(siglip ? SIGLIP : CLIP, "", 2);
			struct nr_import how = { .naming = NULL };
			assert_int_equal(nr_model_export(a.store, a.model.of, temp_file(), n->name, NULL, 0, &err), 0);
			if (nr_model_import(b.store, b.model.of, temp_file(), &how, &err))
				fail_msg("%s: %s", n->name, nr_error_text(&err, line, sizeof line));
			assert_string_equal(how.used, n->name);
			for (int64_t i = 0; i < nr_store_count(a.store); i++) {
				const struct nr_entry *e = nr_store_at(a.store, i);
				assert_memory_equal(nr_value(e), nr_value(nr_store_at(b.store, i)), (size_t)e->count * sizeof(real));
			}
			assert_int_equal(nr_st_open(&f, temp_file(), &err), 0);
			assert_int_equal(nr_tower_guess(&g, f, NR_TEXTS, a.arena), 1);
			assert_string_equal(g.naming, n->name);
			assert_int_equal(strncmp(g.model, "clip_text", 9), 0);
			nr_st_close(f);
			discard(&b);
		}
		discard(&a);
	}
	unlink(temp_file());
}

/* The projection of open_clip is a matrix (width, outputs), where layers are (outputs, width). */
static void open_clips_projection_is_transposed(void **state)
{
	(void)state;
	struct built a = build(CLIP, "", 1);
	struct nr_error err = { 0 };
	struct nr_st_file *f;
	fill(a.store);
	assert_int_equal(nr_model_export(a.store, a.model.of, temp_file(), "open_clip", NULL, 0, &err), 0);
	assert_int_equal(nr_st_open(&f, temp_file(), &err), 0);
	const struct nr_st_tensor *t = nr_st_find(f, "text_projection");
	assert_non_null(t);
	assert_true(t->nd == 2 && t->shape[0] == 8 && t->shape[1] == 5);
	const real *ours = nr_value(nr_store_find(a.store, "head.weight"));
	real theirs[40];
	assert_int_equal(nr_st_to_real(t, theirs, 40, &err), 0);
	for (int i = 0; i < 40; i++) assert_true(theirs[i % 8 * 5 + i / 8] == ours[i]);
	nr_st_close(f);
	unlink(temp_file());
	discard(&a);
}

/* Outputs of two texts. */
static void outputs(const struct built *b, const int32_t *ids, real *out)
{
	struct nr_error err = { 0 };
	struct nr_plan *plan;
	struct nr_net *n = nr_net_make(b->store);
	assert_int_equal(nr_norms_use(n, "", &b->model.norms, &err), 0);
	const struct nr_inputs in = nr_model_inputs(n, &b->model, 2);
	nr_t *y = nr_model_logits(n, &b->model, &in);
	assert_int_equal(nr_plan_make(&plan, n, y, 0, &err), 0);
	memcpy(nr_plan_data(plan, in.ids), ids, 12 * sizeof *ids);
	for (int i = 0; i < 2; i++) ((int32_t *)nr_plan_data(plan, in.valid))[i] = 6;
	nr_plan_run(plan, &(struct nr_exec){ .train = 0 }, NR_RUN_FORWARD);
	memcpy(out, nr_plan_data(plan, y), (size_t)nr_len(y) * sizeof *out);
	nr_plan_free(plan);
	nr_net_free(n);
}

static void clip_reads_the_end_and_nothing_after_it(void **state)
{
	(void)state;
	struct built b = build(CLIP, "", 1);
	const int32_t ids[12] = { 18, 3, 4, 19, 0, 0, 18, 3, 4, 19, 19, 7 };
	const int32_t other[12] = { 18, 3, 5, 19, 0, 0, 18, 4, 3, 19, 0, 0 };
	real y[10], z[10];
	fill(b.store);
	outputs(&b, ids, y);
	outputs(&b, other, z);
	assert_memory_equal(y, y + 5, 5 * sizeof *y);
	assert_memory_not_equal(y, z, 5 * sizeof *y);
	assert_memory_not_equal(z, z + 5, 5 * sizeof *y);
	discard(&b);
}

static void siglip_reads_the_last_token_and_sees_padding(void **state)
{
	(void)state;
	struct built b = build(SIGLIP, "", 1);
	const int32_t ids[12] = { 3, 4, 5, 1, 1, 1, 3, 4, 1, 1, 5, 1 };
	real y[16];
	fill(b.store);
	outputs(&b, ids, y);
	assert_memory_not_equal(y, y + 8, 8 * sizeof *y);
	discard(&b);
}

static void a_class_is_the_mean_of_texts_of_length_one(void **state)
{
	(void)state;
	real text[] = { 3, 0, 0, 5, -2, 0 }, of_class[6], image[] = { 0, 7, 1, 1 }, scores[6];
	const int64_t first[] = { 0, 2, 3, 3 };                 /* two texts, one, none */
	struct nr_error err = { 0 };
	nr_zeroshot_classes(3, 2, first, text, of_class);
	const double half = sqrt(.5), want[] = { half, half, -1, 0, 0, 0 }, cosines[] = { half, 0, 0, 1, -half, 0 };
	for (int i = 0; i < 6; i++) assert_true(fabs((double)of_class[i] - want[i]) < 1e-6);
	assert_int_equal(nr_zeroshot_scores(2, 2, image, 3, of_class, scores, &err), 0);
	for (int i = 0; i < 6; i++) assert_true(fabs((double)scores[i] - cosines[i]) < 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_naming_gives_back_the_same_bits), cmocka_unit_test(open_clips_projection_is_transposed),
		cmocka_unit_test(clip_reads_the_end_and_nothing_after_it), cmocka_unit_test(siglip_reads_the_last_token_and_sees_padding),
		cmocka_unit_test(a_class_is_the_mean_of_texts_of_length_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
