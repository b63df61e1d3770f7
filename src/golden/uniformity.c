/* metrics/uniformity: uniformity_tT[_y], alignment_aA for the T and A that the names give, spectrum,
 * effective rank. */
#include <string.h>

#include "analysis/uniformity.h"
#include "golden/check.h"

static struct nr_pairs pairs(struct golden_case *c, const struct golden_tensor *x, double t)
{
	struct nr_pairs p;
	if (nr_uniformity(x->d[0], x->d[1], x->x, t, &p, NULL)) golden_stop(c, x->name, "uniformity failed");
	return p;
}

static void spectrum(struct golden_case *c, const struct golden_tensor *x, int centred, const char *name)
{
	const int64_t n = x->d[0] < x->d[1] ? x->d[0] : x->d[1];
	double *s = golden_alloc(c, n, sizeof *s);
	real *out = golden_reals(c, n);
	if (nr_spectrum(x->d[0], x->d[1], x->x, centred, s, NULL))
		golden_stop(c, x->name, "no singular values");
	for (int64_t i = 0; i < n; i++) out[i] = (real)s[i];
	golden_check(c, "out", out, n, "%s", name);
	if (!centred) golden_check_value(c, "out", nr_effective_rank(n, s), "effective_rank");
}

int golden_metric_uniformity(struct golden_case *c)
{
	const struct golden_tensor x = golden_tensor(c, 2, "in.x"), y = golden_tensor(c, 2, "in.y");
	golden_expect(c, x.d[0] == y.d[0] && x.d[1] == y.d[1], "x and y");
	for (int64_t i = 0; i < nr_st_count(c->file); i++) {
		const char *name = nr_st_get(c->file, i)->name;
		double v;
		int end = 0;
		if (sscanf(name, "uniformity_t%lf%n", &v, &end) == 1 &&
			(!name[end] || !strcmp(name + end, "_y")))
			golden_check_value(c, "out", pairs(c, name[end] ? &y : &x, v).uniformity, "%s", name);
		else if (sscanf(name, "alignment_a%lf%n", &v, &end) == 1 && !name[end])
			golden_check_value(c, "out", nr_alignment(x.d[0], x.d[1], x.x, y.x, v), "%s", name);
	}
	const struct nr_pairs p = pairs(c, &x, 2);
	golden_check_value(c, "out", p.mean_cos, "mean_cos_no_diag");
	golden_check_value(c, "out", p.mean_sq, "spectral_mean_sq_no_diag");
	golden_check_value(c, "out", p.mean_sq_diagonal, "spectral_mean_sq_with_diag");
	spectrum(c, &x, 0, "singular_values");
	spectrum(c, &x, 1, "singular_values_centered");
	return GOLDEN_RAN;
}
