/* reformer: blocks of two streams with attention in buckets of similar tokens. Kitaev et al. 2020, arXiv:2001.04451; Hugging Face's form
 * and names.
 *
 *   x1 = x2 = word + position;  y1 = x1 + attention(N x2),  y2 = x2 + mlp(N y1);  N [y1, y2]
 *
 * Layers are "lsh" (queries are keys) or "local" (chunks of neighbours), in a pattern that is repeated. Positions are a table, or
 * axial: two small tables side by side, whose rows and columns make a grid. With ff_chunk the MLP takes so many tokens at a time. With
 * `reversible` a training step keeps y1 and y2 of the last block alone and rebuilds all others from them (graph/plan_reverse.c). The head
 * is two layers on the first token. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/block.h"
#include "models/guess.h"
#include "models/hf_config.h"
#include "models/text_heads.h"
#include "norma/safetensors.h"

static const char *const pools[] = { "cls", "mean", NULL };

struct reformer {
	int64_t vocab, dim, depth, heads, head_dim, hidden, positions, pad, length, classes, rounds, chunk, before, after, local_chunk,
		local_before, local_after, ff_chunk;
	double dropout, attention_dropout;
	int32_t pool;
	bool reversible;
	char *act, *layers, *buckets, *axial, *axial_dims;
};

static const struct nr_option options[] = {
	NR_OPT_INT(struct reformer, vocab, 320, 1, 100000000, "size of the vocabulary"),
	NR_OPT_INT(struct reformer, dim, 256, 1, 65536, "width of a token"),
	NR_OPT_INT(struct reformer, depth, 6, 1, 1024, "number of blocks"),
	NR_OPT_INT(struct reformer, heads, 4, 1, 1024, "attention heads"),
	NR_OPT_INT(struct reformer, head_dim, 0, 0, 65536, "width of a head; 0: dim / heads"),
	NR_OPT_INT(struct reformer, hidden, 512, 1, 1000000, "width of the MLP"),
	NR_OPT_INT(struct reformer, positions, 4096, 1, 10000000, "rows of the position table"),
	NR_OPT_STRING(struct reformer, axial, "", "grid of axial positions, e.g. 64x64; empty: a table"),
	NR_OPT_STRING(struct reformer, axial_dims, "", "widths of its two tables, e.g. 64x192"),
	NR_OPT_INT(struct reformer, pad, 0, 0, 100000000, "id of the padding token"),
	NR_OPT_INT(struct reformer, length, 1024, 1, 10000000, "maximum number of tokens per text"),
	NR_OPT_STRING(struct reformer, layers, "local/lsh", "kinds of attention, repeated over the blocks: local, lsh"),
	NR_OPT_INT(struct reformer, rounds, 1, 1, 64, "lsh: rounds of hashing"),
	NR_OPT_STRING(struct reformer, buckets, "auto", "lsh: buckets of a round, or factors as in 32x64; auto: by the length"),
	NR_OPT_INT(struct reformer, chunk, 64, 1, 1000000, "lsh: tokens of a chunk"),
	NR_OPT_INT(struct reformer, before, 1, 0, 64, "lsh: earlier chunks that a chunk sees"),
	NR_OPT_INT(struct reformer, after, 0, 0, 64, "lsh: later chunks that a chunk sees"),
	NR_OPT_INT(struct reformer, local_chunk, 64, 1, 1000000, "local: tokens of a chunk"),
	NR_OPT_INT(struct reformer, local_before, 1, 0, 64, "local: earlier chunks that a chunk sees"),
	NR_OPT_INT(struct reformer, local_after, 0, 0, 64, "local: later chunks that a chunk sees"),
	NR_OPT_INT(struct reformer, ff_chunk, 0, 0, 10000000, "tokens that the MLP takes at a time; 0: all"),
	NR_OPT_BOOL(struct reformer, reversible, "0",
		"training: keep the last block alone and rebuild the others from it in backward; memory does not grow with depth"),
	NR_OPT_STRING(struct reformer, act, "relu", "activation of the MLP: gelu, gelu_tanh, relu, silu"),
	NR_OPT_FLOAT(struct reformer, dropout, 0, 0, 0.99, "dropout of embeddings and branches"),
	NR_OPT_FLOAT(struct reformer, attention_dropout, 0, 0, 0.99, "dropout of attention"),
	NR_OPT_ENUM(struct reformer, pool, "cls", pools, "what the head reads: the first token, or the mean of all"),
	NR_OPT_INT(struct reformer, classes, 2, 1, 1000000, "outputs of the classification head"),
	NR_OPT_END
};

static const struct nr_preset presets[] = {
	{ "reformer-base", "dim=256,depth=6,heads=12,head_dim=64,hidden=512,axial=64x64,axial_dims=64x192" },
	{ "reformer-tiny", "dim=64,depth=2,heads=2,hidden=128" },
	{ NULL, NULL },
};

#define SELF "attention.self_attention."
static const struct nr_rename huggingface[] = {
	{ "word.", "reformer.embeddings.word_embeddings." },
	{ "position.weight", "reformer.embeddings.position_embeddings.embedding.weight" },
	{ "position.rows", "reformer.embeddings.position_embeddings.weights.0" },
	{ "position.columns", "reformer.embeddings.position_embeddings.weights.1" },
	{ "attn.in.", "attention.layer_norm." }, { "attn.qkv.", SELF "query. " SELF "key. " SELF "value." },
	{ "attn.shared.", SELF "query_key. " SELF "value." }, { "attn.proj.", "attention.output.dense." },
	{ "mlp.in.", "feed_forward.layer_norm." }, { "mlp.fc1.", "feed_forward.dense.dense." },
	{ "mlp.fc2.", "feed_forward.output.dense." },
	{ "blocks.", "reformer.encoder.layers." }, { "final.", "reformer.encoder.layer_norm." }, { "head.", "classifier." },
	{ NULL, NULL },
};
static const struct nr_naming namings[] = { { .name = "huggingface", .rules = huggingface }, { .name = NULL } };

/* ---- options that are lists -------------------------------------------------------------------------------- */

