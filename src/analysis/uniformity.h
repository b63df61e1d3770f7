/* How embeddings fill the sphere: uniformity and alignment (Wang & Isola 2020), the spectral loss of U-MAE
 * (Zhang et al. 2022), effective rank (Roy & Vetterli 2007). Embeddings (N,C); "normalised" means each row
 * divided by its length. */
#ifndef NR_UNIFORMITY_H
#define NR_UNIFORMITY_H

#include "base/real.h"
#include "norma/err.h"

struct nr_pairs {
	double uniformity;       /* log mean_{i<j} exp(-t |u_i - u_j|^2) */
	double mean_cos;         /* over i != j */
	double mean_sq;          /* of u_i.u_j over i != j */
	double mean_sq_diagonal; /* the same over all N^2 pairs, the item itself included: U-MAE's loss */
};
/* NR_EMEMORY, NR_ESHAPE (fewer than two rows), or 0. */
int nr_uniformity(int64_t N, int64_t C, const real *x, double t, struct nr_pairs *, struct nr_error *);
/* mean |u_i - w_i|^alpha of the normalised rows of x and y. */
double nr_alignment(int64_t N, int64_t C, const real *x, const real *y, double alpha);
/* s (min(N,C)), falling; centred: column means taken off. */
int nr_spectrum(int64_t N, int64_t C, const real *x, int centred, double *s, struct nr_error *);
double nr_effective_rank(int64_t n, const double *s); /* exp of the entropy of s / sum s */

/* How far embeddings have collapsed, as every command reports it: uniformity and mean cosine (t = 2; 0 with one row), effective
 * rank of the centred singular values, which s (min(N,C)) gets. */
struct nr_spread { double uniformity, mean_cos, rank; };
int nr_spread(int64_t N, int64_t C, const real *x, double *s, struct nr_spread *, struct nr_error *);

#endif
