/* The row family: every set against double on odd sizes and strides; offsets, aliases, threads. */
#include "unit/values.h"

#include <omp.h>

#include "math/row.h"

static const int64_t sizes[] = { 0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 197, 1027 };
enum { SIZES = sizeof sizes / sizeof *sizes };

static void sums_agree_with_double(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (int k = 0; k < SIZES; k++) {
			const int64_t n = sizes[k];
			real *a = values(n), *b = values(n), *c = values(n);
			double sum = 0, dot = 0, dot3 = 0, square = 0, max = -INFINITY;
			for (int64_t i = 0; i < n; i++) {
				sum += a[i], dot += (double)a[i] * b[i], dot3 += (double)a[i] * b[i] * c[i];
				square += ((double)a[i] - .25) * ((double)a[i] - .25), max = fmax(max, a[i]);
			}
			const double bound = 1e-7 * (double)(n + 1); /* half a rounding per term, sums of at most .5 each */
			assert_true(fabs(nr_sum(n, a) - sum) <= bound);
			assert_true(fabs(nr_dot(n, a, b) - dot) <= bound);
			assert_true(fabs(nr_dot3(n, a, b, c) - dot3) <= bound);
			assert_true(fabs(nr_sum_sq_about(n, a, (real).25) - square) <= bound);
			assert_true((double)nr_row_max(n, a) == max);
			free(a), free(b), free(c);
		}
	}
}

static void elementwise_passes_are_exact_and_stay_inside(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (int k = 0; k < SIZES; k++) {
			const int64_t n = sizes[k];
			real *x = values(n), *y = values(n), *z = values(n + 1), *old = copy_of(z, n + 1);
			nr_row_add(n, x, y, z);
			for (int64_t i = 0; i < n; i++) assert_true(z[i] == x[i] + y[i]);
			nr_row_mul(n, x, y, z, 0);
			for (int64_t i = 0; i < n; i++) assert_true(z[i] == x[i] * y[i]);
			nr_row_scale(n, (real).3, x, z);
			for (int64_t i = 0; i < n; i++) assert_true(z[i] == (real).3 * x[i]);
			nr_row_put(n, old, z, 0);
			nr_row_put(n, x, z, 1);
			for (int64_t i = 0; i < n; i++) assert_true(z[i] == old[i] + x[i]);
			nr_row_put(n, old, z, 0);
			nr_row_axpy(n, (real).3, x, z);
			for (int64_t i = 0; i < n; i++) assert_true(fabs(z[i] - (old[i] + .3 * x[i])) <= 1e-7);
			nr_row_put(n, old, z, 0);
			nr_row_mul(n, x, y, z, 1);
			for (int64_t i = 0; i < n; i++) assert_true(fabs(z[i] - (old[i] + (double)x[i] * y[i])) <= 1e-7);
			assert_true(z[n] == old[n]);
			free(x), free(y), free(z), free(old);
		}
	}
}

/* A norm of one row and its gradient, in double. */
static void norm_of(enum nr_norm_kind kind, int64_t C, const real *x, const real *gain, const real *bias, double eps,
	const real *dy, double *y, double *dx, double *mean, double *rstd)
{
	double m = 0, v = 0, a = 0, b = 0;
	for (int64_t i = 0; kind == NR_NORM_LAYER && i < C; i++) m += (double)x[i] / (double)C;
	for (int64_t i = 0; i < C; i++) v += (x[i] - m) * (x[i] - m);
	const double k = 1 / (kind == NR_NORM_LENGTH ? fmax(sqrt(v), eps) : sqrt(v / (double)C + eps));
	for (int64_t i = 0; i < C; i++) {
		const double h = (x[i] - m) * k, g = dy[i] * (gain ? gain[i] : 1.);
		y[i] = h * (gain ? gain[i] : 1.) + (bias ? bias[i] : 0.);
		a += kind == NR_NORM_LAYER ? g / (double)C : 0;
		b += kind == NR_NORM_LENGTH ? (sqrt(v) > eps) * g * h : g * h / (double)C;
	}
	for (int64_t i = 0; i < C; i++) dx[i] = k * (dy[i] * (gain ? gain[i] : 1.) - a - (x[i] - m) * k * b);
	*mean = m, *rstd = k;
}

struct norm { int64_t rows, C, ld; real *x, *b, *dy, *y, *sum, *dx, *mean, *rstd, *gain, *bias, *dgain, *dbias, *scratch; };

