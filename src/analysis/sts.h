/* Semantic textual similarity of embeddings: cosine against people's scores, no training. Figures are correlations x 100, NAN where
 * there is none (all cosines equal). As SentEval reports them: `all` over the pairs of all subsets, `mean` of the subsets, `wmean` weighted
 * by their pairs. STSB and SICK: `all` is that of the test split; the subsets are dev and test.
 * Equal sentences have the cosine 1 but for rounding, which SentEval ranks as it falls; here they are equal, and Spearman's figure is the
 * mean over all their orders: it hangs neither on the machine nor on how texts were put into batches. */
#ifndef NR_STS_H
#define NR_STS_H

#include "analysis/embedder.h"
#include "data/sts.h"

struct nr_correlation { double spearman, pearson; };
struct nr_sts_subset { const char *name; int64_t pairs; struct nr_correlation with; };
struct nr_sts_score {
	const struct nr_sts_task *task;
	int64_t pairs;                              /* that `all` is over */
	int subsets;
	struct nr_sts_subset subset[NR_STS_SUBSETS];
	struct nr_correlation all, mean, wmean;     /* mean, wmean: of test alone for tasks with splits */
};

/* Cosine of each pair of rows of a and b (n,dim), to the digits of a float; exactly 1 if they are equal; 0 if one of them is zero. */
void nr_sts_cosines(int64_t n, int64_t dim, const real *a, const real *b, double *out);
/* One task. root: see data/sts.h. The same bits at any number of threads, if the embedder's are. */
int nr_sts_evaluate(struct nr_sts_score *, const struct nr_sts_task *, const struct nr_embedder *, const char *root, bool raw,
	struct nr_error *);
/* The dev split of a task that has one, Spearman x 100: what training selects by. */
int nr_sts_dev(double *, const struct nr_sts_task *, const struct nr_embedder *, const char *root, bool raw, struct nr_error *);

#endif
