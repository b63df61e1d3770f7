/* Facts of a split that only reading all of it tells. */
#ifndef NR_MEASURE_H
#define NR_MEASURE_H

#include "norma/data.h"

struct nr_split_facts {
	int64_t pictures;
	double mean[3], std[3];             /* of value / 255 over all pixels, by channel */
	int32_t h[2], w[2];                 /* least and largest */
};

/* tell may be NULL; it returns false to stop. The sums are whole numbers: the order of pictures does not matter. */
int nr_source_measure(const struct nr_source *, enum nr_split, struct nr_split_facts *, bool (*tell)(void *,
	int64_t done), void *arg,
	struct nr_error *);
/* Pictures of each class (classes); returns how many have none. */
int64_t nr_source_histogram(const struct nr_source *, enum nr_split, int64_t *count);
/* Likewise pixels of label maps; *none: how many do not count. */
int nr_source_map_histogram(const struct nr_source *, enum nr_split, int64_t *count, int64_t *none, struct nr_error *);
/* SHA-256 of counts, labels or targets, all texts, and 64 pictures (with label maps) or graphs spread over the split; hex has room for
 * 65 characters. */
int nr_source_digest(const struct nr_source *, enum nr_split, char *hex, struct nr_error *);

#endif
