/* Trained models: our checkpoints, which say what they are, and public ones, whose model must be named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/safetensors.h"
#include "base/str.h"
#include "base/yaml.h"
#include "fetch/checksum.h"
#include "infer/segmenter.h"
#include "infer/weights.h"
#include "models/detector.h"
#include "models/dino.h"
#include "models/guess.h"
#include "models/mae.h"
#include "models/names.h"
#include "models/sentence_modules.h"
#include "models/text_heads.h"
#include "norma/safetensors.h"

/* The index beside "model-00001-of-00003.safetensors"; NULL: it is none of several files. */
static char *index_of(const char *path, struct nr_arena *arena)
{
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path, *tail = strstr(file, ".safetensors"), *number;
	int part, parts, used = 0;
	if (!tail) return NULL;
	for (number = file; (number = strchr(number, '-')); number++)
		if (sscanf(number, "-%d-of-%d%n", &part, &parts, &used) == 2 && number + used == tail) break;
	char *index = number ? nr_arena_printf(arena, "%.*s.safetensors.index.json", (int)(number - path), path) : NULL;
	return index && !access(path, R_OK) && !access(index, R_OK) ? index : NULL;
}

char *nr_weights_path(const char *path, struct nr_arena *arena)
{
	/* a pickle is opened, too: the message says what to do with it */
	static const char *const names[] = { "model.safetensors", "model.safetensors.index.json", "open_clip_model.safetensors",
		"pytorch_model.bin", "open_clip_pytorch_model.bin", "pytorch_model.bin.index.json", NULL };
	struct stat st;
	if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
		char *index = index_of(path, arena);
		return index ? index : nr_arena_strdup(arena, path);
	}
	for (int i = 0; names[i]; i++) {
		char *file = nr_arena_printf(arena, "%s/%s", path, names[i]);
		if (!file || !access(file, F_OK)) return file;
	}
	return nr_arena_printf(arena, "%s/%s", path, names[0]);
}

static int out_of_memory(const char *path, struct nr_error *err)
{
	return nr_fail(err, NR_EMEMORY, "cannot load", path, "out of memory");
}

static int sum_parts(const struct nr_st_file *f, char *hex, struct nr_error *err)
{
	struct nr_str all = { 0 };
	const char *part;
	int64_t n = 0;
	int code = NR_OK;
	for (; !code && (part = nr_st_part(f, n)); n++) {
		code = nr_checksum_file(part, NR_SHA256, hex, err);
		nr_str_add(&all, hex);
	}
	if (!code && all.failed) code = out_of_memory(nr_st_path(f), err);
	if (!code && n > 1) nr_checksum_bytes(nr_str_text(&all), all.len, NR_SHA256, hex);
	nr_str_release(&all);
	return code;
}

int nr_weights_checksum(const char *path, char *hex, struct nr_error *err)
{
	struct nr_arena *arena = nr_arena_make();
	struct nr_st_file *f = NULL;
	const char *own = arena ? nr_weights_path(path, arena) : NULL;
	int code = own ? nr_st_open(&f, own, err) : out_of_memory(path, err);
	if (!code) code = sum_parts(f, hex, err);
	nr_st_close(f);
	nr_arena_free(arena);
	return code;
}

static int read_classes(struct nr_weights *w, const char *text, const char *path, struct nr_error *err)
{
	json_t *list = nr_json_parse(text, strlen(text), path, err);
	const size_t n = json_array_size(list);
	w->class_name = list ? nr_arena_alloc(w->arena, (n + 1) * sizeof *w->class_name) : NULL;
	for (size_t i = 0; w->class_name && i < n; i++) {
		const char *name = json_string_value(json_array_get(list, i));
		w->class_name[i] = nr_arena_strdup(w->arena, name ? name : "?");
	}
	json_decref(list);
	return list ? NR_OK : (int)err->code;
}

