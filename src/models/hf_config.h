/* config.json, which Hugging Face's loaders want beside the weights of a model: what its readers and writers share. */
#ifndef NR_HF_CONFIG_H
#define NR_HF_CONFIG_H

#include "base/json.h"

/* NULL, -1: not there (no config, either), or beyond what such a number can be. */
const char *nr_hf_text(const json_t *config, const char *key);
double nr_hf_number(const json_t *config, const char *key);
/* Their name of an activation in ours ("gelu_new": "gelu_tanh"); NULL: we have none like it. */
const char *nr_hf_act(const char *name);
const char *nr_hf_act_name(const char *ours);           /* the other way */

#endif
