/* Models of segmentation in `norma eval` and `norma predict`. */
#ifndef NR_CLI_SEGMENTS_H
#define NR_CLI_SEGMENTS_H

#include "infer/segmenter.h"
#include "model_flags.h"

/* What the model sees of a picture; by default as in the evaluation of the training. */
struct cli_view { int32_t view; int64_t side, stride; };
extern const char *const cli_views[];
#define CLI_VIEW_ROW(S, f, field, kind, bytes, text_, low, most, names, help_)                                           \
	{ .name = #field, .type = kind, .offset = offsetof(S, f.field), .size = bytes, .text = text_, .min = low, .max = most, \
	  .choices = names, .help = help_ }
#define CLI_VIEW_OPTIONS(S, f)                                                                                           \
	CLI_VIEW_ROW(S, f, view, NR_TENUM, sizeof(int32_t), "auto", 0, 0, cli_views,                                      \
		"segmentation: what the model sees, the whole picture, squares that slide over it, or all in one square"), \
	CLI_VIEW_ROW(S, f, side, NR_TINT, sizeof(int64_t), "-1", -1, 16384, NULL,                                         \
		"segmentation: shorter side that pictures are resized to; 0: as they are, -1: as in training"),            \
	CLI_VIEW_ROW(S, f, stride, NR_TINT, sizeof(int64_t), "-1", -1, 16384, NULL,                                       \
		"segmentation, slide: pixels from one square to the next; 0: two thirds of it, -1: as in training")
bool cli_view_given(const struct cli_view *);

int cli_eval_segments(struct cli *, struct cli_opened *, const struct cli_view *, bool confusion, bool json, const char *path);

struct predict_segments { const struct cli_view *view; const char *out; char *const *name; int64_t names; int64_t top; bool json; };
int cli_predict_segments(struct cli *, const struct predict_segments *, struct nr_weights *, const struct nr_augment *, char **file,
	int64_t count);

#endif