/* How the evaluation of the training made pictures into inputs; settings of another version: those that are known count. */
static void read_view(struct nr_weights *w, const char *config)
{
	struct nr_error ignored = { 0 };
	nr_option_defaults(nr_augment_options, &w->view);
	w->view.crop_share = 1;
	const char *filter = config ? nr_yaml_peek(config, strlen(config), NULL, "filter", w->arena) : NULL;
	const char *crop = config ? nr_yaml_peek(config, strlen(config), NULL, "crop_share", w->arena) : NULL;
	double share;
	if (filter) nr_option_set(nr_augment_options, &w->view, "filter", filter, w->arena, &ignored);
	if (crop && nr_parse_double(crop, &share)) w->view.crop_share = share;
	w->view.normalize = w->normalize && w->std[0] > 0;
	memcpy(w->view.mean, w->mean, sizeof w->mean);
	memcpy(w->view.std, w->std, sizeof w->std);
}

const char *nr_numbers_text(const double *v, int64_t count, struct nr_arena *arena)
{
	struct nr_str s = { 0 };
	for (int64_t i = 0; i < count; i++) nr_str_printf(&s, "%s%.17g", i ? " " : "", v[i]);
	const char *text = nr_str_keep(&s, arena);
	return text;
}

/* "0.5 1.25 ...": as many as there are; *count says how many. NULL: none, or what is no number. */
static const double *read_numbers(const char *text, int64_t *count, struct nr_arena *arena)
{
	double *v = text ? nr_arena_alloc(arena, (strlen(text) / 2 + 1) * sizeof *v) : NULL;
	char one[64];
	*count = 0;
	for (; v && *text; text += *text == ' ') {
		const size_t n = strcspn(text, " ");
		snprintf(one, sizeof one, "%.*s", (int)(n < sizeof one ? n : sizeof one - 1), text);
		if (!nr_parse_double(one, &v[*count])) return NULL;
		++*count;
		text += n;
	}
	return v;
}

/* Mean and deviation of the input, as timm's config.json (the guess read it) or Hugging Face's preprocessor_config.json has them. */
static void read_input(struct nr_weights *w, const char *path, const struct nr_guess *g)
{
	const char *slash = strrchr(path, '/');
	const char *beside = nr_arena_printf(w->arena, "%.*spreprocessor_config.json", slash ? (int)(slash - path) + 1 : 0, path);
	json_t *config = beside ? nr_json_load(beside, &(struct nr_error){ 0 }) : NULL;
	double mean[3], std[3];
	const bool hf = nr_json_three(json_object_get(config, "image_mean"), mean) && nr_json_three(json_object_get(config, "image_std"),
		std), plain = json_is_false(json_object_get(config, "do_normalize"));
	if (!plain && (hf || g->std[0] > 0)) {
		memcpy(w->mean, hf ? mean : g->mean, sizeof w->mean);
		memcpy(w->std, hf ? std : g->std, sizeof w->std);
		w->normalize = true;
	}
	if (g->crop > 0) w->view.crop_share = g->crop;
	json_decref(config);
	w->view.normalize = w->normalize && w->std[0] > 0;
	memcpy(w->view.mean, w->mean, sizeof w->mean);
	memcpy(w->view.std, w->std, sizeof w->std);
}

