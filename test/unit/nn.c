/* Builders of src/nn against plain loops in double or numbers worked out by hand; their messages; random ops.
 * Attention and tokens have programs of their own; gradients are checked by test/gradcheck.c. */
#include "unit/rig.h"

#include "norma/norm.h"

/* ---- losses ---------------------------------------------------------------------------------------------------- */

static double log_sum(const real *x, int n)
{
	double s = 0;
	for (int i = 0; i < n; i++) s += exp((double)x[i]);
	return log(s);
}

static void cross_entropy_of_equal_logits_is_log_of_the_classes(void **state)
{
	(void)state;
	static const int32_t label[] = { 3, 0 };
	static const real zero[8];
	struct rig r = rig();
	nr_t *x = leaf(&r, NR_REAL, zero, 2, 2, 4, 1, 1), *y = nr_cross_entropy(r.n, x, ints(&r, label, 1, 2, 1),
		0, -1);
	const double want = log(4.0);
	close_to(step(&r, y), &want, 1, 1e-6);
	const double grad[] = { .125, .125, .125, -.375, -.375, .125, .125, .125 };
	close_to(nr_plan_grad(r.plan, x), grad, 8, 1e-7);
	release(&r);
}

static void cross_entropy_smooths_and_ignores(void **state)
{
	(void)state;
	static const int32_t label[] = { 2, -100, 4, 0 };
	struct rig r = rig();
	nr_t *logits = reals(&r, 3, 2, 2, 5, 1), *y = nr_cross_entropy(r.n, logits, ints(&r, label, 2, 2, 2), 0.1,
		-100);
	double want = 0;
	for (int i = 0; i < 4; i++) {
		const real *x = data(&r, 0) + i * 5;
		for (int c = 0; label[i] >= 0 && c < 5; c++)
			want += (0.1 / 5 + 0.9 * (c == label[i])) * (log_sum(x, 5) - (double)x[c]) / 3;
	}
	close_to(step(&r, y), &want, 1, 1e-6);
	for (int c = 5; c < 10; c++) assert_true(nr_plan_grad(r.plan, logits)[c] == 0);
	release(&r);
}

static void cross_entropy_without_a_label_is_zero_and_quiet(void **state)
{
	(void)state;
	static const int32_t label[] = { -1, -1, -1 };
	struct rig r = rig();
	nr_t *x = reals(&r, 2, 3, 4, 1, 1);
	assert_true(*step(&r, nr_cross_entropy(r.n, x, ints(&r, label, 1, 3, 1), 0.1, -1)) == 0);
	for (int i = 0; i < 12; i++) assert_true(nr_plan_grad(r.plan, x)[i] == 0);
	release(&r);
}

/* Logits 2 x 2 enlarged to 4 x 4: along an axis pixels lie at these places between the two. */
static void enlarged(int corners, const double place[4])
{
	static const int32_t label[] = { 0, 1, 2, 255, 1, 1, 0, 2, 255, 0, 0, 1, 2, 2, 1, 0 };
	struct rig r = rig();
	nr_t *x = reals(&r, 4, 1, 2, 2, 3), *y = nr_pixel_cross_entropy(r.n, x, leaf(&r, NR_I32, label, 3, 1, 4, 4, 1), 255, corners);
	const real *v = data(&r, 0);
	double want = 0, grad[12] = { 0 };
	for (int i = 0; i < 16; i++) {
		const double a = place[i / 4], b = place[i % 4], share[] = { (1 - a) * (1 - b), (1 - a) * b, a * (1 - b), a * b };
		double z[3] = { 0 }, sum = 0;
		for (int k = 0; k < 12; k++) z[k % 3] += share[k / 3] * (double)v[k];
		for (int c = 0; c < 3; c++) sum += exp(z[c]);
		if (label[i] == 255) continue;
		want += (log(sum) - z[label[i]]) / 14;
		for (int k = 0; k < 12; k++) grad[k] += share[k / 3] * (exp(z[k % 3]) / sum - (k % 3 == label[i])) / 14;
	}
	close_to(step(&r, y), &want, 1, 1e-6);
	close_to(nr_plan_grad(r.plan, x), grad, 12, 1e-6);
	release(&r);
}

