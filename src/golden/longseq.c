/* norma-golden-model-1, task longseq: families lra (full, block sparse and LSH attention), bigbird and reformer as Hugging Face has
 * them, with the random blocks and rotations of the file. */
#include <string.h>

#include "golden/text.h"
#include "graph/net.h"
#include "norma/nn.h"

struct longseq {
	struct golden_model m;
	struct nr_inputs in;
	nr_t *labels, *logits, *tokens;
	int64_t rows, length;
	const char *ids;                    /* its name in the file */
};

/* Inputs of the net that the file's tensors fill as they are. */
static nr_t *given(struct golden_case *c, struct longseq *s, const char *file, const char *name, enum nr_dtype dtype)
{
	struct nr_shape shape = { 0 };
	if (!golden_has(c, file)) return NULL;
	if (dtype == NR_I32) {
		const struct golden_ints t = golden_ints(c, -1, "%s", file);
		shape.nd = t.nd;
		memcpy(shape.d, t.d, sizeof(int64_t) * (size_t)t.nd);
	} else {
		const struct golden_tensor t = golden_tensor(c, -1, "%s", file);
		shape.nd = t.nd;
		memcpy(shape.d, t.d, sizeof(int64_t) * (size_t)t.nd);
	}
	return nr_input(s->m.net, name, dtype, shape);
}

static void put(struct golden_case *c, struct longseq *s, const nr_t *input, const char *name)
{
	if (!input || !nr_plan_data(s->m.plan, input)) return;          /* nothing reads it */
	if (input->dtype == NR_REAL) {
		golden_model_put(c, &s->m, input, name);
		return;
	}
	const struct golden_ints x = golden_ints(c, -1, "%s", name);
	golden_expect(c, x.n == nr_len(input), name);
	memcpy(nr_plan_data(s->m.plan, input), x.x, (size_t)x.n * sizeof *x.x);
}

/* Padding is a suffix: of the mask's zeros, or of the padding's ids. */
static void put_lengths(struct golden_case *c, struct longseq *s)
{
	const bool masked = golden_has(c, "in.attention_mask");
	int32_t *valid = nr_plan_data(s->m.plan, s->in.valid);
	const struct golden_ints x = golden_ints(c, -1, "%s", masked ? "in.attention_mask" : s->ids);
	golden_expect(c, x.n == s->rows * s->length, x.name);
	for (int64_t b = 0; valid && b < s->rows; b++) {
		const int32_t *row = x.x + b * s->length;
		const bool pads = masked || !strcmp(s->ids, "in.inputs");       /* Hugging Face's ids alone mask nothing */
		for (valid[b] = (int32_t)s->length; pads && valid[b] > 0 && !row[valid[b] - 1]; valid[b]--) {}
		for (int64_t i = 0; pads && i < valid[b]; i++) golden_expect(c, row[i] != 0, "padding that is not a suffix");
	}
}

static void open_model(struct golden_case *c, struct longseq *s, const char *text, const char *naming)
{
	golden_model_open(c, &s->m, text, naming, "", golden_number(c, "layer_norm_eps"));
	s->in = nr_model_inputs(s->m.net, &s->m.model, s->rows);
	if (golden_has(c, "in.token_type_ids")) s->in.types = nr_input(s->m.net, "types", NR_I32, NR_SHAPE(s->rows, s->length));
	s->in.random_blocks = given(c, s, "in.rand_blocks", "random_blocks", NR_I32);
	s->in.rotations = given(c, s, "in.rotations", "rotations", NR_REAL);
}

static void sizes(struct golden_case *c, struct longseq *s, const char *ids)
{
	const struct golden_ints x = golden_ints(c, 2, "%s", ids);
	s->ids = ids;
	s->rows = x.d[0];
	s->length = x.d[1];
}

