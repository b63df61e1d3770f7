/* Using a trained model: weights from one of our files or a public one, and runners for pictures, texts and molecules.
 *
 * Example:
 *   struct nr_weights *weights;
 *   struct nr_runner runner = { 0 };
 *   struct nr_answer best;
 *   if (!nr_weights_open(&weights, "model.safetensors", NULL, &err) && !nr_runner_open(&runner, weights, 1, &err) &&
 *           !nr_runner_classify(&runner, "cat.jpg", &best, 1, &err))
 *           printf("class %lld, %.1f %%\n", (long long)best.number, 100 * best.probability);
 *   nr_runner_close(&runner);
 *   nr_weights_close(weights);
 */
#ifndef NORMA_INFER_H
#define NORMA_INFER_H

#include "norma/data.h"
#include "norma/model.h"
#include "norma/picture.h"

/* ---- trained models --------------------------------------------------------------------------------------------------- */

struct nr_detector;
struct nr_dino;
struct nr_segmentation;
struct nr_segment_view;
struct nr_weights {                         /* a model with its values: from one of our files, or a public one */
	struct nr_arena *arena;
	struct nr_store *store;
	struct nr_model_spec model;
	const char *norms;                  /* norm plan */
	const char *data;                   /* what it was trained on; NULL: not known */
	const char *pooler;                 /* of sentences, for texts: "avg", "cls+layer" (SimCSE's after it); NULL: not known */
	const char *objective;              /* of graphs: "mae", "mse" or "bce"; of texts: "classes" or "value"; NULL: not known */
	int64_t targets;                    /* how many of the next two */
	const double *target_mean, *target_std;     /* (targets) of graphs: output * std + mean is in the targets' units; NULL: it is */
	const char *naming;                 /* of the file */
	char **class_name;                  /* names of the outputs, then NULL; NULL: not known */
	double mean[3], std[3];             /* of its input; std 0: not known */
	bool normalize;                     /* by mean and std; else to [-1,1] */
	struct nr_augment view;             /* how the evaluation of the training made a picture into an input, size and channels apart */
	int64_t step;
	int64_t taken, kept, ignored;       /* entries filled; entries that the file did not have; tensors that nobody asked for */
	const struct nr_mae *mae;           /* the store has the decoder of a masked autoencoder too; NULL: the model alone */
	const struct nr_detector *detector; /* the store has neck and heads of a detector; or NULL */
	const char *whole_norms;            /* then: the plan of both */
	const struct nr_dino *dino;         /* the store has DINO's head too; or NULL */
	const struct nr_segmentation *segment;      /* the store has a decoder for segmentation too, plan: whole_norms; or NULL. */
	const struct nr_segment_view *segment_view; /* what the model saw of pictures in the evaluation of the training */
	const uint8_t (*colour)[3];         /* of the classes; NULL: not known */
};
/* All zero is what most want. NULL and "" are the same. */
struct nr_weights_how {
	const char *model, *norms;          /* NULL: what the file says, or what its tensors look like */
	const char *norms_flag;             /* with which a user names `norms`, for messages; NULL: --norm */
	const char *naming;                 /* NULL or "auto": the one that most names of the file fit */
	const char *resample;               /* of a position table of another size: timm, mae, dino, bigvision; NULL: refuse it */
	bool partial;                       /* entries may be missing, e.g. the head for another number of classes */
	bool decoder;                       /* keep the decoder of a masked autoencoder, or DINO's head, if the file has one */
	bool detector;                      /* keep neck and heads of a detector, if the file has them */
	bool texts;                         /* of a file with a tower for pictures and one for texts, such as CLIP's: the latter */
	void (*tell)(void *context, enum nr_import_fate, const char *name);     /* of each entry and tensor; or NULL */
	void *context;
};
/* path: a file, or a folder with a model.safetensors. how NULL: all zero. */
NR_API int nr_weights_open(struct nr_weights **, const char *path, const struct nr_weights_how *how, struct nr_error *);
NR_API void nr_weights_close(struct nr_weights *);            /* NULL is fine */
NR_API bool nr_weights_has_head(const struct nr_weights *);   /* one that classifies */
/* Records what the weights have, one sample, under a norm plan: entries of the net's store get the names. */
NR_API int nr_weights_record(struct nr_net *, const struct nr_weights *, const char *norms, struct nr_error *);

/* ---- pictures ----------------------------------------------------------------------------------------------------------- */

