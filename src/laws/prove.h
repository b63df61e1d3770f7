/* Laws of normalizations, tried on random inputs: limits that papers state ("dtn:lam=1 = layer") and invariances.
 *
 * An equation builds both sides on the same input with the same upstream gradient, in training mode, and compares y, dx and
 * the gradients of the parameters that both have. Parameters named weight and bias are random, the same on both sides;
 * all others keep their first values. A difference is the largest one over the largest value (at least .001). */
#ifndef NR_PROVE_H
#define NR_PROVE_H

#include <math.h>

#include "base/real.h"
#include "norma/norm.h"

enum { NR_PROOF_PARTS = 16, NR_MAXLAWS = 256 };

struct nr_prove_options {
	int64_t batch, tokens, channels;    /* tokens on the grid; special ones come before them */
	int32_t special, heads, seeds;      /* special < 0: one if a side is made of norms, else none; heads 0: chosen */
	double tolerance;
};
extern const struct nr_prove_options nr_prove_default;      /* 3 samples, a 3 x 4 grid, 12 channels, 3 seeds, 1e-5 */

struct nr_proof {
	struct nr_proof_part { char name[64]; double difference; } part[NR_PROOF_PARTS];    /* y, dx, grad NAME ... */
	int32_t parts;
	double values, gradients;           /* the largest of y, and of the rest; NaN: the law is not about them */
	int holds;
	char note[200];                     /* what was measured, for laws that are no equation; or "" */
};

/* "A = B": anything wrong with the texts is an error, a difference is not. */
int nr_prove_equation(const char *text, const struct nr_prove_options *, struct nr_proof *, struct nr_error *);

/* Every law of the registry, then those that are no equation of two norms. */
struct nr_law {
	const char *text, *source;          /* source: the paper */
	int (*prove)(const struct nr_prove_options *, struct nr_proof *, struct nr_error *);    /* NULL: an equation */
};
int nr_laws(struct nr_law *, int most);                     /* how many there are */
int nr_law_prove(const struct nr_law *, const struct nr_prove_options *, struct nr_proof *, struct nr_error *);

/* For the laws themselves (prove_laws.c, prove_tokens.c, prove_layers.c); each list ends with a NULL text. */
extern const struct nr_law nr_laws_other[], nr_laws_of_tokens[], nr_laws_of_layers[];
void nr_prove_random(int64_t n, real *x, double mean, double deviation, uint64_t seed, uint32_t stream);
/* Notes a difference of got and want under a name (the largest of several calls), by index (NULL: all n values). */
void nr_proof_compare(struct nr_proof *, const char *name, int64_t n, const real *got, const real *want);
/* values, gradients, holds from the parts. */
void nr_proof_close(struct nr_proof *, double tolerance);

#endif
