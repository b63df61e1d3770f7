/* norma predict CKPT PICTURE... | CKPT SMILES...: what a model says of JPEG and PNG files (here), or of molecules (predict_graphs.c). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/yaml.h"
#include "cli.h"
#include "norma/safetensors.h"
#include "predict_graphs.h"
#include "train/evaluate.h"

enum pixels { AUTO, IMAGENET, HALF };
struct predict { char *model, *norm, *names; int64_t top; int32_t pixels; double crop_share; int32_t outputs; bool json; };

static const char *const pixel_names[] = { "auto", "imagenet", "half", NULL };
static const char *const output_names[] = { "auto", "value", "probability", NULL };
static const struct nr_option options[] = {
	NR_OPT_INT(struct predict, top, 5, 1, 1000000, "how many classes of a picture to print"),
	CLI_TEXT(struct predict, model, "", "MODEL", "model, for files that do not say it themselves"),
	CLI_TEXT(struct predict, norm, "", "PLAN", "norm plan, likewise"),
	CLI_TEXT(struct predict, names, "", "FILE", "names of the classes or tasks, one on each line; default: those of the checkpoint"),
	NR_OPT_ENUM(struct predict, pixels, "auto", pixel_names,
		"scale of a picture: imagenet's mean and std, half for [-1,1]; auto: as in training, or half"),
	NR_OPT_FLOAT(struct predict, crop_share, 0, 0, 1, "the picture's part that the centre crop takes; 0: as in training"),
	NR_OPT_ENUM(struct predict, outputs, "auto", output_names,
		"what a model of graphs says: values, or probabilities of yes; auto: as it was trained"),
	NR_OPT_BOOL(struct predict, json, "0", "one line of JSON for each picture or molecule"),
	NR_OPT_END
};

struct names { char **name; int64_t count; };           /* of classes or tasks */
struct job {
	const struct predict *o;
	struct nr_weights *w;
	struct nr_runner run;
	struct nr_augment augment;
	struct nr_augment_scratch *scratch;
	struct nr_picture picture;
	float *image;
	struct names of;
};

/* ---- how pictures become input: as the training's evaluation did ----------------------------------------------------------- */

/* The settings that a checkpoint of ours holds; defaults where it holds none. */
static double read_settings(struct cli *c, const char *path, struct nr_augment *a)
{
	struct nr_st_file *f;
	struct nr_error ignored = { 0 };                        /* settings of another version: those that are known count */
	double crop_share = 1;
	nr_option_defaults(nr_augment_options, a);
	if (nr_st_open(&f, path, NULL)) return crop_share;
	const char *text = nr_st_metadata(f, "norma.config");
	const char *filter = text ? nr_yaml_peek(text, strlen(text), NULL, "filter", c->arena) : NULL;
	const char *crop = text ? nr_yaml_peek(text, strlen(text), NULL, "crop_share", c->arena) : NULL;
	if (filter) nr_option_set(nr_augment_options, a, "filter", filter, c->arena, &ignored);
	if (crop && !nr_parse_double(crop, &crop_share)) crop_share = 1;
	nr_st_close(f);
	return crop_share;
}

static void set_up_pixels(struct job *j, double crop_share)
{
	static const double mean[3] = { 0.485, 0.456, 0.406 }, std[3] = { 0.229, 0.224, 0.225 };
	const bool known = j->o->pixels == AUTO && j->w->normalize && j->w->std[0] > 0;
	struct nr_augment *a = &j->augment;
	*a = nr_augment_for_eval(a, j->run.size, (int32_t)j->run.channels, j->o->crop_share > 0 ? j->o->crop_share : crop_share);
	a->normalize = known || j->o->pixels == IMAGENET;
	for (int i = 0; i < 3; i++) {
		a->mean[i] = known ? j->w->mean[i] : mean[i];
		a->std[i] = known ? j->w->std[i] : std[i];
	}
}

/* ---- names ------------------------------------------------------------------------------------------------------------------ */

static int read_names(struct cli *c, const char *file, const struct nr_weights *w, struct names *n)
{
	const int64_t classes = nr_model_int(&w->model, "classes");
	size_t size;
	if (!*file) {
		n->name = w->class_name;
		while (n->name && n->name[n->count]) n->count++;
		return NR_OK;
	}
	char *text = nr_yaml_load(file, &size, c->arena, c->err);
	if (!text) return c->err->code;
	n->name = nr_arena_alloc(c->arena, (size_t)classes * sizeof *n->name);
	if (!n->name) return nr_fail(c->err, NR_EMEMORY, "cannot read", file, "out of memory");
	for (char *line = text; *line && n->count < classes;) {
		char *end = line + strcspn(line, "\r\n");
		char *next = end + strspn(end, "\r\n");
		*end = 0;
		n->name[n->count++] = line;
		line = next;
	}
	return NR_OK;
}