static void pixel_cross_entropy_enlarges_the_logits(void **state)
{
	(void)state;
	enlarged(0, (const double[]){ 0, .25, .75, 1 });
	enlarged(1, (const double[]){ 0, 1 / 3., 2 / 3., 1 });
}

static void pixel_cross_entropy_without_a_label_is_zero_and_quiet(void **state)
{
	(void)state;
	static const int32_t label[] = { 255, 255, 255, 255, 255, 255 };
	struct rig r = rig();
	nr_t *x = reals(&r, 4, 1, 1, 2, 3);
	assert_true(*step(&r, nr_pixel_cross_entropy(r.n, x, leaf(&r, NR_I32, label, 3, 1, 2, 3, 1), 255, 0)) == 0);
	for (int i = 0; i < 6; i++) assert_true(nr_plan_grad(r.plan, x)[i] == 0);
	release(&r);
}

static void soft_and_sigmoid_cross_entropies_match_their_formulas(void **state)
{
	(void)state;
	for (int form = 0; form < 3; form++) {
		struct rig r = rig();
		nr_t *x = reals(&r, 2, 3, 5, 1, 1), *t = reals(&r, 2, 3, 5, 1, 1);
		nr_t *y = !form ? nr_soft_cross_entropy(r.n, x, t)
				: nr_sigmoid_cross_entropy(r.n, x, t, form == 1 ? NR_BCE_MEAN_ALL : NR_BCE_MEAN_ROWS);
		double want = 0;
		for (int i = 0; i < 15; i++) {
			const double v = (double)data(&r, 0)[i], p = (double)data(&r, 1)[i];
			want += !form ? p * (log_sum(data(&r, 0) + i / 5 * 5, 5) - v) / 3
				      : (log1p(exp(v)) - v * p) / (form == 1 ? 15 : 3);
		}
		close_to(run(&r, y), &want, 1, 1e-6);
		release(&r);
	}
}

static void masked_error_standardises_targets_as_mae_does(void **state)
{
	(void)state;
	static const real mask[] = { 1, 0, 1, 0, 0, 1 };
	for (int normalize = 0; normalize < 2; normalize++) {
		struct rig r = rig();
		nr_t *pred = reals(&r, 3, 2, 3, 7, 1), *target = reals(&r, 3, 2, 3, 7, 1),
			*weight = leaf(&r, NR_REAL, mask, 2, 2, 3, 1, 1);
		nr_t *y = nr_masked_mse(r.n, pred, target, weight, normalize);
		double want = 0;
		for (int i = 0; i < 6; i++) {
			const real *p = data(&r, 0) + i * 7, *t = data(&r, 1) + i * 7;
			double mean = 0, var = 0;
			for (int c = 0; c < 7; c++) mean += (double)t[c] / 7;
			for (int c = 0; c < 7; c++) var += ((double)t[c] - mean) * ((double)t[c] - mean) / 6;
			if (!normalize) mean = 0, var = 1 - 1e-6;
			for (int c = 0; c < 7; c++) {
				const double e = (double)p[c] - ((double)t[c] - mean) / sqrt(var + 1e-6);
				want += (double)mask[i] * e * e / 7 / 3;
			}
		}
		close_to(run(&r, y), &want, 1, 2e-6);
		release(&r);
	}
}

static void masked_error_of_nothing_is_zero(void **state)
{
	(void)state;
	static const real mask[2];
	struct rig r = rig();
	nr_t *pred = reals(&r, 3, 1, 2, 3, 1), *target = reals(&r, 3, 1, 2, 3, 1),
		*weight = leaf(&r, NR_REAL, mask, 2, 1, 2, 1, 1);
	assert_true(*step(&r, nr_masked_mse(r.n, pred, target, weight, 1)) == 0);
	for (int i = 0; i < 6; i++) assert_true(nr_plan_grad(r.plan, pred)[i] == 0);
	release(&r);
}

