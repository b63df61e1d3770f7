/* src/analysis/tsne*.c: p, gradient and divergence of numpy; the tree against every pair; layouts of clusters and of hard cases. */
#include <math.h>
#include <omp.h>

#include "unit/values.h"

#include "analysis/trustworthiness.h"
#include "analysis/tsne.h"
#include "analysis/tsne_inner.h"

static void near_to(const double *got, const double *want, int64_t n, double bound)
{
	for (int64_t i = 0; i < n; i++)
		if (!(fabs(got[i] - want[i]) <= bound)) fail_msg("at %ld: %.15g, want %.15g", (long)i, got[i], want[i]);
}

static void place(int64_t N, double scale, double *x, double *y)
{
	for (int64_t i = 0; i < N; i++) {
		x[i] = scale * (double)value();
		y[i] = scale * (double)value();
	}
}

static double sum_z(int64_t N, const struct nr_tsne_row *row)
{
	double z = 0;
	for (int64_t i = 0; i < N; i++) z += row[i].z;
	return z;
}

/* ---- p and forces --------------------------------------------------------------------------------------------------------- */

static void p_gradient_and_divergence_are_numpys(void **state)
{
	(void)state;
	static const double row0[] = { 0, 0.000990854515529581, 1.12528393847313e-07, 0.00064557232789031, 9.78460833866104e-07,
		0.00186941057465174, 0.00819565826723134, 0.0441425470614633, 0.00500956797772393, 0.000393839879983389 };
	static const double row7[] = { 0.0441425470614633, 0.000126476214286096, 1.00448527061363e-05, 0.00255378430555407,
		1.36174183123627e-05, 0.0363601841563711, 0.0030597953369565, 0, 0.000338346422731393, 0.0687248672752993 };
	static const double slope[] = { 0.00883134786212966, 0.00421233813444982, -0.0212279571911121, -0.0301106310813172 };
	enum { N = 10 };
	struct nr_tsne_p p;
	struct nr_tsne_row row[N];
	double x[N], y[N], got[4], divergence;
	value_seed = 9;
	real *data = values(N * 3);
	assert_int_equal(nr_tsne_p_init(&p, N, 3, data, 2.5, N - 1, 1, NULL), 0);
	near_to(p.value, row0, N, 1e-9);
	near_to(p.value + 7 * N, row7, N, 1e-9);
	value_seed = 31;
	place(N, 6, x, y);
	nr_tsne_exact(&p, x, y, 1, row);
	const double z = sum_z(N, row);
	for (int i = 0; i < 4; i++) got[i] = row[i / 2 * 7].pull[i % 2] - row[i / 2 * 7].push[i % 2] / z;
	near_to(got, slope, 4, 1e-9);
	divergence = p.entropy + log(z);
	for (int i = 0; i < N; i++) divergence += row[i].stress;
	near_to(&divergence, &(double){ 1.63605367856891 }, 1, 1e-8);
	nr_tsne_p_release(&p);
	free(data);
}

static double perplexity_of(int64_t k, const double *p)
{
	double entropy = 0;
	for (int64_t j = 0; j < k; j++)
		if (p[j] > 0) entropy -= p[j] * log(p[j]);
	return exp(entropy);
}

static void the_perplexity_asked_for_is_found_at_any_scale(void **state)
{
	(void)state;
	double d[50], p[50];
	for (double scale = 1e-20; scale < 1e30; scale *= 1e12)
		for (double want = 1.5; want < 40; want *= 3) {
			for (int j = 0; j < 50; j++) d[j] = scale * (1000 + (double)value());
			nr_tsne_conditional(50, d, want, p);
			assert_true(fabs(perplexity_of(50, p) - want) < 1e-6);
		}
	for (int j = 0; j < 50; j++) d[j] = j < 10 ? 0 : 1; /* ten rows are the same: no fewer can be told apart */
	nr_tsne_conditional(50, d, 3, p);
	assert_true(fabs(perplexity_of(50, p) - 10) < 1e-6);
	for (int j = 0; j < 50; j++) d[j] = 7;
	nr_tsne_conditional(50, d, 3, p);
	for (int j = 0; j < 50; j++) assert_true(p[j] == .02);
}

