/* t-SNE in the plane (van der Maaten & Hinton 2008; Barnes-Hut: van der Maaten 2014).
 *
 * Up to `exact` rows every pair counts: p over all rows, forces in O(N^2). Above, p lives on the 3 perplexity nearest neighbours
 * and repulsion is summed over the cells of a quadtree: a cell whose points span s, at distance
 * d, stands for them when s <= theta d. The layout starts from the two leading principal components (pca.h), the first scaled to a
 * deviation of 1e-4, with a jitter of a hundredth of that: without it rows on a line would stay on a line. Steps are those of the
 * paper: momentum .5 while p is exaggerated and .8 after, a gain for each coordinate. The same bits for any number of threads. */
#ifndef NR_TSNE_H
#define NR_TSNE_H

#include <stdbool.h>

#include "base/real.h"
#include "norma/err.h"

struct nr_tsne {
	double perplexity;              /* neighbours that count; used: at most (N - 1) / 3, at least 1 */
	double theta;                   /* 0 .. .7; 0 visits every point */
	double exaggeration;            /* p is multiplied by it at first */
	double rate;                    /* times sum (p - q) (y_i - y_j) / (1 + d^2), the gradient without its 4; 0: N / 12, or */
					/* N / exaggeration if that is less, but not below min(N, 200) */
	int64_t steps, exaggerated;     /* in all; of these with exaggeration */
	int64_t exact;                  /* rows up to which every pair counts; fewer than 4 always do */
	uint64_t seed;                  /* of the jitter */
	/* Told every 10 steps and at the end, with the divergence of p as it is, not exaggerated; non-zero stops; or NULL. */
	int (*watch)(void *context, int64_t done, int64_t of, double kl);
	void *context;
};
#define NR_TSNE_DEFAULTS { .perplexity = 30, .theta = .3, .exaggeration = 12, .steps = 1000, .exaggerated = 250, .exact = 2000 }

struct nr_tsne_result {
	double perplexity, rate;        /* as used */
	double kl;                      /* sum p log(p / q) of the layout, in nats */
	int64_t neighbours;             /* that p lives on: N - 1, or 3 perplexity */
	int64_t steps;                  /* done: fewer when watch stopped it */
	bool exact;
};

/* x (N,C), N >= 1; y (N,2), its mean 0. NR_EVALUE for a setting out of range or an x that is not finite, NR_EDIVERGED for a rate
 * too large, NR_ESHAPE, NR_ELIMIT (pca.h), NR_EMEMORY, or 0, also when watch stopped it. A single row lands on 0. */
int nr_tsne_run(const struct nr_tsne *, int64_t N, int64_t C, const real *x, double *y, struct nr_tsne_result *, struct nr_error *);

#endif
