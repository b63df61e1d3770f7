/* See predict_texts.h. */
#include "predict_texts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/text_score.h"
#include "base/args.h"
#include "base/log.h"
#include "base/real.h"
#include "class_tables.h"
#include "norma/tokenizer.h"

struct opened { struct nr_tokenizer *tokenizer; struct nr_text_runner *run; int64_t width; bool value; };

static int open_runner(struct opened *o, const struct nr_weights *w, const char *path, const char *tokenizer,
	struct nr_comm *comm, struct nr_error *err)
{
	*o = (struct opened){ .width = nr_model_int(&w->model, "classes"), .value = w->objective && !strcmp(w->objective, "value") };
	if (!w->objective || (!o->value && strcmp(w->objective, "classes") != 0)) {
		nr_fail(err, NR_EVALUE, "cannot predict with", path, "it was not trained to tell classes or values of texts");
		return nr_hint(err, "norma text --init %s --data labelled:path=FILE", path);
	}
	const struct nr_text_runner_how how = { .logits = true, .max_length = nr_model_int(&w->model, "length"),
		.comm = comm };
	if (nr_tokenizer_open(&o->tokenizer, tokenizer && *tokenizer ? tokenizer : path, err)) return err->code;
	return nr_text_runner_open(&o->run, w, o->tokenizer, &how, err);
}

static void close_runner(struct opened *o)
{
	nr_text_runner_close(o->run);
	nr_tokenizer_close(o->tokenizer);
}

/* ---- predict ------------------------------------------------------------------------------------------------------------------- */

struct guess { int64_t class; double share; };

static int by_share(const void *a, const void *b)
{
	const struct guess *x = a, *y = b;
	if (x->share != y->share) return x->share < y->share ? 1 : -1;
	return x->class < y->class ? -1 : 1;
}

static void shares(int64_t K, const real *logit, struct guess *g)
{
	double most = (double)logit[0], sum = 0;
	for (int64_t k = 1; k < K; k++) most = (double)logit[k] > most ? (double)logit[k] : most;
	for (int64_t k = 0; k < K; k++) sum += exp((double)logit[k] - most);
	for (int64_t k = 0; k < K; k++) g[k] = (struct guess){ k, exp((double)logit[k] - most) / sum };
	qsort(g, (size_t)K, sizeof *g, by_share);
}

static const char *name_of(const struct predict_texts *o, int64_t k, char *buf, size_t size)
{
	if (k < o->names) return o->name[k];
	snprintf(buf, size, "class %lld", (long long)k);
	return buf;
}

/* What a terminal shows of a text: one line without control characters. */
static const char *shown(const char *text, char *buf, size_t size)
{
	snprintf(buf, size, "%s", text);
	buf[nr_utf8_span(buf, strlen(buf))] = 0;
	for (char *s = buf; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7F) *s = ' ';
	return buf;
}

static int print_one(struct cli *c, const struct predict_texts *o, const struct opened *m, const char *text, const real *out,
	struct guess *g)
{
	char line[256], name[32];
	const int64_t n = o->top < m->width ? o->top : m->width;
	if (!m->value) shares(m->width, out, g);
	if (o->json) {
		json_t *j = json_pack("{s:s}", "text", nr_utf8_valid(text, strlen(text)) ? text : shown(text, line, sizeof line));
		if (m->value) json_object_set_new(j, "value", json_real((double)out[0]));
		json_t *list = m->value ? NULL : json_array();
		for (int64_t i = 0; list && i < n; i++)
			json_array_append_new(list, json_pack("{s:I, s:s, s:f}", "class", (json_int_t)g[i].class, "name",
				name_of(o, g[i].class, name, sizeof name), "probability", g[i].share));
		if (list) json_object_set_new(j, "top", list);
		return nr_json_line(stdout, j, c->err);
	}
	printf("%s%s%s\n", cli_bold(), shown(text, line, sizeof line), cli_plain());
	if (m->value) printf("  %.6g\n", (double)out[0]);
	for (int64_t i = 0; !m->value && i < n; i++) printf("  %6.2f %%  %s\n", 100 * g[i].share, name_of(o, g[i].class, name,
		sizeof name));
	return NR_OK;
}

