/* captions: pictures with a text each. path=FILE.csv, .tsv or .jsonl, or a folder with captions.* or metadata.* (as Hugging Face's
 * imagefolder has it), names a picture and its caption in each row, pictures relative to that file; of=SET takes the pictures of another
 * data set and describes their classes by templates: picture i gets template i modulo their number. */
#include "data/captions.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/cells.h"
#include "data/dataset.h"
#include "data/listed.h"

enum { MOST_COLUMNS = 64 };
static const size_t most_bytes = (size_t)1 << 34;

struct conf { char *path, *of, *templates, *names, *picture, *caption; double val; };
static const struct nr_option options[] = {
	NR_OPT_STRING(struct conf, path, "", "CSV, TSV or JSON lines with a picture and its caption per row, or a folder with one"),
	NR_OPT_STRING(struct conf, of, "", "instead: a data set of pictures, whose classes are described"),
	NR_OPT_STRING(struct conf, templates, "",
		"with of: file with one text per line, {} stands for the class (default: a photo of a {}.)"),
	NR_OPT_STRING(struct conf, names, "", "with of: file with one name of a class per line (default: the names of the data set)"),
	NR_OPT_STRING(struct conf, picture, "", "column of the pictures (default: file_name, image, picture, file, filename or path)"),
	NR_OPT_STRING(struct conf, caption, "", "column of the captions (default: caption, text, title, description or sentence)"),
	NR_OPT_FLOAT(struct conf, val, 0.1, 0, 0.9, "with path: share of the pictures to set apart as the split val"), NR_OPT_END
};
static const char *const picture_columns[] = { "file_name", "image", "picture", "file", "filename", "path", NULL };
static const char *const caption_columns[] = { "caption", "text", "title", "description", "sentence", NULL };

struct captions {
	struct nr_listed listed;                /* first: of given captions, the pictures */
	struct nr_source *inner;                /* of classes: the pictures; else NULL */
	struct nr_prompts prompts;
	const char **text[NR_SPLITS], *said;
	int64_t room[NR_SPLITS];
};

static const struct captions *own(const struct nr_source *s) { return s->own; }

/* ---- given captions --------------------------------------------------------------------------------------------------------- */

struct reader { struct nr_source *s; const struct conf *c; const char *path; int64_t line, missing; struct nr_error *err; };

static int out_of_memory(const struct reader *r) { return nr_fail(r->err, NR_EMEMORY, "cannot read", r->path, "out of memory"); }

/* The same picture goes to the same side, whatever its captions and its neighbours. */
static bool set_apart(const char *name, double share)
{
	uint64_t h = UINT64_C(14695981039346656037);
	for (; *name; name++) h = (h ^ (uint8_t)*name) * UINT64_C(1099511628211);
	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);      /* the end of splitmix64: every bit counts */
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)((h ^ h >> 31) >> 11) / 9007199254740992. < share;
}

static int add(struct reader *r, const char *picture, const char *caption)
{
	struct captions *t = r->s->own;
	char whole[4096];
	if (!picture || !caption || !*picture || !*caption)
		return nr_fail(r->err, NR_EFORMAT, "cannot read", r->path, "line %lld has no %s", (long long)r->line,
			picture && *picture ? "caption" : "picture");
	if (strlen(caption) != nr_utf8_span(caption, strlen(caption)))
		return nr_fail(r->err, NR_EFORMAT, "cannot read", r->path, "line %lld is not UTF-8", (long long)r->line);
	snprintf(whole, sizeof whole, "%s%s%s", *picture == '/' ? "" : t->listed.dir, *picture == '/' ? "" : "/", picture);
	if (access(whole, R_OK) && !r->missing++)
		nr_fail(r->err, NR_EIO, "cannot read the picture", whole, "%s (line %lld of '%s')", strerror(errno), (long long)r->line,
			r->path);
	const enum nr_split split = set_apart(picture, r->c->val) ? NR_VAL : NR_TRAIN;
	const int64_t n = r->s->count[split];
	if (n == t->room[split]) {
		const int64_t room = n ? 2 * n : 1024;
		const char **text = nr_arena_alloc(r->s->arena, (size_t)room * sizeof *text);
		if (!text) return out_of_memory(r);
		if (n) memcpy(text, t->text[split], (size_t)n * sizeof *text);
		t->text[split] = text;
		t->room[split] = room;
	}
	if (!(t->text[split][n] = nr_arena_strdup(r->s->arena, caption))) return out_of_memory(r);
	return nr_listed_add(r->s, split, picture, -1, r->err);
}

