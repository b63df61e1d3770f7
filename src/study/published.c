/* From a table as printed to cells beside the arms of a study: see published.h. */
#include "study/published.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/args.h"
#include "base/mem.h"
#include "base/share.h"
#include "base/str.h"
#include "study/claims.h"
#include "study/settings.h"

struct reading {
	struct nr_study *s;
	struct nr_published *p;
	const struct nr_yaml_node *at;      /* the value of `published:` */
	const struct nr_yaml_node *table, *rows, *columns;
	struct nr_list data, models;        /* of the cells that were taken */
	struct nr_error *err;
};

struct place { const struct nr_yaml_node *row, *column, *value; int64_t i; };     /* a cell of the printed table */

#define COMPLAIN(r, at, hint, ...) nr_study_complain((r)->s, at, (r)->err, hint, __VA_ARGS__)

static int no_memory(struct reading *r) { return nr_fail(r->err, NR_EMEMORY, "cannot read the published numbers", NULL, "out of memory"); }

static const char *text_at(const struct nr_yaml_node *map, const char *key)
{
	const struct nr_yaml_node *n = nr_yaml_value(map, key);
	return n && n->kind == NR_YAML_VALUE ? n->text : NULL;
}

static bool is_value(const struct nr_yaml_node *n) { return n && n->kind == NR_YAML_VALUE; }

static void add_once(struct reading *r, struct nr_list *list, const char *text)
{
	if (!text) return;
	for (int64_t i = 0; i < list->count; i++)
		if (!strcmp(list->item[i], text)) return;
	char *copy = nr_arena_strdup(r->s->arena, text);
	if (!copy || nr_list_add(list, copy, r->s->arena)) no_memory(r);
}

const struct nr_published_cell *nr_published_cell(const struct nr_study *s, int64_t metric, int64_t arm)
{
	const struct nr_published_cell *c = s->published ? &s->published->cell[metric * s->arms + arm] : NULL;
	return c && c->value ? c : NULL;
}

void nr_published_text(const struct nr_published_cell *c, char *buf, size_t size)
{
	const bool difference = c->of && !strcmp(c->of, "delta_acc");
	snprintf(buf, size, "%s%s%s%s%s", difference ? "Δ " : "", c->value, c->ci95 ? " ± " : "", c->ci95 ? c->ci95 : "",
		c->unsure ? " ?" : "");
}

/* ---- which cell ----------------------------------------------------------------------------------------------------------------- */

/* What is measured in a cell: a row can say it for itself or for one column. */
static const char *metric_of(const struct place *c)
{
	const char *id = text_at(c->column, "id");
	const char *one = id ? text_at(nr_yaml_value(c->row, "metric_of"), id) : NULL, *row = text_at(c->row, "metric");
	return one ? one : row ? row : text_at(c->column, "metric");
}

static bool says(const struct place *c, const char *key, const char *text)
{
	const char *row = text_at(c->row, key), *column = text_at(c->column, key);
	if (!strcmp(key, "metric")) {
		const char *metric = metric_of(c);
		return metric && !strcmp(metric, text);
	}
	return (row && !strcmp(row, text)) || (column && !strcmp(column, text));
}

static bool has_word(const struct nr_yaml_node *map, const char *text)
{
	for (int64_t i = 0; map && i < map->count; i++)
		if (is_value(map->item[i]) && !strcmp(map->item[i]->text, text)) return true;
	return false;
}

/* A mapping: all of it holds; a text: one of the cell's words; nothing: always. */
static bool holds(const struct nr_yaml_node *rule, const struct place *c)
{
	if (!rule || rule->kind == NR_YAML_NULL) return true;
	if (rule->kind == NR_YAML_VALUE) return has_word(c->row, rule->text) || has_word(c->column, rule->text);
	for (int64_t i = 0; i < rule->count && rule->kind == NR_YAML_MAP; i++)
		if (!is_value(rule->item[i]) || !says(c, rule->key[i]->text, rule->item[i]->text)) return false;
	return rule->kind == NR_YAML_MAP;
}

