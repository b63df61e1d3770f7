/* study/distributions.c and study/samples.c against scipy 1.17 (special.betainc, stats.norm, t, nct, ttest_1samp, wilcoxon with
 * all permutations). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "study/stats.h"

static void near(double got, double want, double share)
{
	if (fabs(got - want) <= share * fabs(want)) return;
	fail_msg("%.17g instead of %.17g", got, want);
}

static void incomplete_beta_equals_scipy(void **state)
{
	(void)state;
	near(nr_beta_inc(0.5, 0.5, 0.3), 0.36901011956554536, 1e-13);
	near(nr_beta_inc(2, 3, 0.1), 0.05230000000000001, 1e-13);
	near(nr_beta_inc(10, 0.5, 0.99), 0.6579281751567845, 1e-13);
	near(nr_beta_inc(50, 50, 0.45), 0.1586521989370985, 1e-12);
	near(nr_beta_inc(0.1, 5, 1e-4), 0.4870017223509282, 1e-13);
	assert_true(nr_beta_inc(2, 3, 0) == 0 && nr_beta_inc(2, 3, 1) == 1);
}

static void quantiles_equal_scipy(void **state)
{
	(void)state;
	near(nr_normal_quantile(0.975), 1.959963984540054, 1e-13);
	near(nr_normal_quantile(0.8), 0.8416212335729143, 1e-13);
	near(nr_normal_quantile(1e-10), -6.361340902404056, 1e-12);
	near(nr_normal_quantile(0.0013), -3.0114537584997843, 1e-12);
	assert_true(fabs(nr_normal_quantile(0.5)) < 1e-12);
	near(nr_t_quantile(0.975, 1), 12.706204736174694, 1e-12);
	near(nr_t_quantile(0.975, 2), 4.302652729749462, 1e-12);
	near(nr_t_quantile(0.975, 4), 2.7764451051977934, 1e-12);
	near(nr_t_quantile(0.995, 9), 3.249835541592126, 1e-12);
	near(nr_t_quantile(0.8, 3), 0.9784723123633042, 1e-12);
	near(nr_t_quantile(0.6, 30), 0.2556053649519128, 1e-11);
	near(nr_t_quantile(1e-6, 5), -24.771029720515948, 1e-11);
	near(nr_t_quantile(0.975, 1e4), 1.960201239890626, 1e-10);
	assert_true(isinf(nr_t_quantile(1, 3)) && isnan(nr_t_quantile(2, 3)));
}

static void distribution_functions_equal_scipy(void **state)
{
	(void)state;
	near(nr_t_cdf(-2.5, 4), 0.03338327240599407, 1e-12);
	near(nr_t_cdf(0.3, 1), 0.5927735790777423, 1e-12);
	near(nr_t_cdf(12, 2), 0.9965635331614208, 1e-12);
	near(nr_t_cdf(-30, 9), 1.2418523520791317e-10, 1e-11);
	near(nr_noncentral_t_cdf(2.776, 4, 1.5), 0.7873063488409302, 1e-9);
	near(nr_noncentral_t_cdf(2.0, 9, 2.8), 0.2187592869381154, 1e-9);
	near(nr_noncentral_t_cdf(12.7, 1, 3), 0.813803218007604, 1e-8);
	near(nr_noncentral_t_cdf(-2.0, 9, 1.0), 0.003563495088947093, 1e-8);
	near(nr_noncentral_t_cdf(1.96, 200, 2.8), 0.20089203329402186, 1e-9);
}

static const double a[] = { 0.5, 0.8, 1.1, 0.2, 0.9 }, b[] = { 0.3, -0.1, 0.4, 0.2, -0.2 }, ties[] = { 1, 1, -1, 2, 2, -3 },
	zeros[] = { 0, 0, 1, 2, -1.5, 3 }, six[] = { .31, .25, .44, .29, .37, .33 };

static void intervals_equal_scipy(void **state)
{
	(void)state;
	const struct nr_sample s = nr_sample(a, 5), t = nr_sample(six, 6);
	near(s.mean, 0.7, 1e-14);
	near(s.sd, 0.3535533905932738, 1e-14);
	near(s.half, 0.4389945165425414, 1e-12);
	near(t.half, 0.06974340088319374, 1e-12);
	const struct nr_sample one = nr_sample(a, 1), none = nr_sample(a, 0);
	assert_true(one.mean == 0.5 && isnan(one.half) && isnan(none.mean) && none.n == 0);
}

static void paired_t_equals_scipy(void **state)
{
	(void)state;
	near(nr_t_test(a, 5), 0.011446913230354362, 1e-12);
	near(nr_t_test(b, 5), 0.3584563446229639, 1e-12);
	near(nr_t_test(ties, 6), 0.6951922959317111, 1e-12);
	near(nr_t_test(six, 6), 6.479014592223367e-05, 1e-11);
	const double same[] = { 2, 2, 2 }, nothing[] = { 0, 0 };
	assert_true(nr_t_test(same, 3) == 0 && nr_t_test(nothing, 2) == 1 && isnan(nr_t_test(a, 1)));
}

static void wilcoxon_is_exact_with_ties_and_zeros(void **state)
{
	(void)state;
	near(nr_wilcoxon(a, 5), 0.0625, 1e-14);
	near(nr_wilcoxon(b, 5), 0.375, 1e-14);
	near(nr_wilcoxon(ties, 6), 0.625, 1e-14);
	near(nr_wilcoxon(zeros, 6), 0.375, 1e-14);
	near(nr_wilcoxon(six, 6), 0.03125, 1e-14);
	const double nothing[] = { 0, 0 };
	assert_true(nr_wilcoxon(nothing, 2) == 1);
	double many[60];                                /* above 50 the normal approximation */
	int64_t n = 0;
	for (int i = 0; i < 60; i++)
		if ((i * 37) % 61 != 25) many[n++] = ((i * 37) % 61 - 25) / 7.0;
	assert_int_equal(n, 59);
	near(nr_wilcoxon(many, n), 0.0393246482200441, 1e-12);
}

