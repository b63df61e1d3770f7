/* t2t: Tokens-to-Token ViT. Yuan et al. 2021, arXiv:2101.11986; the official form and names.
 *
 * Overlapping windows of the picture are split softly into tokens, mixed by a narrow block and put back on a grid, twice (section 3.1);
 * then a deep and narrow ViT with fixed sinusoids as positions. In the narrow blocks the values themselves are the skip path, because
 * tokens leave them with another width; their attention is a Performer's or, tokens=transformer, the usual one of a single head.
 *
 *   sites   attn.in, mlp.in, the sums, of tokens.N and of every block; final */
#include <math.h>

#include "base/real.h"
#include "base/rng.h"
#include "models/block.h"
#include "models/guess.h"
#include "models/stages.h"
#include "norma/nn.h"
#include "norma/safetensors.h"

enum tokens { PERFORMER, TRANSFORMER };

struct t2t {
	int64_t image, channels, width, dim, depth, heads, classes;
	double mlp, drop_path, dropout, attention_dropout;
	int32_t tokens;
	bool qkv_bias;
	char *act;
};

static const char *const kinds[] = { "performer", "transformer", NULL };
static const struct nr_option options[] = {
	NR_OPT_INT(struct t2t, image, 224, 1, 4096, "size of the square picture"),
	NR_OPT_INT(struct t2t, channels, 3, 1, 64, "channels of the picture"),
	NR_OPT_ENUM(struct t2t, tokens, "performer", kinds, "attention of the two narrow blocks"),
	NR_OPT_INT(struct t2t, width, 64, 2, 65536, "width of a token in them"),
	NR_OPT_INT(struct t2t, dim, 384, 1, 65536, "width of a token"),
	NR_OPT_INT(struct t2t, depth, 14, 1, 1024, "number of blocks"),
	NR_OPT_INT(struct t2t, heads, 6, 1, 1024, "attention heads"),
	NR_OPT_FLOAT(struct t2t, mlp, 3, 0.01, 64, "width of the MLP relative to a token"),
	NR_OPT_INT(struct t2t, classes, 1000, 1, 1000000, "outputs of the head"),
	NR_OPT_BOOL(struct t2t, qkv_bias, "0", "bias of queries, keys and values"),
	NR_OPT_STRING(struct t2t, act, "gelu", "activation of the MLP: gelu, gelu_tanh, relu, silu"),
	NR_OPT_FLOAT(struct t2t, drop_path, 0, 0, 0.99, "share of samples that skip the last block; fewer skip earlier ones"),
	NR_OPT_FLOAT(struct t2t, dropout, 0, 0, 0.99, "dropout of positions and branches"),
	NR_OPT_FLOAT(struct t2t, attention_dropout, 0, 0, 0.99, "dropout of attention"),
	NR_OPT_END
};

#define T14 "tokens=transformer,dim=384,depth=14,heads=6,mlp=3"
static const struct nr_preset presets[] = {
	{ "t2t_vit_7", "dim=256,depth=7,heads=4,mlp=2" }, { "t2t_vit_10", "dim=256,depth=10,heads=4,mlp=2" },
	{ "t2t_vit_12", "dim=256,depth=12,heads=4,mlp=2" }, { "t2t_vit_14", "dim=384,depth=14,heads=6,mlp=3" },
	{ "t2t_vit_19", "dim=448,depth=19,heads=7,mlp=3" }, { "t2t_vit_24", "dim=512,depth=24,heads=8,mlp=3" },
	{ "t2t_vit_t_14", T14 }, { "t2t_vit_t_19", "tokens=transformer,dim=448,depth=19,heads=7,mlp=3" },
	{ "t2t_vit_t_24", "tokens=transformer,dim=512,depth=24,heads=8,mlp=3" },
	{ "dtn/t2t-t-14", T14 },
	/* for 32 pixels on a CPU: four tokens, so rather 64 */
	{ "t2t_nano", "image=64,width=16,dim=96,depth=4,heads=3,mlp=2,classes=10" },
	{ NULL, NULL },
};
/* No placement is published; chosen as in DTN's ViT: all but the last two blocks. The class token takes its own statistics. */
static const struct nr_preset plans[] = { { "dtn/t2t-t-14", "layer blocks[0:12].*=dtn" }, { NULL, NULL } };

static const struct nr_rename official[] = {
	{ "attn.in.", "norm1." }, { "mlp.in.", "norm2." }, { "tokens.#.", "tokens_to_token.attention#+." }, { "project.", "tokens_to_token.project." },
	{ "final.", "norm." }, { NULL, NULL },
};
static const struct nr_naming namings[] = { { .name = "official", .rules = official }, { .name = NULL } };

