/* graphormer: transformer on graphs. Ying et al. 2021, arXiv:2106.05234; Hugging Face's form and names.
 *
 *   x = [virtual node, sum_f atom(x_f) + in_degree + out_degree], normed (site "embed")
 *   scores q k / sqrt(d) + bias, the same bias in all blocks: distances, edges on the shortest paths, the virtual node's distance
 *   read-out: N(act(W x_0)), then a linear layer whose one bias serves all outputs
 *
 * Post-norm as published for small models; the plan "placement=pre" makes the others, which have no norm behind the last block. The
 * virtual node is the special token of SepNorm. Nodes have no order: DTN has nothing to go by. Padding is a suffix. */
#include "models/graphormer.h"

#include <string.h>

#include "models/block.h"
#include "models/guess.h"
#include "models/hf_config.h"
#include "models/text_heads.h"
#include "norma/nn.h"
#include "norma/safetensors.h"

static const char *const edge_kinds[] = { "multi_hop", "simple", NULL };

#define G struct nr_graphormer
static const struct nr_option options[] = {
	NR_OPT_INT(G, nodes, 64, 1, 100000, "maximum number of nodes per graph"),
	NR_OPT_INT(G, node_features, 9, 1, 1000, "features of a node"),
	NR_OPT_INT(G, edge_features, 3, 1, 1000, "features of an edge"),
	NR_OPT_INT(G, paths, 5, 0, 1000, "edges per path in the inputs; 0: single edges, for edges=simple"),
	NR_OPT_INT(G, atoms, 4608, 1, 100000000, "number of values of all node features together"),
	NR_OPT_INT(G, bonds, 1536, 1, 100000000, "number of values of all edge features together"),
	NR_OPT_INT(G, in_degrees, 512, 1, 1000000, "rows of the in-degree table"),
	NR_OPT_INT(G, out_degrees, 512, 1, 1000000, "rows of the out-degree table"),
	NR_OPT_INT(G, distances, 512, 1, 1000000, "rows of the distance table"),
	NR_OPT_INT(G, hop_matrices, 128, 1, 100000, "matrices for positions on a path; the first `hops` are used"),
	NR_OPT_INT(G, hops, 5, 0, 100000, "edges of a path to use; 0: all"),
	NR_OPT_INT(G, cut, 1024, 0, 1000000, "distance from which two nodes do not attend to each other; 0: none"),
	NR_OPT_ENUM(G, edges, "multi_hop", edge_kinds,
		"edges that bias a pair: those on the shortest path, or only the edge between"),
	NR_OPT_INT(G, dim, 768, 1, 65536, "width of a token"),
	NR_OPT_INT(G, depth, 12, 1, 1024, "number of blocks"),
	NR_OPT_INT(G, heads, 32, 1, 1024, "attention heads"),
	NR_OPT_INT(G, hidden, 768, 1, 1000000, "width of the MLP"),
	NR_OPT_STRING(G, act, "gelu", "activation of the MLP and the read-out: gelu, gelu_tanh, relu, silu"),
	NR_OPT_FLOAT(G, dropout, 0, 0, 0.99, "dropout of embeddings and branches"),
	NR_OPT_FLOAT(G, attention_dropout, 0, 0, 0.99, "dropout of attention"),
	NR_OPT_FLOAT(G, activation_dropout, 0, 0, 0.99, "dropout after the MLP's activation"),
	NR_OPT_INT(G, classes, 1, 1, 1000000, "outputs of the head"),
	NR_OPT_END
};

#define DROPOUT ",attention_dropout=0.1,activation_dropout=0.1"
static const struct nr_preset presets[] = {
	{ "graphormer-slim", "dim=80,depth=12,heads=8,hidden=80" DROPOUT },
	{ "graphormer-base", "dim=768,depth=12,heads=32,hidden=768" DROPOUT },
	{ "graphormer-large", "dim=1024,depth=24,heads=32,hidden=1024" DROPOUT },
	/* for small molecules on a CPU: tables of ZINC's 28 atoms and 3 bonds */
	{ "graphormer-nano", "dim=48,depth=4,heads=4,hidden=48,node_features=1,edge_features=1,atoms=64,bonds=16,in_degrees=64,"
			     "out_degrees=64,hop_matrices=8" },
	{ NULL, NULL },
};

