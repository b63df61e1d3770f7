/* norma predict CKPT PICTURE...: names and probabilities for JPEG and PNG files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/yaml.h"
#include "cli.h"
#include "norma/safetensors.h"
#include "train/evaluate.h"

enum pixels { AUTO, IMAGENET, HALF };
struct predict { char *model, *norm, *names; int64_t top; int32_t pixels; double crop_share; bool json; };

static const char *const pixel_names[] = { "auto", "imagenet", "half", NULL };
static const struct nr_option options[] = {
	NR_OPT_INT(struct predict, top, 5, 1, 1000000, "how many classes to print"),
	CLI_TEXT(struct predict, model, "", "MODEL", "model, for files that do not say it themselves"),
	CLI_TEXT(struct predict, norm, "", "PLAN", "norm plan, likewise"),
	CLI_TEXT(struct predict, names, "", "FILE", "names of the classes, one on each line; default: those of the checkpoint"),
	NR_OPT_ENUM(struct predict, pixels, "auto", pixel_names,
		"scale of the input: imagenet's mean and std, half for [-1,1]; auto: as in training, or half"),
	NR_OPT_FLOAT(struct predict, crop_share, 0, 0, 1, "the picture's part that the centre crop takes; 0: as in training"),
	NR_OPT_BOOL(struct predict, json, "0", "one line of JSON for each picture"),
	NR_OPT_END
};

struct job {
	const struct predict *o;
	struct nr_weights *w;
	struct nr_runner run;
	struct nr_augment augment;
	struct nr_augment_scratch *scratch;
	struct nr_picture picture;
	float *image;
	char **name;                        /* (names) */
	int64_t names;
};

/* ---- how pictures become input: as the training's evaluation did ----------------------------------------------------------- */

/* The settings that a checkpoint of ours holds; defaults where it holds none. */
static double read_settings(struct cli *c, const char *path, struct nr_augment *a)
{
	struct nr_train *t = nr_arena_alloc(c->arena, sizeof *t);
	struct nr_st_file *f;
	nr_option_defaults(nr_augment_options, a);
	if (!t || nr_st_open(&f, path, NULL)) return 1;
	const char *text = nr_st_metadata(f, "norma.config");
	nr_option_defaults(nr_train_options(), t);
	if (text) {
		const struct nr_yaml_section sections[] = { { NULL, nr_train_options(), t }, { 0 } };
		struct nr_yaml_errors errors = { 0 };
		struct nr_error ignored = { 0 };                /* settings of another version: those that are known count */
		nr_yaml_parse(text, strlen(text), path, sections, c->arena, &errors, &ignored);
		a->filter = t->augment.filter;
	}
	nr_st_close(f);
	return t->crop_share;
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

static int read_names(struct cli *c, struct job *j)
{
	size_t size;
	if (!*j->o->names) {
		j->name = j->w->class_name;
		while (j->name && j->name[j->names]) j->names++;
		return NR_OK;
	}
	char *text = nr_yaml_load(j->o->names, &size, c->arena, c->err);
	if (!text) return c->err->code;
	j->name = nr_arena_alloc(c->arena, (size_t)j->run.classes * sizeof *j->name);
	if (!j->name) return nr_fail(c->err, NR_EMEMORY, "cannot read", j->o->names, "out of memory");
	for (char *line = text; *line && j->names < j->run.classes;) {
		char *end = line + strcspn(line, "\r\n");
		char *next = end + strspn(end, "\r\n");
		*end = 0;
		j->name[j->names++] = line;
		line = next;
	}
	return NR_OK;
}

static const char *name_of(const struct job *j, int64_t k, char *buf, size_t size)
{
	if (k >= j->names) snprintf(buf, size, "class %lld", (long long)k);
	else snprintf(buf, size, "%.*s", (int)size - 1, j->name[k]);
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

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	struct job j = { .o = conf };
	if (args->count < 2) {
		cli_usage(c, args->count ? "predict needs pictures after the weights" : "predict needs weights and pictures");
		return nr_hint(c->err, "norma predict runs/x/model.safetensors cat.jpg");
	}
	const double share = read_settings(c, args->item[0], &j.augment);
	const char *model = *j.o->model ? j.o->model : NULL, *norm = *j.o->norm ? j.o->norm : NULL;
	int code = nr_weights_open(&j.w, args->item[0], model, norm, NULL, false, c->err);
	if (!code) code = nr_runner_open(&j.run, j.w, 1, c->err);
	if (!code && j.run.channels != 1 && j.run.channels != 3)
		code = nr_fail(c->err, NR_EVALUE, "cannot show pictures to", j.w->model.text, "it wants %lld channels",
			(long long)j.run.channels);
	if (!code) {
		set_up_pixels(&j, share);
		j.image = malloc((size_t)nr_len(j.run.image) * sizeof *j.image);
		code = j.image ? nr_augment_scratch_make(&j.scratch, c->err)
			       : nr_fail(c->err, NR_EMEMORY, "cannot predict", NULL, "out of memory");
	}
	if (!code) code = read_names(c, &j);
	if (!code) code = predict_all(c, &j, args);
	free(j.image);
	nr_picture_release(&j.picture);
	nr_augment_scratch_free(j.scratch);
	nr_runner_close(&j.run);
	nr_weights_close(j.w);
	return code;
}

const struct cli_command cli_predict = {
	.name = "predict",
	.title = "names and probabilities for picture files",
	.usage = "WEIGHTS PICTURE...",
	.about = "Decodes each picture (JPEG or PNG), resizes and crops it as the evaluation of the training did, and prints\n"
		 "the most probable classes. Names, mean and std come from the checkpoint; public ones have none: they want\n"
		 "the flags --model, --names and, if trained that way, --pixels imagenet.",
	.conf_size = sizeof(struct predict),
	.options = options,
	.run = run,
};
