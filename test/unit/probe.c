/* src/analysis/probe*.c: both solvers on clouds of features, what is held out, and what is refused. */
#include <math.h>
#include <omp.h>

#include "unit/values.h"

#include "analysis/probe.h"
#include "analysis/probe_heads.h"

enum { N = 600, M = 200, C = 12, K = 4 };

struct clouds { float train[N * C], test[M * C]; int32_t train_label[N], test_label[M]; };

/* A centre for each class, columns of different sizes, one of them constant. */
static void fill(struct clouds *d, float noise)
{
	float centre[K * C];
	value_seed = 7;
	for (int i = 0; i < K * C; i++) centre[i] = (float)value();
	for (int i = 0; i < N + M; i++) {
		float *row = i < N ? d->train + i * C : d->test + (i - N) * C;
		const int k = (i * 7) % K;
		*(i < N ? &d->train_label[i] : &d->test_label[i - N]) = k;
		for (int c = 0; c < C; c++) row[c] = (centre[k * C + c] + noise * (float)value()) * (float)(c + 1);
		row[3] = 5;
	}
}

static struct nr_probe settings(enum nr_probe_solver solver)
{
	return (struct nr_probe){ .solver = solver, .classes = K, .weight_decay = { 1e-4, 1e-2, 1 }, .weight_decays = 3,
		.base_lr = { 10, 100 }, .base_lrs = 2, .hold_out = .1, .tolerance = 1e-5, .iterations = 500, .epochs = 10, .warmup = 2,
		.batch = 64 };
}

