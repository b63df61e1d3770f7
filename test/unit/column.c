/* The column family: every set against double on odd sizes and strides; offsets, outliers, aliases, merging. And
 * the norms on top: what gradcheck cannot ask for, because it only trains. */
#include "unit/values.h"

#include "math/column.h"
#include "norma/norm.h"

static const int64_t sizes[][2] = { { 0, 5 }, { 1, 1 }, { 1, 9 }, { 2, 3 }, { 3, 8 }, { 4, 17 }, { 5, 7 },
	{ 7, 33 }, { 64, 12 }, { 65, 16 }, { 130, 31 }, { 6, 1029 }, { 9, 2050 } };
enum { SIZES = sizeof sizes / sizeof *sizes };

struct moments { double mean, m2; };
static struct moments column_of(int64_t rows, const real *x, int64_t ldx)
{
	struct moments m = { 0, 0 };
	for (int64_t r = 0; r < rows; r++) m.mean += (double)x[r * ldx] / (double)rows;
	for (int64_t r = 0; r < rows; r++) m.m2 += (x[r * ldx] - m.mean) * (x[r * ldx] - m.mean);
	return m;
}

/* relative: of m2; the mean is held to its own rounding */
static void check_moments(int64_t rows, int64_t C, const real *x, int64_t ldx, double relative)
{
	real *mean = values(C + 1), *m2 = values(C + 1);
	const real end = mean[C], end2 = m2[C];
	nr_column_active->moments(rows, C, x, ldx, mean, m2);
	for (int64_t i = 0; i < C; i++) {
		const struct moments want = column_of(rows, x + i, ldx);
		assert_true(fabs((double)mean[i] - want.mean) <= 1e-6 * sqrt(want.m2) + 1.2e-7 * fabs(want.mean));
		assert_true(m2[i] >= 0 && fabs((double)m2[i] - want.m2) <= relative * want.m2);
	}
	assert_true(mean[C] == end && m2[C] == end2);
	free(mean), free(m2);
}

static void moments_agree_with_double(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (int k = 0; k < SIZES; k++) {
			const int64_t rows = sizes[k][0], C = sizes[k][1], ld = C + 3;
			real *x = values(rows * ld);
			check_moments(rows, C, x, ld, 3e-6);
			free(x);
		}
	}
}

/* The numbers themselves are taken as they are in float: their spread is exact, whatever their offset. */
static void an_offset_costs_no_digits(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		const int64_t rows = 130, C = 21;
		real *x = values(rows * C);
		for (int64_t i = 0; i < rows * C; i++) x[i] += 3000;
		check_moments(rows, C, x, C, 3e-6);
		free(x);
	}
}

/* The first rows are far from all others, as a class token is: a pivot taken from them must not do harm. */
static void unlike_first_rows_cost_few_digits(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (int first = 1; first <= 4; first++) {
			const int64_t rows = 500, C = 21;
			real *x = values(rows * C);
			for (int64_t i = 0; i < first * C; i++) x[i] += 1000;
			check_moments(rows, C, x, C, 1e-5);
			for (int64_t i = 0; i < first * C; i++) x[i] -= 990;
			check_moments(rows, C, x, C, 1e-5);
			free(x);
		}
	}
}

static void equal_rows_have_no_variance(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (int64_t rows = 1; rows < 12; rows++) {
			real x[12 * 9], mean[9], m2[9];
			for (int64_t i = 0; i < rows * 9; i++) x[i] = (real)(i % 9) * (real)12345.678;
			nr_column_active->moments(rows, 9, x, 9, mean, m2);
			assert_same_bits(mean, x, 9);
			for (int i = 0; i < 9; i++) assert_true(m2[i] == 0);
		}
	}
}

