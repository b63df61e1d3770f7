/* metrics/linprobe_bn: MAE's linear probe: batch norm without affine, linear head, cross entropy, steps of LARS. */
#include <string.h>

#include "analysis/probe_heads.h"
#include "golden/check.h"

static void check_double(struct golden_case *c, int64_t n, const double *x, const char *name)
{
	real *copy = golden_reals(c, n);
	for (int64_t i = 0; i < n; i++) copy[i] = (real)x[i];
	golden_check(c, "out", copy, n, "%s", name);
}

int golden_metric_linprobe_bn(struct golden_case *c)
{
	const struct golden_tensor x = golden_tensor(c, 2, "in.features"), w = golden_tensor(c, 2, "in.head_weight");
	const struct golden_tensor test = golden_tensor(c, 2, "in.test_features");
	const struct golden_ints label = golden_ints(c, 1, "in.labels");
	const int64_t N = x.d[0], C = x.d[1], K = w.d[0], M = test.d[0], steps = golden_tensor(c, 1, "loss").n;
	golden_expect(c, w.d[1] == C && test.d[1] == C && label.n == N && N > 1, "features, weights, labels");
	real *loss = golden_reals(c, steps), *after = golden_reals(c, M * K);
	const struct nr_rates rates = { golden_number(c, "lr"), golden_number(c, "weight_decay") };
	const struct nr_optim optim = { .kind = nr_optim_kind("lars"), .lr = rates.lr, .momentum = golden_number(c, "momentum"),
		.trust = golden_number(c, "trust") };
	const double eps = golden_number(c, "bn.eps"), momentum = golden_number(c, "bn.momentum");

	struct nr_probe_heads *p;
	if (nr_probe_heads_make(&p, C, K, 1, N > M ? N : M, NULL)) golden_fail(c, NULL, "out of memory");
	p->eps = eps;
	p->momentum = momentum;
	p->optim = optim;
	memcpy(p->weight, w.x, (size_t)(K * C) * sizeof(real));
	int code = 0;
	for (int64_t t = 1; !code && t <= steps; t++) {
		code = nr_probe_heads_step(p, N, x.x, label.x, &rates, NULL);
		loss[t - 1] = (real)nr_probe_heads_loss(p, 0, N);
		if (t == 1) {
			golden_check(c, "out", p->normal, N * C, "out.normalised");
			golden_check(c, "out", p->logits, N * K, "out.logits");
			golden_check(c, "out", p->dweight, K * C, "grad.weight");
			golden_check(c, "out", p->dbias, K, "grad.bias");
		}
		golden_check(c, "out", p->weight, K * C, "step%d.weight", (int)t);
		golden_check(c, "out", p->bias, K, "step%d.bias", (int)t);
	}
	golden_check(c, "out", loss, steps, "loss");
	check_double(c, C, p->mean, "running_mean");
	check_double(c, C, p->var, "running_var");
	nr_probe_heads_scores(p, M, test.x, after);
	golden_check(c, "out", after, M * K, "out.test_logits_after");
	nr_probe_heads_free(p);
	if (code) golden_fail(c, NULL, "the step failed");
	return GOLDEN_RAN;
}
