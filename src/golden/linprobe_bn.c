/* metrics/linprobe_bn: MAE's linear probe: batch norm without affine, linear head, cross entropy, steps of
 * LARS. */
#include "golden/check.h"
#include "math/gemm.h"
#include "math/moments.h"
#include "math/softmax.h"
#include "norma/train.h"

struct head { int64_t C, K; real *weight, *bias; }; /* (K,C), (K) */

static void gemm(struct golden_case *c, struct nr_gemm g)
{
	nr_gemm_run(&g, golden_alloc(c, 1, nr_gemm_scratch_of(&g) + 1));
}

static void normalise(
	int64_t N, int64_t C, const real *x, const double *mean, const double *var, double eps, real *y)
{
	for (int64_t i = 0; i < N * C; i++) y[i] = (real)((x[i] - mean[i % C]) / sqrt(var[i % C] + eps));
}

static void logits(struct golden_case *c, const struct head *h, int64_t N, const real *x, real *y)
{
	gemm(c,
		(struct nr_gemm){ .m = N,
			.n = h->K,
			.k = h->C,
			.a = x,
			.lda = h->C,
			.b = h->weight,
			.ldb = h->C,
			.tb = 1,
			.c = y,
			.ldc = h->K,
			.bias = h->bias });
}

int golden_metric_linprobe_bn(struct golden_case *c)
{
	const struct golden_tensor x = golden_tensor(c, 2, "in.features"),
				   w = golden_tensor(c, 2, "in.head_weight");
	const struct golden_tensor test = golden_tensor(c, 2, "in.test_features");
	const struct golden_ints label = golden_ints(c, 1, "in.labels");
	const int64_t N = x.d[0], C = x.d[1], K = w.d[0], M = test.d[0];
	golden_expect(c, w.d[1] == C && test.d[1] == C && label.n == N && N > 1, "features, weights, labels");
	const double eps = golden_number(c, "bn.eps"), momentum = golden_number(c, "bn.momentum");
	struct head h = { C, K, w.x, golden_reals(c, K) };
	real *y = golden_reals(c, N * C), *out = golden_reals(c, N * K), *d = golden_reals(c, N * K),
	     *row = golden_reals(c, N);
	real *dW = golden_reals(c, K * C), *db = golden_reals(c, K), *run = golden_reals(c, C);
	double *mean = golden_alloc(c, C, sizeof *mean), *var = golden_alloc(c, C, sizeof *var);
	double *run_mean = golden_alloc(c, C, sizeof *run_mean),
	       *run_var = golden_alloc(c, C, sizeof *run_var);
	for (int64_t k = 0; k < C; k++) run_var[k] = 1;

	const struct nr_optim o = { .kind = NR_OPTIM_LARS, .lr = golden_number(c, "lr"),
		.momentum = golden_number(c, "momentum"), .trust = golden_number(c, "trust") };
	const struct nr_rates rates = { o.lr, golden_number(c, "weight_decay") };
	const struct nr_segment seg[2] = {
		{ .value = h.weight,
			.grad = dW,
			.m = golden_reals(c, K * C),
			.count = K * C,
			.nd = 2,
			.lr_scale = 1,
			.decay = 1 },
		{ .value = h.bias,
			.grad = db,
			.m = golden_reals(c, K),
			.count = K,
			.nd = 1,
			.lr_scale = 1,
			.decay = 1 },
	};
	void *scratch = golden_alloc(c, 1, nr_optim_scratch(seg, 2));
	const int64_t steps = golden_tensor(c, 1, "loss").n;
	real *loss = golden_reals(c, steps);

	for (int64_t t = 1; t <= steps; t++) {
		nr_column_moments(N, C, x.x, mean, var);
		for (int64_t k = 0; k < C; k++) { /* the running variance is the unbiased one */
			run_mean[k] += momentum * (mean[k] - run_mean[k]);
			run_var[k] += momentum * (var[k] * (double)N / (double)(N - 1) - run_var[k]);
		}
		normalise(N, C, x.x, mean, var, eps, y);
		logits(c, &h, N, y, out);
		nr_xent_labels(N, K, out, K, label.x, -1, 0, 1 / (real)N, row, d, K, 0);
		loss[t - 1] = nr_sum(N, row) / (real)N;
		gemm(c,
			(struct nr_gemm){ .m = K,
				.n = C,
				.k = N,
				.a = d,
				.lda = K,
				.ta = 1,
				.b = y,
				.ldb = C,
				.c = dW,
				.ldc = C });
		for (int64_t k = 0; k < K; k++) db[k] = 0;
		nr_row_active->col_sum(N, K, d, K, db);
		if (t == 1) {
			golden_check(c, "out", y, N * C, "out.normalised");
			golden_check(c, "out", out, N * K, "out.logits");
			golden_check(c, "out", dW, K * C, "grad.weight");
			golden_check(c, "out", db, K, "grad.bias");
		}
		if (nr_optim_step(&o, &rates, t, seg, 2, scratch, NULL))
			golden_fail(c, NULL, "the step failed");
		golden_check(c, "out", h.weight, K * C, "step%d.weight", (int)t);
		golden_check(c, "out", h.bias, K, "step%d.bias", (int)t);
	}
	golden_check(c, "out", loss, steps, "loss");
	for (int64_t k = 0; k < C; k++) run[k] = (real)run_mean[k];
	golden_check(c, "out", run, C, "running_mean");
	for (int64_t k = 0; k < C; k++) run[k] = (real)run_var[k];
	golden_check(c, "out", run, C, "running_var");
	real *z = golden_reals(c, M * C), *after = golden_reals(c, M * K);
	normalise(M, C, test.x, run_mean, run_var, eps, z);
	logits(c, &h, M, z, after);
	golden_check(c, "out", after, M * K, "out.test_logits_after");
	return GOLDEN_RAN;
}
