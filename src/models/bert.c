/* bert: bidirectional transformer encoder of text. Devlin et al. 2019, arXiv:1810.04805; Hugging Face's form and names.
 *
 *   x = N(word + position + type), then blocks N(x + attention(x)), N(x + mlp(x)): post-norm
 *
 * The embedding's norm is site "embed" and stays layer norm unless a rule names it (SepNorm keeps it, too). Padding is a suffix:
 * its keys are masked, and norms with statistics over tokens leave it out; what stands at padded places is defined, and unused. */
#include "models/bert.h"

#include <math.h>
#include <string.h>

#include "models/block.h"
#include "models/hf_config.h"
#include "models/text_heads.h"
#include "norma/nn.h"
#include "norma/safetensors.h"

const char *const nr_bert_pools[] = { "pooler", "cls", "avg", NULL };

static const struct nr_option options[] = { NR_BERT_OPTIONS(30522, 512, 2, 0, "0", 128, "gelu", "pooler"), NR_OPT_END };

static const struct nr_preset presets[] = {
	{ "bert-base-uncased", "dim=768,depth=12,heads=12,hidden=3072" },
	{ "bert-base-cased", "vocab=28996,dim=768,depth=12,heads=12,hidden=3072" },
	{ "bert-large-uncased", "dim=1024,depth=24,heads=16,hidden=4096" },
	{ "bert-large-cased", "vocab=28996,dim=1024,depth=24,heads=16,hidden=4096" },
	{ "minilm-l6", "dim=384,depth=6,heads=12,hidden=1536,pool=avg" },
	{ "minilm-l12", "dim=384,depth=12,heads=12,hidden=1536,pool=avg" },
	{ "bert-tiny", "dim=128,depth=2,heads=2,hidden=512" },
	{ "bert-mini", "dim=256,depth=4,heads=4,hidden=1024" },
	{ "bert-small", "dim=512,depth=4,heads=8,hidden=2048" },
	{ "bert-medium", "dim=512,depth=8,heads=8,hidden=2048" },
	{ NULL, NULL },
};

static const struct nr_rename with_heads[] = { NR_BERT_NAMES("bert."), NR_BERT_HEADS, { NULL, NULL } };
static const struct nr_rename base[] = { NR_BERT_NAMES(""), NR_BERT_HEADS, { NULL, NULL } };
/* The first checkpoints: LayerNorm.gamma and LayerNorm.beta. */
static const struct nr_rename gamma_names[] = { NR_BERT_NAMES("bert."), NR_BERT_HEADS, { "LayerNorm.weight", "LayerNorm.gamma" },
	{ "LayerNorm.bias", "LayerNorm.beta" }, { NULL, NULL } };
/* As SimCSE's public training code holds them. */
static const struct nr_rename simcse[] = {
	NR_BERT_NAMES("bert."), { "mlm.dense.", "lm_head.transform.dense." }, { "mlm.norm.", "lm_head.transform.LayerNorm." },
	{ "mlm.", "lm_head." }, { NULL, NULL },
};
static const char *const copies[] = { "bert.embeddings.position_ids", "embeddings.position_ids", "cls.predictions.decoder.weight",
	"cls.predictions.decoder.bias", "lm_head.decoder.weight", "lm_head.decoder.bias", NULL };
static const struct nr_naming namings[] = {
	{ .name = "huggingface", .rules = with_heads, .ignored = copies }, { .name = "huggingface_base", .rules = base, .ignored = copies },
	{ .name = "huggingface_gamma", .rules = gamma_names, .ignored = copies }, { .name = "simcse", .rules = simcse, .ignored = copies },
	{ .name = NULL },
};

/* ---- the model ------------------------------------------------------------------------------------------------------- */

/* Row 0 .. T-1 of a table (count,C), as (1,T,C). */
static nr_t *rows_of(struct nr_net *n, const char *name, int64_t count, int64_t dim, int64_t T)
{
	nr_push(n, "%s", name);
	nr_t *table = nr_pop(n, nr_param(n, "weight", NR_NORMAL_02, NR_SHAPE(count, dim)));
	return nr_span(n, nr_reshape(n, table, NR_SHAPE(1, count, dim)), 0, T);
}

static nr_t *add_positions(struct nr_net *n, nr_t *x, nr_t *ids, const struct nr_bert *c)
{
	const int64_t T = ids->d[1], first = c->skip_pads ? c->pad + 1 : 0;
	if (first + T > c->positions)
		return nr_net_fail(n, NR_ELIMIT, "position",
			"texts have %lld tokens, but there are only %lld positions", (long long)T,
			(long long)(c->positions - first));
	if (!c->skip_pads) return nr_add_table(n, x, rows_of(n, "position", c->positions, c->dim, T));
	nr_t *places = nr_hidden(n, nr_text_positions(n, ids, (int32_t)c->pad), "positions");
	return nr_add(n, x, nr_embedding(n, "position", places, c->positions, c->dim, (int32_t)c->pad));
}

