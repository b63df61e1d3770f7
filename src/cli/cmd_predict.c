/* norma predict CKPT PICTURE... | CKPT SMILES...: what a model says of pictures (here), or of molecules (predict_graphs.c). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/yaml.h"
#include "cli.h"
#include "norma/safetensors.h"
#include "objects.h"
#include "predict_graphs.h"
#include "predict_texts.h"
#include "segments.h"

enum pixels { AUTO, IMAGENET, HALF };
struct predict {
	char *model, *norm, *names, *draw;
	int64_t top;
	int32_t pixels;
	double crop_share, score;
	int32_t outputs;
	struct cli_view view;
	bool json;
};

static const char *const pixel_names[] = { "auto", "imagenet", "half", NULL };
static const char *const output_names[] = { "auto", "value", "probability", NULL };
static const struct nr_option options[] = {
	NR_OPT_INT(struct predict, top, 5, 1, 1000000, "classes to print per picture or text"),
	CLI_TEXT(struct predict, model, "", "MODEL", "model, if the file does not name it"),
	CLI_TEXT(struct predict, norm, "", "PLAN", "norm plan, if the file does not name it"),
	CLI_TEXT(struct predict, names, "", "FILE",
		"file with the names of the classes or tasks, one per line; default: the checkpoint's"),
	NR_OPT_ENUM(struct predict, pixels, "auto", pixel_names,
		"how pixels are scaled: imagenet's mean and std, half for [-1,1]; auto: as in training, or half"),
	NR_OPT_FLOAT(struct predict, crop_share, 0, 0, 1,
		"share of the picture that the centre crop keeps; 0: as in training"),
	NR_OPT_ENUM(struct predict, outputs, "auto", output_names,
		"outputs of a graph model: values, or probabilities of yes; auto: as it was trained"),
	NR_OPT_FLOAT(struct predict, score, 0.5, 0, 1, "of a detector: what is found has at least this score"),
	CLI_VIEW_OPTIONS(struct predict, view),
	CLI_TEXT(struct predict, draw, "", "DIR",
		"folder for the pictures with what was found drawn into them (segmentation: segmented/, others: none)"),
	NR_OPT_BOOL(struct predict, json, "0", "print one line of JSON per picture, molecule or text"),
	NR_OPT_END
};

struct names { char **name; int64_t count; };           /* of classes or tasks */
struct job { const struct predict *o; struct nr_runner run; struct names of; };

/* ---- how pictures become input: as the training's evaluation did, or as the flags say ---------------------------------------- */