static struct norm norm_make(int64_t rows, int64_t C)
{
	const int64_t ld = C + 3, n = rows * ld;
	return (struct norm){ rows, C, ld, values(n), values(n), values(n), values(n), values(n), values(n), values(rows),
		values(rows), values(C), values(C), values(C), values(C), blank((int64_t)nr_norm_scratch(rows, C)) };
}

static void norm_free(struct norm *t)
{
	real *all[] = { t->x, t->b, t->dy, t->y, t->sum, t->dx, t->mean, t->rstd, t->gain, t->bias, t->dgain, t->dbias,
		t->scratch };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* Forward (plain or with an addend) and backward against double; the gaps must keep their values. */
static void check_norm(enum nr_norm_kind kind, int adds, int affine, double eps, int64_t rows, int64_t C)
{
	struct norm t = norm_make(rows, C);
	const int64_t ld = t.ld;
	const int center = kind == NR_NORM_LAYER;
	const real *gain = affine ? t.gain : NULL, *bias = affine && center ? t.bias : NULL;
	real *old_y = copy_of(t.y, rows * ld), *old_dx = copy_of(t.dx, rows * ld), *old_dg = copy_of(t.dgain, C);
	real *old_db = copy_of(t.dbias, C);
	double *y = calloc((size_t)C + 1, sizeof *y), *dx = calloc((size_t)C + 1, sizeof *dx), m, k;
	double *dg = calloc((size_t)C + 1, sizeof *dg), *db = calloc((size_t)C + 1, sizeof *db);
	nr_row_active->norm_forward(&(struct nr_norm_forward){ .kind = kind, .rows = rows, .C = C, .x = t.x, .ldx = ld,
		.b = adds ? t.b : NULL, .ldb = ld, .sum = t.sum, .lds = ld, .y = t.y, .ldy = ld, .gain = gain, .bias = bias,
		.eps = (real)eps, .mean = center ? t.mean : NULL, .rstd = t.rstd });
	const real *in = adds ? t.sum : t.x;
	nr_row_active->norm_backward(&(struct nr_norm_backward){ .kind = kind, .rows = rows, .C = C, .x = in, .ldx = ld,
		.dy = t.dy, .lddy = ld, .gain = gain, .mean = t.mean, .rstd = t.rstd, .eps = (real)eps, .dx = t.dx, .lddx = ld,
		.add = adds, .dgain = affine ? t.dgain : NULL, .dbias = bias ? t.dbias : NULL });
	for (int64_t r = 0; r < rows; r++) {
		const int64_t at = r * ld;
		norm_of(kind, C, in + at, gain, bias, (double)(real)eps, t.dy + at, y, dx, &m, &k);
		for (int64_t i = 0; i < ld; i++) {
			if (i >= C) {
				assert_true(t.y[at + i] == old_y[at + i] && t.dx[at + i] == old_dx[at + i]);
				continue;
			}
			if (adds) assert_true(t.sum[at + i] == t.x[at + i] + t.b[at + i]);
			const double h = (in[at + i] - m) * k, grad = dx[i] + (adds ? old_dx[at + i] : 0);
			dg[i] += t.dy[at + i] * h, db[i] += t.dy[at + i];
			assert_true(fabs(t.y[at + i] - y[i]) <= 2e-6);
			assert_true(fabs(t.dx[at + i] - grad) <= 1e-6 * fmax(1, k));
		}
		if (center) assert_true(fabs(t.mean[r] - m) <= 1e-6);
		assert_true(fabs(t.rstd[r] / k - 1) <= 2e-6);
	}
	for (int64_t i = 0; affine && i < C; i++) {
		assert_true(fabs(t.dgain[i] - dg[i] - old_dg[i]) <= 1e-6 * (double)(rows + 4));
		if (center) assert_true(fabs(t.dbias[i] - db[i] - old_db[i]) <= 1e-6 * (double)(rows + 4));
	}
	free(y), free(dx), free(dg), free(db), free(old_y), free(old_dx), free(old_dg), free(old_db);
	norm_free(&t);
}

static void norms_agree_with_double_on_odd_shapes(void **state)
{
	(void)state;
	const int64_t widths[] = { 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 67, 128, 197 }, heights[] = { 1, 3, 4, 5, 67 };
	for (int s = isa_next(-1); s >= 0; s = isa_next(s))
		for (int kind = 0; kind < 16; kind++)
			for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
				for (size_t h = 0; h < sizeof heights / sizeof *heights; h++)
					/* the last four: lengths on both sides of eps */
					check_norm(kind < 4 ? NR_NORM_LAYER : kind < 8 ? NR_NORM_RMS : NR_NORM_LENGTH, kind & 1,
						kind >> 1 & 1, kind < 12 ? 1e-3 : 1, heights[h], widths[w]);
}

/* Offsets up to 1e6 with a spread of 1: the input's own rounding is 0.03 there, but what is left of it must be normalized
 * as exactly as without the offset. The last row starts with an outlier, so that its pivot is a bad one. */
static void layer_keeps_its_digits_when_the_mean_is_large(void **state)
{
	(void)state;
	const int64_t C = 197, rows = 8;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		struct norm t = norm_make(rows, C);
		double *y = calloc((size_t)C, sizeof *y), *dx = calloc((size_t)C, sizeof *dx), m, k;
		for (int64_t r = 0; r < rows; r++)
			for (int64_t i = 0; i < C; i++) t.x[r * t.ld + i] = (real)(pow(10, (double)r) / 10 + t.x[r * t.ld + i]);
		for (int64_t i = 0; i < 16; i++) t.x[7 * t.ld + i] = -3000;
		nr_layer_forward(rows, C, t.x, t.ld, NULL, NULL, (real)1e-6, t.y, t.ld, t.mean, t.rstd);
		for (int64_t r = 0; r < rows; r++) {
			norm_of(NR_NORM_LAYER, C, t.x + r * t.ld, NULL, NULL, 1e-6, t.dy, y, dx, &m, &k);
			assert_true(fabs(t.mean[r] / m - 1) <= 1e-7);
			for (int64_t i = 0; i < C; i++) assert_true(fabs(t.y[r * t.ld + i] - y[i]) <= 2e-6);
		}
		free(y), free(dx);
		norm_free(&t);
	}
}

