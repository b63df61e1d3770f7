/* bfloat16: rounding to nearest even, special values, every set against the scalar. */
#include "unit/values.h"

#include "math/bf16.h"
#include "math/row.h"

static float of_bits(uint32_t u)
{
	float x;
	memcpy(&x, &u, sizeof x);
	return x;
}

static void rounding_is_to_nearest_and_ties_to_even(void **state)
{
	(void)state;
	assert_int_equal(nr_bf16_of(1.f), 0x3f80);
	assert_int_equal(nr_bf16_of(of_bits(0x3f808000)), 0x3f80); /* a tie, down to even */
	assert_int_equal(nr_bf16_of(of_bits(0x3f818000)), 0x3f82); /* a tie, up to even */
	assert_int_equal(nr_bf16_of(of_bits(0x3f808001)), 0x3f81);
	assert_int_equal(nr_bf16_of(of_bits(0x3f817fff)), 0x3f81);
	assert_int_equal(nr_bf16_of(-0.f), 0x8000);
	assert_int_equal(nr_bf16_of(of_bits(0x00018000)), 0x0002); /* denormal */
}

static void overflow_is_inf_and_nan_stays_nan(void **state)
{
	(void)state;
	assert_int_equal(nr_bf16_of(of_bits(0x7f7fffff)), 0x7f80);
	assert_int_equal(nr_bf16_of(-INFINITY), 0xff80);
	assert_true(isnan(nr_bf16_float(nr_bf16_of(of_bits(0x7f800001))))); /* the payload sits in the lost half */
	assert_true(isnan(nr_bf16_float(nr_bf16_of(of_bits(0xffffffff)))));
}

static void every_bf16_survives_the_way_to_float_and_back(void **state)
{
	(void)state;
	for (uint32_t h = 0; h < 0x10000; h++) {
		const float x = nr_bf16_float((uint16_t)h);
		if (!isnan(x)) assert_int_equal(nr_bf16_of(x), h);
	}
}

static void arrays_agree_with_the_scalar_on_every_set(void **state)
{
	(void)state;
	const int64_t sizes[] = { 0, 1, 3, 8, 15, 17, 33, 1000, 40000 };
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
			const int64_t n = sizes[k];
			real *x = values(n), *y = blank(n);
			uint16_t *h = calloc((size_t)n + 1, sizeof *h);
			for (int64_t i = 0; i < n; i++) x[i] = i % 7 ? x[i] : of_bits((uint32_t)i * 2654435761u);
			h[n] = 0xbeef;
			nr_bf16_pack(n, x, h);
			for (int64_t i = 0; i < n; i++) assert_int_equal(h[i], nr_bf16_of(x[i]));
			assert_int_equal(h[n], 0xbeef);
			nr_bf16_unpack(n, h, y);
			for (int64_t i = 0; i < n; i++) {
				const real want = nr_bf16_float(h[i]);
				assert_memory_equal(&y[i], &want, sizeof want);
			}
			free(x), free(y), free(h);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounding_is_to_nearest_and_ties_to_even),
		cmocka_unit_test(overflow_is_inf_and_nan_stays_nan),
		cmocka_unit_test(every_bf16_survives_the_way_to_float_and_back),
		cmocka_unit_test(arrays_agree_with_the_scalar_on_every_set),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
