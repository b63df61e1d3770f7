/* norma-golden-model-1 of images and texts: families clip (open_clip's names), siglip (Hugging Face's) and lit (a frozen image tower of
 * timm's names, a BERT and its head); and metrics/contrastive, the losses alone. */
#include <string.h>

#include "golden/model.h"
#include "models/bert.h"
#include "models/hf_config.h"
#include "models/names.h"
#include "norma/nn.h"

struct towers {
	struct golden_model m, frozen;      /* frozen: lit's image tower, in a net of its own */
	struct nr_model_spec text;
	nr_t *image, *ids, *valid, *zimg, *ztxt, *loss, *logits;
};

static double number(const json_t *of, const char *key) { return json_number_value(json_object_get(of, key)); }

/* The sizes of a tower by Hugging Face's names of them. */
static const char *sizes(struct golden_case *c, const json_t *of, const char *act)
{
	return nr_arena_printf(c->arena, "dim=%g,depth=%g,heads=%g,act=%s", number(of, "hidden_size"), number(of, "num_hidden_layers"),
		number(of, "num_attention_heads"), act);
}

static void demand(struct golden_case *c, int code, const struct nr_error *err)
{
	char line[1024];
	if (code) golden_stop(c, NULL, "%s", nr_error_text(err, line, sizeof line));
}

/* Names of a store that has entries of both towers, temperature and bias. */
static void name_both(struct golden_case *c, struct towers *w, const struct nr_naming *images, const struct nr_naming *texts, const char *t,
	const char *b)
{
	struct nr_naming *both = golden_alloc(c, 1, sizeof *both);
	struct nr_rename *rule = golden_alloc(c, 3, sizeof *rule);
	struct nr_scope_names *scope = golden_alloc(c, 3, sizeof *scope);
	rule[0] = (struct nr_rename){ "t", t };
	rule[1] = (struct nr_rename){ "b", b };
	scope[0] = (struct nr_scope_names){ "text.", texts };
	scope[1] = (struct nr_scope_names){ images ? "image." : NULL, images };
	*both = (struct nr_naming){ .name = "both", .rules = rule, .scopes = scope };
	w->m.naming = both;
}

static void put_ids(struct golden_case *c, struct towers *w)
{
	const struct golden_ints x = golden_ints(c, 2, "in.text");
	int32_t *ids = nr_plan_data(w->m.plan, w->ids), *valid = nr_plan_data(w->m.plan, w->valid);
	golden_expect(c, x.n == nr_len(w->ids), "in.text");
	memcpy(ids, x.x, (size_t)x.n * sizeof *ids);
	for (int64_t b = 0; b < x.d[0]; b++)                    /* of BERT: 0 is padding */
		for (valid[b] = 0; valid[b] < x.d[1] && ids[b * x.d[1] + valid[b]]; valid[b]++) {}
}

static nr_t *text_tower(struct golden_case *c, struct towers *w, const char *text)
{
	struct nr_error err = { 0 };
	struct nr_net *n = w->m.net;
	const struct golden_ints x = golden_ints(c, 2, "in.text");
	demand(c, nr_model_parse(&w->text, text, c->arena, &err), &err);
	w->ids = nr_input(n, "ids", NR_I32, NR_SHAPE(x.d[0], x.d[1]));
	w->valid = nr_input(n, "valid", NR_I32, NR_SHAPE(x.d[0]));
	nr_push(n, "text");
	return nr_pop(n, nr_model_logits(n, &w->text, &(struct nr_inputs){ .ids = w->ids, .valid = w->valid }));
}

static void record_loss(struct golden_case *c, struct towers *w, nr_t *images, nr_t *texts)
{
	struct nr_net *n = w->m.net;
	const bool sigmoid = golden_has(c, "param.logit_bias") || golden_has(c, "param.b");
	nr_t *t = nr_param(n, "t", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(1)), *b = sigmoid ? nr_param(n, "b", NR_ZEROS | NR_NO_DECAY,
		NR_SHAPE(1)) : NULL;
	w->zimg = nr_tap(n, "zimg", nr_unit_rows(n, images));
	w->ztxt = nr_tap(n, "ztxt", nr_unit_rows(n, texts));
	w->loss = nr_contrast_loss(n, w->zimg, w->ztxt, t, b, &w->logits);
	nr_tap(n, "logits", w->logits);
}