static void merged_chunks_are_the_whole(void **state)
{
	(void)state;
	const int64_t rows = 300, C = 13, cut[] = { 0, 1, 1, 64, 200, 299, 300 };
	real *x = values(rows * C), mean[13], m2[13];
	for (int64_t i = 0; i < rows * C; i++) x[i] += (real)(i / C) / 100 + 500;
	double all_mean[13] = { 0 }, all_m2[13] = { 0 };
	int64_t count = 0;
	for (int q = 0; q + 1 < (int)(sizeof cut / sizeof *cut); q++) {
		const int64_t n = cut[q + 1] - cut[q];
		nr_column_active->moments(n, C, x + cut[q] * C, C, mean, m2);
		nr_column_merge(C, &count, all_mean, all_m2, n, mean, m2);
	}
	assert_int_equal(count, rows);
	for (int64_t i = 0; i < C; i++) {
		const struct moments want = column_of(rows, x + i, C);
		assert_true(fabs(all_mean[i] - want.mean) <= 1e-7 * want.mean);
		assert_true(fabs(all_m2[i] - want.m2) <= 1e-4 * want.m2); /* a chunk's mean is rounded with its offset */
	}
	free(x);
}

/* All other kernels, with and without mean and bias, into memory with gaps; the gaps must keep their values. */
static void check_passes(int64_t rows, int64_t C, int center, int adds)
{
	const int64_t ld = C + 3, n = rows * ld;
	real *x = values(n), *dy = values(n), *y = values(n), *dx = values(n), *mean = values(C), *scale = values(C);
	real *bias = values(C), *c = values(C), *sum = values(C), *dot = values(C), *square = values(C);
	real *y0 = copy_of(y, n), *dx0 = copy_of(dx, n), *sum0 = copy_of(sum, C), *dot0 = copy_of(dot, C);
	real *square0 = copy_of(square, C);
	const real *m = center ? mean : NULL, *o = adds ? bias : NULL, eta = center ? (real).25 : 0;
	nr_column_active->normalize(rows, C, x, ld, m, scale, o, y, ld);
	nr_column_active->sum_sq(rows, C, x, ld, square);
	nr_column_active->grad_sums(rows, C, x, ld, dy, ld, m, sum, dot);
	nr_column_active->grad_apply(rows, C, x, ld, dy, ld, m, scale, bias, c, eta, dx, ld, adds);
	for (int64_t i = 0; i < ld; i++) {
		double s = i < C ? sum0[i] : 0, d = i < C ? dot0[i] : 0, q = i < C ? square0[i] : 0;
		for (int64_t r = 0; r < rows; r++) {
			const int64_t at = r * ld + i;
			if (i >= C) {
				assert_true(y[at] == y0[at] && dx[at] == dx0[at]);
				continue;
			}
			const double v = (double)x[at] - (center ? mean[i] : 0);
			s += dy[at], d += dy[at] * v, q += (double)x[at] * x[at];
			assert_true(fabs(y[at] - (v * scale[i] + (adds ? bias[i] : 0))) <= 2e-7);
			const double want = (double)scale[i] * dy[at] + bias[i] * v + c[i] + (double)eta * dy[at] + (adds ? dx0[at] : 0);
			assert_true(fabs(dx[at] - want) <= 4e-7);
		}
		const double bound = 1e-7 * (double)(rows + 2);
		if (i >= C) continue;
		assert_true(fabs(sum[i] - s) <= bound && fabs(dot[i] - d) <= bound && fabs(square[i] - q) <= bound);
	}
	nr_column_active->normalize(rows, C, x, ld, m, scale, o, x, ld); /* in place */
	for (int64_t r = 0; r < rows; r++) assert_same_bits(x + r * ld, y + r * ld, C);
	real *all[] = { x, dy, y, dx, mean, scale, bias, c, sum, dot, square, y0, dx0, sum0, dot0, square0 };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void passes_agree_with_double_and_stay_inside(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s))
		for (int k = 0; k < SIZES; k++)
			for (int way = 0; way < 4; way++) check_passes(sizes[k][0], sizes[k][1], way & 1, way >> 1);
}