/* ---- the model ------------------------------------------------------------------------------------------------------ */

/* Orthogonal rows of length sqrt(m), the same ones for every seed. */
static void fill_features(const struct nr_entry *e, const void *conf, real *w)
{
	const int64_t m = e->d[0], C = e->d[1];
	const struct nr_rng rng = nr_rng_make(20210122, 0, *(const uint32_t *)conf);
	for (int64_t i = 0; i < m * C; i++) w[i] = (real)nr_rng_normal(rng, (uint64_t)i);
	for (int64_t i = 0; i < m; i++) {
		double length = 0;
		for (int64_t k = 0; k < i; k++) {
			double dot = 0;
			for (int64_t j = 0; j < C; j++) dot += (double)w[i * C + j] * (double)w[k * C + j] / (double)m;
			for (int64_t j = 0; j < C; j++) w[i * C + j] -= (real)(dot * (double)w[k * C + j]);
		}
		for (int64_t j = 0; j < C; j++) length += (double)w[i * C + j] * (double)w[i * C + j];
		for (int64_t j = 0; j < C; j++) w[i * C + j] *= (real)sqrt((double)m / length);
	}
}

static nr_t *performer(struct nr_net *n, nr_t *x, const struct t2t *c, uint32_t number)
{
	nr_t *kqv = nr_linear(n, "kqv", nr_norm(n, "attn.in", x), 3 * c->width);
	nr_t *w = nr_param(n, "w", NR_ZEROS, NR_SHAPE(c->width / 2, c->width));
	if (!kqv || !w) return NULL;
	w->entry->frozen = 1;
	nr_entry_fill(w->entry, fill_features, &number, sizeof number, NULL);
	nr_t *y = nr_dropout(n, nr_linear(n, "proj", nr_performer(n, kqv, w, 1e-8), c->width), c->dropout);
	x = nr_residual(n, "attn", nr_channels(n, kqv, 2 * c->width, 3 * c->width), y, 0);
	y = nr_activate(n, "gelu", nr_linear(n, "mlp.0", nr_norm(n, "mlp.in", x), c->width));
	return nr_residual(n, "mlp", x, nr_dropout(n, nr_linear(n, "mlp.2", y, c->width), c->dropout), 0);
}

/* The scale of the scores is that of the input's width. */
static nr_t *transformer(struct nr_net *n, nr_t *x, const struct t2t *c)
{
	if (!x) return NULL;
	const struct nr_block b = { .hidden = c->width, .act = c->act, .dropout = c->dropout };
	const struct nr_attention_options o = { .heads = 1, .scale = 1 / sqrtf((float)nr_cols(x)), .dropout = (float)c->attention_dropout };
	nr_t *qkv = nr_linear_or(n, "attn.qkv", nr_norm(n, "attn.in", x), 3 * c->width, c->qkv_bias);
	nr_t *y = nr_dropout(n, nr_linear(n, "attn.proj", nr_attention_with(n, qkv, o), c->width), c->dropout);
	x = nr_residual(n, "attn", nr_channels(n, qkv, 2 * c->width, 3 * c->width), y, 0);
	return nr_residual(n, "mlp", x, nr_block_mlp(n, nr_norm(n, "mlp.in", x), &b), 0);
}

/* The soft split of a grid. */
static nr_t *split(struct nr_net *n, nr_t *grid, int64_t k, int64_t stride, int64_t pad)
{
	return nr_unfold_windows(n, grid, k, stride, pad, NR_PATCH_CHANNEL_ROW_COL);
}

static void fill_sinusoid(const struct nr_entry *e, const void *conf, real *v)
{
	const int64_t T = e->d[1], C = e->d[2];
	(void)conf;
	for (int64_t t = 0; t < T; t++)
		for (int64_t j = 0; j < C; j++) {
			const double angle = (double)t / pow(10000, 2 * (double)(j / 2) / (double)C);
			v[t * C + j] = (real)(j % 2 ? cos(angle) : sin(angle));
		}
}

/* Side of the grid after three splits: 4 pixels, then 2 tokens twice. */
static int64_t side(const struct t2t *c)
{
	const int64_t first = (c->image - 3) / 4 + 1, second = (first + 1) / 2;
	return (second + 1) / 2;
}

static nr_t *position_table(struct nr_net *n, const struct t2t *c)
{
	nr_t *pos = nr_param(n, "pos_embed", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(1, 1 + side(c) * side(c), c->dim));
	if (!pos) return NULL;
	pos->entry->frozen = 1;
	nr_entry_fill(pos->entry, fill_sinusoid, NULL, 0, NULL);
	return pos;
}

