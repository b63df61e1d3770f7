/* See hf_config.h. */
#include "models/hf_config.h"

#include <string.h>

static const char *const acts[][2] = {
	{ "gelu", "gelu" }, { "gelu_python", "gelu" }, { "gelu_new", "gelu_tanh" }, { "gelu_fast", "gelu_tanh" },
	{ "gelu_pytorch_tanh", "gelu_tanh" }, { "relu", "relu" }, { "silu", "silu" }, { "swish", "silu" }, { "tanh", "tanh" },
	{ "sigmoid", "sigmoid" }, { "quick_gelu", "quick_gelu" }, { "hardswish", "hard_swish" },
	{ "gelu_tanh", "gelu_tanh" }, { "hard_swish", "hard_swish" }, { NULL, NULL },         /* as timm has them */
};

const char *nr_hf_act(const char *name)
{
	for (int i = 0; acts[i][0]; i++)
		if (!strcmp(acts[i][0], name)) return acts[i][1];
	return NULL;
}

const char *nr_hf_act_name(const char *ours)
{
	if (!strcmp(ours, "gelu_tanh")) return "gelu_new";
	for (int i = 0; acts[i][0]; i++)
		if (!strcmp(acts[i][1], ours)) return acts[i][0];
	return ours;
}

const char *nr_hf_text(const json_t *config, const char *key) { return json_string_value(json_object_get(config, key)); }

double nr_hf_number(const json_t *config, const char *key)
{
	const json_t *v = json_object_get(config, key);
	const double x = json_is_number(v) ? json_number_value(v) : -1;
	return x >= 0 && x < 1e9 ? x : -1;
}
