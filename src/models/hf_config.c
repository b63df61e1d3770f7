/* See hf_config.h. */
#include "models/hf_config.h"

#include <string.h>

#include "base/mem.h"
#include "models/bert.h"

static const char *const acts[][2] = {
	{ "gelu", "gelu" }, { "gelu_python", "gelu" }, { "gelu_new", "gelu_tanh" }, { "gelu_fast", "gelu_tanh" },
	{ "gelu_pytorch_tanh", "gelu_tanh" }, { "relu", "relu" }, { "silu", "silu" }, { "swish", "silu" }, { "tanh", "tanh" },
	{ "sigmoid", "sigmoid" }, { "hardswish", "hard_swish" }, { NULL, NULL },
};

const char *nr_hf_act(const char *name)
{
	for (int i = 0; acts[i][0]; i++)
		if (!strcmp(acts[i][0], name)) return acts[i][1];
	return NULL;
}

static const char *their_act(const char *ours)
{
	if (!strcmp(ours, "gelu_tanh")) return "gelu_new";
	for (int i = 0; acts[i][0]; i++)
		if (!strcmp(acts[i][1], ours)) return acts[i][0];
	return ours;
}

/* -1: not there, or beyond what such a number can be. */
static double number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	const double x = json_is_number(v) ? json_number_value(v) : -1;
	return x >= 0 && x < 1e9 ? x : -1;
}

bool nr_hf_config_read(struct nr_hf_config *c, const char *weights, struct nr_arena *arena)
{
	const char *slash = strrchr(weights, '/');
	const char *path = nr_arena_printf(arena, "%.*sconfig.json", slash ? (int)(slash - weights) + 1 : 0, weights);
	struct nr_error err = { 0 };
	json_t *j = path ? nr_json_load(path, &err) : NULL;
	const char *type = json_string_value(json_object_get(j, "model_type")), *act = json_string_value(json_object_get(j, "hidden_act"));
	if (type)
		*c = (struct nr_hf_config){ .type = nr_arena_strdup(arena, type), .act = nr_hf_act(act ? act : "gelu"),
			.heads = (int64_t)number(j, "num_attention_heads"), .pad = (int64_t)number(j, "pad_token_id"),
			.eps = number(j, "layer_norm_eps") };
	json_decref(j);
	return type && c->type;
}

/* The class of transformers that has these heads. */
static const char *class_of(const struct nr_store *s, bool roberta)
{
	if (nr_store_find(s, "nsp.weight")) return "ForPreTraining";
	if (nr_store_find(s, "mlm.dense.weight")) return "ForMaskedLM";
	return nr_store_find(s, "head.weight") && !roberta ? "ForSequenceClassification" : "Model";      /* RoBERTa's head has two layers */
}

json_t *nr_hf_config_json(const struct nr_model_spec *m, const struct nr_store *s, double eps)
{
	const struct nr_bert *c = m->conf;
	const bool roberta = !strcmp(m->of->name, "roberta");
	char name[64];
	snprintf(name, sizeof name, "%s%s", roberta ? "Roberta" : "Bert", class_of(s, roberta));
	json_t *j = json_pack("{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f}", "architectures", name,
		"model_type", m->of->name, "vocab_size", (json_int_t)c->vocab, "hidden_size", (json_int_t)c->dim,
		"num_hidden_layers", (json_int_t)c->depth, "num_attention_heads", (json_int_t)c->heads,
		"intermediate_size", (json_int_t)c->hidden, "max_position_embeddings", (json_int_t)c->positions,
		"type_vocab_size", (json_int_t)c->types, "pad_token_id", (json_int_t)c->pad, "hidden_act", their_act(c->act),
		"layer_norm_eps", eps);
	if (j && nr_store_find(s, "head.weight")) json_object_set_new(j, "num_labels", json_integer(c->classes));
	if (j && nr_store_find(s, "mlm.decoder.weight")) json_object_set_new(j, "tie_word_embeddings", json_false());
	return j;
}