static void holm_steps_down_and_leaves_gaps_alone(void **state)
{
	(void)state;
	double p[] = { 0.01, NAN, 0.04, 0.03, 0.005 };
	nr_holm(p, 5);
	near(p[4], 0.02, 1e-14);
	near(p[0], 0.03, 1e-14);
	near(p[3], 0.06, 1e-14);
	near(p[2], 0.06, 1e-14);                        /* never below a smaller one's */
	assert_true(isnan(p[1]));
	double large[] = { 0.9, 0.8 };
	nr_holm(large, 2);
	assert_true(large[0] == 1 && large[1] == 1);
}

static void power_equals_scipy(void **state)
{
	(void)state;
	near(nr_t_power(1, 5, .05), 0.4013899173717953, 1e-8);
	near(nr_t_power(0.5, 30, .05), 0.7539647157437905, 1e-8);
	near(nr_t_power(2, 4, .01), 0.30767608302780686, 1e-8);
	near(nr_t_power(-0.2, 100, .05), 0.5082648066210378, 1e-8);
}

static void fewest_pairs_equal_a_plain_search(void **state)
{
	(void)state;
	assert_int_equal(nr_t_pairs(1, .8, .05, 1000), 10);
	assert_int_equal(nr_t_pairs(.5, .8, .05, 1000), 34);
	assert_int_equal(nr_t_pairs(-.2, .8, .05, 1000), 199);
	assert_int_equal(nr_t_pairs(3, .8, .01, 1000), 5);
	assert_int_equal(nr_t_pairs(.1, .8, .05, 1000), 787);
	assert_int_equal(nr_t_pairs(.1, .8, .05, 700), 0);
	assert_int_equal(nr_t_pairs(0, .8, .05, 1000), 0);
	assert_int_equal(nr_t_pairs(INFINITY, .8, .05, 1000), 2);
}

