/* pvt: Pyramid Vision Transformer. Wang et al. 2021, arXiv:2102.12122; the official form.
 *
 * Stages of shrinking grids, each with a patch embedding, learned positions and blocks whose keys come from a grid sr times smaller
 * (section 3.3); the class token joins the last stage. The pyramid for detectors has no class token and resizes the positions.
 *
 *   sites   patch.out of each stage; attn.reduced after the spatial reduction; those of every block; final */
#include "models/detector.h"
#include "models/block.h"
#include "models/guess.h"
#include "models/image_config.h"
#include "models/stages.h"
#include "norma/nn.h"
#include "norma/safetensors.h"

struct pvt {
	int64_t image, channels, classes, patch;
	double drop_path, dropout, attention_dropout;
	bool qkv_bias;
	int32_t position_bias;              /* enum nr_position_bias */
	char *dims, *depths, *heads, *mlp, *sr, *act;
};

static const struct nr_option options[] = {
	NR_OPT_INT(struct pvt, image, 224, 1, 4096, "size of the square picture"),
	NR_OPT_INT(struct pvt, channels, 3, 1, 64, "channels of the picture"),
	NR_OPT_INT(struct pvt, patch, 4, 1, 512, "size of a patch of the first stage; later ones take 2 x 2 tokens"),
	NR_OPT_STRING(struct pvt, dims, "64-128-320-512", "width of a token, for each stage"),
	NR_OPT_STRING(struct pvt, depths, "3-4-6-3", "number of blocks, for each stage"),
	NR_OPT_STRING(struct pvt, heads, "1-2-5-8", "attention heads, for each stage"),
	NR_OPT_STRING(struct pvt, mlp, "8-8-4-4", "width of the MLP relative to a token, for each stage"),
	NR_OPT_STRING(struct pvt, sr, "8-4-2-1", "how much smaller the grid of the keys is, for each stage"),
	NR_OPT_INT(struct pvt, classes, 1000, 1, 1000000, "outputs of the head"),
	NR_OPT_ENUM(struct pvt, position_bias, "0", nr_position_biases,
		"use DTN's position term R a_h as a bias of attention (DTN, Table 10a): 1: from zero on, eq7: from DTN's own start"),
	NR_OPT_BOOL(struct pvt, qkv_bias, "1", "bias of queries, keys and values"),
	NR_OPT_STRING(struct pvt, act, "gelu", "activation of the MLP: gelu, gelu_tanh, relu, silu"),
	NR_OPT_FLOAT(struct pvt, drop_path, 0, 0, 0.99, "share of samples that skip the last block; fewer skip earlier ones"),
	NR_OPT_FLOAT(struct pvt, dropout, 0, 0, 0.99, "dropout of positions and branches"),
	NR_OPT_FLOAT(struct pvt, attention_dropout, 0, 0, 0.99, "dropout of attention"),
	NR_OPT_END
};

#define NANO "image=32,patch=2,dims=32-64-128,depths=2-2-2,mlp=4,sr=4-2-1,classes=10"
static const struct nr_preset presets[] = {
	{ "pvt_tiny", "depths=2-2-2-2" }, { "pvt_small", "depths=3-4-6-3" }, { "pvt_medium", "depths=3-4-18-3" },
	{ "pvt_large", "depths=3-8-27-3" },
	/* those of the DTN paper, with the heads of its code */
	{ "dtn/pvt-tiny", "depths=2-2-2-2,heads=4-4-5-8" }, { "dtn/pvt-small", "depths=3-4-6-3,heads=4-4-5-8" },
	{ "dtn/pvt-medium", "depths=3-4-18-3,heads=4-4-5-8" }, { "dtn/pvt-large", "depths=3-8-27-3,heads=4-4-5-8" },
	/* for 32 pixels on a CPU: grids of 16, 8 and 4 */
	{ "pvt_nano", NANO ",heads=1-2-4" }, { "dtn/pvt-nano", NANO ",heads=4-4-4" },
	{ NULL, NULL },
};
/* DTN, appendix A.1 and its code: the block norms of stages 1 to 3; 4 x 4 and 2 x 2 tokens are pooled in the first two; the stage with
 * the class token keeps LN. */
#define DTN "layer stages[0].*=dtn:pool=4 stages[1].*=dtn:pool=2 stages[2].*=dtn"
static const struct nr_preset plans[] = {
	{ "dtn/pvt-tiny", DTN }, { "dtn/pvt-small", DTN }, { "dtn/pvt-medium", DTN }, { "dtn/pvt-large", DTN },
	{ "dtn/pvt-nano", "layer stages[0].*=dtn:pool=4 stages[1].*=dtn:pool=2" }, { NULL, NULL },
};

