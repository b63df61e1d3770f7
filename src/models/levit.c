/* levit: LeViT. Graham et al. 2021, arXiv:2104.01136; timm's form and names.
 *
 * A stem of strided convolutions, then stages of blocks; attention whose queries are every second row and column leads from a stage to
 * the next. Every convolution and linear layer is followed by a norm and has no bias (section 4.1: batch norm, which can be folded into
 * it: folded=1 has biases instead); scores get a learned bias for each distance; heads read a norm before their layer.
 *
 *   sites   N.norm of the stem; attn.qkv.norm, attn.proj.norm, mlp.fc1.norm, mlp.fc2.norm of blocks; attn.q.norm, attn.kv.norm,
 *           attn.proj.norm, mlp.fc1.norm, mlp.fc2.norm of shrink; head.norm, head_dist.norm; attn.in, mlp.in and the sums of blocks */
#include "graph/net.h"
#include "models/block.h"
#include "models/guess.h"
#include "models/image_config.h"
#include "models/levit_names.h"
#include "models/stages.h"
#include "norma/nn.h"
#include "norma/safetensors.h"

struct levit {
	int64_t image, channels, classes, key, stride;
	double drop_path;
	bool distilled, folded;
	char *dims, *depths, *heads, *value, *mlp, *act;
};

static const struct nr_option options[] = {
	NR_OPT_INT(struct levit, image, 224, 1, 4096, "size of the square picture"),
	NR_OPT_INT(struct levit, channels, 3, 1, 64, "channels of the picture"),
	NR_OPT_STRING(struct levit, dims, "128-256-384", "width of a token, for each stage"),
	NR_OPT_STRING(struct levit, depths, "2-3-4", "number of blocks, for each stage"),
	NR_OPT_STRING(struct levit, heads, "4-6-8", "attention heads, for each stage"),
	NR_OPT_INT(struct levit, key, 16, 1, 65536, "width of a head of the queries and keys"),
	NR_OPT_STRING(struct levit, value, "2", "width of a head of the values relative to that, for each stage or all"),
	NR_OPT_STRING(struct levit, mlp, "2", "width of the MLP relative to a token, for each stage or all"),
	NR_OPT_INT(struct levit, stride, 16, 2, 64, "pixels along a side of a token: a power of 2, a convolution for each"),
	NR_OPT_INT(struct levit, classes, 1000, 1, 1000000, "outputs of the head"),
	NR_OPT_BOOL(struct levit, distilled, "1", "have a second head, of distillation; the result is the mean of both"),
	NR_OPT_BOOL(struct levit, folded, "0", "norms are folded into the layers before them: the deployed form (norma convert --fold)"),
	NR_OPT_STRING(struct levit, act, "hard_swish", "activation: hard_swish, silu, gelu, relu"),
	NR_OPT_FLOAT(struct levit, drop_path, 0, 0, 0.99, "share of samples that skip a block"),
	NR_OPT_END
};

#define L128S "dims=128-256-384,depths=2-3-4,heads=4-6-8,key=16"
static const struct nr_preset presets[] = {
	{ "levit_128s", L128S }, { "levit_128", "dims=128-256-384,depths=4-4-4,heads=4-8-12,key=16" },
	{ "levit_192", "dims=192-288-384,depths=4-4-4,heads=3-5-6,key=32" }, { "levit_256",
	"dims=256-384-512,depths=4-4-4,heads=4-6-8,key=32" },
	{ "levit_384", "dims=384-512-768,depths=4-4-4,heads=6-9-12,key=32" },
	{ "levit_384_s8", "dims=384-512-768,depths=4-4-4,heads=6-9-12,key=32,stride=8,act=silu" },
	{ "levit_512", "dims=512-768-1024,depths=4-4-4,heads=8-12-16,key=64,act=silu" },
	{ "levit_256d", "dims=256-384-512,depths=4-8-6,heads=4-6-8,key=32,act=silu" },
	{ "dtn/levit-128s", L128S },
	/* for 32 pixels on a CPU */
	{ "levit_nano", "image=32,dims=32-64,depths=2-2,heads=2-4,key=8,stride=4,classes=10,distilled=0" },
	{ NULL, NULL },
};
/* No placement is published, and public LeViT has batch norm where DTN's text says layer norm. Chosen: layer norm everywhere, and DTN
 * at the outputs of the branches of the first two stages, where the tokens' widths are those of the stream. */