static const char *name_of(const struct job *j, int64_t k, char *buf, size_t size)
{
	if (k >= j->of.count) snprintf(buf, size, "class %lld", (long long)k);
	else snprintf(buf, size, "%.*s", (int)size - 1, j->of.name[k]);
	for (char *s = buf; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7F) *s = ' ';
	return buf;
}

/* ---- results ----------------------------------------------------------------------------------------------------------------- */

struct guess { int64_t k; double p; };

static int by_probability(const void *a, const void *b)
{
	const struct guess *x = a, *y = b;
	return x->p != y->p ? (x->p < y->p ? 1 : -1) : x->k < y->k ? -1 : 1;
}

/* Softmax in double, sorted. */
static void rank(int64_t K, const real *logits, struct guess *g)
{
	double most = -INFINITY, sum = 0;
	for (int64_t k = 0; k < K; k++) most = fmax(most, (double)logits[k]);
	for (int64_t k = 0; k < K; k++) sum += exp((double)logits[k] - most);
	for (int64_t k = 0; k < K; k++) g[k] = (struct guess){ k, exp((double)logits[k] - most) / sum };
	qsort(g, (size_t)K, sizeof *g, by_probability);
}

static void print_guesses(const struct job *j, const char *path, const struct guess *g, int64_t n)
{
	char name[256];
	size_t width = 0;
	for (int64_t i = 0; i < n; i++) {
		const size_t w = nr_utf8_width(name_of(j, g[i].k, name, sizeof name));
		width = w > width ? w : width;
	}
	printf("%s%s%s\n", cli_bold(), path, cli_plain());
	for (int64_t i = 0; i < n; i++) {
		name_of(j, g[i].k, name, sizeof name);
		printf("  %s%*s  %6.2f %%  %s", name, (int)(width - nr_utf8_width(name)), "", 100 * g[i].p, i ? "" : cli_green());
		for (int b = 0; b < (int)lround(30 * g[i].p); b++) fputs("█", stdout);
		printf("%s\n", i ? "" : cli_plain());
	}
}

static int json_guesses(const struct job *j, const char *path, const struct guess *g, int64_t n, struct nr_error *err)
{
	json_t *list = json_array();
	for (int64_t i = 0; i < n; i++) {
		char name[256];
		name_of(j, g[i].k, name, sizeof name);
		json_array_append_new(list, json_pack("{s:I, s:s, s:f}", "class", (json_int_t)g[i].k, "name", name, "probability", g[i].p));
	}
	return nr_json_line(stdout, json_pack("{s:s, s:o}", "picture", path, "top", list), err);
}

static int predict_one(struct job *j, const char *path, struct guess *g, struct nr_error *err)
{
	if (nr_picture_read(&j->picture, path, (int32_t)j->run.channels, err)) return err->code;
	if (nr_augment_run(&j->augment, NULL, &j->picture, 0, 0, 0, j->image, j->scratch, err)) return err->code;
	nr_runner_run(&j->run, j->image, NR_STATS_RUNNING);
	rank(j->run.classes, nr_plan_data(j->run.plan, j->run.logits), g);
	if (!isfinite(g[0].p)) return nr_fail(err, NR_EDIVERGED, "cannot tell", path, "the model's output is not finite");
	const int64_t n = j->o->top < j->run.classes ? j->o->top : j->run.classes;
	if (j->o->json) return json_guesses(j, path, g, n, err);
	print_guesses(j, path, g, n);
	return NR_OK;
}

/* A picture that cannot be read is said and passed over. */
static int predict_all(struct cli *c, struct job *j, const struct nr_list *args)
{
	struct guess *g = malloc((size_t)j->run.classes * sizeof *g);
	int64_t failed = 0;
	if (!g) return nr_fail(c->err, NR_EMEMORY, "cannot predict", NULL, "out of memory");
	for (int64_t i = 1; i < args->count; i++) {
		struct nr_error err = { 0 };
		char line[1400];
		if (!predict_one(j, args->item[i], g, &err)) continue;
		failed++;
		if (args->count == 2) *c->err = err;
		else nr_log_line(NR_LOG_ERROR, "%s", nr_error_text(&err, line, sizeof line));
	}
	free(g);
	if (failed && args->count > 2)
		nr_fail(c->err, NR_EFORMAT, "pictures failed", NULL, "%lld of %lld", (long long)failed, (long long)args->count - 1);
	return c->err->code;
}

