/* Position tables of models on a grid: learned, or fixed sin-cos ones that the optimizer leaves alone. */
#ifndef NR_POSITION_H
#define NR_POSITION_H

#include "norma/graph.h"

enum nr_position { NR_POSITION_LEARNED, NR_POSITION_SINCOS, NR_POSITION_SINCOS_BV, NR_POSITION_NONE };
extern const char *const nr_position_names[];   /* learned, sincos (MAE's), sincos_bv (big_vision's), none; ends with NULL */

struct nr_position_table {
	int64_t h, w, dim;
	int64_t special;                    /* leading rows of tokens off the grid; zeros in fixed tables */
	int32_t kind;                       /* enum nr_position */
	int64_t side;                       /* of the square grid that the model is made for; 0: h x w are all it meets */
};
/* "pos_embed" (1, special + h w, dim) of the present scope. A table that is there already is found; one of side x side is resized for
 * another grid as DINO does (local crops), its special rows stay. Not for NONE. */
nr_t *nr_position_table(struct nr_net *, const struct nr_position_table *);

#endif
