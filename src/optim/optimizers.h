/* Optimizers: one file in src/optim, one line in optimizers.def. The file ends with a struct nr_optimizer (norma/train.h);
 * variants of one rule share a file. */
#ifndef NR_OPTIMIZERS_H
#define NR_OPTIMIZERS_H

#include "math/update.h"
#include "norma/optim.h"

/* ---- what several share ---- */

#define NR_OPTIM_MOMENTUM \
	NR_OPT_FLOAT(struct nr_optim, momentum, 0.9, 0, 1, "share of the previous step that is kept; 0 needs no buffer")
#define NR_OPTIM_DAMPENING \
	NR_OPT_FLOAT(struct nr_optim, dampening, 0, 0, 1, "dampening of the gradient that is added to the momentum")
#define NR_OPTIM_NESTEROV NR_OPT_BOOL(struct nr_optim, nesterov, "0", "look ahead by one step of momentum")
#define NR_OPTIM_EPS NR_OPT_FLOAT(struct nr_optim, eps, 1e-8, 0, 1, "added to the denominator")

/* AdamW's coefficients for parameter i, with its learning rate times a factor (adam.c). */
struct nr_adam_coef nr_adamw_coef(const struct nr_optim_call *, int64_t i, double factor);
/* Momentum as SGD and LARS have it (sgd.c). The coefficients of all parameters lead the scratch. */
int nr_momentum_slots(const struct nr_optim *);
struct nr_sgd_coef nr_momentum_coef(const struct nr_optim_call *, const struct nr_optim_arg *);
void nr_momentum_apply(const struct nr_optim_call *, struct nr_optim_chunk);

#endif
