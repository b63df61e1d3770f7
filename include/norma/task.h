/* Objectives of training: their settings, and the names of what they measure. How one is written: src/train/task.h. */
#ifndef NORMA_TASK_H
#define NORMA_TASK_H

#include <stdbool.h>

#include "norma/option.h"

struct nr_task;
struct nr_task_metric {                     /* lists end with a NULL name */
	const char *name;                   /* in records with train_ or eval_ before it */
	const char *label;                  /* in the progress line; NULL: not shown there */
	bool percent;
};
enum { NR_TASK_METRICS = 8 };               /* at most, of a step and of an evaluation */

NR_API const struct nr_task *const *nr_tasks(void);                      /* ends with NULL */
NR_API const struct nr_task *nr_task_find(const char *name, struct nr_error *);  /* unknown ones come with the nearest */

/* ---- masked autoencoders: MAE and U-MAE ---- */

enum nr_mae_target { NR_UNIFORM_NONE, NR_UNIFORM_CLS, NR_UNIFORM_TOKENS, NR_UNIFORM_BOTH };
enum nr_mae_power { NR_UNIFORM_SQUARE, NR_UNIFORM_LINEAR };

struct nr_mae {
	int64_t decoder_dim, decoder_depth, decoder_heads;
	double decoder_mlp;
	char *decoder_act;
	int32_t pos;                        /* enum nr_position, of encoder and decoder */
	double mask_ratio;
	bool norm_pix;
	/* U-MAE: loss = mae + lambda * unif */
	int32_t uniform, power;             /* enum nr_mae_target, enum nr_mae_power */
	double lambda;
	bool self, unit, in_image, extra_norm;
};
extern NR_DATA const struct nr_option nr_mae_options[];

/* ---- texts: masked words (BERT) and contrasted sentences (SimCSE) ---- */

struct nr_text_task {
	char *tokenizer;                    /* "": beside the weights to begin with */
	int64_t max_length, window;         /* tokens of a text; batches whose samples are sorted by length before they are cut */
	double mask;                        /* share of tokens to predict, of masked words */
	bool nsp;                           /* mlm: also whether a sentence follows another */
	/* simcse */
	int32_t pooler, keep_layer;         /* enum nr_text_pooling; does the layer after it stay in evaluation: auto, yes, no */
	double temperature, hard_weight, mlm_weight;
	char *sts;                          /* folder of the STS sets, for STS-B's dev split; "": below the data root */
};
extern NR_DATA const struct nr_option nr_mlm_options[], nr_simcse_options[];

/* ---- graphs: values or classes of molecules ---- */

struct nr_graph_task {
	int32_t objective;                  /* auto, mae, mse, bce */
	int64_t max_nodes, bucket;          /* larger graphs are not trained on; batches whose graphs are sorted by size */
	bool test;                          /* evaluations measure the test split, too */
	int64_t flag;                       /* passes of a step with adversarial noise; 0: none */
	double flag_step;
};
extern NR_DATA const struct nr_option nr_graph_options[];

#endif