/* Records the rest, runs it, compares. first, each: names of the embedded tokens and of blocks in the file. */
static int run(struct golden_case *c, struct longseq *s, const char *labels, const char *first, const char *each, int from)
{
	struct nr_net *n = s->m.net;
	const struct nr_model_spec *m = &s->m.model;
	s->labels = nr_input(n, "labels", NR_I32, NR_SHAPE(s->rows));
	s->tokens = nr_tap(n, "tokens", nr_model_tokens(n, m, &s->in));
	s->logits = nr_tap(n, "logits", nr_model_head(n, m, m->of->pool(n, s->tokens, m->conf)));
	golden_model_load(c, &s->m, nr_cross_entropy(n, s->logits, s->labels, 0, -100), NULL);
	put(c, s, s->in.ids, s->ids);
	put(c, s, s->in.types, "in.token_type_ids");
	put(c, s, s->in.random_blocks, "in.rand_blocks");
	put(c, s, s->in.rotations, "in.rotations");
	put(c, s, s->labels, labels);
	put_lengths(c, s);
	golden_model_run(c, &s->m, 0);
	golden_model_out(c, &s->m, nr_plan_tap(s->m.plan, "embed", NULL), "out", first);
	for (int64_t i = 0; i < nr_model_int(m, "depth"); i++) {
		char block[32], buckets[32];
		snprintf(block, sizeof block, "block%lld", (long long)i);
		snprintf(buckets, sizeof buckets, "buckets%lld", (long long)i);
		const nr_t *x = nr_plan_tap(s->m.plan, block, NULL);    /* without a final norm the last one has the name of the tokens */
		golden_model_out(c, &s->m, x ? x : s->tokens, "out", nr_arena_printf(c->arena, "%s.%lld", each, (long long)i + from));
		const nr_t *b = nr_plan_tap(s->m.plan, buckets, NULL);
		if (b) golden_check_ints(c, nr_plan_data(s->m.plan, b), nr_len(b), "out.buckets.%lld", (long long)i);
	}
	golden_model_out(c, &s->m, s->tokens, "out", "last_hidden_state");
	golden_model_out(c, &s->m, s->logits, "out", "logits");
	golden_model_check(c, &s->m);
	golden_model_train(c, &s->m);
	golden_model_close(&s->m);
	return GOLDEN_RAN;
}

int golden_model_lra(struct golden_case *c)
{
	struct longseq s = { .rows = 0 };
	const char *attention = golden_text(c, "attention"), *pooling = golden_text(c, "pooling");
	const bool lsh = !strcmp(attention, "lsh"), cls = !strcmp(pooling, "CLS");
	const double table = golden_has(c, "param.pos.weight") ? (double)golden_tensor(c, 2, "param.pos.weight").d[0] - cls
							       : golden_number(c, "max_len");
	sizes(c, &s, "in.inputs");
	const char *text = nr_arena_printf(c->arena,
		"lra:vocab=%g,dim=%g,depth=%g,heads=%g,hidden=%g,classes=%g,positions=%g,length=%lld,attention=%s,pool=%s,position=%s,"
		"block=%g,random=%g,rounds=%g,buckets=%g,multiple=%g,normalize_keys=%g,score_scale=%.9g", golden_number(c, "vocab_size"),
		golden_number(c, "emb_dim"), golden_number(c, "num_layers"), golden_number(c, "num_heads"), golden_number(c, "mlp_dim"),
		golden_number(c, "num_classes"), table, (long long)s.length, attention, cls ? "cls" : "mean_all",
		golden_text(c, "positions"),
		golden_number_or(c, "block_size", 64), golden_number_or(c, "num_rand_blocks", 3), golden_number_or(c, "num_hashes", 1),
		golden_number_or(c, "num_buckets", 10), golden_number_or(c, "chunk_multiple", 10),
		golden_config(c, "normalize_keys", NULL, 0), golden_number_or(c, "score_scale", 0));
	open_model(c, &s, text, lsh ? "lra_lsh" : "lra");
	return run(c, &s, "in.targets", "embedded", "hidden", 0);
}

