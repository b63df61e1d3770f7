/* See text.h; and the tasks encoder, mlm and mlm+nsp. */
#include "golden/text.h"

#include <string.h>

#include "graph/net.h"
#include "nn/op.h"

static const char *model_text(struct golden_case *c, int64_t length)
{
	const char *family = golden_config_text(c, "model_type", NULL, nr_st_metadata(c->file, "family"));
	return nr_arena_printf(c->arena,
		"%s:vocab=%g,dim=%g,depth=%g,heads=%g,hidden=%g,positions=%g,types=%g,pad=%g,act=%s,length=%lld", family,
		golden_number(c, "vocab_size"), golden_number(c, "hidden_size"), golden_number(c, "num_hidden_layers"),
		golden_number(c, "num_attention_heads"), golden_number(c, "intermediate_size"),
		golden_number(c, "max_position_embeddings"), golden_number_or(c, "type_vocab_size", 2), golden_number(c, "pad_token_id"),
		golden_config_act(c), (long long)length);
}

void golden_text_open(struct golden_case *c, struct golden_text *t, const char *naming, const char *norms)
{
	const struct golden_ints ids = golden_ints(c, -1, "in.input_ids");
	golden_expect(c, ids.nd >= 2, "in.input_ids");
	t->length = ids.d[ids.nd - 1];
	t->rows = ids.n / t->length;
	golden_model_open(c, &t->m, model_text(c, t->length), naming, norms, golden_number(c, "layer_norm_eps"));
	t->in = nr_model_inputs(t->m.net, &t->m.model, t->rows);
	if (golden_has(c, "in.token_type_ids")) t->in.types = nr_input(t->m.net, "types", NR_I32, NR_SHAPE(t->rows, t->length));
	nr_text_encode(t->m.net, &t->m.model, &t->in, &t->text);
	nr_tap(t->m.net, "last", t->text.tokens);
}

void golden_text_put(struct golden_case *c, struct golden_text *t, const nr_t *input, const char *name)
{
	const struct golden_ints x = golden_ints(c, -1, "%s", name);
	golden_expect(c, x.n == nr_len(input), name);
	memcpy(nr_plan_data(t->m.plan, input), x.x, (size_t)x.n * sizeof *x.x);
}

/* Padding is a suffix: the ones of a row of the mask are counted. */
static void put_lengths(struct golden_case *c, struct golden_text *t)
{
	int32_t *valid = nr_plan_data(t->m.plan, t->in.valid);
	for (int64_t b = 0; b < t->rows; b++) valid[b] = (int32_t)t->length;
	if (!golden_has(c, "in.attention_mask")) return;
	const struct golden_ints mask = golden_ints(c, -1, "in.attention_mask");
	golden_expect(c, mask.n == t->rows * t->length, "in.attention_mask");
	for (int64_t b = 0; b < t->rows; b++) {
		const int32_t *row = mask.x + b * t->length;
		for (valid[b] = 0; valid[b] < t->length && row[valid[b]]; valid[b]++) {}
		for (int64_t i = valid[b]; i < t->length; i++) golden_expect(c, !row[i], "a mask that is not a prefix");
	}
}

void golden_text_load(struct golden_case *c, struct golden_text *t, nr_t *loss)
{
	golden_model_load(c, &t->m, loss, NULL);
	golden_text_put(c, t, t->in.ids, "in.input_ids");
	if (t->in.types) golden_text_put(c, t, t->in.types, "in.token_type_ids");
	put_lengths(c, t);
}

void golden_text_run(struct golden_case *c, struct golden_text *t)
{
	golden_model_run(c, &t->m, 0);
	golden_model_out(c, &t->m, nr_plan_tap(t->m.plan, "embed", NULL), "out", "hidden_states.0");
	for (int64_t i = 0; i < t->text.depth; i++)
		golden_model_out(c, &t->m, t->text.layer[i], "out", nr_arena_printf(c->arena, "hidden_states.%lld", (long long)i + 1));
	golden_model_out(c, &t->m, t->text.tokens, "out", "last_hidden_state");
	const nr_t *places = nr_plan_tap(t->m.plan, "positions", NULL);
	if (places) golden_check_ints(c, nr_plan_data(t->m.plan, places), nr_len(places), "out.position_ids");
}

void golden_text_finish(struct golden_case *c, struct golden_text *t)
{
	golden_model_check(c, &t->m);
	golden_model_train(c, &t->m);
	golden_model_close(&t->m);
}

/* ---- encoder, mlm, mlm+nsp ------------------------------------------------------------------------------------------------ */

/* The probabilities of block i, if the file has them, from its own queries and keys. */
static nr_t *attention_of(struct golden_case *c, struct golden_text *t, int64_t i)
{
	const struct nr_net *n = t->m.net;
	if (!golden_has(c, nr_arena_printf(c->arena, "out.attentions.%lld", (long long)i))) return NULL;
	const struct nr_attention_options o = { .heads = nr_model_int(&t->m.model, "heads"), .valid = t->in.valid };
	for (int32_t k = 0, seen = 0; k < n->n_node; k++)
		if (n->node[k]->op == &nr_op_attention && seen++ == i)
			return nr_tap(t->m.net, nr_arena_printf(c->arena, "attentions.%lld", (long long)i),
				nr_attention_map(t->m.net, n->node[k]->in[0], o));
	return NULL;
}

