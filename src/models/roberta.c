/* roberta: BERT with byte-level BPE, one kind of segment and places that begin behind the padding's. Liu et al. 2019,
 * arXiv:1907.11692; Hugging Face's form and names. */
#include "models/bert.h"

static const struct nr_option options[] = { NR_BERT_OPTIONS(50265, 514, 1, 1, "1", 128, "gelu", "pooler"), NR_OPT_END };

static const struct nr_preset presets[] = {
	{ "roberta-base", "dim=768,depth=12,heads=12,hidden=3072" },
	{ "roberta-large", "dim=1024,depth=24,heads=16,hidden=4096" },
	{ "distilroberta-base", "dim=768,depth=6,heads=12,hidden=3072" },
	{ NULL, NULL },
};

#define HEADS { "mlm.norm.", "lm_head.layer_norm." }, { "mlm.", "lm_head." }
static const struct nr_rename with_heads[] = { NR_BERT_NAMES("roberta."), HEADS, { NULL, NULL } };
static const struct nr_rename base[] = { NR_BERT_NAMES(""), HEADS, { NULL, NULL } };
static const char *const copies[] = { "roberta.embeddings.position_ids", "embeddings.position_ids", "lm_head.decoder.weight",
	"lm_head.decoder.bias", NULL };
static const struct nr_naming namings[] = {
	{ .name = "huggingface", .rules = with_heads, .ignored = copies }, { .name = "huggingface_base", .rules = base, .ignored = copies },
	{ .name = NULL },
};

static json_t *config(const struct nr_saved *w) { return nr_bert_config(w, "Roberta", false); }       /* their head has two layers */

static const struct nr_model_file file = {
	.signs = nr_bert_signs, .measure = nr_bert_measure, .fits = nr_bert_fits, .config = config,
	.doubt = "the number of heads is unknown: a width of 64 is assumed",
};

const struct nr_model nr_model_roberta = {
	.name = "roberta", .title = "RoBERTa", .cite = "arXiv:1907.11692", .reads = NR_TEXTS, .conf_size = sizeof(struct nr_bert),
	.options = options, .presets = presets, .namings = namings,
	.norms = { .norm = "layer", .placement = "post", .rules = "embed=layer", .eps = 1e-5 },
	.embed = nr_bert_embed, .encode = nr_bert_encode, .encode_layers = nr_bert_encode_layers, .pool = nr_bert_pool, .file = &file,
};
