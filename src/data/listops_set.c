/* listops: the data set, as the Long Range Arena publishes it: basic_train.tsv, basic_val.tsv and basic_test.tsv with the columns Source
 * and Target. Reading drops the brackets ( ), and ] becomes the word X; every target is checked against its expression. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/save.h"
#include "data/dataset.h"
#include "data/listops.h"

static const char *const files[] = { "basic_train.tsv", "basic_val.tsv", "basic_test.tsv" };
static const size_t most_bytes = (size_t)1 << 34;

/* ---- writing --------------------------------------------------------------------------------------------------------------------- */

/* Hashes of what was written; 0: empty. */
struct seen { uint64_t *slot; uint64_t mask; };

static bool seen_make(struct seen *s, int64_t count)
{
	uint64_t room = 64;
	while (room < (uint64_t)count * 2) room *= 2;
	s->slot = calloc(room, sizeof *s->slot);
	s->mask = room - 1;
	return s->slot;
}

/* False: it was there. */
static bool seen_add(struct seen *s, const char *text, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
	if (!h) h = 1;
	uint64_t at = (h ^ h >> 32) & s->mask;
	for (; s->slot[at]; at = (at + 1) & s->mask)
		if (s->slot[at] == h) return false;
	s->slot[at] = h;
	return true;
}

struct writing { struct nr_listops_files *f; struct seen seen; struct nr_str text, row; int64_t rows, tries; };

static int write_rows(struct writing *w, struct nr_save *save, int64_t count, const char *path, struct nr_error *err)
{
	enum { MOST_TRIES = 20000000 };         /* of trees in a row that do not fit */
	struct nr_listops x;
	if (nr_save_write(save, "Source\tTarget\n", 14, err)) return err->code;
	for (int64_t i = 0; i < count;) {
		const bool fits = nr_listops_draw(&w->f->how, (uint64_t)w->f->drawn++, &w->text, &x);
		if (!fits || !seen_add(&w->seen, w->text.text, w->text.len)) {
			if (++w->tries < MOST_TRIES) continue;
			nr_fail(err, NR_EVALUE, "cannot write", path,
				"only %lld different expressions were found in %d trees", (long long)w->rows, MOST_TRIES);
			return nr_hint(err, "allow more lengths, deeper trees or more arguments");
		}
		w->tries = 0;
		w->row.len = 0;
		nr_str_printf(&w->row, "%s\t%d\n", nr_str_text(&w->text), x.value);
		if (w->row.failed || w->text.failed) return nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory");
		if (nr_save_write(save, w->row.text, w->row.len, err)) return err->code;
		i++;
		w->rows++;
		if (w->f->watch) w->f->watch(w->f->context, w->rows);
	}
	return NR_OK;
}

static int write_split(struct writing *w, int k, const char *dir, struct nr_error *err)
{
	struct nr_save save;
	struct nr_str path = { 0 };
	nr_str_printf(&path, "%s/%s", dir, files[k]);
	int code = nr_save_open(&save, nr_str_text(&path), err);
	if (!code) {
		code = write_rows(w, &save, w->f->count[k], nr_str_text(&path), err);
		if (!code) code = nr_save_close(&save, err);
		else nr_save_drop(&save);
	}
	nr_str_release(&path);
	return code;
}

/* Row 0 is padding, the last one stands for what is unknown: 17 rows, as in the Long Range Arena. */
static int write_tokenizer(const char *dir, struct nr_error *err)
{
	static const char text[] =
		"{\"version\": \"1.0\", \"truncation\": null, \"padding\": null,\n"
		" \"added_tokens\": [{\"id\": 0, \"content\": \"[PAD]\", \"special\": true, \"single_word\": false, \"lstrip\": false,"
		" \"rstrip\": false, \"normalized\": false}],\n"
		" \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, \"post_processor\": null,"
		" \"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": false},\n"
		" \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", \"continuing_subword_prefix\": \"##\","
		" \"max_input_chars_per_word\": 100,\n"
		"  \"vocab\": {\"[PAD]\": 0, \"0\": 1, \"1\": 2, \"2\": 3, \"3\": 4, \"4\": 5,"
		"  \"5\": 6, \"6\": 7, \"7\": 8, \"8\": 9, \"9\": 10,"
		" \"MIN\": 11, \"MAX\": 12, \"MED\": 13, \"SM\": 14, \"X\": 15, \"[UNK]\": 16}}}\n";
	struct nr_str path = { 0 };
	nr_str_printf(&path, "%s/tokenizer.json", dir);
	const int code = nr_save_file(nr_str_text(&path), text, sizeof text - 1, err);
	nr_str_release(&path);
	return code;
}

int nr_listops_write(struct nr_listops_files *f, const char *dir, struct nr_error *err)
{
	struct writing w = { .f = f };
	const int64_t all = f->count[0] + f->count[1] + f->count[2];
	f->drawn = 0;
	if (nr_folder_make(dir, err)) return err->code;
	if (!seen_make(&w.seen, all)) return nr_fail(err, NR_EMEMORY, "cannot write", dir, "out of memory");
	int code = write_tokenizer(dir, err);
	for (int k = 0; k < 3 && !code; k++) code = write_split(&w, k, dir, err);
	nr_str_release(&w.text);
	nr_str_release(&w.row);
	free(w.seen.slot);
	return code;
}

/* ---- reading --------------------------------------------------------------------------------------------------------------------- */

struct listops_conf { char *path; };
static const struct nr_option options[] = {
	NR_OPT_STRING(struct listops_conf, path, "", "folder with basic_train.tsv and the others; default: listops in the data root"),
	NR_OPT_END
};