static void a_constant_row_becomes_the_bias(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		struct norm t = norm_make(1, 77);
		for (int64_t i = 0; i < 77; i++) t.x[i] = (real)12345.678;
		nr_layer_forward(1, 77, t.x, 77, t.gain, t.bias, (real)1e-6, t.y, 77, t.mean, t.rstd);
		assert_near(t.y, t.bias, 77, 1e-6);
		norm_free(&t);
	}
}

static void norms_work_in_place(void **state)
{
	(void)state;
	const int64_t rows = 9, C = 45;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		struct norm t = norm_make(rows, C);
		nr_layer_forward(rows, C, t.x, C, t.gain, t.bias, (real)1e-5, t.y, C, t.mean, t.rstd);
		nr_layer_backward(rows, C, t.x, C, t.dy, C, t.gain, t.mean, t.rstd, t.dx, C, t.dgain, t.dbias, 0, t.scratch);
		nr_layer_backward(rows, C, t.x, C, t.dy, C, t.gain, t.mean, t.rstd, t.dy, C, t.dgain, t.dbias, 0, t.scratch);
		assert_same_bits(t.dy, t.dx, rows * C);
		nr_layer_forward(rows, C, t.x, C, t.gain, t.bias, (real)1e-5, t.x, C, NULL, NULL);
		assert_same_bits(t.x, t.y, rows * C);
		real *sum = copy_of(t.b, rows * C);
		nr_add_layer_forward(rows, C, t.x, C, sum, C, t.gain, t.bias, (real)1e-5, sum, C, t.y, C, t.mean, t.rstd);
		nr_add_layer_forward(rows, C, t.x, C, t.b, C, t.gain, t.bias, (real)1e-5, t.sum, C, t.dx, C, t.mean, t.rstd);
		assert_same_bits(t.y, t.dx, rows * C);
		free(sum);
		norm_free(&t);
	}
}

/* Stores past the caches change no bit, whether the rows are whole cache lines or not. */
static void streamed_norms_give_the_same_bits(void **state)
{
	static const int64_t widths[] = { 16, 48, 21 };
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (int k = 0; k < 9; k++) {
			const int64_t rows = 5, C = widths[k / 3], n = rows * C;
			struct norm t = norm_make(rows, C);
			real *lines = aligned_alloc(64, 512 * sizeof(real)), *sums = blank(2 * C);
			struct nr_norm_forward f = { .kind = (enum nr_norm_kind)(k % 3), .rows = rows, .C = C, .x = t.x, .ldx = C,
				.y = t.y, .ldy = C, .gain = t.gain, .bias = k % 3 ? NULL : t.bias, .eps = (real)1e-5,
				.mean = k % 3 ? NULL : t.mean, .rstd = t.rstd };
			nr_row_active->norm_forward(&f);
			f.y = lines, f.stream = 1;
			nr_row_active->norm_forward(&f);
			assert_same_bits(lines, t.y, n);
			struct nr_norm_backward b = { .kind = f.kind, .rows = rows, .C = C, .x = t.x, .ldx = C, .dy = t.dy,
				.lddy = C, .gain = t.gain, .mean = t.mean, .rstd = t.rstd, .eps = f.eps, .dx = t.dx, .lddx = C,
				.dgain = sums, .dbias = k % 3 ? NULL : sums + C };
			nr_row_active->norm_backward(&b);
			b.dx = lines, b.stream = 1;
			nr_row_active->norm_backward(&b);
			assert_same_bits(lines, t.dx, n);
			norm_free(&t);
			free(lines), free(sums);
		}
	}
}

