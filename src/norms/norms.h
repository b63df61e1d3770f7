/* What the files of norms share. */
#ifndef NR_NORMS_H
#define NR_NORMS_H

#include "norma/norm.h"

#define NORM(name) extern const struct nr_norm nr_norm_##name;
#include "norms/norms.def"
#undef NORM

/* For the try_case of a norm's op. The text is "TOKENS | OPTIONS" or OPTIONS alone: options as in a plan ("eps=1e-3"), and
 * tokens some of `sum` (x[0] + the next input is normalised), `special=1`, `heads=3`, `grid=3x4`, `valid` (the next input
 * holds the lengths), `pos` (the next input holds the places on the grid). Inputs are taken in the order of the words. */
nr_t *nr_norm_try(struct nr_net *, const struct nr_norm *, nr_t **x, const char *text);

#endif