struct split { const char **text; int32_t *target; int64_t count, room; };
struct listops { struct split split[3]; };

static int grow(struct nr_source *s, struct split *p, const char *path, struct nr_error *err)
{
	if (p->count < p->room) return NR_OK;
	const int64_t room = p->room ? 2 * p->room : 1024;
	const char **text = nr_arena_alloc(s->arena, (size_t)room * sizeof *text);
	int32_t *target = nr_arena_alloc(s->arena, (size_t)room * sizeof *target);
	if (!text || !target) return nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	if (p->count) {
		memcpy(text, p->text, (size_t)p->count * sizeof *text);
		memcpy(target, p->target, (size_t)p->count * sizeof *target);
	}
	p->text = text, p->target = target, p->room = room;
	return NR_OK;
}

static int read_row(struct nr_source *s, struct split *p, const char *row, size_t n, const char *path, int64_t line,
	struct nr_str *words, struct nr_error *err)
{
	const char *tab = memchr(row, '\t', n);
	struct nr_listops x;
	if (!tab || row + n == tab + 1 || tab[1] < '0' || tab[1] > '9' || (row + n > tab + 2 && !strchr("\t\r", tab[2])))
		return nr_fail(err, NR_EFORMAT, "cannot read", path, "line %lld is not an expression, a tab and a digit", (long long)line);
	words->len = 0;
	if (nr_listops_read(row, (size_t)(tab - row), &x, words, path, line, err)) return err->code;
	if (x.value != tab[1] - '0')
		return nr_fail(err, NR_EFORMAT, "cannot read", path, "line %lld: the expression gives %d, but its target is %c",
			(long long)line, x.value, tab[1]);
	if (grow(s, p, path, err)) return err->code;
	p->text[p->count] = nr_arena_strdup(s->arena, nr_str_text(words));
	p->target[p->count] = x.value;
	if (words->failed || !p->text[p->count++]) return nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	return NR_OK;
}

static int read_split(struct nr_source *s, struct split *p, const char *path, struct nr_error *err)
{
	struct nr_bytes b;
	struct nr_str words = { 0 };
	if (nr_bytes_open(&b, path, most_bytes, err)) return err->code;
	const char *at = (const char *)b.data, *end = at + b.size;
	int code = NR_OK;
	for (int64_t line = 1; at < end && !code; line++) {
		const char *feed = memchr(at, '\n', (size_t)(end - at));
		const size_t n = (size_t)((feed ? feed : end) - at);
		const bool head = line == 1 && n >= 13 && !memcmp(at, "Source\tTarget", 13);
		if (n && !head) code = read_row(s, p, at, n, path, line, &words, err);
		at += n + 1;
	}
	nr_bytes_release(&b);
	nr_str_release(&words);
	return code;
}

static bool there(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISREG(st.st_mode);
}

/* The folder that has the training rows; NULL: none. */
static const char *folder_of(struct nr_source *s, const char *root, const char *path)
{
	static const char *const below[] = { "listops", "lra_release/listops-1000", "listops-1000", ".", NULL };
	if (*path) return path;
	for (int i = 0; below[i]; i++) {
		const char *dir = nr_arena_printf(s->arena, "%s/%s", root, below[i]);
		const char *file = dir ? nr_arena_printf(s->arena, "%s/%s", dir, files[0]) : NULL;
		const char *packed = file ? nr_arena_printf(s->arena, "%s.gz", file) : NULL;
		if (packed && (there(file) || there(packed))) return dir;
	}
	return NULL;
}

static int open(struct nr_source *s, const char *root, const void *conf, struct nr_error *err)
{
	static const char *const digits[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", NULL };
	static const enum nr_split to[] = { NR_TRAIN, NR_VAL, NR_TEST };
	struct listops *t = s->own = nr_arena_alloc(s->arena, sizeof *t);
	if (!t) return nr_fail(err, NR_EMEMORY, "cannot open", "listops", "out of memory");
	if (!(s->dir = folder_of(s, root, ((const struct listops_conf *)conf)->path))) {
		nr_fail(err, NR_EIO, "cannot open", "listops", "no '%s' in '%s/listops'", files[0], root);
		return nr_hint(err, "norma data make listops");
	}
	for (int k = 0; k < 3; k++) {
		const char *path = nr_arena_printf(s->arena, "%s/%s", s->dir, files[k]);
		if (!path) return nr_fail(err, NR_EMEMORY, "cannot open", "listops", "out of memory");
		if (read_split(s, &t->split[k], path, err)) return err->code;
		s->count[to[k]] = t->split[k].count;
	}
	s->columns = 1;
	return nr_source_classes(s, digits, err);
}

static const struct split *split_of(const struct nr_source *s, enum nr_split split)
{
	return &((const struct listops *)s->own)->split[split == NR_TRAIN ? 0 : split == NR_VAL ? 1 : 2];
}

static const char *text(const struct nr_source *s, enum nr_split split, int64_t i, int32_t column)
{
	(void)column;
	return split_of(s, split)->text[i];
}

static int32_t label(const struct nr_source *s, enum nr_split split, int64_t i) { return split_of(s, split)->target[i]; }

const struct nr_dataset nr_dataset_listops = {
	.name = "listops", .title = "Long ListOps of the Long Range Arena", .cite = "arXiv:2011.04006",
	.licence = "made here, or Apache-2.0",
	.kind = NR_TEXTS,
	.facts = "norma data make listops: 96000 / 2000 / 2000 expressions of 500 to 2000 tokens, 10 classes",
	.conf_size = sizeof(struct listops_conf), .options = options, .open = open, .text = text, .label = label,
};
