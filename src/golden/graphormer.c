/* norma-golden-model-1, family graphormer: inputs as the model reads them; bias, hidden states, logits, gradients and three steps. */
#include <string.h>

#include "golden/graph_inputs.h"
#include "golden/model.h"
#include "models/graphormer.h"
#include "models/hf_config.h"
#include "norma/nn.h"

struct run {
	struct golden_model m;
	struct nr_inputs in;
	nr_t *bias, *tokens, *readout, *logits, *labels;
	bool simple;
};

static const char *act_of(struct golden_case *c)
{
	const char *text = golden_config_text(c, "activation", "activation_fn", "gelu"), *known;
	const char *word = nr_arena_printf(c->arena, "%.*s", (int)strcspn(text, " "), text);
	if (strstr(text, "tanh")) return "gelu_tanh";
	return (known = nr_hf_act(word)) ? known : word;
}

static const char *model_text(struct golden_case *c, const struct golden_ints *nodes, const struct golden_ints *edges, bool simple)
{
	const double hops = golden_number_or(c, "multi_hop_max_dist", 5);
	const char *sizes = nr_arena_printf(c->arena, "nodes=%lld,node_features=%lld,edge_features=%lld,paths=%lld", (long long)nodes->d[1],
		(long long)nodes->d[2], (long long)edges->d[edges->nd - 1], simple ? 0LL : (long long)edges->d[3]);
	const char *tables = nr_arena_printf(c->arena, "atoms=%g,bonds=%g,in_degrees=%g,out_degrees=%g,distances=%g,hop_matrices=%g",
		golden_number(c, "num_atoms"), golden_number(c, "num_edges"), golden_number(c, "num_in_degree"),
		golden_number(c, "num_out_degree"), golden_number(c, "num_spatial"), golden_number_or(c, "num_edge_dis", 128));
	return nr_arena_printf(c->arena, "graphormer:%s,%s,hops=%g,cut=%g,edges=%s,dim=%g,depth=%g,heads=%g,hidden=%g,classes=%g,act=%s",
		sizes, tables, hops > 0 ? hops : 0, golden_number_or(c, "spatial_pos_max", 1024), simple ? "simple" : "multi_hop",
		golden_number(c, "embedding_dim"), golden_number(c, "num_hidden_layers"), golden_number(c, "num_attention_heads"),
		golden_number(c, "ffn_embedding_dim"), golden_number_or(c, "num_classes", 1), act_of(c));
}

static const char *norms_of(struct golden_case *c)
{
	const bool separate = json_object_get(c->config, "cls_norm") != NULL;
	return nr_arena_printf(c->arena, "%s placement=%s embed=%s", separate ? golden_sep_text(c) : "layer",
		golden_config(c, "pre_layernorm", NULL, 0) ? "pre" : "post",
		golden_config(c, "encoder_normalize_before", NULL, 0) ? "layer" : "none");
}

/* By the file's words; labels of a cross entropy over classes are whole numbers. */
static nr_t *loss_of(struct golden_case *c, struct run *r)
{
	const char *text = golden_text(c, "loss");
	struct nr_net *n = r->m.net;
	const int64_t B = r->in.nodes->d[0], K = nr_model_int(&r->m.model, "classes");
	const bool binary = strstr(text, "binary"), classes = !binary && strstr(text, "entropy");
	const bool square = strstr(text, "square") || strstr(text, "^2");
	if (!binary && !classes && !square && !strchr(text, '|')) golden_stop(c, NULL, "no code for the loss '%s'", text);
	r->labels = classes ? nr_input(n, "labels", NR_I32, NR_SHAPE(B)) : nr_input(n, "labels", NR_REAL, NR_SHAPE(B, K));
	if (classes) return nr_cross_entropy(n, r->logits, r->labels, 0, -100);
	return nr_known_loss(n, r->logits, r->labels, binary ? NR_KNOWN_BCE : square ? NR_KNOWN_SQUARE : NR_KNOWN_ABSOLUTE);
}

static void put_ints(struct golden_case *c, struct run *r, const nr_t *input, const char *name)
{
	const struct golden_ints x = golden_ints(c, -1, "%s", name);
	golden_expect(c, x.n == nr_len(input), name);
	memcpy(nr_plan_data(r->m.plan, input), x.x, (size_t)x.n * sizeof *x.x);
}

