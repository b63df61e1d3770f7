/* norma-golden-model-1, family vit: timm and Hugging Face weights in, logits, blocks, loss, gradients and three steps of
 * AdamW out. Also metrics/grad_norm_per_layer. */
#include <math.h>
#include <string.h>

#include "golden/check.h"
#include "norma/model.h"
#include "norma/nn.h"
#include "norma/train.h"

struct run {
	struct nr_store *store;
	struct nr_net *net;
	struct nr_plan *plan;
	struct nr_model_spec model;
	const struct nr_naming *naming;
	nr_t *image, *label, *logits, *loss;
	const char *prefix;                 /* of the weights: "param" or "model" */
};

static const char *config_text(struct golden_case *c, const char *key, const char *otherwise)
{
	const json_t *v = json_object_get(c->config, key);
	return json_is_string(v) ? json_string_value(v) : otherwise;
}
static double config(struct golden_case *c, const char *timm, const char *hf, double otherwise)
{
	const json_t *v = json_object_get(c->config, timm);
	if (!v && hf) v = json_object_get(c->config, hf);
	return json_is_true(v) ? 1 : json_is_false(v) ? 0 : json_is_number(v) ? json_number_value(v) : otherwise;
}

static void parse_model(struct golden_case *c, struct run *r)
{
	struct nr_error err = { 0 };
	char text[512], line[1024];
	const double dim = config(c, "embed_dim", "hidden_size", 1);
	const double mlp = config(c, "mlp_ratio", NULL, 0), hidden = config(c, "intermediate_size", NULL, 4 * dim);
	const char *act = config_text(c, "act", "gelu");
	snprintf(text, sizeof text,
		"vit:image=%g,channels=%g,patch=%g,dim=%g,depth=%g,heads=%g,classes=%g,mlp=%.17g,qkv_bias=%g,class_token=%g,pool=%s,"
		"fc_norm=%g,act=%s",
		config(c, "img_size", "image_size", 224), config(c, "in_chans", "num_channels", 3), config(c, "patch_size", NULL, 16), dim,
		config(c, "depth", "num_hidden_layers", 1), config(c, "num_heads", "num_attention_heads", 1),
		config(c, "num_classes", "num_labels", 10), mlp > 0 ? mlp : hidden / dim, config(c, "qkv_bias", NULL, 1),
		config(c, "class_token", NULL, 1), strcmp(config_text(c, "global_pool", "token"), "avg") ? "class" : "avg",
		config(c, "fc_norm", NULL, 1), strstr(act, "tanh") ? "gelu_tanh" : "gelu");
	if (nr_model_parse(&r->model, text, c->arena, &err)) golden_stop(c, NULL, "%s", nr_error_text(&err, line, sizeof line));
}

static void record(struct golden_case *c, struct run *r)
{
	struct nr_error err = { 0 };
	char line[1024];
	const struct golden_tensor x = golden_tensor(c, 4, "in.image");
	const char *variant = nr_st_metadata(c->file, "variant"), *patch = variant ? variant : config_text(c, "patch_norm", "none");
	const char *naming = nr_st_metadata(c->file, "naming");
	struct nr_norm_defaults d = { .norm = "layer", .placement = "pre", .eps = config(c, "ln_eps", "layer_norm_eps", 1e-6) };
	parse_model(c, r);
	r->naming = nr_naming_find(r->model.of, naming ? naming : "timm", &err);
	if (!r->naming) golden_stop(c, NULL, "%s", nr_error_text(&err, line, sizeof line));
	nr_store_make(&r->store, 0, &err);
	r->net = r->store ? nr_net_make(r->store) : NULL;
	if (!r->net) golden_stop(c, NULL, "out of memory");
	nr_net_keep_hidden(r->net, 1);
	if (nr_norms_use(r->net, nr_arena_printf(c->arena, "patch=%s", patch), &d, &err))
		golden_stop(c, NULL, "%s", nr_error_text(&err, line, sizeof line));
	r->image = nr_input(r->net, "image", NR_REAL, 4, x.d[0], x.d[1], x.d[2], x.d[3]);
	r->label = nr_input(r->net, "label", NR_I32, 1, x.d[0]);
	r->logits = nr_tap(r->net, "logits", nr_model_logits(r->net, &r->model, r->image));
	r->loss = nr_cross_entropy(r->net, r->logits, r->label, 0, -1);
	if (nr_norms_done(r->net, &err) || nr_plan_make(&r->plan, r->net, r->loss, NR_PLAN_TRAIN, &err))
		golden_stop(c, NULL, "%s", nr_error_text(&err, line, sizeof line));
}