static nr_t *add_types(struct nr_net *n, nr_t *x, nr_t *types, const struct nr_bert *c)
{
	if (types) return nr_add(n, x, nr_embedding(n, "type", types, c->types, c->dim, -1));
	return nr_shift_channels(n, x, nr_reshape(n, rows_of(n, "type", c->types, c->dim, 1), NR_SHAPE(c->dim)));
}

nr_t *nr_bert_embed(struct nr_net *n, const struct nr_inputs *in, const void *conf)
{
	const struct nr_bert *c = conf;
	nr_t *x = nr_embedding(n, "word", in->ids, c->vocab, c->dim, (int32_t)c->pad);
	if (!x) return NULL;
	if (c->rescale) x = nr_scale(n, x, sqrt((double)c->dim));
	const int32_t rest = (int32_t)x->d[1] - 1;      /* [CLS] leads; the others are a line */
	nr_with_tokens(n, x, (struct nr_tokens){ .special = 1, .h = rest > 0, .w = rest, .heads = (int32_t)c->heads, .valid = in->valid });
	x = add_positions(n, add_types(n, x, in->types, c), in->ids, c);
	return nr_hidden(n, nr_dropout(n, nr_norm(n, "embed", x), c->dropout), "embed");
}

nr_t *nr_bert_blocks(struct nr_net *n, nr_t *x, const struct nr_bert *c, const struct nr_block *like, nr_t **layer)
{
	for (int64_t i = 0; i < c->depth; i++) {
		struct nr_block_attention_options sparse = like->blocks ? *like->blocks : (struct nr_block_attention_options){ 0 };
		struct nr_block b = *like;
		b.heads = c->heads, b.hidden = c->hidden, b.act = c->act, b.dropout = c->dropout;
		b.attention_dropout = c->attention_dropout, b.no_hidden_dropout = true;
		sparse.layer = i;
		if (like->blocks) b.blocks = &sparse;
		nr_push_nth(n, "blocks", i, c->depth);
		x = nr_hidden(n, nr_pop(n, nr_block(n, x, &b)), "block%lld", (long long)i);
		if (layer) layer[i] = x;
	}
	x = nr_norm(n, "final", x);                     /* silent in post-norm */
	if (layer) layer[c->depth - 1] = x;
	return x;
}

nr_t *nr_bert_encode_layers(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf, nr_t **layer)
{
	return nr_bert_blocks(n, x, conf, &(struct nr_block){ 0 }, layer);
}

nr_t *nr_bert_encode(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf)
{
	return nr_bert_encode_layers(n, in, x, conf, NULL);
}

nr_t *nr_bert_pool(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct nr_bert *c = conf;
	if (c->pool == NR_BERT_AVG) return nr_mean_all_tokens(n, x, NULL);
	return c->pool == NR_BERT_CLS ? nr_first_token(n, x) : nr_text_pooler(n, x);
}

/* ---- in a file ------------------------------------------------------------------------------------------------------------ */

const char *const nr_bert_signs[] = { "word.weight", "position.weight", "type.weight", "embed.weight", "blocks.0.attn.qkv.weight",
	"blocks.0.attn.qkv.bias", "blocks.0.attn.res.weight", "blocks.0.attn.res.special.weight", "blocks.0.mlp.fc1.weight",
	"pooler.dense.weight", "mlm.dense.weight", "mlm.norm.weight", "nsp.weight", "simcse.dense.weight", "head.weight", NULL };

/* config.json counts if it says how many heads there are. */
static const json_t *config_of(const struct nr_look *l)
{
	return nr_hf_text(l->config, "model_type") && nr_hf_number(l->config, "num_attention_heads") > 0 ? l->config : NULL;
}

/* Bare encoders of both families have the same names: the config decides, or the number of segments. */
int nr_bert_fits(const struct nr_look *l)
{
	struct nr_bert family;
	const int64_t types = nr_look_rows(l, "type.weight", 0);
	nr_option_defaults(l->model->options, &family);
	if (config_of(l)) return !strcmp(nr_hf_text(l->config, "model_type"), l->model->name);
	return types > 0 && (types == 1) == (family.types == 1);
}

static const char *norms_of(const struct nr_look *l)
{
	const double said = nr_hf_number(config_of(l), "layer_norm_eps"), eps = said > 0 ? said : l->model->norms.eps;
	const char *text = eps == l->model->norms.eps ? "" : nr_arena_printf(l->arena, "eps=%.9g", eps);
	const char *sep = nr_look_sep(l, "blocks.0.attn.res");
	return !text || !sep ? text : nr_arena_printf(l->arena, "%s%s%s", text, *text ? " " : "", sep);
}

