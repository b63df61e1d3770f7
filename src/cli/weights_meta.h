/* What a file of weights says of itself: the keys that nr_weights_open reads. */
#ifndef NR_WEIGHTS_META_H
#define NR_WEIGHTS_META_H

#include "norma/infer.h"
#include "norma/safetensors.h"

enum { CLI_META = 12 };
/* Fills meta (CLI_META items), returns how many; texts live in the arena. */
int64_t cli_weights_meta(const struct nr_weights *, struct nr_st_meta *, struct nr_arena *);

#endif
