/* lra: the encoder of the Long Range Arena. Tay et al. 2021, arXiv:2011.04006, and its public code, whose names are `layers.N.norm1` and so
 * on.
 *
 *   x = word + position, then blocks x + attention(N x), x + mlp(N x), a norm, pooling, relu(head.mlp x), head.logits
 *
 * Attention is full, BigBird's (blocks) or Reformer's (lsh: queries are keys, no output projection, no mask, as in that code). A learned
 * vector may lead the text (pool=cls); mean_all takes the mean over padding too, as the public code does, mean leaves it out. */
#include <math.h>

#include "models/block.h"
#include "models/guess.h"
#include "models/text_heads.h"
#include "norma/safetensors.h"

enum attention { FULL, BIGBIRD, LSH };
static const char *const attentions[] = { "full", "bigbird", "lsh", NULL };
enum pool { POOL_CLS, POOL_MEAN, POOL_MEAN_ALL };
static const char *const pools[] = { "cls", "mean", "mean_all", NULL };
enum position { SINES, LEARNED };
static const char *const positions[] = { "sinusoidal", "learned", NULL };

struct lra {
	int64_t vocab, dim, depth, heads, hidden, positions, pad, length, classes, block, random, random_seed, rounds, buckets, multiple;
	double dropout, attention_dropout, score_scale;
	int32_t attention, pool, position;
	bool normalize_keys;
	char *act;
};

static const struct nr_option options[] = {
	NR_OPT_INT(struct lra, vocab, 17, 1, 100000000, "size of the vocabulary"),
	NR_OPT_INT(struct lra, dim, 512, 1, 65536, "width of a token"),
	NR_OPT_INT(struct lra, depth, 6, 1, 1024, "number of blocks"),
	NR_OPT_INT(struct lra, heads, 8, 1, 1024, "attention heads"),
	NR_OPT_INT(struct lra, hidden, 2048, 1, 1000000, "width of the MLP, and of the head's first layer"),
	NR_OPT_INT(struct lra, positions, 2000, 1, 10000000, "places of tokens; pool=cls has one more"),
	NR_OPT_INT(struct lra, pad, 0, 0, 100000000, "id of the padding token"),
	NR_OPT_INT(struct lra, length, 2000, 1, 10000000, "maximum number of tokens per text, without [CLS]"),
	NR_OPT_STRING(struct lra, act, "gelu_tanh", "activation of the MLP: gelu, gelu_tanh, relu, silu"),
	NR_OPT_FLOAT(struct lra, dropout, 0, 0, 0.99, "dropout of embeddings and branches"),
	NR_OPT_FLOAT(struct lra, attention_dropout, 0, 0, 0.99, "dropout of attention"),
	NR_OPT_ENUM(struct lra, attention, "full", attentions, "full; bigbird: blocks; lsh: buckets of similar tokens (Reformer)"),
	NR_OPT_ENUM(struct lra, pool, "cls", pools,
		"what the head reads: a learned first vector, the mean, or the mean with padding (LRA)"),
	NR_OPT_ENUM(struct lra, position, "sinusoidal", positions, "places: sines, or a learned table"),
	NR_OPT_INT(struct lra, block, 64, 1, 1000000, "bigbird: tokens of a block"),
	NR_OPT_INT(struct lra, random, 3, 0, 64, "bigbird: random blocks that each block sees"),
	NR_OPT_INT(struct lra, random_seed, 0, 0, 2147483647, "bigbird: seed of the random blocks"),
	NR_OPT_INT(struct lra, rounds, 1, 1, 64, "lsh: rounds of hashing"),
	NR_OPT_INT(struct lra, buckets, 10, 2, 1000000, "lsh: buckets of a round, and chunks that the sorted tokens are cut into"),
	NR_OPT_INT(struct lra, multiple, 10, 1, 1000000, "lsh: texts are filled up to a multiple of this"),
	NR_OPT_BOOL(struct lra, normalize_keys, "0", "lsh: divide keys by their root mean square"),
	NR_OPT_FLOAT(struct lra, score_scale, 0, 0, 1000, "lsh: factor of the scores; 0: sqrt(head width), as in the public code"),
	NR_OPT_INT(struct lra, classes, 10, 1, 1000000, "outputs of the classification head"),
	NR_OPT_END
};

