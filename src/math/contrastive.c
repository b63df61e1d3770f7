/* Contrastive image-text losses with gradients. See contrastive.h. */
#include "math/contrastive.h"

#include "math/gemm.h"
#include "math/softmax.h"

static size_t round64(size_t n) { return (n + 63) / 64 * 64; }

static size_t gemm_bytes(int64_t B, int64_t C)
{
	const size_t a = nr_gemm_scratch(B, B, C, 0, 1), b = nr_gemm_scratch(B, C, B, 0, 0),
		     c = nr_gemm_scratch(B, C, B, 1, 0);
	return a > b ? a > c ? a : c : b > c ? b : c;
}

size_t nr_contrastive_scratch(int64_t B, int64_t C)
{
	return round64(gemm_bytes(B, C)) + (size_t)(4 * B * C + 4 * B * B + 3 * B) * sizeof(real) +
		(size_t)B * sizeof(int32_t);
}

/* u = x / |x| row by row; inv = 1/|x| (0 for a zero row). */
static void normalise(int64_t B, int64_t C, const real *x, real *u, real *inv)
{
	for (int64_t i = 0; i < B; i++) {
		const real len = nr_sqrt(nr_dot(C, x + i * C, x + i * C));
		inv[i] = len > 0 ? 1 / len : 0;
		for (int64_t k = 0; k < C; k++) u[i * C + k] = x[i * C + k] * inv[i];
	}
}

/* dx = (du - u (u.du)) / |x| */
static void normalise_backward(int64_t B, int64_t C, const real *u, const real *inv, const real *du, real *dx)
{
	for (int64_t i = 0; i < B; i++) {
		const real along = nr_dot(C, u + i * C, du + i * C);
		for (int64_t k = 0; k < C; k++)
			dx[i * C + k] = (du[i * C + k] - u[i * C + k] * along) * inv[i];
	}
}

void nr_contrastive_run(struct nr_contrastive *c, void *scratch)
{
	const int64_t B = c->B, C = c->C;
	real *u = (real *)((char *)scratch + round64(gemm_bytes(B, C))), *w = u + B * C, *du = w + B * C,
	     *dw = du + B * C;
	real *flip = dw + B * C, *d = flip + B * B, *dflip = d + B * B, *target = dflip + B * B;
	real *inv_u = target + B * B, *inv_w = inv_u + B, *loss = inv_w + B, t = (real)exp(c->log_t);
	int32_t *label = (int32_t *)(loss + B);
	const int sigmoid = c->kind == NR_CONTRASTIVE_SIGMOID;
	const real b = sigmoid ? (real)c->bias : 0;

	normalise(B, C, c->image, u, inv_u);
	normalise(B, C, c->text, w, inv_w);
	nr_gemm_run(&(struct nr_gemm){ .m = B,
			    .n = B,
			    .k = C,
			    .a = u,
			    .lda = C,
			    .b = w,
			    .ldb = C,
			    .tb = 1,
			    .c = c->logits,
			    .ldc = B },
		scratch);
	for (int64_t i = 0; i < B * B; i++) c->logits[i] = t * c->logits[i] + b;
	c->loss = c->d_log_t = c->d_bias = 0;
	if (sigmoid) {
		for (int64_t i = 0; i < B * B; i++) target[i] = i % (B + 1) == 0;
		nr_xent_sigmoid(B, B, c->logits, B, target, B, 1 / (real)B, loss, d, B, 0);
		for (int64_t i = 0; i < B; i++) c->loss += (double)loss[i] / (double)B;
	} else {
		const real half = (real).5 / (real)B;
		for (int64_t i = 0; i < B; i++) label[i] = (int32_t)i;
		for (int64_t i = 0; i < B * B; i++) flip[i] = c->logits[i % B * B + i / B];
		nr_xent_labels(B, B, c->logits, B, label, -1, 0, half, loss, d, B, 0);
		for (int64_t i = 0; i < B; i++) c->loss += (double)loss[i] * (double)half;
		nr_xent_labels(B, B, flip, B, label, -1, 0, half, loss, dflip, B, 0);
		for (int64_t i = 0; i < B; i++) c->loss += (double)loss[i] * (double)half;
		for (int64_t i = 0; i < B * B; i++) d[i] += dflip[i % B * B + i / B];
	}
	for (int64_t i = 0; i < B * B; i++) {
		c->d_log_t += (double)d[i] * (double)(c->logits[i] - b);
		c->d_bias += sigmoid ? (double)d[i] : 0;
		d[i] *= t;
	}
	nr_gemm_run(
		&(struct nr_gemm){
			.m = B, .n = C, .k = B, .a = d, .lda = B, .b = w, .ldb = C, .c = du, .ldc = C },
		scratch);
	nr_gemm_run(&(struct nr_gemm){ .m = B,
			    .n = C,
			    .k = B,
			    .a = d,
			    .lda = B,
			    .ta = 1,
			    .b = u,
			    .ldb = C,
			    .c = dw,
			    .ldc = C },
		scratch);
	normalise_backward(B, C, u, inv_u, du, c->d_image);
	normalise_backward(B, C, w, inv_w, dw, c->d_text);
}