/* "2x4" as at most `most` whole numbers; how many, or 0. */
static int factors(const char *text, int64_t *out, int most)
{
	int n = 0;
	for (char *end; *text; text = *end ? end + 1 : end) {
		if (n == most) return 0;
		out[n] = strtoll(text, &end, 10);
		if (end == text || out[n++] < 1 || (*end && *end != 'x') || (*end && !end[1])) return 0;
	}
	return n;
}

static int64_t bits_of(int64_t n)
{
	int64_t bits = 0;
	for (; n; n >>= 1) bits++;
	return bits;
}

/* As Hugging Face chooses them: twice as many buckets as chunks, a power of two; two factors if they are many. */
static bool buckets_of(const struct reformer *c, int64_t T, int64_t out[NR_LSH_FACTORS])
{
	if (strcmp(c->buckets, "auto")) return factors(c->buckets, out, NR_LSH_FACTORS) > 0;
	const int64_t power = bits_of(2 * (T / c->chunk > 1 ? T / c->chunk : 1)) - 1;
	const int64_t root = (int64_t)sqrt((double)(c->positions / c->chunk)), most = 2 * (root > c->chunk ? root : c->chunk);
	const bool two = ((int64_t)1 << power) > most;
	out[0] = (int64_t)1 << (two ? power / 2 : power);
	if (two) out[1] = (int64_t)1 << (power - power / 2);
	return true;
}

/* Is block i local? -1: the pattern has a word that is none. */
static int is_local(const struct reformer *c, int64_t i)
{
	int64_t words = 1;
	for (const char *s = c->layers; *s; s++) words += *s == '/';
	const char *s = c->layers;
	for (i %= words; i > 0; i--) s = strchr(s, '/') + 1;
	const size_t n = strcspn(s, "/");
	return n == 5 && !strncmp(s, "local", n) ? 1 : n == 3 && !strncmp(s, "lsh", n) ? 0 : -1;
}