#define OFFICIAL                                                                                                                \
	{ "stages.#.patch.out.", "patch_embed#+.norm." }, { "stages.#.patch.", "patch_embed#+." },                              \
	{ "stages.#.pos_embed", "pos_embed#+" }, { "stages.#.cls_token", "cls_token" }, { "stages.#.blocks.", "block#+." },     \
	{ "attn.in.", "norm1." }, { "mlp.in.", "norm2." }, { "attn.reduced.", "attn.norm." },                                   \
	{ "final.", "norm." }
static const struct nr_rename official[] = { OFFICIAL, { NULL, NULL } };
/* The code released with DTN. */
static const struct nr_rename official_dtn[] = {
	OFFICIAL, { "mean_logit", "mean_norm_weight" }, { "var_logit", "var_norm_weight" }, { "norm1.pos", "~norm1.pos_proj.weight" },
	{ "norm2.pos", "~norm2.pos_proj.weight" }, { NULL, NULL },
};
static const struct nr_rename hf[] = {
	{ "stages.#.patch.out.", "pvt.encoder.patch_embeddings.#.layer_norm." },
	{ "stages.#.patch.proj.", "pvt.encoder.patch_embeddings.#.projection." },
	{ "stages.#.pos_embed", "pvt.encoder.patch_embeddings.#.position_embeddings" },
	{ "stages.#.cls_token", "pvt.encoder.patch_embeddings.#.cls_token" }, { "stages.#.blocks.", "pvt.encoder.block.#." },
	{ "attn.in.", "layer_norm_1." }, { "mlp.in.", "layer_norm_2." }, { "attn.q.", "attention.self.query." },
	{ "attn.kv.", "attention.self.key. attention.self.value." }, { "attn.reduced.", "attention.self.layer_norm." },
	{ "attn.sr.", "attention.self.sequence_reduction." }, { "attn.proj.", "attention.output.dense." }, { "mlp.fc1.", "mlp.dense1." },
	{ "mlp.fc2.", "mlp.dense2." }, { "final.", "pvt.encoder.layer_norm." }, { "head.", "classifier." }, { NULL, NULL },
};
#define HF_NORMS "layer patch.out=layer:eps=1e-6 attn.reduced=layer:eps=1e-6"
static const struct nr_naming namings[] = {
	{ .name = "official", .rules = official },
	{ .name = "official_dtn", .rules = official_dtn, .ignored = (const char *const[]){ "*.pos_proj.bias", NULL },
	  .idle_bias = "pos_proj.weight" },
	{ .name = "huggingface", .rules = hf, .eps = 1e-6, .norms = HF_NORMS },
	{ .name = "huggingface_base", .rules = hf, .without = "pvt.", .eps = 1e-6, .norms = HF_NORMS },
	NR_DETECTOR_NAMINGS(official),
	{ .name = NULL },
};

/* ---- the model ------------------------------------------------------------------------------------------------------ */

struct stages { int64_t count, all; double dim[NR_MAXLEVELS], depth[NR_MAXLEVELS], heads[NR_MAXLEVELS], mlp[NR_MAXLEVELS],
	sr[NR_MAXLEVELS]; };

static bool read_stages(struct nr_net *n, const struct pvt *c, struct stages *s)
{
	const bool ok = nr_stages_read(n, (const struct nr_stage_list[]){ { "dims", c->dims, s->dim }, { "depths", c->depths, s->depth },
		{ "heads", c->heads, s->heads }, { "mlp", c->mlp, s->mlp }, { "sr", c->sr, s->sr }, { NULL, NULL, NULL } }, &s->count);
	s->all = 0;
	for (int64_t i = 0; i < s->count; i++) s->all += (int64_t)s->depth[i];
	return ok;
}

/* Side of the square grid that stage i has its positions for. */
static int64_t side(const struct pvt *c, int64_t i) { return c->image / (c->patch << i); }

/* The positions of stage i for a grid h x w; the first row is the class token's, if the stage has one. */
static nr_t *positions(struct nr_net *n, const struct pvt *c, const struct stages *s, int64_t i, int64_t h, int64_t w)
{
	const int64_t C = (int64_t)s->dim[i], N = side(c, i), special = i == s->count - 1;
	nr_t *table = nr_param(n, "pos_embed", NR_TRUNC_02, NR_SHAPE(1, special + N * N, C));
	table = nr_span(n, table, special, NR_END);
	if (h == N && w == N) return table;
	nr_t *grid = nr_resample(n, nr_reshape(n, nr_pack(n, table), NR_SHAPE(1, N, N, C)), h, w);
	return nr_reshape(n, grid, NR_SHAPE(1, h * w, C));
}

