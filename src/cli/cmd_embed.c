/* norma embed MODEL: embeddings of the lines of standard input. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/save.h"
#include "base/str.h"
#include "data/npy.h"
#include "norma/safetensors.h"
#include "text_model.h"

enum format { TSV, NPY, SAFETENSORS };
static const char *const formats[] = { "tsv", "npy", "safetensors", NULL };

struct embed { struct cli_text t; int32_t format; char *out; bool normalize, json; };
static const struct nr_option options[] = {
	CLI_TEXT_MODEL_OPTIONS(struct embed, t),
	NR_OPT_ENUM(struct embed, format, "tsv", formats,
		"output format: numbers separated by tabs, or an array (lines,width)"),
	CLI_TEXT(struct embed, out, "", "FILE", "file to write; default: standard output (tsv only)"),
	NR_OPT_BOOL(struct embed, normalize, "0", "divide each embedding by its length"),
	NR_OPT_BOOL(struct embed, json, "0", "print one line of JSON at the end (with --out)"),
	NR_OPT_END
};

struct lines { char *text; const char **item; int64_t count, room; };

/* All of standard input, cut at line ends in place. */
static int read_lines(struct cli *c, struct lines *l)
{
	size_t size = 0, room = 1 << 16;
	l->text = malloc(room);
	for (size_t got = 1; l->text && got;) {
		got = fread(l->text + size, 1, room - size - 1, stdin);
		size += got;
		if (room - size > 1) continue;
		char *more = realloc(l->text, room *= 2);
		if (!more) free(l->text);
		l->text = more;
	}
	if (!l->text) return nr_fail(c->err, NR_EMEMORY, "cannot read", "standard input", "out of memory");
	if (ferror(stdin)) return nr_fail(c->err, NR_EIO, "cannot read", "standard input", "%s", strerror(errno));
	l->text[size] = 0;
	for (size_t at = 0; at < size;) {
		char *end = memchr(l->text + at, '\n', size - at);
		if (l->count == l->room) {
			const char **item = realloc(l->item, (size_t)(l->room = 2 * l->room + 1024) * sizeof *item);
			if (!item) return nr_fail(c->err, NR_EMEMORY, "cannot read", "standard input", "out of memory");
			l->item = item;
		}
		l->item[l->count++] = l->text + at;
		const size_t bytes = end ? (size_t)(end - l->text) - at : size - at;
		if (memchr(l->text + at, 0, bytes))
			return nr_fail(c->err, NR_EFORMAT, "cannot read", "standard input", "line %lld has a zero byte",
				(long long)l->count);
		if (!end) break;
		*end = 0;
		if (end > l->text + at && end[-1] == '\r') end[-1] = 0;
		at = (size_t)(end - l->text) + 1;
	}
	return NR_OK;
}

static void normalize(int64_t n, int64_t width, real *x)
{
	for (int64_t i = 0; i < n; i++) {
		double sum = 0;
		for (int64_t k = 0; k < width; k++) sum += (double)x[i * width + k] * (double)x[i * width + k];
		const real scale = sum > 0 ? (real)(1 / sqrt(sum)) : 0;
		for (int64_t k = 0; k < width; k++) x[i * width + k] *= scale;
	}
}

static void put_row(struct nr_str *line, int64_t width, const real *x)
{
	line->len = 0;
	for (int64_t k = 0; k < width; k++) nr_str_printf(line, "%.9g%c", (double)x[k], k + 1 < width ? '\t' : '\n');
}

/* To a file, which is whole or not there. */
static int save_tsv(struct cli *c, const char *path, int64_t n, int64_t width, const real *x)
{
	struct nr_str line = { 0 };
	struct nr_save s;
	int code = nr_save_open(&s, path, c->err);
	for (int64_t i = 0; !code && i < n; i++) {
		put_row(&line, width, x + i * width);
		code = line.failed ? nr_fail(c->err, NR_EMEMORY, "cannot write", path, "out of memory")
				   : nr_save_write(&s, line.text, line.len, c->err);
	}
	if (!code) code = nr_save_close(&s, c->err);
	else nr_save_drop(&s);
	nr_str_release(&line);
	return code;
}

static int print_tsv(struct cli *c, int64_t n, int64_t width, const real *x)
{
	struct nr_str line = { 0 };
	bool failed = false;
	for (int64_t i = 0; !failed && i < n; i++) {
		put_row(&line, width, x + i * width);
		failed = line.failed || fwrite(line.text, 1, line.len, stdout) != line.len;
	}
	failed |= fflush(stdout) != 0;
	const int why = errno;
	nr_str_release(&line);
	return failed ? nr_fail(c->err, NR_EIO, "cannot write", "standard output", "%s", strerror(why)) : NR_OK;
}

static int write_out(struct cli *c, const struct embed *o, const struct cli_embedder *e, int64_t n, int64_t width, real *x)
{
	struct nr_st_tensor t = { .name = "embeddings", .dtype = NR_ST_F32, .nd = 2, .shape = { n, width }, .data = x,
		.bytes = (size_t)(n * width) * sizeof *x };
	if (o->format == TSV) return *o->out ? save_tsv(c, o->out, n, width, x) : print_tsv(c, n, width, x);
	if (o->format == NPY) return nr_npy_write(o->out, &t, c->err);
	const struct nr_st_meta meta[] = { { "norma.model", e->w->model.text }, { "norma.norms", e->w->norms },
		{ "norma.pooler", nr_text_poolings[e->pooling] } };
	return nr_st_write(o->out, &t, 1, meta, 3, c->err);
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct embed *o = conf;
	if (args->count != 1) return cli_usage(c, "embed needs one model");
	if (o->format != TSV && !*o->out) return cli_usage(c, "--format %s needs --out FILE", formats[o->format]);
	struct cli_embedder e;
	struct lines l = { 0 };
	real *x = NULL;
	struct cli_embedding how = { .of = &e, .what = "lines" };
	int code = cli_embedder_open(c, &e, &o->t, args->item[0]);
	if (!code) code = read_lines(c, &l);
	const int64_t width = code ? 0 : nr_text_runner_width(e.e);
	if (!code && !(x = malloc((size_t)(l.count * width + 1) * sizeof *x)))
		code = nr_fail(c->err, NR_EMEMORY, "cannot embed", args->item[0], "out of memory for %lld lines", (long long)l.count);
	if (!code) code = cli_embed_texts(&how, l.item, l.count, x, c->err);
	if (!code && o->normalize) normalize(l.count, width, x);
	if (!code) code = write_out(c, o, &e, l.count, width, x);
	if (!code && o->json && *o->out)
		code = cli_print_json(json_pack("{s:s, s:I, s:I, s:s, s:f}", "out", o->out, "texts", (json_int_t)l.count, "width",
			(json_int_t)width, "pooler", nr_text_poolings[e.pooling], "seconds", how.seconds), c->err);
	free(x);
	free(l.item);
	free(l.text);
	cli_embedder_close(&e);
	return code;
}

const struct cli_command cli_embed = {
	.name = "embed",
	.title = "embed sentences from standard input, one per line",
	.usage = "MODEL < LINES",
	.about = "MODEL is a weights file of a text model with its tokenizer files beside it, or a folder with both: from Hugging\n"
		 "Face, from sentence-transformers, or a run of `norma mlm` or `norma simcse`. Output is in the order of the input.",
	.conf_size = sizeof(struct embed),
	.options = options,
	.run = run,
};
