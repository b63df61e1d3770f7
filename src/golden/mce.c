/* metrics/mce: corruption error against AlexNet's, plain and relative to the clean error. */
#include "golden/check.h"
#include "infer/metrics.h"

int golden_metric_mce(struct golden_case *c)
{
	const struct golden_tensor error = golden_tensor(c, 2, "in.error");
	const int64_t n = error.d[0];
	double *base = golden_alloc(c, n, sizeof *base), *ce = golden_alloc(c, n, sizeof *ce);
	double *relative = golden_alloc(c, n, sizeof *relative);
	real *out = golden_reals(c, n);
	for (int64_t i = 0; i < n; i++) out[i] = (real)(base[i] = golden_item(c, "alexnet_error", (size_t)i));
	golden_check(c, "out", out, n, "alexnet_error");
	const struct nr_mce r = nr_metric_mce(n, error.d[1], error.x, base, golden_number(c, "clean_error"),
		golden_number(c, "alexnet_clean_error"), ce, relative);
	for (int64_t i = 0; i < n; i++) out[i] = (real)ce[i];
	golden_check(c, "out", out, n, "ce");
	for (int64_t i = 0; i < n; i++) out[i] = (real)relative[i];
	golden_check(c, "out", out, n, "relative_ce");
	golden_check_value(c, "out", r.mce, "mce");
	golden_check_value(c, "out", r.relative_mce, "relative_mce");
	golden_check_value(c, "out", r.unnormalised, "unnormalised_mce");
	return GOLDEN_RAN;
}
