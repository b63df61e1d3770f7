/* src/analysis/{lbfgs,logistic}.c: the solution is that of plain gradient descent in double, and hard cases end well. */
#include <math.h>
#include <omp.h>

#include "unit/values.h"

#include "analysis/lbfgs.h"
#include "analysis/logistic.h"

/* Largest component of the gradient in double; the loss through *loss. */
static double gradient_of(const struct nr_logistic *o, const double *w, double *g, double *loss)
{
	const int64_t C = o->data->width, K = o->classes, D = C + 1;
	int64_t n = 0;
	double most = 0;
	*loss = 0;
	memset(g, 0, (size_t)(K * D) * sizeof *g);
	for (int64_t i = 0; i < o->data->rows; i++) n += o->label[i] >= 0;
	for (int64_t i = 0; i < o->data->rows; i++) {
		double z[16] = { 0 }, sum = 0;
		if (o->label[i] < 0) continue;
		for (int64_t k = 0; k < K; k++) {
			z[k] = w[k * D + C];
			for (int64_t c = 0; c < C; c++) z[k] += w[k * D + c] * (double)o->data->x[i * C + c];
			sum += exp(z[k]);
		}
		*loss += (log(sum) - z[o->label[i]]) / (double)n;
		for (int64_t k = 0; k < K; k++) {
			const double d = (exp(z[k]) / sum - (k == o->label[i])) / (double)n;
			for (int64_t c = 0; c < C; c++) g[k * D + c] += d * (double)o->data->x[i * C + c];
			g[k * D + C] += d;
		}
	}
	for (int64_t k = 0; k < K; k++)
		for (int64_t c = 0; c < C; c++) {
			*loss += o->l2 / 2 * w[k * D + c] * w[k * D + c];
			g[k * D + c] += o->l2 * w[k * D + c];
		}
	for (int64_t i = 0; i < K * D; i++) most = fmax(most, fabs(g[i]));
	return most;
}

/* Plain steps down the gradient, until it vanishes. */
static void descend(const struct nr_logistic *o, double *w, double *g)
{
	double loss;
	const int64_t n = o->classes * (o->data->width + 1);
	memset(w, 0, (size_t)n * sizeof *w);
	for (int step = 0; step < 200000 && gradient_of(o, w, g, &loss) > 1e-9; step++)
		for (int64_t i = 0; i < n; i++) w[i] -= .5 * g[i];
	assert_true(gradient_of(o, w, g, &loss) <= 1e-9);
}

/* Rows around a centre for each class, with some columns mixed so that they depend on each other. */
static void clouds(int64_t rows, int64_t C, int64_t K, real spread, real *x, int32_t *label)
{
	real *centre = values(K * C);
	for (int64_t i = 0; i < rows; i++) {
		label[i] = (int32_t)(i % K);
		for (int64_t c = 0; c < C; c++) x[i * C + c] = centre[label[i] * C + c] + spread * value();
		for (int64_t c = 1; c < C; c += 2) x[i * C + c] = (real).8 * x[i * C + c - 1] + (real).3 * x[i * C + c];
	}
	free(centre);
}

static struct nr_logistic_data features(int64_t rows, int64_t width, const real *x)
{
	struct nr_logistic_data d;
	assert_int_equal(nr_logistic_data_init(&d, rows, width, x, NULL, NULL), 0);
	return d;
}

