/* norma-golden-model-1, family vit and its relatives: timm and Hugging Face weights in, logits, blocks, loss, gradients and three steps
 * of AdamW out. Also metrics/grad_norm_per_layer. */
#include <math.h>
#include <string.h>

#include "golden/model.h"
#include "graph/net.h"
#include "models/names.h"
#include "norma/nn.h"

struct run { struct golden_model m; nr_t *logits; };

static bool is(struct golden_case *c, const char *key, const char *value) { return !strcmp(golden_config_text(c, key, NULL, ""), value); }
static double flag(struct golden_case *c, const char *key, double otherwise) { return golden_config(c, key, NULL, otherwise); }
/* A number, or one of a list. */
static double item(struct golden_case *c, const char *key, size_t i, const char *other, double otherwise)
{
	const json_t *v = json_object_get(c->config, key);
	return json_is_array(v) ? json_number_value(json_array_get(v, i)) : golden_config(c, key, other, otherwise);
}

/* Of all families: the sizes. */
static const char *sizes_text(struct golden_case *c, const char *family)
{
	const double dim = golden_config(c, "embed_dim", "hidden_size", 1);
	const double mlp = golden_config(c, "mlp_ratio", NULL, 0), hidden = golden_config(c, "intermediate_size", NULL, 4 * dim);
	return nr_arena_printf(c->arena, "%s:image=%g,channels=%g,patch=%g,dim=%g,depth=%g,heads=%g,classes=%g,mlp=%.17g,act=%s", family,
		item(c, "img_size", 0, "image_size", 224), golden_config(c, "in_chans", "num_channels", 3),
		golden_config(c, "patch_size", NULL, 16), dim, golden_config(c, "depth", "num_hidden_layers", 1),
		golden_config(c, "num_heads", "num_attention_heads", 1), golden_config(c, "num_classes", "num_labels", 10),
		mlp > 0 ? mlp : hidden / dim, golden_config_act(c));
}

/* SwiGLU of timm: two names for its forms, three ways to count its hidden units. */
static const char *glu_text(struct golden_case *c)
{
	const double dim = golden_config(c, "embed_dim", "hidden_size", 1), align = flag(c, "swiglu_align_to", 0);
	double hidden = (double)(int64_t)(dim * golden_config(c, "mlp_ratio", NULL, 4));
	const bool packed = !strncmp(golden_config_text(c, "mlp_layer", NULL, ""), "SwiGLUPacked", 12), asked = flag(c, "swiglu_mlp",
		0) > 0;
	if (!packed && !asked) return "";
	if (packed) hidden = (double)((int64_t)hidden / 2);
	if (align > 0) hidden = (double)(((int64_t)hidden + (int64_t)align - 1) / (int64_t)align * (int64_t)align);
	return nr_arena_printf(c->arena, ",glu=%s,mlp=%.17g", packed || (!flag(c, "scale_mlp", 0) && align <= 0) ? "packed" : "split",
		hidden / dim);
}