/* What our own files say of themselves. */
static int read_meta(struct nr_weights *w, const char *path, const struct nr_weights_how *how, const char **model, const char **norms,
	struct nr_error *err)
{
	struct nr_st_file *f;
	if (nr_st_open(&f, path, err)) return err->code;
	const char *text = nr_st_metadata(f, "norma.classes");
	const char *of_model = nr_st_metadata(f, "norma.model"), *of_norms = nr_st_metadata(f, "norma.norms");
	int code = text ? read_classes(w, text, path, err) : NR_OK;
	if (!*model && of_model) *model = nr_arena_strdup(w->arena, of_model);
	if (!*norms && of_norms) *norms = nr_arena_strdup(w->arena, of_norms);
	if ((text = nr_st_metadata(f, "norma.mean"))) sscanf(text, "%lf %lf %lf", &w->mean[0], &w->mean[1], &w->mean[2]);
	if ((text = nr_st_metadata(f, "norma.std"))) sscanf(text, "%lf %lf %lf", &w->std[0], &w->std[1], &w->std[2]);
	if ((text = nr_st_metadata(f, "norma.pooler"))) w->pooler = nr_arena_strdup(w->arena, text);
	if ((text = nr_st_metadata(f, "norma.objective"))) w->objective = nr_arena_strdup(w->arena, text);
	int64_t means, stds;
	w->target_mean = read_numbers(nr_st_metadata(f, "norma.target_mean"), &means, w->arena);
	w->target_std = read_numbers(nr_st_metadata(f, "norma.target_std"), &stds, w->arena);
	if (!w->target_mean || !w->target_std || means != stds) w->target_mean = w->target_std = NULL;
	w->targets = w->target_std ? stds : 0;
	if ((text = nr_st_metadata(f, "norma.data"))) w->data = nr_arena_strdup(w->arena, text);
	if ((text = nr_st_metadata(f, "norma.step"))) w->step = strtoll(text, NULL, 10);
	text = nr_st_metadata(f, "norma.normalize");
	w->normalize = text && *text == '1';
	read_view(w, nr_st_metadata(f, "norma.config"));
	struct nr_guess guess = { 0 };
	if (!code && !of_model) {
		int seen = how->texts ? nr_tower_guess(&guess, f, NR_TEXTS, w->arena) : 0;
		if (!seen) seen = nr_model_guess(&guess, f, w->arena);
		if (!*model && seen && guess.sure) {
			*model = guess.model;
			w->naming = guess.naming;
			if (!*norms && *guess.norms) *norms = guess.norms;
		}
		if (*model) read_input(w, path, &guess);
		else code = nr_guess_fail(&guess, seen, "cannot load", path, how->norms_flag ? how->norms_flag : "--norm", err);
	}
	nr_st_close(f);
	return code;
}

/* One of these is there if the model's head is. */
static const char *const head_entries[] = { "head.weight", "head.bias", "head.logits.weight", "head.out_proj.weight", NULL };

bool nr_weights_has_head(const struct nr_weights *w)
{
	bool found = false;
	for (int i = 0; head_entries[i]; i++) found |= nr_store_find(w->store, head_entries[i]) != NULL;
	return found;
}

static bool has_head(const char *path, const struct nr_model *m, struct nr_arena *arena, unsigned *text_heads, struct nr_error *err)
{
	struct nr_st_file *f;
	bool found = false;
	char order;
	if (nr_st_open(&f, path, err)) return false;
	if (m->reads == NR_TEXTS) *text_heads = nr_text_heads_in(m, f, arena);
	for (int i = 0; head_entries[i]; i++) {
		found |= nr_st_find(f, head_entries[i]) != NULL;
		for (const struct nr_naming *n = m->namings; n->name; n++) {
			const char *theirs = nr_naming_text(n, head_entries[i], &order, arena);
			found |= theirs && nr_st_find(f, theirs);
		}
	}
	nr_st_close(f);
	return found;
}

/* The decoder of a masked autoencoder, as the file describes it: our own in words, public ones by their shapes. */
static int read_decoder(struct nr_weights *w, const char *path, struct nr_error *err)
{
	struct nr_st_file *f;
	struct nr_mae *o = nr_arena_alloc(w->arena, sizeof *o);
	if (!o) return out_of_memory(path, err);
	if (nr_st_open(&f, path, err)) return err->code;
	const char *text = nr_st_metadata(f, "norma.mae"), *plan = nr_st_metadata(f, "norma.mae.norms");
	int code = NR_OK;
	if (nr_mae_guess(o, w->model.of, f, w->arena)) {
		if (text) code = nr_option_parse(nr_mae_options, o, text, w->arena, err);
		else code = nr_mae_encoder(&w->model, o, w->arena, err);
		w->mae = o;
		w->whole_norms = plan ? nr_arena_strdup(w->arena, plan) : w->norms;
	}
	nr_st_close(f);
	return code;
}