static nr_t *patches(struct nr_net *n, nr_t *grid, const struct pvt *c, const struct stages *s, int64_t i)
{
	nr_push_nth(n, "stages", i, s->count);
	const int64_t p = i ? 2 : c->patch;
	nr_t *x = nr_norm(n, "patch.out", nr_as_tokens(n, nr_conv(n, "patch.proj", grid, (int64_t)s->dim[i], p, p, 0, 1, 1)));
	if (x) x = nr_add_table(n, x, positions(n, c, s, i, x->tok->h, x->tok->w));
	return nr_pop(n, nr_dropout(n, x, c->dropout));
}

/* The class token with its row of the last table. */
static nr_t *add_class(struct nr_net *n, nr_t *x, const struct pvt *c, const struct stages *s)
{
	const int64_t i = s->count - 1, C = (int64_t)s->dim[i], N = side(c, i);
	nr_t *cls = nr_param(n, "cls_token", NR_TRUNC_02 | NR_NO_DECAY, NR_SHAPE(1, 1, C));
	nr_t *table = nr_param(n, "pos_embed", NR_TRUNC_02, NR_SHAPE(1, 1 + N * N, C));
	return nr_prepend(n, nr_add(n, cls, nr_span(n, table, 0, 1)), x);
}

static nr_t *attention(struct nr_net *n, nr_t *x, const struct pvt *c, const struct stages *s, int64_t i)
{
	const int64_t C = (int64_t)s->dim[i], sr = (int64_t)s->sr[i];
	nr_t *keys = x;
	if (sr > 1) keys = nr_norm(n, "attn.reduced", nr_as_tokens(n, nr_conv(n, "attn.sr", nr_as_grid(n, x), C, sr, sr, 0, 1, 1)));
	nr_t *q = nr_linear_or(n, "attn.q", x, C, c->qkv_bias), *kv = nr_linear_or(n, "attn.kv", keys, 2 * C, c->qkv_bias);
	return nr_kv_branch(n, q, kv, &(struct nr_stage_attention){ (int64_t)s->heads[i], c->dropout, c->attention_dropout,
		nr_block_position_bias(n, x, c->position_bias, (int64_t)s->heads[i], sr) });
}

static nr_t *stage(struct nr_net *n, nr_t *x, const struct pvt *c, const struct stages *s, int64_t i, bool class_token)
{
	const int64_t depth = (int64_t)s->depth[i], C = (int64_t)s->dim[i];
	int64_t before = 0;
	for (int64_t k = 0; k < i; k++) before += (int64_t)s->depth[k];
	nr_push_nth(n, "stages", i, s->count);
	if (class_token && s->sr[i] > 1) return nr_pop(n, nr_net_fail(n, NR_EVALUE, "sr",
		"the last stage has a class token, which cannot be reduced: 1"));
	if (class_token) x = add_class(n, x, c, s);
	for (int64_t j = 0; j < depth; j++) {
		const double drop = nr_drop_path_at(c->drop_path, before + j, s->all);
		const struct nr_block b = { .hidden = nr_mlp_width(s->mlp[i], C), .act = c->act, .dropout = c->dropout };
		nr_push_nth(n, "blocks", j, depth);
		x = nr_with_heads(n, x, (int64_t)s->heads[i]);
		x = nr_residual(n, "attn", x, attention(n, nr_norm(n, "attn.in", x), c, s, i), drop);
		x = nr_residual(n, "mlp", x, nr_block_mlp(n, nr_norm(n, "mlp.in", x), &b), drop);
		nr_pop(n, x);
	}
	nr_pop(n, x);
	nr_hidden(n, class_token ? nr_span(n, x, 1, NR_END) : x, "stage%lld", (long long)i);
	return x;
}

static nr_t *embed(struct nr_net *n, const struct nr_inputs *in, const void *conf)
{
	struct stages s;
	return read_stages(n, conf, &s) ? patches(n, nr_picture_grid(n, in->image), conf, &s, 0) : NULL;
}

static nr_t *encode(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf)
{
	struct stages s;
	(void)in;
	if (!x || !read_stages(n, conf, &s)) return NULL;
	for (int64_t i = 0; i < s.count; i++) {
		if (i) x = patches(n, nr_as_grid(n, x), conf, &s, i);
		x = stage(n, x, conf, &s, i, i == s.count - 1);
	}
	return nr_norm(n, "final", x);
}

static int levels(struct nr_net *n, const struct nr_inputs *in, const void *conf, nr_t *level[NR_MAXLEVELS])
{
	struct stages s;
	nr_t *x = embed(n, in, conf);
	if (!x || !read_stages(n, conf, &s)) return 0;
	for (int64_t i = 0; i < s.count; i++) {
		if (i) x = patches(n, nr_as_grid(n, x), conf, &s, i);
		level[i] = x = stage(n, x, conf, &s, i, false);
	}
	return (int)s.count;
}

