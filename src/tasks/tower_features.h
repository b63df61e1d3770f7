/* What a frozen image tower makes of the pictures of a source: computed once, and kept on disk for the next run. */
#ifndef NR_TOWER_FEATURES_H
#define NR_TOWER_FEATURES_H

#include "infer/features.h"

struct nr_tower_features {
	int64_t width, count[NR_SPLITS];
	float *x[NR_SPLITS];                /* (count,width); NULL: the split has no samples, or is not wanted */
	const char *file;                   /* where they are kept; NULL: nowhere */
	bool kept;                          /* they were there already */
};
/* Pooled features of the splits whose bits `want` has. folder: where they are kept, NULL: nowhere. what: text that tells the pictures
 * from others. tower: the file of the weights, whose checksum belongs to the name. comm: ranks that share the work. */
struct nr_tower_how { const char *tower, *folder, *what; unsigned want; int64_t batch; int workers; struct nr_comm *comm; };
/* Their width, number and file; then, on all ranks, the features. */
int nr_tower_features_open(struct nr_tower_features *, const struct nr_weights *, const struct nr_source *, const struct nr_tower_how *,
	struct nr_arena *, struct nr_error *);
int nr_tower_features_make(struct nr_tower_features *, const struct nr_weights *, const struct nr_source *, const struct nr_tower_how *,
	struct nr_error *);
void nr_tower_features_release(struct nr_tower_features *);
/* The view of a picture as the evaluation of these weights has it. */
struct nr_augment nr_tower_view(const struct nr_weights *);

#endif
