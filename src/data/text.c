/* text: texts of one's own. FILE.csv and FILE.tsv (or form=csv, tsv) have a head line and one, two or three columns: a sentence; a pair
 * that means the same; and a sentence that contradicts (as SimCSE's nli_for_simcse.csv: sent0,sent1,hard_neg). Any other file has one
 * sentence a line; blank lines part documents, and a sentence's label is the number of its document. Files may be packed (.gz). */
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/cells.h"
#include "data/dataset.h"

enum { MAX_COLUMNS = 3 };
static const size_t most_bytes = (size_t)1 << 34;

enum form { BY_NAME, LINES, CSV, TSV };
static const char *const forms[] = { "auto", "lines", "csv", "tsv", NULL };

struct text_conf { char *path; int32_t form; double val; };
static const struct nr_option options[] = {
	NR_OPT_STRING(struct text_conf, path, NULL,
		"file: one sentence per line, or .csv/.tsv with two or three columns"),
	NR_OPT_ENUM(struct text_conf, form, "auto", forms,
		"lines, or columns after a header line; auto: by the file's name"),
	NR_OPT_FLOAT(struct text_conf, val, 0, 0, 0.9,
		"share of the samples, taken from the end, to use as the split val"), NR_OPT_END
};

struct texts {
	const char **text;                      /* (samples,columns) */
	int32_t *document;                      /* (samples), or NULL */
	int64_t samples, room;
};

struct reader { struct nr_source *s; struct texts *t; const char *path; enum form form; int64_t line; struct nr_error *err; };

static int bad(struct reader *r, const char *what)
{
	return nr_fail(r->err, NR_EFORMAT, "cannot read", r->path, "line %lld: %s", (long long)r->line, what);
}

static int grow(struct reader *r)
{
	struct texts *t = r->t;
	if (t->samples < t->room) return NR_OK;
	const int64_t room = t->room ? 2 * t->room : 1024;
	const char **text = nr_arena_alloc(r->s->arena, (size_t)(room * r->s->columns) * sizeof *text);
	int32_t *document = nr_arena_alloc(r->s->arena, (size_t)room * sizeof *document);
	if (!text || !document) return nr_fail(r->err, NR_EMEMORY, "cannot read", r->path, "out of memory");
	if (t->samples) {
		memcpy(text, t->text, (size_t)(t->samples * r->s->columns) * sizeof *text);
		memcpy(document, t->document, (size_t)t->samples * sizeof *document);
	}
	t->text = text, t->document = document, t->room = room;
	return NR_OK;
}

static int add(struct reader *r, char *const *cell, int32_t document)
{
	if (grow(r)) return r->err->code;
	for (int32_t k = 0; k < r->s->columns; k++) {
		if (strlen(cell[k]) != nr_utf8_span(cell[k], strlen(cell[k]))) return bad(r, "it is not UTF-8");
		r->t->text[r->t->samples * r->s->columns + k] = cell[k];
	}
	r->t->document[r->t->samples++] = document;
	return NR_OK;
}

/* ---- one sentence a line ------------------------------------------------------------------------------------------------ */

static int read_lines(struct reader *r, char *text)
{
	int32_t document = 0;
	bool blank = false;
	r->s->columns = 1;
	for (char *line; (line = strsep(&text, "\n"));) {
		r->line++;
		const size_t n = strlen(line);
		if (n && line[n - 1] == '\r') line[n - 1] = 0;
		if (!line[strspn(line, " \t")]) {
			blank = r->t->samples > 0;
			continue;
		}
		document += blank;
		blank = false;
		if (add(r, &line, document)) return r->err->code;
	}
	return NR_OK;
}

/* ---- columns ---------------------------------------------------------------------------------------------------------------- */

static int read_columns(struct reader *r, char *text, char separator)
{
	char *cell[MAX_COLUMNS];
	struct nr_cells c = { .at = text, .separator = separator, .name = r->path };
	r->s->columns = nr_cells_row(&c, cell, MAX_COLUMNS, r->err);
	if (r->s->columns < 0) return r->err->code;
	for (int found; (found = nr_cells_below(&c, cell, MAX_COLUMNS, r->s->columns, r->err)) != 0;) {
		r->line = c.line;
		if (found < 0 || add(r, cell, 0)) return r->err->code;
	}
	return NR_OK;
}

/* ---- the source ------------------------------------------------------------------------------------------------------------ */

static bool ends_with(const char *path, const char *end)
{
	const size_t n = strlen(path), gz = n > 3 && !strcasecmp(path + n - 3, ".gz") ? 3 : 0, e = strlen(end);
	return n - gz > e && !strncasecmp(path + n - gz - e, end, e);
}

static int read_file(struct reader *r)
{
	struct nr_bytes b;
	const size_t n = strlen(r->path);
	const bool packed = n > 3 && !strcasecmp(r->path + n - 3, ".gz");
	if (packed ? nr_bytes_gunzip(&b, r->path, most_bytes, r->err) : nr_bytes_open(&b, r->path, most_bytes, r->err)) return r->err->code;
	char *text = nr_arena_alloc(r->s->arena, b.size + 1);
	const void *zero = memchr(b.data, 0, b.size);
	if (text) memcpy(text, b.data, b.size);
	const size_t size = b.size, at = zero ? (size_t)((const uint8_t *)zero - b.data) : 0;
	nr_bytes_release(&b);
	if (!text) return nr_fail(r->err, NR_EMEMORY, "cannot read", r->path, "out of memory");
	if (zero) return nr_fail(r->err, NR_EFORMAT, "cannot read", r->path,
		"byte %zu is zero: this is not text", at);
	text[size] = 0;
	if (!strncmp(text, "\xEF\xBB\xBF", 3)) text += 3;       /* a byte order mark */
	enum form form = r->form;
	if (form == BY_NAME) form = ends_with(r->path, ".csv") ? CSV : ends_with(r->path, ".tsv") ? TSV : LINES;
	return form == LINES ? read_lines(r, text) : read_columns(r, text, form == CSV ? ',' : '\t');
}

static int open(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	const struct text_conf *c = conf;
	(void)dir;
	struct texts *t = s->own = nr_arena_alloc(s->arena, sizeof *t);
	if (!t) return nr_fail(err, NR_EMEMORY, "cannot open", c->path, "out of memory");
	s->dir = c->path;
	struct reader r = { .s = s, .t = t, .path = c->path, .form = (enum form)c->form, .err = err };
	if (read_file(&r)) return err->code;
	if (!t->samples) return nr_fail(err, NR_EFORMAT, "cannot open", c->path, "it has no text");
	s->count[NR_VAL] = (int64_t)(c->val * (double)t->samples);
	s->count[NR_TRAIN] = t->samples - s->count[NR_VAL];
	return NR_OK;
}

static int64_t row(const struct nr_source *s, enum nr_split split, int64_t i) { return split == NR_VAL ? s->count[NR_TRAIN] + i : i; }

static const char *text(const struct nr_source *s, enum nr_split split, int64_t i, int32_t column)
{
	return ((const struct texts *)s->own)->text[row(s, split, i) * s->columns + column];
}

static int32_t label(const struct nr_source *s, enum nr_split split, int64_t i)
{
	return ((const struct texts *)s->own)->document[row(s, split, i)];
}

const struct nr_dataset nr_dataset_text = {
	.name = "text", .title = "your own texts: lines, or columns of pairs and triplets", .cite = "", .licence = "your own",
	.kind = NR_TEXTS, .facts = "text:path=FILE", .conf_size = sizeof(struct text_conf), .options = options, .open = open,
	.text = text, .label = label,
};
