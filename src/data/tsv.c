/* Rows of labelled text. See tsv.h. */
#include "data/tsv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/str.h"

static const char what[] = "cannot read";

static int64_t count_lines(const char *text, size_t size)
{
	int64_t n = 0;
	for (const char *at = text, *end = text + size; at < end; n++) {
		const char *next = memchr(at, '\n', (size_t)(end - at));
		at = next ? next + 1 : end;
	}
	return n;
}

/* One block: values, pointers, and a copy of the text, in which columns become strings. */
static char *make_room(struct nr_tsv *t, int64_t rows, const void *bytes, size_t size, int texts)
{
	const size_t n = (size_t)rows, row = sizeof *t->value + (size_t)texts * sizeof **t->text;
	char *memory = malloc(n * row + size + 1);
	if (!memory) return NULL;
	t->memory = memory;
	t->value = (double *)(void *)memory;
	for (int i = 0; i < texts; i++) t->text[i] = (const char **)(void *)(t->value + n) + (size_t)i * n;
	char *text = memory + n * row;
	memcpy(text, bytes, size);
	text[size] = 0;
	return text;
}

static int read_value(const char *word, const struct nr_tsv_form *f, double *out, const char *name, int64_t line, struct nr_error *err)
{
	double v;
	if (!nr_parse_double(word, &v) || !isfinite(v))
		return nr_fail(err, NR_EFORMAT, what, name,
			"line %lld: '%.40s' is not a number", (long long)line, word);
	if (f->whole && v != floor(v))
		return nr_fail(err, NR_EFORMAT, what, name, "line %lld: label %s is not a whole number", (long long)line, word);
	if (!(v >= f->low && v <= f->high))
		return nr_fail(err, NR_EVALUE, what, name, "line %lld: %s is outside %g to %g", (long long)line, word, f->low, f->high);
	*out = v;
	return NR_OK;
}

/* Columns of a line, which ends with 0; pieces beyond `most` are counted only. */
static int split(char *line, char **column, int most)
{
	int n = 0;
	for (char *at = line; at; n++) {
		char *tab = strchr(at, '\t');
		if (n < most) column[n] = at;
		if (tab) *tab++ = 0;
		at = tab;
	}
	return n;
}

static int read_line(struct nr_tsv *t, char *text, size_t size, const struct nr_tsv_form *f, const char *name, struct nr_error *err)
{
	const int64_t line = t->count + 1;
	char *column[1 + NR_TSV_TEXTS];
	if (size && text[size - 1] == '\r') text[--size] = 0;
	if (!size) return nr_fail(err, NR_EFORMAT, what, name, "line %lld is empty", (long long)line);
	if (memchr(text, 0, size)) return nr_fail(err, NR_EFORMAT, what, name,
		"line %lld has a zero byte", (long long)line);
	if (!nr_utf8_valid(text, size)) {
		nr_fail(err, NR_EFORMAT, what, name, "line %lld is not UTF-8", (long long)line);
		return nr_hint(err, "convert the file, e.g. iconv -f WINDOWS-1252 -t UTF-8");
	}
	const int want = 1 + f->texts, n = split(text, column, want);
	if (n < want || (n > want && !f->more)) {
		nr_fail(err, NR_EFORMAT, what, name, "line %lld has %d columns instead of %d", (long long)line, n, want);
		return nr_hint(err, "number, tab, text%s", f->texts > 1 ? ", tab, text" : "");
	}
	if (read_value(column[0], f, &t->value[t->count], name, line, err)) return err ? (int)err->code : NR_EFORMAT;
	for (int i = 0; i < f->texts; i++) t->text[i][t->count] = column[1 + i];
	t->count++;
	return NR_OK;
}

int nr_tsv_parse(struct nr_tsv *t, const void *bytes, size_t size, const struct nr_tsv_form *f, const char *name, struct nr_error *err)
{
	*t = (struct nr_tsv){ 0 };
	if (!size) return nr_fail(err, NR_EFORMAT, what, name, "it has no rows");
	char *text = make_room(t, count_lines(bytes, size), bytes, size, f->texts);
	if (!text) return nr_fail(err, NR_EMEMORY, what, name, "out of memory");
	int code = NR_OK;
	for (char *end = text + size, *next; !code && text < end; text = next + 1) {
		next = memchr(text, '\n', (size_t)(end - text));
		if (!next) next = end;
		*next = 0;
		code = read_line(t, text, (size_t)(next - text), f, name, err);
	}
	if (code) nr_tsv_release(t);
	return code;
}

int nr_tsv_read(struct nr_tsv *t, const char *path, const struct nr_tsv_form *f, struct nr_error *err)
{
	struct nr_bytes b;
	*t = (struct nr_tsv){ 0 };
	int code = nr_bytes_open(&b, path, NR_TSV_LIMIT, err);
	if (code) return code;
	code = nr_tsv_parse(t, b.data, b.size, f, path, err);
	nr_bytes_release(&b);
	return code;
}

void nr_tsv_release(struct nr_tsv *t)
{
	free(t->memory);
	*t = (struct nr_tsv){ 0 };
}