static int read_lines(struct cli *c, struct nr_list *lines)
{
	char *line = NULL;
	size_t room = 0;
	int code = NR_OK;
	errno = 0;
	for (ssize_t n; !code && (n = getline(&line, &room, stdin)) >= 0;) {
		while (n && strchr("\r\n", line[n - 1])) line[--n] = 0;
		if (!line[strspn(line, " \t")]) continue;
		char *copy = nr_arena_strdup(c->arena, line);
		code = copy && !nr_list_add(lines, copy, c->arena) ? NR_OK
							       : nr_fail(c->err, NR_EMEMORY, "cannot read", "standard input",
							       	"out of memory");
	}
	if (!code && ferror(stdin)) code = nr_fail(c->err, NR_EIO, "cannot read", "standard input", "%s", strerror(errno));
	free(line);
	if (code || lines->count) return code;
	nr_fail(c->err, NR_EUSAGE, "predict needs texts", NULL, "standard input has none");
	return nr_hint(c->err, "norma predict runs/x \"some text\"");
}

/* A warning each if texts are longer than what the model reads, or have words that its vocabulary lacks. */
static int look(struct cli *c, const struct opened *m, const struct nr_weights *w, const struct nr_list *lines)
{
	const int64_t most = nr_model_int(&w->model, "length");
	int32_t unknown = nr_tokenizer_find(m->tokenizer, "[UNK]");
	if (unknown < 0) unknown = nr_tokenizer_find(m->tokenizer, "<unk>");
	int64_t cut = 0, longest = 0, strange = 0;
	struct nr_encoder *e = NULL;
	int code = nr_encoder_make(&e, m->tokenizer, c->err);
	for (int64_t i = 0; !code && i < lines->count; i++) {
		const char *text = lines->item[i], *tab = strchr(text, '\t'), *second = tab ? tab + 1 : NULL;
		struct nr_encoding x;
		code = nr_encode(e, text, tab ? (size_t)(tab - text) : strlen(text), second, second ? strlen(second) : 0, NULL, &x, c->err);
		bool met = false;
		for (int64_t k = 0; !code && k < x.count; k++) met |= unknown >= 0 && x.ids[k] == unknown;
		strange += met;
		cut += !code && x.count > most;
		if (!code && x.count > longest) longest = x.count;
	}
	nr_encoder_free(e);
	if (cut) nr_log_line(NR_LOG_WARNING, "%lld of %lld texts are cut off: the longest has %lld tokens, but the model reads %lld",
		(long long)cut, (long long)lines->count, (long long)longest, (long long)most);
	if (strange) nr_log_line(NR_LOG_WARNING, "%lld of %lld texts have words that the vocabulary does not know", (long long)strange,
		(long long)lines->count);
	return code;
}

int cli_predict_texts(struct cli *c, const struct predict_texts *o, const struct nr_weights *w, const char *path, char *const *text,
	int64_t count)
{
	struct opened m;
	struct nr_list lines = { (char **)(uintptr_t)text, count };
	int code = open_runner(&m, w, path, o->tokenizer, NULL, c->err);
	if (!code && !count) lines = (struct nr_list){ 0 }, code = read_lines(c, &lines);
	real *out = malloc((size_t)(lines.count * m.width) * sizeof *out + 1);
	struct guess *g = malloc((size_t)m.width * sizeof *g + 1);
	if (!code && (!out || !g)) code = nr_fail(c->err, NR_EMEMORY, "cannot predict", NULL, "out of memory");
	if (!code) code = look(c, &m, w, &lines);
	if (!code) code = nr_text_runner_run(m.run, (const char *const *)lines.item, lines.count, out, c->err);
	for (int64_t i = 0; !code && i < lines.count; i++) code = print_one(c, o, &m, lines.item[i], out + i * m.width, g);
	free(out);
	free(g);
	close_runner(&m);
	return code;
}

/* ---- eval ------------------------------------------------------------------------------------------------------------------------ */

static json_t *score_json(const char *path, const struct nr_source *s, enum nr_split split, const struct nr_text_score *v, bool value)
{
	if (value) return json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:I}", "file", path, "data", s->of->name, "split",
		nr_split_name(split), "mse", v->loss, "pearson", v->pearson, "spearman", v->spearman, "samples", (json_int_t)v->samples);
	return json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:I}", "file", path, "data", s->of->name, "split", nr_split_name(split),
		"accuracy", v->accuracy, "f1", v->f1, "matthews", v->matthews, "nll", v->loss, "samples", (json_int_t)v->samples);
}