/* timm's arguments, of VisionTransformer and of its relatives, with the defaults of their classes. */
static const char *timm_text(struct golden_case *c, const char *family)
{
	const bool eva = !strcmp(family, "eva"), beit = !strcmp(family, "beit"), relpos = !strcmp(family, "vit_relpos");
	const char *pool = golden_config_text(c, "global_pool", NULL, eva || beit || relpos ? "avg" : "token");
	const bool avg = !strcmp(pool, "avg"), no_class_rows = flag(c, "no_embed_class", 0) > 0;
	const double fc = golden_config(c, eva || beit ? "use_fc_norm" : "fc_norm", NULL, -1), registers = golden_config(c, "reg_tokens",
		"num_reg_tokens", 0);
	const bool table = beit || is(c, "rel_pos_type", "bias"), shared = flag(c, "shared_rel_pos", 0) > 0 || flag(c,
		"use_shared_rel_pos_bias", 0) > 0;
	const bool relative = relpos || (beit && (shared || flag(c, "use_rel_pos_bias", 0) > 0));
	const bool positions = relpos ? false : flag(c, "use_abs_pos_emb", 1) > 0;
	const char *text = nr_arena_printf(c->arena,
		"%s,pool=%s,class_token=%g,fc_norm=%d,registers=%g,class_pos=%d,register_pos=%d,pos=%s",
		sizes_text(c, family), avg ? "avg" : !strcmp(pool, "map") ? "map" : "class", flag(c, "class_token", !relpos), fc < 0
			? avg : fc > 0,
		registers, !no_class_rows, !no_class_rows && registers > 0, positions ? "learned" : "none");
	text = nr_arena_printf(c->arena, "%s,qkv_bias=%g,key_bias=%d,split_qkv=%d,patch_bias=%g,distilled=%g,parallel=%d%s", text,
		flag(c, "qkv_bias", 1), !eva && !beit, eva && !flag(c, "qkv_fused", 1), flag(c, "patch_bias",
		flag(c, "pre_norm", 0) <= 0), flag(c, "distilled", 0),
		is(c, "block_fn", "ParallelScalingBlock"), glu_text(c));
	if (relative) text = nr_arena_printf(c->arena, "%s,rel_pos=%s,rel_pos_shared=%d,rel_pos_decay=%d,rel_pos_dim=%g", text,
		table ? "table" : "mlp", shared, relpos && table,
		golden_config(c, "rel_pos_dim", NULL, 512));
	if (!eva || !flag(c, "use_rot_pos_emb", 0)) return text;
	return nr_arena_printf(c->arena, "%s,rope=%s,rope_theta=%.17g,rope_grid=%g,rope_grid_w=%g", text,
		is(c, "rope_type", "dinov3") ? "dinov3" : "eva", golden_config(c, "rope_temperature", NULL, 0),
		item(c, "ref_feat_shape", 0, NULL, 0), item(c, "ref_feat_shape", 1, NULL, 0));
}

static const char *timm_norms(struct golden_case *c)
{
	const char *variant = nr_st_metadata(c->file, "variant"), *patch = variant ? variant : golden_config_text(c, "patch_norm", NULL,
		"none");
	const char *norm = golden_config_text(c, "norm", NULL, "layer"), *qk = golden_config_text(c, "qk_norm", NULL, "");
	const bool after = flag(c, "use_post_norm", 0) > 0 || is(c, "block_fn", "ResPostRelPosBlock");
	const double scale = golden_config(c, "init_values", NULL, 0);
	const bool scaled = scale > 0 && !after;                /* rpn uses the value for something else */
	return nr_arena_printf(c->arena, "%s patch=%s%s%s%s%s%s%s%s%s%s%s", norm, patch, after ? " placement=respost" : "",
		scaled ? " residual=layerscale" : "", flag(c, "pre_norm", 0) > 0 ? " embed=" : "", flag(c, "pre_norm", 0) > 0 ? norm : "",
		flag(c, "qk_norm", 0) > 0 || *qk ? " attn.qk=" : "", flag(c, "qk_norm", 0) > 0 || *qk ? norm : "",
		flag(c, "scale_attn_inner", 0) > 0 ? " attn.inner=" : "", flag(c, "scale_attn_inner", 0) > 0 ? norm : "",
		flag(c, "scale_mlp", 0) > 0 ? " mlp.inner=" : "", flag(c, "scale_mlp", 0) > 0 ? norm : "");
}

/* ---- runs ---------------------------------------------------------------------------------------------------------------- */

/* DeiT's loss: (1 - alpha) of the labels' and alpha of the teacher's, hard or soft. Its constant, the teacher's entropy, is an input. */
static nr_t *tapped(const struct nr_net *n, const char *name)
{
	for (int32_t i = 0; i < n->n_tensor; i++)
		if (n->tensor[i]->flags & NR_TAP && n->tensor[i]->name && !strcmp(n->tensor[i]->name, name)) return n->tensor[i];
	return NULL;
}

