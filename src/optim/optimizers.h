/* Optimizers: one file in src/optim, one line in optimizers.def. The file ends with a struct nr_optimizer
 * (variants of one rule share a file).
 *
 * optim.c cuts all parameters into fixed chunks of NR_UPDATE_CHUNK values, numbered through, and has clipped the gradients (as a
 * factor: they are only read) when `step` is called. nr_optim_each walks the chunks in one parallel region, so that many small
 * parameters cost no more than one large one; sums are made for each chunk and folded in order: equal bits at any thread count. */
#ifndef NR_OPTIMIZERS_H
#define NR_OPTIMIZERS_H

#include "math/update.h"
#include "norma/train.h"

struct nr_optim_arg {                       /* of one parameter in one step */
	int64_t first;                      /* number of its first chunk */
	double scale;                       /* of the gradient, from clipping */
	double lr, decay;                   /* learning rate and weight decay, with the parameter's own factors */
};

struct nr_optim_call {                      /* one step */
	const struct nr_optim *o;
	const void *own;                    /* values of the optimizer's own options */
	int64_t t;                          /* from 1 */
	const struct nr_segment *segment;
	const struct nr_optim_arg *arg;     /* (count) */
	int64_t count, chunks;
	void *scratch;                      /* as many bytes as `scratch` says */
};

struct nr_optimizer {
	const char *name, *title, *cite;
	const char *formula;                /* one step, for documentation */
	const struct nr_option *options;    /* rows of struct nr_optim that it reads, beside those that all have */
	const struct nr_option *own;        /* rows of a struct of its own, for what no other has; NULL: none */
	size_t own_size;                    /* of that struct; all own ones fit into nr_optim.own */
	int (*slots)(const struct nr_optim *);                             /* how many of m, v it keeps: 0, 1 or 2 */
	size_t (*scratch)(const struct nr_segment *, int64_t count, int64_t chunks);     /* bytes */
	void (*step)(const struct nr_optim_call *);
};
const struct nr_optimizer *const *nr_optimizers(void);        /* ends with NULL; nr_optim.kind is the place in it */

/* Chunk `number`: values at .. at + n - 1 of a parameter. */
struct nr_optim_chunk { int64_t number, parameter, at, n; };
void nr_optim_each(const struct nr_optim_call *, void (*run)(const struct nr_optim_call *, struct nr_optim_chunk));
/* Sum over the chunks of a parameter; part has a number for each chunk of the step. */
double nr_optim_fold(const struct nr_optim_call *, int64_t parameter, const double *part);

/* ---- what several share ---- */

#define NR_OPTIM_MOMENTUM NR_OPT_FLOAT(struct nr_optim, momentum, 0.9, 0, 1, "share of the last step that goes on; 0 keeps no buffer")
#define NR_OPTIM_DAMPENING NR_OPT_FLOAT(struct nr_optim, dampening, 0, 0, 1, "of the gradient that joins the momentum")
#define NR_OPTIM_NESTEROV NR_OPT_BOOL(struct nr_optim, nesterov, "0", "look ahead by one step of momentum")
#define NR_OPTIM_EPS NR_OPT_FLOAT(struct nr_optim, eps, 1e-8, 0, 1, "added to what is divided by")

/* Momentum as SGD and LARS have it (sgd.c). The coefficients of all parameters lead the scratch. */
int nr_momentum_slots(const struct nr_optim *);
struct nr_sgd_coef nr_momentum_coef(const struct nr_optim_call *, const struct nr_optim_arg *);
void nr_momentum_apply(const struct nr_optim_call *, struct nr_optim_chunk);

#endif
