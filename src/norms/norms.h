/* What the files of norms share. */
#ifndef NR_NORMS_H
#define NR_NORMS_H

#include "norma/norm.h"

#define NORM(name) extern const struct nr_norm nr_norm_##name;
#include "norms/norms.def"
#undef NORM

/* Reads "layer:eps=1e-6" or "sep(bn,ln)" into a norm and its configuration, which lives in the arena. eps > 0: used where
 * the text gives none. */
int nr_norm_parse(const char *text, double eps, struct nr_arena *, const struct nr_norm **, void **conf, struct nr_error *);
/* The eps of the net's norm plan; 0: each norm's own. */
double nr_norms_eps(const struct nr_net *);

/* For the try_case of a norm's op. The text is "TOKENS | OPTIONS" or OPTIONS alone: options as in a plan ("eps=1e-3"), and
 * tokens some of `sum` (x[0] + the next input is normalised), `special=1`, `heads=3`, `grid=3x4`, `valid` (the next input
 * holds the lengths), `pos` (the next input holds the places on the grid). Inputs are taken in the order of the words. */
nr_t *nr_norm_try(struct nr_net *, const struct nr_norm *, nr_t **x, const char *text);

#endif
