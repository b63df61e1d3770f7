/* norma-golden-model-1, family vit: timm and Hugging Face weights in, logits, blocks, loss, gradients and three steps of
 * AdamW out. Also metrics/grad_norm_per_layer. */
#include <math.h>
#include <string.h>

#include "golden/model.h"
#include "models/names.h"
#include "norma/nn.h"

struct run { struct golden_model m; nr_t *logits; };

static const char *model_text(struct golden_case *c)
{
	const double dim = golden_config(c, "embed_dim", "hidden_size", 1);
	const double mlp = golden_config(c, "mlp_ratio", NULL, 0), hidden = golden_config(c, "intermediate_size", NULL, 4 * dim);
	return nr_arena_printf(c->arena,
		"vit:image=%g,channels=%g,patch=%g,dim=%g,depth=%g,heads=%g,classes=%g,mlp=%.17g,qkv_bias=%g,class_token=%g,pool=%s,"
		"fc_norm=%g,act=%s",
		golden_config(c, "img_size", "image_size", 224), golden_config(c, "in_chans", "num_channels", 3),
		golden_config(c, "patch_size", NULL, 16), dim, golden_config(c, "depth", "num_hidden_layers", 1),
		golden_config(c, "num_heads", "num_attention_heads", 1), golden_config(c, "num_classes", "num_labels", 10),
		mlp > 0 ? mlp : hidden / dim, golden_config(c, "qkv_bias", NULL, 1), golden_config(c, "class_token", NULL, 1),
		strcmp(golden_config_text(c, "global_pool", NULL, "token"), "avg") ? "class" : "avg", golden_config(c, "fc_norm", NULL, 1),
		golden_config_act(c));
}

/* Records the model, loads its weights and inputs, and runs it once. */
static void run(struct golden_case *c, struct run *r)
{
	const struct golden_tensor x = golden_tensor(c, 4, "in.image");
	const struct golden_ints label = golden_ints(c, 1, "in.label");
	const char *variant = nr_st_metadata(c->file, "variant"), *naming = nr_st_metadata(c->file, "naming");
	const char *patch = variant ? variant : golden_config_text(c, "patch_norm", NULL, "none");
	golden_model_open(c, &r->m, model_text(c), naming ? naming : "timm", nr_arena_printf(c->arena, "patch=%s", patch),
		golden_config(c, "ln_eps", "layer_norm_eps", 1e-6));
	struct nr_net *n = r->m.net;
	nr_t *image = nr_input(n, "image", NR_REAL, NR_SHAPE(x.d[0], x.d[1], x.d[2], x.d[3]));
	nr_t *labels = nr_input(n, "label", NR_I32, NR_SHAPE(x.d[0]));
	r->logits = nr_tap(n, "logits", nr_model_logits(n, &r->m.model, &(struct nr_inputs){ .image = image }));
	golden_model_load(c, &r->m, nr_cross_entropy(n, r->logits, labels, 0, -1), NULL);
	golden_model_put(c, &r->m, image, "in.image");
	golden_expect(c, label.n == x.d[0], "in.label");
	memcpy(nr_plan_data(r->m.plan, labels), label.x, (size_t)label.n * sizeof(int32_t));
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

int golden_model_vit(struct golden_case *c)
{
	struct run r = { 0 };
	run(c, &r);
	if (nr_st_metadata(c->file, "variant")) pass_over(c);
	golden_model_out(c, &r.m, r.logits, "out", "logits");
	golden_model_check(c, &r.m);
	golden_model_train(c, &r.m);
	golden_model_close(&r.m);
	return GOLDEN_RAN;
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
	run(c, &r);
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
