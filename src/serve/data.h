/* The curves so far, as JSON: what a page draws before events add to it. */
#ifndef NR_SERVE_DATA_H
#define NR_SERVE_DATA_H

#include <sys/types.h>

#include "base/str.h"

/* One run of it; texts live as long as the catalogue. */
struct nr_data_run { const char *name, *dir, *label, *stage; int64_t seed, number, turn; off_t bytes; };

/* bytes: how much of metrics.csv counts; what comes later is in events after the mark. Files that cannot be read give no curves. */
void nr_data(struct nr_str *, const char *mark, const struct nr_data_run *, int64_t count);

#endif