/* The file's tensors of one entry, in our order. prefix.NAME for each of its words. False: the file has none. */
static bool theirs(struct golden_case *c, const struct run *r, const struct nr_entry *e, const char *prefix, real *out, bool put,
	const char *kind)
{
	bool pixels;
	const char *text = nr_naming_text(r->naming, e->name, &pixels, c->arena);
	int64_t parts = 1;
	for (const char *s = text; *s; s++) parts += *s == ' ';
	const int64_t n = e->count / parts, p = nr_model_int(&r->model, "patch"), channels = nr_model_int(&r->model, "channels");
	for (int64_t i = 0; i < parts; i++, text += strcspn(text, " ") + 1) {
		const char *name = nr_arena_printf(c->arena, "%s.%.*s", prefix, (int)strcspn(text, " "), text);
		if (put && !golden_has(c, name)) return false;
		real *mine = out + i * n, *moved = golden_reals(c, n);
		for (int64_t k = 0; k < n; k++) {
			const int64_t q = pixels ? k % (p * p) * channels + k / (p * p) : k;
			if (!put) moved[q] = mine[k];
		}
		if (!put) golden_check(c, kind, moved, n, "%s", name);
		else {
			const struct golden_tensor t = golden_tensor(c, -1, "%s", name);
			golden_expect(c, t.n == n, name);
			for (int64_t k = 0; k < n; k++) mine[k] = t.x[pixels ? k % (p * p) * channels + k / (p * p) : k];
		}
	}
	return true;
}

static void load(struct golden_case *c, struct run *r)
{
	for (int64_t i = 0; i < nr_store_count(r->store); i++) {
		const struct nr_entry *e = nr_store_at(r->store, i);
		const char *resampled = "in.pos_embed_resampled";
		if (!strcmp(e->name, "pos_embed") && golden_has(c, resampled)) {
			const struct golden_tensor t = golden_tensor(c, -1, "%s", resampled);
			golden_tensor(c, -1, "param.pos_embed");
			golden_expect(c, t.n == e->count, resampled);
			memcpy(nr_value(e), t.x, (size_t)t.n * sizeof(real));
		} else if (!theirs(c, r, e, r->prefix, nr_value(e), true, NULL)) golden_fail(c, e->name, "the file lacks it");
	}
	const struct golden_tensor x = golden_tensor(c, 4, "in.image");
	const struct golden_ints label = golden_ints(c, 1, "in.label");
	memcpy(nr_plan_data(r->plan, r->image), x.x, (size_t)x.n * sizeof(real));
	memcpy(nr_plan_data(r->plan, r->label), label.x, (size_t)label.n * sizeof(int32_t));
}

/* Weights of other variants that this one has no use for. */
static void pass_over(struct golden_case *c)
{
	for (int64_t i = 0; i < nr_st_count(c->file); i++) {
		const char *name = nr_st_get(c->file, i)->name;
		if (!strncmp(name, "param.patch_embed.norm", 22)) c->seen[i] = true;
	}
}

static void step(struct run *r, int64_t t)
{
	const struct nr_exec ex = { .step = t };
	nr_plan_run(r->plan, &ex, NR_RUN_FORWARD | NR_RUN_BACKWARD);
}

