/* Segmentation: a linear decoder on the tokens of any model of pictures, a class for every place of the grid.
 *
 * A model without levels gives its patch tokens after the final norm, a pyramid one of its levels. The decoder's entries are under
 * "segment", those of the model under its own names. */
#ifndef NR_SEGMENT_H
#define NR_SEGMENT_H

#include "norma/model.h"

enum nr_segment_decoder { NR_SEGMENT_DENSE, NR_SEGMENT_BN };
enum { NR_SEGMENT_IGNORED = 255 };          /* the label of pixels that do not count */

struct nr_segmentation {
	int32_t decoder;                    /* enum nr_segment_decoder: a dense layer, or batch norm before it */
	int64_t level;                      /* of a pyramid, from 1, the finest; 0: the last */
	int64_t classes;
	const char *batch;                  /* text of that batch norm; NULL: "batch" */
};
extern const char *const nr_segment_decoders[];       /* "dense", "bn"; ends with NULL */

/* What the decoder wants of the model: a final norm on tokens, not on their mean. */
int nr_segment_settle(struct nr_model_spec *, struct nr_arena *, struct nr_error *);
/* (B,h,w,classes) for pictures of any size that the model takes. */
nr_t *nr_segment_logits(struct nr_net *, const struct nr_model_spec *, const struct nr_segmentation *, const struct nr_inputs *);
bool nr_segment_entry(const char *name);    /* is it the decoder's? */

/* What a file has: its decoder's kind and classes; false: none. The level is not seen in it. */
struct nr_st_file;
bool nr_segment_guess(struct nr_segmentation *, const struct nr_st_file *);

#endif
