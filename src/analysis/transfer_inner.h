/* What the files of the transfer tasks share. */
#ifndef NR_TRANSFER_INNER_H
#define NR_TRANSFER_INNER_H

#include "analysis/transfer.h"

/* The two protocols (transfer_convex.c, transfer_senteval.c), as nr_transfer_folds and nr_transfer_split. */
int nr_convex_folds(struct nr_transfer_score *, const struct nr_transfer *, const struct nr_features_of *, struct nr_error *);
int nr_convex_split(struct nr_transfer_score *, const struct nr_transfer *, const struct nr_features_of *train,
	const struct nr_features_of *dev, const struct nr_features_of *test, struct nr_error *);
int nr_senteval_folds(struct nr_transfer_score *, const struct nr_transfer *, const struct nr_features_of *, struct nr_error *);
int nr_senteval_split(struct nr_transfer_score *, const struct nr_transfer *, const struct nr_features_of *train,
	const struct nr_features_of *dev, const struct nr_features_of *test, struct nr_error *);

/* accuracy and f1 of predicted (rows) classes. */
void nr_transfer_judge(struct nr_transfer_score *, const struct nr_features_of *, const int32_t *predicted);
static inline void nr_transfer_tell(const struct nr_transfer *o, int64_t done, int64_t of)
{
	if (o->tell) o->tell(o->context, done, of);
}

#endif
