/* norma-golden-model-1, families of hierarchical models (pvt_v2, pvt, swin, levit, t2t): public weights in, logits, stages, feature
 * pyramids, loss, gradients and three steps of AdamW out. */
#include <math.h>
#include <string.h>

#include "golden/model.h"
#include "norma/nn.h"

/* A list of the settings as "1-2-2-3"; a number stands for itself. */
static const char *list(struct golden_case *c, const char *name, const char *other, const char *otherwise)
{
	const json_t *v = json_object_get(c->config, name);
	if (!v && other) v = json_object_get(c->config, other);
	if (json_is_number(v)) return nr_arena_printf(c->arena, "%.9g", json_number_value(v));
	const char *text = NULL;
	for (size_t i = 0; i < json_array_size(v); i++)
		text = nr_arena_printf(c->arena, "%s%s%.9g", text ? text : "", text ? "-" : "", json_number_value(json_array_get(v, i)));
	return text ? text : otherwise;
}

struct run {
	struct golden_model m;
	const char *text, *naming, *norms;
	double eps;
	bool last;                          /* maps of a shape that is both are (B,H,W,C), not (B,C,H,W) */
	nr_t *image, *labels, *logits;
};

/* Records the model, loads its weights and inputs. */
static void open_case(struct golden_case *c, struct run *r)
{
	const struct golden_tensor x = golden_tensor(c, 4, "in.image");
	const struct golden_ints label = golden_ints(c, 1, "in.label");
	golden_model_open(c, &r->m, r->text, r->naming, r->norms, r->eps);
	struct nr_net *n = r->m.net;
	r->image = nr_input(n, "image", NR_REAL, NR_SHAPE(x.d[0], x.d[1], x.d[2], x.d[3]));
	r->labels = nr_input(n, "label", NR_I32, NR_SHAPE(x.d[0]));
	r->logits = nr_tap(n, "logits", nr_model_logits(n, &r->m.model, &(struct nr_inputs){ .image = r->image }));
	golden_model_load(c, &r->m, nr_cross_entropy(n, r->logits, r->labels, 0, -1), NULL);
	golden_model_put(c, &r->m, r->image, "in.image");
	golden_expect(c, label.n == x.d[0], "in.label");
	memcpy(nr_plan_data(r->m.plan, r->labels), label.x, (size_t)label.n * sizeof(int32_t));
}

/* A feature map (B,T,C) as (B,C,H,W), if the file has it like that, or as it is. */
static void check_map(struct golden_case *c, const struct run *r, const real *x, const nr_t *t, const char *name)
{
	const char *full = nr_arena_printf(c->arena, "out.%s", name);
	if (!golden_has(c, full)) return;
	const struct golden_tensor want = golden_tensor(c, -1, "%s", full);
	const int64_t C = nr_cols(t), T = t->d[1];
	const int64_t h = t->tok ? t->tok->h : 0, w = t->tok ? t->tok->w : 0;
	const bool rows = want.nd == 4 && want.d[1] == h && want.d[2] == w && want.d[3] == C;
	const bool first = want.nd == 4 && want.d[1] == C && want.d[2] * want.d[3] == T && !(rows && r->last);
	real *moved = golden_reals(c, nr_len(t));
	for (int64_t i = 0; i < nr_len(t); i++) {
		const int64_t b = i / (T * C), p = i / C % T, ch = i % C;
		moved[first ? (b * C + ch) * T + p : i] = x[i];
	}
	golden_check(c, "out", moved, nr_len(t), "%s", full);
}

static void check_taps(struct golden_case *c, struct run *r, const char *tap, const char *name)
{
	for (int i = 0; i < 128; i++) {
		const nr_t *t = nr_plan_tap(r->m.plan, nr_arena_printf(c->arena, "%s%d", tap, i), NULL);
		if (!t) break;
		check_map(c, r, nr_plan_data(r->m.plan, t), t, nr_arena_printf(c->arena, "%s%d", name, i));
	}
}

