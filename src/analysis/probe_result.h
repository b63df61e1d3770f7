/* What a probe found of one kind of features, and what the features look like: as JSON and as a table of singular values. */
#ifndef NR_PROBE_RESULT_H
#define NR_PROBE_RESULT_H

#include "analysis/probe.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "infer/features.h"

struct nr_probed {
	bool there;
	struct nr_probe_result probe;
	double low, high, uniformity, rank; /* low, high: 95 % interval of top-1 */
	double *singular;                   /* (singulars), falling, in the arena */
	int64_t singulars;
};
/* After `probe` is filled: its interval, and uniformity and centred singular values of the first 10000 test rows, as they come from
 * the encoder. Sets `there`. */
int nr_probed_look(struct nr_probed *, const struct nr_probe_data *test, struct nr_arena *, struct nr_error *);
json_t *nr_probed_json(const struct nr_probed *, bool lars);
/* A column of singular values for each kind that is there. */
void nr_probe_spectrum(const struct nr_probed kind[NR_FEATURE_KINDS], struct nr_str *csv);

#endif
