/* The verdict in words, from the numbers alone. */
#ifndef NR_VERDICT_H
#define NR_VERDICT_H

#include "report/arms.h"

/* Paragraphs of HTML: who is ahead, with intervals, or that no difference was seen; what goes with it in the features; and what
 * speaks against relying on it. */
void nr_verdict(struct nr_str *, const struct nr_arms *);

#endif
