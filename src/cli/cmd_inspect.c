/* norma inspect FILE: the tensors of a safetensors file with their statistics, its norms, its names, and the model it looks like. */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "cli.h"
#include "infer/weights.h"
#include "models/guess.h"
#include "norma/infer.h"
#include "norma/model.h"
#include "norma/safetensors.h"

struct inspect { char *filter; bool norms, json; };

static const struct nr_option options[] = {
	CLI_TEXT(struct inspect, filter, "", "PATTERN",
		"only tensors whose name matches, e.g. \"blocks.0.*\"; a plain word: names that contain it"),
	NR_OPT_BOOL(struct inspect, norms, "0", "print only the table of norms"),
	NR_OPT_BOOL(struct inspect, json, "0", "print one line of JSON"),
	NR_OPT_END
};

/* ---- statistics ----------------------------------------------------------------------------------------------------------- */

struct stats { double mean, std, min, max; int64_t count, zeros, bad; };        /* of the finite values */

enum { CHUNK = 4096 };

/* Means and squares of chunks joined as Chan, Golub & LeVeque 1979 do: no digits are lost where mean >> std. */
static struct stats stats_of(const struct nr_st_tensor *t)
{
	struct stats s = { .min = INFINITY, .max = -INFINITY };
	const int64_t n = nr_st_elements(t);
	const size_t width = nr_st_width(t->dtype);
	double squares = 0;
	for (int64_t from = 0; from < n; from += CHUNK) {
		double x[CHUNK], sum = 0, around = 0;
		const int64_t m = n - from < CHUNK ? n - from : CHUNK;
		const struct nr_st_tensor part = { .name = t->name, .dtype = t->dtype, .nd = 1, .shape = { m },
			.data = (const char *)t->data + (size_t)from * width, .bytes = (size_t)m * width };
		if (nr_st_to_f64(&part, x, m, NULL)) break;
		int64_t good = 0;
		for (int64_t i = 0; i < m; i++)
			if (isfinite(x[i])) sum += x[good++] = x[i];
		s.bad += m - good;
		if (!good) continue;
		const double mean = sum / (double)good, apart = mean - s.mean, all = (double)(s.count + good);
		for (int64_t i = 0; i < good; i++) {
			around += (x[i] - mean) * (x[i] - mean);
			s.zeros += x[i] == 0;
			s.min = fmin(s.min, x[i]);
			s.max = fmax(s.max, x[i]);
		}
		squares += around + apart * apart * (double)s.count * (double)good / all;
		s.mean += apart * (double)good / all;
		s.count += good;
	}
	s.std = s.count ? sqrt(squares / (double)s.count) : 0;
	if (!s.count) s.min = s.max = 0;
	return s;
}

/* ---- what is in the file -------------------------------------------------------------------------------------------------- */

struct content {
	const struct nr_st_file *file;
	const char *path;
	int64_t count, values, bytes;
	struct stats *stats;                /* (count) */
	bool *shown;                        /* (count): the filter lets it pass */
	struct nr_guess guess;
	int64_t *order;                         /* by name */
};

static bool matches(const char *pattern, const char *name)
{
	if (!*pattern) return true;
	return strpbrk(pattern, "*?[") ? fnmatch(pattern, name, 0) == 0 : strstr(name, pattern) != NULL;
}

/* blocks.2 before blocks.10, whatever the order in the file. */
static int by_name(const void *a, const void *b, void *content)
{
	const struct content *k = content;
	return strverscmp(nr_st_get(k->file, *(const int64_t *)a)->name, nr_st_get(k->file, *(const int64_t *)b)->name);
}

