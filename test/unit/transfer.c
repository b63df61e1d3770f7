/* src/analysis/{spearman,sts,transfer*}.c: figures of SciPy, embeddings that are known, classifiers on rows that can be told apart. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "unit/values.h"
#include "unit/folder.h"

#include "analysis/spearman.h"
#include "analysis/sts.h"
#include "analysis/transfer.h"
#include "base/rng.h"
#include "base/save.h"

static void correlations_are_scipys(void **state)
{
	(void)state;
	static const double x[] = { 1, 2, 2, 3, 5, 8, 8, 8, 9, -1 }, y[] = { .5, .1, .9, .9, 4, 2, 2, 7, 6, .1 };
	double r, constant[10] = { 0 };
	assert_true(fabs(nr_pearson(10, x, y) - 0.7684590278022874) < 1e-12);
	assert_int_equal(nr_spearman(10, x, y, &r, NULL), 0);
	assert_true(fabs(r - 0.8757932911874177) < 1e-12);
	assert_int_equal(nr_spearman(10, x, x, &r, NULL), 0);
	assert_true(r == 1);
	nr_spearman(10, x, constant, &r, NULL);
	assert_true(isnan(r) && isnan(nr_pearson(1, x, y)));
	/* the mean of Spearman's correlation over the 2 x 6 orders of the 2s and the 8s in x */
	static const int order[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	double mean = 0, moved[10];
	for (int k = 0; k < 12; k++) {
		memcpy(moved, x, sizeof x);
		moved[1] += k % 2 ? .1 : -.1;
		for (int i = 0; i < 3; i++) moved[5 + i] += .1 * order[k / 2][i];
		assert_int_equal(nr_spearman(10, moved, y, &r, NULL), 0);
		mean += r / 12;
	}
	assert_int_equal(nr_spearman_by_chance(10, x, y, &r, NULL), 0);
	assert_true(fabs(r - mean) < 1e-12);
	nr_spearman_by_chance(10, constant, y, &r, NULL);
	assert_true(isnan(r));
	constant[3] = NAN;
	nr_spearman(10, x, constant, &r, NULL);
	assert_true(isnan(r));
}

/* ---- sets of a made-up folder ------------------------------------------------------------------------------------------------ */

/* A text "angle length": a vector of that length in that direction. */
static int by_angle(void *context, const char *const *text, int64_t n, real *out, struct nr_error *err)
{
	(void)err;
	for (int64_t i = 0; i < n; i++) {
		char *end;
		const double angle = strtod(text[i], &end), length = strtod(end, NULL);
		out[2 * i] = (real)(length * cos(angle));
		out[2 * i + 1] = (real)(length * sin(angle));
	}
	++*(int *)context;
	return 0;
}

