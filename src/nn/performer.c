/* performer: softmax attention of one head in linear time by positive random features. Choromanski et al. 2021, arXiv:2009.14794,
 * as T2T-ViT's token stages have it (arXiv:2101.11986; packed k, q, v; C channels, m features):
 *
 *   phi(x) = exp(w x - |x|^2 / 2) / sqrt(m)
 *   y_t = M phi(q_t) / (phi(q_t) . K + eps),   M = sum_s v_s phi(k_s)^T,   K = sum_s phi(k_s)
 *
 * Tokens are taken in fixed chunks, whose sums are folded in order. Kept: phi of keys and queries, M and K. */
#include <math.h>

#include "math/row.h"
#include "nn/op.h"

enum { CHUNK = 64 };

struct attr { double eps; };
struct sizes { int64_t B, T, C, m, chunks, sum; };             /* sum: values of M (m,C) and K (m) */

static struct sizes sizes(const struct nr_node *k)
{
	const nr_t *x = k->in[0], *w = k->in[1];
	struct sizes s = { x->d[0], x->d[1], x->d[2] / 3, w->d[0], (x->d[1] + CHUNK - 1) / CHUNK, 0 };
	s.sum = s.m * (s.C + 1);
	return s;
}

static int shape(struct nr_node *k)
{
	const nr_t *x = k->in[0], *w = k->in[1];
	char sx[64], sw[64];
	if (nr_expect(k, x->nd == 3 && w->nd == 2 && x->d[2] == 3 * w->d[1], "k q v %s do not match the features %s",
		nr_shape_text(x, sx, sizeof sx), nr_shape_text(w, sw, sizeof sw)))
		return NR_ESHAPE;
	const struct sizes s = sizes(k);
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ s.B, s.T, s.C }, x->tok);
	k->stash = (size_t)(s.B * s.T * 2 * s.m + s.B * s.sum) * sizeof(real);
	/* chunks' sums of M and K, or of their gradients and of w's; the samples' folded ones; gradients of phi */
	k->scratch = (size_t)(s.B * s.chunks * (s.sum + s.m * s.C) + s.B * s.sum + s.B * s.T * 2 * s.m) * sizeof(real);
	return 0;
}

static real *phi_of(const struct nr_call *k, const struct sizes *s, int64_t row) { return (real *)k->stash + row * 2 * s->m; }
static real *sums_of(const struct nr_call *k, const struct sizes *s, int64_t b)
{
	return (real *)k->stash + s->B * s->T * 2 * s->m + b * s->sum;
}
static real *part_of(const struct nr_call *k, const struct sizes *s, int64_t chunk) { return (real *)k->scratch + chunk * s->sum; }

static void phi(const struct sizes *s, const real *x, const real *w, real *out)
{
	const real half = nr_dot(s->C, x, x) / 2, scale = 1 / nr_sqrt((real)s->m);
	for (int64_t i = 0; i < s->m; i++) out[i] = nr_exp(nr_dot(s->C, w + i * s->C, x) - half) * scale;
}

/* Every chunk of every sample: f(k, s, b, first token, tokens, chunk). */
static void each_chunk(const struct nr_call *k, const struct sizes *s,
	void (*f)(const struct nr_call *, const struct sizes *, int64_t b, int64_t t0, int64_t n, int64_t chunk))
{
#pragma omp parallel for schedule(static) if (s->B * s->T * s->m * s->C > 16384)
	for (int64_t q = 0; q < s->B * s->chunks; q++) {
		const int64_t t0 = q % s->chunks * CHUNK;
		f(k, s, q / s->chunks, t0, s->T - t0 < CHUNK ? s->T - t0 : CHUNK, q);
	}
}

static void sum_keys(const struct nr_call *k, const struct sizes *s, int64_t b, int64_t t0, int64_t n, int64_t chunk)
{
	real *M = part_of(k, s, chunk), *K = M + s->m * s->C;
	memset(M, 0, (size_t)s->sum * sizeof(real));
	for (int64_t r = b * s->T + t0; r < b * s->T + t0 + n; r++) {
		const real *x = nr_row(&k->x[0], r);
		real *p = phi_of(k, s, r);
		phi(s, x, k->x[1].p, p);
		phi(s, x + s->C, k->x[1].p, p + s->m);
		for (int64_t i = 0; i < s->m; i++) {
			nr_row_axpy(s->C, p[i], x + 2 * s->C, M + i * s->C);
			K[i] += p[i];
		}
	}
}
static real weight_of(const struct nr_call *k, const struct sizes *s, const real *q, const real *K)
{
	return 1 / (nr_dot(s->m, q, K) + (real)((const struct attr *)k->node->attr)->eps);
}
static void answer(const struct nr_call *k, const struct sizes *s, int64_t b, int64_t t0, int64_t n, int64_t chunk)
{
	(void)chunk;
	const real *M = sums_of(k, s, b), *K = M + s->m * s->C;
	for (int64_t r = b * s->T + t0; r < b * s->T + t0 + n; r++) {
		const real *q = phi_of(k, s, r) + s->m, weight = weight_of(k, s, q, K);
		real *y = nr_row(&k->y[0], r);
		memset(y, 0, (size_t)s->C * sizeof(real));
		for (int64_t i = 0; i < s->m; i++) nr_row_axpy(s->C, q[i] * weight, M + i * s->C, y);
	}
}

