/* The gradient's norm in each layer, every so many steps, for Figure 2 of Dual PatchNorm: layer_gradients.csv in the run directory, one line
 * per recorded step and one column per layer. A layer is a block, or else what a parameter's name begins with (patch_embed, head).
 * Norms are those of the whole step, before clipping. */
#ifndef NR_LAYER_GRADIENTS_H
#define NR_LAYER_GRADIENTS_H

#include "base/mem.h"
#include "norma/graph.h"
#include "norma/optim.h"

struct nr_layer_gradients;
/* params: of this store, in its order. Lives in the arena. */
int nr_layer_gradients_make(struct nr_layer_gradients **, const struct nr_store *, const struct nr_params *, struct nr_arena *,
	struct nr_error *);
int nr_layer_gradients_open(struct nr_layer_gradients *, const char *path, bool resume, int64_t step, struct nr_error *);
/* The gradients at hand, as the record of a step. */
int nr_layer_gradients_write(struct nr_layer_gradients *, int64_t step, struct nr_error *);
int nr_layer_gradients_sync(struct nr_layer_gradients *, struct nr_error *);
void nr_layer_gradients_close(struct nr_layer_gradients *);    /* NULL is fine */

#endif