static const struct nr_preset plans[] = {
	{ "dtn/levit-128s",
	"layer stages[0].blocks[0:].attn.proj.norm=dtn:heads=4,pool=2 stages[0].blocks[0:].mlp.fc2.norm=dtn:heads=4,pool=2 "
		"stages[1].blocks[0:].attn.proj.norm=dtn:heads=8 stages[1].blocks[0:].mlp.fc2.norm=dtn:heads=8" },
	{ NULL, NULL },
};

/* ---- the model ------------------------------------------------------------------------------------------------------ */

struct stages { int64_t count; double dim[NR_MAXLEVELS], depth[NR_MAXLEVELS], heads[NR_MAXLEVELS], value[NR_MAXLEVELS],
	mlp[NR_MAXLEVELS]; };

static bool read_stages(struct nr_net *n, const struct levit *c, struct stages *s)
{
	return nr_stages_read(n, (const struct nr_stage_list[]){ { "dims", c->dims, s->dim }, { "depths", c->depths, s->depth },
		{ "heads", c->heads, s->heads }, { "value", c->value, s->value }, { "mlp", c->mlp, s->mlp }, { NULL, NULL,
		NULL } }, &s->count);
}

static nr_t *norm_of(struct nr_net *n, const struct levit *c, const char *layer, nr_t *x)
{
	const char *site = nr_arena_printf(nr_net_arena(n), "%s.norm", layer);
	return c->folded || !site ? x : nr_norm(n, site, x);
}

/* A linear layer with its norm. */
static nr_t *layer(struct nr_net *n, const struct levit *c, const char *name, nr_t *x, int64_t out)
{
	return norm_of(n, c, name, nr_linear_or(n, name, x, out, c->folded));
}

/* Branches begin at zero: their last norm does. */
static nr_t *begins_at_zero(struct nr_net *n, const char *name, nr_t *x)
{
	const char *full = nr_arena_printf(nr_net_arena(n), "%s.%s.norm.weight", n->scope, name);
	struct nr_entry *e = full ? nr_store_find(nr_net_store(n), full) : NULL;
	if (e) e->value = 0;
	return x;
}

/* For the grid of these tokens, which all pictures of a model share. */
static nr_t *bias(struct nr_net *n, const nr_t *x, int64_t heads, int64_t stride)
{
	if (!x || !x->tok) return NULL;
	const int64_t h = x->tok->h, w = x->tok->w;
	nr_t *table = nr_param(n, "attn.biases", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(heads, h * w));
	return nr_grid_bias(n, table, (struct nr_grid_bias){ h, w, stride, 0 });
}

static nr_t *attention(struct nr_net *n, nr_t *x, const struct levit *c, const struct stages *s, int64_t i)
{
	const int64_t heads = (int64_t)s->heads[i], value = (int64_t)(s->value[i] * (double)c->key);
	nr_t *qkv = layer(n, c, "attn.qkv", x, heads * (2 * c->key + value));
	x = nr_attention_with(n, qkv, (struct nr_attention_options){ .heads = heads, .value = value, .per_head = 1,
		.bias = bias(n, qkv, heads, 1) });
	x = layer(n, c, "attn.proj", nr_activate(n, c->act, nr_norm(n, "attn.inner", x)), (int64_t)s->dim[i]);
	return begins_at_zero(n, "attn.proj", x);
}