static void p_of_neighbours_is_that_of_every_pair(void **state)
{
	(void)state;
	enum { N = 70 };
	struct nr_tsne_p dense, all, some;
	real *data = values(N * 4);
	assert_int_equal(nr_tsne_p_init(&dense, N, 4, data, 5, N - 1, 1, NULL), 0);
	assert_int_equal(nr_tsne_p_init(&all, N, 4, data, 5, N - 1, 0, NULL), 0);
	assert_int_equal(nr_tsne_p_init(&some, N, 4, data, 5, 15, 0, NULL), 0);
	assert_int_equal(all.start[N], N * (N - 1));
	double sum = 0, missed = 0;
	for (int64_t i = 0; i < N; i++) {
		for (int64_t e = all.start[i]; e < all.start[i + 1]; e++)
			near_to(&all.value[e], &dense.value[i * N + all.col[e]], 1, 1e-15);
		for (int64_t e = some.start[i]; e < some.start[i + 1]; e++) {
			sum += some.value[e];
			missed += fabs(some.value[e] - dense.value[i * N + some.col[e]]);
			assert_true(e == some.start[i] || some.col[e] > some.col[e - 1]);
		}
	}
	assert_true(fabs(sum - 1) < 1e-12 && missed < .1);
	assert_true(fabs(all.entropy - dense.entropy) < 1e-12);
	nr_tsne_p_release(&dense);
	nr_tsne_p_release(&all);
	nr_tsne_p_release(&some);
	free(data);
}

/* Of push over all rows, root mean square, and of the sum of z; both relative. */
static double error_of(int64_t N, const struct nr_tsne_row *got, const struct nr_tsne_row *want)
{
	double all = 0, off = 0;
	for (int64_t i = 0; i < N; i++)
		for (int d = 0; d < 2; d++) {
			all += want[i].push[d] * want[i].push[d];
			off += (got[i].push[d] - want[i].push[d]) * (got[i].push[d] - want[i].push[d]);
		}
	return fmax(sqrt(off / all), fabs(sum_z(N, got) / sum_z(N, want) - 1));
}

static void the_tree_at_theta_0_equals_every_pair(void **state)
{
	(void)state;
	enum { N = 400 };
	static double x[N], y[N];
	static struct nr_tsne_row exact[N], tree[N];
	struct nr_tsne_p dense, sparse;
	real *data = values(N * 3);
	assert_int_equal(nr_tsne_p_init(&dense, N, 3, data, 20, N - 1, 1, NULL), 0);
	assert_int_equal(nr_tsne_p_init(&sparse, N, 3, data, 20, N - 1, 0, NULL), 0);
	struct nr_tree *t = nr_tree_make(N);
	assert_non_null(t);
	for (int kind = 0; kind < 4; kind++) {
		place(N, kind == 1 ? 1e-4 : 50, x, y);
		for (int i = 0; i < N; i++) {
			if (kind == 2 && i % 3) x[i] = x[i - 1], y[i] = y[i - 1]; /* threes at one place */
			/* half at one place, a thin line, one far off */
			if (kind == 3) x[i] = i < 200 ? 1 : i < 399 ? 1 + 1e-9 * i : 500, y[i] = 2;
		}
		nr_tsne_exact(&dense, x, y, 1, exact);
		nr_tsne_barnes_hut(&sparse, t, 0, x, y, 1, tree);
		for (int i = 0; i < N; i++) {
			near_to(tree[i].push, exact[i].push, 2, 1e-10);
			near_to(tree[i].pull, exact[i].pull, 2, 1e-10);
			near_to(&tree[i].z, &exact[i].z, 1, 1e-10);
			near_to(&tree[i].stress, &exact[i].stress, 1, 1e-10);
		}
		nr_tree_push(t, N, x, y, .5, tree);
		assert_true(error_of(N, tree, exact) < .08);
		nr_tree_push(t, N, x, y, .2, tree);
		assert_true(error_of(N, tree, exact) < .01);
	}
	nr_tree_free(t);
	nr_tsne_p_release(&dense);
	nr_tsne_p_release(&sparse);
	free(data);
}