static void mean_square_error_and_weighted_sum_by_hand(void **state)
{
	(void)state;
	static const real a[] = { 1, 2, 3, 4 }, b[] = { 1, 0, 5, 1 };
	struct rig r = rig();
	nr_t *x = leaf(&r, NR_REAL, a, 2, 2, 2, 1, 1), *y = leaf(&r, NR_REAL, b, 2, 2, 2, 1, 1);
	nr_t *mse = nr_tap(r.n, "mse", nr_mse(r.n, x, y));
	const double sum = 20, error = 17. / 4;
	close_to(run(&r, nr_weighted_sum(r.n, x, y)), &sum, 1, 0);
	close_to(nr_plan_data(r.plan, mse), &error, 1, 0);
	release(&r);
}

/* ---- random ops ------------------------------------------------------------------------------------------------ */

static void dropout_is_the_identity_in_evaluation(void **state)
{
	(void)state;
	for (int path = 0; path < 2; path++) {
		struct rig r = rig();
		nr_t *x = reals(&r, 3, 3, 5, 7, 1);
		assert_ptr_equal(path ? nr_drop_path(r.n, x, 0) : nr_dropout(r.n, x, 0), x);
		assert_same_bits(run(&r, path ? nr_drop_path(r.n, x, 0.4) : nr_dropout(r.n, x, 0.4)), data(&r, 0),
			105);
		release(&r);
	}
}

static void dropout_keeps_the_mean_and_repeats_its_mask_in_backward(void **state)
{
	(void)state;
	static real ones[20000];
	for (int i = 0; i < 20000; i++) ones[i] = 1;
	struct rig r = rig();
	nr_t *x = leaf(&r, NR_REAL, ones, 2, 100, 200, 1, 1), *w = leaf(&r, NR_REAL, ones, 2, 100, 200, 1, 1);
	nr_t *y = nr_tap(r.n, "y", nr_dropout(r.n, x, 0.25));
	step(&r, nr_weighted_sum(r.n, y, w));
	const real *v = nr_plan_data(r.plan, y);
	int dropped = 0;
	for (int i = 0; i < 20000; i++) {
		dropped += v[i] == 0;
		assert_true(v[i] == 0 || fabs((double)v[i] - 4. / 3) < 1e-6);
	}
	assert_true(dropped > 4700 && dropped < 5300);
	assert_same_bits(nr_plan_grad(r.plan, x), v, 20000);
	release(&r);
}

static void drop_path_drops_whole_samples(void **state)
{
	(void)state;
	struct rig r = rig();
	nr_t *x = reals(&r, 3, 64, 2, 3, 1);
	const real *y = run_with(&r, nr_drop_path(r.n, x, 0.5), (struct nr_exec){ .train = 1, .seed = 9 },
		NR_RUN_FORWARD);
	int dropped = 0;
	for (int b = 0; b < 64; b++) {
		int zeros = 0;
		for (int i = b * 6; i < b * 6 + 6; i++) {
			zeros += y[i] == 0;
			assert_true(y[i] == 0 || y[i] == 2 * data(&r, 0)[i]);
		}
		assert_true(zeros == 0 || zeros == 6);
		dropped += zeros == 6;
	}
	assert_true(dropped > 15 && dropped < 49);
	release(&r);
}

static void random_ops_draw_different_masks_which_views_leave_alone(void **state)
{
	(void)state;
	real first[2][200];
	for (int views = 0; views < 2; views++) {
		struct rig r = rig();
		nr_t *x = reals(&r, 3, 1, 10, 20, 1);
		if (views) x = nr_pack(r.n, x);
		nr_t *a = nr_dropout(r.n, x, 0.5), *b = nr_tap(r.n, "b", nr_dropout(r.n, x, 0.5));
		const struct nr_exec ex = { .train = 1, .seed = 2 };
		run_with(&r, nr_add(r.n, nr_tap(r.n, "a", a), b), ex, NR_RUN_FORWARD);
		const real *va = nr_plan_data(r.plan, a), *vb = nr_plan_data(r.plan, b);
		int differ = 0;
		for (int i = 0; i < 200; i++) differ += (va[i] == 0) != (vb[i] == 0), first[views][i] = va[i] == 0;
		assert_true(differ > 60 && differ < 140);
		release(&r);
	}
	assert_same_bits(first[0], first[1], 200);
}

/* ---- small ops ------------------------------------------------------------------------------------------------- */

