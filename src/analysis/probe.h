/* Linear probing: how much of the classes a linear map reads from frozen features.
 *
 * exact   multinomial logistic regression solved to convergence on features standardised by the training split's mean and
 *         deviation, over a falling list of weight decays, each begun with the weights of the one before
 * lars    MAE's protocol (probe_heads.h): epochs of LARS steps, every learning rate and weight decay in one pass
 *
 * With more than one setting, a part of the training split, the same share of each class, is held out to choose among them: the
 * test split never does. exact then fits the chosen one to the whole training split; lars keeps the head as it is. */
#ifndef NR_PROBE_H
#define NR_PROBE_H

#include <stdbool.h>

#include "norma/err.h"

enum nr_probe_solver { NR_PROBE_EXACT, NR_PROBE_LARS };
enum { NR_PROBE_MAX = 64 };                 /* settings of one list */

struct nr_probe {
	enum nr_probe_solver solver;
	int64_t classes;
	double weight_decay[NR_PROBE_MAX], base_lr[NR_PROBE_MAX];
	int64_t weight_decays, base_lrs;    /* how many; base_lr: of lars, for a batch of 256 */
	double hold_out;                    /* share that chooses among several settings */
	uint64_t seed;
	struct nr_comm *comm;               /* exact: ranks that share the rows; or NULL */
	/* exact */
	double tolerance;                   /* of the largest component of the gradient of the mean loss */
	int64_t iterations;                 /* at most, for each weight decay */
	/* lars */
	double epochs, warmup;
	int64_t batch;
	/* Training features made anew for every step, x (n,width) of these rows; NULL: as they are in the data. */
	int (*fresh)(void *of, const int32_t *row, int64_t n, int64_t epoch, float *x, struct nr_error *);
	void *fresh_of;
	int (*watch)(void *context, int64_t done, int64_t of);      /* steps; non-zero stops; or NULL */
	void *context;
};
struct nr_probe_data { int64_t count, width; const float *x; const int32_t *label; };  /* (count,width), (count) */

struct nr_probe_try {                       /* one setting */
	double weight_decay, base_lr;       /* base_lr 0: exact */
	double held_top1;                   /* -1: nothing was held out */
	double top1, top5;                  /* of the test split, shares of 1 */
	double loss, gradient;              /* of the training rows; exact: with the penalty, and the largest component; lars: of the */
					    /* last epoch, without, and 0 */
	int64_t iterations;                 /* of L-BFGS, or steps */
	bool converged;
};
struct nr_probe_result {
	int64_t tries, chosen, held;        /* held: rows that chose; 0: none */
	struct nr_probe_try each[NR_PROBE_MAX];
	struct nr_probe_try best;           /* the chosen one; exact: fitted to all training rows */
};

/* NR_EVALUE for labels outside the classes (-1: none), fewer than two rows, or rows of one class only. */
int nr_probe_run(const struct nr_probe *, const struct nr_probe_data *train, const struct nr_probe_data *test, struct nr_probe_result *,
	struct nr_error *);

/* Labels of train with -1 where a row is held out: share of each class, which keeps at least one row; returns how many. */
int64_t nr_probe_hold_out(int64_t rows, const int32_t *label, int64_t classes, double share, uint64_t seed, int32_t *fit,
	struct nr_error *);
/* Wilson's interval of a share p seen in n samples; z = 1.96 for 95 %. */
void nr_wilson(double p, int64_t n, double z, double *low, double *high);

/* ---- what probe.c and probe_lars.c share ---------------------------------------------------------------------------------- */

struct nr_probe_work {
	const struct nr_probe *o;
	const struct nr_probe_data *train, *test;
	const int32_t *fit;                 /* labels to fit; -1: held out */
	int64_t held;
};
int nr_probe_lars(const struct nr_probe_work *, struct nr_probe_result *, struct nr_error *);

#endif