static int read_content(struct cli *c, const struct inspect *o, struct content *k)
{
	k->count = nr_st_count(k->file);
	k->stats = nr_arena_alloc(c->arena, (size_t)(k->count + 1) * sizeof *k->stats);
	k->shown = nr_arena_alloc(c->arena, (size_t)(k->count + 1) * sizeof *k->shown);
	k->order = nr_arena_alloc(c->arena, (size_t)(k->count + 1) * sizeof *k->order);
	if (!k->stats || !k->shown || !k->order) return nr_fail(c->err, NR_EMEMORY, "cannot inspect", k->path, "out of memory");
	for (int64_t i = 0; i < k->count; i++) k->order[i] = i;
	qsort_r(k->order, (size_t)k->count, sizeof *k->order, by_name, k);
	int64_t shown = 0;
	for (int64_t i = 0; i < k->count; i++) {
		const struct nr_st_tensor *t = nr_st_get(k->file, i);
		shown += k->shown[i] = matches(o->filter, t->name);
		k->values += nr_st_elements(t);
		k->bytes += (int64_t)t->bytes;
	}
	if (!shown && k->count) {
		nr_fail(c->err, NR_EVALUE, "no tensor matches", o->filter, NULL);
		return nr_hint(c->err,
			"patterns may contain * ? [abc]; the first of the %lld tensors is '%s'", (long long)k->count,
			nr_st_get(k->file, 0)->name);
	}
#pragma omp parallel for schedule(dynamic)
	for (int64_t i = 0; i < k->count; i++)
		if (k->shown[i]) k->stats[i] = stats_of(nr_st_get(k->file, i));
	nr_model_guess(&k->guess, k->file, c->arena);
	return NR_OK;
}

/* "X.weight" of one dimension is the gain of norm X: weights of layers have two or more. */
static bool is_gain(const struct nr_st_tensor *t, char *norm, size_t size)
{
	const size_t n = strlen(t->name), tail = strlen(".weight");
	if (t->nd != 1 || n <= tail || n - tail >= size || strcmp(t->name + n - tail, ".weight")) return false;
	snprintf(norm, size, "%.*s", (int)(n - tail), t->name);
	return strncmp(norm, "optim.", 6) != 0 && strncmp(norm, "ema.", 4) != 0;
}

static int64_t index_of(const struct content *k, const char *norm, const char *part)
{
	char name[600];
	snprintf(name, sizeof name, "%.512s.%s", norm, part);
	const struct nr_st_tensor *t = nr_st_find(k->file, name);
	for (int64_t i = 0; t && i < k->count; i++)
		if (nr_st_get(k->file, i) == t) return i;
	return -1;
}

/* What a norm of this name is, by the tensors beside its gain. */
static const char *kind_of(const struct content *k, const char *norm)
{
	static const char *const marks[][2] = { { "mean_logit", "dtn" }, { "var_logit", "dtn" }, { "mean_weight", "switch" },
		{ "running_phi", "power" }, { "alpha", "dyt" }, { "running_mean", "batch" }, { "bias", "layer" }, { NULL, NULL } };
	for (int i = 0; marks[i][0]; i++)
		if (index_of(k, norm, marks[i][0]) >= 0) return marks[i][1];
	return "rms";
}

/* ---- text ----------------------------------------------------------------------------------------------------------------- */

/* Names and metadata come from the file: nothing of them may steer the terminal. */
static const char *clean(const char *text, char *buf, size_t size)
{
	size_t n = 0;
	for (; *text && n + 4 < size; text++) buf[n++] = (unsigned char)*text < 0x20 || *text == 0x7F ? ' ' : *text;
	buf[n] = 0;
	if (*text) {
		while (n && ((unsigned char)buf[n - 1] & 0xC0) == 0x80) n--;     /* not in the middle of a letter */
		strcpy(buf + n, "...");
	}
	return buf;
}