static void products_value_by_value(void **state)
{
	(void)state;
	struct rig r = rig();
	nr_t *a = reals(&r, 2, 3, 4, 1, 1), *b = reals(&r, 2, 3, 4, 1, 1), *gain = reals(&r, 1, 4, 1, 1, 1);
	const real *y = run(&r, nr_scale_channels(r.n, nr_scale(r.n, nr_mul(r.n, a, b), -3), gain));
	for (int i = 0; i < 12; i++) {
		const double want = -3 * (double)data(&r, 0)[i] * (double)data(&r, 1)[i] * (double)data(&r, 2)[i % 4];
		close_to(&y[i], &want, 1, 1e-6);
	}
	release(&r);
}

static void softmax_scales_and_masks(void **state)
{
	(void)state;
	static const real mask[] = { 0, -INFINITY, 0, 0, 1,
		0 };   /* (2,3): rows 0, 2 take the first, 1, 3 the second */
	struct rig r = rig();
	nr_t *x = reals(&r, 3, 2, 2, 3, 1), *y = nr_softmax(r.n, x, 0.5, leaf(&r, NR_REAL, mask, 2, 2, 3, 1, 1));
	const real *p = run(&r, y);
	for (int row = 0; row < 4; row++) {
		double e[3], sum = 0;
		for (int c = 0; c < 3; c++) sum += e[c] = exp(0.5 * (double)data(&r,
			0)[row * 3 + c] + (double)mask[row % 2 * 3 + c]);
		for (int c = 0; c < 3; c++) e[c] /= sum;
		close_to(p + row * 3, e, 3, 1e-6);
	}
	release(&r);
	r = rig();
	const real *l = run(&r, nr_log_softmax(r.n, reals(&r, 2, 3, 5, 1, 1)));
	for (int i = 0; i < 15; i++) {
		const double want = (double)data(&r, 0)[i] - log_sum(data(&r, 0) + i / 5 * 5, 5);
		close_to(&l[i], &want, 1, 1e-6);
	}
	release(&r);
}

static void matrix_products_in_all_transpositions(void **state)
{
	(void)state;
	enum { B = 2, M = 5, K = 7, N = 3 };
	for (int form = 0; form < 4; form++) {
		const int ta = form & 1, tb = form >> 1;
		struct rig r = rig();
		nr_t *a = reals(&r, 3, B, ta ? K : M, ta ? M : K, 1), *b = reals(&r, 3, B, tb ? N : K, tb ? K : N, 1);
		nr_t *y = nr_matmul(r.n, a, b, ta, tb);
		shape_is(y, "2x5x3");
		const real *c = run(&r, y);
		for (int q = 0; q < B; q++)
			for (int i = 0; i < M; i++)
				for (int j = 0; j < N; j++) {
					double s = 0;
					for (int k = 0; k < K; k++)
						s += (double)data(&r, 0)[q * M * K + (ta ? k * M + i : i * K + k)] *
						     (double)data(&r, 1)[q * K * N + (tb ? j * K + k : k * N + j)];
					close_to(&c[(q * M + i) * N + j], &s, 1, 1e-6);
				}
		release(&r);
	}
}

static void transpose_swaps_tokens_and_channels(void **state)
{
	(void)state;
	struct rig r = rig();
	nr_t *y = nr_transpose(r.n, reals(&r, 3, 2, 3, 5, 1));
	shape_is(y, "2x5x3");
	const real *v = run(&r, y);
	for (int i = 0; i < 30; i++) assert_true(v[(i / 15 * 5 + i % 5) * 3 + i / 5 % 3] == data(&r, 0)[i]);
	release(&r);
}

