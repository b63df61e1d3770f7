/* patch: patches of pictures in both feature orders and back; unfold and its transpose. */
#include "unit/values.h"

#include <omp.h>

#include "math/patch.h"

static void patches_hold_their_pixels_and_go_back(void **state)
{
	(void)state;
	const int64_t B = 2, C = 3, H = 9, W = 14, p = 4, h = 2, w = 3;   /* a row and two columns are in no patch */
	for (int order = 0; order < 2; order++) {
		real *x = values(B * C * H * W), *y = values(B * h * w * p * p * C), *z = values(B * C * H * W);
		nr_patch_split(B, C, H, W, p, (enum nr_patch_order)order, x, y, 0);
		nr_patch_merge(B, C, H, W, p, (enum nr_patch_order)order, y, z, 0);
		for (int64_t i = 0; i < B * C * H * W; i++) {
			const int64_t ix = i % W, iy = i / W % H, c = i / W / H % C, b = i / W / H / C;
			const int in = iy < h * p && ix < w * p;
			assert_true(z[i] == (in ? x[i] : 0));
			if (!in) continue;
			const int64_t t = (b * h + iy / p) * w + ix / p, ky = iy % p, kx = ix % p;
			const int64_t at = order == NR_PATCH_ROW_COL_CHANNEL ? (ky * p + kx) * C + c : (c * p + ky) * p + kx;
			assert_true(y[t * p * p * C + at] == x[i]);
		}
		nr_patch_merge(B, C, H, W, p, (enum nr_patch_order)order, y, z, 1);
		for (int64_t i = 0; i < B * C * H * W; i++) assert_true(z[i] == 0 || z[i] == 2 * x[i]);
		free(x);
		free(y);
		free(z);
	}
}

static void unfold_is_torchs_and_fold_its_transpose(void **state)
{
	(void)state;
	static const struct nr_window cases[] = { { 2, 9, 7, 5, 3, 3, 2, 2, 1, 1 }, { 1, 14, 14, 3, 7, 7, 4, 4, 2, 2 },
		{ 3, 4, 5, 1, 2, 5, 1, 3, 1, 4 }, { 1, 1, 1, 1, 1, 1, 1, 1, 0, 0 }, { 2, 40, 33, 8, 3, 3, 1, 1, 1, 1 } };
	for (int set = isa_next(-1); set >= 0; set = isa_next(set))
		for (int i = 0; i < 10; i++) {
			const struct nr_window *w = &cases[i / 2];
			const enum nr_patch_order order = i % 2 ? NR_PATCH_CHANNEL_ROW_COL : NR_PATCH_ROW_COL_CHANNEL;
			const int64_t rows = nr_window_rows(w), K = nr_window_cols(w), Ho = nr_window_h(w), Wo = nr_window_w(w);
			const int64_t nx = w->B * w->H * w->W * w->C, half = rows / 2;
			real *x = values(nx), *cols = values(rows * K), *dy = values(rows * K);
			nr_unfold(w, order, x, 0, half, cols);
			nr_unfold(w, order, x, half, rows - half, cols + half * K);
			for (int64_t at = 0; at < rows * K; at++) {
				const int64_t r = at / K, f = at % K, kk = w->kh * w->kw;
				const int64_t c = order == NR_PATCH_CHANNEL_ROW_COL ? f / kk : f % w->C;
				const int64_t tap = order == NR_PATCH_CHANNEL_ROW_COL ? f % kk : f / w->C;
				const int64_t y = r / Wo % Ho * w->sh - w->ph + tap / w->kw, u = r % Wo * w->sw - w->pw + tap % w->kw;
				const int in = y >= 0 && y < w->H && u >= 0 && u < w->W;
				assert_true(cols[at] == (in ? x[((r / Wo / Ho * w->H + y) * w->W + u) * w->C + c] : 0));
			}
			real *dx[3];
			for (int t = 0; t < 3; t++) {
				omp_set_num_threads(t + 1);
				dx[t] = values(nx);
				nr_fold_windows(w, order, dy, 0, w->B, dx[t], 0);
				assert_same_bits(dx[0], dx[t], nx);
			}
			omp_set_num_threads(2);
			assert_true(fabs(dot_of(cols, dy, rows * K) - dot_of(x, dx[0], nx)) < 1e-3);
			for (int t = 0; t < 3; t++) free(dx[t]);
			free(x);
			free(cols);
			free(dy);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patches_hold_their_pixels_and_go_back),
		cmocka_unit_test(unfold_is_torchs_and_fold_its_transpose),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
