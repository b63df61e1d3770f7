/* mae: masked autoencoders. He et al. 2022, arXiv:2111.06377, section 3 and the released code; U-MAE: Zhang et al. 2022,
 * arXiv:2210.08344; uniformity on other targets and Eq. 8: SepNorm, arXiv:2309.12931, sections 3.2 and 4.4.
 *
 *   latent = encoder(visible patches)                          the encoder computes nothing for the others
 *   pred   = decoder(latent at their places, the mask token elsewhere)
 *   mae    = mean over masked patches of mean (pred - pixels)^2, pixels standardised per patch if norm_pix
 *   unif   = mean over pairs of (z_i.z_j)^2 or z_i.z_j         z: [CLS], tokens, or a sum of both terms
 *          = mean_i log sum_j exp(z_i.z_j / t) - z_i.z_i / t   InfoNCE (arXiv:1807.03748) on [CLS]: the others of the batch are negatives
 *   loss   = mae + lambda unif
 *
 * The encoder's blocks and norms are those of the model; the decoder's sites are decoder.blocks[i].attn.in and so on. */
#include "models/mae.h"

#include "models/block.h"
#include "models/names.h"
#include "models/position.h"
#include "norma/nn.h"
#include "norma/safetensors.h"

static const char *const targets[] = { "none", "cls", "tokens", "both", NULL };
static const char *const powers[] = { "square", "linear", "infonce", NULL };
const struct nr_option nr_mae_options[] = {
	NR_OPT_INT(struct nr_mae, decoder_dim, 512, 1, 65536, "width of a token in the decoder"),
	NR_OPT_INT(struct nr_mae, decoder_depth, 8, 0, 1024, "blocks of the decoder"),
	NR_OPT_INT(struct nr_mae, decoder_heads, 16, 1, 1024, "attention heads of the decoder"),
	NR_OPT_FLOAT(struct nr_mae, decoder_mlp, 4, 0.01, 64, "width of the decoder's MLP relative to its tokens"),
	NR_OPT_STRING(struct nr_mae, decoder_act, "gelu", "activation of the decoder's MLP"),
	NR_OPT_ENUM(struct nr_mae, pos, "sincos", nr_position_names, "position tables of encoder and decoder"),
	NR_OPT_FLOAT(struct nr_mae, mask_ratio, 0.75, 0, 1, "share of the patches to mask"),
	NR_OPT_BOOL(struct nr_mae, norm_pix, "1", "standardise the pixels of each patch before comparing them"),
	NR_OPT_ENUM(struct nr_mae, uniform, "none", targets, "U-MAE's term on [CLS], on the visible tokens, or on both"),
	NR_OPT_FLOAT(struct nr_mae, lambda, 0.01, 0, 1000, "weight of the uniformity term"),
	NR_OPT_ENUM(struct nr_mae, power, "square", powers,
		"squared cosine as in U-MAE's code, the product of SepNorm's Eq. 8, or InfoNCE on [CLS]"),
	NR_OPT_FLOAT(struct nr_mae, temperature, 0.1, 1e-4, 1e4, "infonce: what cosines are divided by"),
	NR_OPT_BOOL(struct nr_mae, self, "1", "include pairs of an item with itself in the mean"),
	NR_OPT_BOOL(struct nr_mae, unit, "1", "divide embeddings by their lengths"),
	NR_OPT_BOOL(struct nr_mae, in_image, "0", "pair tokens within their image instead of within the batch"),
	NR_OPT_BOOL(struct nr_mae, extra_norm, "0",
		"apply the final norm once more before the term, as in U-MAE's code"),
	NR_OPT_INT(struct nr_mae, probe, 0, 0, 1e9,
		"training pictures to which each evaluation fits a linear probe; 0: no probe"),
	NR_OPT_END
};

int nr_mae_encoder(struct nr_model_spec *m, const struct nr_mae *o, struct nr_arena *arena, struct nr_error *err)
{
	if (nr_model_set(m, "pos", nr_position_names[o->pos], arena, err)) return err->code;
	return nr_model_set(m, "fc_norm", "0", arena, err);
}

int64_t nr_mae_kept(int64_t patches, double ratio) { return (int64_t)((double)patches * (1 - ratio)); }

/* ---- the graph ---------------------------------------------------------------------------------------------------------- */

struct sizes { int64_t batch, image, channels, patch, side, patches, kept, dim, classes; };     /* classes: class tokens, 0 or 1 */