/* The head of DINO, likewise. */
static int read_dino(struct nr_weights *w, const char *path, struct nr_error *err)
{
	struct nr_st_file *f;
	struct nr_dino *o = nr_arena_alloc(w->arena, sizeof *o);
	if (!o) return out_of_memory(path, err);
	if (nr_st_open(&f, path, err)) return err->code;
	const char *text = nr_st_metadata(f, "norma.dino");
	int code = NR_OK;
	if (nr_dino_guess(o, w->model.of, f, w->arena)) {
		if (text) code = nr_option_parse(nr_dino_options, o, text, w->arena, err);
		w->dino = o;
	}
	nr_st_close(f);
	return code;
}

/* Neck and heads, as the file describes them. */
static int read_detector(struct nr_weights *w, const char *path, struct nr_error *err)
{
	struct nr_st_file *f;
	struct nr_detector *o = nr_arena_alloc(w->arena, sizeof *o);
	if (!o) return out_of_memory(path, err);
	if (nr_st_open(&f, path, err)) return err->code;
	const char *text = nr_st_metadata(f, "norma.detector"), *plan = nr_st_metadata(f, "norma.detector.norms");
	nr_option_defaults(nr_detector_options, o);
	const int code = text ? nr_option_parse(nr_detector_options, o, text, w->arena, err) : NR_OK;
	if (text) w->detector = o;
	if (text) w->whole_norms = plan ? nr_arena_strdup(w->arena, plan) : w->norms;
	nr_st_close(f);
	return code;
}

static const uint8_t (*read_colours(const char *text, int64_t classes, struct nr_arena *arena))[3]
{
	int64_t n;
	const double *v = read_numbers(text, &n, arena);
	uint8_t(*colour)[3] = v && n == 3 * classes ? nr_arena_alloc(arena, (size_t)classes * sizeof *colour) : NULL;
	for (int64_t i = 0; colour && i < n; i++) colour[i / 3][i % 3] = (uint8_t)v[i];
	return (const uint8_t(*)[3])colour;
}

/* The decoder of a segmentation, which is as much a part of the model as a head. */
static int read_segment(struct nr_weights *w, const char *path, struct nr_error *err)
{
	struct nr_st_file *f;
	struct nr_segmentation *o = nr_arena_alloc(w->arena, sizeof *o);
	struct nr_segment_view *view = nr_arena_alloc(w->arena, sizeof *view);
	if (!o || !view) return out_of_memory(path, err);
	if (nr_st_open(&f, path, err)) return err->code;
	const char *text = nr_st_metadata(f, "norma.segment"), *plan = nr_st_metadata(f, "norma.segment.norms");
	const char *seen = nr_st_metadata(f, "norma.segment.view");
	int code = NR_OK;
	if (nr_segment_guess(o, f)) {
		nr_option_defaults(nr_segment_view_options, view);
		if (text) code = nr_option_parse(nr_segment_options, o, text, w->arena, err);
		if (!code && seen) code = nr_option_parse(nr_segment_view_options, view, seen, w->arena, err);
		if (!code) code = nr_segment_settle(&w->model, o, w->arena, err);
		w->segment = o;
		w->segment_view = view;
		w->whole_norms = plan ? nr_arena_strdup(w->arena, plan) : w->norms;
		w->colour = read_colours(nr_st_metadata(f, "norma.colours"), o->classes, w->arena);
	}
	nr_st_close(f);
	return code;
}