static void forward(const struct nr_call *k)
{
	const struct sizes s = sizes(k->node);
	each_chunk(k, &s, sum_keys);
	for (int64_t b = 0; b < s.B; b++) nr_fold(s.chunks, s.sum, part_of(k, &s, b * s.chunks), sums_of(k, &s, b), 0);
	each_chunk(k, &s, answer);
}

/* ---- backward ----------------------------------------------------------------------------------------------------------- */

static real *dsums_of(const struct nr_call *k, const struct sizes *s, int64_t b) { return part_of(k, s, s->B * s->chunks) + b * s->sum; }
static real *dphi_of(const struct nr_call *k, const struct sizes *s, int64_t row)
{
	return part_of(k, s, s->B * s->chunks) + s->B * s->sum + row * 2 * s->m;
}
static real *dw_of(const struct nr_call *k, const struct sizes *s, int64_t chunk)
{
	return dphi_of(k, s, s->B * s->T) + chunk * s->m * s->C;
}

/* Gradients of phi(q), and the chunk's share of those of M and K. */
static void back_answer(const struct nr_call *k, const struct sizes *s, int64_t b, int64_t t0, int64_t n, int64_t chunk)
{
	const real *M = sums_of(k, s, b), *K = M + s->m * s->C;
	real *dM = part_of(k, s, chunk), *dK = dM + s->m * s->C;
	memset(dM, 0, (size_t)s->sum * sizeof(real));
	for (int64_t r = b * s->T + t0; r < b * s->T + t0 + n; r++) {
		const real *q = phi_of(k, s, r) + s->m, *g = nr_row(&k->dy[0], r), weight = weight_of(k, s, q, K);
		const real dD = -weight * nr_dot(s->C, g, nr_row(&k->y[0], r));
		real *dq = dphi_of(k, s, r) + s->m;
		for (int64_t i = 0; i < s->m; i++) {
			dq[i] = weight * nr_dot(s->C, M + i * s->C, g) + dD * K[i];
			nr_row_axpy(s->C, q[i] * weight, g, dM + i * s->C);
			dK[i] += dD * q[i];
		}
	}
}

/* Through phi: dx = sum_i d_i phi_i (w_i - x); the same of w. */
static void back_phi(const struct nr_call *k, const struct sizes *s, const real *x, const real *p, const real *d, real *dx, real *dw)
{
	const real *w = k->x[1].p;
	real all = 0;
	for (int64_t i = 0; i < s->m; i++) {
		const real e = d[i] * p[i];
		all += e;
		nr_row_axpy(s->C, e, w + i * s->C, dx);
		if (dw) nr_row_axpy(s->C, e, x, dw + i * s->C);
	}
	nr_row_axpy(s->C, -all, x, dx);
}
static void back_keys(const struct nr_call *k, const struct sizes *s, int64_t b, int64_t t0, int64_t n, int64_t chunk)
{
	const real *dM = dsums_of(k, s, b), *dK = dM + s->m * s->C;
	real *dw = k->want & 2 ? dw_of(k, s, chunk) : NULL;
	if (dw) memset(dw, 0, (size_t)(s->m * s->C) * sizeof(real));
	for (int64_t r = b * s->T + t0; r < b * s->T + t0 + n; r++) {
		const real *x = nr_row(&k->x[0], r), *p = phi_of(k, s, r);
		real *d = dphi_of(k, s, r), *dx = nr_row(&k->dx[0], r);
		if (!k->add[0]) memset(dx, 0, (size_t)(3 * s->C) * sizeof(real));
		for (int64_t i = 0; i < s->m; i++) {
			d[i] = nr_dot(s->C, dM + i * s->C, x + 2 * s->C) + dK[i];
			nr_row_axpy(s->C, p[i], dM + i * s->C, dx + 2 * s->C);
		}
		back_phi(k, s, x, p, d, dx, dw);
		back_phi(k, s, x + s->C, p + s->m, d + s->m, dx + s->C, dw);
	}
}

static void backward(const struct nr_call *k)
{
	const struct sizes s = sizes(k->node);
	each_chunk(k, &s, back_answer);
	for (int64_t b = 0; b < s.B; b++) nr_fold(s.chunks, s.sum, part_of(k, &s, b * s.chunks), dsums_of(k, &s, b), 0);
	each_chunk(k, &s, back_keys);
	if (k->want & 2) nr_fold(s.B * s.chunks, s.m * s.C, dw_of(k, &s, 0), k->dx[1].p, k->add[1]);
}

static void cost(const struct nr_node *k, double *forward_flops, double *backward_flops)
{
	const struct sizes s = sizes(k);
	*forward_flops = 8.0 * (double)(s.B * s.T) * (double)(s.m * s.C);
	*backward_flops = 2 * *forward_flops;
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text)
{
	(void)text;
	return nr_performer(n, x[0], x[1], 1e-3);
}
static const struct nr_case cases[] = { { "2x5x12 3x4", "" }, { "1x1x3 1x1", "" }, { "2x70x6 2x2", "" }, { NULL, NULL } };
const struct nr_op nr_op_performer = {
	.name = "performer", .shape = shape, .forward = forward, .backward = backward, .cost = cost,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1) | NR_KEEP_Y(0), .flags = NR_STRIDED, .try_case = try_case, .cases = cases,
};

nr_t *nr_performer(struct nr_net *n, nr_t *kqv, nr_t *w, double eps)
{
	const struct attr a = { eps };
	return nr_apply(n, &nr_op_performer, &a, sizeof a, kqv, w);
}