static nr_t *pool(struct nr_net *n, nr_t *x, const void *conf)
{
	(void)conf;
	return x ? nr_reshape(n, nr_span(n, x, 0, 1), NR_SHAPE(x->d[0], x->d[2])) : NULL;
}

/* ---- in a file ---------------------------------------------------------------------------------------------------------- */

static const char *const signs[] = { "stages.0.patch.proj.weight", "stages.0.patch.out.weight", "stages.0.pos_embed", "stages.1.pos_embed",
	"stages.0.blocks.0.attn.q.weight", "stages.0.blocks.0.attn.kv.weight", "stages.0.blocks.0.attn.reduced.weight",
	"stages.0.blocks.0.mlp.fc1.weight", "final.weight", "head.weight", NULL };

static bool measure(const struct nr_look *l, struct nr_sighting *s)
{
	double dim[NR_MAXLEVELS], depth[NR_MAXLEVELS], mlp[NR_MAXLEVELS], sr[NR_MAXLEVELS];
	const struct nr_st_tensor *first = nr_look_find(l, "stages.0.patch.proj.weight"), *pos = nr_look_find(l, "stages.0.pos_embed");
	if (!first || first->nd != 4 || !pos || pos->nd != 3) return false;
	const int64_t count = nr_look_stages(l, dim, depth, mlp, sr);
	int64_t grid = 1;
	while (grid * grid < pos->shape[1]) grid++;
	if (count < 1 || grid * grid != pos->shape[1]) return false;
	nr_config_saw_side(l, s, grid * first->shape[3]);
	nr_saw(s, "patch", first->shape[3]);
	nr_saw(s, "channels", first->shape[1]);
	nr_saw(s, "classes", nr_look_rows(l, "head.weight", 0));
	nr_saw_key_text(s, "dims", nr_stages_text(dim, count, l->arena));
	nr_saw_key_text(s, "depths", nr_stages_text(depth, count, l->arena));
	nr_saw_text(s, "mlp", nr_stages_text(mlp, count, l->arena));
	nr_saw_text(s, "sr", nr_stages_text(sr, count, l->arena));
	nr_saw(s, "qkv_bias", nr_look_find(l, "stages.0.blocks.0.attn.q.bias") != NULL);
	nr_config_saw_act(l, s);
	nr_look_saw_eps(l, s, sr, count);
	if (nr_config_saw_list(l, s, "heads", "num_attention_heads", "num_heads")) nr_saw_all(s);
	return true;
}

static json_t *config(const struct nr_saved *w)
{
	const struct pvt *c = w->model->conf;
	if (strncmp(w->naming->name, "huggingface", 11) != 0) return NULL;
	const int64_t count = nr_stages_count(c->dims);
	json_t *j = json_pack("{s:[s], s:s, s:b, s:s, s:f}", "architectures", "PvtForImageClassification", "model_type", "pvt",
		"qkv_bias", (int)c->qkv_bias, "hidden_act", nr_hf_image_act(c->act), "layer_norm_eps", w->eps);
	nr_config_lists(j, (const char *[]){ "hidden_sizes", c->dims, "depths", c->depths, "num_attention_heads", c->heads,
		"mlp_ratios", c->mlp,
		"sequence_reduction_ratios", c->sr, NULL });
	json_t *size = json_array(), *stride = json_array();
	for (int64_t i = 0; i < count; i++) {
		json_array_append_new(size, json_integer(i ? 2 : c->patch));
		json_array_append_new(stride, json_integer(i ? 2 : c->patch));
	}
	json_object_set_new(j, "patch_sizes", size);
	json_object_set_new(j, "strides", stride);
	json_object_set_new(j, "num_encoder_blocks", json_integer(count));
	json_object_set_new(j, "num_labels", json_integer(c->classes));         /* a field of its own there, beside the names */
	return nr_config_labels(j, w, c->classes);
}

static const char *const classes[] = { "PvtForImageClassification", "PvtModel", NULL };
static const struct nr_model_file file = {
	.classes = classes, .types = (const char *const[]){ "pvt", NULL }, .signs = signs, .measure = measure, .config = config,
		.doubt = "the number of heads is unknown: those of the published models are assumed",
};

const struct nr_model nr_model_pvt = {
	.name = "pvt", .title = "Pyramid Vision Transformer", .cite = "arXiv:2102.12122", .conf_size = sizeof(struct pvt),
	.options = options, .presets = presets, .plans = plans, .namings = namings,
	.norms = { .norm = "layer", .placement = "pre", .rules = "patch.out=layer:eps=1e-5 attn.reduced=layer:eps=1e-5", .eps = 1e-6 },
	.embed = embed, .encode = encode, .levels = levels, .pool = pool, .file = &file,
};
