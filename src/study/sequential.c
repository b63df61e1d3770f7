/* Levels for repeated looks at a paired t test, so that all looks together reject a true null hypothesis with probability alpha.
 *
 * How much may be spent up to a look: Lan and DeMets' form of O'Brien and Fleming, a(f) = 2 (1 - Phi(z / sqrt f)) at the share f of
 * the values. What level spends it, given the looks before, is exact also for few values: under the null hypothesis the direction of
 * the n differences is uniform on a sphere, t = sqrt(n - 1) cot(theta) with its angle theta to (1, ..., 1), and
 * given the angle theta' of n + 1 values that of the first n is
 *
 *   tan theta = sqrt(n + 1) sin theta' sin psi / (sqrt n cos theta' - sin theta' cos psi),     density of psi: sin^(n-2) psi
 *
 * So g_n(theta), the probability that no look up to n stopped, follows by one integral from n to n + 1. */
#include <math.h>

#include "study/stats.h"

enum { GRID = 160, TURNS = 240, NODES = 360, EXACT = 64 };

/* g at theta = pi/2 (i / GRID)^3, finer where t is large; below cut it is zero. */
struct alive { double g[GRID + 1], cut; };

static double alive_at(const struct alive *s, double theta)
{
	if (theta > M_PI_2) theta = M_PI - theta;       /* both sides are alike */
	if (theta < s->cut) return 0;
	const double x = GRID * cbrt(theta / M_PI_2);
	const int i = x < GRID - 1 ? (int)x : GRID - 1;
	return s->g[i] + (x - i) * (s->g[i + 1] - s->g[i]);
}

static void one_more(struct alive *s, int64_t n)
{
	struct alive next = { .cut = 0 };
	double weight[TURNS], sum = 0;
	for (int j = 0; j < TURNS; j++) sum += weight[j] = pow(sin(M_PI * (j + 0.5) / TURNS), (double)(n - 2));
	for (int i = 0; i <= GRID; i++) {
		const double share = (double)i / GRID, theta = M_PI_2 * share * share * share;
		const double along = sqrt((double)n) * cos(theta), across = sin(theta), root = sqrt((double)(n + 1));
		for (int j = 0; j < TURNS; j++) {
			const double psi = M_PI * (j + 0.5) / TURNS;
			next.g[i] += weight[j] * alive_at(s, atan2(root * across * sin(psi), along - across * cos(psi)));
		}
		next.g[i] /= sum;
	}
	*s = next;
}

/* The two sided level at n values that stops with this probability; cuts what it stops. */
static double spend(struct alive *s, int64_t n, double probability)
{
	const double df = (double)(n - 1), ratio = pow(10, -1.0 / 30);  /* thirty tails a decade, from 0.5 down over twelve */
	double tail[NODES] = { 0 }, theta[NODES], below = 0;
	for (int k = 0; k < NODES; k++) {
		tail[k] = k ? tail[k - 1] * ratio : 0.5;
		theta[k] = atan2(sqrt(df), -nr_t_quantile(tail[k], df));
	}
	for (int k = NODES - 2; k >= 0; k--) {
		const double part = (tail[k] - tail[k + 1]) * (alive_at(s, theta[k]) + alive_at(s, theta[k + 1]));
		if (below + part >= probability && part > 0) {
			const double share = (probability - below) / part, u = tail[k + 1] + share * (tail[k] - tail[k + 1]);
			s->cut = atan2(sqrt(df), -nr_t_quantile(u, df));
			return 2 * u;
		}
		below += part;
	}
	s->cut = M_PI_2;
	return 1;
}

double nr_alpha_spent(double share, double alpha)
{
	return share >= 1 ? alpha : 2 * nr_normal_cdf(-nr_normal_quantile(1 - alpha / 2) / sqrt(share));
}

void nr_look_levels(const int64_t *n, int64_t looks, double alpha, double *level)
{
	struct alive s = { .cut = 0 };
	const int64_t most = looks ? n[looks - 1] : 0;
	double before = 0;
	for (int i = 0; i <= GRID; i++) s.g[i] = 1;
	for (int64_t k = 0, at = 2; k < looks; k++) {
		const double spent = nr_alpha_spent((double)n[k] / (double)most, alpha), now = spent - before;
		before = spent;
		for (; at < n[k] && most <= EXACT; at++) one_more(&s, at);
		level[k] = k && most <= EXACT ? spend(&s, n[k], now) : now;     /* the first is exact; many: each by itself is enough */
		if (!k) s.cut = atan2(sqrt((double)(n[k] - 1)), -nr_t_quantile(now / 2, (double)(n[k] - 1)));
		level[k] = fmin(level[k], alpha);       /* never more than a single test would have */
	}
}
