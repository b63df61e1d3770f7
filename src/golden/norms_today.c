/* Facts about norms: where eps stands, how repbn folds, what taper is calibrated to. That pre-LN, pre-RMS and pre-CRMS are one model is
 * crms_law.c. */
#include <math.h>
#include <string.h>

#include "golden/replay.h"
#include "models/block.h"
#include "norma/norm.h"

/* y of a norm on (1,rows,C), in evaluation, with the values of `set` for its entries. */
struct setting { const char *name; const real *values; int64_t count; };

static real *apply(struct golden_case *c, const char *text, const struct golden_tensor *x, const struct setting *set, int n)
{
	struct nr_error err = { 0 };
	struct nr_store *store;
	struct nr_plan *plan;
	char line[512];
	const int64_t C = x->d[x->nd - 1], rows = x->n / C;
	nr_store_make(&store, 0, &err);
	struct nr_net *net = nr_net_make(store);
	nr_t *in = nr_input(net, "x", NR_REAL, NR_SHAPE(1, rows, C)), *y = nr_norm_make(net, "", text, in);
	if (nr_plan_make(&plan, net, y, 0, &err)) golden_stop(c, NULL, "%s", nr_error_text(&err, line, sizeof line));
	for (int i = 0; i < n; i++) memcpy(nr_value(nr_store_find(store, set[i].name)), set[i].values, (size_t)set[i].count * sizeof(real));
	memcpy(nr_plan_data(plan, in), x->x, (size_t)x->n * sizeof(real));
	nr_plan_run(plan, &(struct nr_exec){ 0 }, NR_RUN_FORWARD);
	real *out = golden_reals(c, x->n);
	memcpy(out, nr_plan_data(plan, y), (size_t)x->n * sizeof(real));
	nr_plan_free(plan);
	nr_net_free(net);
	nr_store_free(store);
	return out;
}

/* ---- eps_place ------------------------------------------------------------------------------------------------------ */

/* eps outside the root: ours with eps 0, times s / (s + eps), where s is what it divides by. */
static void outside(struct golden_case *c, const struct golden_tensor *x, const char *norm, int center, double eps, const char *name)
{
	const int64_t C = x->d[x->nd - 1];
	real *y = apply(c, norm, x, NULL, 0);
	for (int64_t r = 0; r < x->n / C; r++) {
		double mean = 0, square = 0;
		for (int64_t i = 0; center && i < C; i++) mean += (double)x->x[r * C + i] / (double)C;
		for (int64_t i = 0; i < C; i++) square += ((double)x->x[r * C + i] - mean) * ((double)x->x[r * C + i] - mean) / (double)C;
		const double s = sqrt(square);
		for (int64_t i = 0; i < C; i++) y[r * C + i] *= (real)(s / (s + eps));
	}
	golden_check(c, "out", y, x->n, "%s", name);
}

int golden_metric_eps_place(struct golden_case *c)
{
	const struct golden_tensor x = golden_tensor(c, -1, "in.x");
	const double eps = golden_number(c, "eps");
	const char *inside = nr_arena_printf(c->arena, "eps=%.17g", eps);
	golden_check(c, "out", apply(c, nr_arena_printf(c->arena, "layer:%s", inside), &x, NULL, 0), x.n, "layer_inside");
	golden_check(c, "out", apply(c, nr_arena_printf(c->arena, "rms:%s", inside), &x, NULL, 0), x.n, "rms_inside");
	golden_check(c, "out", apply(c, nr_arena_printf(c->arena, "rms:eps=%.17g", golden_number(c, "eps_none")), &x, NULL, 0), x.n,
		"rms_torch_none");
	golden_check(c, "out", apply(c, "scale:eps=1e-12", &x, NULL, 0), x.n, "rms_l2_clamp");
	outside(c, &x, "layer:eps=0", 1, eps, "layer_outside");
	outside(c, &x, "rms:eps=0", 0, eps, "rms_outside");
	return GOLDEN_RAN;
}

/* ---- repbn_fold ----------------------------------------------------------------------------------------------------- */