static int find(const struct reader *r, char *const *cell, int32_t count, const char *asked, const char *const *usual, const char *what)
{
	for (int32_t k = 0; k < count; k++) {
		if (*asked && !strcmp(asked, cell[k])) return k;
		for (const char *const *u = usual; !*asked && *u; u++)
			if (!strcasecmp(*u, cell[k])) return k;
	}
	nr_fail(r->err, NR_EFORMAT, "cannot read", r->path, *asked ? "it has no column '%s'" : "it has no column of %ss",
		*asked ? asked : what);
	nr_hint(r->err, "name it: captions:path=FILE,%s=COLUMN", what);
	return -1;
}

static int read_columns(struct reader *r, char *text, char separator)
{
	char *cell[MOST_COLUMNS];
	struct nr_cells c = { .at = text, .separator = separator, .name = r->path };
	const int32_t columns = nr_cells_row(&c, cell, MOST_COLUMNS, r->err);
	if (columns < 0) return r->err->code;
	const int p = find(r, cell, columns, r->c->picture, picture_columns, "picture");
	const int q = p < 0 ? -1 : find(r, cell, columns, r->c->caption, caption_columns, "caption");
	if (p < 0 || q < 0) return r->err->code;
	for (int found; (found = nr_cells_below(&c, cell, MOST_COLUMNS, columns, r->err)) != 0;) {
		r->line = c.line;
		if (found < 0 || (add(r, cell[p], cell[q]) && !r->missing)) return r->err->code;
	}
	return NR_OK;
}

static const char *value_of(const json_t *row, const char *asked, const char *const *usual)
{
	if (*asked) return json_string_value(json_object_get(row, asked));
	for (; *usual; usual++)
		if (json_is_string(json_object_get(row, *usual))) return json_string_value(json_object_get(row, *usual));
	return NULL;
}

static int read_json_lines(struct reader *r, char *text)
{
	for (char *line; (line = strsep(&text, "\n"));) {
		r->line++;
		if (!line[strspn(line, " \t\r")]) continue;
		json_t *row = nr_json_parse(line, strlen(line), r->path, r->err);
		if (!row) return nr_fail(r->err, NR_EFORMAT, "cannot read", r->path, "line %lld is not JSON", (long long)r->line);
		const int code = add(r, value_of(row, r->c->picture, picture_columns), value_of(row, r->c->caption, caption_columns));
		json_decref(row);
		if (code && !r->missing) return code;
	}
	return NR_OK;
}

static bool ends_with(const char *path, const char *end)
{
	const size_t n = strlen(path), e = strlen(end);
	return n > e && !strcasecmp(path + n - e, end);
}

/* The file itself, or the one in a folder. NULL: there is none. */
static const char *list_at(struct nr_source *s, const char *path, struct nr_error *err)
{
	static const char *const names[] = { "captions.csv", "captions.tsv", "captions.jsonl", "metadata.csv", "metadata.tsv",
		"metadata.jsonl", NULL };
	struct stat st;
	if (stat(path, &st)) {
		nr_fail(err, NR_EIO, "cannot open", path, "%s", strerror(errno));
		return NULL;
	}
	for (int i = 0; S_ISDIR(st.st_mode) && names[i]; i++) {
		const char *file = nr_arena_printf(s->arena, "%s/%s", path, names[i]);
		if (file && !access(file, R_OK)) return file;
	}
	if (!S_ISDIR(st.st_mode)) return path;
	nr_fail(err, NR_EFORMAT, "cannot open", path, "it has no captions.csv, .tsv or .jsonl, nor metadata.csv, .tsv or .jsonl");
	return NULL;
}

