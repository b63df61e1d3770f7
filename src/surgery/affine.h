/* A norm that is the same for every sample, in numbers: y = s x + t for each channel. */
#ifndef NR_AFFINE_H
#define NR_AFFINE_H

#include <stdbool.h>

#include "norma/graph.h"
#include "norma/norm.h"

/* The norm of a site as its text says it; conf lives in the arena of the net. */
struct nr_affine_norm { const struct nr_norm *norm; void *conf; };
int nr_affine_parse(const struct nr_net *, const char *text, struct nr_affine_norm *, struct nr_error *);
bool nr_affine_is(const struct nr_affine_norm *, const char *name);
/* The option as a number; `otherwise` where the norm has none of that name. Is it this choice? */
double nr_affine_number(const struct nr_affine_norm *, const char *option, double otherwise);
bool nr_affine_has(const struct nr_affine_norm *, const char *option, const char *choice);

struct nr_affine { double *s, *t; };

/* C of each, in the arena. */
int nr_affine_make(struct nr_affine *, int64_t C, struct nr_arena *, struct nr_error *);
/* The tensor SITE.WHAT; NULL: there is none. */
const struct nr_entry *nr_affine_part(const struct nr_store *, const char *site, const char *what);
/* Value i of it, or the only one; `otherwise` without it. */
double nr_affine_value(const struct nr_entry *, int64_t i, double otherwise);
/* Batch norms in evaluation, from their running statistics; RepBN's eta x with them. */
void nr_affine_running(const struct nr_store *, const char *site, double eps, int64_t C, struct nr_affine *);

/* A layer of the store, (rows,cols): its weight, and its bias or NULL. */
struct nr_affine_layer { const struct nr_entry *weight, *bias; };
/* What a layer becomes with a norm before it (s, t for each column): W' = W s, b' = b + W t; or behind it (for each row): W' = s W,
 * b' = s b + t. to may be from; where it has no bias, there is none to take t. */
void nr_affine_before(const struct nr_affine *, const struct nr_affine_layer *from, const struct nr_affine_layer *to);
void nr_affine_behind(const struct nr_affine *, const struct nr_affine_layer *from, const struct nr_affine_layer *to);

#endif