static const char *shape_of(const struct nr_st_tensor *t, char *buf, size_t size)
{
	size_t used = 0;
	snprintf(buf, size, "%s", t->nd ? "" : "scalar");
	for (int i = 0; i < t->nd && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%lld", i ? "x" : "", (long long)t->shape[i]);
	return buf;
}

static void number(struct nr_table *t, const struct stats *s, double v)
{
	if (s->count) nr_table_cell(t, "%.4g", v);
	else nr_table_cell(t, "%s", "-");
}

static void columns(struct nr_table *t, const char *const *titles, int left)
{
	for (int i = 0; titles[i]; i++) nr_table_column(t, titles[i], i < left ? NR_LEFT : NR_RIGHT);
}

static void print_tensors(const struct content *k)
{
	struct nr_table *t = nr_table_make();
	columns(t, (const char *const[]){ "tensor", "type", "shape", "mean", "std", "min", "max", "zeros", "not finite", NULL }, 3);
	for (int64_t at = 0; at < k->count; at++) {
		const int64_t i = k->order[at];
		const struct nr_st_tensor *x = nr_st_get(k->file, i);
		const struct stats *s = &k->stats[i];
		char text[256];
		if (!k->shown[i]) continue;
		nr_table_cell(t, "%s", clean(x->name, text, sizeof text));
		nr_table_cell(t, "%s", nr_st_dtype_name(x->dtype));
		nr_table_cell(t, "%s", shape_of(x, text, sizeof text));
		number(t, s, s->mean);
		number(t, s, s->std);
		number(t, s, s->min);
		number(t, s, s->max);
		nr_table_cell(t, "%.1f %%", s->count ? 100 * (double)s->zeros / (double)s->count : 0);
		if (s->bad) nr_table_cell(t, "%s%lld%s", cli_red(), (long long)s->bad, cli_plain());
		else nr_table_cell(t, "%s", "-");
	}
	cli_print_table(t);
}

static int64_t print_norms(const struct content *k)
{
	struct nr_table *t = nr_table_make();
	columns(t, (const char *const[]){ "norm", "looks like", "width", "gain mean", "std", "min", "max", "bias mean", "std", NULL }, 2);
	for (int64_t at = 0; at < k->count; at++) {
		const int64_t i = k->order[at];
		const struct nr_st_tensor *x = nr_st_get(k->file, i);
		const struct stats *s = &k->stats[i];
		char norm[512], text[256];
		if (!k->shown[i] || !is_gain(x, norm, sizeof norm)) continue;
		const int64_t bias = index_of(k, norm, "bias");
		nr_table_cell(t, "%s", clean(norm, text, sizeof text));
		nr_table_cell(t, "%s", kind_of(k, norm));
		nr_table_cell(t, "%lld", (long long)x->shape[0]);
		number(t, s, s->mean);
		number(t, s, s->std);
		number(t, s, s->min);
		number(t, s, s->max);
		const struct stats none = { 0 }, *b = bias >= 0 && k->shown[bias] ? &k->stats[bias] : &none;
		number(t, b, b->mean);
		number(t, b, b->std);
	}
	const int64_t rows = nr_table_rows(t);
	if (rows) cli_print_table(t);
	else nr_table_free(t);
	return rows;
}

static void print_head(const struct content *k)
{
	char text[256];
	printf("%s%s%s: %lld tensors, %lld values, %.1f MiB\n", cli_bold(), clean(k->path, text, sizeof text), cli_plain(),
		(long long)k->count, (long long)k->values, (double)k->bytes / 1048576);
	if (k->guess.model) printf("%-15s  %s\n", "names", k->guess.naming);
	if (k->guess.model && !nr_st_metadata(k->file, "norma.model")) {        /* ours say it themselves */
		const char *quote = strchr(k->guess.norms, ' ') || strchr(k->guess.norms, '(') ? "\"" : "";
		printf("looks like       --model %s%s%s%s%s%s%s (%s)\n", cli_bold(), k->guess.model, cli_plain(),
			*k->guess.norms ? " --norm " : "", quote, k->guess.norms, quote,
			!k->guess.complete && k->guess.misfit ? k->guess.misfit : *k->guess.others ? "several architectures fit"
			: !k->guess.sure ? k->guess.doubt : k->guess.config ? "from its tensors and the config.json beside it"
			: "from its tensors, which fit no other known architecture");
		if (*k->guess.others) printf("%-15s  %s\n", "fits", k->guess.others);
	}
	for (int64_t i = 0; i < nr_st_metadata_count(k->file); i++) {
		const struct nr_st_meta m = nr_st_metadata_get(k->file, i);
		char key[64], value[90];
		printf("%s%-15s%s  %s\n", cli_bold(), clean(m.key, key, sizeof key), cli_plain(), clean(m.value, value, sizeof value));
	}
	putchar('\n');
}

/* ---- JSON ----------------------------------------------------------------------------------------------------------------- */

static json_t *stats_json(const struct stats *s)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:I, s:I}", "mean", s->mean, "std", s->std, "min", s->min, "max", s->max, "zeros",
		(json_int_t)s->zeros, "not_finite", (json_int_t)s->bad);
}