static nr_t *mlp(struct nr_net *n, nr_t *x, const struct levit *c, int64_t dim, double ratio)
{
	x = nr_norm(n, "mlp.inner", nr_activate(n, c->act, layer(n, c, "mlp.fc1", x, nr_mlp_width(ratio, dim))));
	return begins_at_zero(n, "mlp.fc2", layer(n, c, "mlp.fc2", x, dim));
}

/* From stage i - 1 to stage i: keys are all tokens, queries every second one of both directions. */
static nr_t *shrink(struct nr_net *n, nr_t *x, const struct levit *c, const struct stages *s, int64_t i)
{
	const int64_t from = (int64_t)s->dim[i - 1], dim = (int64_t)s->dim[i], heads = from / c->key, value = 4 * c->key;
	if (!heads) return nr_net_fail(n, NR_EVALUE, "key", "it is wider than the tokens of a stage");
	nr_push(n, "shrink");
	nr_t *kv = layer(n, c, "attn.kv", x, heads * (c->key + value));
	nr_t *q = layer(n, c, "attn.q", nr_unfold_windows(n, nr_as_grid(n, x), 1, 2, 0, NR_PATCH_ROW_COL_CHANNEL), heads * c->key);
	x = nr_kv_attention(n, q, kv, (struct nr_attention_options){ .heads = heads, .per_head = 1, .bias = bias(n, kv, heads, 2) });
	x = layer(n, c, "attn.proj", nr_activate(n, c->act, x), dim);
	x = nr_residual(n, "mlp", x, mlp(n, x, c, dim, 2), c->drop_path);
	return nr_pop(n, x);
}

static nr_t *stage(struct nr_net *n, nr_t *x, const struct levit *c, const struct stages *s, int64_t i)
{
	const int64_t depth = (int64_t)s->depth[i];
	nr_push_nth(n, "stages", i, s->count);
	if (i) x = shrink(n, x, c, s, i);
	for (int64_t j = 0; j < depth; j++) {
		nr_push_nth(n, "blocks", j, depth);
		x = nr_with_heads(n, x, (int64_t)s->heads[i]);
		x = nr_residual(n, "attn", x, attention(n, nr_norm(n, "attn.in", x), c, s, i), c->drop_path);
		x = nr_residual(n, "mlp", x, mlp(n, nr_norm(n, "mlp.in", x), c, (int64_t)s->dim[i], s->mlp[i]), c->drop_path);
		nr_pop(n, x);
	}
	return nr_hidden(n, nr_pop(n, x), "stage%lld", (long long)i);
}

/* The stem: 3 x 3 convolutions of stride 2, the last one as wide as a token, each before it half of the next. */
static nr_t *embed(struct nr_net *n, const struct nr_inputs *in, const void *conf)
{
	const struct levit *c = conf;
	struct stages s;
	if (!read_stages(n, c, &s)) return NULL;
	nr_t *x = nr_picture_grid(n, in->image);
	if (c->stride & (c->stride - 1)) return nr_net_fail(n, NR_EVALUE, "stride", "it must be a power of 2");
	int64_t convs = 0;
	while ((int64_t)1 << convs < c->stride) convs++;
	for (int64_t i = 0; i < convs && x; i++) {
		const char *name = nr_arena_printf(nr_net_arena(n), "%lld", (long long)i);
		nr_push(n, "stem");
		x = nr_conv(n, name, x, (int64_t)s.dim[0] >> (convs - 1 - i), 3, 2, 1, 1, c->folded);
		x = norm_of(n, c, name, nr_as_tokens(n, x));
		if (i + 1 < convs) x = nr_as_grid(n, nr_activate(n, c->act, x));
		nr_pop(n, x);
	}
	return x;
}

static nr_t *encode(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf)
{
	struct stages s;
	(void)in;
	if (!x || !read_stages(n, conf, &s)) return NULL;
	for (int64_t i = 0; i < s.count; i++) x = stage(n, x, conf, &s, i);
	return x;
}

