/* Segmentation: a linear decoder on the tokens of any model of pictures, a class for every place of the grid.
 *
 * A model without levels gives its patch tokens after the final norm, a pyramid one of its levels. The decoder's entries are under
 * "segment", those of the model under its own names. */
#ifndef NR_SEGMENT_H
#define NR_SEGMENT_H

#include "norma/model.h"

enum nr_segment_decoder { NR_SEGMENT_DENSE, NR_SEGMENT_BN };

struct nr_segmentation {
	int32_t decoder;                    /* enum nr_segment_decoder: a dense layer, or batch norm before it */
	int64_t level;                      /* of a pyramid, from 1, the finest; 0: the last */
	bool align_corners;                 /* first and last places lie on first and last pixels */
	int64_t classes;
	const char *batch;                  /* text of that batch norm, site segment.bn, where a plan says nothing of it; NULL: "batch" */
};
extern const char *const nr_segment_decoders[];       /* "dense", "bn"; ends with NULL */
/* Rows of an option table of S for decoder and level, which are `at` there: nothing, or "field.". */
#define NR_SEGMENT_OPTIONS(S, at)                                                                                            \
	{ .name = "decoder", .type = NR_TENUM, .offset = offsetof(S, at decoder), .size = sizeof(int32_t), .text = "dense",   \
	  .choices = nr_segment_decoders,                                                                                    \
	  .help = "what reads the tokens: a dense layer, or a batch norm (site segment.bn) and a dense layer" },              \
	{ .name = "level", .type = NR_TINT, .offset = offsetof(S, at level), .size = sizeof(int64_t), .text = "0", .min = 0,  \
	  .max = NR_MAXLEVELS, .help = "of a pyramid the level that the decoder reads, 1 is the finest; 0: the last" },        \
	{ .name = "align_corners", .type = NR_TBOOL, .offset = offsetof(S, at align_corners), .size = sizeof(bool), .text = "0",\
	  .help = "enlarge logits so that the outermost places lie on the outermost pixels, not half a place inside" }
extern const struct nr_option nr_segment_options[];

/* What the decoder wants of the model: a final norm on tokens, not on their mean; and its own norm in the plan. */
int nr_segment_settle(struct nr_model_spec *, const struct nr_segmentation *, struct nr_arena *, struct nr_error *);
/* (B,h,w,classes) for pictures of any size that the model takes, in sides that are multiples of nr_segment_unit. */
nr_t *nr_segment_logits(struct nr_net *, const struct nr_model_spec *, const struct nr_segmentation *, const struct nr_inputs *);
int64_t nr_segment_unit(const struct nr_model_spec *);
bool nr_segment_entry(const char *name);    /* is it the decoder's? */

/* What a file has: its decoder's kind and classes; false: none. The level is not seen in it. */
struct nr_st_file;
bool nr_segment_guess(struct nr_segmentation *, const struct nr_st_file *);

#endif