struct distillation { nr_t *hard, *soft, *constant; };
static nr_t *distilled_loss(struct golden_case *c, struct golden_model *m, nr_t *labels, struct distillation *d)
{
	struct nr_net *n = m->net;
	const double alpha = golden_number(c, "alpha"), tau = flag(c, "tau", 1);
	nr_t *of_class = tapped(n, "logits_cls"), *of_teacher = tapped(n, "logits_dist");
	if (!of_class || !of_teacher) golden_stop(c, NULL, "the model has no two heads");
	nr_t *base = nr_tap(n, "loss.base", nr_cross_entropy(n, of_class, labels, 0, -1)), *more;
	if (is(c, "distillation", "hard")) {
		d->hard = nr_input(n, "teacher", NR_I32, NR_SHAPE(of_class->d[0]));
		more = nr_cross_entropy(n, of_teacher, d->hard, 0, -1);
	} else {
		d->soft = nr_input(n, "teacher", NR_REAL, NR_SHAPE(of_class->d[0], of_class->d[1]));
		more = nr_soft_cross_entropy(n, nr_scale(n, of_teacher, 1 / tau), d->soft);
		d->constant = nr_input(n, "constant", NR_REAL, NR_SHAPE(1));
		more = nr_scale(n, nr_add(n, nr_reshape(n, more, NR_SHAPE(1)), d->constant), tau * tau / (double)of_class->d[1]);
	}
	more = nr_tap(n, "loss.distillation", more);
	return nr_add(n, nr_reshape(n, nr_scale(n, base, 1 - alpha), NR_SHAPE(1)), nr_reshape(n, nr_scale(n, more, alpha), NR_SHAPE(1)));
}

/* The teacher's classes, or its probabilities and their negative entropy, averaged over the pictures. */
static void put_teacher(struct golden_case *c, struct golden_model *m, const struct distillation *d)
{
	const struct golden_tensor t = golden_tensor(c, 2, "in.teacher_logits");
	const double tau = flag(c, "tau", 1);
	double constant = 0;
	for (int64_t b = 0; b < t.d[0]; b++) {
		const real *x = t.x + b * t.d[1];
		int32_t best = 0;
		double sum = 0;
		for (int32_t k = 1; k < t.d[1]; k++) best = x[k] > x[best] ? k : best;
		for (int64_t k = 0; k < t.d[1]; k++) sum += exp((double)(x[k] - x[best]) / tau);
		if (d->hard) ((int32_t *)nr_plan_data(m->plan, d->hard))[b] = best;
		for (int64_t k = 0; d->soft && k < t.d[1]; k++) {
			const double log_p = (double)(x[k] - x[best]) / tau - log(sum);
			((real *)nr_plan_data(m->plan, d->soft))[b * t.d[1] + k] = (real)exp(log_p);
			constant += exp(log_p) * log_p / (double)t.d[0];
		}
	}
	if (d->constant) *(real *)nr_plan_data(m->plan, d->constant) = (real)constant;
}

/* Records the model, loads its weights and inputs, and runs it once. */
static void run(struct golden_case *c, struct run *r, const char *text, const char *naming, const char *norms)
{
	const struct golden_tensor x = golden_tensor(c, 4, "in.image");
	golden_model_open(c, &r->m, text, naming, norms, golden_config(c, "ln_eps", "layer_norm_eps", 1e-6));
	struct nr_net *n = r->m.net;
	struct distillation d = { 0 };
	nr_t *image = nr_input(n, "image", NR_REAL, NR_SHAPE(x.d[0], x.d[1], x.d[2], x.d[3]));
	r->logits = nr_model_logits(n, &r->m.model, &(struct nr_inputs){ .image = image });
	nr_t *labels = NULL, *upstream = NULL, *loss;
	if (golden_has(c, "in.upstream")) {
		upstream = nr_input(n, "upstream", NR_REAL, NR_SHAPE(x.d[0], nr_model_int(&r->m.model, "classes")));
		loss = nr_weighted_sum(n, r->logits, upstream);
	} else {
		labels = nr_input(n, "label", NR_I32, NR_SHAPE(x.d[0]));
		loss = golden_has(c, "in.teacher_logits") ? distilled_loss(c, &r->m, labels, &d) : nr_cross_entropy(n, r->logits, labels,
			0, -1);
	}
	r->logits = nr_tap(n, "logits", r->logits);
	golden_model_load(c, &r->m, loss, NULL);
	golden_model_put(c, &r->m, image, "in.image");
	if (upstream) golden_model_put(c, &r->m, upstream, "in.upstream");
	if (labels) {
		const struct golden_ints label = golden_ints(c, 1, "in.label");
		golden_expect(c, label.n == x.d[0], "in.label");
		memcpy(nr_plan_data(r->m.plan, labels), label.x, (size_t)label.n * sizeof(int32_t));
	}
	if (d.hard || d.soft) put_teacher(c, &r->m, &d);
	golden_model_run(c, &r->m, 0);
}