static int measure(struct nr_net *n, const struct nr_model_spec *m, const struct nr_mae *o, int64_t batch, struct sizes *s)
{
	*s = (struct sizes){ .batch = batch, .image = nr_model_int(m, "image"), .channels = nr_model_int(m, "channels"),
		.patch = nr_model_int(m, "patch"), .dim = nr_model_int(m, "dim"), .classes = nr_model_int(m, "class_token") > 0 };
	if (s->image < 1 || s->channels < 1 || s->patch < 1 || s->dim < 1) {
		nr_net_fail(n, NR_EUSAGE, m->text, "a masked autoencoder needs an encoder of patches, such as a ViT");
		return NR_EUSAGE;
	}
	s->side = s->image / s->patch;
	s->patches = s->side * s->side;
	s->kept = nr_mae_kept(s->patches, o->mask_ratio);
	if (s->patches > NR_MAE_MAX_PATCHES) nr_net_fail(n, NR_ELIMIT, m->text, "more than %d patches", NR_MAE_MAX_PATCHES);
	else if (s->kept < 1)
		nr_net_fail(n, NR_EVALUE, m->text,
			"mask_ratio %g leaves none of the %lld patches", o->mask_ratio, (long long)s->patches);
	else if (o->uniform != NR_UNIFORM_NONE && o->uniform != NR_UNIFORM_CLS && o->power == NR_UNIFORM_INFONCE)
		nr_net_fail(n, NR_EUSAGE, m->text, "InfoNCE is for [CLS]: --uniform cls");
	else if ((o->uniform == NR_UNIFORM_CLS || o->uniform == NR_UNIFORM_BOTH) && !s->classes)
		nr_net_fail(n, NR_EUSAGE, m->text, "uniformity on [CLS] needs an encoder with a class token");
	return nr_net_error(n)->code;
}

static nr_t *encoder(struct nr_net *n, const struct nr_model_spec *m, const struct sizes *s, struct nr_mae_graph *g)
{
	/* Made here first: MAE draws the token from a plain normal and lets it decay, timm's ViT does neither. */
	if (s->classes) nr_param(n, "cls_token", NR_NORMAL_02, NR_SHAPE(1, 1, s->dim));
	const struct nr_inputs in = { .image = g->image };
	nr_t *x = nr_take_tokens(n, m->of->embed(n, &in, m->conf), g->kept);
	return nr_hidden(n, m->of->encode(n, &in, x, m->conf), "latent");
}

static nr_t *decoder(struct nr_net *n, const struct nr_model_spec *m, const struct nr_mae *o, const struct sizes *s,
	const struct nr_mae_graph *g)
{
	const struct nr_position_table pos = { s->side, s->side, o->decoder_dim, s->classes, o->pos };
	const struct nr_block b = { .heads = o->decoder_heads, .hidden = nr_mlp_width(o->decoder_mlp, o->decoder_dim),
		.act = o->decoder_act, .no_qkv_bias = nr_model_int(m, "qkv_bias") == 0 };
	nr_push(n, "decoder");
	nr_t *x = nr_linear(n, "embed", g->latent, o->decoder_dim);
	nr_t *mask_token = nr_param(n, "mask_token", NR_NORMAL_02, NR_SHAPE(1, 1, o->decoder_dim));
	x = nr_restore_tokens(n, x, mask_token, g->restore);
	/* Registers stay behind in the encoder: no place of the decoder asks for them. */
	x = nr_with_tokens(n, x, (struct nr_tokens){ .special = (int32_t)s->classes, .h = (int32_t)s->side, .w = (int32_t)s->side });
	if (o->pos != NR_POSITION_NONE) x = nr_add_table(n, x, nr_position_table(n, &pos));
	for (int64_t i = 0; i < o->decoder_depth; i++) {
		nr_push_nth(n, "blocks", i, o->decoder_depth);
		x = nr_hidden(n, nr_pop(n, nr_block(n, x, &b)), "decoder.block%lld", (long long)i);
	}
	x = nr_linear(n, "pred", nr_norm(n, "final", x), s->patch * s->patch * s->channels);
	return nr_hidden(n, nr_pop(n, nr_span(n, x, s->classes, NR_END)), "pred");
}

