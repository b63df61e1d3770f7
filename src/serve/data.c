/* The curves so far: see data.h. */
#include "serve/data.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/file.h"
#include "draw/scale.h"
#include "report/curves.h"
#include "serve/follow.h"

/* Points of a page and of a line: more than can be seen. */
enum { POINTS = 120000, LINE_MOST = 1200, LINE_LEAST = 60 };

struct data {
	struct nr_str *s;
	struct nr_arena *arena, *names;         /* of one run; of all columns */
	struct nr_list columns;
	int64_t runs;
};

static char *read_bytes(const char *dir, off_t bytes, struct nr_arena *arena, size_t *size)
{
	char path[PATH_MAX];
	if (bytes <= 0 || snprintf(path, sizeof path, "%s/metrics.csv", dir) >= (int)sizeof path) return NULL;
	FILE *f = nr_file_stream(path, NULL);
	char *text = f ? nr_arena_alloc(arena, (size_t)bytes + 1) : NULL;
	*size = text ? fread(text, 1, (size_t)bytes, f) : 0;
	if (f) fclose(f);
	return text;
}

static bool is_axis(const char *name) { return !strcmp(name, "step") || !strcmp(name, "epoch") || !strcmp(name, "seconds"); }

/* [[x, ...], [y, ...]] of the points that a line of so many needs. */
static void add_line(struct nr_str *s, const struct nr_column *x, const struct nr_column *y, int64_t rows, int64_t most,
	struct nr_arena *arena)
{
	const struct nr_mark mark = nr_arena_mark(arena);
	const int64_t buckets = most / 3;
	double *v = nr_arena_alloc(arena, (size_t)(2 * rows + 1) * sizeof *v);
	int64_t *keep = nr_arena_alloc(arena, (size_t)(3 * buckets + 2 + rows) * sizeof *keep), n = 0, kept;
	char digits[64];
	if (!v || !keep) {
		s->failed = true;
		return;
	}
	double *at = v + rows;
	for (int64_t i = 0; i < rows; i++)
		if (x->given[i] && y->given[i] && isfinite(x->value[i])) at[n] = x->value[i], v[n++] = y->value[i];
	if (n > 3 * buckets) kept = nr_thin(v, n, buckets, false, keep);
	else for (kept = 0; kept < n; kept++) keep[kept] = kept;
	for (int axis = 0; axis < 2; axis++) {
		nr_str_add(s, axis ? "],[" : "[[");
		for (int64_t i = 0; i < kept; i++) {
			const double d = axis ? v[keep[i]] : at[keep[i]];
			nr_str_add(s, i ? "," : "");
			nr_str_add(s, isfinite(d) ? nr_double_text(d, axis, digits, sizeof digits) : "null");
		}
	}
	nr_str_add(s, "]]");
	nr_arena_reset(arena, mark);
}

static void note_column(struct data *d, const char *name)
{
	if (is_axis(name)) return;
	for (int64_t i = 0; i < d->columns.count; i++)
		if (!strcmp(d->columns.item[i], name)) return;
	char *copy = nr_arena_strdup(d->names, name);
	if (!copy || nr_list_add(&d->columns, copy, d->names)) d->s->failed = true;
}

static void add_run(struct data *d, const struct nr_data_run *r)
{
	struct nr_str *s = d->s;
	struct nr_columns c = { 0 };
	size_t size = 0;
	char *text = read_bytes(r->dir, r->bytes, d->arena, &size);
	if (text && nr_columns_parse(text, size, "metrics.csv", d->arena, &c, NULL)) c = (struct nr_columns){ 0 };
	const struct nr_column *step = nr_column_find(&c, "step");
	int64_t most = c.count ? POINTS / d->runs / c.count : 0;
	most = most > LINE_MOST ? LINE_MOST : most < LINE_LEAST ? LINE_LEAST : most;
	nr_str_add(s, "{\"name\":");
	nr_json_text(s, r->name);
	nr_str_add(s, ",\"label\":");
	nr_json_text(s, r->label ? r->label : r->name);
	nr_str_add(s, ",\"stage\":");
	nr_json_text(s, r->stage ? r->stage : "");
	nr_str_printf(s, ",\"seed\":%lld,\"arm\":%lld,\"columns\":[", (long long)r->seed, (long long)r->number);
	for (int i = 0; i < c.count; i++) {
		nr_str_add(s, i ? "," : "");
		nr_json_text(s, c.column[i].name);
		note_column(d, c.column[i].name);
	}
	nr_str_add(s, "],\"lines\":[");
	for (int i = 0; i < c.count; i++) {
		nr_str_add(s, i ? "," : "");
		if (step && !is_axis(c.column[i].name)) add_line(s, step, &c.column[i], c.rows, most, d->arena);
		else nr_str_add(s, "null");
	}
	nr_str_add(s, "]}");
}

/* How each column is drawn. */
static void add_kinds(struct nr_str *s, const struct nr_list *columns)
{
	for (int64_t i = 0; i < columns->count; i++) {
		const struct nr_curve_kind k = nr_curve_kind(columns->item[i]);
		nr_str_add(s, i ? "," : "");
		nr_json_text(s, columns->item[i]);
		nr_str_add(s, ":{\"title\":");
		nr_json_text(s, k.title ? k.title : columns->item[i]);
		nr_str_add(s, ",\"unit\":");
		nr_json_text(s, k.unit ? k.unit : "");
		nr_str_printf(s, ",\"factor\":%d,\"wide\":%s,\"noisy\":%s,\"rank\":%d}", (int)k.factor, k.wide ? "true" : "false",
			k.noisy ? "true" : "false", k.rank);
	}
}

void nr_data(struct nr_str *s, const char *mark, const struct nr_data_run *run, int64_t count)
{
	struct data d = { .s = s, .arena = nr_arena_make(), .names = nr_arena_make(), .runs = count };
	if (!d.arena || !d.names) s->failed = true;
	nr_str_printf(s, "{\"mark\":\"%s\",\"runs\":[", mark);
	for (int64_t i = 0; i < count && !s->failed; i++) {
		const struct nr_mark before = nr_arena_mark(d.arena);
		nr_str_add(s, i ? ",\n" : "");
		add_run(&d, &run[i]);
		nr_arena_reset(d.arena, before);
	}
	nr_str_add(s, "],\"kinds\":{");
	add_kinds(s, &d.columns);
	nr_str_add(s, "}}\n");
	nr_arena_free(d.names);
	nr_arena_free(d.arena);
}