static void sts_is_the_rank_of_the_cosine(void **state)
{
	(void)state;
	int calls = 0;
	const struct nr_embedder e = { by_angle, &calls, 2 };
	struct nr_sts_score s;
	struct nr_error err = { 0 };
	made_with("STS13/FNWN.tsv", "5\t0 1\t0 2\n3\t0 1\t1 2\n0\t1 3\t-1.5 1\n");          /* in order */
	made_with("STS13/headlines.tsv", "0\t0 1\t0 1\n5\t0 1\t3 1\n");                    /* the wrong way round */
	made_with("STS13/OnWN.tsv", "1\t0 1\t2 1\n2\t0 1\t1.5 1\n3\t0 1\t1 1\n4\t0 1\t.5 1\n4\t0 1\t.2 0\n"); /* 0 has no angle */
	assert_int_equal(nr_sts_evaluate(&s, nr_sts_find("STS13", NULL), &e, made_dir, false, &err), 0);
	assert_int_equal(calls, 1);
	assert_int_equal(s.subsets, 3);
	assert_int_equal(s.pairs, 10);
	assert_true(fabs(s.subset[0].with.spearman - 100) < 1e-9 && fabs(s.subset[1].with.spearman + 100) < 1e-9);
	const double last = s.subset[2].with.spearman;
	assert_true(fabs(s.mean.spearman - (100 - 100 + last) / 3) < 1e-9 && fabs(s.wmean.spearman - (300 - 200 + 5 * last) / 10) < 1e-9);
	made_with("STSB/dev.tsv", "5\t0 1\t0 2\n3\t0 1\t1 2\n");
	made_with("STSB/test.tsv", "0\t0 1\t0 2\n3\t0 1\t1 2\n");
	assert_int_equal(nr_sts_evaluate(&s, nr_sts_find("STSB", NULL), &e, made_dir, false, &err), 0);
	assert_true(s.pairs == 2 && fabs(s.all.spearman + 100) < 1e-9 && fabs(s.subset[0].with.spearman - 100) < 1e-9);
	double dev;
	assert_int_equal(nr_sts_dev(&dev, s.task, &e, made_dir, false, &err), 0);
	assert_true(fabs(dev - 100) < 1e-9);
	assert_int_equal(nr_sts_dev(&dev, nr_sts_find("STS13", NULL), &e, made_dir, false, &err), NR_EVALUE);
}

static void equal_embeddings_have_equal_cosines(void **state)
{
	(void)state;
	enum { N = 50, DIM = 384 };
	real *x = blank(N * DIM);
	double cosine[N];
	value_seed = 5;
	for (int i = 0; i < N * DIM; i++) x[i] = (real)(1 + i / DIM) * value();
	nr_sts_cosines(N, DIM, x, x, cosine);
	for (int i = 0; i < N; i++) assert_true(cosine[i] == 1);
	free(x);
}

/* ---- classifiers ------------------------------------------------------------------------------------------------------------- */

enum { ROWS = 300, WIDTH = 6 };

/* Classes around their own corner; the last column is large and says nothing. */
static struct nr_features_of rows_of(int64_t rows, int classes, double apart, uint32_t draw)
{
	const struct nr_rng r = nr_rng_make(3, 77, draw);
	real *x = blank(rows * WIDTH);
	int32_t *label = malloc((size_t)rows * sizeof *label);
	for (int64_t i = 0; i < rows; i++) {
		label[i] = (int32_t)nr_rng_below(r, (uint64_t)(1000000 + i), (uint64_t)classes);
		for (int64_t c = 0; c < WIDTH; c++) {
			const double middle = c == label[i] ? apart : c == WIDTH - 1 ? 4 : 0;
			x[i * WIDTH + c] = (real)(middle + nr_rng_normal(r, (uint64_t)(i * WIDTH + c)));
		}
	}
	return (struct nr_features_of){ .rows = rows, .width = WIDTH, .classes = classes, .x = x, .label = label };
}

static void drop(struct nr_features_of *f)
{
	free((void *)(uintptr_t)f->x);
	free((void *)(uintptr_t)f->label);
}

static void both_protocols_find_classes_that_are_apart(void **state)
{
	(void)state;
	for (int protocol = NR_TRANSFER_CONVEX; protocol <= NR_TRANSFER_FAST; protocol++) {
		const struct nr_transfer o = { .protocol = protocol, .seed = 1111 };
		const int64_t rows = protocol == NR_TRANSFER_CONVEX ? ROWS : 4 * ROWS;      /* few rows end Adam's training too soon */
		struct nr_features_of two = rows_of(rows, 2, 4, 1), train = rows_of(rows, 3, 4, 2), test = rows_of(ROWS, 3, 4, 3);
		struct nr_transfer_score s;
		assert_int_equal(nr_transfer_folds(&s, &o, &two, NULL), 0);
		assert_int_equal(s.folds, protocol == NR_TRANSFER_FAST ? 5 : 10);
		assert_true(s.accuracy > 95 && s.dev > 95);
		assert_int_equal(nr_transfer_split(&s, &o, &train, NULL, &test, NULL), 0);
		assert_true(s.accuracy > 90 && isnan(s.f1) && s.folds == 1 && s.tests == ROWS);
		assert_int_equal(nr_transfer_split(&s, &o, &two, &two, &two, NULL), 0);
		assert_true(s.accuracy > 95 && s.f1 > 95);
		drop(&two);
		drop(&train);
		drop(&test);
	}
}

