/* clip_text: the text towers of CLIP (Radford et al. 2021, arXiv:2103.00020, section 2.4) and SigLIP (Zhai et al. 2023, arXiv:2303.15343);
 * names of Hugging Face and open_clip are in clip_text_file.c.
 *
 *   x = word + position, pre-norm blocks, N; then one token of each text, and a linear layer to the width that images have, too
 *
 * CLIP's tokens see those before them, and the end of the text is read. SigLIP's see all, padding included, and the last is read, so that
 * every text has to have the whole length. */
#include "models/clip_text.h"

#include "graph/net.h"
#include "models/block.h"
#include "models/text_heads.h"
#include "norma/nn.h"

enum pool { END, FIRST };
static const char *const pools[] = { "end", "first", NULL };

static const struct nr_option options[] = {
	NR_OPT_INT(struct nr_clip_text, vocab, 49408, 1, 100000000, "size of the vocabulary"),
	NR_OPT_INT(struct nr_clip_text, dim, 512, 1, 65536, "width of a token"),
	NR_OPT_INT(struct nr_clip_text, depth, 12, 1, 1024, "number of blocks"),
	NR_OPT_INT(struct nr_clip_text, heads, 8, 1, 1024, "attention heads"),
	NR_OPT_INT(struct nr_clip_text, hidden, 2048, 1, 1000000, "width of the MLP"),
	NR_OPT_INT(struct nr_clip_text, positions, 77, 1, 1000000, "rows of the position table"),
	NR_OPT_INT(struct nr_clip_text, length, 77, 1, 1000000, "maximum number of tokens per text, special ones included"),
	NR_OPT_INT(struct nr_clip_text, pad, 0, 0, 100000000, "id of the padding token"),
	NR_OPT_BOOL(struct nr_clip_text, causal, "1", "a token sees only those before it and itself"),
	NR_OPT_BOOL(struct nr_clip_text, ends, "1",
		"a token ends each text, and what follows is not seen; 0 as in SigLIP: texts have the whole length"),
	NR_OPT_INT(struct nr_clip_text, end, -1, -1, 100000000, "id of that token; -1: the largest id of each text"),
	NR_OPT_ENUM(struct nr_clip_text, pool, "end", pools, "which token is read: the last of a text or the first"),
	NR_OPT_STRING(struct nr_clip_text, act, "gelu", "activation of the MLP: gelu, gelu_tanh (SigLIP), quick_gelu (CLIP), relu, silu"),
	NR_OPT_FLOAT(struct nr_clip_text, dropout, 0, 0, 0.99, "dropout of the branches"),
	NR_OPT_FLOAT(struct nr_clip_text, attention_dropout, 0, 0, 0.99, "dropout of attention"),
	NR_OPT_INT(struct nr_clip_text, classes, 512, 1, 1000000, "outputs of the head: the width that texts and images share"),
	NR_OPT_BOOL(struct nr_clip_text, head_bias, "0", "bias of the head"),
	NR_OPT_END
};

static const struct nr_preset presets[] = {
	{ "clip_text/b", "act=quick_gelu" }, { "clip_text/l", "dim=768,heads=12,hidden=3072,classes=768,act=quick_gelu" },
	{ "siglip_text/b", "vocab=32000,dim=768,heads=12,hidden=3072,positions=64,length=64,pad=1,causal=0,ends=0,act=gelu_tanh,"
		"classes=768,head_bias=1" },
	/* for captions of a few words on a CPU */
	{ "clip_text_nano", "vocab=4096,dim=96,depth=3,heads=3,hidden=384,positions=32,length=32,classes=96" }, { NULL, NULL },
};
static const struct nr_preset plans[] = { { "siglip_text/b", "layer eps=1e-6" }, { NULL, NULL } };

static nr_t *embed(struct nr_net *n, const struct nr_inputs *in, const void *conf)
{
	const struct nr_clip_text *c = conf;
	nr_t *x = nr_embedding(n, "word", in->ids, c->vocab, c->dim, -1);
	if (!x) return NULL;
	const int64_t T = x->d[1];
	if (T > c->positions || (!c->ends && T < c->positions))
		return nr_net_fail(n, NR_ELIMIT, "position", "texts have %lld tokens, but there are %s%lld positions", (long long)T,
			T > c->positions ? "only " : "", (long long)c->positions);
	nr_with_tokens(n, x, (struct nr_tokens){ .h = 1, .w = (int32_t)T, .heads = (int32_t)c->heads,
		.valid = c->ends ? nr_text_lengths(n, in->ids, (int32_t)c->end) : NULL });
	nr_push(n, "position");
	nr_t *table = nr_pop(n, nr_param(n, "weight", NR_NORMAL_02, NR_SHAPE(c->positions, c->dim)));
	x = nr_add_table(n, x, nr_span(n, nr_reshape(n, table, NR_SHAPE(1, c->positions, c->dim)), 0, T));
	return nr_hidden(n, nr_dropout(n, x, c->dropout), "embed");
}

static nr_t *encode_layers(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf, nr_t **layer)
{
	const struct nr_clip_text *c = conf;
	const struct nr_block b = { .heads = c->heads, .hidden = c->hidden, .act = c->act, .causal = c->causal, .dropout = c->dropout,
		.attention_dropout = c->attention_dropout };
	for (int64_t i = 0; i < c->depth; i++) {
		nr_push_nth(n, "blocks", i, c->depth);
		x = nr_hidden(n, nr_pop(n, nr_block(n, x, &b)), "block%lld", (long long)i);
		if (layer) layer[i] = x;
	}
	x = nr_norm(n, "final", x);
	if (layer) layer[c->depth - 1] = x;
	return x;
}

static nr_t *encode(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf) { return encode_layers(n, in, x, conf, NULL); }

static nr_t *pool(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct nr_clip_text *c = conf;
	if (!x || c->pool == FIRST) return nr_first_token(n, x);
	const int64_t B = x->d[0], T = x->d[1];
	nr_t *valid = x->tok ? x->tok->valid : NULL;
	x = nr_reshape(n, x, NR_SHAPE(B, T, c->dim));           /* tokens without a meaning, any of which can be taken */
	nr_t *last = valid ? nr_take_tokens(n, x, nr_reshape(n, nr_lengths(n, valid, -1, T - 1), NR_SHAPE(B, 1))) : nr_span(n, x, T - 1, T);
	return nr_reshape(n, last, NR_SHAPE(B, c->dim));
}

static nr_t *head(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct nr_clip_text *c = conf;
	return c->head_bias ? nr_linear(n, "head", x, c->classes) : nr_linear_no_bias(n, "head", x, c->classes);
}

const struct nr_model nr_model_clip_text = {
	.name = "clip_text", .title = "text towers of CLIP and SigLIP", .cite = "arXiv:2103.00020", .reads = NR_TEXTS,
	.conf_size = sizeof(struct nr_clip_text), .options = options, .presets = presets, .plans = plans, .namings = nr_clip_text_namings,
	.norms = { .norm = "layer", .placement = "pre", .eps = 1e-5 },
	.embed = embed, .encode = encode, .encode_layers = encode_layers, .pool = pool, .head = head, .file = &nr_clip_text_file,
};
