/* base/rng.c: Philox against its published vectors, and the draws made from it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

/* Random123's kat_vectors, philox4x32 with 10 rounds. */
static void philox_gives_the_published_vectors(void **state)
{
	(void)state;
	static const struct { uint32_t ctr[4], key[2], want[4]; } kat[] = {
		{ { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ { ~0u, ~0u, ~0u, ~0u }, { ~0u, ~0u }, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, { 0xa4093822, 0x299f31d0 },
		  { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
	};
	for (size_t i = 0; i < sizeof kat / sizeof *kat; i++) {
		uint32_t out[4];
		nr_philox(kat[i].ctr, kat[i].key, out);
		assert_memory_equal(out, kat[i].want, sizeof out);
	}
}

static void mapping_of_seed_stream_step_index_is_fixed(void **state)
{
	(void)state;
	struct nr_rng r = nr_rng_make(0x299f31d0a4093822, 0x03707344, 0x13198a2e);
	uint32_t out[4];
	nr_rng_block(r, 0x85a308d3243f6a88, out);
	assert_int_equal(out[0], 0xd16cfe09);
	assert_int_equal(out[3], 0x24126ea1);
}

static void uniform_takes_words_in_order_and_stays_below_one(void **state)
{
	(void)state;
	struct nr_rng r = nr_rng_make(7, 1, 2);
	uint32_t w[4];
	nr_rng_block(r, 5, w);
	for (uint64_t k = 0; k < 4; k++)
		assert_true(nr_rng_uniform(r, 20 + k) == nr_rng_unit(w[k]));
	assert_true(nr_rng_unit(~0u) < 1);
	assert_true(nr_rng_unit(0) == 0);
}

static void uniform_and_normal_have_their_moments(void **state)
{
	(void)state;
	struct nr_rng r = nr_rng_make(1, 0, 0);
	enum { N = 200000 };
	double u = 0, u2 = 0, z = 0, z2 = 0, z4 = 0, pair = 0, last = 0;
	for (uint64_t i = 0; i < N; i++) {
		double a = (double)nr_rng_uniform(r, i), b = nr_rng_normal(r, i);
		u += a, u2 += a * a, z += b, z2 += b * b, z4 += b * b * b * b;
		if (i & 1)
			pair += b * last;
		last = b;
	}
	/* bounds are about five standard errors */
	assert_true(fabs(u / N - 0.5) < 0.0033 && fabs(u2 / N - 1.0 / 3) < 0.0034);
	assert_true(fabs(z / N) < 0.0112 && fabs(z2 / N - 1) < 0.016 && fabs(z4 / N - 3) < 0.11);
	assert_true(fabs(pair / (N / 2)) < 0.016);
}

static void below_is_in_range_and_even(void **state)
{
	(void)state;
	struct nr_rng r = nr_rng_make(3, 0, 0);
	int seen[7] = { 0 };
	for (uint64_t i = 0; i < 70000; i++)
		seen[nr_rng_below(r, i, 7)]++;
	for (int k = 0; k < 7; k++)
		assert_true(abs(seen[k] - 10000) < 500);
	assert_int_equal(nr_rng_below(r, 0, 1), 0);
	/* two thirds of 2^64: one draw in three is rejected, so the second and later attempts are walked too
	 */
	uint64_t n = 12297829382473034411u, high = 0;
	for (uint64_t i = 0; i < 30000; i++) {
		uint64_t v = nr_rng_below(r, i, n);
		assert_true(v < n);
		high += v >= n / 2;
	}
	assert_true(llabs((long long)high - 15000) < 450);
}

static bool is_permutation(const int32_t *p, int32_t n)
{
	char *seen = calloc((size_t)n + 1, 1);
	bool good = true;
	for (int32_t i = 0; i < n; i++)
		good = good && p[i] >= 0 && p[i] < n && !seen[p[i]]++;
	free(seen);
	return good;
}

static void shuffle_makes_each_order_equally_often(void **state)
{
	(void)state;
	struct nr_rng r = nr_rng_make(11, 0, 0);
	int seen[27] = { 0 };
	for (uint64_t k = 0; k < 60000; k++) {
		int32_t p[3];
		nr_rng_shuffle(r, k * 3, p, 3);
		assert_true(is_permutation(p, 3));
		seen[p[0] * 9 + p[1] * 3 + p[2]]++;
	}
	for (int c = 0; c < 27; c++)
		assert_true(seen[c] == 0 || abs(seen[c] - 10000) < 500);
	int32_t big[1000];
	nr_rng_shuffle(r, 0, big, 1000);
	assert_true(is_permutation(big, 1000));
}

static void permute_is_a_permutation_of_any_size(void **state)
{
	(void)state;
	const int32_t sizes[] = { 1, 2, 3, 4, 5, 16, 17, 100, 1025, 60000 };
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		int32_t n = sizes[k], fixed = 0, *p = malloc((size_t)n * sizeof *p);
		struct nr_rng r = nr_rng_make(k, 0, 0);
		for (int32_t i = 0; i < n; i++) {
			p[i] = (int32_t)nr_rng_permute(r, (uint64_t)i, (uint64_t)n);
			fixed += p[i] == i;
		}
		assert_true(is_permutation(p, n));
		assert_true(n < 1000 || fixed < 10);
		free(p);
	}
	uint64_t huge = nr_rng_permute(nr_rng_make(1, 0, 0), 12345, 1ull << 62);
	assert_true(huge < 1ull << 62);
}

static void permute_spreads_each_place_evenly(void **state)
{
	(void)state;
	int seen[10] = { 0 };
	for (uint32_t step = 0; step < 20000; step++)
		seen[nr_rng_permute(nr_rng_make(5, 0, step), 3, 10)]++;
	for (int k = 0; k < 10; k++)
		assert_true(abs(seen[k] - 2000) < 220);
}

static void a_sample_has_each_number_equally_often_and_loses_none(void **state)
{
	(void)state;
	int seen[5] = { 0 };
	for (uint32_t step = 0; step < 20000; step++) {
		int32_t list[5] = { 0, 1, 2, 3, 4 };
		nr_rng_sample(nr_rng_make(6, 0, step), 1ull << 32, list, 5, 2);
		assert_true(is_permutation(list, 5));
		for (int k = 0; k < 2; k++) seen[list[k]]++;
	}
	for (int k = 0; k < 5; k++) assert_true(abs(seen[k] - 8000) < 350);      /* five standard deviations */
	int32_t all[3] = { 7, 8, 9 };
	nr_rng_sample(nr_rng_make(1, 0, 0), 0, all, 3, 0);
	assert_true(all[0] == 7 && all[1] == 8 && all[2] == 9);
}

static void seed_stream_and_step_each_change_the_draws(void **state)
{
	(void)state;
	float base = nr_rng_uniform(nr_rng_make(1, 2, 3), 4);
	assert_true(base != nr_rng_uniform(nr_rng_make(2, 2, 3), 4));
	assert_true(base != nr_rng_uniform(nr_rng_make(1 | 1ull << 40, 2, 3), 4));
	assert_true(base != nr_rng_uniform(nr_rng_make(1, 3, 3), 4));
	assert_true(base != nr_rng_uniform(nr_rng_make(1, 2, 4), 4));
	assert_true(base == nr_rng_uniform(nr_rng_make(1, 2, 3), 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(philox_gives_the_published_vectors),
		cmocka_unit_test(mapping_of_seed_stream_step_index_is_fixed),
		cmocka_unit_test(uniform_takes_words_in_order_and_stays_below_one),
		cmocka_unit_test(uniform_and_normal_have_their_moments),
		cmocka_unit_test(below_is_in_range_and_even),
		cmocka_unit_test(shuffle_makes_each_order_equally_often),
		cmocka_unit_test(a_sample_has_each_number_equally_often_and_loses_none),
		cmocka_unit_test(permute_is_a_permutation_of_any_size),
		cmocka_unit_test(permute_spreads_each_place_evenly),
		cmocka_unit_test(seed_stream_and_step_each_change_the_draws),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