/* A single token: dx is nothing, however large 1/sqrt(eps) makes the factors. */
static void what_is_taken_off_leaves_nothing(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		real *dy = values(37), *a = values(37), *x = values(37), *c = blank(37), *dx = values(37);
		for (int i = 0; i < 37; i++) {
			volatile real rounded = (a[i] *= 316) * dy[i];
			c[i] = -rounded;
		}
		nr_column_active->grad_apply(1, 37, x, 37, dy, 37, x, a, a, c, 0, dx, 37, 0);
		for (int i = 0; i < 37; i++) assert_true(dx[i] == 0);
		free(dy), free(a), free(x), free(c), free(dx);
	}
}

/* Stores past the caches change no bit, whether the rows are whole cache lines or not. */
static void streamed_passes_give_the_same_bits(void **state)
{
	static const int64_t at[][3] = { { 0, 5, 32 }, { 0, 3, 48 }, { 1, 4, 32 }, { 0, 2, 21 }, { 0, 0, 16 } }; /* shift, rows, C */
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
			const int64_t rows = at[k][1], C = at[k][2], n = rows * C;
			real *x = values(n), *dy = values(n), *v = values(4 * C), *y = values(n), *dx = values(n);
			real *lines = aligned_alloc(64, 512 * sizeof(real)), *to = lines + at[k][0];
			nr_column_active->normalize(rows, C, x, C, v, v + C, v + 2 * C, y, C);
			nr_column_active->normalize_stream(rows, C, x, C, v, v + C, v + 2 * C, to, C);
			assert_same_bits(to, y, n);
			nr_column_active->grad_apply(rows, C, x, C, dy, C, v, v + C, v + 2 * C, v + 3 * C, (real).25, dx, C, 0);
			nr_column_active->grad_apply_stream(rows, C, x, C, dy, C, v, v + C, v + 2 * C, v + 3 * C, (real).25, to, C, 0);
			assert_same_bits(to, dx, n);
			nr_column_active->grad_apply(rows, C, x, C, dy, C, v, v + C, v + 2 * C, v + 3 * C, (real).25, dx, C, 1);
			nr_column_active->grad_apply_stream(rows, C, x, C, dy, C, v, v + C, v + 2 * C, v + 3 * C, (real).25, to, C, 1);
			assert_same_bits(to, dx, n);
			free(x), free(dy), free(v), free(y), free(dx), free(lines);
		}
	}
}

/* ---- the norms ---------------------------------------------------------------------------------------------------- */

struct graph { struct nr_store *store; struct nr_net *net; nr_t *x, *valid, *y; struct nr_plan *plan; };

static struct graph graph_of(const char *norm, int64_t B, int64_t T, int64_t C, int padded)
{
	struct graph g = { 0 };
	assert_int_equal(nr_store_make(&g.store, 1, NULL), 0);
	g.net = nr_net_make(g.store);
	g.x = nr_input(g.net, "x", NR_REAL, NR_SHAPE(B, T, C));
	if (padded) {
		g.valid = nr_input(g.net, "valid", NR_I32, NR_SHAPE(B));
		nr_with_tokens(g.net, g.x, (struct nr_tokens){ .valid = g.valid });
	}
	g.y = nr_tap(g.net, "y", nr_norm_make(g.net, "n", norm, g.x));
	return g;
}
static void graph_free(struct graph *g)
{
	nr_plan_free(g->plan);
	nr_net_free(g->net);
	nr_store_free(g->store);
}
static const real *run(struct graph *g, int train)
{
	nr_plan_run(g->plan, &(struct nr_exec){ .train = train }, NR_RUN_FORWARD | (train ? NR_RUN_COMMIT : 0));
	return nr_plan_data(g->plan, g->y);
}

