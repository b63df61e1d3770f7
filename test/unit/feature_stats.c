/* src/analysis/feature_stats.c: numpy's numbers of small sets, and what must hold. */
#include <math.h>

#include "unit/values.h"

#include "analysis/feature_stats.h"
#include "analysis/uniformity.h"

static real *from(uint32_t seed, int64_t n)
{
	value_seed = seed;
	return values(n);
}

static void near_to(const double *got, const double *want, int n, double bound)
{
	for (int i = 0; i < n; i++)
		if (!(fabs(got[i] - want[i]) <= bound * fmax(1, fabs(want[i])))) fail_msg("at %d: %.15g, want %.15g", i, got[i], want[i]);
}

static void mean_cosine_is_that_of_all_pairs(void **state)
{
	(void)state;
	real *x = from(1, 9 * 4), zeros[8] = { 1, 0, 0, 0, 0, 1 }; /* rows of 2: e1, 0, e2' = (0,1), 0 */
	double got, want = 0.0492889249892373;
	struct nr_pairs pairs;
	assert_int_equal(nr_mean_cosine(9, 4, x, &got, NULL), 0);
	near_to(&got, &want, 1, 1e-13);
	assert_int_equal(nr_uniformity(9, 4, x, 2, &pairs, NULL), 0);
	assert_true(fabs(pairs.mean_cos - got) < 1e-6);
	assert_int_equal(nr_mean_cosine(4, 2, zeros, &got, NULL), 0);
	assert_true(got == 0);
	assert_int_equal(nr_mean_cosine(1, 4, x, &got, NULL), 0);
	assert_true(got == 0);
	x[3] = (real)NAN;
	assert_int_equal(nr_mean_cosine(9, 4, x, &got, NULL), NR_EVALUE);
	free(x);
}

static void outlier_channels_are_found_by_mean_and_by_one_value(void **state)
{
	(void)state;
	static const double mean[] = { 2.54287384636393, 0.329321458493084, 28.9222833449074, 0.159026704722406 };
	static const double most[] = { 21.7478134191429, 1.75986613572256, 30.3514592899117, 1.79621421410336 };
	real *x = from(3, 10 * 4);
	double mean_over[4], max_over[4];
	const double scale = 0.275889804844411;
	struct nr_outliers o;
	for (int i = 0; i < 10; i++) x[4 * i + 2] += 8;
	x[4 * 4] = -6;
	assert_int_equal(nr_outlier_channels(10, 4, x, 6, mean_over, max_over, &o, NULL), 0);
	near_to(&o.scale, &scale, 1, 1e-13);
	near_to(mean_over, mean, 4, 1e-13);
	near_to(max_over, most, 4, 1e-13);
	assert_int_equal(o.by_mean, 1);
	assert_int_equal(o.by_max, 2);
	assert_int_equal(o.worst, 2);
	for (int i = 0; i < 40; i++) x[i] = i % 4 == 1 ? 5 : 0; /* constant channels: the deviation of all values */
	assert_int_equal(nr_outlier_channels(10, 4, x, 2, mean_over, max_over, &o, NULL), 0);
	assert_true(fabs(o.scale - 5 * sqrt(3) / 4) < 1e-14);
	assert_int_equal(o.by_mean, 1);
	memset(x, 0, 40 * sizeof *x);
	assert_int_equal(nr_outlier_channels(10, 4, x, 2, mean_over, max_over, &o, NULL), 0);
	assert_int_equal(o.by_max, 0);
	free(x);
}

static void variation_is_numpys_for_every_mean(void **state)
{
	(void)state;
	static const double want[3][3] = { { 1.88180924999145, 1.69921598471047, 2.19504500245066 },
		{ 2.82149778729953, 2.00053168823066, 1.30104211425603 }, { 1.85617182916467, 1.66436752276067, 1.63860894286235 } };
	real *x = from(11, 2 * 3 * 4), *mu = blank(24);
	double token[6];
	struct nr_variation v;
	for (int of = NR_MEAN_LAYER; of <= NR_MEAN_BATCH; of++) {
		assert_int_equal(nr_variation_coefficient(2, 3, 4, x, (enum nr_mean_of)of, NULL, token, &v, NULL), 0);
		near_to((double[]){ v.mean, v.median, token[5] }, want[of], 3, 1e-13);
		assert_int_equal(v.zeros, 0);
	}
	memcpy(mu, x, 24 * sizeof *x); /* a mean that is the token itself: nothing is left but one channel of one token */
	mu[6] = 0;
	assert_int_equal(nr_variation_coefficient(2, 3, 4, x, NR_MEAN_GIVEN, mu, token, &v, NULL), 0);
	for (int t = 0; t < 6; t++) assert_true(token[t] == (t == 1));
	x[0] = 0;
	assert_int_equal(nr_variation_coefficient(2, 3, 4, x, NR_MEAN_LAYER, NULL, NULL, &v, NULL), 0);
	assert_true(v.zeros == 1 && isfinite(v.mean));
	assert_int_equal(nr_variation_coefficient(2, 3, 4, x, NR_MEAN_GIVEN, NULL, NULL, &v, NULL), NR_EUSAGE);
	free(x);
	free(mu);
}

static void magnitudes_are_numpys_in_every_head(void **state)
{
	(void)state;
	static const double want[] = { 0.342733088720587, 0.407999982940245, 0.488924966197178, 0.450210477012366, 0.468524945056572,
		0.36803011540988, 0.201962695348578, 0.109624794780905, 0.439858832494901, 0.142979658345749, 0.196267472028441,
		0.538310730900858 };
	static const double want_spread[] = { 0.350047847874268, 0.350337181189622 };
	real *x = from(11, 2 * 3 * 4);
	double out[12], spread[2];
	assert_int_equal(nr_token_magnitude(2, 3, 4, 2, x, out, spread, NULL), 0);
	near_to(out, want, 12, 1e-13);
	near_to(spread, want_spread, 2, 1e-13);
	assert_int_equal(nr_token_magnitude(2, 3, 4, 3, x, out, NULL, NULL), NR_ESHAPE);
	free(x);
}

static void quantiles_are_numpys(void **state)
{
	(void)state;
	static const double want[] = { -0.360455930233002, -0.313939273357391, -0.168069332838058, -0.0547894239425659, 0.168531537055969,
		0.254515916109085, 0.281475883722305, -0.308281260728836, -0.274790197610855, -0.197657823562622, -0.0399913787841797,
		0.208377093076706, 0.401609539985657, 0.419498944282532 };
	real *x = from(21, 11 * 3);
	double out[3 * NR_QUANTILES];
	assert_int_equal(nr_distribution(11, 3, x, 2, out, NULL), 0);
	near_to(out, want, 2 * NR_QUANTILES, 1e-13);
	assert_int_equal(nr_distribution(1, 3, x, 3, out, NULL), 0);
	for (int q = 0; q < NR_QUANTILES; q++) assert_true(out[q] == (double)x[0]);
	assert_int_equal(nr_distribution(11, 3, x, 4, out, NULL), NR_ESHAPE);
	x[4] = (real)INFINITY;
	assert_int_equal(nr_distribution(11, 3, x, 3, out, NULL), NR_EVALUE);
	free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mean_cosine_is_that_of_all_pairs),
		cmocka_unit_test(outlier_channels_are_found_by_mean_and_by_one_value),
		cmocka_unit_test(variation_is_numpys_for_every_mean),
		cmocka_unit_test(magnitudes_are_numpys_in_every_head),
		cmocka_unit_test(quantiles_are_numpys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
