/* src/analysis/pca.c: numpy's decomposition of small sets, tall and wide; signs; degenerate sets. */
#include <math.h>
#include <omp.h>

#include "unit/values.h"

#include "analysis/pca.h"

static struct nr_pca fit(int64_t N, int64_t C, const real *x, int64_t K)
{
	struct nr_pca p;
	struct nr_error err = { 0 };
	char text[1200];
	if (nr_pca_init(&p, N, C, x, K, &err)) fail_msg("%s", nr_error_text(&err, text, sizeof text));
	return p;
}

static void near_to(const double *got, const double *want, int n)
{
	for (int i = 0; i < n; i++)
		if (!(fabs(got[i] - want[i]) < 1e-13)) fail_msg("at %d: %.15g, want %.15g", i, got[i], want[i]);
}

static void a_tall_set_is_numpys(void **state)
{
	(void)state;
	static const double mean[] = { -0.19988191979272, -0.0836430958339146, -0.057061893599374, 0.0562782287597656 };
	static const double component[] = { 0.00362504568354223, 0.99395434607519, -0.00881478221540516, 0.109379689963577,
		0.90212817098456, -0.0442742247430906, 0.184879560858824, 0.387329451650787, -0.152566706576548, 0.0214616979008578,
		0.981822741261369, -0.110846291366058 };
	static const double variance[] = { 1.06105380511123, 0.112101931175137, 0.0667495445074825 }, total = 1.26545172405489;
	static const double first[] = { -0.421135504793322, 0.0309096535645018, 0.0440024632815289 };
	value_seed = 1;
	real *x = values(7 * 4);
	for (int i = 0; i < 7; i++) x[4 * i + 1] *= 4;
	struct nr_pca p = fit(7, 4, x, 3);
	double out[7 * 3];
	near_to(p.mean, mean, 4);
	near_to(p.component, component, 12);
	near_to(p.variance, variance, 3);
	near_to(&p.total, &total, 1);
	nr_pca_project(&p, 7, x, out);
	near_to(out, first, 3);
	nr_pca_release(&p);
	free(x);
}

static void a_wide_set_is_numpys(void **state)
{
	(void)state;
	static const double component[] = { 0.276165103347837, 0.338450232705202, -0.265266399028538, -0.521156799543296, 0.683530250618722,
		0.0155095949350733, 0.559465170669866, -0.14926585320697, 0.775781830216678, 0.250280706895966 };
	static const double variance[] = { 0.287546422483974, 0.157574975136458, 0 }, total = 0.445121397620432;
	value_seed = 5;
	real *x = values(3 * 5);
	struct nr_pca p = fit(3, 5, x, 3);
	near_to(p.component, component, 10);
	near_to(p.variance, variance, 3);
	near_to(&p.total, &total, 1);
	for (int c = 0; c < 5; c++) assert_true(p.component[10 + c] == 0); /* three rows span two directions */
	nr_pca_release(&p);
	free(x);
}

static void threads_change_no_bit_and_variances_add_up(void **state)
{
	(void)state;
	enum { N = 300, C = 33 };
	real *x = values(N * C);
	struct nr_pca p[2];
	static double out[2][N * C];
	for (int t = 0; t < 2; t++) {
		omp_set_num_threads(t + 1);
		p[t] = fit(N, C, x, C);
		nr_pca_project(&p[t], N, x, out[t]);
	}
	assert_memory_equal(p[0].component, p[1].component, C * C * sizeof(double));
	assert_memory_equal(out[0], out[1], sizeof out[0]);
	double sum = 0;
	for (int k = 0; k < C; k++) {
		double square = 0;
		for (int n = 0; n < N; n++) square += out[0][n * C + k] * out[0][n * C + k];
		assert_true(fabs(square / (N - 1) - p[0].variance[k]) < 1e-13);
		sum += p[0].variance[k];
	}
	assert_true(fabs(sum - p[0].total) < 1e-12);
	nr_pca_release(&p[0]);
	nr_pca_release(&p[1]);
	free(x);
}

static void degenerate_sets_end_well(void **state)
{
	(void)state;
	real x[12] = { 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3 };
	double out[4];
	struct nr_error err = { 0 };
	struct nr_pca p = fit(4, 3, x, 1);
	assert_true(p.variance[0] == 0 && p.total == 0);
	nr_pca_project(&p, 4, x, out);
	for (int i = 0; i < 4; i++) assert_true(out[i] == 0);
	nr_pca_release(&p);
	p = fit(1, 3, x, 1);
	assert_true(p.variance[0] == 0);
	nr_pca_release(&p);
	assert_int_equal(nr_pca_init(&p, 4, 3, x, 4, &err), NR_ESHAPE);
	nr_pca_release(&p);
	x[7] = (real)NAN;
	assert_int_equal(nr_pca_init(&p, 4, 3, x, 2, NULL), NR_EVALUE);
	nr_pca_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tall_set_is_numpys),
		cmocka_unit_test(a_wide_set_is_numpys),
		cmocka_unit_test(threads_change_no_bit_and_variances_add_up),
		cmocka_unit_test(degenerate_sets_end_well),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
