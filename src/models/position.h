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
};
/* "pos_embed" (1, special + h w, dim) of the present scope; a table that is there already is found. Not for NONE. */
nr_t *nr_position_table(struct nr_net *, const struct nr_position_table *);

#endif