/* "probe.features.cls.top1" and "train.eval_top1" are top1. */
static bool same_metric(const struct reading *r, const char *metric, const struct place *c)
{
	const struct nr_yaml_node *rules = nr_yaml_value(r->at, "metrics"), *rule = nr_yaml_value(rules, metric);
	const char *dot = strrchr(metric, '.'), *end = dot ? dot + 1 : metric;
	if (rules) return rule && holds(rule, c);
	if (!strncmp(end, "eval_", 5) || !strncmp(end, "best_", 5)) end += 5;
	return says(c, "metric", end);
}

/* Every part of the arm's name, by `match` or as a word. */
static bool same_arm(const struct reading *r, const char *name, const struct place *c)
{
	const struct nr_yaml_node *match = nr_yaml_value(r->at, "match"), *whole = nr_yaml_value(match, name);
	if (whole) return holds(whole, c);
	for (const char *s = name; *s;) {
		const char *end = strstr(s, ", ");
		const char *part = nr_arena_printf(r->s->arena, "%.*s", (int)(end ? end - s : (ptrdiff_t)strlen(s)), s);
		const struct nr_yaml_node *rule = part ? nr_yaml_value(match, part) : NULL;
		if (!part || (rule ? !holds(rule, c) : !has_word(c->row, part) && !has_word(c->column, part))) return false;
		s = end ? end + 2 : s + strlen(s);
	}
	return true;
}

/* ---- doubts --------------------------------------------------------------------------------------------------------------------- */

static const char *explain(struct reading *r, const struct nr_yaml_node *n)
{
	const char *why = text_at(n, "why"), *read = text_at(n, "read"), *from = text_at(n, "from");
	struct nr_str s = { 0 };
	nr_str_add(&s, why ? why : is_value(n) ? n->text : "unsure");
	if (read && *read) nr_str_printf(&s, ", read as '%s'", read);
	if (from) nr_str_printf(&s, ", from: %s", from);
	const char *copy = nr_str_keep(&s, r->s->arena);
	return copy ? copy : "unsure";
}

static bool lists(const struct nr_yaml_node *list, const char *word)
{
	for (int64_t i = 0; list && i < list->count; i++)
		if (is_value(list->item[i]) && !strcmp(list->item[i]->text, word)) return true;
	return false;
}

/* Of the cell itself, of its column, or of all rows. */
static const char *doubt(struct reading *r, const struct place *c)
{
	const char *id = text_at(c->column, "id");
	const struct nr_yaml_node *columns = nr_yaml_value(r->table, "columns_unsure"), *rows = nr_yaml_value(r->table, "rows_unsure");
	const struct nr_yaml_node *own = id ? nr_yaml_value(nr_yaml_value(c->row, "unsure"), id) : NULL;
	if (!own && columns && id) own = nr_yaml_value(columns, id);
	if (!own && text_at(columns, "why")) own = columns;
	const struct nr_yaml_node *some = nr_yaml_value(rows, "columns");
	if (!own && rows && id && (!some || lists(some, id))) own = rows;
	return own ? explain(r, own) : NULL;
}

static void note_doubts(struct reading *r)
{
	for (int64_t i = 0; i < r->table->count; i++) {
		const char *key = r->table->key[i]->text, *end = strstr(key, "_unsure");
		if (!end) continue;
		char *text = nr_arena_printf(r->s->arena, "published %.*s: %s", (int)(end - key), key, explain(r, r->table->item[i]));
		if (!text || nr_list_add(&r->p->notes, text, r->s->arena)) no_memory(r);
	}
}

/* ---- taking cells --------------------------------------------------------------------------------------------------------------- */

static void take(struct reading *r, const struct place *c, struct nr_published_cell *to)
{
	const struct nr_yaml_node *ci = nr_yaml_value(c->row, "ci95");
	const bool printed = ci && c->i < ci->count && is_value(ci->item[c->i]);
	*to = (struct nr_published_cell){ c->value->text, printed ? ci->item[c->i]->text : NULL, metric_of(c), doubt(r, c) };
	const char *column = text_at(c->column, "data"), *model = text_at(c->row, "model"), *arch = text_at(c->row, "arch");
	if (!model) model = text_at(c->column, "model");
	if (!arch) arch = text_at(c->column, "arch");
	add_once(r, &r->data, column ? column : text_at(c->row, "data"));
	add_once(r, &r->models, model ? model : arch);
}