/* Over the pairs of the embeddings x (N,C), or of each sample's (B,T,C). */
static nr_t *pair_term(struct nr_net *n, const struct nr_mae *o, nr_t *x)
{
	const struct nr_pair_options p = { .kind = o->power == NR_UNIFORM_SQUARE ? NR_PAIRS_SQUARE : NR_PAIRS_LINEAR,
		.normalize = o->unit, .self = o->self };
	return nr_reshape(n, nr_pair_loss(n, x, p), NR_SHAPE(1));
}

/* A picture is its own positive: what brings views of it together is the reconstruction. */
static nr_t *infonce(struct nr_net *n, const struct nr_mae *o, nr_t *cls)
{
	return nr_reshape(n, nr_simcse_loss(n, nr_join(n, cls, cls), o->temperature, 0, NULL), NR_SHAPE(1));
}

static nr_t *uniformity(struct nr_net *n, const struct nr_mae *o, nr_t *latent)
{
	nr_t *z = o->extra_norm ? nr_norm(n, "final", latent) : latent, *cls = NULL, *tokens = NULL;
	if (!z) return NULL;
	if (o->power == NR_UNIFORM_INFONCE) return infonce(n, o, nr_span(n, z, 0, 1));
	const int64_t B = z->d[0], S = latent->tok->special, C = z->d[2];
	if (o->uniform != NR_UNIFORM_TOKENS) cls = pair_term(n, o, nr_reshape(n, nr_span(n, z, 0, 1), NR_SHAPE(B, C)));
	if (o->uniform != NR_UNIFORM_CLS) {
		nr_t *x = nr_span(n, z, S, NR_END);
		tokens = pair_term(n, o, o->in_image ? x : nr_reshape(n, x, NR_SHAPE(-1, C)));
	}
	return cls && tokens ? nr_add(n, cls, tokens) : cls ? cls : tokens;
}

nr_t *nr_mae_record(struct nr_net *n, const struct nr_model_spec *m, const struct nr_mae *o, int64_t batch, struct nr_mae_graph *g)
{
	struct sizes s;
	*g = (struct nr_mae_graph){ 0 };
	if (measure(n, m, o, batch, &s)) return NULL;
	g->image = nr_input(n, "image", NR_REAL, NR_SHAPE(batch, s.channels, s.image, s.image));
	g->kept = nr_input(n, "kept", NR_I32, NR_SHAPE(batch, s.kept));
	g->restore = nr_input(n, "restore", NR_I32, NR_SHAPE(batch, s.classes + s.patches));
	g->weight = nr_input(n, "weight", NR_REAL, NR_SHAPE(batch, s.patches));

	g->latent = encoder(n, m, &s, g);
	if (g->latent && (!g->latent->tok || g->latent->d[1] != g->latent->tok->special + s.kept))
		return nr_net_fail(n, NR_EUSAGE, m->text, "the encoder merges patches: it cannot be masked");
	g->pred = decoder(n, m, o, &s, g);
	nr_t *target = nr_patches(n, g->image, s.patch, NR_PATCH_ROW_COL_CHANNEL);
	g->mae = g->loss = nr_masked_mse(n, g->pred, target, g->weight, o->norm_pix);
	if (o->uniform == NR_UNIFORM_NONE) return nr_tap(n, "loss", g->loss);
	g->unif = nr_tap(n, "loss.unif", uniformity(n, o, g->latent));
	g->loss = nr_add(n, nr_tap(n, "loss.mae", g->mae), nr_scale(n, g->unif, o->lambda));
	return nr_tap(n, "loss", g->loss);
}

/* ---- files --------------------------------------------------------------------------------------------------------------- */

static const struct nr_st_tensor *find(const struct nr_st_file *f, const struct nr_naming *n, const char *entry, struct nr_arena *arena)
{
	char order;
	const char *name = n ? nr_naming_text(n, entry, &order, arena) : entry;
	return name ? nr_st_find(f, name) : NULL;
}

static bool read_sizes(struct nr_mae *o, const struct nr_st_file *f, const struct nr_naming *n, struct nr_arena *arena)
{
	const struct nr_st_tensor *embed = find(f, n, "decoder.embed.weight", arena), *fc1 = NULL, *next;
	char entry[64];
	if (!embed || embed->nd != 2 || embed->shape[0] < 1) return false;
	for (o->decoder_depth = 0;; o->decoder_depth++, fc1 = next) {
		snprintf(entry, sizeof entry, "decoder.blocks.%lld.mlp.fc1.weight", (long long)o->decoder_depth);
		next = find(f, n, entry, arena);
		if (!next || next->nd != 2) break;
	}
	o->decoder_dim = embed->shape[0];
	o->decoder_heads = o->decoder_dim % 32 ? 1 : o->decoder_dim / 32;
	if (fc1) o->decoder_mlp = (double)fc1->shape[0] / (double)o->decoder_dim;
	return true;
}