/* Everything that the weights have a place for: encoder, heads, decoder. */
static void record_whole(struct nr_net *n, const struct nr_weights *w, bool head, unsigned text_heads)
{
	struct nr_mae_graph g;
	if (w->mae) {
		nr_mae_record(n, &w->model, w->mae, 1, &g);
		return;
	}
	if (w->detector) {
		struct nr_detector_graph of;
		nr_detector_detections(n, &w->model, w->detector, 1, &of);
		return;
	}
	if (w->dino) {
		struct nr_dino_graph of;
		nr_dino_teacher(n, &w->model, w->dino, 1, &of);
		return;
	}
	const struct nr_inputs in = nr_model_inputs(n, &w->model, 1);
	if (w->segment) {
		nr_segment_logits(n, &w->model, w->segment, &in);
		return;
	}
	nr_t *tokens = nr_model_tokens(n, &w->model, &in);
	if (w->model.of->reads == NR_TEXTS && !head) {     /* a trained encoder need not have a pooler */
		nr_text_heads_record(n, &w->model, tokens, text_heads);
		return;
	}
	nr_t *pooled = w->model.of->pool(n, tokens, w->model.conf);
	if (head) nr_model_head(n, &w->model, pooled);
	nr_text_heads_record(n, &w->model, tokens, text_heads);
}

static int record_with(struct nr_net *n, const struct nr_weights *w, const char *norms, bool head, unsigned text_heads,
	struct nr_error *err)
{
	if (nr_norms_use(n, norms, &w->model.norms, err)) return err->code;
	record_whole(n, w, head, text_heads);
	return nr_norms_done(n, err);
}

/* Records the model once, so that the store knows its entries; they get no memory before the file is known to have them.
 * text_heads: what a file of a text model has beside the encoder. */
static int name_entries(struct nr_weights *w, const char *path, bool head, unsigned text_heads, struct nr_error *err)
{
	struct nr_net *n = nr_net_make(w->store);
	if (!n) return out_of_memory(path, err);
	const int code = record_with(n, w, w->whole_norms ? w->whole_norms : w->norms, head, text_heads, err);
	nr_net_free(n);
	return code;
}

int nr_weights_record(struct nr_net *n, const struct nr_weights *w, const char *norms, struct nr_error *err)
{
	return record_with(n, w, norms, nr_weights_has_head(w), nr_text_heads_of(w->store), err);
}

/* A name that is not known may be of a plug-in, which the file names. */
static void hint_plugin(const char *path, struct nr_error *err)
{
	struct nr_st_file *f;
	if (nr_st_open(&f, path, &(struct nr_error){ 0 })) return;
	const char *names = nr_st_metadata(f, "norma.plugins");
	if (names) err->hint[0] = 0;
	if (names) nr_hint(err, "it was trained with the plug-in %.*s: add --plugin PATH", (int)strcspn(names, " \n"), names);
	nr_st_close(f);
}

static const char *given(const char *text) { return text && *text ? text : NULL; }

/* Values of the file into the store, which knows its entries. */
static int read_values(struct nr_weights *w, const char *path, const struct nr_weights_how *how, struct nr_error *err)
{
	const char *asked = given(how->naming);
	struct nr_import in = { .naming = asked && strcmp(asked, "auto") != 0 ? asked : w->naming,
		.resample = given(how->resample), .partial = how->partial,
		.decoder = how->decoder || w->segment, .tell = how->tell, .context = how->context,
		.special = nr_model_int(&w->model, "class_token") > 0 && nr_model_int(&w->model, "class_at") <= 0 };
	if (nr_model_import(w->store, w->model.of, path, &in, err)) return err->code;
	w->naming = in.used;
	w->taken = in.taken;
	w->kept = in.kept;
	w->ignored = in.ignored;
	return NR_OK;
}

