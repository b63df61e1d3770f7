/* Does a config.json describe the tensors beside it, and is all of it understood? It decides what tensors do not show (heads, eps, the
 * activation): one of another model, or with a setting that nothing here reads, would give wrong numbers without a word. */
#include <string.h>

#include "models/image_config.h"
#include "models/stages.h"

/* Sizes that tensors show, and what they are called in a config of Hugging Face and among the arguments of timm. */
static const struct size { const char *option, *hf, *timm; } sizes[] = {
	{ "dim", "embed_dim", "embed_dim" }, { "dim", "hidden_size", NULL }, { "depth", "num_hidden_layers", "depth" },
	{ "patch", "patch_size", "patch_size" }, { "dims", "hidden_sizes", "embed_dims" }, { "dims", NULL, "embed_dim" },
	{ "depths", "depths", "depths" }, { "depths", NULL, "depth" }, { "heads", NULL, "num_heads" }, { NULL, NULL, NULL },
};

/* Arguments of timm that change what is in the file, */
static const char *const shown[] = {
	"act_layer", "patch_size", "embed_dim", "embed_dims", "depth", "depths", "num_heads", "mlp_ratio", "mlp_ratios",
	"qkv_bias", "class_token", "reg_tokens", "num_reg_tokens", "no_embed_class", "init_values", "pre_norm",
	"fc_norm", "use_fc_norm", "qk_norm", "distilled", "window_size", "sr_ratios", "linear", "key_dim", "attn_ratio", "depth_token_only",
	"mlp_ratio_token_only", "swiglu_mlp", "scale_mlp", "scale_attn_inner", "qkv_fused", "use_abs_pos_emb", "use_rel_pos_bias",
	"use_shared_rel_pos_bias", "rel_pos_type", "rel_pos_dim", "shared_rel_pos", NULL,
};
/* that are read, or that only training looks at. */
static const char *const others[] = {
	"num_classes", "in_chans", "img_size", "global_pool", "drop_rate", "pos_drop_rate", "patch_drop_rate", "proj_drop_rate",
	"attn_drop_rate", "drop_path_rate", "weight_init", "head_init_scale", "dynamic_img_size", "dynamic_img_pad", NULL,
};
static const char *const pools[] = { "token", "avg", "map", "", NULL };

static json_t *arguments_of(const struct nr_look *l) { return json_object_get(l->config, "model_args"); }

static bool listed(const char *const *all, const char *name)
{
	while (*all && strcmp(*all, name) != 0) all++;
	return *all != NULL;
}

/* "3", or "2-2-6-2" of a list, whose equal numbers may stand for one: 16 and [16, 16]. NULL: these are no numbers. */
static const char *text_of(const json_t *v, bool one, struct nr_arena *arena)
{
	double value[NR_MAXLEVELS];
	const size_t n = json_is_array(v) ? json_array_size(v) : 1;
	bool same = true;
	if (n < 1 || n > NR_MAXLEVELS) return NULL;
	for (size_t i = 0; i < n; i++) {
		const json_t *item = json_is_array(v) ? json_array_get(v, i) : v;
		if (!json_is_number(item)) return NULL;
		value[i] = json_number_value(item);
		same &= value[i] == value[0];
	}
	return nr_stages_text(value, one && same ? 1 : (int64_t)n, arena);
}

static const char *other_size(const struct nr_look *l, const struct nr_sighting *seen)
{
	const json_t *hf = nr_config_of(l), *timm = arguments_of(l);
	for (const struct size *z = sizes; z->option; z++) {
		char have[128];
		const char *name = timm ? z->timm : z->hf;
		const json_t *v = name ? json_object_get(timm ? timm : hf, name) : NULL;
		if (!v || !nr_seen_text(seen, z->option, have, sizeof have)) continue;
		if (!strcmp(name, "hidden_size") && json_object_get(hf, "embed_dim")) continue;        /* Swin's: of the last stage */
		const char *said = text_of(v, !strchr(have, '-'), l->arena);
		if (said && strcmp(said, have) != 0)
			return nr_arena_printf(l->arena, "its config.json has %s %s, its tensors have %s", name, said, have);
	}
	return NULL;
}

static const char *strange_argument(const struct nr_look *l)
{
	const char *key;
	json_t *value;
	json_object_foreach(arguments_of(l), key, value)
		if (!listed(shown, key) && !listed(others, key))
			return nr_arena_printf(l->arena, "its config.json sets '%.100s', which is not understood", key);
	return NULL;
}

bool nr_config_overrides(const struct nr_look *l, const char *option)
{
	for (const char *const *s = shown; *s && !option; s++)
		if (json_object_get(arguments_of(l), *s)) return true;
	for (const struct size *z = sizes; z->option && option; z++)
		if (!strcmp(z->option, option) && z->timm && json_object_get(arguments_of(l), z->timm)) return true;
	return false;
}

const char *nr_config_misfit(const struct nr_look *l, const struct nr_sighting *seen)
{
	const char *type = nr_hf_text(l->config, "model_type"), *act = nr_config_act(l);
	if (type && l->model->file->types && !listed(l->model->file->types, type))
		return nr_arena_printf(l->arena, "its config.json is that of another kind of model, '%.100s'", type);
	if (act && !nr_hf_act(act))
		return nr_arena_printf(l->arena, "its config.json wants the activation '%.100s', which is not known", act);
	const char *pool = json_string_value(json_object_get(l->config, "global_pool")), *why = strange_argument(l);
	if (pool && !listed(pools, pool))
		return nr_arena_printf(l->arena, "its config.json pools tokens by '%.100s', which is not known", pool);
	return why ? why : other_size(l, seen);
}
