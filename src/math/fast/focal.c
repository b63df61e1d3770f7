/* Focal loss in vectors, for the exponents 2 and 0 that are in use; others go the plain way. See ../focal.h. */
#include "math/focal.h"

#include "math/fast/vec.h"

/* n logits that should be low; p: how probably each is high. */
INL vf lanes_low(const int squared, int64_t n, const float *x, vf alpha, float *slope)
{
	const vf v = get(x, n), e = vexp(-vabs(v)), share = 1.f / (1.f + e);
	const vf p = vsel(v > 0, bc(1), e) * share, q = vsel(v > 0, e, bc(1)) * share;
	const vf log_hit = -VMAX(v, bc(0)) - vlog1p(e), by = squared ? alpha * p * p : alpha;
	if (slope) set(slope, by * (squared ? p - 2.f * q * log_hit : p), n);
	return -by * log_hit;
}

INL double all_low(const int squared, int64_t n, const float *x, double alpha, float *slope)
{
	const vf by = bc((float)alpha);
	vf sum = { 0 };
	int64_t i = 0;
	for (; i < down(n); i += VL) sum += lanes_low(squared, VL, x + i, by, slope ? slope + i : NULL);
	if (i < n) {
		const vf last = lanes_low(squared, n - i, x + i, by, slope ? slope + i : NULL);
		sum += vsel(lanes(n - i), last, bc(0));
	}
	return (double)hsum(sum);
}

static double low(int64_t n, const float *x, double alpha, double gamma, float *slope)
{
	if (gamma == 2) return all_low(1, n, x, alpha, slope);
	if (gamma == 0) return all_low(0, n, x, alpha, slope);
	return nr_focal_plain.low(n, x, alpha, gamma, slope);
}

const struct nr_focal_kernels NR_FAST(focal) = { low };
