/* metrics/uniformity: uniformity_tT[_y], alignment_aA for the T and A that the names give, spectrum,
 * effective rank. */
#include <string.h>

#include "analysis/uniformity.h"
#include "golden/check.h"
#include "norma/nn.h"

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

/* text/uniformity: SepNorm's Eq. 4 as metric and as loss with its gradient, and the alignment with h_pos. */
int golden_model_uniformity(struct golden_case *c)
{
	const struct golden_tensor h = golden_tensor(c, 2, "param.h"), pos = golden_tensor(c, 2, "in.h_pos");
	struct nr_store *store = NULL;
	struct nr_plan *plan = NULL;
	struct nr_error err = { 0 };
	golden_expect(c, h.d[0] == pos.d[0] && h.d[1] == pos.d[1], "h and h_pos");
	golden_check_value(c, "out", pairs(c, &h, 2).uniformity, "out.uniformity");
	golden_check_value(c, "out", nr_alignment(h.d[0], h.d[1], h.x, pos.x, 2), "out.alignment");
	nr_store_make(&store, 1, &err);
	struct nr_net *n = store ? nr_net_make(store) : NULL;
	nr_t *x = n ? nr_input(n, "h", NR_REAL, 2, h.d[0], h.d[1]) : NULL;
	if (x) x->flags |= NR_GRAD;
	nr_t *loss = x ? nr_pair_loss(n, x, (struct nr_pair_options){ .kind = NR_PAIRS_GAUSS, .normalize = 1 }) : NULL;
	if (loss && !nr_plan_make(&plan, n, loss, NR_PLAN_TRAIN, &err)) {
		memcpy(nr_plan_data(plan, x), h.x, (size_t)h.n * sizeof *h.x);
		nr_plan_run(plan, &(struct nr_exec){ .train = 1 }, NR_RUN_FORWARD | NR_RUN_BACKWARD);
		golden_check_value(c, "loss", (double)*(const real *)nr_plan_data(plan, loss), "out.loss");
		golden_check(c, "grad", nr_plan_grad(plan, x), h.n, "grad.h");
	} else {
		golden_fail(c, "param.h", "cannot record the loss");
	}
	nr_plan_free(plan);
	nr_net_free(n);
	nr_store_free(store);
	return GOLDEN_RAN;
}
