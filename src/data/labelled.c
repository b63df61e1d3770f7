/* labelled: rows of one's own with a label, and one or two texts: FILE.csv and FILE.tsv with a header line, FILE.jsonl with an object per
 * line; also packed (.gz). Columns go by name: those that GLUE and most others use are found, or text=, pair= and label= name them.
 * A label is a class; where all are numbers, they may be learned as values too (nr_source_value). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/cells.h"
#include "data/dataset.h"

enum { MOST_CLASSES = 10000, PARTS = 3 };
static const size_t most_bytes = (size_t)1 << 34;
enum form { BY_NAME, CSV, TSV, JSON_LINES };
static const char *const forms[] = { "auto", "csv", "tsv", "jsonl", NULL };

static const double OWN_SHARE = 0.1;             /* of rows that nobody divided */
struct labelled_conf { char *path, *val_path, *test_path, *text, *pair, *label; int32_t form; double val, test; };
static const struct nr_option options[] = {
	NR_OPT_STRING(struct labelled_conf, path, NULL, "file: .csv or .tsv with a header line, or .jsonl with an object per line"),
	NR_OPT_STRING(struct labelled_conf, text, "auto", "name of the column with the text"),
	NR_OPT_STRING(struct labelled_conf, pair, "auto", "name of the column with a second text; none: there is none"),
	NR_OPT_STRING(struct labelled_conf, label, "auto", "name of the column with the class or value"),
	NR_OPT_ENUM(struct labelled_conf, form, "auto", forms, "auto: by the file's name"),
	NR_OPT_FLOAT(struct labelled_conf, val, -1, -1, 0.9,
		"share of the rows, drawn once, to use as the split val; -1: 0.1 if there is neither val nor test"),
	NR_OPT_FLOAT(struct labelled_conf, test, 0, 0, 0.9, "likewise as the split test"),
	NR_OPT_STRING(struct labelled_conf, val_path, "", "another file as the split val"),
	NR_OPT_STRING(struct labelled_conf, test_path, "", "another file as the split test"), NR_OPT_END
};

/* Names that are looked for if none is given, the first that is there. */
static const char *const usual[PARTS][16] = {
	{ "text", "sentence", "sentence1", "premise", "question1", "question", "sms", "review", "content", "text1", "Source", NULL },
	{ "sentence2", "hypothesis", "question2", "pair", "text2", NULL },
	{ "label", "target", "class", "category", "sentiment", "score", "gold_label", "stars", "Target", NULL },
};

struct row { const char *text[2], *label; double value; int32_t class; };
struct rows { struct row *row; int64_t count, room; };
struct labelled { struct rows split[3]; int64_t *order; };      /* order: of the first file's rows, if they are shared out */

struct reader {
	struct nr_source *s;
	const struct labelled_conf *c;
	struct rows *to;
	const char *path;
	const char *name[PARTS];                /* NULL: the data have no such column */
	int at[PARTS];                          /* which column it is */
	int64_t line;
	struct nr_error *err;
};

static int bad(struct reader *r, const char *what)
{
	return nr_fail(r->err, NR_EFORMAT, "cannot read", r->path, "line %lld: %s", (long long)r->line, what);
}

static int out_of_memory(struct reader *r) { return nr_fail(r->err, NR_EMEMORY, "cannot read", r->path, "out of memory"); }

static int add_row(struct reader *r, const char *const part[PARTS])
{
	struct rows *t = r->to;
	if (t->count == t->room) {
		const int64_t room = t->room ? 2 * t->room : 1024;
		struct row *row = nr_arena_alloc(r->s->arena, (size_t)room * sizeof *row);
		if (!row) return out_of_memory(r);
		if (t->count) memcpy(row, t->row, (size_t)t->count * sizeof *row);
		t->row = row, t->room = room;
	}
	struct row *x = &t->row[t->count++];
	*x = (struct row){ .text = { part[0], part[1] }, .label = part[2], .class = -1 };
	if (!*part[2]) return bad(r, "the label is empty");
	if (!nr_parse_double(part[2], &x->value)) x->value = NAN;
	for (int k = 0; k < PARTS; k++)
		if (part[k] && strlen(part[k]) != nr_utf8_span(part[k], strlen(part[k]))) return bad(r, "it is not UTF-8");
	return NR_OK;
}

/* ---- columns --------------------------------------------------------------------------------------------------------------------- */

