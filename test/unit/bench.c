/* The benchmark cases: they do the work that their peers do. Loss and gradients are compared with PyTorch by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../bench/backbone.c"
#include "../../bench/block.c"
#include "../../bench/cases.c"
#include "../../bench/detect.c"
#include "../../bench/dino.c"
#include "../../bench/graphormer.c"
#include "../../bench/longtext.c"
#include "../../bench/mae.c"
#include "../../bench/run.c"
#include "../../bench/simcse.c"
#include "../../bench/vit.c"

static struct bench_target target(const char *name, bool tiny)
{
	struct nr_error err = { 0 };
	struct bench_target t;
	assert_int_equal(bench_target_parse(&t, name, tiny, &err), NR_OK);
	return t;
}

static void flops_are_those_that_the_peers_count(void **state)
{
	(void)state;
	static const struct { const char *name; double gflop; } peer[] = {   /* printed by bench/peers */
		{ "vit_tiny_bs8/train", 60.177 }, { "vit_tiny_bs8/infer", 20.059 }, { "vit_small_bs4/train", 110.373 },
		{ "vit_small_bs4/infer", 36.791 }, { "mae32_bs128/train", 22.043 }, { "mae32_bs128/infer", 21.391 },
		{ "simcse_bs32_len32/train", 132.272 }, { "simcse_bs32_len32/infer", 22.045 },
		{ "vit_small_bs1/infer", 9.198 }, { "minilm_bs1_len16/infer", .342 },
	};
	for (size_t i = 0; i < sizeof peer / sizeof *peer; i++) {
		const struct bench_target t = target(peer[i].name, false);
		const double flops = (t.train ? 3 : 1) * t.of->model->flops(t.size, t.train);
		assert_true(fabs(flops * 1e-9 - peer[i].gflop) < 6e-4);
	}
}

static void a_bare_name_means_training(void **state)
{
	(void)state;
	assert_true(target("mae32_bs128", false).train);
	assert_true(target("mae32_bs128/train", false).train);
	assert_false(target("mae32_bs128/infer", false).train);
}

static void the_mask_keeps_a_quarter_and_sends_every_patch_home(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	struct bench *b;
	const struct bench_target t = target("mae32_bs128/train", false);
	assert_int_equal(bench_open(&b, &t, 0, &err), NR_OK);
	const int64_t N = 64, K = 16;
	const int32_t *kept = nr_plan_data(b->plan, b->in.kept), *restore = nr_plan_data(b->plan, b->in.restore);
	const real *weight = nr_plan_data(b->plan, b->in.weight);
	int32_t before[16];
	for (int64_t step = 1; step < 4; step++) {
		bench_mae.draw(t.size, &b->in, b->plan, step);
		for (int64_t s = 0; s < t.size->batch; s++) {
			uint64_t seen = 0;
			assert_int_equal(restore[s * (N + 1)], 0);
			for (int64_t i = 0; i < N; i++) {
				const int32_t at = restore[s * (N + 1) + 1 + i] - 1;
				assert_in_range(at, 0, N - 1);
				seen |= UINT64_C(1) << at;
				assert_int_equal((int)weight[s * N + i], at >= K);
				if (at < K) assert_int_equal(kept[s * K + at], i);
			}
			assert_true(seen == UINT64_MAX);
		}
		if (step > 1) assert_memory_not_equal(before, kept, sizeof before);
		memcpy(before, kept, sizeof before);
	}
	bench_close(b);
}

static void a_step_lowers_the_loss(void **state)
{
	(void)state;
	for (const struct bench_case *c = bench_cases; c->name; c++) {
		struct nr_error err = { 0 };
		struct bench *b;
		const struct bench_target t = target(c->name, true);
		assert_int_equal(bench_open(&b, &t, 0, &err), NR_OK);
		b->optim.lr = 1e-3;
		bench_step(b);
		const double first = bench_loss(b);
		for (int i = 0; i < 20; i++) bench_step(b);
		assert_true(bench_loss(b) < first);
		bench_close(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flops_are_those_that_the_peers_count),
		cmocka_unit_test(a_bare_name_means_training),
		cmocka_unit_test(the_mask_keeps_a_quarter_and_sends_every_patch_home),
		cmocka_unit_test(a_step_lowers_the_loss),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
