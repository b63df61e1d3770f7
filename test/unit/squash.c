/* The squash family: every set against the plain reference on odd sizes and strides, with and without weights, in place. */
#include "unit/values.h"

#include "math/squash.h"

enum { GAP = 16 };                      /* between rows; whole lines may stream */
struct run { real *y, *dx, *dweight, *dbias; struct nr_squash_sums sums; };

static struct run run(const struct nr_squash_kernels *k, int64_t rows, int64_t C, const real *x, const real *dy,
	const struct nr_squash *f, const struct run *start, int add)
{
	const int64_t ld = C + GAP, n = rows * ld;
	struct run t = { line_copy_of(start->y, n), line_copy_of(start->dx, n), copy_of(start->dweight, C), copy_of(start->dbias, C),
		{ 0 } };
	k->forward(f, rows, C, x, ld, t.y, ld);
	t.sums = k->backward(f, rows, C, x, ld, dy, ld, t.dx, ld, add, t.dweight, t.dbias);
	return t;
}

static void run_free(struct run *t) { free(t->y), free(t->dx), free(t->dweight), free(t->dbias); }

static void check(enum nr_squash_curve curve, int64_t rows, int64_t C, real alpha, int affine, int add, int stream)
{
	const int64_t ld = C + GAP, n = rows * ld;
	real *x = values(n), *dy = values(n), *weight = values(C), *bias = values(C);
	const struct nr_squash f = { curve, alpha, curve == NR_CURVE_ERF ? (real).3 : 0, affine ? weight : NULL, affine ? bias : NULL,
		stream };
	for (int64_t i = 0; i < n; i++) x[i] *= 8;
	struct run start = { values(n), values(n), values(C), values(C), { 0 } };
	struct run want = run(&nr_squash_plain, rows, C, x, dy, &f, &start, add);
	struct run got = run(nr_squash_active, rows, C, x, dy, &f, &start, add);
	assert_near(got.y, want.y, n, 1e-6);            /* with the gaps, which keep their values */
	assert_near(got.dx, want.dx, n, 1e-6);
	assert_near(got.dweight, want.dweight, C, 1e-6 * (double)(rows + 1));
	assert_near(got.dbias, want.dbias, C, 1e-6 * (double)(rows + 1));
	assert_near(&got.sums.alpha, &want.sums.alpha, 1, 1e-6 * (double)(rows * C + 1));
	if (curve == NR_CURVE_ERF) assert_near(&got.sums.shift, &want.sums.shift, 1, 1e-6 * (double)(rows * C + 1));
	for (int64_t i = 0; !affine && i < C; i++)
		assert_true(got.dweight[i] == start.dweight[i] && got.dbias[i] == start.dbias[i]);
	if (!add) {                                     /* dx may be dy, y may be x */
		nr_squash_active->backward(&f, rows, C, x, ld, dy, ld, dy, ld, 0, start.dweight, start.dbias);
		nr_squash_active->forward(&f, rows, C, x, ld, x, ld);
		for (int64_t r = 0; r < rows; r++) {
			assert_near(dy + r * ld, got.dx + r * ld, C, 0);
			assert_near(x + r * ld, got.y + r * ld, C, 0);
		}
	}
	run_free(&start), run_free(&want), run_free(&got);
	free(x), free(dy), free(weight), free(bias);
}

static void every_set_agrees_with_the_reference(void **state)
{
	static const int64_t widths[] = { 1, 5, 8, 15, 16, 17, 33, 96 };
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s))
		for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
			for (int64_t rows = 0; rows < 7; rows += 2)
				for (int i = 0; i < 16; i++)
					check(i & 4 ? NR_CURVE_ERF : NR_CURVE_TANH, rows, widths[w], i & 1 ? (real)-.7 : (real)1.5, i & 1,
						i >> 1 & 1, i >> 3);
}

/* Relative to the value itself, also where it is tiny; the slope of erf to what it is at most. Beyond the pieces they are 1 and 0. */
static void curves_keep_their_digits(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (int i = -2500; i <= 2500; i++) {
			for (real v = (real)i * (real).005; v > (real)1e-12 || v < (real)-1e-12; v *= (real)1e-3) {
				const struct nr_squash erfs = { .curve = NR_CURVE_ERF, .alpha = 1 };
				const struct nr_squash tanhs = { .curve = NR_CURVE_TANH, .alpha = 1 };
				const double x = (double)v, slope = M_2_SQRTPI * exp(-x * x);
				real y, dx;
				nr_squash_active->forward(&erfs, 1, 1, &v, 1, &y, 1);
				assert_true(fabs((double)y - erf(x)) <= 6e-7 * fabs(erf(x)));
				nr_squash_active->backward(&erfs, 1, 1, &v, 1, &(real){ 1 }, 1, &dx, 1, 0, NULL, NULL);
				assert_true(fabs((double)dx - slope) <= 6e-7);
				nr_squash_active->forward(&tanhs, 1, 1, &v, 1, &y, 1);
				assert_true(fabs((double)y - tanh(x)) <= 6e-7 * fabs(tanh(x)));
			}
		}
		static const real far[] = { (real)1e4, INFINITY, -INFINITY };
		for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
			for (int c = NR_CURVE_TANH; c <= NR_CURVE_ERF; c++) {
				const struct nr_squash f = { c, 1, 0, NULL, NULL, 0 };
				real y, dx, not_a_number = NAN;
				nr_squash_active->forward(&f, 1, 1, &far[i], 1, &y, 1);
				assert_true(fabs((double)y - (far[i] > 0 ? 1 : -1)) <= 6e-7);
				if (isfinite(far[i])) {
					nr_squash_active->backward(&f, 1, 1, &far[i], 1, &(real){ 1 }, 1, &dx, 1, 0, NULL, NULL);
					assert_true(dx == 0);
				}
				nr_squash_active->forward(&f, 1, 1, &not_a_number, 1, &y, 1);
				assert_true(isnan(y));
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_set_agrees_with_the_reference),
		cmocka_unit_test(curves_keep_their_digits) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
