/* src/analysis/attentive.c: what one marked token of many says is read by attention, though a mean over tokens loses it. */
#include <omp.h>

#include "unit/values.h"

#include "analysis/attentive.h"

enum { N = 160, M = 80, T = 9, C = 4 };

/* Channel 0 marks a token, whose channel 1 is the class; the others' channel 1 is noise of the same size. */
static struct nr_token_set made(int64_t count)
{
	struct nr_token_set s = { count, T, C, calloc((size_t)(count * T * C), sizeof(float)), calloc((size_t)count, sizeof(int32_t)) };
	for (int64_t i = 0; i < count; i++) {
		const int marked = (int)((value() + (real).5) * T);
		s.label[i] = value() > 0;
		for (int t = 0; t < T; t++) {
			float *x = s.x + (i * T + t) * C;
			x[0] = t == marked;
			x[1] = t == marked ? (s.label[i] ? 1 : -1) : value() > 0 ? 1 : -1;
			x[2] = (float)value(), x[3] = 5;                /* noise; a channel that never changes */
		}
	}
	return s;
}

static void a_marked_token_is_found(void **state)
{
	(void)state;
	struct nr_token_set train = made(N), test = made(M);
	const struct nr_attentive o = { .classes = 2, .heads = 2, .batch = 32, .epochs = 60, .lr = { 1e-2, 3e-2 }, .lrs = 2, .hold_out = .2,
		.weight_decay = .01, .seed = 3 };
	struct nr_probe_result first = { 0 }, again;
	struct nr_error err = { 0 };
	for (int threads = 1; threads <= 3; threads++) {
		omp_set_num_threads(threads);
		assert_int_equal(nr_attentive_run(&o, &train, &test, &again, &err), 0);
		if (threads == 1) first = again;
		assert_memory_equal(&first, &again, sizeof first);
	}
	assert_int_equal(first.tries, 2);
	assert_true(first.held > 20 && first.held < 44);
	assert_true(first.best.top1 > .95);
	assert_true(first.best.held_top1 >= first.each[0].held_top1 && first.best.held_top1 >= first.each[1].held_top1);

	struct nr_attentive wrong = o;
	wrong.heads = 3;
	assert_int_not_equal(nr_attentive_run(&wrong, &train, &test, &again, &err), 0);
	nr_token_set_release(&train);
	nr_token_set_release(&test);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_marked_token_is_found) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
