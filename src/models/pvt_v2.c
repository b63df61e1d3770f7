/* pvt_v2: Pyramid Vision Transformer v2. Wang et al. 2022, arXiv:2106.13797; timm's form and names.
 *
 * Four stages of shrinking grids. A stage begins with an overlapping patch embedding (section 3.2), its blocks let queries see keys
 * of a reduced grid (sr times smaller; linear=1: always 7 x 7, section 3.1), and their MLPs hold a depth-wise convolution in place of
 * positions (section 3.3).
 *
 *   sites   patch.out, final of each stage; attn.reduced after the spatial reduction; those of every block */
#include "models/detector.h"
#include "models/block.h"
#include "models/guess.h"
#include "models/image_config.h"
#include "models/stages.h"
#include "norma/nn.h"
#include "norma/safetensors.h"

struct pvt_v2 {
	int64_t image, channels, classes;
	double drop_path, dropout, attention_dropout;
	bool linear, qkv_bias;
	char *dims, *depths, *heads, *mlp, *sr, *act;
};

static const struct nr_option options[] = {
	NR_OPT_INT(struct pvt_v2, image, 224, 1, 4096, "size of the square picture"),
	NR_OPT_INT(struct pvt_v2, channels, 3, 1, 64, "channels of the picture"),
	NR_OPT_STRING(struct pvt_v2, dims, "64-128-320-512", "width of a token, for each stage"),
	NR_OPT_STRING(struct pvt_v2, depths, "3-4-6-3", "number of blocks, for each stage"),
	NR_OPT_STRING(struct pvt_v2, heads, "1-2-5-8", "attention heads, for each stage"),
	NR_OPT_STRING(struct pvt_v2, mlp, "8-8-4-4", "width of the MLP relative to a token, for each stage"),
	NR_OPT_STRING(struct pvt_v2, sr, "8-4-2-1", "how much smaller the grid of the keys is, for each stage"),
	NR_OPT_BOOL(struct pvt_v2, linear, "0", "keys are a grid of 7 x 7 means instead"),
	NR_OPT_INT(struct pvt_v2, classes, 1000, 1, 1000000, "outputs of the head"),
	NR_OPT_BOOL(struct pvt_v2, qkv_bias, "1", "bias of queries, keys and values"),
	NR_OPT_STRING(struct pvt_v2, act, "gelu", "activation of the MLP: gelu, gelu_tanh, relu, silu"),
	NR_OPT_FLOAT(struct pvt_v2, drop_path, 0, 0, 0.99, "share of samples that skip the last block; fewer skip earlier ones"),
	NR_OPT_FLOAT(struct pvt_v2, dropout, 0, 0, 0.99, "dropout of the branches"),
	NR_OPT_FLOAT(struct pvt_v2, attention_dropout, 0, 0, 0.99, "dropout of attention"),
	NR_OPT_END
};

#define B3 "depths=3-4-18-3"
static const struct nr_preset presets[] = {
	{ "pvt_v2_b0", "dims=32-64-160-256,depths=2-2-2-2" }, { "pvt_v2_b1", "depths=2-2-2-2" }, { "pvt_v2_b2", "depths=3-4-6-3" },
	{ "pvt_v2_b2_li", "depths=3-4-6-3,linear=1" }, { "pvt_v2_b3", B3 }, { "pvt_v2_b4", "depths=3-8-27-3" },
	{ "pvt_v2_b5", "depths=3-6-40-3,mlp=4-4-4-4" },
	{ "dtn/pvtv2-b3", B3 },
	/* for 32 pixels on a CPU */
	{ "pvt_v2_nano", "image=32,dims=16-32-64,depths=1-1-1,heads=1-2-4,mlp=4,sr=4-2-1,classes=10" },
	{ NULL, NULL },
};
/* No placement is published for this one; chosen as in PVT: the block norms of stages 1 to 3, 4 x 4 and 2 x 2 tokens pooled. */
static const struct nr_preset plans[] = {
	{ "dtn/pvtv2-b3", "layer stages[0].blocks.*=dtn:pool=4 stages[1].blocks.*=dtn:pool=2 stages[2].blocks.*=dtn" }, { NULL, NULL },
};