bool nr_mae_guess(struct nr_mae *o, const struct nr_model *m, const struct nr_st_file *f, struct nr_arena *arena)
{
	struct nr_mae other;
	nr_option_defaults(nr_mae_options, o);
	bool found = read_sizes(o, f, NULL, arena);
	for (const struct nr_naming *n = m->namings; n->name; n++) {    /* some differ in the names of blocks alone */
		nr_option_defaults(nr_mae_options, &other);
		if (!read_sizes(&other, f, n, arena) || (found && other.decoder_depth <= o->decoder_depth)) continue;
		*o = other;
		found = true;
	}
	return found;
}

/* ---- masks ------------------------------------------------------------------------------------------------------------- */

struct nr_mae_mask nr_mae_mask(const struct nr_mae_graph *g, const struct nr_plan *p)
{
	const int64_t N = g->weight->d[1];
	return (struct nr_mae_mask){ .batch = g->weight->d[0], .patches = N, .visible = g->kept->d[1],
		.special = g->latent->tok->special, .places = g->restore->d[1] - N, .kept = nr_plan_data(p, g->kept),
		.restore = nr_plan_data(p, g->restore), .weight = nr_plan_data(p, g->weight) };
}

/* Ascending (Shell, gaps of Ciura). Every key is different, so that the order is one. */
static void sort_keys(uint64_t *v, int64_t n)
{
	static const int64_t gaps[] = { 1750, 701, 301, 132, 57, 23, 10, 4, 1 };
	for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
		for (int64_t i = gaps[g]; i < n; i++) {
			const uint64_t key = v[i];
			int64_t j = i;
			for (; j >= gaps[g] && v[j - gaps[g]] > key; j -= gaps[g]) v[j] = v[j - gaps[g]];
			v[j] = key;
		}
}

/* Sample b from its keys: the rank decides in the upper half, the patch's number stands in the lower. */
static void place(const struct nr_mae_mask *m, int64_t b, uint64_t *key)
{
	const int64_t N = m->patches, K = m->visible;
	int32_t *kept = m->kept + b * K, *restore = m->restore + b * (m->places + N);
	real *weight = m->weight + b * N;
	sort_keys(key, N);
	for (int64_t i = 0; i < m->places; i++) restore[i] = (int32_t)i;
	for (int64_t r = 0; r < N; r++) {
		const int64_t i = (int64_t)(key[r] & 0xffffffff);
		if (r < K) kept[r] = (int32_t)i;
		restore[m->places + i] = (int32_t)(m->special + r);
		weight[i] = r >= K;
	}
}

/* Bits of a float whose order as whole numbers is that of the floats; -0 is 0. */
static uint32_t ordered(float x)
{
	uint32_t u;
	x += 0.f;
	memcpy(&u, &x, sizeof u);
	return u & 0x80000000u ? ~u : u | 0x80000000u;
}

void nr_mae_mask_noise(const struct nr_mae_mask *m, const float *noise)
{
	const int64_t N = m->patches;
#pragma omp parallel for schedule(static)
	for (int64_t b = 0; b < m->batch; b++) {
		uint64_t key[NR_MAE_MAX_PATCHES];
		for (int64_t i = 0; i < N; i++) key[i] = (uint64_t)ordered(noise[b * N + i]) << 32 | (uint64_t)i;
		place(m, b, key);
	}
}

void nr_mae_mask_draw(const struct nr_mae_mask *m, struct nr_rng rng, int64_t first)
{
	const int64_t blocks = (m->patches + 3) / 4;    /* of four words each */
#pragma omp parallel for schedule(static)
	for (int64_t b = 0; b < m->batch; b++) {
		uint64_t key[NR_MAE_MAX_PATCHES + 3];
		for (int64_t q = 0; q < blocks; q++) {
			uint32_t word[4];
			nr_rng_block(rng, (uint64_t)((first + b) * blocks + q), word);
			for (int64_t i = 0; i < 4; i++) key[4 * q + i] = (uint64_t)word[i] << 32 | (uint64_t)(4 * q + i);
		}
		place(m, b, key);
	}
}
