/* One normalization on a small input: forward and backward with values that the caller sets. For the laws of `norma prove`
 * and for the cards of `norma norms`. */
#ifndef NR_NORM_TRIAL_H
#define NR_NORM_TRIAL_H

#include "base/real.h"
#include "norma/norm.h"

struct nr_trial_shape {
	int64_t batch, tokens, channels;    /* tokens: those on the grid; special ones come before them */
	int32_t special, heads;             /* heads 0: 3, 2 or 1, whichever divides the channels */
	int lengths;                        /* 1: samples have lengths, see nr_trial_lengths */
	double eps;                         /* where a norm's text gives none; 0: its own */
};

struct nr_trial {
	struct nr_store *store;
	struct nr_net *net;
	struct nr_plan *plan;
	nr_t *x, *dy, *y, *valid;           /* valid NULL: no lengths */
	int64_t step;
};

/* The squarest h x w grid of so many tokens, not taller than wide. */
void nr_grid_of(int64_t tokens, int32_t *h, int32_t *w);

/* On failure nothing is left open. */
int nr_trial_open(struct nr_trial *, const char *text, const struct nr_trial_shape *, struct nr_error *);
void nr_trial_close(struct nr_trial *);
real *nr_trial_x(const struct nr_trial *);              /* (B,special+T,C): write before a run; likewise dy */
real *nr_trial_dy(const struct nr_trial *);
int32_t *nr_trial_lengths(const struct nr_trial *);     /* (B), special tokens counted */
/* Forward and backward in training mode; statistics are not committed, so that runs repeat. */
void nr_trial_run(struct nr_trial *);
void nr_trial_forward(struct nr_trial *);
const real *nr_trial_y(const struct nr_trial *);
const real *nr_trial_dx(const struct nr_trial *);

#endif
