/* Softmax and cross entropies: every set against double on odd sizes and strides; masks, ignored rows, threads. */
#include "unit/values.h"

#include <omp.h>

#include "math/softmax.h"

static const int64_t widths[] = { 1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 100, 197, 1000 };
enum { WIDTHS = sizeof widths / sizeof *widths, ROWS = 6 };

struct rows { int64_t C, ld; real *x, *y, *old, *dy, *mask, *target, *loss; double *p, *z; };

static struct rows rows_make(int64_t C)
{
	const int64_t ld = C + 5, n = ROWS * ld;
	struct rows t = { C, ld, values(n), values(n), NULL, values(n), values(n), values(n), values(ROWS), NULL, NULL };
	for (int64_t i = 0; i < n; i++) t.x[i] *= 12, t.target[i] = (real)fabs(t.target[i]);
	t.old = copy_of(t.y, n);
	t.p = calloc((size_t)C, sizeof(double));
	t.z = calloc((size_t)C, sizeof(double));
	return t;
}

static void rows_free(struct rows *t)
{
	free(t->x), free(t->y), free(t->old), free(t->dy), free(t->mask), free(t->target), free(t->loss), free(t->p), free(t->z);
}

/* p = softmax(scale x + mask) of row r and z its logarithm, in double. */
static void softmax_of(struct rows *t, int64_t r, double scale, const real *mask)
{
	double m = -INFINITY, s = 0;
	for (int64_t i = 0; i < t->C; i++) {
		t->z[i] = scale * t->x[r * t->ld + i] + (mask ? mask[i] : 0.);
		m = fmax(m, t->z[i]);
	}
	for (int64_t i = 0; i < t->C; i++) s += exp(t->z[i] - m);
	for (int64_t i = 0; i < t->C; i++) t->z[i] -= m + log(s), t->p[i] = exp(t->z[i]);
}

static void near(double got, double want, double bound)
{
	if (!(fabs(got - want) <= bound)) fail_msg("%.9g, want %.9g", got, want);
}

static void gap_is_kept(const struct rows *t)
{
	for (int64_t r = 0; r < ROWS; r++)
		for (int64_t i = t->C; i < t->ld; i++) assert_true(t->y[r * t->ld + i] == t->old[r * t->ld + i]);
}

static void softmax_agrees_with_double(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (int w = 0; w < WIDTHS; w++) {
			struct rows t = rows_make(widths[w]);
			for (int kind = 0; kind < 3; kind++) { /* no mask, one row for all, a row each */
				const real *mask = kind ? t.mask : NULL;
				const int64_t ldm = kind == 2 ? t.ld : 0;
				nr_softmax_forward(ROWS, t.C, t.x, t.ld, (real).7, mask, ldm, t.y, t.ld);
				for (int64_t r = 0; r < ROWS; r++) {
					softmax_of(&t, r, (real).7, mask ? mask + r * ldm : NULL);
					for (int64_t i = 0; i < t.C; i++) near(t.y[r * t.ld + i], t.p[i], 1e-6 * t.p[i] + 1e-12);
				}
				nr_log_softmax_forward(ROWS, t.C, t.x, t.ld, (real).7, mask, ldm, t.y, t.ld);
				for (int64_t r = 0; r < ROWS; r++) {
					softmax_of(&t, r, (real).7, mask ? mask + r * ldm : NULL);
					for (int64_t i = 0; i < t.C; i++) near(t.y[r * t.ld + i], t.z[i], 2e-6);
				}
			}
			gap_is_kept(&t);
			rows_free(&t);
		}
	}
}