static const struct nr_rename timm[] = {
	{ "stages.0.patch.out.", "patch_embed.norm." }, { "stages.0.patch.", "patch_embed." },
	{ "patch.out.", "downsample.norm." }, { "patch.", "downsample." },
	{ "attn.in.", "norm1." }, { "mlp.in.", "norm2." }, { "attn.reduced.", "attn.norm." }, { "final.", "norm." }, { NULL, NULL },
};
static const struct nr_rename official[] = {
	{ "stages.#.patch.out.", "patch_embed#+.norm." }, { "stages.#.patch.", "patch_embed#+." }, { "stages.#.final.", "norm#+." },
	{ "stages.#.blocks.", "block#+." }, { "attn.in.", "norm1." }, { "mlp.in.", "norm2." }, { "attn.reduced.", "attn.norm." },
	{ "mlp.dwconv.", "mlp.dwconv.dwconv." }, { NULL, NULL },
};
static const struct nr_rename hf[] = {
	{ "stages.", "pvt_v2.encoder.layers." }, { "patch.out.", "patch_embedding.layer_norm." }, { "patch.proj.",
	"patch_embedding.proj." },
	{ "attn.in.", "layer_norm_1." }, { "mlp.in.", "layer_norm_2." }, { "attn.q.", "attention.query." },
	{ "attn.kv.", "attention.key. attention.value." }, { "attn.reduced.", "attention.layer_norm." },
	{ "attn.sr.", "attention.spatial_reduction." }, { "attn.proj.", "attention.proj." }, { "mlp.fc1.", "mlp.dense1." },
	{ "mlp.fc2.", "mlp.dense2." }, { "mlp.dwconv.", "mlp.dwconv.dwconv." }, { "final.", "layer_norm." }, { "head.", "classifier." },
	{ NULL, NULL },
};
#define HF_NORMS "layer patch.out=layer:eps=1e-6 attn.reduced=layer:eps=1e-6"
static const struct nr_naming namings[] = {
	{ .name = "timm", .rules = timm }, { .name = "official", .rules = official },
	{ .name = "huggingface", .rules = hf, .eps = 1e-6, .norms = HF_NORMS },
	{ .name = "huggingface_base", .rules = hf, .without = "pvt_v2.", .eps = 1e-6, .norms = HF_NORMS },
	NR_DETECTOR_NAMINGS(official),
	{ .name = NULL },
};

/* ---- the model ------------------------------------------------------------------------------------------------------ */

struct stages { int64_t count; double dim[NR_MAXLEVELS], depth[NR_MAXLEVELS], heads[NR_MAXLEVELS], mlp[NR_MAXLEVELS], sr[NR_MAXLEVELS]; };

static bool read_stages(struct nr_net *n, const struct pvt_v2 *c, struct stages *s)
{
	return nr_stages_read(n, (const struct nr_stage_list[]){ { "dims", c->dims, s->dim }, { "depths", c->depths, s->depth },
		{ "heads", c->heads, s->heads }, { "mlp", c->mlp, s->mlp }, { "sr", c->sr, s->sr }, { NULL, NULL, NULL } }, &s->count);
}

/* Overlapping patches: 7 x 7 pixels each 4, then 3 x 3 tokens each 2. */
static nr_t *patches(struct nr_net *n, nr_t *grid, const struct stages *s, int64_t i)
{
	nr_push_nth(n, "stages", i, s->count);
	nr_t *x = nr_conv(n, "patch.proj", grid, (int64_t)s->dim[i], i ? 3 : 7, i ? 2 : 4, i ? 1 : 3, 1, 1);
	return nr_pop(n, nr_norm(n, "patch.out", nr_as_tokens(n, x)));
}

static nr_t *reduced(struct nr_net *n, nr_t *x, int64_t sr, bool linear)
{
	if (!x || (sr == 1 && !linear)) return x;
	nr_t *g = nr_as_grid(n, x);
	g = linear ? nr_conv(n, "attn.sr", nr_pool_to(n, g, 7, 7), nr_cols(x), 1, 1, 0, 1, 1) : nr_conv(n, "attn.sr", g,
		nr_cols(x), sr, sr, 0, 1, 1);
	g = nr_norm(n, "attn.reduced", nr_as_tokens(n, g));
	return linear ? nr_activate(n, "gelu", g) : g;
}

