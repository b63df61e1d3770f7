/* Molecules from CSV: SMILES, splits and targets by the names in the header. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/str.h"
#include "data/molecules.h"

enum { MOST_COLUMNS = 4096, MOST_BYTES = 1 << 30 };

struct cell { const char *text; size_t size; };

struct csv {
	struct nr_arena *arena;
	const char *p, *end, *path;
	struct cell *cell;              /* (MOST_COLUMNS) of the line read last */
	int32_t cells;
	int32_t smiles, split, *target, targets;        /* columns */
	int64_t *words;                 /* (targets): cells that are no numbers */
};

/* A quoted cell may hold commas and "" for a quote, but no end of line. */
static bool quoted(struct csv *c, struct cell *out)
{
	char *copy = nr_arena_alloc(c->arena, strcspn(c->p, "\n") + 1), *to = copy;
	if (!copy) return false;
	for (c->p++; c->p < c->end && *c->p != '\n'; c->p++) {
		if (*c->p == '"' && (c->p + 1 == c->end || c->p[1] != '"')) {
			c->p++;
			*out = (struct cell){ copy, (size_t)(to - copy) };
			return true;
		}
		c->p += *c->p == '"';
		*to++ = *c->p;
	}
	return false;
}

/* One line into cells; false: a quote that is not closed, or too many. The line is passed over in any case. */
static bool next_line(struct csv *c)
{
	bool good = true;
	c->cells = 0;
	while (good) {
		struct cell *cell = &c->cell[c->cells];
		good = c->cells < MOST_COLUMNS;
		if (!good) break;
		if (c->p < c->end && *c->p == '"') {
			good = quoted(c, cell);
		} else {
			const char *start = c->p;
			while (c->p < c->end && *c->p != ',' && *c->p != '\n') c->p++;
			*cell = (struct cell){ start, (size_t)(c->p - start) };
			if (cell->size && start[cell->size - 1] == '\r') cell->size--;
		}
		c->cells++;
		if (c->p >= c->end || *c->p != ',') break;
		c->p++;
	}
	if (c->p < c->end && *c->p == '\r') c->p++;
	good &= c->p >= c->end || *c->p == '\n';
	while (c->p < c->end && *c->p++ != '\n') {}
	return good;
}

static bool is(const struct cell *c, const char *word) { return strlen(word) == c->size && !strncasecmp(c->text, word, c->size); }

static int32_t column(const struct csv *c, const char *name)
{
	for (int32_t i = 0; i < c->cells; i++)
		if (is(&c->cell[i], name)) return i;
	return -1;
}

static bool beside(const struct cell *c)
{
	static const char *const names[] = { "smiles", "split", "file", "row", "id", "name", "mol_id" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (is(c, names[i])) return true;
	return false;
}

static int no_column(const struct csv *c, const char *name, struct nr_error *err)
{
	struct nr_str names = { 0 };
	for (int32_t i = 0; i < c->cells && names.len < 150; i++)
		nr_str_printf(&names, "%s%.*s", i ? ", " : "", (int)(c->cell[i].size < 40 ? c->cell[i].size : 40), c->cell[i].text);
	nr_fail(err, NR_EFORMAT, "cannot read", c->path, "line 1 has no column '%s'", name);
	nr_hint(err, "it has %s; name others by smiles= and targets=A+B", nr_str_text(&names));
	nr_str_release(&names);
	return err->code;
}

/* The columns that were named: "A+B". */
static int find_targets(struct csv *c, const char *names, struct nr_error *err)
{
	char name[256];
	while (*names) {
		const size_t n = strcspn(names, "+");
		snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), names);
		const int32_t found = column(c, name);
		if (found < 0) return no_column(c, name, err);
		if (c->targets == c->cells) return nr_fail(err, NR_EVALUE, "cannot read", c->path, "column '%s' is named twice", name);
		c->target[c->targets++] = found;
		names += n + (names[n] == '+');
	}
	return NR_OK;
}

static int header(struct csv *c, const struct nr_molecules_config *how, struct nr_error *err)
{
	const char *smiles = how->smiles && *how->smiles ? how->smiles : "smiles";
	if (!next_line(c)) return nr_fail(err, NR_EFORMAT, "cannot read", c->path, "line 1 is not valid CSV");
	if (c->cells && c->cell[0].size >= 3 && !memcmp(c->cell[0].text, "\xef\xbb\xbf", 3)) c->cell[0].text += 3, c->cell[0].size -= 3;
	c->smiles = column(c, smiles);
	if (c->smiles < 0) return no_column(c, smiles, err);
	c->split = column(c, "split");
	if (c->split < 0) c->split = column(c, "file");
	c->target = nr_arena_alloc(c->arena, (size_t)c->cells * sizeof *c->target);
	if (!c->target) return nr_fail(err, NR_EMEMORY, "cannot read", c->path, "out of memory");
	if (how->targets && *how->targets) return find_targets(c, how->targets, err);
	for (int32_t i = 0; i < c->cells; i++)
		if (c->cell[i].size >= 6 && !strncasecmp(c->cell[i].text, "target", 6)) c->target[c->targets++] = i;
	for (int32_t i = 0, named = c->targets; i < c->cells && !named; i++)
		if (i != c->smiles && i != c->split && !beside(&c->cell[i])) c->target[c->targets++] = i;
	return NR_OK;
}

static bool split_of(const struct cell *c, uint8_t *split)
{
	if (is(c, "train")) *split = NR_MOL_TRAIN;
	else if (is(c, "valid") || is(c, "val") || is(c, "validation")) *split = NR_MOL_VALID;
	else if (is(c, "test")) *split = NR_MOL_TEST;
	else return false;
	return true;
}