/* dim 512, 8 heads: of the public configuration; depth 6 of the paper, 4 blocks and an MLP of 1024 of the code. */
static const struct nr_preset presets[] = {
	{ "lra-transformer", "attention=full" },
	{ "lra-bigbird", "attention=bigbird" },
	{ "lra-reformer", "attention=lsh" },
	{ "lra-transformer-code", "attention=full,depth=4,hidden=1024" },
	{ "lra-bigbird-code", "attention=bigbird,depth=4,hidden=1024" },
	{ "lra-reformer-code", "attention=lsh,depth=4,hidden=1024" },
	{ NULL, NULL },
};

#define SHARED                                                                                                                     \
	{ "word.", "embed." }, { "position.", "pos." }, { "attn.in.", "norm1." }, { "mlp.in.", "norm2." }, { "attn.proj.", "attn.o." }, \
	{ "blocks.", "layers." }, { "final.", "norm." }
static const struct nr_rename own_keys[] = { { "attn.qkv.", "attn.q. attn.k. attn.v." }, SHARED, { NULL, NULL } };
static const struct nr_rename shared_keys[] = { { "attn.qkv.", "attn.qk. attn.v." }, SHARED, { NULL, NULL } };
static const struct nr_naming namings[] = {
	{ .name = "lra", .rules = own_keys }, { .name = "lra_lsh", .rules = shared_keys }, { .name = NULL },
};

/* ---- the model -------------------------------------------------------------------------------------------------------------------- */

static nr_t *with_positions(struct nr_net *n, nr_t *x, const struct lra *c)
{
	const int64_t places = c->positions + (c->pool == POOL_CLS);
	if (x && x->d[1] > places)
		return nr_net_fail(n, NR_ELIMIT, "position", "texts have %lld tokens, but there are only %lld positions",
			(long long)x->d[1], (long long)places);
	if (c->position == SINES) return nr_add_sines(n, x);
	nr_t *table = nr_param(n, "position.weight", NR_NORMAL_02, NR_SHAPE(places, c->dim));
	return x ? nr_add_table(n, x, nr_span(n, nr_reshape(n, table, NR_SHAPE(1, places, c->dim)), 0, x->d[1])) : NULL;
}

static nr_t *embed(struct nr_net *n, const struct nr_inputs *in, const void *conf)
{
	const struct lra *c = conf;
	nr_t *x = nr_embedding(n, "word", in->ids, c->vocab, c->dim, -1);
	if (!x) return NULL;
	nr_with_tokens(n, x, (struct nr_tokens){ .h = 1, .w = (int32_t)x->d[1], .heads = (int32_t)c->heads, .valid = in->valid });
	if (c->pool == POOL_CLS)
		x = nr_prepend(n, nr_reshape(n, nr_param(n, "cls", NR_ZEROS, NR_SHAPE(c->dim)), NR_SHAPE(1, 1, c->dim)), x);
	return nr_hidden(n, nr_dropout(n, with_positions(n, x, c), c->dropout), "embed");
}