static void gradients_agree_with_double(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (int w = 0; w < WIDTHS; w++) {
			for (int add = 0; add < 2; add++) {
				struct rows t = rows_make(widths[w]);
				const int64_t C = t.C, ld = t.ld;
				real *p = values(ROWS * ld);
				nr_softmax_forward(ROWS, C, t.x, ld, 1, NULL, 0, p, ld);
				nr_softmax_backward(ROWS, C, p, ld, t.dy, ld, (real).7, t.y, ld, add);
				for (int64_t r = 0; r < ROWS; r++) {
					const double dot = dot_of(p + r * ld, t.dy + r * ld, C);
					for (int64_t i = r * ld; i < r * ld + C; i++)
						near(t.y[i], .7 * p[i] * (t.dy[i] - dot) + (add ? t.old[i] : 0), 5e-7);
				}
				gap_is_kept(&t);
				memcpy(t.y, t.old, (size_t)(ROWS * ld) * sizeof(real));
				nr_log_softmax_forward(ROWS, C, t.x, ld, 1, NULL, 0, p, ld);
				nr_log_softmax_backward(ROWS, C, p, ld, t.dy, ld, (real).7, t.y, ld, add);
				for (int64_t r = 0; r < ROWS; r++) {
					double sum = 0;
					for (int64_t i = 0; i < C; i++) sum += t.dy[r * ld + i];
					for (int64_t i = r * ld; i < r * ld + C; i++) {
						const double want = .7 * (t.dy[i] - exp(p[i]) * sum) + (add ? t.old[i] : 0);
						near(t.y[i], want, 1e-6 * (1 + fabs(sum)));
					}
				}
				gap_is_kept(&t);
				free(p);
				rows_free(&t);
			}
		}
	}
}

static void masked_entries_are_zero_and_a_masked_row_is_all_zeros(void **state)
{
	(void)state;
	enum { C = 19 };
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		real x[3 * C], mask[3 * C], y[3 * C];
		for (int i = 0; i < 3 * C; i++) x[i] = value() * 200, mask[i] = i >= C && (i >= 2 * C || i % 3) ? -INFINITY : 0;
		nr_softmax_forward(3, C, x, C, 1, mask, C, y, C);
		double sum = 0;
		for (int i = C; i < 2 * C; i++) {
			if (i % 3) assert_true(y[i] == 0);
			sum += y[i];
		}
		near(sum, 1, 1e-6);
		for (int i = 2 * C; i < 3 * C; i++) assert_true(y[i] == 0);
		nr_log_softmax_forward(3, C, x, C, 1, mask, C, y, C);
		for (int i = 2 * C; i < 3 * C; i++) assert_true(y[i] == -INFINITY);
		x[5] = NAN;
		nr_softmax_forward(3, C, x, C, 1, mask, C, y, C);
		for (int i = 0; i < C; i++) assert_true(isnan(y[i]));
		assert_false(isnan(y[C]));
	}
}

enum loss { LABELS, SMOOTH, SOFT, SIGMOID, LOSSES };

static void run_loss(enum loss kind, struct rows *t, const int32_t *label, real *loss, real *dx, int add)
{
	const real scale = (real).3, smoothing = kind == SMOOTH ? (real).1 : 0;
	if (kind == SOFT) nr_xent_soft(ROWS, t->C, t->x, t->ld, t->target, t->ld, scale, loss, dx, t->ld, add);
	else if (kind == SIGMOID) nr_xent_sigmoid(ROWS, t->C, t->x, t->ld, t->target, t->ld, scale, loss, dx, t->ld, add);
	else nr_xent_labels(ROWS, t->C, t->x, t->ld, label, -100, smoothing, scale, loss, dx, t->ld, add);
}

/* Loss and gradient of row r in double; the gradient is left in z. */
static double loss_of(enum loss kind, struct rows *t, int64_t r, int32_t label)
{
	double loss = 0, total = 0;
	softmax_of(t, r, 1, NULL);
	for (int64_t i = 0; i < t->C; i++) total += t->target[r * t->ld + i];
	for (int64_t i = 0; i < t->C; i++) {
		const double x = t->x[r * t->ld + i], s = kind == SMOOTH ? (real).1 : 0;
		const double target = kind >= SOFT ? (double)t->target[r * t->ld + i] : s / (double)t->C + (i == label ? 1 - s : 0);
		if (kind == SIGMOID) {
			loss += fmax(x, 0) - x * target + log1p(exp(-fabs(x)));
			t->z[i] = 1 / (1 + exp(-x)) - target;
		} else {
			loss -= target > 0 ? target * t->z[i] : 0;
			t->z[i] = t->p[i] * (kind == SOFT ? total : 1) - target;
		}
	}
	return loss;
}