static int read_given(struct nr_source *s, const struct conf *c, struct nr_error *err)
{
	struct captions *t = s->own;
	struct nr_bytes b;
	struct reader r = { .s = s, .c = c, .path = list_at(s, c->path, err), .err = err };
	if (!r.path) return err->code;
	const char *slash = strrchr(r.path, '/');
	t->listed.dir = s->dir = slash ? nr_arena_printf(s->arena, "%.*s", (int)(slash - r.path), r.path) : ".";
	if (nr_bytes_open(&b, r.path, most_bytes, err)) return err->code;
	char *text = nr_arena_alloc(s->arena, b.size + 1);
	if (text) memcpy(text, b.data, b.size);
	const bool zero = memchr(b.data, 0, b.size) != NULL;
	nr_bytes_release(&b);
	if (!text || !s->dir) return out_of_memory(&r);
	if (zero) return nr_fail(err, NR_EFORMAT, "cannot read", r.path, "it has zero bytes: this is not text");
	if (!strncmp(text, "\xEF\xBB\xBF", 3)) text += 3;
	const int code = ends_with(r.path, ".jsonl") || ends_with(r.path, ".json") ? read_json_lines(&r, text)
		: read_columns(&r, text, ends_with(r.path, ".tsv") ? '\t' : ',');
	if (r.missing) return nr_hint(err, "%lld of %lld pictures are not there; paths are relative to the file of captions",
		(long long)r.missing, (long long)(s->count[NR_TRAIN] + s->count[NR_VAL]));
	if (!code && !(s->count[NR_TRAIN] + s->count[NR_VAL])) return nr_fail(err, NR_EFORMAT, "cannot read", r.path, "it has no captions");
	s->channels = 3;
	return code;
}

/* ---- captions of classes ---------------------------------------------------------------------------------------------------- */

static int describe(struct nr_source *s, const char *root, const struct conf *c, struct nr_error *err)
{
	struct captions *t = s->own;
	if (nr_source_open(&t->inner, c->of, root, err)) return err->code;
	const struct nr_source *inner = t->inner;
	if (nr_source_expect(inner, NR_PICTURES, err)) return err->code;
	memcpy(s->count, inner->count, sizeof s->count);
	memcpy(s->mean, inner->mean, sizeof s->mean);
	memcpy(s->std, inner->std, sizeof s->std);
	s->classes = inner->classes, s->channels = inner->channels, s->h = inner->h, s->w = inner->w, s->class_name = inner->class_name;
	s->dir = inner->dir;
	return nr_prompts_make(&t->prompts, c->of, s->class_name, s->classes, c->names, c->templates, s->arena, err);
}

static int open_captions(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	const struct conf *c = conf;
	struct captions *t = s->own = nr_arena_alloc(s->arena, sizeof *t);
	if (!t) return nr_fail(err, NR_EMEMORY, "cannot open", "captions", "out of memory");
	s->columns = 1;
	t->said = nr_arena_printf(s->arena, "%s%s;%g", c->path, c->of, c->val);
	if (!*c->path == !*c->of) {
		nr_fail(err, NR_EVALUE, "cannot open", "captions",
			*c->path ? "path and of exclude each other" : "neither path nor of is given");
		return nr_hint(err, "write captions:path=FILE.csv or captions:of=cifar10");
	}
	if (*c->path && (*c->templates || *c->names))
		return nr_fail(err, NR_EVALUE, "cannot open", c->path, "templates and names go with of=SET");
	return *c->of ? describe(s, dir, c, err) : read_given(s, c, err);
}

static void close_captions(struct nr_source *s)
{
	if (s->own) nr_source_close(((struct captions *)s->own)->inner);
}

static int get(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p, struct nr_error *err)
{
	const struct nr_source *inner = own(s)->inner;
	return inner ? inner->of->get(inner, split, i, p, err) : nr_listed_get(s, split, i, p, err);
}
static int32_t label(const struct nr_source *s, enum nr_split split, int64_t i)
{
	const struct nr_source *inner = own(s)->inner;
	return inner ? inner->of->label(inner, split, i) : -1;
}
static const char *text(const struct nr_source *s, enum nr_split split, int64_t i, int32_t column)
{
	const struct captions *t = own(s);
	(void)column;
	if (!t->inner) return t->text[split][i];
	const int32_t k = label(s, split, i);
	return k < 0 || k >= t->prompts.classes ? "" : t->prompts.text[k * t->prompts.templates + i % t->prompts.templates];
}

const struct nr_prompts *nr_captions_prompts(const struct nr_source *s)
{
	return s->of == &nr_dataset_captions && own(s)->inner ? &own(s)->prompts : NULL;
}
const char *nr_captions_text(const struct nr_source *s) { return s->of == &nr_dataset_captions ? own(s)->said : s->of->name; }

const struct nr_dataset nr_dataset_captions = {
	.name = "captions", .title = "pictures with captions, your own or made of class names", .cite = "", .licence = "your own",
	.kind = NR_TEXTS, .facts = "captions:path=FILE.csv or captions:of=SET", .conf_size = sizeof(struct conf), .options = options,
	.open = open_captions, .get = get, .label = label, .text = text, .close = close_captions,
};