/* The encoder under P ("", "encoder."), the head as HEAD. */
#define NAMES(P, HEAD, HEAD_BIAS)                                                                                                \
	{ "head.weight", HEAD }, { "head.bias", HEAD_BIAS }, { "atom.", P "graph_encoder.graph_node_feature.atom_encoder." },     \
	{ "in_degree.", P "graph_encoder.graph_node_feature.in_degree_encoder." },                                                \
	{ "out_degree.", P "graph_encoder.graph_node_feature.out_degree_encoder." },                                              \
	{ "bias.vnode.", P "graph_encoder.graph_attn_bias.graph_token_virtual_distance." },                                       \
	{ "bias.distance.", P "graph_encoder.graph_attn_bias.spatial_pos_encoder." },                                             \
	{ "bias.edge.", P "graph_encoder.graph_attn_bias.edge_encoder." },                                                        \
	{ "bias.hop.", P "graph_encoder.graph_attn_bias.edge_dis_encoder." },                                                     \
	{ "vnode.", P "graph_encoder.graph_node_feature.graph_token." }, { "embed.", P "graph_encoder.emb_layer_norm." },         \
	{ "attn.qkv.", "self_attn.q_proj. self_attn.k_proj. self_attn.v_proj." }, { "attn.proj.", "self_attn.out_proj." },        \
	{ "attn.in.", "self_attn_layer_norm." }, { "attn.res.", "self_attn_layer_norm." }, { "mlp.in.", "final_layer_norm." },    \
	{ "mlp.res.", "final_layer_norm." }, { "mlp.fc1.", "fc1." }, { "mlp.fc2.", "fc2." },                                      \
	{ "blocks.", P "graph_encoder.layers." }, { "special.", "cls_norm_layer." }, { "rest.", "tok_norm_layer." },              \
	{ "readout.dense.", P "lm_head_transform_weight." }, { "readout.norm.", P "layer_norm." }, { NULL, NULL }
static const struct nr_rename with_head[] = { NAMES("encoder.", "classifier.classifier.weight", "classifier.lm_output_learned_bias") };
static const struct nr_rename base[] = { NAMES("", "classifier.weight", "lm_output_learned_bias") };
/* As the paper's own software has them. */
static const struct nr_rename official[] = { NAMES("encoder.", "encoder.embed_out.weight", "encoder.lm_output_learned_bias") };
/* Pre-norm files have a final norm that is never applied, and the paper's a layer that nothing reads. */
static const char *const unused[] = { "encoder.graph_encoder.final_layer_norm.weight", "encoder.graph_encoder.final_layer_norm.bias",
	"graph_encoder.final_layer_norm.weight", "graph_encoder.final_layer_norm.bias", "encoder.masked_lm_pooler.weight",
	"encoder.masked_lm_pooler.bias", NULL };
static const struct nr_naming namings[] = {
	{ .name = "huggingface", .rules = with_head, .ignored = unused }, { .name = "huggingface_base", .rules = base, .ignored = unused },
	{ .name = "official", .rules = official, .ignored = unused }, { .name = NULL },
};

/* ---- the model ------------------------------------------------------------------------------------------------------------ */

static nr_t *table(struct nr_net *n, const char *name, int64_t rows, int64_t cols, int init)
{
	nr_push(n, "%s", name);
	return nr_pop(n, nr_param(n, "weight", init, NR_SHAPE(rows, cols)));
}

nr_t *nr_graphormer_bias(struct nr_net *n, const struct nr_inputs *in, const struct nr_graphormer *c, bool whole)
{
	const int with_pad = NR_NORMAL_02 | NR_ZERO_ROW;
	if (!in->distance || !in->edges) return nr_net_fail(n, NR_EUSAGE, "graphormer", "a graph comes with distances and edges");
	nr_push(n, "bias");
	struct nr_path_bias g = { .distance = in->distance, .edges = in->edges, .hops = c->hops, .cut = whole ? 0 : c->cut,
		.distance_table = table(n, "distance", c->distances, c->heads, with_pad),
		.virtual_distance = table(n, "vnode", 1, c->heads, NR_NORMAL_02),
		.edge_table = table(n, "edge", c->bonds + 1, c->heads, with_pad) };
	if (c->edges == NR_EDGES_MULTI_HOP) g.hop_table = table(n, "hop", c->hop_matrices * c->heads * c->heads, 1, NR_NORMAL_02);
	return nr_pop(n, nr_path_bias(n, &g));
}