static struct nr_probe_result probe(const struct nr_probe *o, const struct clouds *d)
{
	const struct nr_probe_data train = { N, C, d->train, d->train_label }, test = { M, C, d->test, d->test_label };
	struct nr_probe_result r;
	struct nr_error err = { 0 };
	char line[1200];
	if (nr_probe_run(o, &train, &test, &r, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	return r;
}

static void exact_solver_reads_the_classes_and_chooses_on_held_out_rows(void **state)
{
	(void)state;
	static struct clouds d;
	fill(&d, 1);
	struct nr_probe o = settings(NR_PROBE_EXACT);
	const struct nr_probe_result r = probe(&o, &d);
	assert_int_equal(r.tries, 3);
	assert_int_equal(r.held, N / 10);
	assert_true(r.each[0].weight_decay == 1 && r.each[2].weight_decay == 1e-4);     /* falling */
	for (int i = 0; i < 3; i++) {
		assert_true(r.each[i].converged);
		assert_true(r.each[i].held_top1 <= r.each[r.chosen].held_top1);
	}
	assert_true(r.best.top1 > .9 && r.best.top5 == 1);
	o.weight_decays = 1;                                                            /* nothing to choose: nothing is held out */
	const struct nr_probe_result one = probe(&o, &d);
	assert_int_equal(one.held, 0);
	assert_true(one.best.held_top1 == -1 && one.best.top1 > .9);
}

static void lars_trains_all_heads_in_one_pass(void **state)
{
	(void)state;
	static struct clouds d;
	fill(&d, 1);
	struct nr_probe o = settings(NR_PROBE_LARS);
	o.weight_decays = 2;
	const struct nr_probe_result r = probe(&o, &d);
	assert_int_equal(r.tries, 4);
	assert_true(r.best.top1 > .9);
	assert_true(r.each[3].base_lr == 100 && r.each[3].weight_decay == 1e-2);
	/* a head among others is the head alone, on the same rows */
	o.weight_decay[0] = 1e-2;
	o.base_lr[0] = 100;
	o.base_lrs = 1;
	o.weight_decay[1] = 1e-2;                                                       /* twice: so that the same rows are held out */
	const struct nr_probe_result one = probe(&o, &d);
	assert_true(fabs(one.each[0].loss - r.each[3].loss) < 1e-5 * r.each[3].loss);
	assert_true(one.each[0].top1 == r.each[3].top1);
}

static void threads_do_not_change_a_bit(void **state)
{
	(void)state;
	static struct clouds d;
	fill(&d, 2);
	for (int solver = NR_PROBE_EXACT; solver <= NR_PROBE_LARS; solver++) {
		const struct nr_probe o = settings((enum nr_probe_solver)solver);
		omp_set_num_threads(1);
		const struct nr_probe_result a = probe(&o, &d);
		omp_set_num_threads(2);
		const struct nr_probe_result b = probe(&o, &d);
		assert_memory_equal(a.each, b.each, sizeof a.each);
		assert_memory_equal(&a.best, &b.best, sizeof a.best);
	}
}

static void each_class_gives_its_share_and_keeps_a_row(void **state)
{
	(void)state;
	int32_t label[100], fit[100];
	int held[3] = { 0 };
	for (int i = 0; i < 100; i++) label[i] = i < 60 ? 0 : i < 99 ? 1 : 2;
	assert_int_equal(nr_probe_hold_out(100, label, 3, .1, 5, fit, NULL), 10);
	for (int i = 0; i < 100; i++) {
		assert_true(fit[i] == label[i] || fit[i] == -1);
		held[label[i]] += fit[i] < 0;
	}
	assert_int_equal(held[0], 6);
	assert_int_equal(held[1], 4);
	assert_int_equal(held[2], 0);
	assert_int_equal(nr_probe_hold_out(100, label, 3, .9, 5, fit, NULL), 54 + 35);  /* the only row of class 2 stays */
}

static void wilson_gives_the_known_interval(void **state)
{
	(void)state;
	double low, high;
	nr_wilson(.5, 100, 1.96, &low, &high);
	assert_true(fabs(low - .40383) < 1e-4 && fabs(high - .59617) < 1e-4);
	nr_wilson(0, 10, 1.96, &low, &high);
	assert_true(low == 0 && fabs(high - .27753) < 1e-4);
}

static const char *refused(const struct nr_probe *o, struct nr_probe_data train, struct nr_probe_data test)
{
	static char line[1200];
	struct nr_error err = { 0 };
	struct nr_probe_result r;
	assert_int_equal(nr_probe_run(o, &train, &test, &r, &err), NR_EVALUE);
	return nr_error_text(&err, line, sizeof line);
}

static void data_that_cannot_be_probed_are_refused(void **state)
{
	(void)state;
	static struct clouds d;
	fill(&d, 1);
	const struct nr_probe o = settings(NR_PROBE_EXACT);
	const struct nr_probe_data train = { N, C, d.train, d.train_label }, test = { M, C, d.test, d.test_label };
	struct nr_probe_data few = train;
	few.count = 1;
	assert_non_null(strstr(refused(&o, few, test), "too few samples"));
	few.count = 3;
	assert_non_null(strstr(refused(&o, few, test), "to hold any out"));
	d.test_label[5] = K;
	assert_non_null(strstr(refused(&o, train, test), "sample 5 has class 4"));
	d.test_label[5] = -1;
	assert_non_null(strstr(refused(&o, train, test), "has no label"));
	d.test_label[5] = 0;
	for (int i = 0; i < N; i++) d.train_label[i] = 2;
	assert_non_null(strstr(refused(&o, train, test), "of one class"));
}

static void running_statistics_are_those_of_batch_norm(void **state)
{
	(void)state;
	struct nr_probe_heads *p;
	real x[4] = { 1, 2, 3, 6 };
	int32_t label[4] = { 0, 1, 0, 1 };
	const struct nr_rates rates[2] = { { .1, 0 }, { 1, 0 } };
	assert_int_equal(nr_probe_heads_make(&p, 1, 2, 2, 4, NULL), 0);
	nr_probe_heads_init(p, 3, .01);
	assert_true(p->weight[0] == p->weight[2] && p->weight[1] == p->weight[3] && p->weight[0] != 0);
	assert_int_equal(nr_probe_heads_step(p, 4, x, label, rates, NULL), 0);
	assert_true(fabs(p->mean[0] - .3) < 1e-12);             /* .1 of 3 */
	assert_true(fabs(p->var[0] - (.9 + 14. / 30)) < 1e-12); /* .9 of 1 and .1 of 14/3 */
	assert_true(p->weight[0] != p->weight[2]);              /* rates of their own */
	nr_probe_heads_free(p);
	nr_probe_heads_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_solver_reads_the_classes_and_chooses_on_held_out_rows),
		cmocka_unit_test(lars_trains_all_heads_in_one_pass),
		cmocka_unit_test(threads_do_not_change_a_bit),
		cmocka_unit_test(each_class_gives_its_share_and_keeps_a_row),
		cmocka_unit_test(wilson_gives_the_known_interval),
		cmocka_unit_test(data_that_cannot_be_probed_are_refused),
		cmocka_unit_test(running_statistics_are_those_of_batch_norm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
