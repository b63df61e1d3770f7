/* Activations: the plain reference and the threaded drivers. Formulas stand at the names in act.h; GELU: Hendrycks &
 * Gimpel arXiv:1606.08415, hard-swish: Howard et al. arXiv:1905.02244, SiLU: Elfwing et al. arXiv:1702.03118. */
#include "math/act.h"

#include <string.h>

#include "math/row.h"

#define INL static inline __attribute__((always_inline))
#define INV_SQRT2 ((real)0.70710678118654752440)
#define INV_SQRT_2PI ((real)0.39894228040143267794)
#define SQRT_2_OVER_PI ((real)0.79788456080286535588)
#define CUBIC ((real)0.044715)
#define QUICK ((real)1.702)

INL real sigmoid(real x)
{
	const real e = nr_exp(-nr_fabs(x));
	return (x < 0 ? e : 1) / (1 + e);
}

INL real value(enum nr_act act, real x)
{
	switch (act) {
	case NR_ACT_RELU: return x < 0 ? 0 : x;
	case NR_ACT_GELU: return x * ((1 + nr_erf(x * INV_SQRT2)) / 2);
	case NR_ACT_GELU_TANH: return x * sigmoid(2 * SQRT_2_OVER_PI * (x + CUBIC * x * x * x));
	case NR_ACT_HARD_SWISH: return x < -3 ? 0 : x > 3 ? x : x * (x + 3) / 6;
	case NR_ACT_TANH: return nr_tanh(x);
	case NR_ACT_SIGMOID: return sigmoid(x);
	case NR_ACT_SILU: return x * sigmoid(x);
	case NR_ACT_EXP: return nr_exp(x);
	case NR_ACT_QUICK_GELU: return x * sigmoid(QUICK * x);
	default: return x;
	}
}

INL real derivative(enum nr_act act, real x)
{
	real s, t, u;
	switch (act) {
	case NR_ACT_RELU: return x > 0 ? 1 : 0;
	case NR_ACT_GELU: return (1 + nr_erf(x * INV_SQRT2)) / 2 + x * INV_SQRT_2PI * nr_exp(-x * x / 2);
	case NR_ACT_GELU_TANH:
		t = x * x;
		u = 2 * SQRT_2_OVER_PI * (x + CUBIC * x * t);
		s = sigmoid(u);
		/* beyond |x| = 12 the second term is 0, and inf * 0 must not come up; 1 - s would lose digits */
		return t > 144 ? s : s + x * s * sigmoid(-u) * 2 * SQRT_2_OVER_PI * (1 + 3 * CUBIC * t);
	case NR_ACT_HARD_SWISH: return x < -3 ? 0 : x > 3 ? 1 : x / 3 + (real)0.5;
	case NR_ACT_TANH: t = nr_tanh(x); return 1 - t * t;
	case NR_ACT_SIGMOID: return sigmoid(x) * sigmoid(-x);
	case NR_ACT_SILU: return sigmoid(x) * (1 + x * sigmoid(-x));
	case NR_ACT_EXP: return nr_exp(x);
	case NR_ACT_QUICK_GELU: return sigmoid(QUICK * x) * (1 + QUICK * x * sigmoid(-QUICK * x));
	default: return 1;
	}
}

INL void forward(enum nr_act act, int64_t n, const real *x, real *y)
{
	for (int64_t i = 0; i < n; i++) y[i] = value(act, x[i]);
}

INL void backward(enum nr_act act, int64_t n, const real *x, const real *dy, real *dx, int add)
{
	for (int64_t i = 0; i < n; i++) nr_put(&dx[i], dy[i] * derivative(act, x[i]), add);
}

INL void bias_backward(enum nr_act act, int64_t rows, int64_t C, const real *pre, int64_t ldp, const real *dy,
	int64_t lddy, real *dx, int64_t lddx, real *dbias)
{
	for (int64_t r = 0; r < rows; r++) {
		for (int64_t i = 0; i < C; i++) {
			const real v = dy[r * lddy + i] * derivative(act, pre[r * ldp + i]);
			dx[r * lddx + i] = v;
			if (dbias) dbias[i] += v;
		}
	}
}

#include "math/act_table.h"

const struct nr_act_kernels nr_act_plain = NR_ACT_TABLE;
const struct nr_act_kernels *nr_act_active = &nr_act_plain;

static const char *const names[NR_ACT_COUNT] = {
	[NR_ACT_NONE] = "none", [NR_ACT_RELU] = "relu", [NR_ACT_GELU] = "gelu", [NR_ACT_GELU_TANH] = "gelu_tanh",
	[NR_ACT_HARD_SWISH] = "hard_swish", [NR_ACT_TANH] = "tanh", [NR_ACT_SIGMOID] = "sigmoid",
	[NR_ACT_SILU] = "silu", [NR_ACT_EXP] = "exp", [NR_ACT_QUICK_GELU] = "quick_gelu",
};

const char *nr_act_name(enum nr_act act) { return (unsigned)act < NR_ACT_COUNT ? names[act] : "?"; }

int nr_act_find(const char *name)
{
	for (int i = 0; i < NR_ACT_COUNT; i++)
		if (!strcmp(name, names[i])) return i;
	return -1;
}

void nr_act_forward(enum nr_act act, int64_t n, const real *x, real *y)
{
#pragma omp parallel for schedule(static) if (n > NR_ARRAY_CHUNK)
	for (int64_t i = 0; i < n; i += NR_ARRAY_CHUNK)
		nr_act_active->forward[act](nr_min64(NR_ARRAY_CHUNK, n - i), x + i, y + i);
}

void nr_act_backward(enum nr_act act, int64_t n, const real *x, const real *dy, real *dx, int add)
{
#pragma omp parallel for schedule(static) if (n > NR_ARRAY_CHUNK)
	for (int64_t i = 0; i < n; i += NR_ARRAY_CHUNK)
		nr_act_active->backward[act](nr_min64(NR_ARRAY_CHUNK, n - i), x + i, dy + i, dx + i, add);
}

void nr_act_bias_backward(enum nr_act act, int64_t rows, int64_t C, const real *pre, int64_t ldp, const real *dy,
	int64_t lddy, real *dx, int64_t lddx, real *dbias, int add, real *scratch)
{
	const int64_t chunks = nr_chunks(rows);
#pragma omp parallel for schedule(static) if (rows * C > NR_ARRAY_CHUNK)
	for (int64_t q = 0; q < chunks; q++) {
		const int64_t r = q * NR_CHUNK;
		real *part = dbias ? memset(scratch + q * C, 0, (size_t)C * sizeof(real)) : NULL;
		nr_act_active->bias_backward[act](nr_min64(NR_CHUNK, rows - r), C, pre + r * ldp, ldp, dy + r * lddy,
			lddy, dx + r * lddx, lddx, part);
	}
	if (dbias) nr_fold(chunks, C, scratch, dbias, add);
}