static void convolutions_match_plain_loops(void **state)
{
	(void)state;
	enum { B = 2, H = 5, W = 4, C = 3, K = 3, S = 2, P = 1, OH = 3, OW = 2 };
	for (int depthwise = 0; depthwise < 2; depthwise++) {
		struct rig r = rig();
		const int out = depthwise ? C : 4, in = depthwise ? 1 : C;
		nr_t *y = nr_conv(r.n, "conv", reals(&r, 4, B, H, W, C), out, K, S, P, depthwise ? C : 1, 1);
		shape_is(y, depthwise ? "2x3x2x3" : "2x3x2x4");
		run(&r, y);
		real *bias = nr_value(nr_store_find(r.store, "conv.bias"));
		for (int i = 0; i < out; i++) bias[i] = (real)i;
		const real *got = run(&r, y), *w = nr_value(nr_store_find(r.store, "conv.weight")), *x = data(&r, 0);
		for (int i = 0; i < B * OH * OW * out; i++) {
			const int o = i % out, ox = i / out % OW, oy = i / out / OW % OH, b = i / out / OW / OH;
			double s = o;
			for (int c = 0; c < in; c++)
				for (int ky = 0; ky < K; ky++)
					for (int kx = 0; kx < K; kx++) {
						const int iy = oy * S - P + ky, ix = ox * S - P + kx;
						if (iy < 0 || iy >= H || ix < 0 || ix >= W) continue;
						const double v = (double)x[((b * H + iy) * W + ix) * C + (depthwise ? o : c)];
						s += v * (double)w[((o * in + c) * K + ky) * K + kx];
					}
			close_to(&got[i], &s, 1, 2e-6);
		}
		release(&r);
	}
}

static void pools_by_hand(void **state)
{
	(void)state;
	static const real x[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3, -4, -5, -6, -7 };
	static const double mean[] = { 3.5, 5.5, -.25, -4.5 }, largest[] = { 6, 8, 9, -2 };
	for (int max = 0; max < 2; max++) {
		struct rig r = rig();
		nr_t *y = nr_pool(r.n, max ? "max" : "mean", leaf(&r, NR_REAL, x, 4, 1, 4, 4, 1), 2, 2, 0);
		shape_is(y, "1x2x2x1");
		close_to(run(&r, y), max ? largest : mean, 4, 1e-6);
		release(&r);
	}
}

static void embedding_reads_rows_and_adds_their_gradients(void **state)
{
	(void)state;
	static const int32_t id[] = { 2, 0, 2, 1 };
	struct rig r = rig();
	nr_t *y = nr_tap(r.n, "y", nr_embedding(r.n, "word", ints(&r, id, 2, 2, 2), 4, 3, 0)),
		*w = reals(&r, 3, 2, 2, 3, 1);
	shape_is(y, "2x2x3");
	step(&r, nr_weighted_sum(r.n, y, w));
	const struct nr_entry *e = nr_store_find(r.store, "word.weight");
	for (int i = 0; i < 4; i++)
		assert_same_bits((const real *)nr_plan_data(r.plan, y) + i * 3, nr_value(e) + id[i] * 3, 3);
	for (int c = 0; c < 3; c++) {
		const real *g = nr_grad(e);
		const double twice = (double)data(&r, 1)[c] + (double)data(&r, 1)[6 + c];
		assert_true(g[c] == 0); /* the padding's row */
		assert_true(g[3 + c] == data(&r, 1)[9 + c]);
		close_to(&g[6 + c], &twice, 1, 1e-6);
		assert_true(g[9 + c] == 0);
	}
	release(&r);
}

