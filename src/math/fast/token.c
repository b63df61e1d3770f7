/* The token family in vectors: see token.h for the equations. A head's row is a few vectors, so rows go one by one and
 * the sums over a token stay in registers. */
#include "math/token.h"

#include <string.h>

#include "math/fast/vec.h"

/* step(n, c) for all channels c, n of them at a time. */
#define CHANNELS(step)                                                                                                 \
	do {                                                                                                           \
		int64_t c_ = 0;                                                                                        \
		for (; c_ + VL <= d; c_ += VL) step(VL, c_);                                                           \
		if (c_ < d) step(d - c_, c_);                                                                          \
	} while (0)

INL float rms_of(const struct nr_token_unit *k, int64_t i) { return k->rms ? k->rms[i * k->ldr] : 1; }
/* x / rms; where it is 1 for all, without the division. */
INL vf scaled(vf x, vf rms, int any) { return any ? x / rms : x; }
INL int64_t row_of(const struct nr_token_unit *k, int64_t i) { return k->at ? k->at[i] : i; }

static void gather(const struct nr_token_unit *k, int64_t rows, float share, float *out)
{
	const int64_t d = k->d;
	if (k->at) memset(out, 0, (size_t)(rows * 2 * d) * sizeof(float));
	for (int64_t i = 0; i < k->n; i++) {
		const float *x = k->x + i * k->ldx, *centre = k->centre;
		float *u = out + row_of(k, i) * 2 * d;
		const vf rms = bc(rms_of(k, i));
		const int any = k->rms != NULL;
#define STEP(n, c)                                                                                                     \
	do {                                                                                                           \
		const vf v_ = scaled(get(x + (c), n), rms, any) - get(centre + (c), n);                                \
		set(u + (c), v_, n);                                                                                   \
		set(u + d + (c), v_ * v_, n);                                                                          \
	} while (0)
#define ADD(n, c) set(u + (c), get(u + (c), n) + (scaled(get(x + (c), n), rms, any) - get(centre + (c), n)), n)
		if (k->at) CHANNELS(ADD);
		else CHANNELS(STEP);
#undef STEP
#undef ADD
	}
	for (int64_t r = 0; k->at && r < rows; r++, out += 2 * d) {
#pragma omp simd
		for (int64_t c = 0; c < d; c++) {
			out[c] *= share;
			out[d + c] = out[c] * out[c];
		}
	}
}

struct token { int any; vf rms, mean, lam_mean, rest_mean, own_var, rest_var; }; /* own_var: lam_var var + eps */
struct value { vf m, v, mean, rstd, hat; };

INL struct token token(const struct nr_token_unit *k, int64_t i)
{
	return (struct token){ .any = k->rms != NULL, .rms = bc(rms_of(k, i)), .mean = bc(k->mean[i]), .lam_mean = bc(k->lam_mean),
		.rest_mean = bc(1 - k->lam_mean), .own_var = bc(k->lam_var * k->var[i] + k->eps),
		.rest_var = bc(1 - k->lam_var) };
}

INL struct value value(const struct token *t, const float *x, const float *centre, const float *m,
	const float *q, int64_t n)
{
	struct value r;
	const vf c = get(centre, n), u = scaled(get(x, n), t->rms, t->any) - c;
	r.m = get(m, n);
	r.v = VMAX(bc(0), get(q, n) - r.m * r.m);
	r.mean = t->mean - c;
	r.rstd = 1.f / VSQRT(t->own_var + t->rest_var * r.v);
	r.hat = (u - t->lam_mean * r.mean - t->rest_mean * r.m) * r.rstd;
	return r;
}

static void normalize(const struct nr_token_unit *k)
{
	const int64_t d = k->d;
	const float *centre = k->centre, *weight = k->weight, *bias = k->bias;
	for (int64_t i = 0; i < k->n; i++) {
		const struct token t = token(k, i);
		const float *x = k->x + i * k->ldx, *m = k->mq + row_of(k, i) * k->ldmq, *q = m + d;
		float *y = k->y + i * k->ldy;
#define HAT(n, c) value(&t, x + (c), centre + (c), m + (c), q + (c), n).hat
#define STEP(n, c) set(y + (c), HAT(n, c) * get(weight + (c), n) + get(bias + (c), n), n)
#define BARE(n, c) set(y + (c), HAT(n, c), n)
		if (weight) CHANNELS(STEP);
		else CHANNELS(BARE);
#undef HAT
#undef STEP
#undef BARE
	}
}

struct sums { vf mean, var, lam_mean, lam_var; };

