/* Heads of text models. BERT's: arXiv:1810.04805, section 3.1; sentence embeddings: SimCSE, arXiv:2104.08821, section 3 and its
 * public code. */
#include "models/text_heads.h"

#include <string.h>

#include "base/mem.h"
#include "models/names.h"
#include "norma/nn.h"
#include "norma/safetensors.h"

const char *const nr_text_poolings[] = { "cls", "cls_before_pooler", "avg", "avg_top2", "avg_first_last", NULL };

void nr_text_encode(struct nr_net *n, const struct nr_model_spec *m, const struct nr_inputs *in, struct nr_text *t)
{
	*t = (struct nr_text){ .depth = nr_model_int(m, "depth") };
	if (m->of->reads != NR_TEXTS || !m->of->encode_layers) {
		nr_net_fail(n, NR_EUSAGE, m->text, "a text model such as bert is needed");
		return;
	}
	t->layer = nr_arena_alloc(nr_net_arena(n), (size_t)t->depth * sizeof *t->layer);
	if (!t->layer) {
		nr_net_fail(n, NR_EMEMORY, m->text, "out of memory");
		return;
	}
	t->embedded = m->of->embed(n, in, m->conf);
	t->tokens = m->of->encode_layers(n, in, t->embedded, m->conf, t->layer);
}

nr_t *nr_first_token(struct nr_net *n, nr_t *x)
{
	return x ? nr_reshape(n, nr_span(n, x, 0, 1), NR_SHAPE(x->d[0], x->d[2])) : NULL;
}

nr_t *nr_text_pool(struct nr_net *n, const struct nr_text *t, enum nr_text_pooling kind)
{
	if (!t->tokens) return NULL;
	if (kind == NR_TEXT_CLS || kind == NR_TEXT_CLS_BEFORE_POOLER) return nr_first_token(n, t->tokens);
	nr_t *last = nr_mean_all_tokens(n, t->tokens, NULL);
	const int64_t other = kind == NR_TEXT_AVG_TOP2 ? t->depth - 2 : 0;
	if (kind == NR_TEXT_AVG) return last;
	/* With one block the embeddings stand below it, as in the list of hidden states that SimCSE's code takes the last two of. */
	nr_t *below = other < 0 ? t->embedded : t->layer[other];
	return nr_scale(n, nr_add(n, last, nr_mean_all_tokens(n, below, NULL)), .5);
}

int64_t nr_text_length(const struct nr_model_spec *m)
{
	return nr_model_int(m, "positions") - (nr_model_int(m, "skip_pads") == 1 ? nr_model_int(m, "pad") + 1 : 0);
}

static nr_t *tanh_layer(struct nr_net *n, const char *name, nr_t *x)
{
	return x ? nr_activate(n, "tanh", nr_linear(n, name, x, nr_cols(x))) : NULL;
}
nr_t *nr_text_pooler(struct nr_net *n, nr_t *x) { return tanh_layer(n, "pooler.dense", nr_first_token(n, x)); }
nr_t *nr_simcse_layer(struct nr_net *n, nr_t *x) { return tanh_layer(n, "simcse.dense", x); }
nr_t *nr_nsp_logits(struct nr_net *n, nr_t *x) { return nr_linear(n, "nsp", x, 2); }

nr_t *nr_mlm_logits(struct nr_net *n, const struct nr_model_spec *m, nr_t *x, bool tied)
{
	const int64_t vocab = nr_model_int(m, "vocab"), dim = nr_model_int(m, "dim");
	char act[32];
	if (!x) return NULL;
	/* RoBERTa's head has the erf form whatever its blocks have, in transformers and in fairseq. */
	nr_option_text(nr_option_find(m->of->options, "act"), m->conf, act, sizeof act);
	nr_push(n, "mlm");
	x = nr_activate(n, strcmp(m->of->name, "roberta") ? act : "gelu", nr_linear(n, "dense", x, dim));
	x = nr_norm_make(n, "norm", "layer", x);
	nr_t *own = tied ? NULL : nr_param(n, "decoder.weight", NR_NORMAL_02, NR_SHAPE(vocab, dim));
	nr_t *bias = nr_pop(n, nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(vocab)));
	return nr_linear_tied(n, x, tied ? nr_param(n, "word.weight", NR_NORMAL_02, NR_SHAPE(vocab, dim)) : own, bias);
}

/* ---- files ----------------------------------------------------------------------------------------------------------- */

static const struct nr_st_tensor *find(const struct nr_naming *n, const struct nr_st_file *f, const char *entry, struct nr_arena *arena)
{
	char order;
	const char *name = nr_naming_text(n, entry, &order, arena);
	return name ? nr_st_find(f, name) : NULL;
}

/* A decoder that is not the word table written twice. */
static bool own_decoder(const struct nr_naming *n, const struct nr_st_file *f, struct nr_arena *arena)
{
	const struct nr_st_tensor *d = find(n, f, "mlm.decoder.weight", arena), *w = find(n, f, "word.weight", arena);
	return d && w && (d->bytes != w->bytes || memcmp(d->data, w->data, d->bytes) != 0);
}

static unsigned heads_under(const struct nr_naming *n, const struct nr_st_file *f, struct nr_arena *arena)
{
	unsigned seen = 0;
	if (!find(n, f, "word.weight", arena)) return 0;
	if (find(n, f, "pooler.dense.weight", arena)) seen |= NR_TEXT_HAS_POOLER;
	if (find(n, f, "mlm.dense.weight", arena)) seen |= NR_TEXT_HAS_MLM;
	if (seen & NR_TEXT_HAS_MLM && own_decoder(n, f, arena)) seen |= NR_TEXT_HAS_OWN_DECODER;
	if (find(n, f, "nsp.weight", arena)) seen |= NR_TEXT_HAS_NSP;
	if (find(n, f, "simcse.dense.weight", arena)) seen |= NR_TEXT_HAS_SIMCSE;
	return seen;
}

unsigned nr_text_heads_in(const struct nr_model *m, const struct nr_st_file *f, struct nr_arena *arena)
{
	unsigned seen = heads_under(nr_naming_find(m, "norma", NULL), f, arena);
	for (const struct nr_naming *n = m->namings; n->name; n++) seen |= heads_under(n, f, arena);
	return seen;
}

unsigned nr_text_heads_of(const struct nr_store *s)
{
	static const struct { const char *entry; unsigned bit; } heads[] = { { "pooler.dense.weight", NR_TEXT_HAS_POOLER },
		{ "mlm.dense.weight", NR_TEXT_HAS_MLM }, { "mlm.decoder.weight", NR_TEXT_HAS_OWN_DECODER },
		{ "nsp.weight", NR_TEXT_HAS_NSP },
		{ "simcse.dense.weight", NR_TEXT_HAS_SIMCSE } };
	unsigned seen = 0;
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
		if (nr_store_find(s, heads[i].entry)) seen |= heads[i].bit;
	return seen;
}

void nr_text_heads_record(struct nr_net *n, const struct nr_model_spec *m, nr_t *tokens, unsigned heads)
{
	if (heads & NR_TEXT_HAS_POOLER) nr_text_pooler(n, tokens);
	if (heads & NR_TEXT_HAS_MLM) nr_mlm_logits(n, m, tokens, !(heads & NR_TEXT_HAS_OWN_DECODER));
	if (heads & NR_TEXT_HAS_NSP) nr_nsp_logits(n, nr_first_token(n, tokens));
	if (heads & NR_TEXT_HAS_SIMCSE) nr_simcse_layer(n, nr_first_token(n, tokens));
}
