/* Transfer tasks of SentEval on frozen embeddings (data/senteval.h): a linear classifier for each, accuracy on what it has not seen.
 *
 * convex    no chance in it: minimise |w|^2 / 2 + C sum of cross entropies, bias free, to convergence; two classes have one w (a
 *           sigmoid), more a softmax. Fold of row i: i mod 10. MR, CR, SUBJ, MPQA: for test fold k the C of 2^-2 .. 2^3 that is best
 *           on fold k + 1, trained on the other eight, then again on nine. SST2: the C that is best on dev. TREC, MRPC: C of 2^-1 .. 2^5
 *           by 10-fold cross-validation. The first of equals wins.
 * senteval  SentEval's own: a softmax layer by Adam (batch 64, L2 of 1e-5 .. 1e-2 added to the gradient), evaluated every 4 epochs,
 *           ended by the 6th evaluation that is no new best, best weights kept; stratified folds, an inner cross-validation for L2, the
 *           last training with 5 % held back. fast: 5 folds, RMSprop, batch 128, every 2 epochs, the 4th. Draws are ours: figures differ
 *           from SentEval's by chance (half a point).
 * Features are the embeddings as they are; of pairs [|a - b|, a b]. The same bits at any number of threads. */
#ifndef NR_TRANSFER_H
#define NR_TRANSFER_H

#include "analysis/embedder.h"
#include "data/senteval.h"

enum nr_transfer_protocol { NR_TRANSFER_CONVEX, NR_TRANSFER_SENTEVAL, NR_TRANSFER_FAST };
enum { NR_TRANSFER_FOLDS = 10 };

struct nr_transfer {
	enum nr_transfer_protocol protocol;
	const char *root;                           /* of the data: data/senteval.h */
	bool sentences;                             /* SST2: trains on whole sentences instead of phrases */
	uint64_t seed;                              /* of SentEval's draws; theirs is 1111 */
	void (*tell)(void *context, int64_t done, int64_t of);  /* classifiers fitted, from the calling thread; or NULL */
	void *context;
};

struct nr_transfer_score {
	const struct nr_senteval_task *task;
	int64_t rows, tests;                        /* trained on (of cross-validated tasks: all), tested on */
	double accuracy, f1;                        /* x 100; f1: of class 1, for pairs, else NAN */
	double dev;                                 /* x 100: the accuracy that chose the strength, mean over folds */
	int folds;                                  /* below; 1: there is a test set */
	double fold[NR_TRANSFER_FOLDS];             /* accuracy x 100 */
	double strength[NR_TRANSFER_FOLDS];         /* C, or L2 */
};

int nr_transfer_evaluate(struct nr_transfer_score *, const struct nr_transfer *, const struct nr_senteval_task *,
	const struct nr_embedder *, struct nr_error *);

/* The same on features that are there already. */
struct nr_features_of {
	const char *task;                           /* for messages; NULL: none */
	int64_t rows, width;
	int classes;
	const real *x;                              /* (rows,width) */
	const int32_t *label;                       /* (rows) */
};
int nr_transfer_folds(struct nr_transfer_score *, const struct nr_transfer *, const struct nr_features_of *, struct nr_error *);
/* dev NULL: the strength by cross-validation on train. f1 is set for two classes. */
int nr_transfer_split(struct nr_transfer_score *, const struct nr_transfer *, const struct nr_features_of *train,
	const struct nr_features_of *dev, const struct nr_features_of *test, struct nr_error *);

#endif
