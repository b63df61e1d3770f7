/* Norms that change in the course of training: prepbn goes from layer to repbn, taper from rms to a fixed gain. */
#include <math.h>

#include "unit/rig.h"

#include "norma/norm.h"

enum { B = 2, T = 3, C = 4, ROWS = B * T, N = ROWS * C };

struct course { struct rig r; nr_t *x, *y, *sum; };

static struct course begin(const char *norm)
{
	const struct nr_norm_defaults defaults = { .norm = "layer", .placement = "pre" };
	struct course c = { .r = rig() };
	assert_int_equal(nr_norms_use(c.r.n, NULL, &defaults, &c.r.err), 0);
	c.x = reals(&c.r, 3, B, T, C, 1);
	c.y = nr_tap(c.r.n, "y", nr_norm_make(c.r.n, "", norm, c.x));
	c.sum = nr_weighted_sum(c.r.n, c.y, reals(&c.r, 3, B, T, C, 1));
	assert_non_null(c.sum);
	return c;
}

static const real *pass(struct course *c, int accumulate, int64_t total)
{
	run_with(&c->r, c->sum, (struct nr_exec){ .train = 1, .accumulate = accumulate, .total = total },
		NR_RUN_FORWARD | NR_RUN_BACKWARD | NR_RUN_COMMIT);
	return nr_plan_data(c->r.plan, c->y);
}

static const real *evaluate(struct course *c)
{
	nr_plan_run(c->r.plan, &(struct nr_exec){ 0 }, NR_RUN_FORWARD);
	return nr_plan_data(c->r.plan, c->y);
}

static real *part(const struct course *c, const char *name) { return nr_value(nr_store_find(c->r.store, name)); }

/* A step of the optimizer: one pass, or one that is followed by others for the same step. */
static void step_of(struct course *c, int passes, int64_t total)
{
	for (int a = 0; a < passes; a++) pass(c, a > 0, total);
}

/* Over values at x[i * apart], n of them: less their mean, over their deviation. */
static void normalise(const real *x, int64_t n, int64_t apart, double eps, double *y)
{
	double mean = 0, square = 0;
	for (int64_t i = 0; i < n; i++) mean += (double)x[i * apart] / (double)n;
	for (int64_t i = 0; i < n; i++) square += pow((double)x[i * apart] - mean, 2) / (double)n;
	for (int64_t i = 0; i < n; i++) y[i * apart] = ((double)x[i * apart] - mean) / sqrt(square + eps);
}

static void blend_of(const struct course *c, double lam, double *want)
{
	double layer[N], batch[N];
	const real *x = data(&c->r, 0);
	for (int64_t r = 0; r < ROWS; r++) normalise(x + r * C, C, 1, 1e-6, layer + r * C);
	for (int64_t i = 0; i < C; i++) normalise(x + i, ROWS, C, 1e-5, batch + i);
	for (int64_t i = 0; i < N; i++) want[i] = lam * layer[i] + (1 - lam) * (batch[i] + (double)x[i]);
}

/* lam = .8 (5 - (t - 2)) / 5 from step 2 on, in every pass of a step; steps count those of the optimizer. */
static void prepbn_counts_steps_not_passes(void **state)
{
	(void)state;
	for (int passes = 1; passes <= 3; passes += 2) {
		struct course c = begin("prepbn:total=5,warm=2,r0=0.8");
		for (int t = 0; t < 9; t++) {
			double want[N];
			blend_of(&c, t < 2 ? 1 : .8 * fmax(0, 5 - (t - 2)) / 5, want);
			for (int a = 0; a < passes; a++) close_to(pass(&c, a > 0, 0), want, N, 2e-5);
			assert_true(part(&c, "steps")[0] == t + 1);
			assert_true((part(&c, "norm2.running_mean")[0] != 0) == (t >= 2));
		}
		release(&c.r);
	}
}