/* out.pyramidN: the levels of another picture with the same weights. */
static void check_pyramid(struct golden_case *c, struct run *r)
{
	if (!golden_has(c, "in.image_detector")) return;
	const struct golden_tensor x = golden_tensor(c, 4, "in.image_detector");
	struct nr_error err = { 0 };
	struct nr_plan *plan = NULL;
	struct nr_net *n = nr_net_make(r->m.store);
	nr_t *level[NR_MAXLEVELS];
	struct nr_norm_defaults d = r->m.model.norms;
	d.eps = r->eps;
	char line[1024];
	if (!n || nr_norms_use(n, r->norms, &d, &err)) golden_stop(c, NULL, "%s", nr_error_text(&err, line, sizeof line));
	nr_t *image = nr_input(n, "image", NR_REAL, NR_SHAPE(x.d[0], x.d[1], x.d[2], x.d[3]));
	const int count = r->m.model.of->levels(n, &(struct nr_inputs){ .image = image }, r->m.model.conf, level);
	for (int i = 0; i < count; i++) nr_tap(n, nr_arena_printf(c->arena, "level%d", i), level[i]);
	if (nr_norms_done(n, &err) || nr_plan_make(&plan, n, count ? level[count - 1] : NULL, 0, &err))
		golden_stop(c, NULL, "%s", nr_error_text(&err, line, sizeof line));
	memcpy(nr_plan_data(plan, image), x.x, (size_t)x.n * sizeof(real));
	nr_plan_run(plan, &(struct nr_exec){ 0 }, NR_RUN_FORWARD);
	for (int i = 0; i < count; i++) check_map(c, r, nr_plan_data(plan, level[i]), level[i], nr_arena_printf(c->arena, "pyramid%d", i));
	nr_plan_free(plan);
	nr_net_free(n);
}

/* Tensors that cannot have an effect: DTN's position bias, under a softmax. Their gradient is zero, no step changes them. */
static void check_idle(struct golden_case *c)
{
	for (int64_t i = 0; i < nr_st_count(c->file); i++) {
		const char *name = nr_st_get(c->file, i)->name, *tail = strstr(name, ".pos_proj.bias");
		if (strncmp(name, "param.", 6) || !tail || tail[14]) continue;
		const struct golden_tensor x = golden_tensor(c, -1, "%s", name);
		golden_check(c, "grad", golden_reals(c, x.n), x.n, "grad.%s", name + 6);
		golden_check(c, "step3", x.x, x.n, "step3.%s", name + 6);
	}
}

/* Everything but the text of the model; blocks: which taps the file calls blockN. */
static int run(struct golden_case *c, struct run *r, const char *blocks)
{
	const char *mode = nr_st_metadata(c->file, "mode");
	open_case(c, r);
	if (golden_has(c, "out.logits_eval")) {
		nr_plan_run(r->m.plan, &(struct nr_exec){ 0 }, NR_RUN_FORWARD);
		golden_model_out(c, &r->m, r->logits, "out", "logits_eval");
	}
	if (r->m.model.of->levels && mode && !strcmp(mode, "eval")) check_pyramid(c, r);
	golden_model_run(c, &r->m, 0);
	golden_model_out(c, &r->m, r->logits, "out", "logits");
	check_taps(c, r, blocks, "block");
	check_taps(c, r, "stage", "stage");
	check_idle(c);
	golden_model_check(c, &r->m);
	golden_model_train(c, &r->m);
	golden_model_close(&r->m);
	return GOLDEN_RAN;
}

/* "official+dtn" of the file as a naming of ours. */
static const char *naming_of(struct golden_case *c, const char *const (*known)[2])
{
	const char *theirs = nr_st_metadata(c->file, "naming");
	for (; theirs && (*known)[0]; known++)
		if (!strcmp(theirs, (*known)[0])) return (*known)[1];
	return theirs ? theirs : "norma";
}

/* What the settings say of DTN in the blocks: a rule for each stage that has it. */
static const char *dtn_rules(struct golden_case *c, int64_t stages)
{
	const json_t *norm = json_object_get(c->config, "norm"), *pool = json_object_get(norm, "pool"),
		*heads = json_object_get(norm, "heads");
	const json_t *where = json_object_get(norm, "stages");
	const char *kind = json_string_value(json_object_get(norm, "kind")), *variant = json_string_value(json_object_get(norm, "variant"));
	const char *text = "";
	if (!kind || strcmp(kind, "dtn")) return text;
	for (int64_t i = 0; i < stages; i++) {
		const size_t at = (size_t)i;
		if (where && at >= json_array_size(where)) break;
		const long long stage = where ? json_integer_value(json_array_get(where, at)) - 1 : i;
		text = nr_arena_printf(c->arena, "%s stages[%lld].blocks.*=dtn:variant=%s,eps=%.17g,pool=%lld,heads=%lld", text,
			stage, variant ? variant : "paper",
			json_number_value(json_object_get(norm, "eps")), at < json_array_size(pool)
				? json_integer_value(json_array_get(pool, at)) : 1,
			json_integer_value(json_array_get(heads, at)));
	}
	return text;
}

/* Side `nth` of a setting that is one number or a pair. */
static double side(const json_t *v, size_t nth, double otherwise)
{
	const json_t *one = json_is_array(v) ? json_array_get(v, json_array_size(v) > 1 ? nth : 0) : v;
	return json_is_number(one) ? json_number_value(one) : otherwise;
}