/* Texts are filled up to whole chunks of all kinds of layers, as Hugging Face does: the first chunk sees the last one, if only padding. */
static int64_t multiple_of(const struct reformer *c)
{
	bool local = false, lsh = false;
	for (int64_t i = 0; i < c->depth; i++) *(is_local(c, i) ? &local : &lsh) = true;
	int64_t a = c->chunk, b = c->local_chunk;
	while (b) {
		const int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return !local ? c->chunk : !lsh ? c->local_chunk : c->chunk / a * c->local_chunk;
}

/* ---- the model --------------------------------------------------------------------------------------------- */

static nr_t *with_positions(struct nr_net *n, nr_t *x, const struct reformer *c)
{
	int64_t grid[2], dims[2];
	if (!x) return NULL;
	if (*c->axial) {
		if (factors(c->axial, grid, 2) != 2 || factors(c->axial_dims, dims, 2) != 2 || dims[0] + dims[1] != c->dim)
			return nr_net_fail(n, NR_EVALUE, "axial",
				"axial=%s,axial_dims=%s is not a grid such as 64x64 and two widths that add up to %lld", c->axial,
				c->axial_dims, (long long)c->dim);
		return nr_add_axial(n, x, nr_param(n, "position.rows", NR_NORMAL_02, NR_SHAPE(grid[0], 1, dims[0])),
			nr_param(n, "position.columns", NR_NORMAL_02, NR_SHAPE(1, grid[1], dims[1])));
	}
	if (x->d[1] > c->positions)
		return nr_net_fail(n, NR_ELIMIT, "position", "texts have %lld tokens, but there are only %lld positions",
			(long long)x->d[1], (long long)c->positions);
	nr_t *table = nr_param(n, "position.weight", NR_NORMAL_02, NR_SHAPE(c->positions, c->dim));
	return nr_add_table(n, x, nr_span(n, nr_reshape(n, table, NR_SHAPE(1, c->positions, c->dim)), 0, x->d[1]));
}

static nr_t *embed(struct nr_net *n, const struct nr_inputs *in, const void *conf)
{
	const struct reformer *c = conf;
	nr_t *x = nr_embedding(n, "word", in->ids, c->vocab, c->dim, -1);
	if (!x) return NULL;
	const int32_t rest = (int32_t)x->d[1] - 1;
	nr_with_tokens(n, x, (struct nr_tokens){ .special = 1, .h = rest > 0, .w = rest, .heads = (int32_t)c->heads,
		.valid = in->valid });
	return nr_hidden(n, nr_dropout(n, with_positions(n, nr_dropout(n, x, c->dropout), c), c->dropout), "embed");
}

static nr_t *attend(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const struct reformer *c, int64_t i, nr_t **buckets)
{
	const int64_t width = c->heads * (c->head_dim ? c->head_dim : c->dim / c->heads);
	const int local = is_local(c, i);
	struct nr_lsh_options o = { .heads = c->heads, .layer = i, .multiple = multiple_of(c), .masked = 1,
		.dropout = (float)c->attention_dropout };
	if (!c->head_dim && c->dim % c->heads)
		return nr_net_fail(n, NR_ESHAPE, "heads",
			"%lld channels cannot be divided into %lld heads: set head_dim", (long long)c->dim,
			(long long)c->heads);
	if (local < 0) return nr_net_fail(n, NR_EVALUE, "layers", "'%s' has a kind that is neither local nor lsh", c->layers);
	if (local) {
		o.chunk = c->local_chunk, o.before = c->local_before, o.after = c->local_after;
		x = nr_local_attention(n, nr_linear_no_bias(n, "attn.qkv", x, 3 * width), o);
	} else {
		o.rounds = c->rounds, o.chunk = c->chunk, o.before = c->before, o.after = c->after;
		o.normalize_keys = o.not_self = 1, o.rotations = in->rotations;
		if (x && !buckets_of(c, x->d[1], o.buckets))
			return nr_net_fail(n, NR_EVALUE, "buckets", "'%s' is neither auto nor a number, or factors as in 32x64",
				c->buckets);
		x = nr_lsh_attention(n, nr_linear_no_bias(n, "attn.shared", x, 2 * width), o, buckets);
	}
	x = nr_norm(n, "attn.inner", nr_norm(n, "attn.heads", x));
	return nr_dropout(n, nr_linear_no_bias(n, "attn.proj", x, c->dim), c->dropout);
}

/* Some tokens at a time: what lies between the two layers is then small. Norms there would see those tokens only. */
static nr_t *feed_forward(struct nr_net *n, nr_t *x, const struct reformer *c)
{
	const struct nr_block b = { .heads = c->heads, .hidden = c->hidden, .act = c->act, .dropout = c->dropout };
	if (!x || !c->ff_chunk || c->ff_chunk >= x->d[1]) return nr_block_mlp(n, x, &b);
	nr_t *y = NULL;
	for (int64_t t = 0; t < x->d[1]; t += c->ff_chunk) {
		nr_t *part = nr_block_mlp(n, nr_span(n, x, t, t + c->ff_chunk < x->d[1] ? t + c->ff_chunk : x->d[1]), &b);
		y = y ? nr_join(n, y, part) : part;
	}
	return y ? nr_with_tokens(n, y, *x->tok) : NULL;
}

/* Channels of a beside those of b. */
static nr_t *beside(struct nr_net *n, nr_t *a, nr_t *b)
{
	if (!a || !b) return NULL;
	const int64_t B = a->d[0], T = a->d[1], C = a->d[2];
	nr_t *rows = nr_join(n, nr_reshape(n, a, NR_SHAPE(B * T, 1, C)), nr_reshape(n, b, NR_SHAPE(B * T, 1, C)));
	nr_t *y = nr_reshape(n, rows, NR_SHAPE(B, T, 2 * C));
	return y ? nr_with_tokens(n, y, *a->tok) : NULL;
}

static nr_t *sum(struct nr_net *n, const char *branch, nr_t *x, nr_t *y, const struct reformer *c)
{
	return c->reversible ? nr_residual_reversible(n, branch, x, y) : nr_residual(n, branch, x, y, 0);
}

static nr_t *encode_layers(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf, nr_t **layer)
{
	const struct reformer *c = conf;
	nr_t *x1 = x, *x2 = x;
	for (int64_t i = 0; i < c->depth; i++) {
		nr_t *buckets = NULL;
		nr_push_nth(n, "blocks", i, c->depth);
		x1 = sum(n, "attn", x1, attend(n, in, nr_norm(n, "attn.in", x2), c, i, &buckets), c);
		x2 = sum(n, "mlp", x2, feed_forward(n, nr_norm(n, "mlp.in", x1), c), c);
		nr_pop(n, x2);
		nr_hidden(n, x2, "block%lld", (long long)i);
		if (buckets) nr_hidden(n, buckets, "buckets%lld", (long long)i);
		if (layer) layer[i] = beside(n, x1, x2);
	}
	x = nr_norm(n, "final", beside(n, x1, x2));
	if (layer) layer[c->depth - 1] = x;
	return nr_dropout(n, x, c->dropout);
}

static nr_t *encode(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf)
{
	return encode_layers(n, in, x, conf, NULL);
}

static nr_t *pool(struct nr_net *n, nr_t *x, const void *conf)
{
	return ((const struct reformer *)conf)->pool ? nr_mean_all_tokens(n, x, NULL) : nr_first_token(n, x);
}

static nr_t *head(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct reformer *c = conf;
	x = nr_activate(n, "tanh", nr_linear(n, "head.dense", nr_dropout(n, x, c->dropout), c->dim));
	return nr_linear(n, "head.out_proj", nr_dropout(n, x, c->dropout), c->classes);
}

/* ---- in a file --------------------------------------------------------------------------------------------- */

static const char *const signs[] = { "word.weight", "position.weight", "position.rows", "blocks.0.attn.in.weight",
	"blocks.0.attn.shared.weight", "blocks.0.attn.qkv.weight", "blocks.0.attn.proj.weight", "blocks.0.mlp.fc1.weight", "final.weight",
	"head.dense.weight", NULL };

static char *pair_text(const struct nr_look *l, const char *key)
{
	const json_t *list = json_object_get(l->config, key);
	return nr_arena_printf(l->arena, "%lldx%lld", (long long)json_integer_value(json_array_get(list, 0)),
		(long long)json_integer_value(json_array_get(list, 1)));
}

static const char *layers_text(const struct nr_look *l, int64_t depth)
{
	const char *text = NULL;
	for (int64_t i = 0; i < depth; i++) {
		const bool lsh = nr_look_find(l, nr_arena_printf(l->arena, "blocks.%lld.attn.shared.weight", (long long)i));
		text = nr_arena_printf(l->arena, "%s%s%s", text ? text : "", text ? "/" : "", lsh ? "lsh" : "local");
	}
	return text;
}

static void saw_config(const struct nr_look *l, struct nr_sighting *s)
{
	static const char *const names[][2] = { { "heads", "num_attention_heads" }, { "head_dim", "attention_head_size" },
		{ "rounds", "num_hashes" }, { "chunk", "lsh_attn_chunk_length" }, { "before", "lsh_num_chunks_before" },
		{ "after", "lsh_num_chunks_after" }, { "local_chunk", "local_attn_chunk_length" },
		{ "local_before", "local_num_chunks_before" }, { "local_after", "local_num_chunks_after" },
		{ "ff_chunk", "chunk_size_feed_forward" } };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (nr_hf_number(l->config, names[i][1]) >= 0) nr_saw(s, names[i][0], (int64_t)nr_hf_number(l->config, names[i][1]));
	const json_t *buckets = json_object_get(l->config, "num_buckets");
	const char *act = nr_hf_text(l->config, "hidden_act"), *ours = nr_hf_act(act ? act : "relu");
	if (json_is_integer(buckets))
		nr_saw_text(s, "buckets", nr_arena_printf(l->arena, "%lld", (long long)json_integer_value(buckets)));
	if (json_array_size(buckets) == 2) nr_saw_text(s, "buckets", pair_text(l, "num_buckets"));
	if (nr_look_find(l, "position.rows")) {
		const struct nr_st_tensor *rows = nr_look_find(l, "position.rows"), *columns = nr_look_find(l, "position.columns");
		nr_saw_text(s, "axial", pair_text(l, "axial_pos_shape"));
		nr_saw_text(s, "axial_dims", pair_text(l, "axial_pos_embds_dim"));
		if (columns && rows->nd == 3 && columns->nd == 3) nr_saw_at_most(s, "length", rows->shape[0] * columns->shape[1]);
	}
	nr_saw_text(s, "act", ours);
	if (ours) nr_saw_all(s);
}

static bool measure(const struct nr_look *l, struct nr_sighting *s)
{
	const struct nr_st_tensor *word = nr_look_find(l, "word.weight");
	const char *type = nr_hf_text(l->config, "model_type");
	if (!word || word->nd != 2 || word->shape[1] < 1 || word->shape[1] > 65536) return false;
	const int64_t C = word->shape[1], hidden = nr_look_rows(l, "blocks.0.mlp.fc1.weight", C);
	const int64_t depth = nr_look_depth(l, "mlp.fc1.weight");
	if (hidden < 0 || depth < 1) return false;
	nr_saw_key(s, "vocab", word->shape[0]);
	nr_saw_key(s, "dim", C);
	nr_saw_key(s, "depth", depth);
	nr_saw_key(s, "hidden", hidden);
	nr_saw(s, "positions", nr_look_rows(l, "position.weight", C));
	nr_saw_at_most(s, "length", nr_look_rows(l, "position.weight", C));
	nr_saw(s, "classes", nr_look_rows(l, "head.out_proj.weight", C));
	nr_saw_text(s, "layers", layers_text(l, depth));
	if (type && !strcmp(type, "reformer")) saw_config(l, s);
	else nr_assumed(s, "heads", nr_heads_assumed(C));
	return true;
}

static json_t *list_of(const char *text)
{
	int64_t value[NR_LSH_FACTORS];
	const int n = factors(text, value, NR_LSH_FACTORS);
	if (n == 1) return json_integer(value[0]);
	json_t *list = json_array();
	for (int i = 0; i < n; i++) json_array_append_new(list, json_integer(value[i]));
	return n ? list : (json_decref(list), json_null());
}

static json_t *config(const struct nr_saved *w)
{
	const struct reformer *c = w->model->conf;
	const bool classifies = nr_store_find(w->store, "head.out_proj.weight");
	json_t *kinds = json_array();
	for (int64_t i = 0; i < c->depth; i++) json_array_append_new(kinds, json_string(is_local(c, i) ? "local" : "lsh"));
	json_t *j = json_pack("{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:b,"
		" s:b, s:o}",
		"architectures", classifies ? "ReformerForSequenceClassification" : "ReformerModel", "model_type", "reformer",
		"vocab_size", (json_int_t)c->vocab, "hidden_size", (json_int_t)c->dim, "num_hidden_layers", (json_int_t)c->depth,
		"num_attention_heads", (json_int_t)c->heads, "attention_head_size",
		(json_int_t)(c->head_dim ? c->head_dim : c->dim / c->heads), "feed_forward_size", (json_int_t)c->hidden,
		"max_position_embeddings", (json_int_t)c->positions, "pad_token_id", (json_int_t)c->pad, "num_hashes",
		(json_int_t)c->rounds,
		"lsh_attn_chunk_length", (json_int_t)c->chunk, "lsh_num_chunks_before", (json_int_t)c->before, "lsh_num_chunks_after",
		(json_int_t)c->after, "local_attn_chunk_length", (json_int_t)c->local_chunk, "local_num_chunks_before",
		(json_int_t)c->local_before, "local_num_chunks_after", (json_int_t)c->local_after, "chunk_size_feed_forward",
		(json_int_t)c->ff_chunk, "hidden_act", nr_hf_act_name(c->act), "layer_norm_eps", w->eps, "is_decoder", 0,
		"axial_pos_embds",
		*c->axial != 0, "attn_layers", kinds);
	if (!j) return NULL;
	json_object_set_new(j, "num_buckets", list_of(c->buckets));
	if (*c->axial) json_object_set_new(j, "axial_pos_shape", list_of(c->axial));
	if (*c->axial) json_object_set_new(j, "axial_pos_embds_dim", list_of(c->axial_dims));
	if (classifies) json_object_set_new(j, "num_labels", json_integer(c->classes));
	return j;
}

static const struct nr_model_file file = {
	.signs = signs, .measure = measure, .config = config,
	.doubt = "heads, chunks and buckets are unknown: heads of 64 channels and the defaults are assumed",
};

const struct nr_model nr_model_reformer = {
	.name = "reformer", .title = "Reformer", .cite = "arXiv:2001.04451", .reads = NR_TEXTS, .conf_size = sizeof(struct reformer),
	.options = options, .presets = presets, .namings = namings, .norms = { .norm = "layer", .placement = "pre", .eps = 1e-12 },
	.embed = embed, .encode = encode, .encode_layers = encode_layers, .pool = pool, .head = head, .file = &file,
};
