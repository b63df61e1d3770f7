/* See image_config.h. */
#include "models/image_config.h"

#include <stdlib.h>
#include <string.h>

#include "models/stages.h"

json_t *nr_config_labels(json_t *j, const struct nr_saved *w, int64_t classes)
{
	json_t *name = json_object(), *number = json_object();
	bool more = w->class_name != NULL;
	for (int64_t i = 0; i < classes; i++) {
		char key[32], label[64];
		snprintf(key, sizeof key, "%lld", (long long)i);
		snprintf(label, sizeof label, "LABEL_%lld", (long long)i);
		more = more && w->class_name[i];
		const char *text = more ? w->class_name[i] : label;
		json_object_set_new(name, key, json_string(text));
		json_object_set_new(number, text, json_integer(i));
	}
	json_object_set_new(j, "id2label", name);
	json_object_set_new(j, "label2id", number);
	json_object_set_new(j, "image_size", json_integer(nr_model_int(w->model, "image")));
	json_object_set_new(j, "num_channels", json_integer(nr_model_int(w->model, "channels")));
	return j;
}

void nr_config_lists(json_t *j, const char *const *pair)
{
	for (; pair[0]; pair += 2) {
		json_t *list = json_array();
		double v;
		for (const char *s = pair[1]; *s && (s = nr_stages_next(s, &v)); s += *s == '-')
			json_array_append_new(list, v == (double)(json_int_t)v ? json_integer((json_int_t)v) : json_real(v));
		json_object_set_new(j, pair[0], list);
	}
}

json_t *nr_timm_config(const struct nr_saved *w, const char *architecture, int64_t features, const char *pool, json_t *args)
{
	const double half[3] = { 0.5, 0.5, 0.5 }, *mean = w->mean ? w->mean : half, *std = w->std ? w->std : half;
	const json_int_t channels = nr_model_int(w->model, "channels"), image = nr_model_int(w->model, "image");
	json_t *input = json_pack("{s:[I,I,I], s:[f,f,f], s:[f,f,f]}", "input_size", channels, image, image, "mean", mean[0],
		mean[1], mean[2],
		"std", std[0], std[1], std[2]);
	return json_pack("{s:s, s:I, s:I, s:s, s:o, s:o}", "architecture", architecture, "num_classes",
		(json_int_t)nr_model_int(w->model, "classes"), "num_features", (json_int_t)features, "global_pool", pool,
			"model_args", args,
		"pretrained_cfg", input);
}

const char *nr_hf_image_act(const char *ours) { return strcmp(ours, "gelu_tanh") ? nr_hf_act_name(ours) : "gelu_pytorch_tanh"; }

const json_t *nr_config_of(const struct nr_look *l)
{
	const json_t *vision = json_object_get(l->config, "vision_config"), *open = json_object_get(json_object_get(l->config, "model_cfg"),
		"vision_cfg");
	return vision ? vision : open ? open : l->config;
}

static const json_t *setting(const struct nr_look *l, const char *hf, const char *timm)
{
	const json_t *v = hf ? json_object_get(nr_config_of(l), hf) : NULL;
	return v || !timm ? v : json_object_get(json_object_get(l->config, "model_args"), timm);
}

bool nr_config_saw_list(const struct nr_look *l, struct nr_sighting *s, const char *option, const char *hf, const char *timm)
{
	const json_t *v = setting(l, hf, timm);
	double value[NR_MAXLEVELS];
	const size_t n = json_array_size(v);
	if (!n || n > NR_MAXLEVELS) return false;
	for (size_t i = 0; i < n; i++) value[i] = json_number_value(json_array_get(v, i));
	nr_saw_text(s, option, nr_stages_text(value, (int64_t)n, l->arena));
	return true;
}

bool nr_config_saw_number(const struct nr_look *l, struct nr_sighting *s, const char *option, const char *hf, const char *timm)
{
	const json_t *v = setting(l, hf, timm);
	if (json_is_array(v)) v = json_array_get(v, 0);
	const struct nr_option *o = nr_option_find(l->model->options, option);
	if (!json_is_number(v) || !o || json_number_value(v) < o->min || json_number_value(v) > o->max) return false;
	nr_saw_text(s, option, nr_arena_printf(l->arena, "%.9g", json_number_value(v)));
	return true;
}

bool nr_config_saw_eps(const struct nr_look *l, struct nr_sighting *s, const char *norms)
{
	const double given = nr_hf_number(nr_config_of(l), "layer_norm_eps"), eps = given > 0 ? given : l->config ? l->naming->eps : 0;
	if (!(eps > 0) || eps == l->model->norms.eps) return false;
	nr_saw_norms(s, nr_arena_printf(l->arena, "%s%seps=%.9g", norms, *norms ? " " : "", eps));
	return true;
}

void nr_config_saw_image(const struct nr_look *l, struct nr_sighting *s)
{
	const json_t *size = json_object_get(json_object_get(l->config, "pretrained_cfg"), "input_size");
	if (nr_config_saw_number(l, s, "image", "image_size", "img_size")) return;
	if (json_is_integer(json_array_get(size, 2))) nr_saw(s, "image", json_integer_value(json_array_get(size, 2)));
}

bool nr_config_saw_clip_heads(const struct nr_look *l, struct nr_sighting *s)
{
	const json_t *vision = json_object_get(json_object_get(l->config, "model_cfg"), "vision_cfg");
	const double width = nr_hf_number(vision, "width"), each = nr_hf_number(vision, "head_width");
	if (!(width > 0)) return false;
	nr_saw(s, "heads", (int64_t)(width / (each > 0 ? each : 64)));
	return true;
}

const char *nr_config_act(const struct nr_look *l)
{
	const json_t *open = json_object_get(l->config, "model_cfg");
	if (json_is_true(json_object_get(open, "quick_gelu"))) return "quick_gelu";
	const char *timm = nr_hf_text(json_object_get(l->config, "model_args"), "act_layer");
	return open ? "gelu" : timm ? timm : nr_hf_text(nr_config_of(l), "hidden_act");
}

void nr_config_saw_act(const struct nr_look *l, struct nr_sighting *s)
{
	const char *act = nr_config_act(l);
	nr_saw_text(s, "act", act ? nr_hf_act(act) : NULL);
}

void nr_config_saw_side(const struct nr_look *l, struct nr_sighting *s, int64_t side)
{
	const json_t *size = setting(l, "image_size", "img_size");
	const json_int_t h = json_integer_value(json_array_get(size, 0)), w = json_integer_value(json_array_get(size, 1));
	if (h != w)
		nr_saw_misfit(s, nr_arena_printf(l->arena, "its config.json is for pictures of %lld x %lld, and only tables for square "
			"ones are understood", (long long)h, (long long)w));
	nr_saw(s, "image", side);
}
