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

/* Multiply-adds of all norms of a recorded net in one forward pass, half of the operations that their ops state; DTN's mixing of tokens as
 * Eq. 5 has it, two products, whatever its kernels save. */
double nr_norms_macs(const struct nr_net *);

/* The tokens of such a text on x (see nr_norm_try), x[0] or its sum with another; *text becomes the options. */
nr_t *nr_norm_try_tokens(struct nr_net *, nr_t **x, const char **text);

#define NR_SYNC_HELP "statistics over the shards of all ranks, forward and backward"

#endif
