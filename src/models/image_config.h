/* config.json of timm and Hugging Face beside models of pictures: what the families share in reading and writing it. */
#ifndef NR_IMAGE_CONFIG_H
#define NR_IMAGE_CONFIG_H

#include "models/guess.h"
#include "models/hf_config.h"

/* Adds the names of the classes, the channels and the size of the picture, as Hugging Face has them; returns j. */
json_t *nr_config_labels(json_t *j, const struct nr_saved *, int64_t classes);
/* Adds "64-128-320" as a list; pairs of a key and a text, up to NULL. */
void nr_config_lists(json_t *j, const char *const *pair);
/* timm's: an architecture that it knows with arguments that make it this one, and the input. Takes args. */
json_t *nr_timm_config(const struct nr_saved *, const char *architecture, int64_t features, const char *pool, json_t *args);
const char *nr_hf_image_act(const char *ours);                 /* "gelu_tanh": "gelu_pytorch_tanh" */

const json_t *nr_config_of(const struct nr_look *);            /* the config, or that of the image tower in it; NULL: there is none */
/* For measure: a setting of the config, under Hugging Face's name or timm's (in model_args). False: it does not say. */
bool nr_config_saw_list(const struct nr_look *, struct nr_sighting *, const char *option, const char *hf, const char *timm);
/* Notes `norms` with Hugging Face's eps, given or usual under these names, where it is not the model's own. */
bool nr_config_saw_eps(const struct nr_look *, struct nr_sighting *, const char *norms);
bool nr_config_saw_number(const struct nr_look *, struct nr_sighting *, const char *option, const char *hf, const char *timm);
void nr_config_saw_image(const struct nr_look *, struct nr_sighting *);        /* the size of the picture */

/* Of open_clip: heads by the width of the tower and of a head. false: the file says nothing of it. */
bool nr_config_saw_clip_heads(const struct nr_look *, struct nr_sighting *);
/* The activation by Hugging Face's name or timm's; NULL: it is not said. */
const char *nr_config_act(const struct nr_look *);
void nr_config_saw_act(const struct nr_look *, struct nr_sighting *);
/* The side of the pictures, by a table in the file that is made for a grid. A config.json that says they are not square is a misfit. */
void nr_config_saw_side(const struct nr_look *, struct nr_sighting *, int64_t side);

#endif
