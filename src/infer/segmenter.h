/* Models of segmentation at work, on pictures of any size: classes of all pixels, and how right they are. */
#ifndef NR_SEGMENTER_H
#define NR_SEGMENTER_H

#include "models/segment.h"
#include "norma/infer.h"

/* What the model sees of a picture: all of it at its own size, squares of the model's size one beside the other (which overlap; logits
 * are averaged), or all of it squeezed into one such square. */
enum { NR_SEGMENT_WHOLE, NR_SEGMENT_SLIDE, NR_SEGMENT_SQUARE };
extern const char *const nr_segment_views[];    /* "whole", "slide", "square"; ends with NULL */
struct nr_segment_view {
	int32_t view;
	int64_t side;                       /* shorter side that pictures are resized to before; 0: they stay as they are */
	int64_t stride;                     /* of slide, in pixels; 0: two thirds of the square */
};
#define NR_SEGMENT_VIEW_ROW(S, at, field, kind, bytes, text_, most, names, help_)                                            \
	{ .name = #field, .type = kind, .offset = offsetof(S, at field), .size = bytes, .text = text_, .min = 0, .max = most, \
	  .choices = names, .help = help_ }
/* Rows of an option table of S; `at` as in NR_SEGMENT_OPTIONS. */
#define NR_SEGMENT_VIEW_OPTIONS(S, at, usual)                                                                                \
	NR_SEGMENT_VIEW_ROW(S, at, view, NR_TENUM, sizeof(int32_t), usual, 0, nr_segment_views,                               \
		"what the model sees in evaluation: the whole picture, squares of its size that slide over it, or all in one square"), \
	NR_SEGMENT_VIEW_ROW(S, at, side, NR_TINT, sizeof(int64_t), "0", 16384, NULL,                                          \
		"shorter side that pictures are resized to first; 0: they stay as they are"),                                 \
	NR_SEGMENT_VIEW_ROW(S, at, stride, NR_TINT, sizeof(int64_t), "0", 16384, NULL,                                        \
		"slide: pixels from one square to the next; 0: two thirds of a square")
extern const struct nr_option nr_segment_view_options[];

struct nr_segmenter;
/* norms: the plan with the decoder's. colours: what the pixels are scaled by. The weights outlive it, and may change between runs. */
int nr_segmenter_open(struct nr_segmenter **, const struct nr_weights *, const struct nr_segmentation *, const char *norms,
	const struct nr_segment_view *, const struct nr_augment *colours, const struct nr_pixel_stats *, struct nr_error *);
void nr_segmenter_close(struct nr_segmenter *);
/* The classes of a picture's pixels. truth: the right ones, of the same size; then *loss gets the sum of their cross entropies over the
 * pixels that count, and *pixels how many do. NULL: neither. */
int nr_segmenter_run(struct nr_segmenter *, const struct nr_picture *, const struct nr_picture *truth, struct nr_picture *map, double *loss,
	int64_t *pixels, struct nr_error *);

struct nr_segment_score { double loss, miou, pixel_acc, mean_acc; int64_t samples; };   /* shares of 1 */
/* Called with so many samples, spread over all, as number i of them. */
struct nr_segment_each {
	int64_t most;
	int (*see)(void *out, int64_t i, const struct nr_picture *, const struct nr_picture *truth, const struct nr_picture *map,
		struct nr_error *);
	void *out;
};
/* All samples of the evaluation; e->confusion is written over, not NULL. each may be NULL. */
int nr_segmenter_score(struct nr_segmenter *, const struct nr_evaluation *, const struct nr_segment_each *, struct nr_segment_score *,
	struct nr_error *);

#endif