static void losses_and_their_gradients_agree_with_double(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (int w = 0; w < WIDTHS; w++) {
			for (int kind = 0; kind < LOSSES; kind++) {
				for (int add = 0; add < 2; add++) {
					struct rows t = rows_make(widths[w]);
					int32_t label[ROWS];
					for (int r = 0; r < ROWS; r++) label[r] = r == 2 ? -100 : (int32_t)(r * 7 % t.C);
					run_loss((enum loss)kind, &t, label, t.loss, t.y, add);
					for (int64_t r = 0; r < ROWS; r++) {
						const int ignored = kind <= SMOOTH && r == 2;
						const double loss = ignored ? 0 : loss_of((enum loss)kind, &t, r, label[r]);
						near(t.loss[r], loss, 1e-6 * (fabs(loss) + 6)); /* logits are up to 6 */
						for (int64_t i = 0; i < t.C; i++) {
							const double d = ignored ? 0 : (double)(real).3 * t.z[i];
							near(t.y[r * t.ld + i], d + (add ? t.old[r * t.ld + i] : 0), 1e-6 * (1 + fabs(d)));
						}
					}
					gap_is_kept(&t);
					real alone[ROWS];
					run_loss((enum loss)kind, &t, label, alone, NULL, 0); /* either output may be left out */
					assert_same_bits(alone, t.loss, ROWS);
					memcpy(t.y, t.old, (size_t)(ROWS * t.ld) * sizeof(real));
					run_loss((enum loss)kind, &t, label, NULL, t.y, 0);
					run_loss((enum loss)kind, &t, label, NULL, t.x, 0); /* in place */
					for (int64_t r = 0; r < ROWS; r++) assert_same_bits(t.y + r * t.ld, t.x + r * t.ld, t.C);
					rows_free(&t);
				}
			}
		}
	}
}

static void a_small_sigmoid_loss_keeps_its_digits(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (double v = -30; v < 30; v += .37) {
			const real x = (real)v, target = 0;
			real loss;
			nr_xent_sigmoid(1, 1, &x, 1, &target, 1, 1, &loss, NULL, 0, 0);
			near(loss / (fmax(x, 0) + log1p(exp(-fabs(x)))), 1, 5e-7);
		}
	}
}

static void labels_out_of_range_give_nan_and_ignored_ones_do_not_count(void **state)
{
	(void)state;
	const int32_t label[] = { 0, -1, 3, 2 };
	assert_int_equal(nr_xent_count(4, label, -1), 3);
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		real x[12] = { 0 }, loss[4], dx[12];
		nr_xent_labels(4, 3, x, 3, label, -1, 0, 1, loss, dx, 3, 0);
		assert_true(isnan(loss[2]) && isnan(dx[6]) && !isnan(loss[3]) && !isnan(dx[9]));
		assert_true(loss[1] == 0 && dx[3] == 0);
	}
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
	(void)state;
	const int64_t rows = 997, C = 61, n = rows * C;
	real *x = values(n), *dx[3], *loss[3];
	int32_t *label = calloc((size_t)rows, sizeof *label);
	const int before = omp_get_max_threads();
	for (int threads = 1; threads <= 3; threads++) {
		real *l = loss[threads - 1] = blank(rows), *d = dx[threads - 1] = blank(n);
		omp_set_num_threads(threads);
		nr_xent_labels(rows, C, x, C, label, -1, (real).1, 1, l, d, C, 0);
		nr_softmax_backward(rows, C, x, C, d, C, 1, d, C, 0);
		assert_same_bits(l, loss[0], rows), assert_same_bits(d, dx[0], n);
	}
	omp_set_num_threads(before);
	for (int i = 0; i < 3; i++) free(dx[i]), free(loss[i]);
	free(x), free(label);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(softmax_agrees_with_double),
		cmocka_unit_test(gradients_agree_with_double),
		cmocka_unit_test(masked_entries_are_zero_and_a_masked_row_is_all_zeros),
		cmocka_unit_test(losses_and_their_gradients_agree_with_double),
		cmocka_unit_test(a_small_sigmoid_loss_keeps_its_digits),
		cmocka_unit_test(labels_out_of_range_give_nan_and_ignored_ones_do_not_count),
		cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