static nr_t *embed(struct nr_net *n, const struct nr_inputs *in, const void *conf)
{
	const struct nr_graphormer *c = conf;
	nr_weights_start_as(n, NR_NORMAL_02);           /* the published ones do throughout */
	nr_t *x = nr_embedding_sum(n, "atom", in->nodes, c->atoms + 1, c->dim);
	x = nr_add(n, x, nr_embedding_sum(n, "in_degree", in->in_degree, c->in_degrees, c->dim));
	x = nr_add(n, x, nr_embedding_sum(n, "out_degree", in->out_degree, c->out_degrees, c->dim));
	if (in->noise) x = nr_add(n, x, in->noise);
	if (!x) return NULL;
	nr_with_tokens(n, x, (struct nr_tokens){ .heads = (int32_t)c->heads, .unordered = 1, .valid = in->valid });
	x = nr_prepend(n, table(n, "vnode", 1, c->dim, NR_NORMAL_02), x);
	return nr_hidden(n, nr_dropout(n, nr_norm(n, "embed", x), c->dropout), "embed");
}

static nr_t *encode_layers(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf, nr_t **layer)
{
	const struct nr_graphormer *c = conf;
	nr_t *bias = nr_graphormer_bias(n, in, c, false);
	for (int64_t i = 0; i < c->depth; i++) {
		const struct nr_block b = { .heads = c->heads, .hidden = c->hidden, .act = c->act, .dropout = c->dropout,
			.attention_dropout = c->attention_dropout, .no_hidden_dropout = true, .hidden_dropout = c->activation_dropout,
			.bias = bias };
		nr_push_nth(n, "blocks", i, c->depth);
		x = nr_hidden(n, nr_pop(n, nr_block(n, x, &b)), "block%lld", (long long)i);
		if (layer) layer[i] = x;
	}
	return x;
}
static nr_t *encode(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf)
{
	return encode_layers(n, in, x, conf, NULL);
}

static nr_t *pool(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct nr_graphormer *c = conf;
	nr_push(n, "readout");
	x = nr_activate(n, c->act, nr_linear(n, "dense", nr_first_token(n, x), c->dim));
	return nr_pop(n, nr_norm_make(n, "norm", "layer", x));
}

