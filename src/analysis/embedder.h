/* Who turns sentences into embeddings: a model, or a table in a test. */
#ifndef NR_EMBEDDER_H
#define NR_EMBEDDER_H

#include "base/real.h"
#include "norma/err.h"

struct nr_embedder {
	/* out (n,dim); texts may be empty. They come in any order of length, all of a task at once: sort them as it suits. */
	int (*embed)(void *context, const char *const *text, int64_t n, real *out, struct nr_error *);
	void *context;
	int64_t dim;
};

#endif