/* Weights of other variants that this one has no use for. */
static void pass_over(struct golden_case *c)
{
	for (int64_t i = 0; i < nr_st_count(c->file); i++) {
		const char *name = nr_st_get(c->file, i)->name;
		if (!strncmp(name, "param.patch_embed.norm", 22)) c->seen[i] = true;
	}
}

/* A tap under the file's name for it. */
static void check_tap(struct golden_case *c, struct run *r, const char *tap, const char *name)
{
	golden_model_out(c, &r->m, nr_plan_tap(r->m.plan, tap, NULL), "out", name);
}

static int whole_case(struct golden_case *c, const char *text, const char *naming, const char *norms)
{
	struct run r = { 0 };
	run(c, &r, text, naming, norms);
	if (nr_st_metadata(c->file, "variant")) pass_over(c);
	golden_model_out(c, &r.m, r.logits, "out", "logits");
	golden_model_out(c, &r.m, r.logits, "out", "image_embeds");
	check_tap(c, &r, "logits_cls", "logits_cls");
	check_tap(c, &r, "logits_dist", "logits_dist");
	check_tap(c, &r, "logits_cls", "cls_logits");
	check_tap(c, &r, "logits_dist", "distillation_logits");
	check_tap(c, &r, "loss.base", "loss.base");
	check_tap(c, &r, "loss.distillation", "loss.distillation");
	if (golden_has(c, "out.last_hidden_state"))
		check_tap(c, &r, nr_arena_printf(c->arena, "block%lld", (long long)nr_model_int(&r.m.model, "depth") - 1),
			"last_hidden_state");
	golden_model_check(c, &r.m);
	golden_model_train(c, &r.m);
	golden_model_close(&r.m);
	return GOLDEN_RAN;
}

static int timm_case(struct golden_case *c, const char *family)
{
	const char *naming = nr_st_metadata(c->file, "naming"), *task = nr_st_metadata(c->file, "task");
	if (task && !strcmp(task, "segmentation")) return golden_segmentation(c, timm_text(c, family), timm_norms(c));
	return whole_case(c, timm_text(c, family), naming ? naming : "timm", timm_norms(c));
}
static bool of_hf(struct golden_case *c)
{
	const char *naming = nr_st_metadata(c->file, "naming");
	return naming && !strncmp(naming, "huggingface", 11);
}
int golden_model_vit(struct golden_case *c) { return timm_case(c, "vit"); }
int golden_model_eva(struct golden_case *c) { return timm_case(c, "eva"); }
int golden_model_vit_relpos(struct golden_case *c) { return timm_case(c, "vit_relpos"); }

int golden_model_beit(struct golden_case *c)
{
	if (!of_hf(c)) return timm_case(c, "beit");
	const bool shared = flag(c, "use_shared_relative_position_bias", 0) > 0, mean = flag(c, "use_mean_pooling", 1) > 0;
	const char *text = nr_arena_printf(c->arena, "%s,key_bias=0,pool=%s,pos=%s,rel_pos=%s,rel_pos_shared=%d", sizes_text(c, "beit"),
		mean ? "avg" : "class", flag(c, "use_absolute_position_embeddings", 0) > 0 ? "learned" : "none",
		shared || flag(c, "use_relative_position_bias", 0) > 0 ? "table" : "none", shared);
	return whole_case(c, text, "huggingface", golden_config(c, "layer_scale_init_value", NULL, 0) > 0
		? "layer residual=layerscale" : "layer");
}

int golden_model_cait(struct golden_case *c)
{
	const char *text = nr_arena_printf(c->arena, "%s,class_depth=%g,class_mlp=%.17g,qkv_bias=%g", sizes_text(c, "cait"),
		golden_config(c, "depth_token_only", NULL, 2), golden_config(c, "mlp_ratio_token_only", NULL, 4), flag(c, "qkv_bias", 1));
	return whole_case(c, text, "timm", timm_norms(c));
}