struct names { const char *const *name; int count; };

static int index_of(const struct names *n, const char *name, int (*differ)(const char *, const char *))
{
	for (int i = 0; i < n->count; i++)
		if (!differ(n->name[i], name)) return i;
	return -1;
}

static int missing(struct reader *r, const char *what, const char *given, const struct names *n)
{
	struct nr_str all = { 0 };
	struct nr_near near = { .word = given ? given : "" };
	for (int i = 0; i < n->count; i++) {
		nr_str_printf(&all, "%s%s", i ? ", " : "", n->name[i]);
		nr_near_try(&near, n->name[i]);
	}
	if (given) nr_fail(r->err, NR_EFORMAT, "cannot read", r->path, "no column '%s' among %s", given, nr_str_text(&all));
	else nr_fail(r->err, NR_EFORMAT, "cannot read", r->path, "which column is the %s? there are %s", what, nr_str_text(&all));
	nr_str_release(&all);
	if (given && near.best) return nr_hint(r->err, "did you mean '%s'?", near.best);
	if (n->count == 1 && strpbrk(n->name[0], ";\t,|"))
		return nr_hint(r->err, "columns of .csv are separated by commas, those of .tsv by tabs; form=csv or form=tsv tells which");
	return nr_hint(r->err, "name it: labelled:path=...,%s=COLUMN", what);
}

/* The three columns, by the names given or usual ones. */
static int find_columns(struct reader *r, const struct names *n)
{
	static const char *const words[PARTS] = { "text", "pair", "label" };
	const char *const given[PARTS] = { r->c->text, r->c->pair, r->c->label };
	for (int k = 0; k < PARTS; k++) {
		r->name[k] = NULL;
		r->at[k] = -1;
		if (strcmp(given[k], "auto") != 0) {
			if (k == 1 && !strcmp(given[k], "none")) continue;
			if ((r->at[k] = index_of(n, given[k], strcmp)) < 0) return missing(r, words[k], given[k], n);
		} else {
			for (int i = 0; usual[k][i] && r->at[k] < 0; i++) r->at[k] = index_of(n, usual[k][i], strcasecmp);
			if (r->at[k] < 0 && k != 1) return missing(r, words[k], NULL, n);
			if (k == 1 && r->at[k] == r->at[0]) r->at[k] = -1;
		}
		if (r->at[k] >= 0) r->name[k] = n->name[r->at[k]];
	}
	return NR_OK;
}

enum { MOST_COLUMNS = 256 };

static int read_columns(struct reader *r, char *text, char separator)
{
	char *cell[MOST_COLUMNS];
	struct nr_cells c = { .at = text, .separator = separator, .name = r->path };
	const int columns = nr_cells_row(&c, cell, MOST_COLUMNS, r->err);
	if (columns < 0) return r->err->code;
	r->line = c.line;
	if (find_columns(r, &(struct names){ (const char *const *)cell, columns })) return r->err->code;
	for (int found; (found = nr_cells_below(&c, cell, MOST_COLUMNS, columns, r->err)) != 0;) {
		const char *part[PARTS];
		r->line = c.line;
		if (found < 0) return r->err->code;
		for (int k = 0; k < PARTS; k++) part[k] = r->at[k] < 0 ? NULL : cell[r->at[k]];
		if (add_row(r, part)) return r->err->code;
	}
	return NR_OK;
}

/* ---- JSON lines -------------------------------------------------------------------------------------------------------------------- */

static int object_columns(struct reader *r, const json_t *o)
{
	const char *name[MOST_COLUMNS], *key;
	json_t *v;
	int n = 0;
	json_object_foreach((json_t *)(uintptr_t)o, key, v)
		if (n < MOST_COLUMNS) name[n++] = nr_arena_strdup(r->s->arena, key);
	return find_columns(r, &(struct names){ name, n });
}

/* A text as it is, a number or a flag as it is written; NULL: something else. */
static const char *value_text(struct reader *r, const json_t *v)
{
	char buf[64];
	if (json_is_string(v)) return nr_arena_strdup(r->s->arena, json_string_value(v));
	if (json_is_integer(v)) return nr_arena_printf(r->s->arena, "%lld", (long long)json_integer_value(v));
	if (json_is_real(v)) return nr_arena_strdup(r->s->arena, nr_double_text(json_real_value(v), false, buf, sizeof buf));
	return json_is_boolean(v) ? (json_is_true(v) ? "true" : "false") : NULL;
}

