/* Activations: every set against double on dense grids (the bounds of act.h), odd sizes, special values, threads. */
#include "unit/values.h"

#include <omp.h>

#include "math/act.h"

static double sigmoid_of(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }

static double value_of(enum nr_act act, double x)
{
	const double u = sqrt(8 / M_PI) * (x + .044715 * x * x * x);
	switch (act) {
	case NR_ACT_RELU: return x > 0 ? x : 0;
	case NR_ACT_GELU: return x * .5 * erfc(-x * M_SQRT1_2);
	case NR_ACT_GELU_TANH: return x * sigmoid_of(u);
	case NR_ACT_HARD_SWISH: return x * fmin(fmax(x + 3, 0), 6) / 6;
	case NR_ACT_TANH: return tanh(x);
	case NR_ACT_SIGMOID: return sigmoid_of(x);
	case NR_ACT_SILU: return x * sigmoid_of(x);
	case NR_ACT_EXP: return exp(x);
	case NR_ACT_QUICK_GELU: return x * sigmoid_of(1.702 * x);
	default: return x;
	}
}

static double slope_of(enum nr_act act, double x)
{
	const double u = sqrt(8 / M_PI) * (x + .044715 * x * x * x), s = sigmoid_of(act == NR_ACT_GELU_TANH ? u : x);
	switch (act) {
	case NR_ACT_RELU: return x > 0;
	case NR_ACT_GELU: return .5 * erfc(-x * M_SQRT1_2) + x * exp(-x * x / 2) / sqrt(2 * M_PI);
	case NR_ACT_GELU_TANH: return s + x * s * (1 - s) * sqrt(8 / M_PI) * (1 + 3 * .044715 * x * x);
	case NR_ACT_HARD_SWISH: return x < -3 ? 0 : x > 3 ? 1 : x / 3 + .5;
	case NR_ACT_TANH: return 1 - tanh(x) * tanh(x);
	case NR_ACT_SIGMOID: return s * (1 - s);
	case NR_ACT_SILU: return s * (1 + x * (1 - s));
	case NR_ACT_EXP: return exp(x);
	case NR_ACT_QUICK_GELU: return sigmoid_of(1.702 * x) * (1 + 1.702 * x * sigmoid_of(-1.702 * x));
	default: return 1;
	}
}

/* Relative to values above 1, absolute below; exp relative everywhere. */
static double bound_of(enum nr_act act, int backward)
{
	if (act == NR_ACT_NONE || act == NR_ACT_RELU) return 0;
	return act == NR_ACT_EXP ? 1e-7 : act == NR_ACT_GELU && !backward ? 2e-7 : 3e-7;
}

static double error_of(enum nr_act act, double got, double want)
{
	if (act == NR_ACT_EXP) return fabs(got - want) / want;
	return fabs(got - want) / fmax(1, fabs(want));
}

enum { GRID = 1 << 20 };

static void errors_stay_within_the_stated_bounds(void **state)
{
	(void)state;
	real *x = blank(GRID), *y = blank(GRID), *one = blank(GRID), *dx = blank(GRID);
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (int act = 0; act < NR_ACT_COUNT; act++) {
			const double range = act == NR_ACT_EXP ? 87 : 12;
			double forward = 0, backward = 0;
			for (int64_t i = 0; i < GRID; i++) x[i] = (real)(range * (2. * (double)i / (GRID - 1) - 1)), one[i] = 1;
			nr_act_forward((enum nr_act)act, GRID, x, y);
			nr_act_backward((enum nr_act)act, GRID, x, one, dx, 0);
			for (int64_t i = 0; i < GRID; i++) {
				forward = fmax(forward, error_of((enum nr_act)act, y[i], value_of((enum nr_act)act, x[i])));
				backward = fmax(backward, error_of((enum nr_act)act, dx[i], slope_of((enum nr_act)act, x[i])));
			}
			if (forward > bound_of((enum nr_act)act, 0) || backward > bound_of((enum nr_act)act, 1))
				fail_msg("%s on %s: forward %.2g, backward %.2g", nr_act_name((enum nr_act)act),
					nr_isa_name((enum nr_isa)s), forward, backward);
		}
	}
	free(x), free(y), free(one), free(dx);
}

/* Near 0 the values themselves are small: the relative error must stay small too. */
static void small_arguments_keep_their_digits(void **state)
{
	(void)state;
	const enum nr_act acts[] = { NR_ACT_GELU, NR_ACT_GELU_TANH, NR_ACT_HARD_SWISH, NR_ACT_TANH, NR_ACT_SILU,
		NR_ACT_QUICK_GELU };
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (size_t a = 0; a < sizeof acts / sizeof *acts; a++) {
			for (double v = 1e-6; v < 2; v *= 1.01) {
				const real x[2] = { (real)v, (real)-v };
				real y[2];
				nr_act_forward(acts[a], 2, x, y);
				for (int i = 0; i < 2; i++)
					assert_true(fabs(y[i] / value_of(acts[a], x[i]) - 1) <= (i && v > 1 ? 3e-6 : 1e-6));
			}
		}
	}
}

