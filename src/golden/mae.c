/* norma-golden-model-1, family mae: MAE, U-MAE and SepNorm in MAE, with official and Hugging Face names. The mask comes from
 * the file's noise; mask, latent, prediction, parts of the loss, gradients, buffers and three steps of AdamW out. */
#include <math.h>
#include <string.h>

#include "golden/model.h"
#include "models/mae.h"
#include "models/names.h"
#include "models/position.h"

static const char *model_text(struct golden_case *c)
{
	const double dim = golden_config(c, "dim", "hidden_size", 1), hidden = golden_config(c, "intermediate_size", NULL, 4 * dim);
	return nr_arena_printf(c->arena,
		"vit:image=%g,channels=%g,patch=%g,dim=%g,depth=%g,heads=%g,mlp=%.17g,qkv_bias=%g,act=%s",
		golden_config(c, "img", "image_size", 224), golden_config(c, "chans", "num_channels", 3),
		golden_config(c, "patch", "patch_size", 16), dim, golden_config(c, "depth", "num_hidden_layers", 1),
		golden_config(c, "heads", "num_attention_heads", 1), golden_config(c, "ratio", NULL, hidden / dim),
		golden_config(c, "qkv_bias", NULL, 1), golden_config_act(c));
}

/* The uniformity term that the file's variant stands for; a setting without code here is a failure. */
static void read_variant(struct golden_case *c, struct nr_mae *o)
{
	const char *variant = nr_st_metadata(c->file, "variant"), *key;
	json_t *all = json_object_get(c->config, "variants"), *v = variant ? json_object_get(all, variant) : NULL, *value;
	if (!variant) return;
	if (!v) golden_stop(c, NULL, "config describes no variant '%s'", variant);
	o->lambda = golden_number(c, "lambda");
	json_object_foreach(v, key, value) {
		const char *text = json_string_value(value);
		const double number = json_is_true(value) ? 1 : json_number_value(value);
		if (!strcmp(key, "on") && text)
			o->uniform = !strcmp(text, "cls") ? NR_UNIFORM_CLS : !strcmp(text, "tokens") ? NR_UNIFORM_TOKENS :
				!strcmp(text, "both") ? NR_UNIFORM_BOTH : NR_UNIFORM_NONE;
		else if (!strcmp(key, "power") && (number == 1 || number == 2))
			o->power = number > 1 ? NR_UNIFORM_SQUARE : NR_UNIFORM_LINEAR;
		else if (!strcmp(key, "exclude_self")) o->self = number < 1;
		else if (!strcmp(key, "extra_norm")) o->extra_norm = number > 0;
		else golden_stop(c, NULL, "no code for '%s' of the variant '%s'", key, variant);
	}
}

static void read_options(struct golden_case *c, struct nr_mae *o)
{
	nr_option_defaults(nr_mae_options, o);
	o->decoder_dim = (int64_t)golden_config(c, "dec_dim", "decoder_hidden_size", 1);
	o->decoder_depth = (int64_t)golden_config(c, "dec_depth", "decoder_num_hidden_layers", 1);
	o->decoder_heads = (int64_t)golden_config(c, "dec_heads", "decoder_num_attention_heads", 1);
	const double dim = (double)o->decoder_dim, hidden = golden_config(c, "decoder_intermediate_size", NULL, 4 * dim);
	o->decoder_mlp = golden_config(c, "ratio", NULL, hidden / dim);
	o->decoder_act = nr_arena_strdup(c->arena, golden_config_act(c));
	o->mask_ratio = golden_config(c, "mask_ratio", NULL, 0.75);
	o->norm_pix = golden_config(c, "norm_pix_loss", NULL, 0) > 0;
	read_variant(c, o);
}

/* "bn" or "batchnorm", with the epsilon that the settings `of` (or the whole) have for it. */
static const char *norm_text(struct golden_case *c, const json_t *of, const char *kind)
{
	const bool batch = !strncmp(kind, "b", 1);
	if (!batch && strncmp(kind, "l", 1)) golden_stop(c, NULL, "no code for the norm '%s'", kind);
	const json_t *eps = json_object_get(of, batch ? "bn_eps" : "ln_eps"), *momentum = json_object_get(of, "bn_momentum");
	const double fallback = batch ? 1e-5 : golden_config(c, "ln_eps", "layer_norm_eps", 1e-6);
	const char *text = nr_arena_printf(c->arena, "%s:eps=%.17g", batch ? "bn" : "ln", eps ? json_number_value(eps) : fallback);
	return batch && momentum ? nr_arena_printf(c->arena, "%s,momentum=%.17g", text, json_number_value(momentum)) : text;
}

