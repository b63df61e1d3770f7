/* Linear heads on frozen features as MAE trains them (He et al. 2022, arXiv:2111.06377, appendix A.1): batch norm without gain and
 * bias, a linear layer, cross entropy, LARS. Several heads with rates of their own share the features and their statistics. */
#ifndef NR_PROBE_HEADS_H
#define NR_PROBE_HEADS_H

#include "base/real.h"
#include "norma/optim.h"

struct nr_probe_heads {
	int64_t width, classes, heads, batch;
	double eps, momentum;               /* of the batch norm; momentum: weight of the newest statistics */
	struct nr_optim optim;
	int64_t step;                       /* steps done */
	double *mean, *var;                 /* (width) running; var is the unbiased one */
	real *weight, *bias;                /* (heads,classes,width), (heads,classes) */
	real *dweight, *dbias;              /* their gradients in the last step */
	real *normal, *logits, *loss;       /* of the last batch: (batch,width), (batch,heads*classes), (heads,batch) */
	real *d, *m, *shift, *scale;        /* work: gradient of the logits, momentum, statistics as the kernel wants them */
	double *batch_mean, *batch_var;
	struct nr_segment *segment;         /* two for each head */
	void *gemm, *update;                /* scratch */
	void *memory;
};

/* Weights are zero, running statistics 0 and 1. */
int nr_probe_heads_make(struct nr_probe_heads **, int64_t width, int64_t classes, int64_t heads, int64_t batch, struct nr_error *);
void nr_probe_heads_free(struct nr_probe_heads *);                       /* NULL is fine */
/* Normal weights of this deviation, the same for each head. */
void nr_probe_heads_init(struct nr_probe_heads *, uint64_t seed, double std);
/* One step on x (n,width), n <= batch, with rates (heads). NR_EDIVERGED if it is not finite. */
int nr_probe_heads_step(struct nr_probe_heads *, int64_t n, const real *x, const int32_t *label, const struct nr_rates *,
	struct nr_error *);
double nr_probe_heads_loss(const struct nr_probe_heads *, int64_t head, int64_t n);     /* mean of the last step */
/* out (n,heads*classes) with the running statistics; n <= batch. */
void nr_probe_heads_scores(struct nr_probe_heads *, int64_t n, const real *x, real *out);

#endif