static int levels(struct nr_net *n, const struct nr_inputs *in, const void *conf, nr_t *level[NR_MAXLEVELS])
{
	struct stages s;
	nr_t *x = embed(n, in, conf);
	if (!x || !read_stages(n, conf, &s)) return 0;
	for (int64_t i = 0; i < s.count; i++) level[i] = x = stage(n, x, conf, &s, i);
	return (int)s.count;
}

static nr_t *pool(struct nr_net *n, nr_t *x, const void *conf)
{
	(void)conf;
	return nr_mean_tokens(n, x, NULL);
}

static nr_t *head(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct levit *c = conf;
	nr_t *one = nr_linear(n, "head", norm_of(n, c, "head", x), c->classes);
	if (!c->distilled) return one;
	return nr_scale(n, nr_add(n, one, nr_linear(n, "head_dist", norm_of(n, c, "head_dist", x), c->classes)), 0.5);
}

/* ---- in a file ---------------------------------------------------------------------------------------------------------- */

static const char *const signs[] = { "stem.0.weight", "stem.0.norm.running_mean", "stages.0.blocks.0.attn.biases",
	"stages.0.blocks.0.attn.qkv.weight", "stages.0.blocks.0.mlp.fc1.weight", "stages.1.shrink.attn.q.weight",
	"stages.1.shrink.attn.kv.weight", "head.norm.weight", "head_dist.weight", "head.weight", NULL };

static const struct nr_st_tensor *find(const struct nr_look *l, int64_t stage, const char *entry)
{
	return nr_look_find(l, nr_arena_printf(l->arena, "stages.%d.%s", (int)stage, entry));
}

static bool measure(const struct nr_look *l, struct nr_sighting *s)
{
	double dim[NR_MAXLEVELS], depth[NR_MAXLEVELS], heads[NR_MAXLEVELS], value[NR_MAXLEVELS], ratio[NR_MAXLEVELS];
	const struct nr_st_tensor *kv = find(l, 1, "shrink.attn.kv.weight"), *stem = nr_look_find(l, "stem.0.weight");
	const struct nr_st_tensor *table = find(l, 0, "blocks.0.attn.biases"), *wide = find(l, 1, "shrink.attn.biases");
	if (!kv || !stem || stem->nd != 4 || !table || table->nd != 2 || !wide || wide->shape[0] < 1) return false;
	const int64_t key = kv->shape[0] / wide->shape[0] / 5, convs = nr_look_depth_at(l, "stem", "weight");      /* values: 4 keys */
	int64_t count = 0, grid = 1;
	for (; count < NR_MAXLEVELS; count++) {
		const struct nr_st_tensor *qkv = find(l, count, "blocks.0.attn.qkv.weight"), *b = find(l, count, "blocks.0.attn.biases");
		const struct nr_st_tensor *fc1 = find(l, count, "blocks.0.mlp.fc1.weight");
		if (!qkv || !b || !fc1 || qkv->nd != 2 || fc1->nd != 2 || b->shape[0] < 1 || key < 1) break;
		dim[count] = (double)qkv->shape[1];
		heads[count] = (double)b->shape[0];
		value[count] = (double)(qkv->shape[0] / b->shape[0] - 2 * key) / (double)key;
		ratio[count] = (double)fc1->shape[0] / dim[count];
		depth[count] = (double)nr_look_depth_at(l, nr_arena_printf(l->arena, "stages.%d.blocks", (int)count), "attn.biases");
	}
	while (grid * grid < table->shape[1]) grid++;
	if (!count || convs < 1 || convs > 6) return false;
	nr_config_saw_side(l, s, grid << convs);
	nr_config_saw_act(l, s);
	nr_saw(s, "channels", stem->shape[1]);
	nr_saw(s, "stride", (int64_t)1 << convs);
	nr_saw_key_text(s, "dims", nr_stages_text(dim, count, l->arena));
	nr_saw_key_text(s, "depths", nr_stages_text(depth, count, l->arena));
	nr_saw_text(s, "heads", nr_stages_text(heads, count, l->arena));
	bool same = true;
	for (int64_t i = 1; i < count; i++) same &= value[i] == value[0] && ratio[i] == ratio[0];
	nr_saw_text(s, "value", nr_stages_text(value, same ? 1 : count, l->arena));
	nr_saw_text(s, "mlp", nr_stages_text(ratio, same ? 1 : count, l->arena));
	nr_saw(s, "key", key);
	nr_saw(s, "classes", nr_look_rows(l, "head.weight", 0));
	nr_saw(s, "distilled", nr_look_find(l, "head_dist.weight") != NULL);
	nr_saw(s, "folded", nr_look_find(l, "stem.0.bias") != NULL);
	if (!strncmp(l->naming->name, "huggingface", 11)) nr_saw_all(s);     /* it has one activation */
	return true;
}