int golden_metric_repbn_fold(struct golden_case *c)
{
	const char *const names[] = { "weight", "bias", "eta", "running_mean", "running_var" };
	const struct golden_tensor x = golden_tensor(c, -1, "in.x"), w = golden_tensor(c, -1, "in.linear_weight"), b = golden_tensor(c, -1,
		"in.linear_bias");
	const int64_t C = x.d[1], outs = w.d[0];
	const double eps = golden_number(c, "eps");
	struct golden_tensor t[5];
	struct setting set[5];
	for (int i = 0; i < 5; i++) {
		t[i] = golden_tensor(c, -1, "in.%s", names[i]);
		set[i] = (struct setting){ names[i], t[i].x, t[i].n };
	}
	golden_check(c, "out", apply(c, nr_arena_printf(c->arena, "repbn:eps=%.17g", eps), &x, set, 5), x.n, "y");
	real *bn_weight = golden_reals(c, C), *bn_bias = golden_reals(c, C), *scale = golden_reals(c, C), *shift = golden_reals(c, C);
	for (int64_t i = 0; i < C; i++) {
		const double s = sqrt((double)t[4].x[i] + eps), eta = (double)t[2].x[0], weight = (double)t[0].x[i];
		bn_weight[i] = (real)(weight + eta * s);
		bn_bias[i] = (real)((double)t[1].x[i] + eta * (double)t[3].x[i]);
		scale[i] = (real)(weight / s + eta);
		shift[i] = (real)((double)t[1].x[i] - weight * (double)t[3].x[i] / s);
	}
	const struct setting bn[] = { { "weight", bn_weight, C }, { "bias", bn_bias, C }, set[3], set[4] };
	golden_check(c, "out", bn_weight, C, "bn_weight");
	golden_check(c, "out", bn_bias, C, "bn_bias");
	golden_check(c, "out", apply(c, nr_arena_printf(c->arena, "batch:eps=%.17g", eps), &x, bn, 4), x.n, "y");
	golden_check(c, "out", scale, C, "scale");
	golden_check(c, "out", shift, C, "shift");
	real *fw = golden_reals(c, outs * C), *fb = golden_reals(c, outs), *y = golden_reals(c, x.d[0] * outs);
	for (int64_t o = 0; o < outs; o++) {
		double sum = (double)b.x[o];
		for (int64_t i = 0; i < C; i++) fw[o * C + i] = w.x[o * C + i] * scale[i], sum += (double)w.x[o * C + i] * (double)shift[i];
		fb[o] = (real)sum;
		for (int64_t r = 0; r < x.d[0]; r++) {
			double v = sum;
			for (int64_t i = 0; i < C; i++) v += (double)fw[o * C + i] * (double)x.x[r * C + i];
			y[r * outs + o] = (real)v;
		}
	}
	golden_check(c, "out", fw, outs * C, "folded_weight");
	golden_check(c, "out", fb, outs, "folded_bias");
	golden_check(c, "out", y, x.d[0] * outs, "linear_y");
	return GOLDEN_RAN;
}

/* ---- taper_calibration ---------------------------------------------------------------------------------------------- */

/* One training step at gate 1: its first batch is c. */
int golden_metric_taper_calibration(struct golden_case *c)
{
	const struct golden_tensor x = golden_tensor(c, -1, "in.x"), weight = golden_tensor(c, -1, "in.weight");
	const int64_t C = weight.n;
	const double eps = golden_number(c, "eps");
	struct nr_error err = { 0 };
	struct nr_store *store;
	struct nr_plan *plan;
	nr_store_make(&store, 0, &err);
	struct nr_net *net = nr_net_make(store);
	nr_t *in = nr_input(net, "x", NR_REAL, NR_SHAPE(x.d[0], x.d[1], C));
	nr_t *y = nr_norm_make(net, "", nr_arena_printf(c->arena, "taper:warm=2,total=4,eps=%.17g", eps), in);
	nr_t *loss = nr_weighted_sum(net, y, nr_input(net, "dy", NR_REAL, NR_SHAPE(x.d[0], x.d[1], C)));
	if (nr_plan_make(&plan, net, loss, NR_PLAN_TRAIN, &err)) golden_stop(c, NULL, "cannot plan");
	memcpy(nr_value(nr_store_find(store, "weight")), weight.x, (size_t)C * sizeof(real));
	memcpy(nr_plan_data(plan, in), x.x, (size_t)x.n * sizeof(real));
	nr_plan_run(plan, &(struct nr_exec){ .train = 1 }, NR_RUN_FORWARD | NR_RUN_BACKWARD | NR_RUN_COMMIT);
	const double got = (double)*nr_value(nr_store_find(store, "c"));
	double above = 0, below = 0;
	for (int64_t r = 0; r < x.n / C; r++) {
		double square = 0, mean = 0;
		for (int64_t i = 0; i < C; i++) {
			const double v = (double)x.x[r * C + i], w = (double)weight.x[i] * v;
			mean += v * v / (double)C, square += w * w;
		}
		below += square * (double)C / (double)x.n, above += square / sqrt(mean + eps) * (double)C / (double)x.n;
	}
	golden_check_value(c, "out", got, "c");
	golden_check_value(c, "out", above, "numerator");
	golden_check_value(c, "out", below, "denominator");
	nr_plan_free(plan);
	nr_net_free(net);
	nr_store_free(store);
	return GOLDEN_RAN;
}