enum nr_stats { NR_STATS_RUNNING, NR_STATS_BATCH };
struct nr_runner_eye;
/* A model of pictures, ready to run on batches of one size. The weights outlive it. */
struct nr_runner {
	struct nr_net *net;
	struct nr_plan *plan;
	nr_t *image, *logits, *pooled, *tokens;
	int64_t batch, channels, size, classes, width;
	char **class_name;                  /* of the weights */
	const char *model;                  /* what it is, for messages */
	struct nr_augment view;             /* how a picture becomes input: as in the evaluation of the training. It may be changed */
	struct nr_runner_eye *eye;
};
NR_API int nr_runner_open(struct nr_runner *, const struct nr_weights *, int64_t batch, struct nr_error *);
NR_API void nr_runner_close(struct nr_runner *);              /* all zero is fine */
/* Puts a picture, or a file of one, at a place of the batch: resized, cropped and scaled as `view` says. */
NR_API int nr_runner_picture(struct nr_runner *, int64_t place, const struct nr_picture *, struct nr_error *);
NR_API int nr_runner_file(struct nr_runner *, int64_t place, const char *path, struct nr_error *);
/* Runs on image (batch,channels,size,size); NULL: on the pictures that were put there. Results are read with nr_plan_data. */
NR_API void nr_runner_run(struct nr_runner *, const float *image, enum nr_stats);

struct nr_answer { int64_t number; double probability; const char *name; };     /* of a class; name NULL: it has none */
/* The n most probable classes at a place of the batch, after a run; numbers are -1 beyond the last class. */
NR_API int nr_runner_best(const struct nr_runner *, int64_t place, struct nr_answer *best, int64_t n, struct nr_error *);
/* The same of one file: puts it at place 0 and runs. */
NR_API int nr_runner_classify(struct nr_runner *, const char *path, struct nr_answer *best, int64_t n, struct nr_error *);

/* Samples for a model to run over: the whole of a split, or some. */
struct nr_comm;
struct nr_evaluation {
	const struct nr_source *source;
	enum nr_split split;
	const int32_t *index;               /* samples of the split, or NULL: all */
	int64_t count;                      /* how many; 0: all */
	struct nr_augment augment;          /* without chance */
	enum nr_stats stats;
	int workers;
	int64_t *confusion;                 /* (classes,classes) added to, row = truth; or NULL */
	int (*watch)(void *context, int64_t done, int64_t of);  /* non-zero stops; or NULL */
	void *context;
	struct nr_comm *comm;               /* ranks that run some of the batches each, and all see the outputs of all; or NULL */
};
/* Runs the model over the samples; each gets a batch after it, whose first sample has this number. Returns 1 when watch stopped it.
 * With batch statistics a last batch that is not full is left out. On several ranks each gets all batches, but of the outputs only logits,
 * or pooled where there are none. */
typedef void nr_each_batch(void *out, const struct nr_runner *, const struct nr_batch *, int64_t first);
NR_API int nr_run_over(struct nr_runner *, const struct nr_evaluation *, nr_each_batch *each, void *out, struct nr_error *);

/* ---- sentence embeddings ------------------------------------------------------------------------------------------------
 *
 * Example:
 *   const char *const texts[] = { "a cat", "the dog sees a cat" };
 *   struct nr_weights *weights = NULL;
 *   struct nr_tokenizer *tokenizer = NULL;
 *   struct nr_text_runner *runner = NULL;
 *   if (!nr_weights_open(&weights, "text/", NULL, &err) && !nr_tokenizer_open(&tokenizer, "text/", &err) &&
 *           !nr_text_runner_open(&runner, weights, tokenizer, NULL, &err)) {
 *           nr_real *out = calloc((size_t)(2 * nr_text_runner_width(runner)), sizeof *out);
 *           nr_text_runner_run(runner, texts, 2, out, &err);
 *           free(out);
 *   }
 *   nr_text_runner_close(runner);
 *   nr_tokenizer_close(tokenizer);
 *   nr_weights_close(weights);
 *
 * Texts are sorted by length and embedded in batches of one length each, those with the same ids once; an embedding does not
 * depend on the texts beside it, nor on the number of threads. */