static void rms_divides_by_the_root_mean_square(void **state)
{
	(void)state;
	static const real x[] = { 3, -4, 0, 5 };
	const double rms = sqrt(50. / 4 + 0.25), want[] = { 3 / rms, -4 / rms, 0, 5 / rms };
	struct rig r = rig();
	nr_t *y = nr_norm_make(r.n, "norm", "rms:eps=0.25", leaf(&r, NR_REAL, x, 2, 1, 4, 1, 1));
	close_to(run(&r, y), want, 4, 1e-6);
	assert_non_null(nr_store_find(r.store, "norm.weight"));
	assert_null(nr_store_find(r.store, "norm.bias"));
	release(&r);
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

static nr_t *bad_packed(struct rig *r) { return nr_attention(r->n, reals(r, 3, 2, 4, 10, 1), 2); }
static nr_t *bad_heads(struct rig *r) { return nr_attention(r->n, reals(r, 3, 2, 4, 15, 1), 2); }
static nr_t *bad_bias(struct rig *r)
{
	return nr_attention_with(r->n, reals(r, 3, 2, 4, 6, 1), (struct nr_attention_options){ .heads = 2,
		.bias = reals(r, 3, 2, 4, 5, 1) });
}
static nr_t *bad_lengths(struct rig *r)
{
	return nr_attention_with(r->n, reals(r, 3, 2, 4, 6, 1), (struct nr_attention_options){ .heads = 1,
		.valid = reals(r, 1, 2, 1, 1, 1) });
}
static nr_t *bad_keys(struct rig *r)
{
	return nr_cross_attention(r->n, reals(r, 3, 2, 4, 6, 1), reals(r, 3, 2, 4, 5, 1), reals(r, 3, 2, 4, 6, 1),
		(struct nr_attention_options){ .heads = 1 });
}
static nr_t *bad_patch(struct rig *r)
{
	return nr_patches(r->n, reals(r, 4, 1, 3, 8, 9), 4, NR_PATCH_ROW_COL_CHANNEL);
}
static nr_t *bad_table(struct rig *r) { return nr_add_table(r->n, reals(r, 3, 2, 4, 6, 1), reals(r, 3, 1, 5, 6, 1)); }
static nr_t *bad_token(struct rig *r) { return nr_prepend(r->n, reals(r, 3, 2, 1, 6, 1), reals(r, 3, 2, 4, 6, 1)); }
static nr_t *bad_index(struct rig *r)
{
	return nr_take_tokens(r->n, reals(r, 3, 2, 4, 6, 1), reals(r, 2, 2, 2, 1, 1));
}
static nr_t *bad_subset(struct rig *r)
{
	nr_t *x = nr_prepend(r->n, reals(r, 3, 1, 1, 6, 1), reals(r, 3, 2, 4, 6, 1));
	return nr_take_tokens(r->n, x, ints(r, (const int32_t[]){ 0, 0 }, 2, 2, 1));
}
static nr_t *bad_mask_token(struct rig *r)
{
	return nr_restore_tokens(r->n, reals(r, 3, 2, 1, 6, 1), reals(r, 1, 5, 1, 1, 1),
		ints(r, (const int32_t[]){ 0, 0 }, 2, 2, 1));
}
static nr_t *bad_labels(struct rig *r)
{
	return nr_cross_entropy(r->n, reals(r, 2, 2, 4, 1, 1), ints(r, (const int32_t[]){ 0, 0, 0 }, 1, 3, 1), 0, -1);
}
static nr_t *bad_smoothing(struct rig *r)
{
	return nr_cross_entropy(r->n, reals(r, 2, 1, 4, 1, 1), ints(r, (const int32_t[]){ 0 }, 1, 1, 1), 1.5, -1);
}
static nr_t *bad_targets(struct rig *r)
{
	return nr_soft_cross_entropy(r->n, reals(r, 2, 2, 4, 1, 1), reals(r, 2, 2, 3, 1, 1));
}
static nr_t *bad_weights(struct rig *r)
{
	return nr_masked_mse(r->n, reals(r, 3, 2, 3, 4, 1), reals(r, 3, 2, 3, 4, 1), reals(r, 2, 2, 2, 1, 1), 0);
}
static nr_t *bad_p(struct rig *r) { return nr_dropout(r->n, reals(r, 1, 4, 1, 1, 1), 1); }
static nr_t *bad_mul(struct rig *r) { return nr_mul(r->n, reals(r, 1, 4, 1, 1, 1), reals(r, 1, 5, 1, 1, 1)); }
static nr_t *bad_gain(struct rig *r)
{
	return nr_scale_channels(r->n, reals(r, 2, 4, 6, 1, 1), reals(r, 1, 5, 1, 1, 1));
}
static nr_t *bad_mask(struct rig *r) { return nr_softmax(r->n, reals(r, 2, 4, 6, 1, 1), 1, reals(r, 2, 3, 6, 1, 1)); }
static nr_t *bad_matmul(struct rig *r)
{
	return nr_matmul(r->n, reals(r, 3, 2, 3, 4, 1), reals(r, 3, 2, 3, 4, 1), 0, 0);
}
static nr_t *bad_groups(struct rig *r) { return nr_conv(r->n, "c", reals(r, 4, 1, 4, 4, 6), 6, 3, 1, 1, 2, 1); }
static nr_t *bad_window(struct rig *r) { return nr_pool(r->n, "mean", reals(r, 4, 1, 2, 2, 1), 3, 1, 0); }
static nr_t *bad_pool(struct rig *r) { return nr_pool(r->n, "median", reals(r, 4, 1, 2, 2, 1), 1, 1, 0); }
static nr_t *bad_ids(struct rig *r) { return nr_embedding(r->n, "e", reals(r, 2, 1, 2, 1, 1), 4, 3, -1); }

static void wrong_shapes_are_refused_with_the_sizes(void **state)
{
	(void)state;
	static const struct { nr_t *(*build)(struct rig *); const char *says; } bad[] = {
		{ bad_packed, "2x4x10 is not (B,T,3C)" }, { bad_heads, "5 channels cannot be divided into 2 heads" },
		{ bad_bias, "the bias 2x4x5 is neither" },
		{ bad_lengths, "key lengths must be 2 int32" },
		{ bad_keys, "queries 2x4x6, keys 2x4x5 and values 2x4x6" },
		{ bad_patch, "patches of 4 do not tile a picture of 8 x 9" },
		{ bad_table, "the table 1x5x6 does not fit 2x4x6" },
		{ bad_token, "not 2x1x6" }, { bad_index, "must be int32 (B,K)" },
		{ bad_subset, "without special ones" },
		{ bad_mask_token, "the mask token has 5 channels, but the others have 6" },
		{ bad_labels, "the labels 3 are not one int32 for each row of 2x4" },
		{ bad_smoothing, "label smoothing 1.5" },
		{ bad_targets, "the targets 2x3 do not match the logits 2x4" },
		{ bad_weights, "the weights 2x2 are not one for each row of 2x3x4" },
		{ bad_p, "probability 1 is not in [0,1)" },
		{ bad_mul, "4 and 5 differ" }, { bad_gain, "5 gains do not divide the channels of 4x6" },
		{ bad_mask, "the mask 3x6 does not fit 4x6" },
		{ bad_matmul, "2x3x4 and 2x3x4 cannot be multiplied" }, { bad_groups, "2 groups for 6 inputs" },
		{ bad_window, "a window of 3 does not fit 1x2x2x1" }, { bad_pool, "no such pooling" },
		{ bad_ids, "int32 indices are wanted" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct rig r = rig();
		char text[1200];
		nr_t *y = bad[i].build(&r);
		nr_error_text(nr_net_error(r.n), text, sizeof text);
		if (y || !strstr(text, bad[i].says)) fail_msg("'%s' is not in '%s'", bad[i].says, text);
		release(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cross_entropy_of_equal_logits_is_log_of_the_classes),
		cmocka_unit_test(cross_entropy_smooths_and_ignores),
		cmocka_unit_test(pixel_cross_entropy_enlarges_the_logits),
		cmocka_unit_test(pixel_cross_entropy_without_a_label_is_zero_and_quiet),
		cmocka_unit_test(cross_entropy_without_a_label_is_zero_and_quiet),
		cmocka_unit_test(soft_and_sigmoid_cross_entropies_match_their_formulas),
		cmocka_unit_test(masked_error_standardises_targets_as_mae_does),
		cmocka_unit_test(masked_error_of_nothing_is_zero),
		cmocka_unit_test(mean_square_error_and_weighted_sum_by_hand),
		cmocka_unit_test(dropout_is_the_identity_in_evaluation),
		cmocka_unit_test(dropout_keeps_the_mean_and_repeats_its_mask_in_backward),
		cmocka_unit_test(drop_path_drops_whole_samples),
		cmocka_unit_test(random_ops_draw_different_masks_which_views_leave_alone),
		cmocka_unit_test(products_value_by_value),
		cmocka_unit_test(softmax_scales_and_masks),
		cmocka_unit_test(matrix_products_in_all_transpositions),
		cmocka_unit_test(transpose_swaps_tokens_and_channels),
		cmocka_unit_test(convolutions_match_plain_loops),
		cmocka_unit_test(pools_by_hand),
		cmocka_unit_test(embedding_reads_rows_and_adds_their_gradients),
		cmocka_unit_test(rms_divides_by_the_root_mean_square),
		cmocka_unit_test(wrong_shapes_are_refused_with_the_sizes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
