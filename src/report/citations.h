/* The papers behind a page: of the norms, models and data sets of the runs, and of the measures. */
#ifndef NR_CITATIONS_H
#define NR_CITATIONS_H

#include "report/arms.h"

/* A section. arms: one for each stage that trains. */
void nr_citations(struct nr_str *, const struct nr_arms *const *arms, int count);

#endif