static nr_t *head(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct nr_graphormer *c = conf;
	x = nr_linear_no_bias(n, "head", x, c->classes);
	return nr_shift_channels(n, x, nr_param(n, "head.bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(1)));
}

/* ---- in a file ---------------------------------------------------------------------------------------------------------------- */

/* Tensors show all sizes but how many hops count and where distances are cut; pre- or post-norm shows only in a final norm that nothing
 * reads. config.json beside the file says these. */
static const char *const signs[] = { "atom.weight", "bias.distance.weight", "head.weight", NULL };

static const json_t *config_of(const struct nr_look *l)
{
	const char *type = nr_hf_text(l->config, "model_type");
	return type && !strcmp(type, "graphormer") ? l->config : NULL;
}

static const char *norms_of(const struct nr_look *l)
{
	const json_t *said = json_object_get(config_of(l), "pre_layernorm");
	const bool ours = !strcmp(l->naming->name, "norma");    /* other names are the same for both placements */
	const bool spare = nr_st_find(l->file, "encoder.graph_encoder.final_layer_norm.weight") ||
		nr_st_find(l->file, "graph_encoder.final_layer_norm.weight");
	const bool pre = ours ? nr_look_find(l, "blocks.0.attn.in.weight") || nr_look_find(l, "blocks.0.attn.in.special.weight")
			      : said ? json_is_true(said) : spare;
	const char *sep = nr_look_sep(l, pre ? "blocks.0.attn.in" : "blocks.0.attn.res");
	const char *place = pre ? " placement=pre" : "", *embed_norm = nr_look_find(l, "embed.weight") ? "" : " embed=none";
	if (!sep && !*place && !*embed_norm) return "";
	return nr_arena_printf(l->arena, "%s%s%s", sep ? sep : "ln", place, embed_norm);
}

static bool measure(const struct nr_look *l, struct nr_sighting *s)
{
	const struct nr_st_tensor *atom = nr_look_find(l, "atom.weight"), *distance = nr_look_find(l, "bias.distance.weight");
	if (!atom || !distance || atom->nd != 2 || distance->nd != 2 || atom->shape[1] < 1 || distance->shape[1] < 1) return false;
	const int64_t C = atom->shape[1], H = distance->shape[1], depth = nr_look_depth(l, "mlp.fc1.weight");
	const int64_t bonds = nr_look_rows(l, "bias.edge.weight", H) - 1, in = nr_look_rows(l, "in_degree.weight", C);
	const int64_t out = nr_look_rows(l, "out_degree.weight", C), hidden = nr_look_rows(l, "blocks.0.mlp.fc1.weight", C);
	const int64_t hops = nr_look_rows(l, "bias.hop.weight", 1);
	if (C > 65536 || H > 1024 || C % H || depth < 1 || atom->shape[0] < 2 || bonds < 1 || in < 1 || out < 1 || hidden < 1) return false;
	const json_t *said = config_of(l), *most = json_object_get(said, "multi_hop_max_dist");
	const json_t *cut = json_object_get(said, "spatial_pos_max");
	const char *act = nr_hf_text(said, "activation_fn");
	nr_saw_key(s, "dim", C);
	nr_saw_key(s, "depth", depth);
	nr_saw_key(s, "heads", H);
	nr_saw(s, "hidden", hidden);
	nr_saw(s, "atoms", atom->shape[0] - 1);
	nr_saw(s, "bonds", bonds);
	nr_saw(s, "in_degrees", in);
	nr_saw(s, "out_degrees", out);
	nr_saw(s, "distances", distance->shape[0]);
	nr_saw(s, "hop_matrices", hops > 0 ? hops / (H * H) : -1);
	if (json_is_integer(most)) nr_saw(s, "hops", json_integer_value(most) > 0 ? json_integer_value(most) : 0);
	if (json_is_integer(cut)) nr_saw(s, "cut", json_integer_value(cut));
	nr_saw(s, "classes", nr_look_rows(l, "head.weight", C));
	nr_saw_text(s, "edges", hops > 0 ? NULL : "simple");
	nr_saw(s, "paths", hops > 0 ? -1 : 0);
	nr_saw_text(s, "act", act ? nr_hf_act(act) : NULL);
	nr_saw_norms(s, norms_of(l));
	if (said) nr_saw_all(s);
	return true;
}

static json_t *config(const struct nr_saved *w)
{
	const struct nr_graphormer *c = w->model->conf;
	const struct nr_store *s = w->store;
	const bool pre = nr_store_find(s, "blocks.0.attn.in.weight") || nr_store_find(s, "blocks.0.attn.in.rest.weight");
	json_t *j = json_pack("{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "architectures",
		nr_store_find(s, "head.weight") ? "GraphormerForGraphClassification" : "GraphormerModel", "model_type", "graphormer",
		"num_atoms", (json_int_t)c->atoms, "num_edges", (json_int_t)c->bonds, "num_in_degree", (json_int_t)c->in_degrees,
		"num_out_degree", (json_int_t)c->out_degrees, "num_spatial", (json_int_t)c->distances,
		"num_edge_dis", (json_int_t)c->hop_matrices, "edge_type", edge_kinds[c->edges], "multi_hop_max_dist", (json_int_t)c->hops,
		"spatial_pos_max", (json_int_t)c->cut, "embedding_dim", (json_int_t)c->dim, "hidden_size", (json_int_t)c->dim,
		"ffn_embedding_dim", (json_int_t)c->hidden, "num_attention_heads", (json_int_t)c->heads,
		"num_classes", (json_int_t)c->classes, "activation_fn", c->act);
	json_t *rest = json_pack("{s:I, s:b, s:b, s:f, s:f, s:f, s:f}", "num_hidden_layers", (json_int_t)c->depth, "pre_layernorm", pre,
		"encoder_normalize_before", nr_store_find(s, "embed.weight") != NULL, "layer_norm_eps", w->eps, "dropout", c->dropout,
		"attention_dropout", c->attention_dropout, "activation_dropout", c->activation_dropout);
	if (j && rest) json_object_update(j, rest);
	json_decref(rest);
	return j;
}

static const struct nr_model_file file = {
	.signs = signs, .measure = measure, .config = config, .doubt = "the number of hops is unknown: 5 is assumed",
};

const struct nr_model nr_model_graphormer = {
	.name = "graphormer", .title = "Graphormer", .cite = "arXiv:2106.05234", .reads = NR_MOLECULES, .conf_size = sizeof(G),
	.options = options, .presets = presets, .namings = namings,
	.norms = { .norm = "layer", .placement = "post", .rules = "embed=layer", .eps = 1e-5 },
	.embed = embed, .encode = encode, .encode_layers = encode_layers, .pool = pool, .head = head, .file = &file,
};
