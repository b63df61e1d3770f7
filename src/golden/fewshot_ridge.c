/* metrics/fewshot_ridge: l2_2^E for the exponents that the names give, and the wide case (fewer samples than
 * features). */
#include <string.h>

#include "analysis/fewshot.h"
#include "golden/check.h"
#include "infer/metrics.h"

struct data {
	int64_t N, M;
	const real *x, *z;
	const int32_t *y, *y_test;
};

static void fit(struct golden_case *c, struct nr_fewshot f, const struct data *d, double l2, const char *name)
{
	real *weights = golden_reals(c, (f.dim + 1) * f.classes), *scores = golden_reals(c, d->M * f.classes);
	int32_t *rank = golden_alloc(c, d->M, sizeof *rank);
	struct nr_error err = { 0 };
	char text[512];
	f.l2 = l2;
	if (nr_fewshot_fit(&f, d->N, d->x, d->y, d->M, d->z, weights, scores, &err))
		golden_stop(c, name, "%s", nr_error_text(&err, text, sizeof text));
	nr_metric_rank(d->M, f.classes, scores, d->y_test, rank);
	golden_check(c, "out", weights, (f.dim + 1) * f.classes, "%s.weights", name);
	golden_check(c, "out", scores, d->M * f.classes, "%s.scores", name);
	golden_check_value(c, "out", nr_metric_topk(d->M, rank, 1), "%s.accuracy", name);
}

/* "1 shot per class (every 25th row), N < D, l2 = 1024" */
static void wide(struct golden_case *c, struct nr_fewshot f, struct data d)
{
	const char *text = golden_text(c, "wide");
	const int64_t every = (int64_t)golden_after(c, text, "every");
	golden_expect(c, every > 0, "the wide case takes every n-th row");
	const int64_t n = (d.N + every - 1) / every;
	real *x = golden_reals(c, n * f.dim);
	int32_t *y = golden_alloc(c, n, sizeof *y);
	for (int64_t i = 0; i < n; i++) {
		memcpy(x + i * f.dim, d.x + i * every * f.dim, (size_t)f.dim * sizeof *x);
		y[i] = d.y[i * every];
	}
	d.N = n;
	d.x = x;
	d.y = y;
	fit(c, f, &d, golden_after(c, text, "l2 ="), "wide");
}

int golden_metric_fewshot_ridge(struct golden_case *c)
{
	const struct golden_tensor x = golden_tensor(c, 2, "in.x_train"),
				   z = golden_tensor(c, 2, "in.x_test");
	const struct golden_ints y = golden_ints(c, 1, "in.y_train"), y_test = golden_ints(c, 1, "in.y_test");
	golden_expect(c, x.d[1] == z.d[1] && y.n == x.d[0] && y_test.n == z.d[0], "features and labels");
	const struct nr_fewshot f = { .dim = x.d[1], .classes = (int64_t)golden_number(c, "classes"),
		.bias_feature = golden_number(c, "bias_feature"), .std_eps = golden_number(c, "std_eps") };
	const struct data d = { x.d[0], z.d[0], x.x, z.x, y.x, y_test.x };
	for (int64_t i = 0; i < nr_st_count(c->file); i++) {
		const char *name = nr_st_get(c->file, i)->name, *tail = strstr(name, ".scores");
		double e;
		char key[64];
		int end = 0;
		if (!tail || tail[7]) continue;
		snprintf(key, sizeof key, "%.*s", (int)(tail - name), name);
		if (sscanf(key, "l2_2^%lf%n", &e, &end) == 1 && !key[end]) fit(c, f, &d, exp2(e), key);
	}
	if (golden_has(c, "wide.scores")) wide(c, f, d);
	return GOLDEN_RAN;
}