static int read_object(struct reader *r, const char *line)
{
	json_error_t e;
	json_t *o = json_loads(line, 0, &e);
	int code = json_is_object(o) ? NR_OK : bad(r, "it is not a JSON object");
	if (!code && !r->name[0]) code = object_columns(r, o);
	const char *part[PARTS] = { NULL };
	for (int k = 0; k < PARTS && !code; k++)
		if (r->name[k] && !(part[k] = value_text(r, json_object_get(o, r->name[k]))))
			code = nr_fail(r->err, NR_EFORMAT, "cannot read", r->path, "line %lld: '%s' is missing, or no text or number",
				(long long)r->line, r->name[k]);
	json_decref(o);
	return code ? code : add_row(r, part);
}

static int read_objects(struct reader *r, char *text)
{
	for (char *line; (line = strsep(&text, "\n"));) {
		r->line++;
		if (line[strspn(line, " \t\r")] && read_object(r, line)) return r->err->code;
	}
	return NR_OK;
}

/* ---- files ------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *path, const char *end)
{
	const size_t n = strlen(path), gz = n > 3 && !strcasecmp(path + n - 3, ".gz") ? 3 : 0, e = strlen(end);
	return n - gz > e && !strncasecmp(path + n - gz - e, end, e);
}

static int read_file(struct nr_source *s, const struct labelled_conf *c, const char *path, struct rows *to, bool *pairs,
	struct nr_error *err)
{
	struct reader r = { .s = s, .c = c, .to = to, .path = path, .err = err };
	struct nr_bytes b;
	const bool packed = strlen(path) > 3 && !strcasecmp(path + strlen(path) - 3, ".gz");
	if (packed ? nr_bytes_gunzip(&b, path, most_bytes, err) : nr_bytes_open(&b, path, most_bytes, err)) return err->code;
	char *text = nr_arena_alloc(s->arena, b.size + 1);
	const bool zero = memchr(b.data, 0, b.size);
	if (text) memcpy(text, b.data, b.size);
	nr_bytes_release(&b);
	if (!text) return out_of_memory(&r);
	if (zero) return nr_fail(err, NR_EFORMAT, "cannot read", path, "it has a zero byte: this is not text");
	if (!strncmp(text, "\xEF\xBB\xBF", 3)) text += 3;
	enum form form = (enum form)c->form;
	const bool objects = ends_with(path, ".jsonl") || ends_with(path, ".json");
	if (form == BY_NAME) form = objects ? JSON_LINES : ends_with(path, ".tsv") ? TSV : CSV;
	const int code = form == JSON_LINES ? read_objects(&r, text) : read_columns(&r, text, form == CSV ? ',' : '\t');
	if (!code && !to->count) return nr_fail(err, NR_EFORMAT, "cannot open", path, "it has no rows");
	*pairs = r.name[1] != NULL;
	return code;
}

/* ---- classes ----------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const struct row *x = *(const struct row *const *)a, *y = *(const struct row *const *)b;
	if (!isnan(x->value) && !isnan(y->value) && x->value != y->value) return x->value < y->value ? -1 : 1;
	if (isnan(x->value) != isnan(y->value)) return isnan(x->value) ? 1 : -1;
	return strcmp(x->label, y->label);
}

/* Numbers by their size, then texts by their bytes. Too many different ones are no classes. */
static int find_classes(struct nr_source *s, struct labelled *t, struct nr_error *err)
{
	const int64_t all = t->split[0].count + t->split[1].count + t->split[2].count;
	struct row **by = malloc((size_t)all * sizeof *by);
	char **name = nr_arena_alloc(s->arena, (MOST_CLASSES + 1) * sizeof *name);
	int64_t n = 0;
	int32_t classes = 0;
	if (!by || !name) return free(by), nr_fail(err, NR_EMEMORY, "cannot open", s->dir, "out of memory");
	for (int k = 0; k < 3; k++)
		for (int64_t i = 0; i < t->split[k].count; i++) by[n++] = &t->split[k].row[i];
	qsort(by, (size_t)n, sizeof *by, compare);
	for (int64_t i = 0; i < n && classes <= MOST_CLASSES; i++) {
		if (!i || strcmp(by[i]->label, by[i - 1]->label) != 0) {
			if (classes < MOST_CLASSES) name[classes] = nr_arena_strdup(s->arena, by[i]->label);
			classes++;
		}
		by[i]->class = classes - 1;
	}
	free(by);
	if (classes > MOST_CLASSES) return NR_OK;       /* values, if anything */
	s->class_name = name;
	s->classes = classes;
	return NR_OK;
}