static void threads_change_no_bit(void **state)
{
	(void)state;
	const int threads = omp_get_max_threads();
	struct nr_features_of f = rows_of(ROWS, 2, .5, 4);
	for (int protocol = NR_TRANSFER_CONVEX; protocol <= NR_TRANSFER_FAST; protocol++) {
		const struct nr_transfer o = { .protocol = protocol, .seed = 7 };
		struct nr_transfer_score one, more;
		omp_set_num_threads(1);
		assert_int_equal(nr_transfer_folds(&one, &o, &f, NULL), 0);
		omp_set_num_threads(3);
		assert_int_equal(nr_transfer_folds(&more, &o, &f, NULL), 0);
		assert_memory_equal(one.fold, more.fold, sizeof one.fold);
		assert_memory_equal(one.strength, more.strength, sizeof one.strength);
	}
	omp_set_num_threads(threads);
	drop(&f);
}

static void pairs_are_told_by_their_difference(void **state)
{
	(void)state;
	char text[8192] = "";
	for (int i = 0; i < 120; i++) {
		const double angle = .05 * i, turn = i % 3 ? 1.5 : .05;
		snprintf(text + strlen(text), sizeof text - strlen(text), "%d\t%g 1\t%g 1\n", i % 3 == 0, angle, angle + turn);
	}
	made_with("MRPC/train.tsv", text);
	made_with("MRPC/test.tsv", text);
	int calls = 0;
	const struct nr_embedder e = { by_angle, &calls, 2 };
	const struct nr_transfer o = { .root = made_dir };
	struct nr_transfer_score s;
	struct nr_error err = { 0 };
	assert_int_equal(nr_transfer_evaluate(&s, &o, nr_senteval_find("MRPC", NULL), &e, &err), 0);
	assert_true(calls == 1 && s.rows == 120 && s.accuracy > 99 && s.f1 > 99);
	assert_int_equal(nr_transfer_evaluate(&s, &o, nr_senteval_find("CR", NULL), &e, &err), NR_EIO);
}

static void what_cannot_be_learnt_from_is_refused(void **state)
{
	(void)state;
	const struct nr_transfer o = { .seed = 1 };
	struct nr_transfer_score s;
	struct nr_error err = { 0 };
	struct nr_features_of f = rows_of(ROWS, 2, 1, 5), few = f;
	few.rows = 5;
	assert_int_equal(nr_transfer_folds(&s, &o, &few, &err), NR_ESHAPE);
	((int32_t *)(uintptr_t)f.label)[3] = 2;
	assert_int_equal(nr_transfer_folds(&s, &o, &f, NULL), NR_EVALUE);
	for (int i = 0; i < ROWS; i++) ((int32_t *)(uintptr_t)f.label)[i] = 1;
	assert_int_equal(nr_transfer_folds(&s, &o, &f, NULL), NR_EVALUE);
	((real *)(uintptr_t)f.x)[10] = (real)NAN;
	assert_int_equal(nr_transfer_folds(&s, &o, &f, NULL), NR_EDIVERGED);
	drop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(correlations_are_scipys),
		cmocka_unit_test(sts_is_the_rank_of_the_cosine), cmocka_unit_test(equal_embeddings_have_equal_cosines),
		cmocka_unit_test(both_protocols_find_classes_that_are_apart),
		cmocka_unit_test(threads_change_no_bit),
		cmocka_unit_test(pairs_are_told_by_their_difference),
		cmocka_unit_test(what_cannot_be_learnt_from_is_refused),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
