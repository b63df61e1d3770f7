/* CSV files of numbers and the lines of config.yaml: see runfolder.h. */
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/runfolder.h"

/* ---- CSV --------------------------------------------------------------------------------------------------------------- */

/* The next cell, unquoted in place; *end: where the next one begins, NULL after the last of the line. */
static char *next_cell(char *p, char **end)
{
	if (*p != '"') {
		char *comma = strchr(p, ',');
		*end = comma ? comma + 1 : NULL;
		if (comma) *comma = 0;
		return p;
	}
	char *to = p, *from = p + 1;
	for (; *from; from++) {
		if (*from == '"' && *++from != '"') break;
		*to++ = *from;
	}
	char *comma = strchr(from, ',');
	*end = comma ? comma + 1 : NULL;
	*to = 0;
	return p;
}

static int count_lines(const char *text)
{
	int n = 0;
	for (; (text = strchr(text, '\n')); text++) n++;
	return n;
}

static int read_header(char *line, struct nr_arena *a, struct nr_columns *c, int64_t rows)
{
	int room = 1;
	for (const char *p = line; *p; p++) room += *p == ',';
	c->column = nr_arena_alloc(a, (size_t)room * sizeof *c->column);
	if (!c->column) return NR_EMEMORY;
	for (char *p = line; p && c->count < room;) {
		struct nr_column *v = &c->column[c->count++];
		char *next;
		v->name = next_cell(p, &next);
		p = next;
		v->value = nr_arena_alloc(a, (size_t)(rows + 1) * sizeof *v->value);
		v->given = nr_arena_alloc(a, (size_t)(rows + 1) * sizeof *v->given);
		const bool words = !strcmp(v->name, "smiles") || !strcmp(v->name, "split");
		if (words) v->text = nr_arena_alloc(a, (size_t)(rows + 1) * sizeof *v->text);
		if (!v->value || !v->given || (words && !v->text)) return NR_EMEMORY;
	}
	return NR_OK;
}

static void read_row(char *line, struct nr_columns *c, locale_t plain)
{
	for (int k = 0; k < c->count && line; k++) {
		char *cell = next_cell(line, &line), *end = cell;
		const double v = strtod_l(cell, &end, plain);
		c->column[k].given[c->rows] = *cell != 0;
		if (c->column[k].text) c->column[k].text[c->rows] = cell;
		c->column[k].value[c->rows] = *cell && !*end ? v : (double)NAN;
	}
	c->rows++;
}

int nr_columns_parse(char *text, size_t size, const char *name, struct nr_arena *a, struct nr_columns *c, struct nr_error *err)
{
	*c = (struct nr_columns){ 0 };
	if (memchr(text, 0, size)) return nr_fail(err, NR_EFORMAT, "cannot read", name, "it contains zero bytes");
	const int lines = count_lines(text);
	if (!lines) return nr_fail(err, NR_EFORMAT, "cannot read", name, "it has no header");
	const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);        /* once: a large file has a million cells */
	int code = plain ? NR_OK : NR_EMEMORY;
	for (int i = 0; i < lines && !code; i++) {
		char *end = strchr(text, '\n');
		*end = 0;
		if (end > text && end[-1] == '\r') end[-1] = 0;
		if (i == 0) code = read_header(text, a, c, lines);
		else if (*text) read_row(text, c, plain);
		text = end + 1;
	}
	if (plain) freelocale(plain);
	return code ? nr_fail(err, NR_EMEMORY, "cannot read", name, "out of memory") : NR_OK;
}

const struct nr_column *nr_column_find(const struct nr_columns *c, const char *name)
{
	for (int i = 0; i < c->count; i++)
		if (!strcmp(c->column[i].name, name)) return &c->column[i];
	return NULL;
}

/* ---- settings ---------------------------------------------------------------------------------------------------------- */

static char *trim(char *s)
{
	s += strspn(s, " \t");
	size_t n = strlen(s);
	while (n && strchr(" \t\r", s[n - 1])) s[--n] = 0;
	return s;
}

/* A scalar without its quotes and without a comment after it. */
static char *plain_value(char *s)
{
	s = trim(s);
	const char quote = *s;
	if (quote == '"' || quote == '\'') {
		char *end = strrchr(s + 1, quote);
		if (end) *end = 0;
		return s + 1;
	}
	char *comment = *s == '#' ? s : strstr(s, " #");
	if (comment) *comment = 0;
	return trim(s);
}

int nr_config_parse(char *text, struct nr_arena *a, struct nr_config *c)
{
	*c = (struct nr_config){ 0 };
	c->item = nr_arena_alloc(a, (size_t)(count_lines(text) + 1) * sizeof *c->item);
	if (!c->item) return NR_EMEMORY;
	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next) *next++ = 0;
		line = trim(line);
		char *colon = strstr(line, ": ");
		if (!colon && *line && line[strlen(line) - 1] == ':') colon = line + strlen(line) - 1;
		if (*line == '#' || !*line) continue;
		if (!colon) {                           /* an item of a list: told apart by its place */
			c->item[c->count++] = (struct nr_config_line){ "-", line };
			continue;
		}
		*colon = 0;
		c->item[c->count++] = (struct nr_config_line){ line, plain_value(colon + 1) };
	}
	return NR_OK;
}

const char *nr_config_find(const struct nr_config *c, const char *key)
{
	for (int i = 0; i < c->count; i++)
		if (!strcmp(c->item[i].key, key)) return c->item[i].value;
	return NULL;
}