struct nr_tokenizer;
struct nr_text_runner;
struct nr_text_runner_how {
	enum nr_text_pooling pooling;
	bool layer;                         /* SimCSE's tanh layer after it */
	bool normalize;                     /* to length 1, as the module Normalize of sentence-transformers does */
	bool logits;                        /* instead of an embedding what the classification head says; a tab in a text parts a pair */
	int64_t max_length;                 /* with special tokens; 0: as many as the model has positions */
	int64_t tokens;                     /* of a batch, about; 0: 1024, whose activations stay in the cache */
	struct nr_comm *comm;               /* ranks that run some of the batches each, and all get all; or NULL */
};
/* An error if the tokenizer has more tokens than the model. */
NR_API int nr_text_fits(const struct nr_model_spec *, const struct nr_tokenizer *, struct nr_error *);
/* Sets pooling and layer: pooler is one of nr_text_poolings (cls: with the layer), or NULL: as the weights were trained, if they or a
 * modules.json of sentence-transformers beside them say it, else the mean of the tokens. */
NR_API int nr_text_runner_pool_by(struct nr_text_runner_how *, const struct nr_weights *, const char *pooler, struct nr_error *);
/* how NULL: as the weights were trained. Weights and tokenizer are the caller's and outlive it; values of the store may change between
 * runs. */
NR_API int nr_text_runner_open(struct nr_text_runner **, const struct nr_weights *, const struct nr_tokenizer *,
	const struct nr_text_runner_how *how, struct nr_error *);
NR_API void nr_text_runner_close(struct nr_text_runner *);    /* NULL is fine */
NR_API int64_t nr_text_runner_width(const struct nr_text_runner *);
/* out (n,width) */
NR_API int nr_text_runner_run(struct nr_text_runner *, const char *const *text, int64_t n, nr_real *out, struct nr_error *);
/* Calls watch after every batch of a run, or NULL: never. When it returns non-zero the rest is left out and the run returns 1. */
NR_API void nr_text_runner_watch(struct nr_text_runner *, int (*watch)(void *context, int64_t done, int64_t of), void *context);
/* How many different texts the last run had. */
NR_API int64_t nr_text_runner_different(const struct nr_text_runner *);
/* Floating-point operations of the last run, padding included. */
NR_API double nr_text_runner_flops(const struct nr_text_runner *);

/* ---- molecules ----------------------------------------------------------------------------------------------------------
 *
 * Example:
 *   const char *const smiles[] = { "CCO ethanol", "c1ccccc1" };
 *   struct nr_weights *weights = NULL;
 *   struct nr_molecule_runner *runner = NULL;
 *   double out[2];
 *   if (!nr_weights_open(&weights, "molecules.safetensors", NULL, &err) && !nr_molecule_runner_open(&runner, weights, NULL, &err) &&
 *           nr_molecule_runner_outputs(runner) == 1 && !nr_molecule_runner_run(runner, smiles, 2, out, &err))
 *           for (int i = 0; i < 2; i++) printf("%s: %g\n", smiles[i], out[i]);
 *   nr_molecule_runner_close(runner);
 *   nr_weights_close(weights);
 *
 * Molecules of like size go together, so many at once are faster than one by one; what is said of one depends on it alone. */
struct nr_molecule_runner;
/* Of yes-or-no outputs the probability is told, not the score. AUTO: as the training says; then weights that do not say are an error. */
enum nr_molecule_outputs { NR_MOLECULE_AUTO, NR_MOLECULE_VALUE, NR_MOLECULE_PROBABILITY };
struct nr_molecule_how {
	enum nr_molecule_outputs outputs;
	/* Called for each molecule that cannot be read or is too large for the model; its outputs are NaN. NULL: the run fails then. */
	void (*bad)(void *context, int64_t i, const struct nr_error *why);
	void *context;
};
/* how NULL: all zero. The weights outlive it. */
NR_API int nr_molecule_runner_open(struct nr_molecule_runner **, const struct nr_weights *, const struct nr_molecule_how *how,
	struct nr_error *);
NR_API void nr_molecule_runner_close(struct nr_molecule_runner *);    /* NULL is fine */
NR_API int64_t nr_molecule_runner_outputs(const struct nr_molecule_runner *);         /* tasks of the model */
NR_API bool nr_molecule_runner_probability(const struct nr_molecule_runner *);        /* its outputs are those of yes */
/* out (n,outputs), in the units of the training's targets. Texts begin with SMILES; what follows a blank is a name. */
NR_API int nr_molecule_runner_run(struct nr_molecule_runner *, const char *const *smiles, int64_t n, double *out, struct nr_error *);

#endif
