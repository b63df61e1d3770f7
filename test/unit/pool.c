/* pool: means, maxima, adaptive bins and token means against loops in double; gradients as transposes. */
#include "unit/values.h"

#include <omp.h>

#include "math/pool.h"

static const struct nr_window cases[] = {
	{ 2, 7, 9, 5, 3, 3, 2, 2, 1, 1 }, { 1, 8, 8, 33, 2, 2, 2, 2, 0, 0 }, { 3, 5, 4, 1, 3, 2, 1, 1, 0, 0 },
	{ 1, 1, 1, 3, 1, 1, 1, 1, 0, 0 }, { 2, 30, 31, 16, 3, 3, 1, 1, 1, 1 },
};
enum { CASES = sizeof cases / sizeof *cases };

static int64_t in_size(const struct nr_window *w) { return w->B * w->H * w->W * w->C; }
static int64_t out_size(const struct nr_window *w) { return nr_window_rows(w) * w->C; }

static void means_and_maxima_are_the_definition(void **state)
{
	(void)state;
	for (int set = isa_next(-1); set >= 0; set = isa_next(set))
		for (int i = 0; i < 2 * CASES; i++) {
			const struct nr_window *w = &cases[i / 2];
			const int64_t Ho = nr_window_h(w), Wo = nr_window_w(w), C = w->C;
			real *x = values(in_size(w)), *mean = values(out_size(w)), *max = values(out_size(w));
			real *bare = values(out_size(w));
			int32_t *arg = calloc((size_t)out_size(w), sizeof *arg);
			nr_pool_mean_forward(w, i % 2, x, mean);
			nr_pool_max_forward(w, x, max, arg);
			nr_pool_max_forward(w, x, bare, NULL);
			assert_same_bits(max, bare, out_size(w));
			for (int64_t o = 0; o < out_size(w); o++) {
				const int64_t c = o % C, ox = o / C % Wo, oy = o / C / Wo % Ho, b = o / C / Wo / Ho;
				double s = 0, top = -1, n = 0;
				for (int64_t y = oy * w->sh - w->ph; y < oy * w->sh - w->ph + w->kh; y++)
					for (int64_t u = ox * w->sw - w->pw; u < ox * w->sw - w->pw + w->kw; u++) {
						if (y < 0 || y >= w->H || u < 0 || u >= w->W) continue;
						const double v = (double)x[((b * w->H + y) * w->W + u) * C + c];
						s += v;
						n++;
						top = v > top ? v : top;
					}
				if (i % 2) n = (double)(w->kh * w->kw);
				assert_true(fabs((double)mean[o] - s / n) < 3e-7);
				assert_true((double)max[o] == top);
				assert_true(x[(b * w->H * w->W + arg[o]) * C + c] == max[o]);
			}
			free(x);
			free(mean);
			free(max);
			free(bare);
			free(arg);
		}
}

/* The mean is linear: <dy, f(x)> = <dx, x>. The maximum is linear where arg stays. */
static void gradients_are_the_transpose_at_any_thread_count(void **state)
{
	(void)state;
	for (int set = isa_next(-1); set >= 0; set = isa_next(set))
		for (int i = 0; i < 2 * CASES; i++) {
			const struct nr_window *w = &cases[i / 2];
			const int64_t nx = in_size(w), ny = out_size(w);
			real *x = values(nx), *y = values(ny), *dy = values(ny), *dx[3];
			int32_t *arg = calloc((size_t)ny, sizeof *arg);
			for (int kind = 0; kind < 2; kind++) {
				if (kind) nr_pool_max_forward(w, x, y, arg);
				else nr_pool_mean_forward(w, i % 2, x, y);
				for (int t = 0; t < 3; t++) {
					omp_set_num_threads(t + 1);
					dx[t] = values(nx);
					if (kind) nr_pool_max_backward(w, dy, arg, dx[t], 0);
					else nr_pool_mean_backward(w, i % 2, dy, dx[t], 0);
					assert_same_bits(dx[0], dx[t], nx);
				}
				omp_set_num_threads(2);
				assert_true(fabs(dot_of(y, dy, ny) - dot_of(x, dx[0], nx)) < 1e-4);
				if (kind) nr_pool_max_backward(w, dy, arg, dx[1], 1);
				else nr_pool_mean_backward(w, i % 2, dy, dx[1], 1);
				for (int64_t j = 0; j < nx; j++) assert_true(fabs((double)(dx[1][j] - 2 * dx[0][j])) < 1e-6);
				for (int t = 0; t < 3; t++) free(dx[t]);
			}
			free(x);
			free(y);
			free(dy);
			free(arg);
		}
}