static nr_t *encode_layers(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf, nr_t **layer)
{
	const struct lra *c = conf;
	const double width = (double)c->dim / (double)c->heads;
	for (int64_t i = 0; i < c->depth; i++) {
		nr_t *buckets = NULL;
		const struct nr_block_attention_options blocks = { .heads = c->heads, .block = c->block, .random = c->random, .layer = i,
			.seed = c->random_seed, .dropout = (float)c->attention_dropout, .given = in->random_blocks };
		const struct nr_lsh_options lsh = { .heads = c->heads, .rounds = c->rounds, .layer = i, .buckets = { c->buckets },
			.multiple = c->multiple, .before = 1, .normalize_keys = c->normalize_keys, .one_rotation = 1,
			.scale = (float)(c->score_scale > 0 ? c->score_scale : sqrt(width)), .dropout = (float)c->attention_dropout,
			.rotations = in->rotations };
		const struct nr_block b = { .heads = c->heads, .hidden = c->hidden, .act = c->act, .dropout = c->dropout,
			.attention_dropout = c->attention_dropout, .no_qkv_bias = true, .no_proj_bias = c->attention != LSH,
			.blocks = c->attention == BIGBIRD ? &blocks : NULL, .lsh = c->attention == LSH ? &lsh : NULL, .buckets = &buckets };
		nr_push_nth(n, "blocks", i, c->depth);
		x = nr_hidden(n, nr_pop(n, nr_block(n, x, &b)), "block%lld", (long long)i);
		if (buckets) nr_hidden(n, buckets, "buckets%lld", (long long)i);
		if (layer) layer[i] = x;
	}
	x = nr_norm(n, "final", x);
	if (layer) layer[c->depth - 1] = x;
	return x;
}

static nr_t *encode(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf)
{
	return encode_layers(n, in, x, conf, NULL);
}

static nr_t *pool(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct lra *c = conf;
	if (c->pool == POOL_CLS) return nr_first_token(n, x);
	if (!x || c->pool == POOL_MEAN) return nr_mean_all_tokens(n, x, NULL);
	struct nr_tokens all = *x->tok;
	all.valid = NULL;
	return nr_mean_all_tokens(n, nr_with_tokens(n, nr_reshape(n, x, nr_shape_of(x)), all), NULL);
}

static nr_t *head(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct lra *c = conf;
	return nr_linear(n, "head.logits", nr_activate(n, "relu", nr_linear(n, "head.mlp", x, c->hidden)), c->classes);
}

/* ---- in a file -------------------------------------------------------------------------------------------------------------------- */

static const char *const signs[] = { "word.weight", "position.weight", "cls", "blocks.0.attn.in.weight", "blocks.0.attn.qkv.weight",
	"blocks.0.mlp.fc1.weight", "final.weight", "head.mlp.weight", "head.logits.weight", NULL };

static bool measure(const struct nr_look *l, struct nr_sighting *s)
{
	const struct nr_st_tensor *word = nr_look_find(l, "word.weight");
	if (!word || word->nd != 2 || word->shape[1] < 1 || word->shape[1] > 65536) return false;
	const int64_t C = word->shape[1], hidden = nr_look_rows(l, "blocks.0.mlp.fc1.weight", C);
	const int64_t depth = nr_look_depth(l, "mlp.fc1.weight"), table = nr_look_rows(l, "position.weight", C);
	if (hidden < 0 || depth < 1 || nr_look_rows(l, "head.mlp.weight", C) != hidden) return false;
	nr_saw_key(s, "vocab", word->shape[0]);
	nr_saw_key(s, "dim", C);
	nr_saw_key(s, "depth", depth);
	nr_saw_key(s, "hidden", hidden);
	nr_assumed(s, "heads", nr_heads_assumed(C));
	if (table > 0) nr_saw(s, "positions", table - (nr_look_find(l, "cls") != NULL));
	if (table > 0) nr_saw_text(s, "position", "learned");
	nr_saw(s, "classes", nr_look_rows(l, "head.logits.weight", hidden));
	if (!nr_look_find(l, "cls")) nr_saw_not(s, "pool", "cls", "mean");
	if (!nr_look_find(l, "blocks.0.attn.proj.weight")) nr_saw_text(s, "attention", "lsh");
	return true;
}

static const struct nr_model_file file = {
	.signs = signs, .measure = measure,
	.doubt = "heads and the kind of attention are unknown: heads of 64 channels and full attention are assumed",
};

const struct nr_model nr_model_lra = {
	.name = "lra", .title = "encoder of the Long Range Arena", .cite = "arXiv:2011.04006", .reads = NR_TEXTS,
	.conf_size = sizeof(struct lra), .options = options, .presets = presets, .namings = namings,
	.norms = { .norm = "layer", .placement = "pre", .eps = 1e-6 },
	.embed = embed, .encode = encode, .encode_layers = encode_layers, .pool = pool, .head = head, .file = &file,
};
