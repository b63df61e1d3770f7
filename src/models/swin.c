/* swin: Swin Transformer. Liu et al. 2021, arXiv:2103.14030; timm's form and names.
 *
 * Stages of shrinking grids. Blocks attend inside windows, every second one inside windows shifted by half (section 3.2), with a learned
 * bias for each offset (Eq. 4); between stages 2 x 2 tokens are merged into one. Grids that windows do not tile are padded with zeros.
 *
 *   sites   patch.out; merge.in of later stages; those of every block; final; level of each stage, for the pyramid only */
#include <stdlib.h>
#include <string.h>

#include "models/detector.h"
#include "models/block.h"
#include "models/guess.h"
#include "models/image_config.h"
#include "models/names.h"
#include "models/stages.h"
#include "norma/nn.h"
#include "norma/safetensors.h"

struct swin {
	int64_t image, channels, classes, patch, dim;
	double mlp, drop_path, dropout, attention_dropout;
	bool qkv_bias, pad_first, shift_both, clamp;
	char *depths, *heads, *windows, *act;
};

static const struct nr_option options[] = {
	NR_OPT_INT(struct swin, image, 224, 1, 4096, "size of the square picture"),
	NR_OPT_INT(struct swin, channels, 3, 1, 64, "channels of the picture"),
	NR_OPT_INT(struct swin, patch, 4, 1, 512, "size of a patch"),
	NR_OPT_INT(struct swin, dim, 96, 1, 65536, "width of a token of the first stage; it doubles with each"),
	NR_OPT_STRING(struct swin, depths, "2-2-6-2", "number of blocks, for each stage"),
	NR_OPT_STRING(struct swin, heads, "3-6-12-24", "attention heads, for each stage"),
	NR_OPT_STRING(struct swin, windows, "7", "side of a window, or its rows and columns as 8x4, for each stage or all"),
	NR_OPT_FLOAT(struct swin, mlp, 4, 0.01, 64, "width of the MLP relative to a token"),
	NR_OPT_INT(struct swin, classes, 1000, 1, 1000000, "outputs of the head"),
	NR_OPT_BOOL(struct swin, qkv_bias, "1", "bias of queries, keys and values"),
	NR_OPT_BOOL(struct swin, pad_first, "0", "pad before the shift, as Hugging Face and detectors do; timm pads after it"),
	NR_OPT_BOOL(struct swin, shift_both, "0",
		"shift only where the grid is larger than a window in both directions, as Hugging Face; timm: in each that is"),
	NR_OPT_BOOL(struct swin, clamp, "1", "windows are no larger than the grid of their stage; torchvision pads the grid instead"),
	NR_OPT_STRING(struct swin, act, "gelu", "activation of the MLP: gelu, gelu_tanh, relu, silu"),
	NR_OPT_FLOAT(struct swin, drop_path, 0, 0, 0.99, "share of samples that skip the last block; fewer skip earlier ones"),
	NR_OPT_FLOAT(struct swin, dropout, 0, 0, 0.99, "dropout of the branches"),
	NR_OPT_FLOAT(struct swin, attention_dropout, 0, 0, 0.99, "dropout of attention"),
	NR_OPT_END
};

#define TINY "dim=96,depths=2-2-6-2,heads=3-6-12-24"
#define SMALL "dim=96,depths=2-2-18-2,heads=3-6-12-24"
#define BASE "dim=128,depths=2-2-18-2,heads=4-8-16-32"
#define LARGE "dim=192,depths=2-2-18-2,heads=6-12-24-48"
#define NANO "image=32,patch=2,dim=32,depths=2-2,heads=2-4,windows=4,classes=10"
static const struct nr_preset presets[] = {
	{ "swin_tiny_patch4_window7_224", TINY }, { "swin_small_patch4_window7_224", SMALL }, { "swin_base_patch4_window7_224", BASE },
	{ "swin_large_patch4_window7_224", LARGE }, { "swin_base_patch4_window12_384", "image=384,windows=12," BASE },
	{ "swin_large_patch4_window12_384", "image=384,windows=12," LARGE },
	{ "swin_s3_tiny_224", "windows=7-7-14-7," TINY }, { "swin_s3_small_224", "windows=14-14-14-7," SMALL },
	{ "swin_s3_base_224", "windows=7-7-14-7,dim=96,depths=2-2-30-2,heads=3-6-12-24" },
	{ "dtn/swin-t", TINY }, { "dtn/swin-s", SMALL }, { "dtn/swin-b", BASE },
	/* for 32 pixels on a CPU: grids of 16 and 8 */
	{ "swin_nano", NANO }, { "dtn/swin-nano", NANO },
	{ NULL, NULL },
};
/* DTN, appendix A.1 and B.1: all blocks; 4 x 4 and 2 x 2 tokens are pooled in the first two stages. */
#define DTN "layer stages[0].*=dtn:pool=4 stages[1].*=dtn:pool=2 stages[2:].*=dtn"
static const struct nr_preset plans[] = {
	{ "dtn/swin-t", DTN }, { "dtn/swin-s", DTN }, { "dtn/swin-b", DTN }, { "dtn/swin-nano", DTN }, { NULL, NULL },
};