/* ---- layouts -------------------------------------------------------------------------------------------------------------- */

enum { CLUSTERS = 3, WIDE = 8 };

/* Row i belongs to cluster i % 3; bell-shaped, centres far apart. */
static real *clusters(int64_t N)
{
	real *x = blank(N * WIDE);
	for (int64_t i = 0; i < N; i++)
		for (int64_t c = 0; c < WIDE; c++) {
			for (int n = 0; n < 6; n++) x[i * WIDE + c] += value();
			if (c == i % CLUSTERS) x[i * WIDE + c] += 20;
		}
	return x;
}

static struct nr_tsne_result layout(const struct nr_tsne *o, int64_t N, int64_t C, const real *x, double *y)
{
	struct nr_tsne_result r;
	struct nr_error err = { 0 };
	char text[1200];
	if (nr_tsne_run(o, N, C, x, y, &r, &err)) fail_msg("%s", nr_error_text(&err, text, sizeof text));
	for (int64_t i = 0; i < 2 * N; i++) assert_true(isfinite(y[i]));
	assert_true(isfinite(r.kl));
	return r;
}

/* Farthest two of one cluster and nearest two of different ones. */
static void gaps(int64_t N, const double *y, double *within, double *between)
{
	*within = 0;
	*between = INFINITY;
	for (int64_t i = 0; i < N; i++)
		for (int64_t j = 0; j < i; j++) {
			const double d = hypot(y[2 * i] - y[2 * j], y[2 * i + 1] - y[2 * j + 1]);
			if (i % CLUSTERS == j % CLUSTERS) *within = fmax(*within, d);
			else *between = fmin(*between, d);
		}
}

static void far_clusters_are_separated_exactly_and_through_the_tree(void **state)
{
	(void)state;
	enum { N = 150 };
	real *x = clusters(N);
	double y[N * 2], within, between, kl[2];
	struct nr_trustworthiness trust;
	for (int tree = 0; tree < 2; tree++) {
		struct nr_tsne o = NR_TSNE_DEFAULTS;
		o.perplexity = 15;
		o.steps = 500;
		if (tree) o.exact = 0;
		const struct nr_tsne_result r = layout(&o, N, WIDE, x, y);
		assert_true(r.exact == !tree && r.perplexity == 15 && r.steps == 500 && r.rate == fmin(N, 200));
		assert_int_equal(r.neighbours, tree ? 45 : N - 1);
		kl[tree] = r.kl;
		gaps(N, y, &within, &between);
		assert_true(between > within / 3);
		assert_int_equal(nr_trustworthiness(N, WIDE, x, 2, y, 5, &trust, NULL), 0);
		print_message("%s: divergence %.3f, trustworthiness %.4f, clusters %.1f wide, %.1f apart\n", tree ? "tree" : "exact", r.kl,
			trust.value, within, between);
		assert_true(trust.value > .95);
	}
	assert_true(fabs(kl[0] - kl[1]) < .1 && kl[0] < 1);
	free(x);
}

static void threads_change_no_bit(void **state)
{
	(void)state;
	enum { N = 200 };
	real *x = clusters(N);
	double y[2][N * 2];
	for (int tree = 0; tree < 2; tree++) {
		struct nr_tsne o = NR_TSNE_DEFAULTS;
		o.steps = 60;
		o.exaggerated = 30;
		if (tree) o.exact = 0;
		for (int t = 0; t < 2; t++) {
			omp_set_num_threads(t + 1);
			layout(&o, N, WIDE, x, y[t]);
		}
		assert_memory_equal(y[0], y[1], sizeof y[0]);
	}
	free(x);
}

