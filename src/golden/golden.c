/* norma-golden DIR...: runs every *.safetensors, the tokenizers' *.tsv, the expressions of listops*.tsv, the molecules of every smiles
 * folder, the masks of rle_cases*.json and the scores of *_expected.json of COCO below the folders against libnorma and counts.
 *
 * One line per failure (file, tensor, error, tolerance), the kinds without a handler, and at the end exactly
 * `N passed, M failed, K skipped`. Exit: 0 nothing failed and something was found, 1 otherwise, 2 usage. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/args.h"
#include "base/str.h"
#include "golden/coco_json.h"
#include "golden/listops.h"
#include "golden/replay.h"
#include "golden/tokenizer.h"

static const struct handler {
	const char *format, *kind;
	int (*run)(struct golden_case *);
} handlers[] = {
#define HANDLER(format, kind) { #format, #kind, golden_##format##_##kind },
#include "golden/handlers.def"
#undef HANDLER
};

static const struct format {
	const char *text, *name, *key;
} formats[] = {
	{ "norma-golden-1", "norm", "norm" },
	{ "norma-golden-model-1", "model", "family" },
	{ "norma-golden-metric-1", "metric", "metric" },
};

struct options { bool verbose, help; };
static const struct nr_option options[] = {
	NR_OPT_BOOL(struct options, verbose, "0", "also print what passes, with its error"),
	NR_OPT_BOOL(struct options, help, "0", "print this and exit"),
	NR_OPT_END
};

struct kind {
	char *name;
	int64_t files;
	struct kind *next;
};

struct tally {
	int64_t passed, failed, skipped;
	struct options opt;
	struct nr_arena *arena; /* the list of skipped kinds */
	struct kind *kinds;
};

static void skip(struct tally *t, const char *path, const char *format, const char *kind, const char *why)
{
	t->skipped++;
	if (t->opt.verbose)
		printf("skip %s: %s %s%s%s\n", path, format, kind, why ? ": " : "", why ? why : "");
	char *name = nr_arena_printf(t->arena, "%s %s%s%s", format, kind, why ? ": " : "", why ? why : "");
	struct kind **k = &t->kinds;
	while (*k && name && strcmp((*k)->name, name) < 0) k = &(*k)->next;
	if (!name) return;
	if (!*k || strcmp((*k)->name, name)) {
		struct kind *fresh = nr_arena_alloc(t->arena, sizeof *fresh);
		if (!fresh) return;
		*fresh = (struct kind){ .name = name, .next = *k };
		*k = fresh;
	}
	(*k)->files++;
}

static const struct format *format_of(const char *text)
{
	for (size_t i = 0; text && i < sizeof formats / sizeof *formats; i++)
		if (!strcmp(formats[i].text, text)) return &formats[i];
	return NULL;
}

static const struct handler *handler_of(const char *format, const char *kind)
{
	for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
		if (!strcmp(handlers[i].format, format) && !strcmp(handlers[i].kind, kind))
			return &handlers[i];
	static const struct handler registry = { "norm", "", golden_norm_registry };
	return !strcmp(format, "norm") && nr_norm_find(kind, NULL) ? &registry : NULL;
}

static json_t *read_config(struct golden_case *c)
{
	const char *text = nr_st_metadata(c->file, "config");
	json_error_t e;
	json_t *config = text ? json_loads(text, JSON_REJECT_DUPLICATES, &e) : json_object();
	if (text && !json_is_object(config))
		golden_fail(c, NULL, "config is not a JSON object: %s", config ? text : e.text);
	return config;
}

/* Returns GOLDEN_SKIP or GOLDEN_RAN; failures are counted in the case. */
static int run_handler(const struct handler *h, struct golden_case *c)
{
	if (setjmp(c->leave)) return GOLDEN_RAN;
	if (h->run(c) == GOLDEN_SKIP) return GOLDEN_SKIP;
	for (int64_t i = 0; i < nr_st_count(c->file); i++)
		if (!c->seen[i]) golden_fail(c, nr_st_get(c->file, i)->name, "nothing checks this tensor");
	if (c->checks == 0) golden_fail(c, NULL, "nothing was compared");
	return GOLDEN_RAN;
}

static void run_opened(struct tally *t, struct golden_case *c)
{
	const char *text = nr_st_metadata(c->file, "format");
	const struct format *f = format_of(text);
	const char *kind = f ? nr_st_metadata(c->file, f->key) : NULL;
	if (!text) {
		golden_fail(c, NULL, "no 'format' in the metadata");
		return;
	}
	if (!f || !kind) {
		skip(t, c->path, text, kind ? kind : "?", NULL);
		return;
	}
	const struct handler *h = handler_of(f->name, kind);
	if (!h) {
		skip(t, c->path, f->text, kind, NULL);
		return;
	}
	c->config = read_config(c);
	c->seen = nr_arena_alloc(c->arena, (size_t)nr_st_count(c->file) + 1);
	if (c->failures == 0 && c->seen) {
		if (run_handler(h, c) == GOLDEN_SKIP && c->failures == 0) {
			skip(t, c->path, f->text, kind, c->skipped);
			return;
		}
	}
	if (c->failures == 0) t->passed++;
}

