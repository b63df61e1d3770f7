/* The Vision Transformer and its descendants: one set of options and one graph, which the families vit, beit, eva and vit_relpos share.
 * They differ in their public names, their presets and what recognises them in a file. */
#ifndef NR_VIT_H
#define NR_VIT_H

#include <stdbool.h>

#include "models/guess.h"
#include "norma/model.h"

enum nr_vit_pool { NR_VIT_CLASS, NR_VIT_AVG, NR_VIT_MAP, NR_VIT_CLASS_AVG };
enum nr_vit_relative { NR_VIT_RELATIVE_NONE, NR_VIT_RELATIVE_TABLE, NR_VIT_RELATIVE_MLP };

struct nr_vit {
	int64_t image, channels, patch, dim, depth, heads, classes, registers, class_at;
	double mlp, drop_path, dropout, attention_dropout;
	int32_t pool, pos;
	bool class_token, qkv_bias, fc_norm, pre_logits;
	int32_t position_bias;              /* enum nr_position_bias */
	char *act;
	bool class_pos, register_pos, distilled, key_bias, split_qkv, patch_bias, head_bias, parallel, rel_pos_shared, rel_pos_decay;
	int32_t glu, rope, rel_pos;         /* enum nr_glu, nr_rope_kind, nr_vit_relative */
	int64_t rope_grid, rope_grid_w, rel_pos_dim;
	double rope_theta;
};

extern const struct nr_option nr_vit_options[];
extern const char *const nr_vit_pools[], *const nr_vit_ropes[], *const nr_vit_relatives[];        /* names of the enums; end with NULL */

nr_t *nr_vit_embed(struct nr_net *, const struct nr_inputs *, const void *conf);
nr_t *nr_vit_encode(struct nr_net *, const struct nr_inputs *, nr_t *tokens, const void *conf);
nr_t *nr_vit_pool(struct nr_net *, nr_t *tokens, const void *conf);
nr_t *nr_vit_head(struct nr_net *, nr_t *pooled, const void *conf);

/* What all families share in a file. */
extern const char *const nr_vit_signs[];
bool nr_vit_measure(const struct nr_look *, struct nr_sighting *);
json_t *nr_vit_config(const struct nr_saved *);
#define NR_VIT_DOUBT "the number of heads is unknown: a width of 64 is assumed"
#define NR_VIT_NORMS { .norm = "layer", .placement = "pre", .sites = "pool.in", .eps = 1e-6 }
#define NR_VIT_GRAPH .reads = NR_PICTURES, .conf_size = sizeof(struct nr_vit), .options = nr_vit_options, .embed = nr_vit_embed, \
	.encode = nr_vit_encode, .pool = nr_vit_pool, .head = nr_vit_head

#endif