/* n channels of a token from c on. */
INL void gradient_step(const struct nr_token_unit *k, const struct token *t, int64_t i, int64_t c, int64_t n,
	int pooled, int affine, struct sums *s)
{
	const int64_t row = row_of(k, i), d = k->d;
	const float *m = k->mq + row * k->ldmq + c;
	const struct value r = value(t, k->x + i * k->ldx + c, k->centre + c, m, m + d, n);
	const vf dy = get(k->dy + i * k->lddy + c, n);
	if (affine) {
		set(k->dweight + c, get(k->dweight + c, n) + dy * r.hat, n);
		set(k->dbias + c, get(k->dbias + c, n) + dy, n);
	}
	const vf g = (affine ? dy * get(k->weight + c, n) : dy) * r.rstd, dvar = g * r.hat * r.rstd * -.5f;
	set(k->dz + i * k->lddz + c, g, n);
	s->mean -= g;
	s->var += dvar;
	s->lam_mean -= g * (r.mean - r.m);
	s->lam_var += dvar * (bc(k->var[i]) - r.v);
	if (!k->dmq) return;
	float *dm = k->dmq + row * 2 * d + c;
	vf dq = (vf)((vi)(t->rest_var * dvar) & (vi)(r.v > bc(0))), g1 = -(t->rest_mean * g) - 2.f * r.m * dq;
	if (pooled) g1 += get(dm, n), dq += get(dm + d, n);
	set(dm, g1, n);
	set(dm + d, dq, n);
}

INL void gradient_rows(const struct nr_token_unit *k, int pooled, int affine)
{
	const int64_t d = k->d;
	struct sums s = { .lam_mean = bc(0), .lam_var = bc(0) };
	for (int64_t i = 0; i < k->n; i++) {
		const struct token t = token(k, i);
		s.mean = s.var = bc(0);
#define STEP(n, c) gradient_step(k, &t, i, c, n, pooled, affine, &s)
		CHANNELS(STEP);
#undef STEP
		k->dmean[i * k->ldd] = k->lam_mean * hsum(s.mean);
		k->dvar[i * k->ldd] = k->lam_var * hsum(s.var);
	}
	if (!k->dlam) return;
	k->dlam[0] += hsum(s.lam_mean);
	k->dlam[1] += hsum(s.lam_var);
}

/* In the tail of a row the lanes beyond hold z = centre = dy = 0, so g is 0 there and nothing reaches the sums. */
static void gradients(const struct nr_token_unit *k)
{
	if (k->at) gradient_rows(k, 1, k->weight != NULL);
	else if (k->weight) gradient_rows(k, 0, 1);
	else gradient_rows(k, 0, 0);
}

static void scatter(const struct nr_token_unit *k, float share, const float *u, const float *g)
{
	const int64_t d = k->d;
	for (int64_t i = 0; i < k->n; i++) {
		const float *a = g + row_of(k, i) * 2 * d, *b = u + row_of(k, i) * 2 * d;
		float *dz = k->dz + i * k->lddz;
#pragma omp simd
		for (int64_t c = 0; c < d; c++) dz[c] += share * (a[c] + 2 * b[c] * a[d + c]);
	}
}

static void spread(int64_t heads, int64_t d, const float *x, const float *rms, float mean, float dmean,
	float dvar, const float *dz, float *dx, int add)
{
	const vf centre = bc(mean), shift = bc(dmean), slope = bc(dvar);
	for (int64_t h = 0; h < heads; h++, x += d, dz += d, dx += d) {
		const vf s = bc(rms ? rms[h] : 1);
		vf dot = bc(0);
#define Z(n, c) scaled(get(x + (c), n), s, rms != NULL)
#define G(n, c) (get(dz + (c), n) + shift + slope * (Z(n, c) - centre))
		if (rms) {
#define DOT(n, c) dot += G(n, c) * Z(n, c)
			CHANNELS(DOT);
#undef DOT
			dot = bc(hsum(dot) / (float)d);
		}
#define PUT(n, c) set(dx + (c), scaled(G(n, c) - Z(n, c) * dot, s, rms != NULL), n)
#define ADD(n, c) set(dx + (c), get(dx + (c), n) + scaled(G(n, c) - Z(n, c) * dot, s, rms != NULL), n)
		if (add) CHANNELS(ADD);
		else CHANNELS(PUT);
#undef PUT
#undef ADD
#undef Z
#undef G
	}
}

static void scores(int64_t n, const float *px, const float *py, float x, float y, const float *a, float *s)
{
	const float a0 = a[0], a1 = a[1], a2 = a[2];
#pragma omp simd
	for (int64_t j = 0; j < n; j++) {
		const float dx = px[j] - x, dy = py[j] - y;
		s[j] = (a0 * dx + a1) * dx + (a0 * dy + a2) * dy;
	}
}

static void score_sums(int64_t n, const float *px, const float *py, float x, float y, const float *ds,
	double *da)
{
	float s0 = 0, s1 = 0, s2 = 0;
#pragma omp simd reduction(+ : s0, s1, s2)
	for (int64_t j = 0; j < n; j++) {
		const float dx = px[j] - x, dy = py[j] - y;
		s0 += ds[j] * (dx * dx + dy * dy);
		s1 += ds[j] * dx;
		s2 += ds[j] * dy;
	}
	da[0] += (double)s0;
	da[1] += (double)s1;
	da[2] += (double)s2;
}

const struct nr_token_kernels NR_FAST(token) = {
	.gather = gather, .normalize = normalize, .gradients = gradients, .scatter = scatter, .spread = spread,
	.scores = scores, .score_sums = score_sums,
};
