/* Normal and Beta draws. The Gamma sampler is that of Marsaglia & Tsang, "A simple method for generating gamma variables",
 * ACM TOMS 2000; in logarithms, since both gammas underflow for a small alpha. */
#include "base/draws.h"

#include <math.h>

double nr_draw_normal(struct nr_draws *d)
{
	uint32_t w[4];
	nr_rng_block(d->rng, d->next++, w);
	return sqrt(-2 * log((w[0] + 1.0) * 0x1p-32)) * cos(2 * M_PI * (w[1] * 0x1p-32));
}

/* log of a Gamma(a) value. For a < 1: Gamma(a+1) U^(1/a). */
static double log_gamma_draw(struct nr_draws *d, double a)
{
	if (a < 1) {
		const double u = log(1 - nr_draw(d));
		return log_gamma_draw(d, a + 1) + u / a;
	}
	const double k = a - 1.0 / 3, c = 1 / sqrt(9 * k);
	for (;;) {
		const double x = nr_draw_normal(d), t = 1 + c * x, u = 1 - nr_draw(d);
		if (t <= 0) continue;
		const double v = t * t * t;
		if (log(u) < 0.5 * x * x + k * (1 - v + log(v))) return log(k) + log(v);
	}
}

double nr_draw_beta(struct nr_draws *d, double alpha)
{
	const double x = log_gamma_draw(d, alpha), y = log_gamma_draw(d, alpha);
	return 1 / (1 + exp(y - x));
}
