/* Activations: exp, GELU (erf, tanh and quick forms), hard-swish, tanh, sigmoid, ReLU, SiLU; values and derivatives.
 *
 * Error bounds against double on every instruction set, tested on dense grids in test/unit/act.c: exp 1e-7 relative, the
 * others 3e-7 relative above 1 and absolute below (GELU erf forward 2e-7). Forward functions pass NaN on. Outputs may be
 * inputs. */
#ifndef NR_ACT_H
#define NR_ACT_H

#include <stddef.h>

#include "math/chunk.h"
#include "math/isa.h"

enum nr_act {
	NR_ACT_NONE,       /* x */
	NR_ACT_RELU,       /* max(x, 0) */
	NR_ACT_GELU,       /* x Phi(x), Phi the normal distribution */
	NR_ACT_GELU_TANH,  /* x (1 + tanh(sqrt(2/pi) (x + .044715 x^3))) / 2 */
	NR_ACT_HARD_SWISH, /* x min(max(x + 3, 0), 6) / 6 */
	NR_ACT_TANH,
	NR_ACT_SIGMOID,    /* 1 / (1 + e^-x) */
	NR_ACT_SILU,       /* x sigmoid(x) */
	NR_ACT_EXP,
	NR_ACT_QUICK_GELU, /* x sigmoid(1.702 x) (CLIP) */
	NR_ACT_COUNT
};

struct nr_act_kernels {
	void (*forward[NR_ACT_COUNT])(int64_t n, const real *x, real *y);
	/* dx = dy f'(x), or += */
	void (*backward[NR_ACT_COUNT])(int64_t n, const real *x, const real *dy, real *dx, int add);
	/* dx = dy f'(pre), overwritten (may be dy or pre), and dbias (C) += its column sums; dbias may be NULL. */
	void (*bias_backward[NR_ACT_COUNT])(int64_t rows, int64_t C, const real *pre, int64_t ldp, const real *dy,
		int64_t lddy, real *dx, int64_t lddx, real *dbias);
};
NR_FAMILY_DECLARE(act);

const char *nr_act_name(enum nr_act);           /* "gelu", "gelu_tanh", ... */
int nr_act_find(const char *name);              /* -1: no such name */

/* Threaded over fixed chunks. */
void nr_act_forward(enum nr_act, int64_t n, const real *x, real *y);
void nr_act_backward(enum nr_act, int64_t n, const real *x, const real *dy, real *dx, int add);
/* dbias (C) overwritten or added to, or NULL; scratch: nr_col_sum_scratch(rows, C) values. */
void nr_act_bias_backward(enum nr_act, int64_t rows, int64_t C, const real *pre, int64_t ldp, const real *dy,
	int64_t lddy, real *dx, int64_t lddx, real *dbias, int add, real *scratch);

#endif