/* Three steps of AdamW from the file's weights; the names without decay are listed. */
static void train(struct golden_case *c, struct run *r)
{
	const char *text = nr_st_metadata(c->file, "optim");
	json_t *optim = text ? json_loads(text, 0, NULL) : NULL;
	if (!optim) return;
	const json_t *betas = json_object_get(optim, "betas"), *spared = json_object_get(optim, "no_decay");
	const int64_t n = nr_store_count(r->store), steps = json_integer_value(json_object_get(optim, "steps"));
	struct nr_optim o;
	nr_option_defaults(nr_optim_options, &o);
	o.kind = NR_OPTIM_ADAMW;
	o.lr = json_number_value(json_object_get(optim, "lr"));
	o.weight_decay = json_number_value(json_object_get(optim, "weight_decay"));
	o.eps = json_number_value(json_object_get(optim, "eps"));
	o.beta1 = json_number_value(json_array_get(betas, 0));
	o.beta2 = json_number_value(json_array_get(betas, 1));
	struct nr_segment *s = golden_alloc(c, n, sizeof *s);
	for (int64_t i = 0; i < n; i++) {
		const struct nr_entry *e = nr_store_at(r->store, i);
		bool pixels, decay = true;
		const char *name = nr_naming_text(r->naming, e->name, &pixels, c->arena);
		for (size_t k = 0; k < json_array_size(spared); k++)
			decay &= strcmp(json_string_value(json_array_get(spared, k)), name) != 0;
		golden_expect(c, decay == !(e->init & NR_NO_DECAY), nr_arena_printf(c->arena, "weight decay of %s", name));
		s[i] = (struct nr_segment){ .value = nr_value(e), .grad = nr_grad(e), .m = golden_reals(c, e->count),
			.v = golden_reals(c, e->count), .count = e->count, .nd = e->nd, .lr_scale = 1, .decay = decay };
	}
	void *scratch = golden_alloc(c, 1, nr_optim_scratch(s, n));
	real *losses = golden_reals(c, steps);
	const struct nr_rates rates = { o.lr, o.weight_decay };
	for (int64_t t = 1; t <= steps; t++) {
		step(r, t);
		losses[t - 1] = *(const real *)nr_plan_data(r->plan, r->loss);
		nr_optim_step(&o, &rates, t, s, n, scratch, NULL);
	}
	golden_check(c, "out", losses, steps, "out.step_losses");
	for (int64_t i = 0; i < n; i++) theirs(c, r, nr_store_at(r->store, i), "step3", nr_value(nr_store_at(r->store, i)), false, "step3");
	json_decref(optim);
}

static void release(struct run *r)
{
	nr_plan_free(r->plan);
	nr_net_free(r->net);
	nr_store_free(r->store);
}

int golden_model_vit(struct golden_case *c)
{
	struct run r = { .prefix = "param" };
	record(c, &r);
	load(c, &r);
	if (nr_st_metadata(c->file, "variant")) pass_over(c);
	step(&r, 0);
	golden_check(c, "out", nr_plan_data(r.plan, r.logits), nr_len(r.logits), "out.logits");
	golden_check(c, "loss", nr_plan_data(r.plan, r.loss), 1, "out.loss");
	for (int64_t i = 0; i < nr_model_int(&r.model, "depth"); i++) {
		const nr_t *block = nr_plan_tap(r.plan, nr_arena_printf(c->arena, "block%lld", (long long)i), NULL);
		if (block) golden_check(c, "out", nr_plan_data(r.plan, block), nr_len(block), "out.block%lld", (long long)i);
	}
	for (int64_t i = 0; i < nr_store_count(r.store); i++) {
		const struct nr_entry *e = nr_store_at(r.store, i);
		theirs(c, &r, e, "grad", nr_grad(e), false, "grad");
	}
	train(c, &r);
	release(&r);
	return GOLDEN_RAN;
}

/* ---- metrics/grad_norm_per_layer: L2 norms of the gradient by tensor, by layer and in all ------------------------------- */

static double square(const struct run *r, const char *name, struct golden_case *c)
{
	double sum = 0;
	for (int64_t i = 0; i < nr_store_count(r->store); i++) {
		const struct nr_entry *e = nr_store_at(r->store, i);
		bool pixels;
		if (strcmp(nr_naming_text(r->naming, e->name, &pixels, c->arena), name)) continue;
		for (int64_t k = 0; k < e->count; k++) sum += (double)nr_grad(e)[k] * (double)nr_grad(e)[k];
	}
	return sum;
}

int golden_metric_grad_norm_per_layer(struct golden_case *c)
{
	struct run r = { .prefix = "model" };
	record(c, &r);
	load(c, &r);
	step(&r, 0);
	const json_t *names = json_object_get(c->config, "tensor_names"), *groups = json_object_get(c->config, "groups");
	const size_t n = json_array_size(names);
	real *each = golden_reals(c, (int64_t)n);
	double all = 0;
	for (size_t i = 0; i < n; i++) {
		const double q = square(&r, json_string_value(json_array_get(names, i)), c);
		each[i] = (real)sqrt(q);
		all += q;
	}
	for (size_t g = 0; g < json_array_size(groups); g++) {
		const char *group = json_string_value(json_array_get(groups, g));
		const size_t length = strlen(group);
		double sum = 0;
		for (size_t i = 0; i < n; i++) {
			const char *name = json_string_value(json_array_get(names, i));
			if (!strncmp(name, group, length) && (!name[length] || name[length] == '.')) sum += square(&r, name, c);
		}
		golden_check_value(c, "out", sqrt(sum), "norm.%s", group);
	}
	golden_check(c, "out", each, (int64_t)n, "norm_tensor");
	golden_check_value(c, "out", sqrt(all), "norm_total");
	release(&r);
	return GOLDEN_RAN;
}