static bool ends_with(const char *name, const char *tail)
{
	const size_t n = strlen(name), t = strlen(tail);
	return n > t && !strcmp(name + n - t, tail);
}

static bool is_molecules(const char *path) { return strstr(path, "smiles/") && ends_with(path, ".jsonl"); }

/* What runs a file that is not made of tensors; NULL: it is. */
static void (*text_handler(const char *path))(struct golden_case *)
{
	if (is_molecules(path)) return golden_smiles;
	if (golden_is_listops(path)) return golden_listops;
	if (golden_is_rle(path)) return golden_rle;
	if (golden_is_coco_expected(path)) return golden_coco_expected;
	return golden_is_tokens(path) ? golden_tokens : NULL;
}

static void run_file(struct tally *t, const char *path)
{
	struct golden_case c = {
		.path = path, .arena = nr_arena_make(), .verbose = t->opt.verbose, .out = stdout
	};
	struct nr_error err = { 0 };
	char text[1536];
	if (!c.arena)
		golden_fail(&c, NULL, "out of memory");
	else if (text_handler(path)) {
		text_handler(path)(&c);
		t->passed += !c.failures;
	} else if (nr_st_open(&c.file, path, &err))
		golden_fail(&c, NULL, "%s", nr_error_text(&err, text, sizeof text));
	else
		run_opened(t, &c);
	if (c.failures) t->failed++;
	if (c.config) json_decref(c.config);
	nr_st_close(c.file);
	nr_arena_free(c.arena);
}

static bool is_golden(const char *path)
{
	return ends_with(path, ".safetensors") || text_handler(path);
}

/* Depth first, by name. Returns false when a folder cannot be read. */
static bool walk(struct tally *t, const char *path, bool given)
{
	struct stat st;
	if (stat(path, &st)) {
		printf("FAIL %s: %s\n", path, strerror(errno));
		return false;
	}
	if (!S_ISDIR(st.st_mode)) {
		if (given || is_golden(path)) run_file(t, path);
		return true;
	}
	struct dirent **entry;
	const int n = scandir(path, &entry, NULL, alphasort);
	if (n < 0) {
		printf("FAIL %s: %s\n", path, strerror(errno));
		return false;
	}
	bool ok = true;
	for (int i = 0; i < n; i++) {
		const char *name = entry[i]->d_name;
		struct nr_str child = { 0 };
		nr_str_printf(&child, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", name);
		const bool folder = entry[i]->d_type == DT_DIR || entry[i]->d_type == DT_UNKNOWN;
		if (name[0] != '.' && !child.failed && (folder || is_golden(nr_str_text(&child))))
			ok &= walk(t, nr_str_text(&child), false);
		nr_str_release(&child);
		free(entry[i]);
	}
	free(entry);
	return ok;
}

int main(int argc, char **argv)
{
	struct tally t = { .arena = nr_arena_make() };
	struct nr_list paths = { 0 };
	struct nr_error err = { 0 };
	char text[1536];
	nr_option_defaults(options, &t.opt);
	const int bad = nr_args_parse(options, &t.opt, argc - 1, argv + 1, &paths, t.arena, &err);
	if (bad) fprintf(stderr, "norma-golden: %s\n", nr_error_text(&err, text, sizeof text));
	if (bad || t.opt.help || !paths.count) {
		fprintf(bad || !t.opt.help ? stderr : stdout, "usage: norma-golden [--verbose] DIR...\n");
		nr_arena_free(t.arena);
		return bad || !t.opt.help ? 2 : 0;
	}
	bool ok = true;
	for (int64_t i = 0; i < paths.count; i++) ok &= walk(&t, paths.item[i], true);
	for (const struct kind *k = t.kinds; k; k = k->next)
		printf("skipped, no code for it: %s (%lld file%s)\n", k->name, (long long)k->files,
			k->files > 1 ? "s" : "");
	if (t.passed + t.failed + t.skipped == 0) {
		printf("FAIL: no *.safetensors found\n");
		ok = false;
	}
	printf("%lld passed, %lld failed, %lld skipped\n", (long long)t.passed, (long long)t.failed,
		(long long)t.skipped);
	nr_arena_free(t.arena);
	return ok && t.failed == 0 ? 0 : 1;
}
