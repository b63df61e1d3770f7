/* The transfer tasks of SentEval (Conneau & Kiela 2018, arXiv:1803.05449): MR, CR, SUBJ, MPQA (one file, cross-validated), SST2
 * (train, dev, test; train_sentences: whole sentences only), TREC (train, test), MRPC (pairs; train, test). Files, plain or .gz:
 * ROOT/senteval/TASK.tsv or ROOT/senteval/TASK/SPLIT.tsv, or the same without senteval/. Rows: label, text, for MRPC a second text. */
#ifndef NR_DATA_SENTEVAL_H
#define NR_DATA_SENTEVAL_H

#include "data/tsv.h"

enum { NR_SENTEVAL_TASKS = 7 };

struct nr_senteval_task {
	const char *name;
	int classes;
	bool splits, dev, pairs;            /* train and test files; a dev file, too; two texts */
};
extern const struct nr_senteval_task nr_senteval_tasks[NR_SENTEVAL_TASKS];
/* NULL and an error with the nearest name. */
const struct nr_senteval_task *nr_senteval_find(const char *name, struct nr_error *);

/* root as nr_data_root gives it; split: NULL for a task of one file. value: the class. */
int nr_senteval_open(struct nr_tsv *, const char *root, const struct nr_senteval_task *, const char *split, struct nr_error *);

#endif