static int finish(struct golden_case *c, struct towers *w)
{
	const int64_t B = w->logits->d[0];
	golden_model_run(c, &w->m, 0);
	golden_model_out(c, &w->m, w->zimg, "out", "zimg");
	golden_model_out(c, &w->m, w->ztxt, "out", "ztxt");
	if (golden_has(c, "out.logits")) golden_model_out(c, &w->m, w->logits, "out", "logits");
	else {
		const real *l = nr_plan_data(w->m.plan, w->logits);
		real *flipped = golden_reals(c, B * B);
		for (int64_t i = 0; i < B * B; i++) flipped[i] = l[i % B * B + i / B];
		golden_check(c, "out", flipped, B * B, "out.logits_per_text");
	}
	golden_model_check(c, &w->m);
	golden_model_train(c, &w->m);
	golden_model_close(&w->m);
	return GOLDEN_RAN;
}

static int both_towers(struct golden_case *c, const char *image, const char *text, const char *naming, const char *norms, double eps,
	bool projected)
{
	struct towers w = { 0 };
	const struct golden_tensor x = golden_tensor(c, 4, "in.image");
	golden_model_open(c, &w.m, image, naming, norms, eps);
	const struct nr_naming *images = w.m.naming;
	struct nr_net *n = w.m.net;
	nr_net_keep_hidden(n, 0);
	w.image = nr_input(n, "image", NR_REAL, NR_SHAPE(x.d[0], x.d[1], x.d[2], x.d[3]));
	nr_push(n, "image");
	nr_t *z = w.m.model.of->pool(n, nr_model_tokens(n, &w.m.model, &(struct nr_inputs){ .image = w.image }), w.m.model.conf);
	z = nr_pop(n, projected ? nr_model_head(n, &w.m.model, z) : z);
	record_loss(c, &w, z, text_tower(c, &w, text));
	struct nr_error err = { 0 };
	const struct nr_naming *texts = nr_naming_find(w.text.of, naming, &err);
	demand(c, texts ? NR_OK : (int)err.code, &err);
	name_both(c, &w, images, texts, "logit_scale", "logit_bias");
	golden_model_load(c, &w.m, w.loss, NULL);
	golden_model_put(c, &w.m, w.image, "in.image");
	put_ids(c, &w);
	return finish(c, &w);
}

int golden_model_clip(struct golden_case *c)
{
	const json_t *v = json_object_get(c->config, "vision_cfg"), *t = json_object_get(c->config, "text_cfg");
	const char *act = golden_config_act(c);
	const double width = number(t, "width");
	const char *image = nr_arena_printf(c->arena,
		"vit:image=%g,patch=%g,dim=%g,depth=%g,heads=%g,mlp=%.17g,act=%s,patch_bias=0,head_bias=0,classes=%g",
		number(v, "image_size"), number(v, "patch_size"), number(v, "width"), number(v, "layers"), number(v, "heads"),
		number(v, "mlp_ratio"), act, golden_number(c, "embed_dim"));
	const char *text = nr_arena_printf(c->arena,
		"clip_text:vocab=%g,dim=%g,depth=%g,heads=%g,hidden=%g,positions=%g,act=%s,classes=%g", number(t, "vocab_size"),
		width, number(t, "layers"), number(t, "heads"), number(t, "mlp_ratio") * width,
		number(t, "context_length"), act, golden_number(c, "embed_dim"));
	return both_towers(c, image, text, "open_clip", "layer embed=layer", golden_number(c, "ln_eps"), true);
}

