/* Features of a split for a probe, computed once and kept on disk.
 *
 * A file is found by the digest of all that the features follow from: the bytes of the checkpoint, model, norms, size of the
 * position table, what happens to a picture, data set, split and number of samples, a digest of labels and some pictures, and the
 * version of this program. */
#ifndef NR_PROBE_FEATURES_H
#define NR_PROBE_FEATURES_H

#include "infer/features.h"

struct nr_feature_cache {
	const char *dir;                    /* NULL: nothing is kept */
	char checkpoint[65];                /* SHA-256 of its file */
	const char *resample;
	const char *stats;                  /* where batchwise norms have their statistics from */
};
struct nr_feature_origin { bool cached; char path[4096]; };  /* path "": nothing was kept */

/* want as in nr_token_features_of. A cache that cannot be written is no error: *origin then has no path. */
int nr_probe_features(struct nr_token_features *, struct nr_feature_origin *, const struct nr_feature_cache *, const struct nr_weights *,
	const struct nr_evaluation *, const char *data, int64_t batch, unsigned want, struct nr_error *);

#endif