static int print_score(struct cli *c, const char *path, const struct nr_source *s, enum nr_split split, const struct nr_text_score *v,
	const struct nr_class_counts *told, const struct eval_texts *o)
{
	const bool value = !told->confusion;
	if (o->json) {
		json_t *j = score_json(path, s, split, v, value);
		if (!value) cli_json_classes(j, told, o->confusion);
		return cli_print_json(j, c->err);
	}
	printf("%s on %s/%s, %lld samples\n", path, s->of->name, nr_split_name(split), (long long)v->samples);
	if (value) {
		printf("Spearman %s%.4f%s   Pearson %.4f   squared error %.5g\n", cli_bold(), v->spearman, cli_plain(), v->pearson,
			v->loss);
		return NR_OK;
	}
	printf("accuracy %s%.2f %%%s   F1 %.2f %%   Matthews %.4f   NLL %.4f\n", cli_bold(), 100 * v->accuracy, cli_plain(),
		100 * v->f1, v->matthews, v->loss);
	cli_print_classes(told, o->confusion);
	return NR_OK;
}

struct truth { const char **text; int32_t *label; double *value; real *out; int64_t *confusion; };

static const char *text_of(struct cli *c, const struct nr_source *s, enum nr_split split, int64_t i)
{
	const char *first = nr_source_text(s, split, i, 0);
	char *copy = nr_arena_strdup(c->arena, first);
	for (char *at = copy; at && *at; at++) *at = *at == '\t' ? ' ' : *at;
	return s->columns < 2 || !copy ? copy : nr_arena_printf(c->arena, "%s\t%s", copy, nr_source_text(s, split, i, 1));
}

static int score(struct cli *c, struct opened *m, const struct nr_source *s, enum nr_split split, int64_t n, struct truth *t,
	struct nr_text_score *v)
{
	for (int64_t i = 0; i < n; i++) {
		if (!(t->text[i] = text_of(c, s, split, i))) return nr_fail(c->err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory");
		t->label[i] = nr_source_label(s, split, i);
		t->value[i] = nr_source_value(s, split, i);
	}
	if (nr_text_runner_run(m->run, t->text, n, t->out, c->err)) return c->err->code;
	if (m->value) return nr_score_values(n, t->out, t->value, v, c->err);
	return nr_score_classes(n, m->width, t->out, t->label, t->confusion, v, c->err);
}

int cli_eval_texts(struct cli *c, const struct nr_weights *w, const char *path, const struct nr_source *s, enum nr_split split,
	int64_t count, const struct eval_texts *o)
{
	const int64_t n = count ? count : s->count[split];
	struct opened m;
	struct nr_text_score v;
	if (nr_source_expect(s, NR_TEXTS, c->err)) return c->err->code;
	int code = open_runner(&m, w, path, NULL, c->comm, c->err);
	struct truth t = { malloc((size_t)n * sizeof *t.text + 1), malloc((size_t)n * sizeof *t.label + 1),
		malloc((size_t)n * sizeof *t.value + 1), malloc((size_t)(n * m.width) * sizeof *t.out + 1),
		m.value ? NULL : calloc((size_t)(m.width * m.width) + 1, sizeof *t.confusion) };
	if (!code && (!t.text || !t.label || !t.value || !t.out || (!m.value && !t.confusion)))
		code = nr_fail(c->err, NR_EMEMORY, "cannot evaluate", path, "out of memory");
	if (!code && m.value && o->confusion) code = cli_usage(c, "--confusion does not apply to a model that tells values");
	if (!code && !m.value && s->classes != m.width)
		code = nr_fail(c->err, NR_EVALUE, "cannot evaluate on", s->of->name, "it has %d classes, but the model has %lld",
			s->classes, (long long)m.width);
	if (!code) code = score(c, &m, s, split, n, &t, &v);
	if (!code) code = print_score(c, path, s, split, &v, &(struct nr_class_counts){ m.width, t.confusion, s->class_name }, o);
	free(t.text);
	free(t.label);
	free(t.value);
	free(t.out);
	free(t.confusion);
	close_runner(&m);
	return code;
}