static void set_up_view(struct nr_augment *view, const struct predict *o)
{
	static const double mean[3] = { 0.485, 0.456, 0.406 }, std[3] = { 0.229, 0.224, 0.225 };
	if (o->crop_share > 0) view->crop_share = o->crop_share;
	if (o->pixels != AUTO) view->normalize = o->pixels == IMAGENET;
	if (o->pixels != IMAGENET) return;
	memcpy(view->mean, mean, sizeof mean);
	memcpy(view->std, std, sizeof std);
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

static void print_guesses(const struct job *j, const char *path, const struct nr_answer *g, int64_t n)
{
	char name[256];
	size_t width = 0;
	for (int64_t i = 0; i < n; i++) {
		const size_t w = nr_utf8_width(name_of(j, g[i].number, name, sizeof name));
		width = w > width ? w : width;
	}
	printf("%s%s%s\n", cli_bold(), path, cli_plain());
	for (int64_t i = 0; i < n; i++) {
		name_of(j, g[i].number, name, sizeof name);
		printf("  %s%*s  %6.2f %%  %s", name, (int)(width - nr_utf8_width(name)), "", 100 * g[i].probability, i ? "" : cli_green());
		for (int b = 0; b < (int)lround(30 * g[i].probability); b++) fputs("█", stdout);
		printf("%s\n", i ? "" : cli_plain());
	}
}

static int json_guesses(const struct job *j, const char *path, const struct nr_answer *g, int64_t n, struct nr_error *err)
{
	json_t *list = json_array();
	for (int64_t i = 0; i < n; i++) {
		char name[256];
		name_of(j, g[i].number, name, sizeof name);
		json_array_append_new(list, json_pack("{s:I, s:s, s:f}", "class", (json_int_t)g[i].number, "name", name, "probability",
			g[i].probability));
	}
	return nr_json_line(stdout, json_pack("{s:s, s:o}", "picture", path, "top", list), err);
}

static int predict_one(struct job *j, const char *path, struct nr_answer *g, struct nr_error *err)
{
	const int64_t n = j->o->top < j->run.classes ? j->o->top : j->run.classes;
	if (nr_runner_classify(&j->run, path, g, n, err)) return err->code;
	if (j->o->json) return json_guesses(j, path, g, n, err);
	print_guesses(j, path, g, n);
	return NR_OK;
}

/* A picture that cannot be read is said and passed over. */
static int predict_all(struct cli *c, struct job *j, const struct nr_list *args)
{
	struct nr_answer *g = malloc((size_t)j->run.classes * sizeof *g);
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

static int predict_pictures(struct cli *c, const struct predict *o, struct nr_weights *w, const struct names *names,
	const struct nr_list *args)
{
	struct job j = { .o = o, .of = *names };
	int code = nr_runner_open(&j.run, w, 1, c->err);
	if (!code && j.run.channels != 1 && j.run.channels != 3)
		code = nr_fail(c->err, NR_EVALUE,
			"cannot predict pictures with", w->model.text, "it needs %lld channels",
			(long long)j.run.channels);
	if (!code) {
		set_up_view(&j.run.view, o);
		code = predict_all(c, &j, args);
	}
	nr_runner_close(&j.run);
	return code;
}

static int predict_segments(struct cli *c, const struct predict *o, struct nr_weights *w, const struct names *names,
	const struct nr_list *args)
{
	const struct predict_segments how = { &o->view, *o->draw ? o->draw : "segmented", names->name, names->count, o->top, o->json };
	struct nr_augment view = w->view;
	set_up_view(&view, o);
	return cli_predict_segments(c, &how, w, &view, args->item + 1, args->count - 1);
}

/* ---- the command ------------------------------------------------------------------------------------------------------------- */

/* A flag that says nothing to this model is an error if it was given. */
static int refuse(struct cli *c, const struct predict *o, const char *const *names, const char *what)
{
	char text[64];
	for (; *names; names++) {
		const struct nr_option *row = nr_option_find(options, *names);
		if (strcmp(nr_option_text(row, o, text, sizeof text), row->text) != 0)
			return cli_usage(c, "%s=%s does not apply to a model that %s", *names, text, what);
	}
	return NR_OK;
}

static int predict(struct cli *c, const struct predict *o, struct nr_weights *w, const struct nr_list *args)
{
	static const char *const of_pictures[] = { "top", "pixels", "crop_share", "score", "draw", NULL };
	static const char *const not_of_texts[] = { "pixels", "crop_share", "outputs", "score", "draw", NULL };
	static const char *const of_graphs[] = { "outputs", NULL }, *const of_detectors[] = { "score", NULL };
	static const char *const not_of_detectors[] = { "top", "outputs", "crop_share", NULL };
	static const char *const of_maps[] = { "view", "side", "stride", NULL }, *const of_drawn[] = { "draw", NULL };
	const bool graphs = w->model.of->reads == NR_MOLECULES;
	struct names n = { 0 };
	if (!w->segment && refuse(c, o, of_maps, "does not segment")) return c->err->code;
	if (w->model.of->reads == NR_TEXTS) {
		if (refuse(c, o, not_of_texts, "reads texts") || read_names(c, o->names, w, &n)) return c->err->code;
		const struct predict_texts how = { NULL, n.name, n.count, o->top, o->json };
		return cli_predict_texts(c, &how, w, args->item[0], args->item + 1, args->count - 1);
	}
	if (!graphs && args->count < 2) {
		cli_usage(c, "predict needs pictures after the weights");
		return nr_hint(c->err, "norma predict runs/x/model.safetensors cat.jpg");
	}
	if (w->detector) {
		struct nr_augment view = w->view;
		struct nr_weights seen = *w;
		if (refuse(c, o, not_of_detectors, "finds objects in pictures") || read_names(c, o->names, w, &n)) return c->err->code;
		set_up_view(&view, o);
		seen.view = view;
		const struct predict_objects how = { n.name, n.count, o->score, o->draw, o->json };
		return cli_predict_objects(c, &how, &seen, args->item + 1, args->count - 1);
	}
	const char *reads = graphs ? "reads graphs" : "reads pictures";
	if (refuse(c, o, of_detectors, "is no detector") || (!w->segment && refuse(c, o, of_drawn, "classifies")) ||
		refuse(c, o, graphs ? of_pictures : of_graphs, reads) || read_names(c, o->names, w, &n))
		return c->err->code;
	if (graphs) {
		const struct predict_graphs how = { (enum nr_molecule_outputs)o->outputs, n.name, n.count, o->json };
		return cli_predict_graphs(c, &how, w, args->item + 1, args->count - 1);
	}
	if (w->segment) return predict_segments(c, o, w, &n, args);
	return predict_pictures(c, o, w, &n, args);
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
	int code = nr_weights_open(
		&w, args->item[0], &(struct nr_weights_how){ .model = o->model, .norms = o->norm, .detector = true }, c->err);
	if (!code) nr_store_fix(w->store);
	if (!code) code = predict(c, o, w, args);
	nr_weights_close(w);
	return code;
}

const struct cli_command cli_predict = {
	.name = "predict",
	.title = "predict classes of pictures or texts, properties of molecules",
	.usage = "WEIGHTS PICTURE... | WEIGHTS [SMILES...] | WEIGHTS [TEXT...]",
	.about =
		"Decodes each picture (JPEG, PNG, WebP or TIFF), resizes and crops it as in the evaluation during training, and prints\n"
		"the most probable classes. Names, mean and standard deviation come from the checkpoint; public checkpoints have none\n"
		"and need the flags --model, --names and, if trained that way, --pixels imagenet.\n"
		"\n"
		"A graph model reads molecules: SMILES as arguments or, if there are none, one per line of standard input; text\n"
		"after a space is a name. It prints a value for each task in the units of its targets, or the probability of yes,\n"
		"as `norma graph` writes them to predictions.csv. Molecules that cannot be read are reported with their line; the\n"
		"others are still predicted, and the exit code is 1.\n"
		"\n"
		"Of a model of `norma segment` it writes two pictures for each, in --draw (default: segmented): NAME.png with the classes\n"
		"in colours over the picture, NAME.labels.png with their numbers; and prints which share of the pixels the classes have.\n"
		"\n"
		"A model of `norma text` reads texts: arguments or, if there are none, one per line of standard input; a tab parts a\n"
		"pair. It prints the most probable classes, or the value.\n"
		"\n"
		"A detector of `norma detect` prints what it finds in each picture, with boxes in pixels and the areas of masks;\n"
		"--draw DIR leaves the pictures with marks there.\n"
		"\n"
		"A run's folder stands for its model.safetensors; best.safetensors has the weights behind predictions.csv.",
	.conf_size = sizeof(struct predict),
	.options = options,
	.run = run,
};
