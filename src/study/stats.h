/* Statistics of a study: intervals and tests on few values, one for each seed. All in double, nothing is printed. */
#ifndef NR_STATS_H
#define NR_STATS_H

#include <stdint.h>

/* ---- distributions (distributions.c) ----------------------------------------------------------------------------------- */

/* I_x(a, b), the regularized incomplete beta function; a, b > 0. */
double nr_beta_inc(double a, double b, double x);
double nr_normal_cdf(double z);
double nr_normal_quantile(double p);
double nr_t_cdf(double t, double df);
double nr_t_quantile(double p, double df);
/* P(T <= t) of a noncentral t: what a test statistic follows when the true effect is not zero. */
double nr_noncentral_t_cdf(double t, double df, double delta);

/* ---- one sample (samples.c) -------------------------------------------------------------------------------------------- */

struct nr_sample {
	int64_t n;
	double mean, sd;                    /* sd: of n - 1; NAN below two values */
	double half;                        /* of the 95 % t interval; NAN below two values */
};
struct nr_sample nr_sample(const double *, int64_t n);

/* Two sided p of "the mean is zero"; 1 if all values are zero, NAN below two values. */
double nr_t_test(const double *, int64_t n);
/* Wilcoxon's signed-rank test, two sided. Zeros are dropped, ties share their ranks; up to 50 values the p-value is that of all
 * 2^n signs (exact also with ties), above by the normal approximation. 1 if nothing is left. */
double nr_wilcoxon(const double *, int64_t n);

/* Holm's step-down correction in place: p of a family of m tests; NAN entries are not part of it. */
void nr_holm(double *p, int64_t m);

/* Power of the two sided paired t test with n pairs at level alpha if the mean difference is `effect` standard deviations. */
double nr_t_power(double effect, int64_t n, double alpha);
/* Fewest pairs with that power; 0: more than `most`. */
int64_t nr_t_pairs(double effect, double power, double alpha, int64_t most);

/* ---- looks before the end (sequential.c) -------------------------------------------------------------------------------- */

/* Of alpha, what may be spent when this share of the values is there. */
double nr_alpha_spent(double share, double alpha);
/* The level of the two sided paired t test at each look, after n[0] < n[1] < ... values (from 2 on); the last is the most. All
 * looks together reject a true null hypothesis with probability alpha; with more than 64 values with less than alpha. */
void nr_look_levels(const int64_t *n, int64_t looks, double alpha, double *level);

#endif