int golden_model_siglip(struct golden_case *c)
{
	const json_t *v = json_object_get(c->config, "vision_config"), *t = json_object_get(c->config, "text_config");
	const char *image = nr_arena_printf(c->arena, "vit:image=%g,channels=%g,patch=%g,mlp=%.17g,class_token=0,pool=map,%s",
		number(v, "image_size"), number(v, "num_channels"), number(v, "patch_size"), number(v, "intermediate_size") / number(v,
		"hidden_size"), sizes(c, v, "gelu_tanh"));
	const char *text = nr_arena_printf(c->arena,
		"clip_text:vocab=%g,hidden=%g,positions=%g,causal=0,ends=0,pad=%g,classes=%g,head_bias=1,%s", number(t, "vocab_size"),
		number(t, "intermediate_size"), number(t, "max_position_embeddings"), number(t, "pad_token_id"),
		number(t, "projection_size"), sizes(c, t, "gelu_tanh"));
	return both_towers(c, image, text, "huggingface_siglip", "", number(t, "layer_norm_eps"), false);
}

/* ---- lit ------------------------------------------------------------------------------------------------------------------- */

/* What the frozen tower makes of the pictures. */
static const real *features(struct golden_case *c, struct towers *w, int64_t *width)
{
	static struct nr_naming prefixed;
	const json_t *v = json_object_get(c->config, "image");
	const struct golden_tensor x = golden_tensor(c, 4, "in.image");
	const char *act = strstr(json_string_value(json_object_get(v, "act")), "tanh") ? "gelu_tanh" : "gelu";
	const int bias = !json_is_false(json_object_get(v, "qkv_bias"));
	const char *text = nr_arena_printf(c->arena,
		"vit:image=%g,channels=%g,patch=%g,dim=%g,depth=%g,heads=%g,mlp=%.17g,act=%s,qkv_bias=%d", number(v, "img_size"),
		number(v, "in_chans"), number(v, "patch_size"), number(v, "embed_dim"), number(v, "depth"), number(v, "num_heads"),
		number(v, "mlp_ratio"), act, bias);
	golden_model_open(c, &w->frozen, text, "timm", "", number(v, "ln_eps"));
	prefixed = *w->frozen.naming;
	prefixed.prefix = "img.";
	w->frozen.naming = &prefixed;
	struct nr_net *n = w->frozen.net;
	nr_t *image = nr_input(n, "image", NR_REAL, NR_SHAPE(x.d[0], x.d[1], x.d[2], x.d[3]));
	nr_t *z = w->frozen.model.of->pool(n, nr_model_tokens(n, &w->frozen.model, &(struct nr_inputs){ .image = image }),
		w->frozen.model.conf);
	z = nr_tap(n, "features", z);
	nr_t *zeros = nr_input(n, "zeros", NR_REAL, NR_SHAPE(z->d[0], z->d[1]));
	golden_model_load(c, &w->frozen, nr_weighted_sum(n, z, zeros), NULL);
	golden_model_put(c, &w->frozen, image, "in.image");
	memset(nr_plan_data(w->frozen.plan, zeros), 0, (size_t)nr_len(zeros) * sizeof(real));
	golden_model_run(c, &w->frozen, 0);
	*width = z->d[1];
	return nr_plan_data(w->frozen.plan, z);
}

