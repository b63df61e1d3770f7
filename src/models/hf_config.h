/* config.json, which Hugging Face's loaders want beside the weights of a text model. */
#ifndef NR_HF_CONFIG_H
#define NR_HF_CONFIG_H

#include "base/json.h"
#include "norma/model.h"

struct nr_hf_config {
	const char *type;                   /* "bert", "roberta" */
	const char *act;                    /* in our name; NULL: one that we have not */
	int64_t heads, pad;                 /* -1: not said */
	double eps;                         /* likewise */
};
/* The one beside these weights, texts in the arena; false: there is none that can be read. */
bool nr_hf_config_read(struct nr_hf_config *, const char *weights, struct nr_arena *);
/* Their name of an activation in ours ("gelu_new": "gelu_tanh"); NULL: we have none like it. */
const char *nr_hf_act(const char *name);
/* What from_pretrained wants to know of this model; heads as the store has them. The caller owns it; NULL when out of memory. */
json_t *nr_hf_config_json(const struct nr_model_spec *, const struct nr_store *, double eps);

#endif
