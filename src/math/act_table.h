/* One copy of the three loops per activation, the kind a constant in each, and the table of them. Included by act.c and
 * fast/act.c after their forward, backward and bias_backward. */
#define NR_ACT_FUNCTIONS(name, kind)                                                                                   \
	static void name##_forward(int64_t n, const real *x, real *y) { forward(kind, n, x, y); }                      \
	static void name##_backward(int64_t n, const real *x, const real *dy, real *dx, int add)                       \
	{                                                                                                              \
		if (add) backward(kind, n, x, dy, dx, 1);                                                              \
		else backward(kind, n, x, dy, dx, 0);                                                                  \
	}                                                                                                              \
	static void name##_bias_backward(int64_t rows, int64_t C, const real *pre, int64_t ldp, const real *dy,        \
		int64_t lddy, real *dx, int64_t lddx, real *dbias)                                                     \
	{                                                                                                              \
		bias_backward(kind, rows, C, pre, ldp, dy, lddy, dx, lddx, dbias);                                     \
	}

NR_ACT_FUNCTIONS(none, NR_ACT_NONE)
NR_ACT_FUNCTIONS(relu, NR_ACT_RELU)
NR_ACT_FUNCTIONS(gelu, NR_ACT_GELU)
NR_ACT_FUNCTIONS(gelu_tanh, NR_ACT_GELU_TANH)
NR_ACT_FUNCTIONS(hard_swish, NR_ACT_HARD_SWISH)
NR_ACT_FUNCTIONS(tanh, NR_ACT_TANH)
NR_ACT_FUNCTIONS(sigmoid, NR_ACT_SIGMOID)
NR_ACT_FUNCTIONS(silu, NR_ACT_SILU)
NR_ACT_FUNCTIONS(exp, NR_ACT_EXP)
NR_ACT_FUNCTIONS(quick_gelu, NR_ACT_QUICK_GELU)

#define NR_ACT_ROW(what)                                                                                               \
	{                                                                                                              \
		[NR_ACT_NONE] = none_##what, [NR_ACT_RELU] = relu_##what, [NR_ACT_GELU] = gelu_##what,                 \
		[NR_ACT_GELU_TANH] = gelu_tanh_##what, [NR_ACT_HARD_SWISH] = hard_swish_##what,                        \
		[NR_ACT_TANH] = tanh_##what, [NR_ACT_SIGMOID] = sigmoid_##what, [NR_ACT_SILU] = silu_##what,           \
		[NR_ACT_EXP] = exp_##what, [NR_ACT_QUICK_GELU] = quick_gelu_##what,                                    \
	}
#define NR_ACT_TABLE                                                                                                   \
	{                                                                                                              \
		.forward = NR_ACT_ROW(forward), .backward = NR_ACT_ROW(backward),                                      \
		.bias_backward = NR_ACT_ROW(bias_backward),                                                            \
	}
