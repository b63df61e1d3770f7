/* The norm microscope: what goes into and out of each norm, and what its parameters do, every so many steps; microscope.csv in
 * the run directory. It looks on while the plan runs, so a training has the same bits with it as without; off, it costs nothing. Where
 * the loss reads some tokens of a site only, the others are made in the steps that are recorded.
 *
 * One record is one line for each site and group of tokens (special: [CLS], registers; tokens: all others; padding counts for
 * neither): moments of all values and of the tokens' lengths, in the first batch of the step and with the parameters that it
 * used. A cell is empty where there is nothing to measure. As with the other records, what came after a checkpoint is cut off when
 * a run is resumed. */
#ifndef NR_MICROSCOPE_H
#define NR_MICROSCOPE_H

#include <stdbool.h>

#include "base/mem.h"
#include "norma/graph.h"

enum nr_token_group { NR_SPECIAL, NR_TOKENS, NR_GROUPS };

struct nr_microscope;
/* After nr_norms_use and before the model is recorded: notes every site that gets a norm. Lives in the arena. */
int nr_microscope_make(struct nr_microscope **, struct nr_net *, struct nr_arena *, struct nr_error *);
/* The plan is made and the store has the values that the run begins with, from which drifts are counted. */
int nr_microscope_ready(struct nr_microscope *, const struct nr_plan *, struct nr_error *);
/* The file, with records up to this step if the run is resumed, else without any. lambda: the file for DTN's weight of a token's own
 * statistics, by site and head (Fig. 8), which only models with DTN get: columns SITE.mean.HEAD and SITE.var.HEAD. */
int nr_microscope_open(struct nr_microscope *, const char *path, const char *lambda, bool resume, int64_t step, struct nr_error *);
/* A step that is to be recorded: parameters are measured at once, activations during the next forward pass with this exec. */
void nr_microscope_look(struct nr_microscope *, struct nr_exec *);
/* What `seen` saw, as the record of a step in the file of m: one write. Batches of other lengths have other plans, and each of those a
 * microscope of its own; the first one has the file. */
int nr_microscope_write(struct nr_microscope *m, const struct nr_microscope *seen, int64_t step, struct nr_error *);
int nr_microscope_sync(struct nr_microscope *, struct nr_error *);
void nr_microscope_close(struct nr_microscope *);             /* NULL is fine */

#endif