#define BLOCK                                                                                                                   \
	{ "patch.out.", "patch_embed.norm." }, { "patch.", "patch_embed." }, { "attn.in.", "norm1." }, { "mlp.in.", "norm2." },   \
	{ "attn.table", "attn.relative_position_bias_table" }, { "stages.#.level.", "norm#." }
#define TIMM                                                                                                                    \
	BLOCK, { "merge.in.", "downsample.norm." }, { "merge.", "downsample." }, { "final.", "norm." }, { "head.", "head.fc." },  \
	{ "stages.", "layers." }
static const struct nr_rename timm[] = { TIMM, { NULL, NULL } };
static const struct nr_rename timm_dtn[] = {
	TIMM, { "mean_logit", "mean_norm_weight" }, { "var_logit", "var_norm_weight" }, { "norm1.pos", "~norm1.pos_proj.weight" },
	{ "norm2.pos", "~norm2.pos_proj.weight" }, { NULL, NULL },
};
/* Merging at the end of a stage, and a plain head. */
static const struct nr_rename official[] = {
	BLOCK, { "stages.#.merge.in.", "layers.#-.downsample.norm." }, { "stages.#.merge.", "layers.#-.downsample." }, { "final.",
		"norm." },
	{ "stages.", "layers." }, { NULL, NULL },
};
#define HF_AROUND                                                                                                               \
	{ "patch.out.", "swin.embeddings.norm." }, { "patch.proj.", "swin.embeddings.patch_embeddings.projection." },             \
	{ "stages.#.merge.in.", "swin.encoder.layers.#-.downsample.norm." }, { "stages.#.merge.", "swin.encoder.layers.#-.downsample." }, \
	{ "attn.in.", "layernorm_before." }, { "mlp.in.", "layernorm_after." }, { "stages.", "swin.encoder.layers." },            \
	{ "final.", "swin.layernorm." }, { "head.", "classifier." }
