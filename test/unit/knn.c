/* src/analysis/knn.c against a plain search. */
#include <math.h>
#include <omp.h>

#include "unit/values.h"

#include "analysis/knn.h"

enum { N = 37, M = 11, C = 5, K = 4 };

static void votes_are_those_of_a_plain_search(void **state)
{
	(void)state;
	float train[N * C], test[M * C];
	int32_t label[N], truth[M];
	for (int i = 0; i < N * C; i++) train[i] = (float)value();
	for (int i = 0; i < M * C; i++) test[i] = (float)value();
	for (int i = 0; i < N; i++) label[i] = i % K;
	for (int i = 0; i < M; i++) truth[i] = i % K;
	for (int k = 1; k < 9; k += 3) {
		double right = 0, got = 0, top5 = 0;
		for (int m = 0; m < M; m++) {
			double cosine[N], vote[K] = { 0 };
			for (int i = 0; i < N; i++) {
				double ab = 0, aa = 0, bb = 0;
				for (int c = 0; c < C; c++) {
					ab += (double)train[i * C + c] * test[m * C + c];
					aa += (double)train[i * C + c] * train[i * C + c];
					bb += (double)test[m * C + c] * test[m * C + c];
				}
				cosine[i] = ab / sqrt(aa * bb);
			}
			for (int n = 0; n < k; n++) { /* the best that is left */
				int best = 0;
				for (int i = 1; i < N; i++)
					if (cosine[i] > cosine[best]) best = i;
				vote[label[best]] += exp(cosine[best] / .1);
				cosine[best] = -9;
			}
			int best = 0;
			for (int c = 1; c < K; c++)
				if (vote[c] > vote[best]) best = c;
			right += best == truth[m];
		}
		for (int threads = 1; threads <= 2; threads++) {
			omp_set_num_threads(threads);
			assert_int_equal(nr_knn(N, C, train, label, M, test, truth, K, k, .1, &got, &top5, NULL, NULL), 0);
			assert_true(fabs(got - right / M) < 1e-12);
			assert_true(top5 == 1);
			/* one search for all */
			struct nr_knn_try both[] = { { .k = 30, .temperature = 1 }, { .k = k, .temperature = .1 } };
			assert_int_equal(nr_knn_each(N, C, train, label, M, test, truth, K, both, 2, NULL, NULL), 0);
			assert_true(both[1].top1 == got && both[1].top5 == top5);
			assert_int_equal(nr_knn(N, C, train, label, M, test, truth, K, 30, 1, &got, &top5, NULL, NULL), 0);
			assert_true(both[0].top1 == got);
		}
	}
}

static void a_sample_is_its_own_neighbour(void **state)
{
	(void)state;
	float x[N * C];
	int32_t label[N];
	double top1, top5;
	for (int i = 0; i < N * C; i++) x[i] = (float)value();
	for (int i = 0; i < N; i++) label[i] = i;
	assert_int_equal(nr_knn(N, C, x, label, N, x, label, N, 1, .07, &top1, &top5, NULL, NULL), 0);
	assert_true(top1 == 1);
	assert_int_equal(nr_knn(N, C, x, label, N, x, label, N, 1000, .001, &top1, &top5, NULL, NULL), 0); /* k beyond N: all of them */
	assert_true(top1 == 1);
	struct nr_error err = { 0 };
	assert_int_not_equal(nr_knn(N, C, x, label, 0, x, label, N, 1, .07, &top1, &top5, NULL, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(votes_are_those_of_a_plain_search),
		cmocka_unit_test(a_sample_is_its_own_neighbour),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