static int predict_pictures(struct cli *c, const struct predict *o, struct nr_weights *w, const struct names *names, const char *path,
	const struct nr_list *args)
{
	struct job j = { .o = o, .w = w, .of = *names };
	const double share = read_settings(c, path, &j.augment);
	int code = nr_runner_open(&j.run, w, 1, c->err);
	if (!code && j.run.channels != 1 && j.run.channels != 3)
		code = nr_fail(c->err, NR_EVALUE, "cannot show pictures to", w->model.text, "it wants %lld channels",
			(long long)j.run.channels);
	if (!code) {
		set_up_pixels(&j, share);
		j.image = malloc((size_t)nr_len(j.run.image) * sizeof *j.image);
		code = j.image ? nr_augment_scratch_make(&j.scratch, c->err)
			       : nr_fail(c->err, NR_EMEMORY, "cannot predict", NULL, "out of memory");
	}
	if (!code) code = predict_all(c, &j, args);
	free(j.image);
	nr_picture_release(&j.picture);
	nr_augment_scratch_free(j.scratch);
	nr_runner_close(&j.run);
	return code;
}

/* ---- the command ------------------------------------------------------------------------------------------------------------- */

/* A flag that says nothing to this model is an error if it was given. */
static int refuse(struct cli *c, const struct predict *o, const char *const *names, const char *reads)
{
	char text[64];
	for (; *names; names++) {
		const struct nr_option *row = nr_option_find(options, *names);
		if (strcmp(nr_option_text(row, o, text, sizeof text), row->text) != 0)
			return cli_usage(c, "%s=%s does not go with a model that reads %s", *names, text, reads);
	}
	return NR_OK;
}

static int predict(struct cli *c, const struct predict *o, struct nr_weights *w, const char *path, const struct nr_list *args)
{
	static const char *const of_pictures[] = { "top", "pixels", "crop_share", NULL }, *const of_graphs[] = { "outputs", NULL };
	const bool graphs = w->model.of->reads == NR_READS_GRAPH;
	struct names n = { 0 };
	if (refuse(c, o, graphs ? of_pictures : of_graphs, graphs ? "graphs" : "pictures") || read_names(c, o->names, w, &n))
		return c->err->code;
	if (graphs) {
		const struct predict_graphs how = { (enum predict_outputs)o->outputs, n.name, n.count, o->json };
		return cli_predict_graphs(c, &how, w, args->item + 1, args->count - 1);
	}
	if (args->count > 1) return predict_pictures(c, o, w, &n, path, args);
	cli_usage(c, "predict needs pictures after the weights");
	return nr_hint(c->err, "norma predict runs/x/model.safetensors cat.jpg");
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct predict *o = conf;
	struct nr_weights *w = NULL;
	if (!args->count) {
		cli_usage(c, "predict needs weights, and pictures or molecules");
		return nr_hint(c->err, "norma predict runs/x/model.safetensors cat.jpg");
	}
	cli_bound_spin(c);
	const char *path = nr_weights_path(args->item[0], c->arena);
	if (!path) return nr_fail(c->err, NR_EMEMORY, "cannot load", args->item[0], "out of memory");
	int code = nr_weights_open(&w, path, *o->model ? o->model : NULL, *o->norm ? o->norm : NULL, NULL, false, c->err);
	if (!code) nr_store_fix(w->store);
	if (!code) code = predict(c, o, w, path, args);
	nr_weights_close(w);
	return code;
}

const struct cli_command cli_predict = {
	.name = "predict",
	.title = "what a model says of picture files or of molecules",
	.usage = "WEIGHTS PICTURE... | WEIGHTS [SMILES...]",
	.about = "Decodes each picture (JPEG or PNG), resizes and crops it as the evaluation of the training did, and prints\n"
		 "the most probable classes. Names, mean and std come from the checkpoint; public ones have none: they want\n"
		 "the flags --model, --names and, if trained that way, --pixels imagenet.\n\n"
		 "A model of graphs reads molecules: SMILES as arguments or, if there is none, one on each line of standard\n"
		 "input; text after a blank is a name. It prints a value for each task in the units of its targets, or the\n"
		 "probability of yes: what `norma graph` writes to predictions.csv. Molecules that cannot be read are told\n"
		 "with their line, and the command fails after the others.\n\n"
		 "A folder of a run stands for its model.safetensors; best.safetensors has the weights of predictions.csv.",
	.conf_size = sizeof(struct predict),
	.options = options,
	.run = run,
};
