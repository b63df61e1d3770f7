/* Swin, PVT and T2T-ViT under each of their names: a file is read back by what it looks like and gives the same logits. What other code
 * orders in another way, or has beside it, is as there. */
#include "unit/built.h"
#include "unit/datasets.h"

#include "base/mem.h"
#include "base/safetensors.h"
#include "norma/infer.h"

enum { BATCH = 2, CLASSES = 5, MOST = 3 * 40 * 40 };
#define SWIN "swin:image=32,patch=2,dim=8,depths=2-1-1-1,heads=2-2-4-4,windows=4,classes=5,pad_first=1"

static struct built made(const char *text, const char *norms)
{
	const struct built b = build_whole(text, norms, 5);
	value_seed = 7;
	for (int64_t i = 0; i < nr_store_count(b.store); i++) {
		const struct nr_entry *e = nr_store_at(b.store, i);
		for (int64_t k = 0; k < e->count; k++) nr_value(e)[k] += value() / (e->nd == 1 ? 2 : 8);
	}
	return b;
}

static void logits_of(const struct nr_weights *w, real *out)
{
	struct nr_error err = { 0 };
	struct nr_runner r;
	static float image[BATCH * MOST];
	value_seed = 3;
	for (int64_t i = 0; i < BATCH * MOST; i++) image[i] = (float)(4 * value());
	assert_int_equal(nr_runner_open(&r, w, BATCH, &err), 0);
	assert_true(nr_len(r.image) <= BATCH * MOST);
	nr_runner_run(&r, image, NR_STATS_RUNNING);
	memcpy(out, nr_plan_data(r.plan, r.logits), BATCH * CLASSES * sizeof *out);
	nr_runner_close(&r);
}

static void every_naming_gives_the_same_logits(void **state)
{
	(void)state;
	static const struct { const char *model, *norms, *names[6]; } all[] = {
		{ SWIN, "", { "norma", "timm", "official", "mmdet", "huggingface", "huggingface5" } },
		{ SWIN ",clamp=0", "", { "norma", "torchvision" } },
		{ "pvt:image=32,patch=2,dims=8-12-16,depths=1-2-1,heads=2-2-4,mlp=2,sr=4-2-1,classes=5", "eps=1e-6",
			{ "norma", "official", "huggingface" } },
		{ "pvt_v2:image=32,dims=8-12-16,depths=1-2-1,heads=2-2-4,mlp=2,sr=2-2-1,classes=5", "eps=1e-6",
			{ "norma", "timm", "official", "huggingface" } },
		{ "t2t:image=32,width=8,dim=16,depth=2,heads=2,mlp=2,classes=5", "", { "norma", "official" } },
	};
	for (size_t m = 0; m < sizeof all / sizeof *all; m++) {
		real first[BATCH * CLASSES], other[BATCH * CLASSES];
		for (int i = 0; i < 6 && all[m].names[i]; i++) {
			struct built b = made(all[m].model, all[m].norms);
			const char *path = made_path("m%d-%s.safetensors", (int)m, all[m].names[i]);
			write_built(&b, path, all[m].names[i], NULL, 0);
			struct nr_weights *w = open_built(path, all[m].model, all[m].norms);
			assert_string_equal(w->naming, all[m].names[i]);
			logits_of(w, i ? other : first);
			if (i) assert_memory_equal(first, other, sizeof first);
			nr_weights_close(w);
			discard(&b);
		}
	}
}

/* OpenMMLab's converter: weight.reshape(out, 4, C)[:, [0, 2, 1, 3]].transpose(1, 2).reshape(out, 4 C). */
static void merged_tokens_are_in_mmdets_order(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	struct nr_st_file *f;
	struct built b = made(SWIN, "");
	const char *path = made_path("mmdet.safetensors");
	write_built(&b, path, "mmdet", NULL, 0);
	assert_int_equal(nr_st_open(&f, path, &err), 0);
	static const int order[] = { 0, 2, 1, 3 };
	static const char *const pair[][2] = { { "stages.1.merge.reduction.weight", "stages.0.downsample.reduction.weight" },
		{ "stages.1.merge.in.weight", "stages.0.downsample.norm.weight" }, { "stages.1.merge.in.bias",
			"stages.0.downsample.norm.bias" } };
	for (int p = 0; p < 3; p++) {
		const struct nr_entry *e = nr_store_find(b.store, pair[p][0]);
		const struct nr_st_tensor *t = nr_st_find(f, pair[p][1]);
		assert_non_null(e);
		assert_non_null(t);
		real theirs[16 * 32];
		const int64_t width = e->d[e->nd - 1], C = width / 4, rows = e->count / width;
		assert_true(e->count <= 16 * 32);
		assert_int_equal(nr_st_to_real(t, theirs, e->count, &err), 0);
		for (int64_t r = 0; r < rows; r++)
			for (int64_t c = 0; c < C; c++)
				for (int64_t k = 0; k < 4; k++)
					assert_true(theirs[r * width + c * 4 + k] == nr_value(e)[r * width + order[k] * C + c]);
	}
	nr_st_close(f);
	discard(&b);
}

static void dtn_has_the_bias_that_its_code_has(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	struct nr_st_file *f;
	struct built b = made(SWIN, "dtn");
	const char *path = made_path("dtn.safetensors");
	write_built(&b, path, "timm_dtn", NULL, 0);
	assert_int_equal(nr_st_open(&f, path, &err), 0);
	const struct nr_st_tensor *weight = nr_st_find(f, "layers.0.blocks.0.norm1.pos_proj.weight");
	const struct nr_st_tensor *bias = nr_st_find(f, "layers.0.blocks.0.norm1.pos_proj.bias");
	real zeros[2] = { 1, 1 };
	assert_non_null(weight);
	assert_non_null(bias);
	assert_int_equal(bias->nd, 1);
	assert_int_equal(bias->shape[0], weight->shape[0]);
	assert_int_equal(nr_st_to_real(bias, zeros, 2, &err), 0);
	assert_true(zeros[0] == 0 && zeros[1] == 0);
	nr_st_close(f);
	nr_weights_close(open_built(path, SWIN, "dtn"));           /* and is read again */
	discard(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_naming_gives_the_same_logits), cmocka_unit_test(merged_tokens_are_in_mmdets_order),
		cmocka_unit_test(dtn_has_the_bias_that_its_code_has),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