static const char *norm_plan(struct golden_case *c)
{
	const json_t *norm = json_object_get(c->config, "norm");
	const char *kind = json_is_string(norm) ? json_string_value(norm) : json_string_value(json_object_get(norm, "kind"));
	const char *decoder = norm_text(c, norm, golden_config_text(c, "decoder_norm", NULL, "ln")), *encoder;
	const char *special = json_string_value(json_object_get(norm, "cls")), *rest = json_string_value(json_object_get(norm, "tok"));
	if (!kind) return "";
	if (strcmp(kind, "sepnorm")) encoder = norm_text(c, norm, kind);
	else if (!special || !rest) golden_stop(c, NULL, "config lacks the norms of [CLS] and tokens");
	else encoder = nr_arena_printf(c->arena, "sep(%s,%s)", norm_text(c, norm, special), norm_text(c, norm, rest));
	return nr_arena_printf(c->arena, "%s decoder.*=%s", encoder, decoder);
}

/* Before the file's weights take their place: our own tables are those that the file calls sin-cos. */
static void check_positions(struct golden_case *c, const struct golden_model *m)
{
	const char *text = golden_config_text(c, "pos_embed", NULL, "");
	static const char *const names[] = { "pos_embed", "decoder.pos_embed" };
	for (size_t i = 0; i < 2 && !strncmp(text, "sincos2d", 8); i++) {
		const struct nr_entry *e = nr_store_find(m->store, names[i]);
		char order;
		golden_check(c, "out", nr_value(e), e->count, "param.%s", nr_naming_text(m->naming, e->name, &order, c->arena));
	}
}

static void check_mask(struct golden_case *c, const struct nr_mae_mask *mask)
{
	const int64_t N = mask->patches;
	int32_t *rank = golden_alloc(c, mask->batch * N, sizeof *rank);
	for (int64_t i = 0; i < mask->batch * N; i++)
		rank[i] = mask->restore[i / N * (mask->places + N) + mask->places + i % N] - (int32_t)mask->special;
	golden_check_ints(c, rank, mask->batch * N, "out.ids_restore");
	golden_check(c, "out", mask->weight, mask->batch * N, "out.mask");
}

int golden_model_mae(struct golden_case *c)
{
	struct golden_model m = { 0 };
	struct nr_mae_graph g;
	struct nr_mae o;
	struct nr_error err = { 0 };
	const char *naming = nr_st_metadata(c->file, "naming");
	const struct golden_tensor x = golden_tensor(c, 4, "in.image"), noise = golden_tensor(c, 2, "in.noise");
	read_options(c, &o);
	golden_model_open(c, &m, model_text(c), !naming || !strncmp(naming, "mae", 3) ? "mae" : naming, norm_plan(c),
		golden_config(c, "ln_eps", "layer_norm_eps", 1e-6));
	if (nr_mae_encoder(&m.model, &o, c->arena, &err)) golden_stop(c, NULL, "%s", err.detail);
	nr_t *loss = nr_mae_record(m.net, &m.model, &o, x.d[0], &g);
	golden_model_load(c, &m, loss, check_positions);
	golden_model_put(c, &m, g.image, "in.image");
	const struct nr_mae_mask mask = nr_mae_mask(&g, m.plan);
	golden_expect(c, noise.d[0] == mask.batch && noise.d[1] == mask.patches, "in.noise");
	float *draws = golden_alloc(c, noise.n, sizeof *draws);
	for (int64_t i = 0; i < noise.n; i++) draws[i] = (float)noise.x[i];
	nr_mae_mask_noise(&mask, draws);
	golden_model_run(c, &m, 0);
	check_mask(c, &mask);
	golden_model_out(c, &m, g.latent, "out", "latent");
	golden_model_out(c, &m, g.pred, "out", "pred");
	golden_model_out(c, &m, g.unif ? g.mae : NULL, "loss", "loss.mae");
	golden_model_out(c, &m, g.unif, "loss", "loss.unif");
	golden_model_check(c, &m);
	golden_model_train(c, &m);
	golden_model_close(&m);
	return GOLDEN_RAN;
}