/* The larger side of the picture, or the patch, which are numbers or pairs. */
static double largest(struct golden_case *c, const char *name, const char *other, double otherwise)
{
	const json_t *v = json_object_get(c->config, name);
	if (!v && other) v = json_object_get(c->config, other);
	return fmax(side(v, 0, otherwise), side(v, 1, otherwise));
}

/* Swin's windows as "8x4-7": a number, a pair or one of these for each stage; no larger than the grid unless it is padded to them. */
static const char *windows(struct golden_case *c, int64_t stages, bool clamp)
{
	const json_t *all = json_object_get(c->config, "window_size"), *size = json_object_get(c->config, "img_size");
	const bool each = json_is_array(all) && (json_array_size(all) != 2 || json_is_array(json_array_get(all, 0)));
	const double patch = largest(c, "patch_size", NULL, 4);
	const char *text = "";
	for (int64_t i = 0; i < stages; i++) {
		const json_t *v = each ? json_array_get(all, (size_t)i) : all;
		double win[2];
		for (size_t k = 0; k < 2; k++) {
			double grid = ceil(side(size ? size : json_object_get(c->config, "image_size"), k, 224) / patch);
			for (int64_t j = 0; j < i; j++) grid = ceil(grid / 2);
			win[k] = side(v, k, 7);
			if (clamp) win[k] = fmin(win[k], grid);
		}
		text = nr_arena_printf(c->arena, "%s%s%gx%g", text, i ? "-" : "", win[0], win[1]);
	}
	return text;
}

int golden_model_swin(struct golden_case *c)
{
	static const char *const known[][2] = { { "timm+dtn-official", "timm_dtn" }, { "timm+dtn-paper", "timm" },
		{ "swin-official", "official" }, { NULL, NULL } };
	struct run r = { .eps = golden_config(c, "ln_eps", "layer_norm_eps", 1e-5), .naming = naming_of(c, known), .last = true };
	const bool hf = !strncmp(r.naming, "huggingface", 11), tv = !strcmp(r.naming, "torchvision");
	const int64_t stages = (int64_t)json_array_size(json_object_get(c->config, "depths"));
	r.text = nr_arena_printf(c->arena,
		"swin:image=%g,patch=%g,channels=%g,classes=%g,dim=%g,depths=%s,heads=%s,windows=%s,mlp=%.17g,qkv_bias=%g,"
		"pad_first=%d,shift_both=%d,clamp=%d,act=%s", largest(c, "img_size", "image_size", 224), largest(c, "patch_size", NULL, 4),
		golden_config(c, "in_chans", "num_channels", 3), golden_config(c, "num_classes", "num_labels", 1000),
		golden_config(c, "embed_dim", NULL, 96), list(c, "depths", NULL, ""), list(c, "num_heads", NULL, ""),
		windows(c, stages, !tv),
		golden_config(c, "mlp_ratio", NULL, 4), golden_config(c, "qkv_bias", NULL, 1), hf || tv, hf, !tv, golden_config_act(c));
	/* Hugging Face's eps is not that of patches and merging */
	r.norms = nr_arena_printf(c->arena, "layer%s%s%s", dtn_rules(c, stages), hf ? " patch.out=layer:eps=1e-5" : "",
		hf && stages > 1 ? " merge.in=layer:eps=1e-5" : "");
	return run(c, &r, "block");
}

/* The eps after reductions, if there are any. */
static const char *reduced_rule(struct golden_case *c, double otherwise)
{
	for (int64_t i = 0; i < nr_st_count(c->file); i++) {
		const char *name = nr_st_get(c->file, i)->name;
		if (!strncmp(name, "param.", 6) && (strstr(name, ".attn.norm.") || strstr(name, "attention.self.layer_norm") || strstr(name,
			"attention.layer_norm")))
			return nr_arena_printf(c->arena, " attn.reduced=layer:eps=%.17g", golden_config(c, "ln_eps_sr", NULL, otherwise));
	}
	return "";
}