static nr_t *attention(struct nr_net *n, nr_t *x, const struct pvt_v2 *c, const struct stages *s, int64_t i)
{
	const int64_t C = (int64_t)s->dim[i];
	nr_t *q = nr_linear_or(n, "attn.q", x, C, c->qkv_bias);
	nr_t *kv = nr_linear_or(n, "attn.kv", reduced(n, x, (int64_t)s->sr[i], c->linear), 2 * C, c->qkv_bias);
	return nr_kv_branch(n, q, kv, &(struct nr_stage_attention){ (int64_t)s->heads[i], c->dropout, c->attention_dropout });
}

static nr_t *mlp(struct nr_net *n, nr_t *x, const struct pvt_v2 *c, const struct stages *s, int64_t i)
{
	const int64_t C = (int64_t)s->dim[i], hidden = nr_mlp_width(s->mlp[i], C);
	x = nr_linear(n, "mlp.fc1", x, hidden);
	if (c->linear) x = nr_activate(n, "relu", x);
	x = nr_as_tokens(n, nr_conv(n, "mlp.dwconv", nr_as_grid(n, x), hidden, 3, 1, 1, hidden, 1));
	x = nr_norm(n, "mlp.inner", nr_activate(n, c->act, nr_norm(n, "mlp.hidden", nr_with_heads(n, x, (int64_t)s->heads[i]))));
	return nr_dropout(n, nr_linear(n, "mlp.fc2", nr_dropout(n, x, c->dropout), C), c->dropout);
}

static nr_t *stage(struct nr_net *n, nr_t *x, const struct pvt_v2 *c, const struct stages *s, int64_t i)
{
	int64_t before = 0, all = 0;
	for (int64_t k = 0; k < s->count; k++) {
		before += k < i ? (int64_t)s->depth[k] : 0;
		all += (int64_t)s->depth[k];
	}
	nr_push_nth(n, "stages", i, s->count);
	for (int64_t j = 0; j < (int64_t)s->depth[i]; j++) {
		const double drop = nr_drop_path_at(c->drop_path, before + j, all);
		nr_push_nth(n, "blocks", j, (int64_t)s->depth[i]);
		x = nr_with_heads(n, x, (int64_t)s->heads[i]);
		x = nr_residual(n, "attn", x, attention(n, nr_norm(n, "attn.in", x), c, s, i), drop);
		x = nr_residual(n, "mlp", x, mlp(n, nr_norm(n, "mlp.in", x), c, s, i), drop);
		nr_pop(n, x);
	}
	return nr_hidden(n, nr_pop(n, nr_norm(n, "final", x)), "stage%lld", (long long)i);
}

static nr_t *embed(struct nr_net *n, const struct nr_inputs *in, const void *conf)
{
	struct stages s;
	return read_stages(n, conf, &s) ? patches(n, nr_picture_grid(n, in->image), &s, 0) : NULL;
}

static nr_t *stages(struct nr_net *n, nr_t *x, const struct pvt_v2 *c, nr_t **level, int64_t *count)
{
	struct stages s;
	*count = 0;
	if (!x || !read_stages(n, c, &s)) return NULL;
	for (int64_t i = 0; i < s.count; i++) {
		if (i) x = patches(n, nr_as_grid(n, x), &s, i);
		x = stage(n, x, c, &s, i);
		level[i] = x;
	}
	*count = s.count;
	return x;
}

static nr_t *encode(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf)
{
	nr_t *level[NR_MAXLEVELS];
	int64_t count;
	(void)in;
	return stages(n, x, conf, level, &count);
}

static int levels(struct nr_net *n, const struct nr_inputs *in, const void *conf, nr_t *level[NR_MAXLEVELS])
{
	int64_t count;
	stages(n, embed(n, in, conf), conf, level, &count);
	return (int)count;
}

static nr_t *pool(struct nr_net *n, nr_t *x, const void *conf)
{
	(void)conf;
	return nr_mean_tokens(n, x, NULL);
}

/* ---- in a file ---------------------------------------------------------------------------------------------------------- */

static const char *const signs[] = { "stages.0.patch.proj.weight", "stages.0.patch.out.weight", "stages.1.patch.proj.weight",
	"stages.0.blocks.0.attn.q.weight", "stages.0.blocks.0.attn.kv.weight", "stages.0.blocks.0.mlp.dwconv.weight",
	"stages.0.blocks.0.mlp.fc1.weight", "stages.0.final.weight", "stages.1.final.weight", "head.weight", NULL };