static void extreme_arguments_give_the_limits(void **state)
{
	(void)state;
	const real x[] = { 1e4, -1e4, 3e38f, -3e38f, INFINITY };
	real y[5];
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (int act = 0; act < NR_ACT_COUNT; act++) {
			nr_act_forward((enum nr_act)act, 5, x, y);
			for (int i = 0; i < 5; i++) {
				const double want = value_of((enum nr_act)act, i < 4 ? x[i] : 1e30);
				if (i == 4 && act != NR_ACT_TANH && act != NR_ACT_SIGMOID) assert_true(isinf(y[i]) && y[i] > 0);
				else if (act == NR_ACT_EXP) assert_true(x[i] > 0 ? isinf(y[i]) : y[i] == 0);
				else if (!(fabs(y[i] - want) <= 1e-6 * fmax(1, fabs(want))))
					fail_msg("%s of %g is %g, want %g", nr_act_name((enum nr_act)act), x[i], y[i], want);
			}
			const real nan = NAN;
			nr_act_forward((enum nr_act)act, 1, &nan, y);
			assert_true(isnan(y[0]));
		}
		const real edge[] = { (real)88.7, (real)89, -103, -105, 0 };
		nr_act_forward(NR_ACT_EXP, 5, edge, y);
		assert_true(fabs(y[0] / exp(edge[0]) - 1) < 1e-6 && isinf(y[1]) && y[3] == 0 && y[4] == 1);
	}
}

/* All entries of the table on every size, with gaps between rows that must not change, against plain. */
static void rows_and_tails_agree_with_plain(void **state)
{
	(void)state;
	const int64_t widths[] = { 1, 3, 7, 8, 9, 16, 17, 31, 40 }, rows = 7, ld = 43;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (int act = 0; act < NR_ACT_COUNT; act++) {
			for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
				const int64_t C = widths[w], n = rows * ld;
				real *x = values(n), *dy = values(n), *out[4], *want[4];
				for (int64_t i = 0; i < n; i++) x[i] *= 8;
				for (int i = 0; i < 4; i++) out[i] = values(n), want[i] = copy_of(out[i], n);
				const struct nr_act_kernels *k = nr_act_active, *p = &nr_act_plain;
				k->forward[act](C, x, out[0]);
				p->forward[act](C, x, want[0]);
				k->backward[act](C, x, dy, out[1], 0);
				p->backward[act](C, x, dy, want[1], 0);
				k->bias_backward[act](rows, C, x, ld, dy, ld, out[2], ld, out[3]);
				p->bias_backward[act](rows, C, x, ld, dy, ld, want[2], ld, want[3]);
				for (int i = 0; i < 4; i++) assert_near(out[i], want[i], n, act == NR_ACT_EXP ? 1e-4 : 5e-6);
				memcpy(out[2], want[2], (size_t)n * sizeof(real));
				k->backward[act](C, x, dy, out[2], 1);
				p->backward[act](C, x, dy, want[2], 1);
				assert_near(out[2], want[2], n, act == NR_ACT_EXP ? 1e-4 : 5e-6);
				k->forward[act](C, x, x); /* in place */
				assert_near(x, out[0], C, 0);
				for (int i = 0; i < 4; i++) free(out[i]), free(want[i]);
				free(x), free(dy);
			}
			nr_act_active->forward[act](0, NULL, NULL);
		}
	}
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
	(void)state;
	const int64_t rows = 301, C = 131, n = rows * C;
	real *x = values(n), *dy = values(n), *scratch = blank((rows + NR_CHUNK - 1) / NR_CHUNK * C), *first[3] = { 0 };
	const int before = omp_get_max_threads();
	for (int threads = 1; threads <= 3; threads++) {
		omp_set_num_threads(threads);
		real *out[3] = { blank(n), blank(n), blank(C) };
		nr_act_forward(NR_ACT_GELU, n, x, out[0]);
		nr_act_bias_backward(NR_ACT_GELU, rows, C, x, C, dy, C, out[1], C, out[2], 0, scratch);
		for (int i = 0; i < 3; i++) {
			if (threads == 1) first[i] = out[i];
			else assert_same_bits(out[i], first[i], i < 2 ? n : C), free(out[i]);
		}
	}
	omp_set_num_threads(before);
	for (int i = 0; i < 3; i++) free(first[i]);
	free(x), free(dy), free(scratch);
}

static void names_find_their_activation(void **state)
{
	(void)state;
	for (int act = 0; act < NR_ACT_COUNT; act++) assert_int_equal(nr_act_find(nr_act_name((enum nr_act)act)), act);
	assert_int_equal(nr_act_find("gleu"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_stay_within_the_stated_bounds),
		cmocka_unit_test(small_arguments_keep_their_digits),
		cmocka_unit_test(extreme_arguments_give_the_limits),
		cmocka_unit_test(rows_and_tails_agree_with_plain),
		cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
		cmocka_unit_test(names_find_their_activation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
