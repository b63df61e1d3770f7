/* A norm that is the same for every sample, in numbers: y = s x + t for each channel. */
#ifndef NR_AFFINE_H
#define NR_AFFINE_H

#include "norma/graph.h"

struct nr_affine { double *s, *t; };

/* C of each, in the arena. */
int nr_affine_make(struct nr_affine *, int64_t C, struct nr_arena *, struct nr_error *);
/* The tensor SITE.WHAT; NULL: there is none. */
const struct nr_entry *nr_affine_part(const struct nr_store *, const char *site, const char *what);
/* Value i of it, or the only one; `otherwise` without it. */
double nr_affine_value(const struct nr_entry *, int64_t i, double otherwise);
/* Batch norms in evaluation, from their running statistics; RepBN's eta x with them. */
void nr_affine_running(const struct nr_store *, const char *site, double eps, int64_t C, struct nr_affine *);

#endif