bool nr_bert_measure(const struct nr_look *l, struct nr_sighting *s)
{
	const struct nr_st_tensor *word = nr_look_find(l, "word.weight");
	if (!word || word->nd != 2 || word->shape[1] < 1 || word->shape[1] > 65536) return false;
	const int64_t C = word->shape[1], positions = nr_look_rows(l, "position.weight", C), types = nr_look_rows(l, "type.weight", C);
	const int64_t hidden = nr_look_rows(l, "blocks.0.mlp.fc1.weight", C), depth = nr_look_depth(l, "mlp.fc1.weight");
	if (positions < 0 || types < 0 || hidden < 0 || depth < 1) return false;
	const json_t *config = config_of(l);
	const char *act = nr_hf_text(config, "hidden_act"), *ours = nr_hf_act(act ? act : "gelu");
	const int64_t pad = (int64_t)nr_hf_number(config, "pad_token_id");
	struct nr_bert *family = nr_arena_alloc(l->arena, l->model->conf_size);         /* BigBird has more options behind these */
	if (!family) return false;
	nr_option_defaults(l->model->options, family);
	const int64_t room = positions - (family->skip_pads ? (pad >= 0 ? pad : family->pad) + 1 : 0);
	nr_saw_key(s, "vocab", word->shape[0]);
	nr_saw_key(s, "dim", C);
	nr_saw_key(s, "depth", depth);
	if (config) nr_saw(s, "heads", (int64_t)nr_hf_number(config, "num_attention_heads"));
	else nr_assumed(s, "heads", nr_heads_assumed(C));
	nr_saw_key(s, "hidden", hidden);
	nr_saw(s, "positions", positions);
	nr_saw(s, "types", types);
	nr_saw(s, "pad", pad);
	nr_saw(s, "classes", nr_look_rows(l, "head.weight", C));
	nr_saw_at_most(s, "length", room > 0 ? room : -1);
	nr_saw_text(s, "act", config ? ours : NULL);
	if (!nr_look_find(l, "pooler.dense.weight")) nr_saw_not(s, "pool", "pooler", "cls");
	nr_saw_norms(s, norms_of(l));
	if (config && ours) nr_saw_all(s);
	return true;
}

/* The class of transformers that has these heads. */
static const char *class_of(const struct nr_store *s, bool heads)
{
	if (nr_store_find(s, "nsp.weight")) return "ForPreTraining";
	if (nr_store_find(s, "mlm.dense.weight")) return "ForMaskedLM";
	return nr_store_find(s, "head.weight") && heads ? "ForSequenceClassification" : "Model";
}

json_t *nr_bert_config(const struct nr_saved *w, const char *prefix, bool heads)
{
	const struct nr_bert *c = w->model->conf;
	char name[64];
	snprintf(name, sizeof name, "%s%s", prefix, class_of(w->store, heads));
	json_t *j = json_pack("{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f}", "architectures", name,
		"model_type", w->model->of->name, "vocab_size", (json_int_t)c->vocab, "hidden_size", (json_int_t)c->dim,
		"num_hidden_layers", (json_int_t)c->depth, "num_attention_heads", (json_int_t)c->heads,
		"intermediate_size", (json_int_t)c->hidden, "max_position_embeddings", (json_int_t)c->positions,
		"type_vocab_size", (json_int_t)c->types, "pad_token_id", (json_int_t)c->pad, "hidden_act", nr_hf_act_name(c->act),
		"layer_norm_eps", w->eps);
	if (j && nr_store_find(w->store, "head.weight")) json_object_set_new(j, "num_labels", json_integer(c->classes));
	if (j && nr_store_find(w->store, "mlm.decoder.weight")) json_object_set_new(j, "tie_word_embeddings", json_false());
	return j;
}

static json_t *config(const struct nr_saved *w) { return nr_bert_config(w, "Bert", true); }

static const struct nr_model_file file = {
	.signs = nr_bert_signs, .measure = nr_bert_measure, .fits = nr_bert_fits, .config = config,
	.doubt = "the number of heads is unknown: a width of 64 is assumed",
};

const struct nr_model nr_model_bert = {
	.name = "bert", .title = "BERT", .cite = "arXiv:1810.04805", .reads = NR_TEXTS, .conf_size = sizeof(struct nr_bert),
	.options = options, .presets = presets, .namings = namings,
	.norms = { .norm = "layer", .placement = "post", .rules = "embed=layer", .eps = 1e-12 },
	.embed = nr_bert_embed, .encode = nr_bert_encode, .encode_layers = nr_bert_encode_layers, .pool = nr_bert_pool, .file = &file,
};