static int encoder(struct golden_case *c, struct golden_text *t)
{
	struct nr_net *n = t->m.net;
	const int64_t C = nr_model_int(&t->m.model, "dim");
	const bool with_pooler = golden_has(c, "in.r_pooler");
	nr_t **map = golden_alloc(c, t->text.depth, sizeof *map);
	for (int64_t i = 0; i < t->text.depth; i++) map[i] = attention_of(c, t, i);
	nr_t *r_hidden = nr_input(n, "r_hidden", NR_REAL, NR_SHAPE(t->rows, t->length, C)), *r_pooler = NULL, *pooled = NULL;
	nr_t *loss = nr_reshape(n, nr_weighted_sum(n, t->text.tokens, r_hidden), NR_SHAPE(1));
	if (with_pooler) {
		r_pooler = nr_input(n, "r_pooler", NR_REAL, NR_SHAPE(t->rows, C));
		pooled = nr_tap(n, "pooled", nr_text_pooler(n, t->text.tokens));
		loss = nr_add(n, loss, nr_reshape(n, nr_weighted_sum(n, pooled, r_pooler), NR_SHAPE(1)));
	}
	golden_text_load(c, t, loss);
	golden_model_put(c, &t->m, r_hidden, "in.r_hidden");
	if (with_pooler) golden_model_put(c, &t->m, r_pooler, "in.r_pooler");
	golden_text_run(c, t);
	golden_model_out(c, &t->m, pooled, "out", "pooler_output");
	for (int64_t i = 0; i < t->text.depth; i++)
		golden_model_out(c, &t->m, map[i], "out", nr_arena_printf(c->arena, "attentions.%lld", (long long)i));
	golden_text_finish(c, t);
	return GOLDEN_RAN;
}

static int masked_words(struct golden_case *c, struct golden_text *t, bool next)
{
	struct nr_net *n = t->m.net;
	const bool own = golden_has(c, "param.cls.predictions.decoder.weight") || golden_has(c, "param.lm_head.decoder.weight");
	nr_t *labels = nr_input(n, "labels", NR_I32, NR_SHAPE(t->rows, t->length)), *label = NULL, *related = NULL;
	nr_t *logits = nr_tap(n, "logits", nr_mlm_logits(n, &t->m.model, t->text.tokens, !own));
	nr_t *loss = nr_cross_entropy(n, logits, labels, 0, NR_TEXT_IGNORED);
	if (next) {
		label = nr_input(n, "next", NR_I32, NR_SHAPE(t->rows));
		related = nr_tap(n, "related", nr_nsp_logits(n, nr_text_pooler(n, t->text.tokens)));
		loss = nr_add(n, loss, nr_cross_entropy(n, related, label, 0, NR_TEXT_IGNORED));
	}
	golden_text_load(c, t, loss);
	golden_text_put(c, t, labels, "in.labels");
	if (next) golden_text_put(c, t, label, "in.next_sentence_label");
	golden_text_run(c, t);
	const int32_t *v = nr_plan_data(t->m.plan, labels);
	int32_t count = 0;
	for (int64_t i = 0; i < nr_len(labels); i++) count += v[i] != NR_TEXT_IGNORED;
	golden_check_ints(c, &count, 1, "out.n_labels");
	golden_model_out(c, &t->m, logits, "out", next ? "prediction_logits" : "logits");
	golden_model_out(c, &t->m, related, "out", "seq_relationship_logits");
	golden_text_finish(c, t);
	return GOLDEN_RAN;
}

static int run(struct golden_case *c)
{
	const char *task = nr_st_metadata(c->file, "task"), *family = nr_st_metadata(c->file, "family");
	struct golden_text t = { .rows = 0 };
	if (!task) golden_stop(c, NULL, "the metadata has no task");
	if (!strcmp(task, "embed")) return golden_text_minilm(c);
	if (!strncmp(task, "simcse", 6)) return golden_text_simcse(c);
	const bool prefix = golden_has(c, nr_arena_printf(c->arena, "param.%s.embeddings.word_embeddings.weight", family));
	golden_text_open(c, &t, prefix ? "huggingface" : "huggingface_base", "");
	if (!strcmp(task, "encoder")) return encoder(c, &t);
	if (!strcmp(task, "mlm") || !strcmp(task, "mlm+nsp")) return masked_words(c, &t, strchr(task, '+') != NULL);
	golden_stop(c, NULL, "no code for the task '%s'", task);
}

int golden_model_bert(struct golden_case *c) { return run(c); }
int golden_model_roberta(struct golden_case *c) { return run(c); }