static struct nr_logistic_result fit(const struct nr_logistic *o, double *w)
{
	struct nr_logistic_result r;
	struct nr_error err = { 0 };
	char line[1200];
	memset(w, 0, (size_t)(o->classes * (o->data->width + 1)) * sizeof *w);
	if (nr_logistic_fit(o, w, &r, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	return r;
}

enum { N = 150, C = 6, K = 3, D = C + 1 };

static void solution_is_that_of_plain_gradient_descent(void **state)
{
	(void)state;
	static const double l2[] = { 1e-3, .05, 2 };
	real x[N * C];
	int32_t label[N];
	double w[K * D], plain[K * D], g[K * D], loss;
	clouds(N, C, K, 3, x, label);
	for (int i = 0; i < N; i += 7) label[i] = -1;                   /* left out */
	struct nr_logistic_data d = features(N, C, x);
	for (size_t i = 0; i < sizeof l2 / sizeof *l2; i++) {
		const struct nr_logistic o = { &d, K, label, l2[i], 2e-7, 500 };
		const struct nr_logistic_result r = fit(&o, w);
		descend(&o, plain, g);
		double mean = 0, want = 0;                              /* a shift of all biases changes nothing */
		for (int k = 0; k < K; k++) mean += w[k * D + C] / K, want += plain[k * D + C] / K;
		for (int k = 0; k < K; k++) w[k * D + C] -= mean, plain[k * D + C] -= want;
		for (int k = 0; k < K * D; k++) assert_true(fabs(w[k] - plain[k]) < 2e-4 * (1 + fabs(plain[k])));
		assert_true(r.converged && r.gradient <= 2e-7);
		assert_true(gradient_of(&o, w, g, &loss) < 1e-6);
		assert_true(fabs(loss - r.loss) < 1e-6);
	}
	nr_logistic_data_release(&d);
}

static void threads_do_not_change_a_bit(void **state)
{
	(void)state;
	enum { ROWS = 9000, WIDTH = 33, CLASSES = 7, COUNT = CLASSES * (WIDTH + 1) };
	real *x = blank(ROWS * WIDTH);
	int32_t *label = calloc(ROWS, sizeof *label);
	double *w[3];
	clouds(ROWS, WIDTH, CLASSES, 4, x, label);
	for (int threads = 1; threads <= 3; threads++) {
		omp_set_num_threads(threads);
		struct nr_logistic_data d = features(ROWS, WIDTH, x);
		const struct nr_logistic o = { &d, CLASSES, label, 1e-4, 1e-5, 200 };
		w[threads - 1] = calloc(COUNT, sizeof(double));
		assert_true(fit(&o, w[threads - 1]).converged);
		assert_memory_equal(w[0], w[threads - 1], COUNT * sizeof(double));
		nr_logistic_data_release(&d);
	}
	for (int i = 0; i < 3; i++) free(w[i]);
	free(x);
	free(label);
}

static void separable_rows_are_separated(void **state)
{
	(void)state;
	real x[N * C], scores[N * K];
	int32_t label[N];
	double w[K * D];
	clouds(N, C, K, (real).01, x, label);
	struct nr_logistic_data d = features(N, C, x);
	const struct nr_logistic o = { &d, K, label, 1e-6, 1e-6, 1000 };
	assert_true(fit(&o, w).converged);
	assert_int_equal(nr_logistic_scores(N, C, K, x, w, scores, NULL), 0);
	for (int i = 0; i < N; i++)
		for (int k = 0; k < K; k++) assert_true(scores[i * K + label[i]] >= scores[i * K + k]);
	const struct nr_logistic endless = { &d, K, label, 0, 0, 40 };       /* no optimum: it stops after its steps */
	const struct nr_logistic_result r = fit(&endless, w);
	assert_false(r.converged);
	for (int i = 0; i < K * D; i++) assert_true(isfinite(w[i]));
	nr_logistic_data_release(&d);
}

static void class_without_rows_and_constant_columns_do_no_harm(void **state)
{
	(void)state;
	enum { MORE = K + 1 };
	real x[N * C];
	int32_t label[N];
	double w[MORE * D];
	clouds(N, C, K, 3, x, label);
	for (int i = 0; i < N; i++) x[i * C + 2] = 0, x[i * C + 4] = 1;         /* nothing; the same as the bias */
	struct nr_logistic_data d = features(N, C, x);
	const struct nr_logistic o = { &d, MORE, label, 1e-3, 1e-5, 1000 };
	assert_true(fit(&o, w).converged);
	assert_true(w[2] == 0 && w[D + 2] == 0);
	real scores[N * MORE];
	assert_int_equal(nr_logistic_scores(N, C, MORE, x, w, scores, NULL), 0);
	for (int i = 0; i < N; i++) assert_true(scores[i * MORE + K] < scores[i * MORE + label[i]]);
	nr_logistic_data_release(&d);
}

static void one_column_is_enough(void **state)
{
	(void)state;
	real x[8] = { -2, -1, -3, -1, 1, 2, 1, 3 };
	int32_t label[8] = { 0, 0, 0, 1, 0, 1, 1, 1 };
	double w[4], g[4], plain[4];
	struct nr_logistic_data d = features(8, 1, x);
	const struct nr_logistic o = { &d, 2, label, .1, 1e-6, 100 };
	assert_true(fit(&o, w).converged);
	descend(&o, plain, g);
	assert_true(fabs(w[0] - plain[0]) < 1e-5 && fabs(w[2] - plain[2]) < 1e-5);
	assert_true(fabs(w[0] + w[2]) < 1e-5);                          /* W = (-w/2, w/2) */
	nr_logistic_data_release(&d);
}

static void wrong_labels_are_refused(void **state)
{
	(void)state;
	real x[4] = { 0, 1, 2, 3 };
	int32_t label[4] = { 0, 1, 2, 0 }, none[4] = { -1, -1, -1, -1 };
	double w[4] = { 0 };
	struct nr_error err = { 0 };
	char line[1200];
	struct nr_logistic_result r;
	struct nr_logistic_data d = features(4, 1, x);
	struct nr_logistic o = { &d, 2, label, .1, 1e-5, 10 };
	assert_int_equal(nr_logistic_fit(&o, w, &r, &err), NR_EVALUE);
	assert_non_null(strstr(nr_error_text(&err, line, sizeof line), "row 2 has label 2"));
	o.label = none;
	assert_int_equal(nr_logistic_fit(&o, w, &r, NULL), NR_EVALUE);
	nr_logistic_data_release(&d);
	real broken[4] = { 0, 1, NAN, 3 };
	assert_int_equal(nr_logistic_data_init(&d, 4, 1, broken, NULL, NULL), NR_EDIVERGED);
}

/* Rosenbrock's valley is not convex, but a minimiser that is worth its name finds its end. */
static double valley(void *context, const double *x, double *g)
{
	(void)context;
	const double a = 1 - x[0], b = x[1] - x[0] * x[0];
	g[0] = -2 * a - 400 * x[0] * b;
	g[1] = 200 * b;
	return a * a + 100 * b * b;
}

static void lbfgs_finds_the_end_of_a_valley(void **state)
{
	(void)state;
	double x[2] = { -1.2, 1 };
	const struct nr_lbfgs o = { .n = 2, .iterations = 500, .tolerance = 1e-9, .value = valley };
	struct nr_lbfgs_result r;
	assert_int_equal(nr_lbfgs_run(&o, x, &r, NULL), 0);
	assert_true(r.converged && r.iterations < 100);
	assert_true(fabs(x[0] - 1) < 1e-8 && fabs(x[1] - 1) < 1e-8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(solution_is_that_of_plain_gradient_descent),
		cmocka_unit_test(threads_do_not_change_a_bit),
		cmocka_unit_test(separable_rows_are_separated),
		cmocka_unit_test(class_without_rows_and_constant_columns_do_no_harm),
		cmocka_unit_test(one_column_is_enough),
		cmocka_unit_test(wrong_labels_are_refused),
		cmocka_unit_test(lbfgs_finds_the_end_of_a_valley),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