/* A model whose text does not name its classes has as many as the file's head. */
static int take_classes(struct nr_weights *w, const char *path, struct nr_error *err)
{
	struct nr_st_file *f;
	char number[32];
	const char *named = nr_model_text_without(w->model.text, "classes", w->arena);
	if (!named) return out_of_memory(path, err);
	if (w->model.of->reads != NR_PICTURES || strcmp(named, w->model.text) || nr_model_int(&w->model, "classes") < 0) return NR_OK;
	if (nr_st_open(&f, path, err)) return err->code;
	int64_t rows = -1;
	for (const struct nr_naming *n = w->model.of->namings; n->name && rows < 0; n++) {
		const struct nr_look l = { f, w->model.of, n, NULL, w->arena };
		if (nr_look_find(&l, "blocks.0.attn.in.weight") || nr_look_find(&l, "patch_embed.proj.weight"))
			rows = nr_look_rows(&l, "head.weight", 0);
	}
	nr_st_close(f);
	if (rows < 1 || rows == nr_model_int(&w->model, "classes")) return NR_OK;
	snprintf(number, sizeof number, "%lld", (long long)rows);
	w->model.text = nr_arena_printf(w->arena, "%s%cclasses=%s", w->model.text, strchr(w->model.text, ':') ? ',' : ':', number);
	return w->model.text ? nr_model_set(&w->model, "classes", number, w->arena, err) : out_of_memory(path, err);
}

static int read_all(struct nr_weights *w, const char *path, const struct nr_weights_how *how, struct nr_error *err)
{
	const char *model = given(how->model), *norms = given(how->norms);
	int code = read_meta(w, path, how, &model, &norms, err);
	if (!code) code = nr_model_parse(&w->model, model, w->arena, err);
	if (!code && !how->partial) code = take_classes(w, path, err);
	w->norms = norms ? nr_arena_strdup(w->arena, norms) : "";
	if (!code && !w->pooler && w->model.of->reads == NR_TEXTS) code = nr_sentence_pooler(&w->pooler, path, w->arena, err);
	if (!code && how->decoder) code = read_decoder(w, path, err);
	if (!code && how->decoder && !w->mae && w->model.of->reads == NR_PICTURES) code = read_dino(w, path, err);
	if (!code && how->detector) code = read_detector(w, path, err);
	if (!code && !how->partial && w->model.of->reads == NR_PICTURES) code = read_segment(w, path, err);
	if (!code) code = nr_store_make(&w->store, 0, err);
	/* A pre-trained encoder has no head; whoever takes what does not fit (partial) gets one with first values. */
	if (!code) {
		unsigned text_heads = 0;
		const bool head = has_head(path, w->model.of, w->arena, &text_heads, err);
		code = name_entries(w, path, head || how->partial, text_heads, err);
	}
	if (!code) code = read_values(w, path, how, err);
	if (!code) {
		const struct nr_naming *naming = nr_naming_find(w->model.of, w->naming, NULL);
		if (!norms && naming && naming->norms) w->norms = naming->norms;
		else if (!norms && naming && naming->eps > 0)   /* its software's eps, as the file says nothing of norms */
			w->norms = nr_arena_printf(w->arena, "%s:eps=%g", w->model.of->norms.norm, naming->eps);
	}
	return code;
}

int nr_weights_open(struct nr_weights **out, const char *path, const struct nr_weights_how *how, struct nr_error *err)
{
	static const struct nr_weights_how usual;
	struct nr_error own = { 0 };
	struct nr_arena *arena = nr_arena_make();
	struct nr_weights *w = arena ? nr_arena_alloc(arena, sizeof *w) : NULL;
	*out = NULL;
	if (!err) err = &own;
	if (!w) {
		nr_arena_free(arena);
		return out_of_memory(path, err);
	}
	w->arena = arena;
	const char *file = nr_weights_path(path, arena);
	const int code = file ? read_all(w, file, how ? how : &usual, err) : out_of_memory(path, err);
	if (code == NR_ENAME) hint_plugin(file, err);
	if (code) nr_weights_close(w);
	else *out = w;
	return code;
}

void nr_weights_close(struct nr_weights *w)
{
	if (!w) return;
	nr_store_free(w->store);
	nr_arena_free(w->arena);
}