/* With the teacher's head, or with a distillation token that nothing reads. */
int golden_model_deit(struct golden_case *c)
{
	const bool plain = golden_has(c, "param.classifier.weight");
	const char *text = nr_arena_printf(c->arena, "%s,%s,qkv_bias=%g", sizes_text(c, "vit"),
		plain ? "registers=1,register_pos=1" : "distilled=1", flag(c, "qkv_bias", 1));
	return whole_case(c, text, plain ? "huggingface_deit_plain" : "huggingface_deit", "");
}

/* With registers or without; two thirds of a SwiGLU's units, rounded up to eights. */
int golden_model_dinov2(struct golden_case *c)
{
	const double dim = golden_number(c, "hidden_size"), registers = flag(c, "num_register_tokens", 0);
	const bool glu = flag(c, "use_swiglu_ffn", 0) > 0;
	const int64_t hidden = (int64_t)((double)(int64_t)(dim * flag(c, "mlp_ratio", 4)) * 2 / 3);
	const char *text = nr_arena_printf(c->arena, "%s,pool=class_avg,qkv_bias=%g,registers=%g", sizes_text(c, "vit"),
		flag(c, "qkv_bias", 1), registers);
	if (glu) text = nr_arena_printf(c->arena, "%s,glu=packed,mlp=%.17g", text, (double)((hidden + 7) / 8 * 8) / dim);
	const char *naming = nr_arena_printf(c->arena, "huggingface_dinov2%s%s", registers > 0 ? "_registers" : "", glu ? "_swiglu" : "");
	return whole_case(c, text, naming, "layer residual=layerscale");
}

int golden_model_clip_vision(struct golden_case *c)
{
	const char *text = nr_arena_printf(c->arena, "%s,classes=%g,patch_bias=0,head_bias=0", sizes_text(c, "vit"),
		golden_number(c, "projection_dim"));
	return whole_case(c, text, "huggingface_clip", "layer embed=layer");
}

/* ---- metrics/grad_norm_per_layer: L2 norms of the gradient by tensor, by layer and in all ------------------------------- */

static double square(const struct golden_model *r, const char *name, struct golden_case *c)
{
	double sum = 0;
	for (int64_t i = 0; i < nr_store_count(r->store); i++) {
		const struct nr_entry *e = nr_store_at(r->store, i);
		char order;
		if (strcmp(nr_naming_text(r->naming, e->name, &order, c->arena), name)) continue;
		for (int64_t k = 0; k < e->count; k++) sum += (double)nr_grad(e)[k] * (double)nr_grad(e)[k];
	}
	return sum;
}

int golden_metric_grad_norm_per_layer(struct golden_case *c)
{
	struct run r = { .m = { .prefix = "model" } };
	run(c, &r, timm_text(c, "vit"), "timm", timm_norms(c));
	const json_t *names = json_object_get(c->config, "tensor_names"), *groups = json_object_get(c->config, "groups");
	const size_t n = json_array_size(names);
	real *each = golden_reals(c, (int64_t)n);
	double all = 0;
	for (size_t i = 0; i < n; i++) {
		const double q = square(&r.m, json_string_value(json_array_get(names, i)), c);
		each[i] = (real)sqrt(q);
		all += q;
	}
	for (size_t g = 0; g < json_array_size(groups); g++) {
		const char *group = json_string_value(json_array_get(groups, g));
		const size_t length = strlen(group);
		double sum = 0;
		for (size_t i = 0; i < n; i++) {
			const char *name = json_string_value(json_array_get(names, i));
			if (!strncmp(name, group, length) && (!name[length] || name[length] == '.')) sum += square(&r.m, name, c);
		}
		golden_check_value(c, "out", sqrt(sum), "norm.%s", group);
	}
	golden_check(c, "out", each, (int64_t)n, "norm_tensor");
	golden_check_value(c, "out", sqrt(all), "norm_total");
	golden_model_close(&r.m);
	return GOLDEN_RAN;
}
