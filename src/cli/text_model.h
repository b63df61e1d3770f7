/* What the commands that embed texts share: the model, its tokenizer, how a sentence is pooled. */
#ifndef NR_CLI_TEXT_MODEL_H
#define NR_CLI_TEXT_MODEL_H

#include "analysis/embedder.h"
#include "cli.h"
#include "norma/infer.h"

struct cli_text { char *model, *norm, *tokenizer; int32_t pooler; int64_t max_length; };
#define CLI_TEXT_MODEL_OPTIONS(S, f)                                                                                                \
	{ .name = "model", .type = NR_TSTRING, .offset = offsetof(S, f.model), .size = sizeof(char *), .text = "", .metavar = "MODEL", \
	  .help = "model, if the file does not name it" },                                                                          \
	{ .name = "norm", .type = NR_TSTRING, .offset = offsetof(S, f.norm), .size = sizeof(char *), .text = "", .metavar = "PLAN", \
	  .help = "norm plan, if the file does not name it" },                                                                      \
	{ .name = "tokenizer", .type = NR_TSTRING, .offset = offsetof(S, f.tokenizer), .size = sizeof(char *), .text = "",          \
	  .metavar = "PATH", .help = "vocab.txt, tokenizer.json, or a folder with one; default: beside the weights" },              \
	{ .name = "pooler", .type = NR_TENUM, .offset = offsetof(S, f.pooler), .size = sizeof(int32_t), .text = "auto",             \
	  .choices = cli_text_poolers, .help = "how to pool tokens to a sentence; auto: as it was trained, otherwise avg" },        \
	{ .name = "max_length", .type = NR_TINT, .offset = offsetof(S, f.max_length), .size = sizeof(int64_t), .text = "0", .min = 0, \
	  .max = 100000, .help = "maximum number of tokens per text; 0: the model's positions" }
extern const char *const cli_text_poolers[];            /* auto, then nr_text_poolings */

struct cli_embedder {
	struct nr_weights *w;
	struct nr_tokenizer *tokenizer;
	struct nr_text_runner *e;
	enum nr_text_pooling pooling;
	bool layer;
};
/* path: weights, or a folder with model.safetensors. Close it also after a failure. */
int cli_embedder_open(struct cli *, struct cli_embedder *, const struct cli_text *, const char *path);
void cli_embedder_close(struct cli_embedder *);
/* Texts to embeddings with a bar. context is a struct cli_embedding. */
struct cli_embedding { struct cli_embedder *of; const char *what; int64_t texts; double seconds; };
int cli_embed_texts(void *context, const char *const *text, int64_t n, real *out, struct nr_error *);

/* A command that judges the embeddings of one model on tasks of a data root. */
struct cli_judge { struct cli_text t; char *data_root; struct nr_list task; };
#define CLI_JUDGE_OPTIONS(S, f, folder, names)                                                                                      \
	CLI_TEXT_MODEL_OPTIONS(S, f.t),                                                                                             \
	{ .name = "data_root", .type = NR_TSTRING, .offset = offsetof(S, f.data_root), .size = sizeof(char *), .text = "",          \
	  .metavar = "DIR", .help = "folder of the data sets, with " folder " in it; default $NORMA_DATA, else ~/.cache/norma/data" }, \
	{ .name = "task", .type = NR_TLIST, .offset = offsetof(S, f.task), .size = sizeof(struct nr_list), .text = "",              \
	  .help = "only these of " names "; may be repeated" }
struct cli_judged {
	const char *path, *root;
	struct cli_embedder model;
	struct cli_embedding how;           /* what: the task at hand; texts and seconds of all so far */
	struct nr_embedder embedder;
};
struct cli_judging {
	const char *command;
	int tasks;
	const char *(*name)(int task);
	bool (*known)(const char *name, struct nr_error *);     /* false: an error with the nearest name */
	/* Called for each task that is wanted, in their order; then show, once. of: the command's own. */
	int (*score)(void *of, int task, const struct cli_judged *, struct nr_error *);
	int (*show)(struct cli *, const void *of, const struct cli_judged *);
};
int cli_judge(struct cli *, const struct cli_judging *, const struct cli_judge *, void *of, const struct nr_list *args);

#endif