static void find_cell(struct reading *r, int64_t metric, int64_t arm)
{
	const char *name = metric ? r->s->also.item[metric - 1] : r->s->metric;
	struct nr_published_cell *to = &r->p->cell[metric * r->s->arms + arm];
	for (int64_t k = 0; k < r->rows->count; k++) {
		const struct nr_yaml_node *row = r->rows->item[k], *values = nr_yaml_value(row, "values");
		for (int64_t i = 0; values && i < values->count && i < r->columns->count; i++) {
			const struct place c = { row, r->columns->item[i], values->item[i], i };
			if (!is_value(c.value) || !same_metric(r, name, &c) || !holds(nr_yaml_value(r->at, "where"), &c) ||
				!same_arm(r, r->s->arm[arm].name, &c))
				continue;
			if (!to->value) take(r, &c, to);
			else if (strcmp(to->value, c.value->text)) {
				COMPLAIN(r, r->at, "choose one under 'match:' or 'where:'",
					"arm '%s' has several published cells for %s, such as %s and %s", r->s->arm[arm].name, name,
					to->value, c.value->text);
				return;
			}
		}
	}
}

/* ---- their side ----------------------------------------------------------------------------------------------------------------- */

static void add_values(struct nr_str *s, const struct nr_yaml_node *n)
{
	if (is_value(n)) nr_str_add(s, n->text);
	for (int64_t i = 0; n->kind == NR_YAML_LIST && i < n->count; i++)
		if (is_value(n->item[i])) nr_str_printf(s, "%s%s", i ? "/" : "", n->item[i]->text);
}

static void add_list(struct nr_str *s, const char *name, const struct nr_list *list)
{
	for (int64_t i = 0; i < list->count; i++) nr_str_printf(s, i ? "/%s%s" : "%s %s", i ? "" : name, list->item[i]);
	if (list->count) nr_str_add(s, ", ");
}

/* Data and models of the cells taken, then the settings that the paper states. */
static void describe(struct reading *r, const struct nr_yaml_node *root, const char *id)
{
	const char *seed = nr_arena_printf(r->s->arena, "%.*s", (int)strcspn(id, "/"), id);
	const struct nr_yaml_node *paper = seed ? nr_yaml_value(nr_yaml_value(root, "seeds"), seed) : NULL;
	const struct nr_yaml_node *all = nr_yaml_value(paper, "protocol"), *one = all && all->count ? all->item[0] : NULL;
	const char *asked = text_at(r->at, "protocol"), *label = text_at(r->table, "label"), *title = text_at(paper, "title");
	struct nr_str s = { 0 };
	if (asked && !(one = nr_yaml_value(all, asked)))
		COMPLAIN(r, nr_yaml_value(r->at, "protocol"), NULL, "the paper has no protocol '%.60s' in the data file", asked);
	add_list(&s, "data", &r->data);
	add_list(&s, "model", &r->models);
	for (int64_t i = 0; one && one->kind == NR_YAML_MAP && i < one->count; i++) {
		if (!strcmp(one->key[i]->text, "model") && r->models.count) continue;
		nr_str_printf(&s, "%s ", one->key[i]->text);
		add_values(&s, one->item[i]);
		nr_str_add(&s, ", ");
	}
	r->p->theirs = nr_arena_printf(r->s->arena, "%.*s", s.len > 2 ? (int)s.len - 2 : 0, nr_str_text(&s));
	r->p->label = nr_arena_printf(r->s->arena, "%s of \"%s\" (%s)", label ? label : id, title ? title : "", id);
	nr_str_release(&s);
	if (!r->p->theirs || !r->p->label || nr_claims_read(r->p, paper, label ? label : id, r->s->arena)) no_memory(r);
}

