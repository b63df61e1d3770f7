/* bigbird: BERT with block sparse attention, for long texts. Zaheer et al. 2020, arXiv:2007.14062; Hugging Face's form and names.
 *
 * A text of at most 5 + 2 random blocks gets full attention, as there. Random blocks are drawn once for (random_seed, layer, head);
 * Hugging Face's evaluation takes block 0 in their place, which hf_eval=1 reproduces. The head is two layers on the first token. */
#include "models/bert.h"

#include <string.h>

#include "models/block.h"
#include "models/hf_config.h"
#include "models/text_heads.h"

struct bigbird { struct nr_bert bert; int64_t block, random, random_seed; bool bias, hf_eval; };

static const struct nr_option options[] = {
	NR_BERT_OPTIONS(50358, 4096, 2, 0, "0", 1024, "gelu_tanh", "cls"),
	NR_OPT_INT(struct bigbird, block, 64, 1, 1000000, "tokens of a block"),
	NR_OPT_INT(struct bigbird, random, 3, 0, 64, "random blocks that each block sees"),
	NR_OPT_INT(struct bigbird, random_seed, 0, 0, 2147483647, "seed of the random blocks"),
	NR_OPT_BOOL(struct bigbird, hf_eval, "0", "random blocks are block 0 in evaluation, as Hugging Face has it"),
	NR_OPT_BOOL(struct bigbird, bias, "1", "queries, keys and values have a bias"),
	NR_OPT_BOOL(struct nr_bert, rescale, "0", "multiply word embeddings with sqrt(dim)"),
	NR_OPT_END
};

static const struct nr_preset presets[] = {
	{ "bigbird-base", "dim=768,depth=12,heads=12,hidden=3072" },
	{ "bigbird-large", "dim=1024,depth=24,heads=16,hidden=4096" },
	{ NULL, NULL },
};

static const struct nr_rename with_heads[] = { NR_BERT_NAMES("bert."), NR_BERT_HEADS, { NULL, NULL } };
static const struct nr_rename base[] = { NR_BERT_NAMES(""), NR_BERT_HEADS, { NULL, NULL } };
static const char *const unused[] = { "bert.embeddings.position_ids", "embeddings.position_ids", "bert.pooler.weight", "bert.pooler.bias",
	"pooler.weight", "pooler.bias", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias", NULL };
/* transformers gives every model a pooler, which its classifier does not read. */
static const struct nr_rename pooler[] = { { "blocks.0.attn.proj.weight", "bert.pooler.weight" },
	{ "blocks.0.attn.proj.bias", "bert.pooler.bias" }, { NULL, NULL } };
static const struct nr_rename base_pooler[] = { { "blocks.0.attn.proj.weight", "pooler.weight" },
	{ "blocks.0.attn.proj.bias", "pooler.bias" }, { NULL, NULL } };
static const struct nr_naming namings[] = {
	{ .name = "huggingface", .rules = with_heads, .ignored = unused, .wanted = pooler },
	{ .name = "huggingface_base", .rules = base, .ignored = unused, .wanted = base_pooler },
	{ .name = NULL },
};

static nr_t *encode_layers(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf, nr_t **layer)
{
	const struct bigbird *c = conf;
	const struct nr_block_attention_options sparse = { .heads = c->bert.heads, .block = c->block, .random = c->random,
		.seed = c->random_seed, .zero_in_eval = c->hf_eval, .dropout = (float)c->bert.attention_dropout,
		.given = in->random_blocks };
	const bool full = x && x->d[1] <= (5 + 2 * c->random) * c->block;
	return nr_bert_blocks(n, x, &c->bert, &(struct nr_block){ .no_qkv_bias = !c->bias, .blocks = full ? NULL : &sparse }, layer);
}

static nr_t *encode(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf)
{
	return encode_layers(n, in, x, conf, NULL);
}

static nr_t *head(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct nr_bert *c = conf;
	x = nr_activate(n, c->act, nr_linear(n, "head.dense", nr_dropout(n, x, c->dropout), c->dim));
	return nr_linear(n, "head.out_proj", nr_dropout(n, x, c->dropout), c->classes);
}

/* ---- in a file ------------------------------------------------------------------------------------------------------------ */

static int fits(const struct nr_look *l)
{
	const char *type = nr_hf_text(l->config, "model_type");
	return type && !strcmp(type, "big_bird");
}

static bool measure(const struct nr_look *l, struct nr_sighting *s)
{
	if (!fits(l) || !nr_bert_measure(l, s)) return false;
	nr_saw(s, "block", (int64_t)nr_hf_number(l->config, "block_size"));
	nr_saw(s, "random", (int64_t)nr_hf_number(l->config, "num_random_blocks"));
	nr_saw_text(s, "hf_eval", "1");         /* so that evaluations are those of Hugging Face */
	if (json_is_false(json_object_get(l->config, "use_bias"))) nr_saw_text(s, "bias", "0");
	if (json_is_true(json_object_get(l->config, "rescale_embeddings"))) nr_saw_text(s, "rescale", "1");
	nr_saw(s, "classes", nr_look_rows(l, "head.out_proj.weight", 0));
	return true;
}

static json_t *config(const struct nr_saved *w)
{
	const struct bigbird *c = w->model->conf;
	json_t *j = nr_bert_config(w, "BigBird", true);
	if (!j) return NULL;
	const bool classifies = nr_store_find(w->store, "head.out_proj.weight");
	if (classifies) json_object_set_new(j, "architectures", json_pack("[s]", "BigBirdForSequenceClassification"));
	if (classifies) json_object_set_new(j, "num_labels", json_integer(c->bert.classes));
	json_object_set_new(j, "model_type", json_string("big_bird"));
	json_object_set_new(j, "attention_type", json_string("block_sparse"));
	json_object_set_new(j, "block_size", json_integer(c->block));
	json_object_set_new(j, "num_random_blocks", json_integer(c->random));
	json_object_set_new(j, "use_bias", json_boolean(c->bias));
	json_object_set_new(j, "rescale_embeddings", json_boolean(c->bert.rescale));
	return j;
}

static const struct nr_model_file file = {
	.signs = nr_bert_signs, .measure = measure, .fits = fits, .config = config,
	.doubt = "the number of heads is unknown: a width of 64 is assumed",
};

const struct nr_model nr_model_bigbird = {
	.name = "bigbird", .title = "BigBird", .cite = "arXiv:2007.14062", .reads = NR_TEXTS, .conf_size = sizeof(struct bigbird),
	.options = options, .presets = presets, .namings = namings,
	.norms = { .norm = "layer", .placement = "post", .rules = "embed=layer", .eps = 1e-12 },
	.embed = nr_bert_embed, .encode = encode, .encode_layers = encode_layers, .pool = nr_bert_pool, .head = head, .file = &file,
};
