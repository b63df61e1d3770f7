/* The area under the ROC curve by ranks: see auc.h. */
#include "analysis/auc.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "analysis/spearman.h"

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot compute ranks", NULL, "out of memory"); }

/* (sum of the ranks of class 1 - n1 (n1 + 1) / 2) / (n1 n0) */
int nr_roc_auc(int64_t n, const double *score, const double *target, double *out, struct nr_error *err)
{
	double *known = malloc((size_t)(2 * n) * sizeof *known + 1), sum = 0;
	int64_t count = 0, ones = 0;
	bool finite = true;
	*out = NAN;
	if (!known) return out_of_memory(err);
	double *rank = known + n;
	for (int64_t i = 0; i < n; i++) {
		if (isnan(target[i])) continue;
		known[count++] = score[i];
		ones += target[i] > 0.5;
		finite &= isfinite(score[i]) != 0;
	}
	const int code = finite && ones && ones < count ? nr_ranks(count, known, rank, err) : NR_EVALUE;
	for (int64_t i = 0, k = 0; !code && i < n; i++) {
		if (isnan(target[i])) continue;
		sum += target[i] > 0.5 ? rank[k] : 0;
		k++;
	}
	if (!code) *out = (sum - (double)ones * (double)(ones + 1) / 2) / ((double)ones * (double)(count - ones));
	free(known);
	return code == NR_EMEMORY ? code : NR_OK;
}

int nr_roc_auc_mean(int64_t n, int64_t tasks, const double *score, const double *target, double *out, struct nr_error *err)
{
	double *one = malloc((size_t)(2 * n) * sizeof *one + 1), *two = one + n, sum = 0;
	int64_t counted = 0;
	int code = one ? NR_OK : out_of_memory(err);
	for (int64_t t = 0; t < tasks && !code; t++) {
		double auc;
		for (int64_t i = 0; i < n; i++) one[i] = score[i * tasks + t], two[i] = target[i * tasks + t];
		code = nr_roc_auc(n, one, two, &auc, err);
		if (!code && !isnan(auc)) sum += auc, counted++;
	}
	free(one);
	*out = !code && counted ? sum / (double)counted : NAN;
	return code;
}