static bool number(const struct cell *c, float *value)
{
	char text[64];
	double v;
	static const char *const missing[] = { "na", "n/a", "nan", "null", "none", "-" };
	*value = NAN;
	if (!c->size) return true;
	for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
		if (is(c, missing[i])) return true;
	if (c->size >= sizeof text) return false;
	memcpy(text, c->text, c->size);
	text[c->size] = 0;
	if (!nr_parse_double(text, &v) || !isfinite(v)) return false;
	*value = (float)v;
	return true;
}

/* What is wrong with the line, as the error of its row. */
static void fill(struct csv *c, struct nr_molecules_row *row, int32_t columns, bool good, struct nr_error *why)
{
	if (!good || c->cells != columns) {
		nr_fail(why, NR_EFORMAT, "cannot read row", NULL, good ? "%d cells, but the header has %d" : "it is "
			"not valid CSV",
			c->cells, columns);
		return;
	}
	row->smiles = c->cell[c->smiles].text;
	row->size = c->cell[c->smiles].size;
	if (c->split >= 0 && !split_of(&c->cell[c->split], &row->split))
		nr_fail(why, NR_EFORMAT, "cannot read row", NULL, "'%.*s' is not a split (train, valid, test)",
			(int)(c->cell[c->split].size < 40 ? c->cell[c->split].size : 40), c->cell[c->split].text);
	for (int32_t t = 0; t < c->targets; t++) {
		const struct cell *cell = &c->cell[c->target[t]];
		if (number(cell, &row->target[t])) continue;
		c->words[t]++;
		if (!why->code)
			nr_fail(why, NR_EFORMAT, "cannot read row", NULL,
				"column %d: '%.*s' is not a number", c->target[t] + 1,
				(int)(cell->size < 40 ? cell->size : 40), cell->text);
	}
}

/* A column of words is no target: better to say so than to lose its rows. */
static int check_words(const struct csv *c, const struct nr_molecules_source *s, struct nr_error *err)
{
	for (int32_t t = 0; t < c->targets; t++) {
		if (4 * c->words[t] <= s->rows) continue;
		nr_fail(err, NR_EFORMAT, "cannot read", c->path, "column '%.*s' has %lld cells that are not numbers",
			(int)s->task_name[t].size,
			s->task_name[t].text, (long long)c->words[t]);
		return nr_hint(err, "name the columns to predict: molecules:path=%s,targets=A+B", c->path);
	}
	return NR_OK;
}

static int rows(struct csv *c, struct nr_molecules_source *s, struct nr_error *err)
{
	const int32_t columns = c->cells;
	int64_t most = 1;
	for (const char *p = c->p; p < c->end && (p = memchr(p, '\n', (size_t)(c->end - p))); p++) most++;
	s->row = nr_arena_alloc(s->arena, (size_t)most * sizeof *s->row);
	c->words = nr_arena_alloc(s->arena, (size_t)c->targets * sizeof *c->words + 1);
	if (!s->row || !c->words) return nr_fail(err, NR_EMEMORY, "cannot read", c->path, "out of memory");
	while (c->p < c->end) {
		struct nr_error why = { 0 };
		struct nr_molecules_row *row = &s->row[s->rows++];
		row->target = nr_arena_alloc(s->arena, (size_t)c->targets * sizeof *row->target + 1);
		if (!row->target) return nr_fail(err, NR_EMEMORY, "cannot read", c->path, "out of memory");
		fill(c, row, columns, next_line(c), &why);
		if (why.code && nr_molecules_blame(row, &why)) return nr_fail(err, NR_EMEMORY, "cannot read", c->path, "out of memory");
	}
	return check_words(c, s, err);
}

int nr_molecules_read_csv(struct nr_molecules_source *s, const struct nr_molecules_config *how, struct nr_error *err)
{
	const char *path = how->path;
	struct nr_bytes b = { 0 };
	const size_t n = strlen(path);
	const bool packed = n > 3 && !strcmp(path + n - 3, ".gz");
	if (packed ? nr_bytes_gunzip(&b, path, MOST_BYTES, err) : nr_bytes_open(&b, path, MOST_BYTES, err)) return err->code;
	/* the rows point into the text, which ends with a zero for strcspn */
	char *text = nr_arena_alloc(s->arena, b.size + 1);
	struct csv c = { .arena = s->arena, .p = text, .path = path, .cell = nr_arena_alloc(s->arena, MOST_COLUMNS * sizeof *c.cell) };
	if (!text || !c.cell) {
		nr_bytes_release(&b);
		return nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	}
	memcpy(text, b.data, b.size);
	c.end = text + b.size;
	s->sum = nr_crc32c(0, b.data, b.size);
	if (how->smiles) s->sum = nr_crc32c(s->sum, how->smiles, strlen(how->smiles));          /* other columns are another set */
	if (how->targets) s->sum = nr_crc32c(s->sum, how->targets, strlen(how->targets));
	nr_bytes_release(&b);
	if (header(&c, how, err)) return err->code;
	s->tasks = c.targets;
	s->task_name = nr_arena_alloc(s->arena, (size_t)c.targets * sizeof *s->task_name + 1);
	if (!s->task_name) return nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	for (int32_t t = 0; t < c.targets; t++) {
		const struct cell *name = &c.cell[c.target[t]];
		s->task_name[t] = (struct nr_smiles_span){ name->text, name->size };
	}
	return rows(&c, s, err);
}