static nr_t *embed(struct nr_net *n, const struct nr_inputs *in, const void *conf)
{
	const struct t2t *c = conf;
	nr_t *x = split(n, nr_picture_grid(n, in->image), 7, 4, 2);
	for (uint32_t i = 0; i < 2; i++) {
		nr_push_nth(n, "tokens", i, 2);
		x = nr_with_heads(n, x, 1);
		x = nr_pop(n, c->tokens == PERFORMER ? performer(n, x, c, i) : transformer(n, x, c));
		x = split(n, nr_as_grid(n, x), 3, 2, 1);
	}
	x = nr_linear(n, "project", x, c->dim);
	return nr_dropout(n, nr_add_table(n, x, nr_span(n, position_table(n, c), 1, NR_END)), c->dropout);
}

static nr_t *encode(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf)
{
	const struct t2t *c = conf;
	(void)in;
	nr_t *cls = nr_param(n, "cls_token", NR_TRUNC_02 | NR_NO_DECAY, NR_SHAPE(1, 1, c->dim));
	x = nr_prepend(n, nr_add(n, cls, nr_span(n, position_table(n, c), 0, 1)), x);
	for (int64_t i = 0; i < c->depth; i++) {
		const struct nr_block b = { .heads = c->heads, .hidden = nr_mlp_width(c->mlp, c->dim), .act = c->act, .no_qkv_bias = !c->qkv_bias,
			.dropout = c->dropout, .attention_dropout = c->attention_dropout, .drop_path = nr_drop_path_at(c->drop_path, i, c->depth) };
		nr_push_nth(n, "blocks", i, c->depth);
		x = nr_hidden(n, nr_pop(n, nr_block(n, x, &b)), "block%lld", (long long)i);
	}
	return nr_norm(n, "final", x);
}

static nr_t *pool(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct t2t *c = conf;
	return x ? nr_reshape(n, nr_span(n, x, 0, 1), NR_SHAPE(x->d[0], c->dim)) : NULL;
}

/* ---- in a file ---------------------------------------------------------------------------------------------------------- */

static const char *const signs[] = { "tokens.0.attn.in.weight", "tokens.0.mlp.in.weight", "tokens.0.w", "tokens.0.kqv.weight",
	"tokens.0.attn.qkv.weight", "project.weight", "cls_token", "pos_embed", "blocks.0.attn.qkv.weight", "blocks.0.mlp.fc1.weight",
	"final.weight", "head.weight", NULL };

static bool measure(const struct nr_look *l, struct nr_sighting *s)
{
	const struct nr_st_tensor *project = nr_look_find(l, "project.weight"), *in = nr_look_find(l, "tokens.0.attn.in.weight");
	const struct nr_st_tensor *pos = nr_look_find(l, "pos_embed");
	if (!project || project->nd != 2 || project->shape[1] % 9 || !in || in->nd != 1 || !pos || pos->nd != 3) return false;
	const int64_t dim = project->shape[0], hidden = nr_look_rows(l, "blocks.0.mlp.fc1.weight", dim);
	int64_t grid = 1;
	while (grid * grid < pos->shape[1] - 1) grid++;
	if (hidden < 1 || grid * grid != pos->shape[1] - 1) return false;
	nr_saw(s, "image", 16 * grid);
	nr_saw(s, "channels", in->shape[0] / 49);
	nr_saw_text(s, "tokens", nr_look_find(l, "tokens.0.w") ? "performer" : "transformer");
	nr_saw(s, "width", project->shape[1] / 9);
	nr_saw_key(s, "dim", dim);
	nr_saw_key(s, "depth", nr_look_depth(l, "mlp.fc1.weight"));
	nr_assumed(s, "heads", nr_heads_assumed(dim));
	nr_saw_text(s, "mlp", nr_arena_printf(l->arena, "%.9g", (double)hidden / (double)dim));
	nr_saw(s, "classes", nr_look_rows(l, "head.weight", 0));
	nr_saw(s, "qkv_bias", nr_look_find(l, "blocks.0.attn.qkv.bias") != NULL);
	return true;
}

static const struct nr_model_file file = {
	.signs = signs, .measure = measure, .doubt = "the number of heads is unknown: a width of 64 is assumed",
};

const struct nr_model nr_model_t2t = {
	.name = "t2t", .title = "Tokens-to-Token ViT", .cite = "arXiv:2101.11986", .conf_size = sizeof(struct t2t), .options = options,
	.presets = presets, .plans = plans, .namings = namings, .norms = { .norm = "layer", .placement = "pre", .eps = 1e-5 },
	.embed = embed, .encode = encode, .pool = pool, .file = &file,
};
