/* norma-golden-model-1: what the families share. Weights come in by their public names; gradients, buffers and the weights
 * after some steps of AdamW are compared by them. */
#ifndef GOLDEN_MODEL_H
#define GOLDEN_MODEL_H

#include "golden/check.h"
#include "norma/model.h"
#include "norma/optim.h"

struct golden_model {
	struct nr_store *store;
	struct nr_net *net;
	struct nr_plan *plan;
	struct nr_model_spec model;
	const struct nr_naming *naming;
	nr_t *loss;
	const char *prefix;                 /* of the weights: "param", unless set otherwise */
};

/* Settings of the file by their names there, tried in order up to NULL; flags are 0 and 1. */
double golden_config(struct golden_case *, const char *name, const char *other, double otherwise);
const char *golden_config_text(struct golden_case *, const char *name, const char *other, const char *otherwise);
/* "act" or "hidden_act" as an activation of ours. */
const char *golden_config_act(struct golden_case *);

/* SepNorm of the settings cls_norm and tok_norm. */
const char *golden_sep_text(struct golden_case *);

/* The model of that text, its names, a store and a net with a norm plan. Then the handler records. */
void golden_model_open(struct golden_case *, struct golden_model *, const char *text, const char *naming, const char *norms,
	double eps);
/* Plans for the loss and loads the weights: NAME_resampled of the inputs before PREFIX.NAME; buffers from buffer.NAME.
 * `before` sees the initial values, or is NULL. */
void golden_model_load(struct golden_case *, struct golden_model *, nr_t *loss,
	void (*before)(struct golden_case *, const struct golden_model *));
/* Copies a tensor of the file into an input. */
void golden_model_put(struct golden_case *, struct golden_model *, const nr_t *input, const char *name);
/* Forward and backward, with the statistics that the file's mode wants. */
void golden_model_run(struct golden_case *, struct golden_model *, int64_t step);
/* A tap or other kept tensor against out.NAME; NULL: nothing. */
void golden_model_out(struct golden_case *, struct golden_model *, const nr_t *, const char *kind, const char *name);
/* Loss, hidden taps blockN, gradients and buffers after one pass. */
void golden_model_check(struct golden_case *, struct golden_model *);
/* Parameters against PREFIX.NAME. */
void golden_model_values(struct golden_case *, struct golden_model *, const char *prefix, const char *kind);
/* The parameters that train, in the store's order and with moments of zero; how many. `optim` lists those without decay. */
int64_t golden_model_segments(struct golden_case *, struct golden_model *, const json_t *optim, struct nr_segment **);
/* The steps that the metadata's `optim` asks for, from the file's weights; nothing without it. */
void golden_model_train(struct golden_case *, struct golden_model *);
void golden_model_close(struct golden_model *);

/* A file whose task is segmentation, with a backbone of that text. */
int golden_segmentation(struct golden_case *, const char *text, const char *norms);

#endif