static const struct nr_rename hf[] = {
	{ "attn.qkv.", "attention.self.query. attention.self.key. attention.self.value." },
	{ "attn.table", "attention.self.relative_position_bias_table" }, { "attn.proj.", "attention.output.dense." },
	{ "mlp.fc1.", "intermediate.dense." }, { "mlp.fc2.", "output.dense." }, HF_AROUND, { NULL, NULL },
};
/* As transformers 5 holds them in memory. */
static const struct nr_rename hf5[] = {
	{ "attn.qkv.", "attention.q_proj. attention.k_proj. attention.v_proj." },
	{ "attn.table", "attention.relative_position_bias.relative_position_bias_table" }, { "attn.proj.", "attention.o_proj." }, HF_AROUND,
	{ NULL, NULL },
};
/* OpenMMLab's, whose merging unfolds the grid: channels of the four tokens are in another order. */
static const struct nr_rename mmdet[] = {
	{ "patch.out.", "patch_embed.norm." }, { "patch.proj.", "patch_embed.projection." }, { "attn.in.", "norm1." },
	{ "mlp.in.", "norm2." }, { "attn.table", "attn.w_msa.relative_position_bias_table" }, { "attn.qkv.", "attn.w_msa.qkv." },
	{ "attn.proj.", "attn.w_msa.proj." },
	{ "mlp.fc1.", "ffn.layers.0.0." }, { "mlp.fc2.", "ffn.layers.1." }, { "stages.#.level.", "norm#." },
	{ "stages.#.merge.in.", "%stages.#-.downsample.norm." }, { "stages.#.merge.reduction.", "%stages.#-.downsample.reduction." },
	{ "final.", "norm3." }, { "head.", "head.fc." }, { NULL, NULL },
};
/* torchvision's: merging and blocks are the layers of one list, whose first are the patches. */
#define TV_STAGE(i, merge, block)                                                                                               \
	{ "stages." #i ".merge.in.", "features." #merge ".norm." }, { "stages." #i ".merge.", "features." #merge "." },             \
	{ "stages." #i ".blocks.", "features." #block "." }
static const struct nr_rename torchvision[] = {
	{ "patch.proj.", "features.0.0." }, { "patch.out.", "features.0.2." }, TV_STAGE(0, 0, 1), TV_STAGE(1, 2, 3), TV_STAGE(2, 4, 5),
	TV_STAGE(3, 6, 7), TV_STAGE(4, 8, 9), TV_STAGE(5, 10, 11), TV_STAGE(6, 12, 13), TV_STAGE(7, 14, 15), { "attn.in.", "norm1." },
	{ "mlp.in.", "norm2." }, { "attn.table", "attn.relative_position_bias_table" }, { "mlp.fc1.", "mlp.0." }, { "mlp.fc2.", "mlp.3." },
	{ "final.", "norm." }, { NULL, NULL },
};
static const char *const ignored[] = { "*.relative_position_index", "*.attn_mask", "*.pos_proj.bias", NULL };
static const struct nr_naming namings[] = {
	{ .name = "timm", .rules = timm, .ignored = ignored }, { .name = "timm_dtn", .rules = timm_dtn, .ignored = ignored,
	  .idle_bias = "pos_proj.weight" },
	{ .name = "official", .rules = official, .ignored = ignored }, { .name = "torchvision", .rules = torchvision, .ignored = ignored },
	{ .name = "mmdet", .rules = mmdet, .ignored = ignored }, { .name = "huggingface", .rules = hf, .ignored = ignored },
	{ .name = "huggingface_base", .rules = hf, .without = "swin.", .ignored = ignored },
	{ .name = "huggingface5", .rules = hf5, .ignored = ignored }, NR_DETECTOR_NAMINGS(mmdet), { .name = NULL },
};

/* ---- the model ------------------------------------------------------------------------------------------------------ */

struct stages { int64_t count, all; double depth[NR_MAXLEVELS], heads[NR_MAXLEVELS], rows[NR_MAXLEVELS], cols[NR_MAXLEVELS]; };

static bool read_stages(struct nr_net *n, const struct swin *c, struct stages *s)
{
	struct nr_arena *arena = nr_net_arena(n);
	const bool ok = nr_stages_read(n, (const struct nr_stage_list[]){ { "depths", c->depths, s->depth }, { "heads", c->heads,
		s->heads }, { "windows", nr_stages_part(c->windows, 0, arena), s->rows },
		{ "windows", nr_stages_part(c->windows, 1, arena), s->cols }, { NULL, NULL, NULL } }, &s->count);
	s->all = 0;
	for (int64_t i = 0; i < s->count; i++) s->all += (int64_t)s->depth[i];
	return ok;
}

static int64_t up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/* Rows or columns of a window of stage i: the grid that the model is made for may be smaller. */
static int64_t side_of(const struct swin *c, double side, int64_t i)
{
	int64_t grid = up(c->image, c->patch) / c->patch;
	for (int64_t k = 0; k < i; k++) grid = (grid + 1) / 2;
	return c->clamp && grid < (int64_t)side ? grid : (int64_t)side;
}

/* x (B,T,C), normalised, to the branch's output: padded to whole windows, attention, cut again. */
static nr_t *attention(struct nr_net *n, nr_t *x, const struct swin *c, const struct stages *s, int64_t i, bool shifted)
{
	if (!x) return NULL;
	const int64_t C = nr_cols(x), h = x->tok->h, w = x->tok->w, wh = side_of(c, s->rows[i], i), ww = side_of(c, s->cols[i], i);
	const int64_t ph = up(h, wh), pw = up(w, ww);
	const bool pad = ph != h || pw != w, room = !c->shift_both || (h > wh && w > ww);
	struct nr_window_attention a = { .heads = (int64_t)s->heads[i], .h = ph, .w = pw, .window_h = wh, .window_w = ww,
		.roll_h = c->pad_first ? ph : h, .roll_w = c->pad_first ? pw : w, .shift_h = shifted && room && h > wh ? wh / 2 : 0,
		.shift_w = shifted && room && w > ww ? ww / 2 : 0, .dropout = (float)c->attention_dropout };
	nr_t *table = nr_param(n, "attn.table", NR_TRUNC_02 | NR_NO_DECAY, NR_SHAPE((2 * wh - 1) * (2 * ww - 1), a.heads));
	a.bias = nr_grid_bias(n, table, (struct nr_grid_bias){ wh, ww, 1, 1 });
	if (pad) x = nr_with_heads(n, nr_as_tokens(n, nr_fit_grid(n, nr_as_grid(n, x), ph, pw)), a.heads);
	nr_t *qkv = nr_norm_qk(n, nr_linear_or(n, "attn.qkv", x, 3 * C, c->qkv_bias), a.heads);
	x = nr_norm(n, "attn.inner", nr_norm(n, "attn.heads", nr_window_attention(n, qkv, a)));
	if (pad) x = nr_as_tokens(n, nr_fit_grid(n, nr_as_grid(n, x), h, w));
	return nr_dropout(n, nr_linear(n, "attn.proj", x, C), c->dropout);
}

static nr_t *merge(struct nr_net *n, nr_t *x)
{
	if (!x) return NULL;
	const int64_t C = nr_cols(x), h = x->tok->h, w = x->tok->w;
	nr_t *grid = nr_fit_grid(n, nr_as_grid(n, x), up(h, 2), up(w, 2));
	x = nr_norm(n, "merge.in", nr_unfold_windows(n, grid, 2, 2, 0, NR_PATCH_COL_ROW_CHANNEL));
	return nr_linear_no_bias(n, "merge.reduction", x, 2 * C);
}

static nr_t *stage(struct nr_net *n, nr_t *x, const struct swin *c, const struct stages *s, int64_t i)
{
	const int64_t depth = (int64_t)s->depth[i], C = c->dim << i;
	int64_t before = 0;
	for (int64_t k = 0; k < i; k++) before += (int64_t)s->depth[k];
	nr_push_nth(n, "stages", i, s->count);
	x = nr_pop(n, i ? merge(n, x) : x);
	for (int64_t j = 0; j < depth; j++) {
		const double drop = nr_drop_path_at(c->drop_path, before + j, s->all);
		const struct nr_block b = { .hidden = nr_mlp_width(c->mlp, C), .act = c->act, .dropout = c->dropout };
		nr_push_nth(n, "stages", i, s->count);
		nr_push_nth(n, "blocks", j, depth);
		x = nr_with_heads(n, x, (int64_t)s->heads[i]);
		x = nr_residual(n, "attn", x, attention(n, nr_norm(n, "attn.in", x), c, s, i, j % 2), drop);
		x = nr_residual(n, "mlp", x, nr_block_mlp(n, nr_norm(n, "mlp.in", x), &b), drop);
		x = nr_hidden(n, nr_pop(n, nr_pop(n, x)), "block%lld", (long long)(before + j));
	}
	return x;
}

static nr_t *embed(struct nr_net *n, const struct nr_inputs *in, const void *conf)
{
	const struct swin *c = conf;
	if (!in->image) return NULL;
	const int64_t p = c->patch;
	nr_t *x = nr_picture_grid(n, in->image);
	x = nr_fit_grid(n, x, up(in->image->d[2], p), up(in->image->d[3], p));
	x = nr_as_tokens(n, nr_conv(n, "patch.proj", x, c->dim, p, p, 0, 1, 1));
	return nr_dropout(n, nr_norm(n, "patch.out", x), c->dropout);
}

static nr_t *encode(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf)
{
	struct stages s;
	(void)in;
	if (!x || !read_stages(n, conf, &s)) return NULL;
	for (int64_t i = 0; i < s.count; i++) x = stage(n, x, conf, &s, i);
	return nr_norm(n, "final", x);
}

static int levels(struct nr_net *n, const struct nr_inputs *in, const void *conf, nr_t *level[NR_MAXLEVELS])
{
	struct stages s;
	nr_t *x = embed(n, in, conf);
	if (!x || !read_stages(n, conf, &s)) return 0;
	for (int64_t i = 0; i < s.count; i++) {
		x = stage(n, x, conf, &s, i);
		nr_push_nth(n, "stages", i, s.count);
		level[i] = nr_pop(n, nr_norm(n, "level", x));
	}
	return (int)s.count;
}

static nr_t *pool(struct nr_net *n, nr_t *x, const void *conf)
{
	(void)conf;
	return nr_mean_tokens(n, x, NULL);
}

/* ---- in a file ---------------------------------------------------------------------------------------------------------- */

static const char *const signs[] = { "patch.proj.weight", "patch.out.weight", "stages.0.blocks.0.attn.table",
	"stages.0.blocks.0.attn.qkv.weight", "stages.1.merge.reduction.weight", "stages.1.merge.in.weight", "stages.1.blocks.0.attn.table",
	"stages.0.blocks.0.mlp.fc1.weight", "final.weight", "head.weight", NULL };

/* Hugging Face's eps, which the norms after patches and before merging do not share. */
static void saw_eps(const struct nr_look *l, struct nr_sighting *s, int64_t stages)
{
	const double eps = nr_hf_number(l->config, "layer_norm_eps");
	if (!(eps > 0) || eps == 1e-5) return;
	nr_saw_norms(s, nr_arena_printf(l->arena, "layer eps=%.9g patch.out=layer:eps=1e-5%s", eps,
		stages > 1 ? " merge.in=layer:eps=1e-5" : ""));
}

static bool is_square(int64_t n) { return nr_root(n) % 2 == 1; }

/* Rows and columns of a setting of a config.json: a number is both. */
static bool read_pair(const json_t *v, double *pair)
{
	const bool two = json_array_size(v) == 2;
	const json_t *h = two ? json_array_get(v, 0) : v, *w = two ? json_array_get(v, 1) : v;
	const json_int_t rows = json_integer_value(h), cols = json_integer_value(w), most = 4096;
	pair[0] = (double)rows, pair[1] = (double)cols;
	return rows > 0 && cols > 0 && rows <= most && cols <= most;
}

/* Rows and columns of the picture, as config.json says. */
static bool read_picture(const struct nr_look *l, double *pair)
{
	const json_t *args = json_object_get(l->config, "model_args"), *input = json_object_get(json_object_get(l->config,
		"pretrained_cfg"), "input_size");
	const json_t *size = json_object_get(args, "img_size"), *other = json_object_get(l->config, "image_size");
	double width[2];
	if (read_pair(size ? size : other, pair)) return true;
	if (!read_pair(json_array_get(input, 1), pair) || !read_pair(json_array_get(input, 2), width)) return false;
	pair[1] = width[1];
	return true;
}

/* Columns of a window by the index into its table that some files have beside it: in its first row each next column is one less. 0: there
 * is none, or its places lie in one line, rows or columns. */
static int64_t columns_of_index(const struct nr_look *l, int64_t stage)
{
	enum { MOST = 4096 };
	int64_t row[MOST], n = 1;
	char order;
	const char *table = nr_naming_text(l->naming, nr_arena_printf(l->arena, "stages.%d.blocks.0.attn.table", (int)stage), &order,
		l->arena);
	const char *tail = table ? strstr(table, "_bias_table") : NULL;
	const char *name = tail ? nr_arena_printf(l->arena, "%.*s_index", (int)(tail - table), table) : NULL;
	const struct nr_st_tensor *t = name ? nr_st_find(l->file, name) : NULL;
	const int64_t cells = t ? nr_root(nr_st_elements(t)) : 0;
	if (cells < 1 || cells > MOST) return 0;
	struct nr_st_tensor first = *t;
	first.nd = 1, first.shape[0] = cells, first.bytes = (size_t)cells * nr_st_width(t->dtype);
	if (nr_st_to_i64(&first, row, cells, &(struct nr_error){ 0 }) || row[0] < 0) return 0;
	while (n < cells && row[n] == row[0] - n) n++;
	return n < cells ? n : 0;
}

/* The window whose table has so many offsets, if one side of it is known. */
static bool with_columns(int64_t offsets, double cols, double *rows)
{
	const int64_t odd = 2 * (int64_t)cols - 1, other = odd > 0 ? offsets / odd : 0;
	*rows = (double)(other + 1) / 2;
	return odd > 0 && other % 2 == 1 && odd * other == offsets;
}

/* Rows and columns of the windows of a stage, whose table has so many offsets: by the index beside it, by config.json, which may set them
 * larger than the grid; by a grid that is smaller than a square window; else a square. */
static bool window(const struct nr_look *l, int64_t stage, int64_t offsets, double *rows, double *cols)
{
	const json_t *args = json_object_get(l->config, "model_args"), *all = json_object_get(args, "window_size");
	if (!all) all = json_object_get(l->config, "window_size");
	const bool each = json_is_array(all) && (json_array_size(all) != 2 || json_is_array(json_array_get(all, 0)));
	double said[2], grid[2], patch = 1;
	const struct nr_st_tensor *proj = nr_look_find(l, "patch.proj.weight");
	const bool told = read_pair(each ? json_array_get(all, (size_t)stage) : all, said), seen = read_picture(l, grid);
	*cols = (double)columns_of_index(l, stage);
	if (*cols > 0 && with_columns(offsets, *cols, rows)) return true;
	if (proj && proj->nd == 4) patch = (double)proj->shape[3];
	for (int k = 0; seen && k < 2; k++) {
		int64_t side = ((int64_t)grid[k] + (int64_t)patch - 1) / (int64_t)patch;
		for (int64_t i = 0; i < stage; i++) side = (side + 1) / 2;
		grid[k] = (double)side;
	}
	for (int clamp = 0; told && clamp < 1 + seen; clamp++) {
		*cols = clamp && grid[1] < said[1] ? grid[1] : said[1];
		*rows = clamp && grid[0] < said[0] ? grid[0] : said[0];
		if ((2 * *rows - 1) * (2 * *cols - 1) == (double)offsets) return true;
	}
	if (!is_square(offsets) && seen && grid[0] < grid[1]) return *rows = grid[0], with_columns(offsets, *rows, cols);
	if (!is_square(offsets) && seen) return *cols = grid[1], with_columns(offsets, *cols, rows);
	*rows = *cols = (double)(nr_root(offsets) + 1) / 2;
	return is_square(offsets);
}

/* "7", "8x4-7", ... */
static const char *windows_text(const double *rows, const double *cols, int64_t count, struct nr_arena *arena)
{
	const char *text = "";
	bool same = true;
	for (int64_t i = 1; i < count; i++) same &= rows[i] == rows[0] && cols[i] == cols[0];
	for (int64_t i = 0; i < (same ? 1 : count) && text; i++)
		text = rows[i] == cols[i] ? nr_arena_printf(arena, "%s%s%.9g", text, i ? "-" : "", rows[i])
			: nr_arena_printf(arena, "%s%s%.9gx%.9g", text, i ? "-" : "", rows[i], cols[i]);
	return text;
}

static void saw_image(const struct nr_look *l, struct nr_sighting *s)
{
	double size[2];
	if (read_picture(l, size)) nr_saw(s, "image", (int64_t)(size[0] > size[1] ? size[0] : size[1]));    /* windows are already cut */
}

static bool measure(const struct nr_look *l, struct nr_sighting *s)
{
	double depth[NR_MAXLEVELS], heads[NR_MAXLEVELS], rows[NR_MAXLEVELS], cols[NR_MAXLEVELS];
	const bool tv = !strcmp(l->naming->name, "torchvision");
	const struct nr_st_tensor *proj = nr_look_find(l, "patch.proj.weight");
	if (!proj || proj->nd != 4) return false;
	int64_t count = 0;
	for (; count < NR_MAXLEVELS; count++) {
		const char *blocks = nr_arena_printf(l->arena, "stages.%d.blocks", (int)count);
		const struct nr_st_tensor *t = nr_look_find(l, nr_arena_printf(l->arena, "%s.0.attn.table", blocks));
		if (!t || t->nd != 2) break;
		if (!window(l, count, t->shape[0], &rows[count], &cols[count]))
			nr_saw_misfit(s, "its windows are not square, and nothing says how many rows and columns they have");
		depth[count] = (double)nr_look_depth_at(l, blocks, "attn.table");
		heads[count] = (double)t->shape[1];
	}
	const int64_t dim = proj->shape[0], hidden = nr_look_rows(l, "stages.0.blocks.0.mlp.fc1.weight", dim);
	if (!count || hidden < 1) return false;
	nr_saw_key(s, "patch", proj->shape[3]);
	nr_saw(s, "channels", proj->shape[1]);
	nr_saw_key(s, "dim", dim);
	nr_saw_key_text(s, "depths", nr_stages_text(depth, count, l->arena));
	nr_saw_text(s, "heads", nr_stages_text(heads, count, l->arena));
	nr_saw_text(s, "windows", windows_text(rows, cols, count, l->arena));
	nr_saw_text(s, "mlp", nr_arena_printf(l->arena, "%.9g", (double)hidden / (double)dim));
	nr_saw(s, "classes", nr_look_rows(l, "head.weight", 0));
	nr_saw(s, "qkv_bias", nr_look_find(l, "stages.0.blocks.0.attn.qkv.bias") != NULL);
	nr_saw(s, "pad_first", tv || !strncmp(l->naming->name, "huggingface", 11) || !strcmp(l->naming->name, "mmdet"));
	if (tv) nr_saw(s, "clamp", 0);
	nr_saw(s, "shift_both", !strncmp(l->naming->name, "huggingface", 11));
	saw_image(l, s);
	nr_config_saw_act(l, s);
	saw_eps(l, s, count);
	if (tv || json_object_get(l->config, "image_size")) nr_saw_all(s);
	return true;
}

/* timm's: 7 for all stages, [8, 4] for all, or a pair for each; two numbers would be a pair there, too. */
static json_t *windows_json(const char *text)
{
	json_t *list = json_array();
	json_int_t h, w;
	char *end;
	for (const char *s = text; *s && (h = w = strtoll(s, &end, 10)) > 0; s = end + (*end == '-')) {
		if (*end == 'x') w = strtoll(end + 1, &end, 10);
		json_array_append_new(list, json_pack("[I, I]", h, w));
	}
	if (json_array_size(list) != 1) return list;
	json_t *pair = json_array_get(list, 0), *side = json_array_get(pair, 0);
	json_t *only = json_incref(json_equal(side, json_array_get(pair, 1)) ? side : pair);
	json_decref(list);
	return only;
}

/* Hugging Face has one square window for all stages. */
static const char *refuses(const struct nr_model_spec *m, const struct nr_naming *to)
{
	const struct swin *c = m->conf;
	return strncmp(to->name, "huggingface", 11) || !strpbrk(c->windows, "-x") ? NULL
		: "that software has one square window for all stages";
}

static json_t *config(const struct nr_saved *w)
{
	const struct swin *c = w->model->conf;
	if (!strcmp(w->naming->name, "torchvision")) return NULL;
	const int64_t last = c->dim << (nr_stages_count(c->depths) - 1);
	if (strncmp(w->naming->name, "huggingface", 11)) {
		json_t *args = json_pack("{s:I, s:I, s:I, s:I, s:f, s:b}", "img_size", (json_int_t)c->image, "patch_size",
			(json_int_t)c->patch,
			"in_chans", (json_int_t)c->channels, "embed_dim", (json_int_t)c->dim, "mlp_ratio", c->mlp, "qkv_bias",
				(int)c->qkv_bias);
		nr_config_lists(args, (const char *[]){ "depths", c->depths, "num_heads", c->heads, NULL });
		json_object_set_new(args, "window_size", windows_json(c->windows));
		return nr_timm_config(w, "swin_tiny_patch4_window7_224", last, "avg", args);
	}
	json_t *j = json_pack("{s:[s], s:s, s:I, s:I, s:I, s:I, s:f, s:b, s:s, s:f}", "architectures",
		"SwinForImageClassification", "model_type",
		"swin", "patch_size", (json_int_t)c->patch, "embed_dim", (json_int_t)c->dim, "hidden_size", (json_int_t)last, "window_size",
		(json_int_t)nr_stages_last(c->windows), "mlp_ratio", c->mlp, "qkv_bias", (int)c->qkv_bias, "hidden_act",
			nr_hf_image_act(c->act),
		"layer_norm_eps", w->eps);
	nr_config_lists(j, (const char *[]){ "depths", c->depths, "num_heads", c->heads, NULL });
	return nr_config_labels(j, w, c->classes);
}

static const char *const classes[] = { "SwinForImageClassification", "SwinModel", NULL };
static const struct nr_model_file file = {
	.classes = classes, .types = (const char *const[]){ "swin", NULL },
	.signs = signs, .measure = measure, .config = config, .doubt = "the size of the picture is unknown: 224 is assumed",
	.refuses = refuses,
};

const struct nr_model nr_model_swin = {
	.name = "swin", .title = "Swin Transformer", .cite = "arXiv:2103.14030", .conf_size = sizeof(struct swin), .options = options,
	.presets = presets, .plans = plans, .namings = namings,
	.norms = { .norm = "layer", .placement = "pre", .rules = "patch.out=layer merge.in=layer level=layer", .eps = 1e-5 },
	.embed = embed, .encode = encode, .levels = levels, .pool = pool, .file = &file,
};
