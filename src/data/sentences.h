/* Sentences to train on without labels: the training rows of STSB and SICK (sts.h) and of SentEval's tasks (senteval.h; of SST2 the
 * whole sentences; of MR, CR, SUBJ and MPQA, which are cross-validated, all rows). No test data of STS is part of it. */
#ifndef NR_DATA_SENTENCES_H
#define NR_DATA_SENTENCES_H

#include "norma/err.h"

struct nr_sentences {
	int64_t count;
	const char **text;                  /* each once, in the order of the files; none is empty */
	void *memory;
};
/* What is missing is an error. Release it even after one. */
int nr_sentences_open(struct nr_sentences *, const char *root, struct nr_error *);
void nr_sentences_release(struct nr_sentences *);

#endif