int golden_model_lit(struct golden_case *c)
{
	static const struct nr_rename bert_rules[] = { NR_BERT_NAMES("txt."), { "classifier.", "txt.head." }, { NULL, NULL } };
	static const struct nr_naming bert = { .name = "lit", .rules = bert_rules };
	struct towers w = { 0 };
	int64_t C;
	const real *z = features(c, &w, &C);
	const json_t *t = json_object_get(c->config, "text");
	const char *named = json_string_value(json_object_get(t, "hidden_act")), *act = named ? nr_hf_act(named) : "gelu";
	if (!act) golden_stop(c, NULL, "no code for the activation '%s'", named);
	const char *text = nr_arena_printf(c->arena, "bert:vocab=%g,hidden=%g,positions=%g,types=%g,pool=cls,classes=%lld,%s",
		number(t, "vocab_size"), number(t, "intermediate_size"), number(t, "max_position_embeddings"), number(t, "type_vocab_size"),
		(long long)C, sizes(c, t, act));
	golden_model_open(c, &w.m, text, "huggingface_base", "", number(t, "layer_norm_eps"));
	nr_net_keep_hidden(w.m.net, 0);
	const struct golden_tensor x = golden_tensor(c, 4, "in.image");
	w.image = nr_input(w.m.net, "features", NR_REAL, NR_SHAPE(x.d[0], C));
	record_loss(c, &w, w.image, text_tower(c, &w, text));
	name_both(c, &w, NULL, &bert, "t", "b");
	golden_model_load(c, &w.m, w.loss, NULL);
	memcpy(nr_plan_data(w.m.plan, w.image), z, (size_t)(x.d[0] * C) * sizeof(real));
	put_ids(c, &w);
	golden_model_close(&w.frozen);
	return finish(c, &w);
}

/* ---- metrics/contrastive ---------------------------------------------------------------------------------------------------- */

/* A tensor of the file as a parameter. */
static nr_t *given(struct golden_case *c, struct nr_net *n, const char *name, const char *from)
{
	const struct golden_tensor x = golden_tensor(c, 2, "%s", from);
	return nr_param(n, name, NR_ZEROS, NR_SHAPE(x.d[0], x.d[1]));
}

static void loss_alone(struct golden_case *c, bool sigmoid, const char *name)
{
	struct nr_error err = { 0 };
	struct nr_store *store;
	struct nr_plan *plan;
	demand(c, nr_store_make(&store, 0, &err), &err);
	struct nr_net *n = nr_net_make(store);
	if (!n) golden_stop(c, NULL, "out of memory");
	nr_t *image = given(c, n, "image", "in.image_embedding"), *text = given(c, n, "text", "in.text_embedding"), *logits;
	nr_t *t = nr_param(n, "t", NR_ZEROS, NR_SHAPE(1)), *b = sigmoid ? nr_param(n, "b", NR_ZEROS, NR_SHAPE(1)) : NULL;
	nr_t *loss = nr_contrast_loss(n, nr_unit_rows(n, image), nr_unit_rows(n, text), t, b, &logits);
	nr_tap(n, "logits", logits);
	demand(c, nr_plan_make(&plan, n, loss, NR_PLAN_TRAIN, &err), &err);
	const struct golden_tensor zi = golden_tensor(c, 2, "in.image_embedding"), zt = golden_tensor(c, 2, "in.text_embedding");
	memcpy(nr_value(image->entry), zi.x, (size_t)zi.n * sizeof(real));
	memcpy(nr_value(text->entry), zt.x, (size_t)zt.n * sizeof(real));
	*nr_value(t->entry) = (real)golden_number(c, "log_temperature");
	if (b) *nr_value(b->entry) = (real)golden_number(c, "bias");
	nr_plan_run(plan, &(struct nr_exec){ .train = 1 }, NR_RUN_FORWARD | NR_RUN_BACKWARD);
	golden_check(c, "out", nr_plan_data(plan, loss), 1, "%s.loss", name);
	golden_check(c, "out", nr_plan_data(plan, logits), nr_len(logits), "logits_%s", name);
	golden_check(c, "out", nr_grad(image->entry), zi.n, "%s.grad_image", name);
	golden_check(c, "out", nr_grad(text->entry), zt.n, "%s.grad_text", name);
	golden_check(c, "out", nr_grad(t->entry), 1, "%s.grad_log_t", name);
	golden_check_value(c, "out", b ? (double)*nr_grad(b->entry) : 0, "%s.grad_bias", name);
	nr_plan_free(plan);
	nr_net_free(n);
	nr_store_free(store);
}

int golden_metric_contrastive(struct golden_case *c)
{
	loss_alone(c, false, "softmax");
	loss_alone(c, true, "sigmoid");
	return GOLDEN_RAN;
}
