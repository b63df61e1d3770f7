/* Semantic textual similarity: STS12 to STS16 (Agirre et al. 2012-2016; test data in subsets), STSB (Cer et al. 2017) and SICK
 * (Marelli et al. 2014), both in splits. Files: ROOT/sts/FORM/TASK/SUBSET.tsv, or without sts/, or without FORM/; FORM is
 * "tokenized" (as SentEval has them) or "raw", which may also lie packed as raw.tar.gz. Rows: score, sentence, sentence, for SICK also
 * a label that is not read. */
#ifndef NR_DATA_STS_H
#define NR_DATA_STS_H

#include "data/tsv.h"

enum { NR_STS_TASKS = 7, NR_STS_SUBSETS = 6 };

struct nr_sts_task {
	const char *name;
	const char *subset[NR_STS_SUBSETS + 1];     /* in the order of SentEval's list, ended by NULL; of tasks with splits: the splits */
	bool splits;                                /* train, dev, test */
};
extern const struct nr_sts_task nr_sts_tasks[NR_STS_TASKS];
/* NULL and an error with the nearest name. */
const struct nr_sts_task *nr_sts_find(const char *name, struct nr_error *);

/* root as nr_data_root gives it; value: scores from 0 to 5. */
int nr_sts_open(struct nr_tsv *, const char *root, bool raw, const struct nr_sts_task *, const char *subset, struct nr_error *);

#endif