/* Without `total` it is all that the run has after `warm`. */
static void the_run_says_how_long_it_is(void **state)
{
	(void)state;
	struct course c = begin("prepbn:warm=1");
	double want[N];
	step_of(&c, 1, 5);
	for (int t = 1; t < 5; t++) {
		blend_of(&c, 1 - (t - 1) / 4., want);
		close_to(pass(&c, 0, 5), want, N, 2e-5);
	}
	blend_of(&c, 0, want);
	close_to(pass(&c, 0, 5), want, N, 2e-5);
	release(&c.r);
}

static void taper_of(const struct course *c, double gate, double factor, double scale, double weight, double *want)
{
	const real *x = data(&c->r, 0);
	for (int64_t r = 0; r < ROWS; r++) {
		double square = 1e-6;
		for (int64_t i = 0; i < C; i++) square += pow((double)x[r * C + i], 2) / C;
		for (int64_t i = 0; i < C; i++)
			want[r * C + i] = (double)x[r * C + i] * (gate * weight / sqrt(square) + (1 - gate) * factor * scale);
	}
}

/* Least squares: sum |x|^2 r / sum |x|^2, with a gain that is the same for all channels. */
static double fitted(const struct course *c)
{
	const real *x = data(&c->r, 0);
	double above = 0, below = 0;
	for (int64_t r = 0; r < ROWS; r++) {
		double square = 0;
		for (int64_t i = 0; i < C; i++) square += pow((double)x[r * C + i], 2);
		above += square / sqrt(square / C + 1e-6), below += square;
	}
	return above / below;
}

static void set_all(real *to, double v)
{
	for (int64_t i = 0; i < C; i++) to[i] = (real)v;
}

/* warm 2 of 6 steps: g is 1, 1, 1, .854, .5, .146, 0. c is fitted in the first two and scale_weight follows weight, then both stay. */
static void taper_is_fitted_then_fades(void **state)
{
	(void)state;
	for (int passes = 1; passes <= 2; passes++) {
		struct course c = begin("taper:warm=2");
		double want[N];
		const double first = fitted(&c);
		step_of(&c, passes, 6);
		assert_true(fabs((double)part(&c, "c")[0] - first) < 1e-5 * first);
		set_all(part(&c, "weight"), 3);
		for (int64_t i = 0; i < N; i++) ((real *)c.r.data[0])[i] *= 2;      /* another batch, half the factor: a tenth of the way */
		step_of(&c, passes, 6);
		const double factor = (double)part(&c, "c")[0];
		assert_true(fabs(factor - .95 * first) < 1e-5 * first);
		assert_true(part(&c, "scale_weight")[C - 1] == 3);
		set_all(part(&c, "weight"), 5);
		for (int t = 2; t < 8; t++) {
			const double gate = t < 6 ? (1 + cos(M_PI * (t - 2) / 4)) / 2 : 0;
			taper_of(&c, gate, factor, 3, 5, want);
			for (int a = 0; a < passes; a++) close_to(pass(&c, a > 0, 6), want, N, 2e-5);
		}
		assert_true((double)part(&c, "c")[0] == factor && part(&c, "scale_weight")[0] == 3);
		release(&c.r);
	}
}

/* It does not know how long the training was: the gate of the next step is kept with the weights. */
static void an_evaluation_has_the_gate_of_the_training(void **state)
{
	(void)state;
	struct course c = begin("taper:warm=2");
	double want[N];
	const double first = fitted(&c);
	for (int t = 0; t < 4; t++) step_of(&c, 1, 6);
	taper_of(&c, .5, first, 1, 1, want);
	close_to(evaluate(&c), want, N, 2e-5);
	for (int t = 4; t < 6; t++) step_of(&c, 1, 6);
	taper_of(&c, 0, first, 1, 1, want);
	close_to(evaluate(&c), want, N, 2e-5);
	assert_true(part(&c, "gate")[0] == 0);
	release(&c.r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prepbn_counts_steps_not_passes),
		cmocka_unit_test(the_run_says_how_long_it_is),
		cmocka_unit_test(taper_is_fitted_then_fades),
		cmocka_unit_test(an_evaluation_has_the_gate_of_the_training),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
