/* Text tables: see table.h. */
#include "base/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { MAX_COLUMNS = 32 };

struct nr_table {
	struct nr_arena *arena;
	const char *title[MAX_COLUMNS];
	enum nr_align align[MAX_COLUMNS];
	int columns;
	const char **cell;
	int64_t cells, room;
	bool failed;
};

struct nr_table *nr_table_make(void)
{
	struct nr_table *t = calloc(1, sizeof *t);
	if (t)
		t->arena = nr_arena_make();
	if (t && !t->arena) {
		free(t);
		return NULL;
	}
	return t;
}

void nr_table_free(struct nr_table *t)
{
	if (!t)
		return;
	nr_arena_free(t->arena);
	free(t->cell);
	free(t);
}

void nr_table_column(struct nr_table *t, const char *title, enum nr_align align)
{
	if (!t || t->cells || t->columns == MAX_COLUMNS)
		return;
	char *copy = nr_arena_strdup(t->arena, title);
	t->failed |= !copy;
	t->title[t->columns] = copy ? copy : "";
	t->align[t->columns++] = align;
}

void nr_table_cell(struct nr_table *t, const char *fmt, ...)
{
	if (!t || !t->columns)
		return;
	if (t->cells == t->room) {
		int64_t room = t->room ? 2 * t->room : 64;
		const char **grown = realloc(t->cell, (size_t)room * sizeof *grown);
		if (!grown) {
			t->failed = true;
			return;
		}
		t->cell = grown;
		t->room = room;
	}
	char buf[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(buf, sizeof buf, fmt, ap);
	va_end(ap);
	char *copy = nr_arena_strdup(t->arena, buf);
	t->failed |= !copy;
	t->cell[t->cells++] = copy ? copy : "";
}

void nr_table_number(struct nr_table *t, double v, const char *unit)
{
	if (isfinite(v))
		nr_table_cell(t, "%.2f%s", v, unit);
	else
		nr_table_cell(t, "%s", "");
}

int64_t nr_table_rows(const struct nr_table *t)
{
	return t && t->columns ? (t->cells + t->columns - 1) / t->columns : 0;
}

/* Row -1 holds the titles; cells never given are empty. */
static const char *at(const struct nr_table *t, int64_t row, int column)
{
	int64_t i = row * t->columns + column;
	return row < 0 ? t->title[column] : i < t->cells ? t->cell[i] : "";
}

/* What lacks a part must not look whole. */
static void pass_failure(const struct nr_table *t, struct nr_str *s)
{
	if (!t || t->failed)
		s->failed = true;
}

void nr_table_text(const struct nr_table *t, struct nr_str *s)
{
	pass_failure(t, s);
	size_t width[MAX_COLUMNS] = { 0 };
	int columns = t ? t->columns : 0;
	int64_t rows = nr_table_rows(t);
	for (int64_t r = -1; r < rows; r++)
		for (int c = 0; c < columns; c++) {
			size_t w = nr_utf8_width(at(t, r, c));
			width[c] = w > width[c] ? w : width[c];
		}
	for (int64_t r = -1; columns && r < rows; r++) {
		size_t gap = 0;  /* spaces are held back until something follows them */
		for (int c = 0; c < columns; c++) {
			const char *text = at(t, r, c);
			size_t w = nr_utf8_width(text), pad = width[c] - w;
			gap += (c ? 2 : 0) + (t->align[c] == NR_RIGHT ? pad : 0);
			if (w) {
				nr_str_fill(s, ' ', gap);
				nr_str_add(s, text);
				gap = 0;
			}
			gap += t->align[c] == NR_RIGHT ? 0 : pad;
		}
		nr_str_add(s, "\n");
	}
}

static void add_csv(struct nr_str *s, const char *text)
{
	if (!strpbrk(text, "\",\r\n")) {
		nr_str_add(s, text);
		return;
	}
	nr_str_add(s, "\"");
	for (; *text; text++)
		nr_str_add_n(s, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
	nr_str_add(s, "\"");
}

void nr_table_csv(const struct nr_table *t, struct nr_str *s)
{
	pass_failure(t, s);
	for (int64_t r = -1; t && t->columns && r < nr_table_rows(t); r++)
		for (int c = 0; c < t->columns; c++) {
			add_csv(s, at(t, r, c));
			nr_str_add(s, c + 1 < t->columns ? "," : "\n");
		}
}

void nr_table_markdown(const struct nr_table *t, struct nr_str *s)
{
	pass_failure(t, s);
	for (int64_t r = -1; t && t->columns && r < nr_table_rows(t); r++) {
		nr_str_add(s, "|");
		for (int c = 0; c < t->columns; c++) {
			nr_str_add(s, " ");
			for (const char *p = at(t, r, c); *p; p++)
				nr_str_printf(s, "%s%c", *p == '|' ? "\\" : "", *p == '\n' ? ' ' : *p);
			nr_str_add(s, " |");
		}
		nr_str_add(s, "\n");
		if (r >= 0)
			continue;
		nr_str_add(s, "|");
		for (int c = 0; c < t->columns; c++)
			nr_str_add(s, t->align[c] == NR_RIGHT ? "--:|" : "---|");
		nr_str_add(s, "\n");
	}
}
