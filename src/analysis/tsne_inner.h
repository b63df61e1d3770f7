/* What the files of t-SNE share: p (tsne_affinity.c) and forces (tsne_force.c, tsne_tree.c). */
#ifndef NR_TSNE_INNER_H
#define NR_TSNE_INNER_H

#include "base/real.h"
#include "norma/err.h"

/* p_ij = (p_j|i + p_i|j) / 2N, zero on the diagonal; its sum is 1. */
struct nr_tsne_p {
	int64_t N, k;           /* k: neighbours that a row's p_j|i lives on */
	double *value;          /* dense: (N,N); sparse: start[N] values */
	int64_t *start;         /* (N + 1) first entry of each row; NULL: dense */
	int32_t *col;           /* rising within a row */
	double entropy;         /* sum p log p */
};
/* x (N,C) finite, N >= 1. k = N - 1 with dense, or 1 <= k < N. Release it even after an error. */
int nr_tsne_p_init(struct nr_tsne_p *, int64_t N, int64_t C, const real *x, double perplexity, int64_t k, int dense, struct nr_error *);
void nr_tsne_p_release(struct nr_tsne_p *);
/* p_j|i (k) of squared distances (k) whose perplexity is the one given, or as near as they allow: equal distances get equal p. */
void nr_tsne_conditional(int64_t k, const double *distance, double perplexity, double *p);

/* Sums over the others of one point, q_ij = 1 / (1 + |y_i - y_j|^2). The gradient is 4 (pull - push / sum z), the divergence
 * entropy + sum stress + log sum z. */
struct nr_tsne_row {
	double pull[2];         /* sum p q (y_i - y_j) */
	double push[2];         /* sum q^2 (y_i - y_j) */
	double z;               /* sum q */
	double stress;          /* sum p log(1 / q), if it was asked for */
};
/* x, y (N): the layout. */
void nr_tsne_exact(const struct nr_tsne_p *, const double *x, const double *y, int stress, struct nr_tsne_row *);

struct nr_tree;                 /* a quadtree and its sorted points */
struct nr_tree *nr_tree_make(int64_t N);        /* NULL: out of memory */
void nr_tree_free(struct nr_tree *);            /* NULL is fine */
/* push and z of every row. */
void nr_tree_push(struct nr_tree *, int64_t N, const double *x, const double *y, double theta, struct nr_tsne_row *);
/* p sparse. */
void nr_tsne_barnes_hut(const struct nr_tsne_p *, struct nr_tree *, double theta, const double *x, const double *y, int stress,
	struct nr_tsne_row *);

#endif