int golden_model_pvt(struct golden_case *c)
{
	static const char *const known[][2] = { { "pvt-official", "official" }, { "pvt-official+dtn", "official_dtn" },
		{ "pvt-official+dtn-paper", "official" }, { NULL, NULL } };
	const double eps = golden_config(c, "ln_eps", "layer_norm_eps", 1e-6);
	const json_t *patches = json_object_get(c->config, "patch_sizes");
	struct run r = { .eps = eps, .naming = naming_of(c, known) };
	const bool same = !strcmp(r.naming, "huggingface");
	r.text = nr_arena_printf(c->arena,
		"pvt:image=%g,patch=%g,channels=%g,classes=%g,dims=%s,depths=%s,heads=%s,mlp=%s,sr=%s,qkv_bias=%g,act=%s",
		golden_config(c, "img", "image_size", 224), patches ? json_number_value(json_array_get(patches,
			0)) : golden_config(c, "patch", NULL, 4),
		golden_config(c, "chans", "num_channels", 3), golden_config(c, "classes", "num_labels", 1000), list(c, "dims",
			"hidden_sizes", ""),
		list(c, "depths", NULL, ""), list(c, "heads", "num_attention_heads", ""), list(c, "ratios", "mlp_ratios", ""),
		list(c, "srs", "sequence_reduction_ratios", ""), golden_config(c, "bias", "qkv_bias", 1), golden_config_act(c));
	r.norms = nr_arena_printf(c->arena, "layer%s patch.out=layer:eps=%.17g%s",
		dtn_rules(c, (int64_t)json_array_size(json_object_get(c->config, "depths"))),
		golden_config(c, "ln_eps_patch_embed", NULL, same ? eps : 1e-5), reduced_rule(c, same ? eps : 1e-5));
	return run(c, &r, "stage");
}

int golden_model_pvt_v2(struct golden_case *c)
{
	const double eps = golden_config(c, "ln_eps", "layer_norm_eps", 1e-6);
	struct run r = { .eps = eps, .naming = nr_st_metadata(c->file, "naming") };
	r.text = nr_arena_printf(c->arena,
		"pvt_v2:image=%g,channels=%g,classes=%g,dims=%s,depths=%s,heads=%s,mlp=%s,sr=%s,linear=%g,qkv_bias=%g,act=%s",
		golden_config(c, "img_size", NULL, 224), golden_config(c, "in_chans", "num_channels", 3),
		golden_config(c, "num_classes", "num_labels", 1000), list(c, "embed_dims", "hidden_sizes", ""), list(c, "depths", NULL, ""),
		list(c, "num_heads", "num_attention_heads", ""), list(c, "mlp_ratios", NULL, "8-8-4-4"), list(c, "sr_ratios",
			NULL, "8-4-2-1"),
		golden_config(c, "linear", "linear_attention", 0), golden_config(c, "qkv_bias", NULL, 1), golden_config_act(c));
	const bool same = r.naming && !strcmp(r.naming, "huggingface");
	r.norms = nr_arena_printf(c->arena, "layer patch.out=layer:eps=%.17g%s",
		golden_config(c, "ln_eps_patch_embed", NULL, same ? eps : 1e-5), reduced_rule(c, same ? eps : 1e-5));
	return run(c, &r, "stage");
}

int golden_model_levit(struct golden_case *c)
{
	struct run r = { .eps = golden_config(c, "bn_eps", NULL, 1e-5), .naming = nr_st_metadata(c->file, "naming") };
	r.text = nr_arena_printf(c->arena,
		"levit:image=%g,channels=%g,classes=%g,dims=%s,depths=%s,heads=%s,key=%g,value=%s,mlp=%s,stride=%d,distilled=%g,"
		"act=%s", golden_config(c, "img_size", NULL, 224), golden_config(c, "in_chans", NULL, 3), golden_config(c,
			"num_classes", NULL, 1000),
		list(c, "embed_dim", NULL, ""), list(c, "depth", NULL, ""), list(c, "num_heads", NULL, ""), golden_config(c,
			"key_dim", NULL, 16),
		list(c, "attn_ratio", NULL, "2"), list(c, "mlp_ratio", NULL, "2"), strcmp(golden_config_text(c, "stem",
			"stem_type", "s16"), "s8") ? 16 : 8,
		golden_config(c, "distilled", NULL, 0), golden_config_act(c));
	r.norms = nr_arena_printf(c->arena, "batch:momentum=%.17g", golden_config(c, "bn_momentum", NULL, 0.1));
	return run(c, &r, "stage");
}

int golden_model_t2t(struct golden_case *c)
{
	static const char *const known[][2] = { { "t2t-official", "official" }, { NULL, NULL } };
	struct run r = { .eps = golden_config(c, "ln_eps", NULL, 1e-5), .naming = naming_of(c, known), .norms = "" };
	r.text = nr_arena_printf(c->arena,
		"t2t:image=%g,channels=%g,classes=%g,tokens=%s,width=%g,dim=%g,depth=%g,heads=%g,mlp=%.17g,qkv_bias=%g,act=%s",
		golden_config(c, "img", "img_size", 224), golden_config(c, "chans", NULL, 3), golden_config(c, "classes",
			"num_classes", 1000),
		golden_config_text(c, "kind", NULL, "performer"), golden_config(c, "width", NULL, 64), golden_config(c, "dim", NULL, 384),
		golden_config(c, "depth", NULL, 14), golden_config(c, "heads", NULL, 6), golden_config(c, "ratio", NULL, 3),
		golden_config(c, "qkv_bias", NULL, 0), golden_config_act(c));
	return run(c, &r, "block");
}