/* ---- the source -------------------------------------------------------------------------------------------- */

static int share_out(struct nr_source *s, struct labelled *t, const struct labelled_conf *c, struct nr_error *err)
{
	const bool divided = *c->val_path || *c->test_path || c->test > 0;
	const double share = c->val >= 0 ? c->val : divided ? 0 : OWN_SHARE;
	const int64_t n = t->split[0].count, val = (int64_t)(share * (double)n), test = (int64_t)(c->test * (double)n);
	int32_t *order = malloc((size_t)n * sizeof *order);
	t->order = nr_arena_alloc(s->arena, (size_t)n * sizeof *t->order);
	if (!order || !t->order || n > INT32_MAX) return free(order), nr_fail(err, NR_EMEMORY, "cannot open", c->path, "out of memory");
	for (int64_t i = 0; i < n; i++) order[i] = (int32_t)i;
	if (val + test) nr_rng_shuffle(nr_rng_make(0, 9 << 24, 0), 0, order, (int32_t)n);
	for (int64_t i = 0; i < n; i++) t->order[i] = order[i];
	free(order);
	if (val + test >= n) return nr_fail(err, NR_EVALUE, "cannot open", c->path, "val and test leave no rows to train on");
	s->count[NR_TRAIN] = n - val - test;
	s->count[NR_VAL] = *c->val_path ? t->split[1].count : val;
	s->count[NR_TEST] = *c->test_path ? t->split[2].count : test;
	if (val) s->said = nr_arena_printf(s->arena, "val is %lld of %lld rows, drawn once", (long long)val, (long long)n);
	return NR_OK;
}

static int open(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	const struct labelled_conf *c = conf;
	struct labelled *t = s->own = nr_arena_alloc(s->arena, sizeof *t);
	const char *const path[3] = { c->path, c->val_path, c->test_path };
	bool pairs[3] = { false };
	(void)dir;
	if (!t) return nr_fail(err, NR_EMEMORY, "cannot open", c->path, "out of memory");
	s->dir = c->path;
	if ((c->val > 0 && *c->val_path) || (c->test > 0 && *c->test_path))
		return nr_fail(err, NR_EVALUE, "cannot open", c->path, "a split is either a share of the rows or another file");
	for (int k = 0; k < 3; k++)
		if (*path[k] && read_file(s, c, path[k], &t->split[k], &pairs[k], err)) return err->code;
	for (int k = 1; k < 3; k++)
		if (*path[k] && pairs[k] != pairs[0])
			return nr_fail(err, NR_EFORMAT, "cannot open", path[k], "'%s' has %s texts per row", c->path,
				pairs[0] ? "two" : "one");
	s->columns = pairs[0] ? 2 : 1;
	return find_classes(s, t, err) || share_out(s, t, c, err) ? (int)err->code : NR_OK;
}

static const struct row *row_of(const struct nr_source *s, enum nr_split split, int64_t i)
{
	const struct labelled *t = s->own;
	const int k = split == NR_VAL ? 1 : split == NR_TEST ? 2 : 0;
	if (k && t->split[k].count) return &t->split[k].row[i];
	if (split == NR_VAL) i += s->count[NR_TRAIN];
	if (split == NR_TEST) i += s->count[NR_TRAIN] + (t->split[1].count ? 0 : s->count[NR_VAL]);
	return &t->split[0].row[t->order[i]];
}

static const char *text(const struct nr_source *s, enum nr_split split, int64_t i, int32_t column)
{
	return row_of(s, split, i)->text[column];
}
static int32_t label(const struct nr_source *s, enum nr_split split, int64_t i) { return s->classes ? row_of(s, split, i)->class : -1; }
static double value(const struct nr_source *s, enum nr_split split, int64_t i) { return row_of(s, split, i)->value; }

const struct nr_dataset nr_dataset_labelled = {
	.name = "labelled", .title = "your own texts with a class or a value", .cite = "", .licence = "your own", .kind = NR_TEXTS,
	.facts = "labelled:path=FILE.csv, .tsv or .jsonl", .conf_size = sizeof(struct labelled_conf), .options = options, .open = open,
	.text = text, .label = label, .value = value,
};