static json_t *tensor_json(const struct nr_st_tensor *t, const struct stats *s)
{
	json_t *r = stats_json(s), *shape = json_array();
	for (int d = 0; d < t->nd; d++) json_array_append_new(shape, json_integer(t->shape[d]));
	json_object_set_new(r, "name", json_string(t->name));
	json_object_set_new(r, "dtype", json_string(nr_st_dtype_name(t->dtype)));
	json_object_set_new(r, "shape", shape);
	return r;
}

static int print_json(struct cli *c, const struct content *k)
{
	json_t *tensors = json_array(), *norms = json_array(), *meta = json_object();
	for (int64_t i = 0; i < k->count; i++) {
		const struct nr_st_tensor *t = nr_st_get(k->file, i);
		char norm[512];
		if (!k->shown[i]) continue;
		json_array_append_new(tensors, tensor_json(t, &k->stats[i]));
		if (!is_gain(t, norm, sizeof norm)) continue;
		const int64_t bias = index_of(k, norm, "bias");
		json_t *n = json_pack("{s:s, s:s, s:o}", "name", norm, "looks_like", kind_of(k, norm), "gain", stats_json(&k->stats[i]));
		if (bias >= 0 && k->shown[bias]) json_object_set_new(n, "bias", stats_json(&k->stats[bias]));
		json_array_append_new(norms, n);
	}
	for (int64_t i = 0; i < nr_st_metadata_count(k->file); i++) {
		const struct nr_st_meta m = nr_st_metadata_get(k->file, i);
		json_object_set_new(meta, m.key, json_string(m.value));
	}
	return nr_json_line(stdout, json_pack("{s:s, s:I, s:I, s:s?, s:s?, s:s?, s:o, s:o, s:o}", "file", k->path,
		"values", (json_int_t)k->values, "bytes", (json_int_t)k->bytes, "naming", k->guess.naming, "model", k->guess.model,
		"norm_plan", k->guess.norms, "metadata", meta, "norms", norms, "tensors", tensors), c->err);
}

/* ---- the command ---------------------------------------------------------------------------------------------------------- */

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct inspect *o = conf;
	if (args->count != 1) {
		cli_usage(c, "inspect needs one file, not %d", (int)args->count);
		return nr_hint(c->err, "norma inspect --help");
	}
	struct nr_st_file *f;
	const char *path = nr_weights_path(args->item[0], c->arena);
	if (!path) return nr_fail(c->err, NR_EMEMORY, "cannot read", args->item[0], "out of memory");
	if (nr_st_open(&f, path, c->err)) return c->err->code;
	struct content k = { .file = f, .path = path };
	int code = read_content(c, o, &k);
	if (!code && o->json) {
		code = print_json(c, &k);
	} else if (!code) {
		print_head(&k);
		if (!o->norms) print_tensors(&k), putchar('\n');
		if (!print_norms(&k) && o->norms) printf("no norms\n");
	}
	nr_st_close(f);
	return code;
}

const struct cli_command cli_inspect = {
	.name = "inspect",
	.title = "show what a safetensors file holds: tensors, norms, names, model",
	.usage = "FILE",
	.about = "Lists every tensor with its type, shape and statistics (standard deviation, share of exact zeros, values that are\n"
		 "not finite), the norms with the spread of their gains and biases, the metadata, whose tensor names they are (timm,\n"
		 "huggingface, norma) and the model that the shapes fit. Works on any safetensors file.",
	.conf_size = sizeof(struct inspect),
	.options = options,
	.run = run,
};
