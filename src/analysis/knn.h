/* k nearest neighbours by cosine, weighted as in DINO (Caron et al. 2021, arXiv:2104.14294). */
#ifndef NR_KNN_H
#define NR_KNN_H

#include "norma/err.h"

struct nr_comm;
/* train (N,C) with labels, test (M,C); a neighbour of cosine s votes exp(s / temperature). Shares of 1. Ties go to the lower
 * class, equal distances to the earlier sample. comm: ranks that
 * share the test samples; NULL: this process has them all. */
int nr_knn(int64_t N, int64_t C, const float *train, const int32_t *train_label, int64_t M, const float *test, const int32_t *label,
	int32_t classes, int64_t k, double temperature, double *top1, double *top5, struct nr_comm *, struct nr_error *);
/* The same for several k and temperatures: the neighbours are looked for once. */
struct nr_knn_try { int64_t k; double temperature, top1, top5; };
int nr_knn_each(int64_t N, int64_t C, const float *train, const int32_t *train_label, int64_t M, const float *test, const int32_t *label,
	int32_t classes, struct nr_knn_try *, int64_t tries, struct nr_comm *, struct nr_error *);

#endif