static void batch_norm_ignores_padding_and_runs_on(void **state)
{
	(void)state;
	const int64_t B = 3, T = 4, C = 5;
	const int32_t length[] = { 4, 1, 2 };
	struct graph g = graph_of("batch:momentum=0.25,eps=0", B, T, C, 1);
	assert_int_equal(nr_plan_make(&g.plan, g.net, g.y, 0, NULL), 0);
	real *x = nr_plan_data(g.plan, g.x), *mean = nr_value(nr_store_find(g.store, "n.running_mean"));
	real *var = nr_value(nr_store_find(g.store, "n.running_var"));
	memcpy(nr_plan_data(g.plan, g.valid), length, sizeof length);
	for (int64_t i = 0; i < B * T * C; i++) x[i] = value() + 2;
	run(&g, 1);
	for (int64_t i = 0; i < C; i++) {
		real all[7];
		int n = 0;
		for (int64_t b = 0; b < B; b++)
			for (int64_t t = 0; t < length[b]; t++) all[n++] = x[(b * T + t) * C + i];
		const struct moments m = column_of(7, all, 1);
		assert_true(fabs(mean[i] - .25 * m.mean) <= 1e-6);
		assert_true(fabs(var[i] - (.75 + .25 * m.m2 / 6)) <= 1e-6);
	}
	const real keep = mean[0], keep_var = var[0], *y = run(&g, 0);
	for (int64_t i = 0; i < B * T * C; i++)
		assert_true(fabs(y[i] - (x[i] - mean[i % C]) / sqrt(var[i % C])) <= 1e-5);
	assert_true(mean[0] == keep && var[0] == keep_var);
	graph_free(&g);
}

static void one_token_gives_the_bias(void **state)
{
	(void)state;
	static const char *const norms[] = { "batch", "instance", "instance:unbiased=1", "group:groups=5" };
	for (int k = 0; k < 4; k++) {
		struct graph g = graph_of(norms[k], 1, 1, 5, 0);
		assert_int_equal(nr_plan_make(&g.plan, g.net, g.y, 0, NULL), 0);
		real *x = nr_plan_data(g.plan, g.x), *bias = nr_value(nr_store_find(g.store, "n.bias"));
		for (int i = 0; i < 5; i++) x[i] = 7 + value(), bias[i] = value();
		assert_same_bits(run(&g, 1), bias, 5);
		if (k == 0) assert_true(fabs(nr_value(nr_store_find(g.store, "n.running_var"))[0] - .9) < 1e-6);
		graph_free(&g);
	}
}

static void samples_without_a_real_token_stay_finite(void **state)
{
	(void)state;
	static const char *const norms[] = { "batch", "instance", "group:groups=1" };
	for (int k = 0; k < 3; k++) {
		struct graph g = graph_of(norms[k], 2, 3, 5, 1);
		assert_int_equal(nr_plan_make(&g.plan, g.net, g.y, 0, NULL), 0);
		real *x = nr_plan_data(g.plan, g.x);
		for (int i = 0; i < 30; i++) x[i] = value();
		memset(nr_plan_data(g.plan, g.valid), 0, 2 * sizeof(int32_t));
		const real *y = run(&g, 1);
		for (int i = 0; i < 30; i++) assert_true(isfinite(y[i]));
		graph_free(&g);
	}
}

static void groups_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	static const struct { const char *norm, *says; } bad[] = {
		{ "group", "heads" }, { "group:groups=4", "cannot be divided" },
		{ "group:groups=9,scope=token", "cannot be divided" },
		{ "instance:scope=token,unbiased=1", "unbiased" },
	};
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		struct graph g = graph_of(bad[k].norm, 2, 3, 6, 0);
		char text[1024];
		assert_null(g.y);
		assert_non_null(strstr(nr_error_text(nr_net_error(g.net), text, sizeof text), bad[k].says));
		graph_free(&g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moments_agree_with_double),
		cmocka_unit_test(an_offset_costs_no_digits),
		cmocka_unit_test(unlike_first_rows_cost_few_digits),
		cmocka_unit_test(equal_rows_have_no_variance),
		cmocka_unit_test(merged_chunks_are_the_whole),
		cmocka_unit_test(passes_agree_with_double_and_stay_inside),
		cmocka_unit_test(what_is_taken_off_leaves_nothing),
		cmocka_unit_test(streamed_passes_give_the_same_bits),
		cmocka_unit_test(batch_norm_ignores_padding_and_runs_on),
		cmocka_unit_test(one_token_gives_the_bias),
		cmocka_unit_test(samples_without_a_real_token_stay_finite),
		cmocka_unit_test(groups_that_do_not_fit_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