static bool measure(const struct nr_look *l, struct nr_sighting *s)
{
	double dim[NR_MAXLEVELS], depth[NR_MAXLEVELS], mlp_ratio[NR_MAXLEVELS], sr[NR_MAXLEVELS];
	const struct nr_st_tensor *first = nr_look_find(l, "stages.0.patch.proj.weight");
	if (!first || first->nd != 4 || !nr_look_find(l, "stages.0.blocks.0.mlp.dwconv.weight")) return false;
	const int64_t count = nr_look_stages(l, dim, depth, mlp_ratio, sr);
	if (count < 1) return false;
	const struct nr_st_tensor *last = nr_look_find(l, nr_arena_printf(l->arena, "stages.%d.blocks.0.attn.sr.weight", (int)count - 1));
	const bool linear = last && last->nd == 4 && last->shape[3] == 1;
	nr_saw(s, "channels", first->shape[1]);
	nr_saw(s, "classes", nr_look_rows(l, "head.weight", 0));
	nr_saw_key_text(s, "dims", nr_stages_text(dim, count, l->arena));
	nr_saw_key_text(s, "depths", nr_stages_text(depth, count, l->arena));
	nr_saw_text(s, "mlp", nr_stages_text(mlp_ratio, count, l->arena));
	if (!linear) nr_saw_text(s, "sr", nr_stages_text(sr, count, l->arena));
	nr_saw(s, "linear", linear);
	nr_saw(s, "qkv_bias", nr_look_find(l, "stages.0.blocks.0.attn.q.bias") != NULL);
	nr_config_saw_act(l, s);
	nr_look_saw_eps(l, s, sr, count);
	if (nr_config_saw_list(l, s, "heads", "num_attention_heads", "num_heads")) nr_saw_all(s);
	nr_config_saw_image(l, s);
	return true;
}

static json_t *config(const struct nr_saved *w)
{
	const struct pvt_v2 *c = w->model->conf;
	if (strncmp(w->naming->name, "huggingface", 11) != 0) {
		json_t *args = json_pack("{s:b, s:b, s:I}", "linear", (int)c->linear, "qkv_bias", (int)c->qkv_bias, "in_chans",
			(json_int_t)c->channels);
		nr_config_lists(args, (const char *[]){ "embed_dims", c->dims, "depths", c->depths, "num_heads", c->heads,
			"mlp_ratios", c->mlp,
			"sr_ratios", c->sr, NULL });
		return nr_timm_config(w, "pvt_v2_b2", nr_stages_last(c->dims), "avg", args);
	}
	json_t *j = json_pack("{s:[s], s:s, s:b, s:b, s:s, s:f}", "architectures", "PvtV2ForImageClassification", "model_type", "pvt_v2",
		"linear_attention", (int)c->linear, "qkv_bias", (int)c->qkv_bias, "hidden_act", nr_hf_image_act(c->act),
			"layer_norm_eps", w->eps);
	nr_config_lists(j, (const char *[]){ "hidden_sizes", c->dims, "depths", c->depths, "num_attention_heads", c->heads,
		"mlp_ratios", c->mlp,
		"sr_ratios", c->sr, NULL });
	return nr_config_labels(j, w, c->classes);
}

static const char *const classes[] = { "PvtV2ForImageClassification", "PvtV2Model", NULL };
static const struct nr_model_file file = {
	.classes = classes, .types = (const char *const[]){ "pvt_v2", NULL }, .signs = signs, .measure = measure, .config = config,
		.doubt = "the number of heads is unknown: those of the published models are assumed",
};

const struct nr_model nr_model_pvt_v2 = {
	.name = "pvt_v2", .title = "Pyramid Vision Transformer v2", .cite = "arXiv:2106.13797", .conf_size = sizeof(struct pvt_v2),
	.options = options, .presets = presets, .plans = plans, .namings = namings,
	.norms = { .norm = "layer", .placement = "pre", .rules = "patch.out=layer:eps=1e-5 attn.reduced=layer:eps=1e-5", .eps = 1e-6 },
	.embed = embed, .encode = encode, .levels = levels, .pool = pool, .file = &file,
};
