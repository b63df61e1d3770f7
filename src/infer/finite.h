/* What a model says must be a number: NaN compares as neither more nor less, and makes rankings, neighbours and probes look sound. */
#ifndef NR_FINITE_H
#define NR_FINITE_H

#include <stdbool.h>

#include "norma/graph.h"

bool nr_rows_finite(const struct nr_plan *, const nr_t *out, int64_t rows);    /* the first rows of what a run left there */
/* The error of a run that was not finite: the first tensor of the store that has such a value, else the first site whose output has,
 * found by running again on the inputs, which must be in their places once more. */
int nr_not_finite(struct nr_plan *, const struct nr_store *, const struct nr_exec *, const char *model, struct nr_error *);
/* The name of that tensor; NULL: all are finite. */
const char *nr_store_first_bad(const struct nr_store *);

#endif
