/* What the commands that run a trained model share: which file, which model, which data. */
#ifndef NR_MODEL_FLAGS_H
#define NR_MODEL_FLAGS_H

#include "base/json.h"
#include "base/progress.h"
#include "cli.h"
#include "infer/features.h"

struct cli_model {
	char *model, *norm, *data, *data_root, *split, *resample;
	char *names;                        /* a file with the names of the classes; NULL or "": those of the checkpoint */
	int64_t batch, workers, limit;
	double crop_share;
	bool json;
	bool detector;                      /* no flag: neck and heads of a detector are wanted, too */
	bool split_alone;                   /* pictures in one split alone are for evaluation, too */
};
#define CLI_MODEL_OPTIONS(S, f)                                                                                                        \
	{ .name = "model", .type = NR_TSTRING, .offset = offsetof(S, f.model), .size = sizeof(char *), .text = "", .metavar = "MODEL",   \
	  .help = "model, if the file does not name it" },                                                                             \
	{ .name = "norm", .type = NR_TSTRING, .offset = offsetof(S, f.norm), .size = sizeof(char *), .text = "", .metavar = "PLAN",      \
	  .help = "norm plan, if the file does not name it" },                                                                         \
	{ .name = "data", .type = NR_TSTRING, .offset = offsetof(S, f.data), .size = sizeof(char *), .text = "", .metavar = "NAME",      \
	  .help = "data set; default: the one the model was trained on" },                                                             \
	{ .name = "data_root", .type = NR_TSTRING, .offset = offsetof(S, f.data_root), .size = sizeof(char *), .text = "",              \
	  .metavar = "DIR", .help = "folder of the data sets" },                                                                       \
	{ .name = "split", .type = NR_TSTRING, .offset = offsetof(S, f.split), .size = sizeof(char *), .text = "auto",                  \
	  .metavar = "SPLIT", .help = "split to evaluate on; auto: test if there is one, otherwise val" },                             \
	{ .name = "resample", .type = NR_TSTRING, .offset = offsetof(S, f.resample), .size = sizeof(char *), .text = "timm",            \
	  .metavar = "KIND", .help = "how to resize a position table of another size: timm, mae, dino, bigvision" },                    \
	{ .name = "batch", .type = NR_TINT, .offset = offsetof(S, f.batch), .size = sizeof(int64_t), .text = "128", .min = 1,           \
	  .max = 1e6, .help = "samples at once" },                                                                                     \
	{ .name = "workers", .type = NR_TINT, .offset = offsetof(S, f.workers), .size = sizeof(int64_t), .text = "1", .min = 1,         \
	  .max = 64, .help = "threads that prepare batches" },                                                                         \
	{ .name = "limit", .type = NR_TINT, .offset = offsetof(S, f.limit), .size = sizeof(int64_t), .text = "0", .min = 0,             \
	  .max = 1e15, .help = "use only the first N samples; 0: all" },                                                               \
	{ .name = "crop_share", .type = NR_TFLOAT, .offset = offsetof(S, f.crop_share), .size = sizeof(double), .text = "0",            \
	  .min = 0, .max = 1, .help = "share of the picture that the centre crop keeps; 0: as in training" },                          \
	{ .name = "json", .type = NR_TBOOL, .offset = offsetof(S, f.json), .size = sizeof(bool), .text = "0",                          \
	  .help = "print one line of JSON" }

struct cli_opened {
	struct nr_weights *w;
	struct nr_source *source;
	struct nr_evaluation e;             /* of the chosen split */
	struct nr_progress bar;
};
/* The checkpoint and its data; closed also after a failure. */
int cli_model_open(struct cli_opened *, struct cli *, const struct cli_model *, const char *path);
void cli_model_close(struct cli_opened *);
/* A command of one checkpoint: opens it and its data, and calls measure with the command's settings, which begin with m. */
int cli_model_run(struct cli *, const struct cli_model *m, const struct nr_list *args,
	int (*measure)(struct cli *, const struct cli_model *m, struct cli_opened *, const char *path));
/* Pooled features of the training split (its first `limit` samples; 0: all) and of the chosen one. */
int cli_model_features(struct cli *, const struct cli_model *, struct cli_opened *, int64_t limit, struct nr_feature_set *train,
	struct nr_feature_set *test);
/* Measures the statistics of batchwise norms again, on so many batches of training pictures. */
int cli_model_recompute(struct cli *, struct cli_opened *, int64_t batch, int64_t batches);
/* The same evaluation for another split, with a bar of its own. */
struct nr_evaluation cli_model_split(struct cli_opened *, enum nr_split, const char *label);

#endif
