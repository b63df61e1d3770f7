/* metrics/segmentation_head: token -> linear -> bilinear enlargement of the logits -> cross entropy per
 * pixel; gradients. */
#include <string.h>

#include "golden/check.h"
#include "math/gemm.h"
#include "math/resample.h"
#include "math/softmax.h"

static void gemm(struct golden_case *c, struct nr_gemm g)
{
	nr_gemm_run(&g, golden_alloc(c, 1, nr_gemm_scratch_of(&g) + 1));
}

/* (n,K) -> (K,n): the file has channels first. */
static void flip(int64_t n, int64_t K, const real *x, real *y)
{
	for (int64_t i = 0; i < n * K; i++) y[i % K * n + i / K] = x[i];
}

/* "bilinear, align_corners false, ..." */
static enum nr_resample enlarging(struct golden_case *c)
{
	return strstr(golden_text(c, "upsample"), "align_corners true") ? NR_RESAMPLE_BILINEAR_CORNERS : NR_RESAMPLE_BILINEAR;
}

int golden_metric_segmentation_head(struct golden_case *c)
{
	const struct golden_tensor x = golden_tensor(c, 3, "in.tokens"), W = golden_tensor(c, 2, "in.weight");
	const struct golden_tensor bias = golden_tensor(c, 1, "in.bias");
	const struct golden_ints truth = golden_ints(c, 3, "in.gt");
	const int64_t B = x.d[0], T = x.d[1], C = x.d[2], K = W.d[0], h = (int64_t)golden_item(c, "grid", 0);
	const int64_t w = (int64_t)golden_item(c, "grid", 1), H = truth.d[1], V = truth.d[2], P = H * V;
	golden_expect(
		c, W.d[1] == C && bias.n == K && T == h * w && truth.d[0] == B, "tokens, weights, labels");
	real *low = golden_reals(c, B * T * K), *high = golden_reals(c, B * P * K),
	     *out = golden_reals(c, B * (P > T ? P : T) * K);
	real *tmp = golden_reals(c, H * w * K), *loss = golden_reals(c, B * P),
	     *d_high = golden_reals(c, B * P * K);
	real *d_low = golden_reals(c, B * T * K), *dx = golden_reals(c, x.n), *dW = golden_reals(c, W.n),
	     *db = golden_reals(c, K);
	const enum nr_resample how = enlarging(c);
	const struct nr_axis rows = nr_axis_init(how, h, H, golden_alloc(c, 1, nr_axis_bytes(h, H)));
	const struct nr_axis cols = nr_axis_init(how, w, V, golden_alloc(c, 1, nr_axis_bytes(w, V)));
	const int32_t ignore = (int32_t)golden_number(c, "ignore");

	gemm(c,
		(struct nr_gemm){ .m = B * T,
			.n = K,
			.k = C,
			.a = x.x,
			.lda = C,
			.b = W.x,
			.ldb = C,
			.tb = 1,
			.c = low,
			.ldc = K,
			.bias = bias.x });
	for (int64_t b = 0; b < B; b++) {
		nr_resample_forward(&rows, &cols, K, low + b * T * K, high + b * P * K, tmp);
		flip(T, K, low + b * T * K, out + b * T * K);
	}
	golden_check(c, "out", out, B * T * K, "logits_low");
	flip(P, K, high, out);
	golden_check(c, "out", out, P * K, "logits_first_image");

	const int64_t count = nr_xent_count(B * P, truth.x, ignore);
	nr_xent_labels(B * P, K, high, K, truth.x, ignore, 0, 1 / (real)count, loss, d_high, K, 0);
	double sum = 0;
	for (int64_t i = 0; i < B * P; i++) sum += (double)loss[i];
	golden_check_value(c, "out", sum / (double)count, "loss");

	for (int64_t b = 0; b < B; b++)
		nr_resample_backward(&rows, &cols, K, d_high + b * P * K, d_low + b * T * K, 0, tmp);
	gemm(c,
		(struct nr_gemm){ .m = B * T,
			.n = C,
			.k = K,
			.a = d_low,
			.lda = K,
			.b = W.x,
			.ldb = C,
			.c = dx,
			.ldc = C });
	gemm(c,
		(struct nr_gemm){ .m = K,
			.n = C,
			.k = B * T,
			.a = d_low,
			.lda = K,
			.ta = 1,
			.b = x.x,
			.ldb = C,
			.c = dW,
			.ldc = C });
	nr_row_active->col_sum(B * T, K, d_low, K, db);
	golden_check(c, "out", dx, x.n, "grad.tokens");
	golden_check(c, "out", dW, W.n, "grad.weight");
	golden_check(c, "out", db, K, "grad.bias");
	return GOLDEN_RAN;
}