/* ---- the data file -------------------------------------------------------------------------------------------------------------- */

/* Beside the study's file, or in one of the folders above. */
static char *find_file(struct reading *r, const char *study)
{
	const char *given = text_at(r->at, "file"), *slash = strrchr(study, '/');
	const char *dir = slash ? nr_arena_printf(r->s->arena, "%.*s/", (int)(slash - study), study) : "";
	if (given) return nr_arena_printf(r->s->arena, "%s%s", *given == '/' || !dir ? "" : dir, given);
	for (int up = 0; dir && up < 4; up++) {
		char *path = nr_arena_printf(r->s->arena, "%spublished.yaml", dir);
		if (path && !access(path, R_OK)) return path;
		dir = nr_arena_printf(r->s->arena, "%s../", dir);
	}
	const char *installed = nr_share_find("recipes/published.yaml", r->s->arena);
	if (installed) return nr_arena_strdup(r->s->arena, installed);
	nr_fail(r->err, NR_EIO, "no published.yaml beside or above", study, "the study names a published table");
	nr_hint(r->err, "give its path: published: {table: ..., file: PATH}");
	return NULL;
}

static bool find_table(struct reading *r, const struct nr_yaml_node *root, const char *id, const char *path)
{
	const struct nr_yaml_node *all = nr_yaml_value(root, "tables");
	struct nr_near near = { .word = id };
	for (int64_t i = 0; all && i < all->count && !r->table; i++) {
		const char *name = text_at(all->item[i], "id");
		if (name && !strcmp(name, id)) r->table = all->item[i];
		else if (name) nr_near_try(&near, name);
	}
	r->rows = nr_yaml_value(r->table, "rows");
	r->columns = nr_yaml_value(r->table, "columns");
	if (r->rows && r->columns) return true;
	const struct nr_yaml_node *at = is_value(r->at) ? r->at : nr_yaml_value(r->at, "table");
	const char *hint = near.best ? nr_arena_printf(r->s->arena, "did you mean '%s'?", near.best) : NULL;
	COMPLAIN(r, at, hint, "no table '%.100s' in %s", id, path);
	return false;
}

static int read_table(struct reading *r, const char *id, const char *study)
{
	struct nr_yaml_errors *errors = nr_arena_alloc(r->s->arena, sizeof *errors);
	struct nr_yaml_tree *tree = nr_arena_alloc(r->s->arena, sizeof *tree);
	if (!errors || !tree) return no_memory(r);
	size_t size;
	const char *path = find_file(r, study);
	char *text = path ? nr_yaml_load(path, &size, r->s->arena, r->err) : NULL;
	if (!text || nr_yaml_tree(tree, text, size, path, r->s->arena, errors, r->err)) return r->err->code;
	if (!find_table(r, tree->root, id, path)) return r->err->code;
	for (int64_t k = 0; k <= r->s->also.count; k++)
		for (int64_t a = 0; a < r->s->arms; a++) find_cell(r, k, a);
	describe(r, tree->root, id);
	note_doubts(r);
	return r->err->code;
}

/* ---- cells in the study itself -------------------------------------------------------------------------------------------------- */

static int64_t metric_number(const struct nr_study *s, const char *metric)
{
	if (!metric || !strcmp(metric, s->metric)) return 0;
	for (int64_t i = 0; i < s->also.count; i++)
		if (!strcmp(s->also.item[i], metric)) return i + 1;
	return -1;
}

static void read_cell(struct reading *r, const struct nr_yaml_node *n)
{
	const char *arm = text_at(n, "arm"), *value = text_at(n, "value");
	const int64_t metric = metric_number(r->s, text_at(n, "metric"));
	int64_t a = 0;
	while (arm && a < r->s->arms && strcmp(r->s->arm[a].name, arm)) a++;
	if (!arm || !value) COMPLAIN(r, n,
		"e.g. {arm: LN, value: \"92.01\"}", "a published cell needs an arm and a value");
	else if (a == r->s->arms) COMPLAIN(r, n, NULL, "there is no arm '%.100s'", arm);
	if (!arm || !value || a == r->s->arms || metric < 0) return;     /* a metric that the table no longer has */
	r->p->cell[metric * r->s->arms + a] =
		(struct nr_published_cell){ value, text_at(n, "ci95"), text_at(n, "of"), text_at(n, "unsure") };
}