static int64_t first(int64_t o, int64_t in, int64_t out) { return (int64_t)floor((double)(o * in) / (double)out); }
static int64_t end(int64_t o, int64_t in, int64_t out) { return (int64_t)ceil((double)((o + 1) * in) / (double)out); }

static void adaptive_bins_are_torchs(void **state)
{
	(void)state;
	static const struct nr_bins bins[] = { { 2, 7, 9, 5, 3, 4 }, { 1, 14, 14, 3, 7, 7 }, { 1, 3, 2, 4, 5, 7 },
		{ 2, 6, 5, 2, 1, 1 } };
	for (int set = isa_next(-1); set >= 0; set = isa_next(set))
		for (int i = 0; i < 4; i++) {
			const struct nr_bins *s = &bins[i];
			const int64_t nx = s->B * s->H * s->W * s->C, ny = s->B * s->h * s->w * s->C;
			real *x = values(nx), *y = values(ny), *dy = values(ny), *dx = values(nx);
			nr_pool_adaptive_forward(s, x, y);
			nr_pool_adaptive_backward(s, dy, dx, 0);
			for (int64_t o = 0; o < ny; o++) {
				const int64_t c = o % s->C, ox = o / s->C % s->w, oy = o / s->C / s->w % s->h;
				const int64_t b = o / s->C / s->w / s->h;
				double sum = 0, n = 0;
				for (int64_t v = first(oy, s->H, s->h); v < end(oy, s->H, s->h); v++)
					for (int64_t u = first(ox, s->W, s->w); u < end(ox, s->W, s->w); u++) {
						sum += (double)x[((b * s->H + v) * s->W + u) * s->C + c];
						n++;
					}
				assert_true(fabs((double)y[o] - sum / n) < 1e-6);
			}
			assert_true(fabs(dot_of(y, dy, ny) - dot_of(x, dx, nx)) < 1e-4);
			free(x);
			free(y);
			free(dy);
			free(dx);
		}
}

static void token_means_skip_special_and_padded_rows(void **state)
{
	(void)state;
	const int64_t B = 5, T = 9, C = 21;
	const int32_t valid[5] = { 9, 1, 4, 0, 50 };
	for (int set = isa_next(-1); set >= 0; set = isa_next(set)) {
		real *x = values(B * T * C), *y = values(B * C), *dy = values(B * C), *dx = values(B * T * C);
		for (int64_t b = 0; b < B; b++)
			for (int64_t t = 0; t < T; t++)
				if (t < 1 || t >= valid[b])
					for (int64_t c = 0; c < C; c++) x[(b * T + t) * C + c] = (real)NAN;
		nr_pool_tokens_forward(B, T, C, 1, valid, x, y);
		nr_pool_tokens_backward(B, T, C, 1, valid, dy, dx, 0);
		for (int64_t b = 0; b < B; b++)
			for (int64_t c = 0; c < C; c++) {
				const int64_t stop = valid[b] < T ? valid[b] : T, n = stop > 1 ? stop - 1 : 0;
				double s = 0;
				for (int64_t t = 1; t < stop; t++) s += (double)x[(b * T + t) * C + c];
				assert_true(fabs((double)y[b * C + c] - (n ? s / (double)n : 0)) < 1e-6);
				for (int64_t t = 0; t < T; t++) {
					const double want = t >= 1 && t < stop ? (double)dy[b * C + c] / (double)n : 0;
					assert_true(fabs((double)dx[(b * T + t) * C + c] - want) < 1e-7);
				}
			}
		free(x);
		free(y);
		free(dy);
		free(dx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(means_and_maxima_are_the_definition),
		cmocka_unit_test(gradients_are_the_transpose_at_any_thread_count),
		cmocka_unit_test(adaptive_bins_are_torchs),
		cmocka_unit_test(token_means_skip_special_and_padded_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