int golden_model_bigbird(struct golden_case *c)
{
	struct longseq s = { .rows = 0 };
	sizes(c, &s, "in.input_ids");
	const char *text = nr_arena_printf(c->arena,
		"bigbird:vocab=%g,dim=%g,depth=%g,heads=%g,hidden=%g,positions=%g,types=%g,pad=%g,act=%s,length=%lld,classes=%g,block=%g,"
		"random=%g,bias=%g,rescale=%g", golden_number(c, "vocab_size"), golden_number(c, "hidden_size"),
		golden_number(c, "num_hidden_layers"), golden_number(c, "num_attention_heads"), golden_number(c, "intermediate_size"),
		golden_number(c, "max_position_embeddings"), golden_number_or(c, "type_vocab_size", 2), golden_number_or(c, "pad_token_id", 0),
		golden_config_act(c), (long long)s.length, golden_number(c, "num_labels"), golden_number(c, "block_size"),
		golden_number(c, "num_random_blocks"), golden_config(c, "use_bias", NULL, 1), golden_config(c, "rescale_embeddings", NULL, 0));
	open_model(c, &s, text, "huggingface");
	return run(c, &s, "in.labels", "hidden_states.0", "hidden_states", 1);
}

/* A number, or a list of two, as "2x4". */
static const char *grid(struct golden_case *c, const char *key)
{
	const json_t *v = json_object_get(c->config, key);
	if (json_is_array(v)) {
		const char *text = "";
		for (size_t i = 0; i < json_array_size(v); i++)
			text = nr_arena_printf(c->arena, "%s%s%g", text, i ? "x" : "", json_number_value(json_array_get(v, i)));
		return text;
	}
	return json_is_number(v) ? nr_arena_printf(c->arena, "%g", json_number_value(v)) : "auto";
}

int golden_model_reformer(struct golden_case *c)
{
	struct longseq s = { .rows = 0 };
	const json_t *kinds = json_object_get(c->config, "attn_layers");
	const char *layers = "";
	sizes(c, &s, "in.input_ids");
	for (size_t i = 0; i < json_array_size(kinds); i++)
		layers = nr_arena_printf(c->arena, "%s%s%s", layers, i ? "/" : "", json_string_value(json_array_get(kinds, i)));
	const bool axial = golden_config(c, "axial_pos_embds", NULL, 0) != 0;
	const char *text = nr_arena_printf(c->arena,
		"reformer:vocab=%g,dim=%g,depth=%zu,heads=%g,head_dim=%g,hidden=%g,positions=%g,length=%lld,classes=%g,act=%s,layers=%s,"
		"rounds=%g,buckets=%s,chunk=%g,before=%g,after=%g,local_chunk=%g,local_before=%g,local_after=%g,axial=%s,axial_dims=%s,"
		"ff_chunk=%g", golden_number(c, "vocab_size"), golden_number(c, "hidden_size"), json_array_size(kinds),
		golden_number(c, "num_attention_heads"), golden_number(c, "attention_head_size"), golden_number(c, "feed_forward_size"),
		golden_number(c, "max_position_embeddings"), (long long)s.length, golden_number(c, "num_labels"), golden_config_act(c), layers,
		golden_number_or(c, "num_hashes", 1), grid(c, "num_buckets"), golden_number(c, "lsh_attn_chunk_length"),
		golden_number_or(c, "lsh_num_chunks_before", 1), golden_number_or(c, "lsh_num_chunks_after", 0),
		golden_number_or(c, "local_attn_chunk_length", 64), golden_number_or(c, "local_num_chunks_before", 1),
		golden_number_or(c, "local_num_chunks_after", 0), axial ? grid(c, "axial_pos_shape") : "",
		axial ? grid(c, "axial_pos_embds_dim") : "", golden_number_or(c, "chunk_size_feed_forward", 0));
	open_model(c, &s, text, "huggingface");
	return run(c, &s, "in.labels", "embedded", "hidden", 0);
}
