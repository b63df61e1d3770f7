/* norma-golden-1: a recorded function of x, replayed step by step with parameters, buffers and masks. */
#ifndef GOLDEN_REPLAY_H
#define GOLDEN_REPLAY_H

#include "golden/check.h"
#include "norma/nn.h"
#include "norma/norm.h"

struct replay {
	/* Records y. x has no tokens yet; valid: (B) lengths, or NULL when the file has no masks. */
	nr_t *(*build)(struct golden_case *, struct nr_net *, nr_t *x, nr_t *valid);
	/* The file's name of a parameter or buffer, or several names separated by blanks whose values follow each other;
	 * NULL: as it is called here. */
	const char *(*names)(struct golden_case *, const char *entry);
};
int golden_replay(struct golden_case *, const struct replay *);

/* The norm that metadata with this prefix ("", "special.", "inner.") describes: "layer:eps=1e-05", "sep(...)". */
const char *golden_norm_text(struct golden_case *, const char *prefix);
/* Metadata as a number. */
int64_t golden_meta_int(struct golden_case *, const char *key, int64_t otherwise);
/* Any norm of the registry, by its own name. */
int golden_norm_registry(struct golden_case *);

#endif
