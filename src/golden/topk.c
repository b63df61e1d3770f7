/* metrics/topk: rank of the label, ties to the lower class; topK for every K that the file names. */
#include "golden/check.h"
#include "infer/metrics.h"

int golden_metric_topk(struct golden_case *c)
{
	const struct golden_tensor x = golden_tensor(c, 2, "in.logits");
	const struct golden_ints label = golden_ints(c, 1, "in.labels");
	golden_expect(c, label.n == x.d[0], "one label per row");
	int32_t *rank = golden_alloc(c, label.n, sizeof *rank);
	nr_metric_rank(x.d[0], x.d[1], x.x, label.x, rank);
	golden_check_ints(c, rank, label.n, "rank");
	for (int64_t i = 0; i < nr_st_count(c->file); i++) {
		int k, end = 0;
		const char *name = nr_st_get(c->file, i)->name;
		if (sscanf(name, "top%d%n", &k, &end) == 1 && !name[end])
			golden_check_value(c, "out", nr_metric_topk(label.n, rank, k), "%s", name);
	}
	return GOLDEN_RAN;
}