/* Uniform in (0, 1): a fixed sequence. */
static double uniform(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

/* Of many studies without a true difference, the share that a look calls different. */
static double false_positives(const int64_t *n, int64_t looks, const double *level, int studies, uint64_t seed)
{
	double limit[16];
	int stopped = 0;
	for (int64_t k = 0; k < looks; k++) limit[k] = nr_t_quantile(1 - level[k] / 2, (double)(n[k] - 1));
	for (int s = 0; s < studies; s++) {
		double sum = 0, squares = 0;
		int64_t have = 0;
		for (int64_t k = 0; k < looks; k++) {
			for (; have < n[k]; have++) {
				const double x = sqrt(-2 * log(uniform(&seed))) * cos(2 * M_PI * uniform(&seed));
				sum += x;
				squares += x * x;
			}
			const double mean = sum / (double)have, var = (squares - (double)have * mean * mean) / (double)(have - 1);
			if (fabs(mean) < limit[k] * sqrt(var / (double)have)) continue;
			stopped++;
			break;
		}
	}
	return (double)stopped / studies;
}

static void peeking_does_not_raise_false_positives(void **state)
{
	(void)state;
	enum { STUDIES = 40000 };
	static const struct { int64_t n[9], looks; double alpha; } plan[] = {
		{ { 2, 3, 4, 5 }, 4, 0.05 }, { { 2, 3, 4, 5, 6, 7, 8, 9, 10 }, 9, 0.05 }, { { 5, 10, 20 }, 3, 0.025 },
		{ { 3, 8, 64 }, 3, 0.05 }, { { 3, 8, 80 }, 3, 0.05 },
	};
	for (size_t i = 0; i < sizeof plan / sizeof *plan; i++) {
		double level[9], naive[9];
		nr_look_levels(plan[i].n, plan[i].looks, plan[i].alpha, level);
		for (int64_t k = 0; k < plan[i].looks; k++) {
			naive[k] = plan[i].alpha;
			assert_true(level[k] <= plan[i].alpha && (!k || level[k] > level[k - 1]));
		}
		const double noise = 3.3 * sqrt(plan[i].alpha / STUDIES);
		const double share = false_positives(plan[i].n, plan[i].looks, level, STUDIES, 88172645463325252u);
		if (share > plan[i].alpha + noise || share < plan[i].alpha * 0.9 - noise) fail_msg("plan %zu: %g", i, share);
		assert_true(false_positives(plan[i].n, plan[i].looks, naive, STUDIES, 1234567u) > 1.5 * plan[i].alpha);   /* uncorrected */
	}
}

static void the_first_look_spends_what_it_may(void **state)
{
	(void)state;
	double level[2];
	nr_look_levels((const int64_t[]){ 10 }, 1, 0.05, level);        /* one look only: the plain test */
	assert_true(fabs(level[0] - 0.05) < 1e-12);
	nr_look_levels((const int64_t[]){ 5, 10 }, 2, 0.05, level);
	assert_true(fabs(level[0] - nr_alpha_spent(0.5, 0.05)) < 1e-12);
	assert_true(fabs(level[0] - 0.0055746) < 1e-6);                  /* 2 (1 - Phi(1.959964 sqrt 2)) */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(incomplete_beta_equals_scipy),
		cmocka_unit_test(quantiles_equal_scipy),
		cmocka_unit_test(distribution_functions_equal_scipy),
		cmocka_unit_test(intervals_equal_scipy),
		cmocka_unit_test(paired_t_equals_scipy),
		cmocka_unit_test(wilcoxon_is_exact_with_ties_and_zeros),
		cmocka_unit_test(holm_steps_down_and_leaves_gaps_alone),
		cmocka_unit_test(power_equals_scipy),
		cmocka_unit_test(fewest_pairs_equal_a_plain_search),
		cmocka_unit_test(peeking_does_not_raise_false_positives),
		cmocka_unit_test(the_first_look_spends_what_it_may),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