static void few_rows_equal_rows_and_rows_on_a_line_have_a_layout(void **state)
{
	(void)state;
	enum { N = 60 };
	real x[N * WIDE] = { 0 };
	double y[N * 2], wide = 0;
	for (int tree = 0; tree < 2; tree++) {
		struct nr_tsne o = NR_TSNE_DEFAULTS;
		o.steps = 300;
		if (tree) o.exact = 0;
		memset(x, 0, sizeof x);
		layout(&o, N, WIDE, x, y);       /* all the same */
		for (int i = 0; i < N / 2 * WIDE; i++) x[i] = value();
		layout(&o, N, WIDE, x, y);       /* half the same */
		for (int i = 0; i < N; i++) x[i] = (real)i;
		layout(&o, N, 1, x, y);          /* one channel: the second coordinate comes from the jitter alone */
		for (int i = 0; i < N; i++) wide = fmax(wide, fabs(y[2 * i + 1]));
		assert_true(wide > 1e-4); /* it began at 1e-6 */
		for (int64_t few = 1; few <= 5; few++)
			for (int same = 0; same < 2; same++) {
				for (int i = 0; i < few * WIDE; i++) x[i] = same ? 3 : value();
				const struct nr_tsne_result r = layout(&o, few, WIDE, x, y);
				assert_true(r.perplexity == fmax(1, (double)(few - 1) / 3));
				assert_true(fabs(y[0]) < 1e3);
			}
	}
	assert_true(layout(&(struct nr_tsne)NR_TSNE_DEFAULTS, 1, WIDE, x, y).kl == 0 && y[0] == 0 && y[1] == 0);
}

struct seen { int64_t calls, last; double kl; };

static int stop_at_50(void *context, int64_t done, int64_t of, double kl)
{
	struct seen *s = context;
	assert_true(of == 200 && done > s->last && isfinite(kl));
	*s = (struct seen){ s->calls + 1, done, kl };
	return done >= 50;
}

static void the_watcher_is_told_and_may_stop(void **state)
{
	(void)state;
	real *x = clusters(30);
	double y[60];
	struct seen s = { 0 };
	struct nr_tsne o = NR_TSNE_DEFAULTS;
	o.steps = 200;
	o.watch = stop_at_50;
	o.context = &s;
	const struct nr_tsne_result r = layout(&o, 30, WIDE, x, y);
	assert_int_equal(r.steps, 50);
	assert_int_equal(s.calls, 5);
	assert_true(fabs(s.kl - r.kl) < 1e-12);
	free(x);
}

static void what_cannot_work_is_refused(void **state)
{
	(void)state;
	real x[20] = { 0 };
	double y[20];
	struct nr_tsne_result r;
	struct nr_error err = { 0 };
	const struct nr_tsne good = NR_TSNE_DEFAULTS;
	struct nr_tsne o = good;
	assert_int_equal(nr_tsne_run(&o, 0, 2, x, y, &r, NULL), NR_ESHAPE);
	o.theta = .9;
	assert_int_equal(nr_tsne_run(&o, 10, 2, x, y, &r, NULL), NR_EVALUE);
	o = good;
	o.perplexity = NAN;
	assert_int_equal(nr_tsne_run(&o, 10, 2, x, y, &r, NULL), NR_EVALUE);
	o = good;
	o.rate = -1;
	assert_int_equal(nr_tsne_run(&o, 10, 2, x, y, &r, NULL), NR_EVALUE);
	x[13] = (real)NAN;
	assert_int_equal(nr_tsne_run(&good, 10, 2, x, y, &r, &err), NR_EVALUE);
	assert_string_equal(err.detail, "row 6, channel 1 is not finite");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(p_gradient_and_divergence_are_numpys),
		cmocka_unit_test(the_perplexity_asked_for_is_found_at_any_scale),
		cmocka_unit_test(p_of_neighbours_is_that_of_every_pair),
		cmocka_unit_test(the_tree_at_theta_0_equals_every_pair),
		cmocka_unit_test(far_clusters_are_separated_exactly_and_through_the_tree),
		cmocka_unit_test(threads_change_no_bit),
		cmocka_unit_test(few_rows_equal_rows_and_rows_on_a_line_have_a_layout),
		cmocka_unit_test(the_watcher_is_told_and_may_stop),
		cmocka_unit_test(what_cannot_work_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