static int read_cells(struct reading *r, const struct nr_yaml_node *cells)
{
	const char *label = text_at(r->at, "label"), *theirs = text_at(r->at, "theirs");
	r->p->label = label ? label : "given in the study";
	r->p->theirs = theirs ? theirs : "";
	if (cells->kind != NR_YAML_LIST) COMPLAIN(r, cells, NULL, "'cells' should be a list");
	for (int64_t i = 0; cells->kind == NR_YAML_LIST && i < cells->count; i++) read_cell(r, cells->item[i]);
	return nr_sentences_read(r->p, r->at, r->s->arena) ? no_memory(r) : (int)r->err->code;
}

static void check_keys(struct reading *r)
{
	static const char *const keys[] = { "table", "file", "where", "match", "metrics", "protocol", "label", "theirs", "notes", "claims",
		"conflicts", "cells", NULL };
	for (int64_t i = 0; r->at->kind == NR_YAML_MAP && i < r->at->count; i++) {
		const char *key = r->at->key[i]->text, *best = nr_nearest(key, keys);
		int k = 0;
		while (keys[k] && strcmp(keys[k], key)) k++;
		const char *hint = best ? nr_arena_printf(r->s->arena, "did you mean '%s'?", best) : NULL;
		if (!keys[k]) COMPLAIN(r, r->at->key[i], hint, "unknown key '%.100s' in 'published'", key);
	}
}

int nr_published_read(struct nr_study *s, const char *file, struct nr_error *err)
{
	const struct nr_yaml_node *at = s->tree ? nr_yaml_value(s->tree->root, "published") : NULL;
	if (!at || at->kind == NR_YAML_NULL) return NR_OK;
	struct reading r = { .s = s, .at = at, .err = err, .p = nr_arena_alloc(s->arena, sizeof *r.p) };
	const size_t cells = (size_t)((1 + s->also.count) * s->arms);
	const struct nr_yaml_node *own = nr_yaml_value(at, "cells");
	const char *id = is_value(at) ? at->text : text_at(at, "table");
	if (r.p) r.p->cell = nr_arena_alloc(s->arena, cells * sizeof *r.p->cell);
	if (!r.p || !r.p->cell) return no_memory(&r);
	check_keys(&r);
	if (!own && !id) {
		COMPLAIN(&r, at, "e.g. `published: sepnorm/table4`", "'published' names no table");
		return err->code;
	}
	const int code = own ? read_cells(&r, own) : read_table(&r, id, file);
	if (!code) s->published = r.p;
	return code;
}

/* ---- the record ----------------------------------------------------------------------------------------------------------------- */

static void put(struct nr_str *s, const char *before, const char *text)
{
	if (!text) return;
	nr_str_add(s, before);
	nr_study_quote(s, text);
}

void nr_published_write(const struct nr_study *study, struct nr_str *s)
{
	const struct nr_published *p = study->published;
	int64_t cells = 0;
	if (!p) return;
	put(s, "published:\n  label: ", p->label);
	put(s, "\n  theirs: ", p->theirs);
	nr_sentences_write(p, s);
	nr_str_add(s, "\n  cells: [");
	for (int64_t k = 0; k <= study->also.count; k++)
		for (int64_t a = 0; a < study->arms; a++) {
			const struct nr_published_cell *c = nr_published_cell(study, k, a);
			if (!c) continue;
			put(s, cells++ ? ",\n    {arm: " : "\n    {arm: ", study->arm[a].name);
			put(s, ", metric: ", k ? study->also.item[k - 1] : study->metric);
			put(s, ", value: ", c->value);
			put(s, ", ci95: ", c->ci95);
			put(s, ", of: ", c->of);
			put(s, ", unsure: ", c->unsure);
			nr_str_add(s, "}");
		}
	nr_str_add(s, "]\n");
}
