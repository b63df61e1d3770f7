/* Which model a file looks like: the kinds of models, each with its own signs. */
#ifndef NR_GUESS_H
#define NR_GUESS_H

#include "norma/model.h"

/* The tensor of a file that an entry of ours is under these names (the first of several); NULL: it has none. */
const struct nr_st_tensor *nr_guess_find(const struct nr_st_file *, const struct nr_naming *, const char *entry, struct nr_arena *);
/* Text models; 1: it looks like one. */
int nr_text_guess(struct nr_guess *, const struct nr_st_file *, struct nr_arena *);
/* Graph models; likewise. */
int nr_graph_guess(struct nr_guess *, const struct nr_st_file *, struct nr_arena *);

#endif
