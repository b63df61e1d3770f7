/* One graph of a case: built, filled, run, and its results collected. Inside of src/check. */
#ifndef NR_RIG_H
#define NR_RIG_H

#include "base/real.h"
#include "check/check.h"

/* An input of a case: "2x5x7", "2:i5" (0..4), "2x5:i5u" (rows of distinct values), "2:i1-5" (1..5) */
struct nr_case_input { int nd; int64_t d[NR_MAXD]; bool is_int, unique; long lo, hi; };
const char *nr_case_input(const char *text, struct nr_case_input *);    /* returns what follows */

enum { NR_RIG_GAPS = 1 << 16, NR_RIG_TWICE = 1 << 17 };     /* beside nr_plan_flags: gaps in x[0]; a second use of it adds to the loss */

struct nr_rig {
	struct nr_store *store;
	struct nr_net *net;
	struct nr_plan *plan;
	nr_t *leaf[NR_MAXIN], *y, *loss, *in[NR_MAXIN];
	int n_leaf, n_in;
	struct nr_case_input spec[NR_MAXIN];
};
/* To be released also after an error. */
int nr_rig_make(struct nr_rig *, const struct nr_subject *, const struct nr_case *, unsigned flags, struct nr_error *);
void nr_rig_release(struct nr_rig *);
void nr_rig_run(struct nr_rig *, unsigned phases);
/* Output, then the gradients of inputs and parameters, one after the other; out NULL: how many values that are. */
int64_t nr_rig_collect(const struct nr_rig *, real *out);
/* The loss is the sum of y times fixed weights, of which this is one. */
real nr_rig_weight(int64_t i);

#endif