static void put_inputs(struct golden_case *c, struct run *r, const struct golden_ints *nodes)
{
	int32_t *valid = nr_plan_data(r->m.plan, r->in.valid);
	const int64_t N = nodes->d[1], F = nodes->d[2];
	put_ints(c, r, r->in.nodes, "in.input_nodes");
	put_ints(c, r, r->in.in_degree, "in.in_degree");
	put_ints(c, r, r->in.out_degree, "in.out_degree");
	put_ints(c, r, r->in.distance, "in.spatial_pos");
	put_ints(c, r, r->in.edges, r->simple ? "in.attn_edge_type" : "in.input_edges");
	for (int64_t b = 0; b < nodes->d[0]; b++)
		for (valid[b] = 0; valid[b] < N && nodes->x[(b * N + valid[b]) * F];) valid[b]++;
	if (r->labels->dtype == NR_I32) put_ints(c, r, r->labels, "in.labels");
	else golden_model_put(c, &r->m, r->labels, "in.labels");
}

/* The raw graphs are for the preprocessing, and of the two forms of edges the model reads one. */
static void pass_over(struct golden_case *c)
{
	for (int64_t i = 0; i < nr_st_count(c->file); i++) {
		const char *name = nr_st_get(c->file, i)->name;
		const bool edges = !strcmp(name, "in.attn_edge_type") || !strcmp(name, "in.input_edges");
		if (edges || !strncmp(name, "in.graph.", 9)) c->seen[i] = true;
	}
}

static void compare(struct golden_case *c, struct run *r)
{
	const int64_t depth = nr_model_int(&r->m.model, "depth");
	golden_model_out(c, &r->m, r->bias, "out", "attn_bias");
	golden_model_out(c, &r->m, nr_plan_tap(r->m.plan, "embed", NULL), "out", "hidden_states.0");
	for (int64_t i = 0; i + 1 < depth; i++) {
		const nr_t *x = nr_plan_tap(r->m.plan, nr_arena_printf(c->arena, "block%lld", (long long)i), NULL);
		golden_model_out(c, &r->m, x, "out", nr_arena_printf(c->arena, "hidden_states.%lld", (long long)i + 1));
	}
	/* the last block's tap has the name of the tokens */
	golden_model_out(c, &r->m, r->tokens, "out", nr_arena_printf(c->arena, "hidden_states.%lld", (long long)depth));
	golden_model_out(c, &r->m, r->tokens, "out", "last_hidden_state");
	golden_model_out(c, &r->m, r->readout, "out", "pooled");
	golden_model_out(c, &r->m, r->logits, "out", "logits");
}

int golden_model_graphormer(struct golden_case *c)
{
	golden_check_graph_inputs(c);
	struct run r = { .simple = !strcmp(golden_config_text(c, "edge_type", NULL, "multi_hop"), "simple") };
	const struct golden_ints nodes = golden_ints(c, 3, "in.input_nodes");
	const struct golden_ints edges = r.simple ? golden_ints(c, 4, "in.attn_edge_type") : golden_ints(c, 5, "in.input_edges");
	const char *naming = nr_st_metadata(c->file, "naming");
	golden_model_open(c, &r.m, model_text(c, &nodes, &edges, r.simple), naming ? naming : "huggingface", norms_of(c),
		golden_number_or(c, "layer_norm_eps", 1e-5));
	struct nr_net *n = r.m.net;
	r.in = nr_model_inputs(n, &r.m.model, nodes.d[0]);
	r.tokens = nr_tap(n, "last", nr_model_tokens(n, &r.m.model, &r.in));
	if (golden_has(c, "out.attn_bias")) r.bias = nr_tap(n, "attn_bias", nr_graphormer_bias(n, &r.in, r.m.model.conf, true));
	r.readout = nr_tap(n, "readout", r.m.model.of->pool(n, r.tokens, r.m.model.conf));
	r.logits = nr_tap(n, "logits", nr_model_head(n, &r.m.model, r.readout));
	golden_model_load(c, &r.m, loss_of(c, &r), NULL);
	put_inputs(c, &r, &nodes);
	golden_model_run(c, &r.m, 0);
	pass_over(c);
	compare(c, &r);
	golden_model_check(c, &r.m);
	golden_model_train(c, &r.m);
	golden_model_close(&r.m);
	return GOLDEN_RAN;
}