static json_t *hf_config(const struct levit *c, const struct nr_saved *w)
{
	json_t *j = json_pack("{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "architectures",
		c->distilled ? "LevitForImageClassificationWithTeacher" : "LevitForImageClassification", "model_type", "levit",
		"image_size", (json_int_t)c->image, "num_channels", (json_int_t)c->channels, "kernel_size", (json_int_t)3, "stride",
			(json_int_t)2,
		"padding", (json_int_t)1, "patch_size", (json_int_t)c->stride);
	nr_config_lists(j, (const char *[]){ "hidden_sizes", c->dims, "depths", c->depths, "num_attention_heads", c->heads,
		"attention_ratio",
		c->value, "mlp_ratio", c->mlp, NULL });
	json_object_set_new(j, "key_dim", json_pack("[I]", (json_int_t)c->key));
	static const char *const each[] = { "attention_ratio", "mlp_ratio", "key_dim" };
	for (int i = 0; i < 3; i++) {           /* for every stage, there */
		json_t *list = json_object_get(j, each[i]);
		while (json_array_size(list) < (size_t)nr_stages_count(c->dims))
			json_array_append(list, json_array_get(list, 0));
	}
	return nr_config_labels(j, w, c->classes);
}

static json_t *config(const struct nr_saved *w)
{
	const struct levit *c = w->model->conf;
	if (!strncmp(w->naming->name, "huggingface", 11)) return hf_config(c, w);
	if (strcmp(w->naming->name, "timm")) return NULL;
	json_t *args = json_pack("{s:I, s:I, s:I, s:s}", "img_size", (json_int_t)c->image, "in_chans", (json_int_t)c->channels, "key_dim",
		(json_int_t)c->key, "stem_type", c->stride == 8 ? "s8" : "s16");
	nr_config_lists(args, (const char *[]){ "embed_dim", c->dims, "depth", c->depths, "num_heads", c->heads, NULL });
	json_object_set_new(args, "attn_ratio", json_real(nr_stages_last(c->value)));
	json_object_set_new(args, "mlp_ratio", json_real(nr_stages_last(c->mlp)));
	return nr_timm_config(w, "levit_128s", nr_stages_last(c->dims), "avg", args);
}

static const char *const classes[] = { "LevitForImageClassification", "LevitForImageClassificationWithTeacher", "LevitModel", NULL };
static const struct nr_model_file file = {
	.classes = classes, .types = (const char *const[]){ "levit", NULL },
	.signs = signs, .measure = measure, .config = config, .doubt = "the activation is unknown: hard swish is assumed",
};

const struct nr_model nr_model_levit = {
	.name = "levit", .title = "LeViT", .cite = "arXiv:2104.01136", .conf_size = sizeof(struct levit), .options = options,
	.presets = presets, .plans = plans, .namings = nr_levit_namings,
	.norms = { .norm = "batch", .placement = "none",
		.sites = "0.norm 1.norm 2.norm 3.norm 4.norm 5.norm attn.qkv.norm attn.q.norm attn.kv.norm "
		"attn.proj.norm mlp.fc1.norm mlp.fc2.norm head.norm head_dist.norm", .eps = 1e-5 },
	.embed = embed, .encode = encode, .levels = levels, .pool = pool, .head = head, .file = &file,
};