static void column_sums_and_folds_agree_with_double(void **state)
{
	(void)state;
	const int64_t rows = 203, C = 131, ld = 140;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		real *x = values(rows * ld), *out = values(C), *old = copy_of(out, C);
		real *scratch = blank((int64_t)nr_col_sum_scratch(rows, C));
		for (int add = 0; add < 2; add++) {
			memcpy(out, old, (size_t)C * sizeof(real));
			nr_col_sum(rows, C, x, ld, out, add, scratch);
			for (int64_t i = 0; i < C; i++) {
				double want = add ? old[i] : 0;
				for (int64_t r = 0; r < rows; r++) want += x[r * ld + i];
				assert_true(fabs(out[i] - want) <= 1e-5);
			}
		}
		real *before = copy_of(x, rows * ld);
		nr_bias_add(rows, C, x, ld, out);
		for (int64_t r = 0; r < rows; r++)
			for (int64_t i = 0; i < ld; i++) assert_true(x[r * ld + i] == before[r * ld + i] + (i < C ? out[i] : 0));
		free(x), free(out), free(old), free(scratch), free(before);
	}
}

/* One long run through every driver; its outputs are the bits to compare. */
static void run_all(int64_t rows, int64_t C, struct norm *t, real *sums)
{
	const int64_t n = rows * C;
	nr_add_layer_forward(rows, C, t->x, C, t->b, C, t->gain, t->bias, (real)1e-5, t->sum, C, t->y, C, t->mean, t->rstd);
	nr_layer_backward(rows, C, t->sum, C, t->dy, C, t->gain, t->mean, t->rstd, t->dx, C, t->dgain, t->dbias, 0, t->scratch);
	nr_array_axpy(n, (real).5, t->dx, t->y);
	nr_array_mul(n, t->x, t->y, t->dx, 1);
	nr_array_scale(n, (real)1.5, t->dx, t->dx);
	nr_array_add(n, t->dx, t->y, t->y);
	nr_array_put(n, t->y, t->sum, 1);
	sums[0] = nr_array_sum(n, t->y, t->scratch);
	sums[1] = nr_array_dot(n, t->y, t->x, t->scratch);
	nr_array_fill(C, sums[0], t->bias);
	nr_col_sum(rows, C, t->sum, C, t->bias, 1, t->scratch);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
	(void)state;
	const int64_t rows = 333, C = 197, n = rows * C;
	const int before = omp_get_max_threads();
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		struct norm first = { 0 };
		real sums[2][2];
		for (int threads = 1; threads <= 3; threads++) {
			value_seed = 7;
			struct norm t = norm_make(rows, C);
			omp_set_num_threads(threads);
			run_all(rows, C, &t, sums[threads > 1]);
			if (threads == 1) {
				first = t;
				continue;
			}
			assert_same_bits(sums[1], sums[0], 2);
			assert_same_bits(t.sum, first.sum, n), assert_same_bits(t.dx, first.dx, n);
			assert_same_bits(t.dgain, first.dgain, C), assert_same_bits(t.dbias, first.dbias, C);
			assert_same_bits(t.bias, first.bias, C);
			norm_free(&t);
		}
		norm_free(&first);
	}
	omp_set_num_threads(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_agree_with_double),
		cmocka_unit_test(elementwise_passes_are_exact_and_stay_inside),
		cmocka_unit_test(norms_agree_with_double_on_odd_shapes),
		cmocka_unit_test(layer_keeps_its_digits_when_the_mean_is_large),
		cmocka_unit_test(a_constant_row_becomes_the_bias),
		cmocka_unit_test(norms_work_in_place),
		cmocka_unit_test(streamed_norms_give_the_same_bits),
		cmocka_unit_test(column_sums_and_folds_agree_with_double),
		cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
