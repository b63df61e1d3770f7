/* Normal, Student's t and noncentral t: see stats.h. */
#include <math.h>

#include "study/stats.h"

/* lgamma of libm writes a global; this one does not. */
static double log_gamma(double x)
{
	int sign;
	return lgamma_r(x, &sign);
}

/* Lentz's continued fraction of I_x(a, b); converges fast for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1);
	d = 1 / (fabs(d) < tiny ? tiny : d);
	double h = d;
	for (int m = 1; m < 10000; m++) {
		const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step = 1;
		for (int half = 0; half < 2; half++) {
			const double k = half ? odd : even;
			d = 1 + k * d;
			c = 1 + k / c;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = fabs(c) < tiny ? tiny : c;
			step = c * d;
			h *= step;
		}
		if (fabs(step - 1) < 1e-16) break;
	}
	return h;
}

double nr_beta_inc(double a, double b, double x)
{
	if (!(x > 0)) return isnan(x) ? x : 0;
	if (x >= 1) return 1;
	const double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double nr_normal_cdf(double z) { return 0.5 * erfc(-z * M_SQRT1_2); }

/* A root of a rising function between low and high, by halving: 200 halvings end at neighbouring doubles. */
static double root(double (*f)(double, double), double parameter, double p, double low, double high)
{
	for (int i = 0; i < 200; i++) {
		const double mid = 0.5 * (low + high);
		if (mid <= low || mid >= high) break;
		if (f(mid, parameter) < p) low = mid;
		else high = mid;
	}
	return 0.5 * (low + high);
}

static double normal_of(double z, double unused)
{
	(void)unused;
	return nr_normal_cdf(z);
}

/* Upper tails by symmetry, so that p near 1 keeps its digits. */
double nr_normal_quantile(double p)
{
	if (!(p > 0 && p < 1)) return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
	return p > 0.5 ? -root(normal_of, 0, 1 - p, -40, 0) : root(normal_of, 0, p, -40, 0);
}

double nr_t_cdf(double t, double df)
{
	if (isnan(t) || !(df > 0)) return NAN;
	if (isinf(t)) return t > 0;
	const double tail = 0.5 * nr_beta_inc(0.5 * df, 0.5, df / (df + t * t));
	return t > 0 ? 1 - tail : tail;
}

double nr_t_quantile(double p, double df)
{
	if (!(p > 0 && p < 1)) return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
	const double q = p > 0.5 ? 1 - p : p;
	double low = -1;
	while (nr_t_cdf(low, df) > q && low > -1e300) low *= 2;
	const double t = root(nr_t_cdf, df, q, low, 0);
	return p > 0.5 ? -t : t;
}

/* The mean of Phi(t s - delta) over s = chi / sqrt(df), whose density is steep around 1: Simpson's rule on the stretch that holds
 * all but 1e-16 of it. */
double nr_noncentral_t_cdf(double t, double df, double delta)
{
	enum { STEPS = 4000 };
	if (isnan(t) || isnan(delta) || !(df > 0)) return NAN;
	const double spread = 12 / sqrt(2 * df), low = spread < 1 ? 1 - spread : 0, high = 1 + spread, step = (high - low) / STEPS;
	const double scale = M_LN2 + 0.5 * df * log(0.5 * df) - log_gamma(0.5 * df);
	double sum = 0;
	for (int i = 0; i <= STEPS; i++) {
		const double s = low + i * step, weight = i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2;
		double density = 0;
		if (s > 0) density = exp(scale + (df - 1) * log(s) - 0.5 * df * s * s);
		else if (df == 1) density = exp(scale);
		sum += weight * density * nr_normal_cdf(t * s - delta);
	}
	return fmin(1, sum * step / 3);
}
