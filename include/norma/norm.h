/* Normalizations: one file in src/norms, one line in norms.def. */
#ifndef NORMA_NORM_H
#define NORMA_NORM_H

#include "norma/graph.h"

enum nr_norm_needs { NR_NEED_GRID = 1, NR_NEED_HEADS = 2, NR_NEED_BATCH = 4 };

struct nr_norm {
	const char *name, *alias;           /* "layer", "ln" (NULL: none) */
	const char *title, *cite, *equation;
	const char *about;                  /* a few sentences: what its statistics see and what sets it apart */
	const char *const *laws;            /* "dtn:lam=1 = layer": what `norma prove` shows of it; ends with NULL, or NULL */
	uint32_t needs;
	size_t conf_size;
	const struct nr_option *options;
	nr_t *(*build)(struct nr_net *, nr_t *x, const void *conf);
	const struct nr_op *op[4];          /* its own ops, so that tests and bench find them */
};

NR_API const struct nr_norm *const *nr_norms(void);         /* ends with NULL */
/* By name or alias; an unknown name is an error with the nearest match. */
NR_API const struct nr_norm *nr_norm_find(const char *name, struct nr_error *);
/* Builds the norm that a text such as "layer:eps=1e-6" describes, with its parameters under `scope`. */
NR_API nr_t *nr_norm_make(struct nr_net *, const char *scope, const char *text, nr_t *x);

#endif
