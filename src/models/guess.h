/* Which model a file looks like: the kinds of models, each with its own signs. */
#ifndef NR_GUESS_H
#define NR_GUESS_H

#include "norma/model.h"

/* Text models; 1: it looks like one. */
int nr_text_guess(struct nr_guess *, const struct nr_st_file *, struct nr_arena *);

#endif
