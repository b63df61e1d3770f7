/* Plug-ins in files: finding, loading, recording. See norma/plugin.h. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "fetch/checksum.h"
#include "plugin/plugin.h"

enum { MAX_FILES = 64, DIGITS = 64 };
static struct nr_plugin_file files[MAX_FILES];
static int n_files;
static bool may_change;

const struct nr_plugin_file *nr_plugins(int *count)
{
	*count = n_files;
	return files;
}

void nr_plugins_allow_changed(bool on) { may_change = on; }

static int refuse(const char *path, struct nr_error *err, enum nr_err code, const char *detail)
{
	return nr_fail(err, code, "cannot load the plug-in", path, "%s", detail);
}

static const struct nr_plugin_file *with_sum(const char *sha256)
{
	for (int i = 0; i < n_files; i++)
		if (!strcmp(files[i].sha256, sha256)) return &files[i];
	return NULL;
}

/* ---- one file ---------------------------------------------------------------------------------------------------------- */

/* What the loader of the system says, without the path that the message names anyway. */
static int system_refuses(const char *path, struct nr_error *err)
{
	const char *why = dlerror(), *colon = why ? strstr(why, ": ") : NULL, *symbol = why ? strstr(why, "undefined symbol: nr_") : NULL;
	refuse(path, err, NR_EFORMAT, why && colon && !strncmp(why, path, strlen(path)) ? colon + 2 : why ? why : "no reason is known");
	if (symbol) return nr_hint(err, "this norma has no such function: compile it with the headers of this norma");
	if (why && strstr(why, "undefined symbol")) return nr_hint(err, "link the plug-in with the library that has it");
	return nr_hint(err, "cc -shared -fPIC FILE.c $(pkg-config --cflags norma) -o FILE.so makes one");
}

static int open_object(const char *path, const struct nr_plugin **table, void **object, struct nr_error *err)
{
	*object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!*object) return system_refuses(path, err);
	*table = dlsym(*object, "nr_plugin");
	struct nr_error why = { 0 };
	char text[1024];
	if (!*table) {
		refuse(path, err, NR_EFORMAT, "it has no symbol nr_plugin");
		nr_hint(err, "its source should end with NR_PLUGIN(...), see norma/plugin.h");
	} else if (nr_register(*table, &why)) {
		char hint[sizeof why.hint];
		snprintf(hint, sizeof hint, "%s", why.hint);
		why.hint[0] = 0;
		/* "cannot register: it has ..." of a whole table says nothing that "cannot load" does not */
		refuse(path, err, why.code, *why.subject ? nr_error_text(&why, text, sizeof text) : why.detail);
		if (*hint) nr_hint(err, "%s", hint);
	}
	if (err->code) dlclose(*object);
	return err->code;
}

static int load(char *path, struct nr_error *err)
{
	char sum[DIGITS + 1];
	void *object;
	const struct nr_plugin *table = NULL;
	if (nr_checksum_file(path, NR_SHA256, sum, err)) return err->code;
	if (with_sum(sum)) return NR_OK;
	if (n_files == MAX_FILES) return refuse(path, err, NR_ELIMIT, "there are too many");
	if (open_object(path, &table, &object, err)) return err->code;
	char *kept = strdup(path), *digits = strdup(sum);
	if (!kept || !digits) {
		free(kept);
		free(digits);
		return refuse(path, err, NR_EMEMORY, "out of memory");
	}
	struct nr_plugin_file *f = &files[n_files++];
	f->path = kept, f->sha256 = digits, f->table = table;
	return NR_OK;
}

int nr_plugin_load(const char *path, struct nr_error *err)
{
	struct nr_error own = { 0 };
	if (!err) err = &own;
	char *whole = realpath(path, NULL);
	if (!whole) return refuse(path, err, NR_EIO, strerror(errno));
	const int code = load(whole, err);
	free(whole);
	return code;
}

/* ---- those that a file names ---------------------------------------------------------------------------------------------- */

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static int changed(const char *path, const char *yaml, const char *then, const char *now, struct nr_error *err)
{
	nr_fail(err, NR_EVALUE, "the plug-in is not the one of the run", path, "%s has sha256 %.12s..., this file %.12s...",
		yaml, then, now);
	return nr_hint(err, "restore it, or add --allow-changed-plugins");
}

/* One with a checksum: that of a run. */
static int load_recorded(const char *path, const char *sum, const char *yaml, struct nr_error *err)
{
	char now[DIGITS + 1];
	if (with_sum(sum)) return NR_OK;
	for (int i = 0; i < n_files; i++) {
		if (strcmp(base_of(files[i].path), base_of(path)) != 0) continue;
		return may_change ? NR_OK : changed(files[i].path, yaml, sum, files[i].sha256, err);
	}
	if (access(path, F_OK)) {
		refuse(path, err, NR_EIO, strerror(errno));
		return nr_hint(err, "%s needs it: if it is elsewhere, add --plugin PATH (sha256 %.12s...)", yaml, sum);
	}
	if (nr_checksum_file(path, NR_SHA256, now, err)) return err->code;
	if (strcmp(now, sum) != 0 && !may_change) return changed(path, yaml, sum, now, err);
	return nr_plugin_load(path, err);
}

static int load_item(const char *text, const char *yaml, struct nr_arena *arena, struct nr_error *err)
{
	static const char mark[] = " sha256=";
	char *path = nr_arena_strdup(arena, text), *sum = NULL;
	for (char *s = path; s && (s = strstr(s, mark)); s++) sum = s;
	if (sum) *sum = 0, sum += sizeof mark - 1;
	if (path && *path != '/') path = nr_arena_printf(arena, "%.*s%s", (int)(base_of(yaml) - yaml), yaml, path);
	if (!path) return refuse(text, err, NR_EMEMORY, "out of memory");
	return sum ? load_recorded(path, sum, yaml, err) : nr_plugin_load(path, err);
}

static int load_all(const struct nr_yaml_node *n, const char *yaml, struct nr_arena *arena, struct nr_error *err)
{
	const int64_t count = n->kind == NR_YAML_LIST ? n->count : n->kind == NR_YAML_NULL ? 0 : 1;
	for (int64_t i = 0; i < count; i++) {
		const struct nr_yaml_node *item = n->kind == NR_YAML_LIST ? n->item[i] : n;
		if (item->kind != NR_YAML_VALUE) {
			nr_fail(err, NR_EFORMAT, "cannot read", yaml, "line %lld: 'plugins' should be a list of paths",
				(long long)item->line);
			return nr_hint(err, "as `plugins: [./my_norm.so]`");
		}
		if (load_item(item->text, yaml, arena, err)) return err->code;
	}
	return NR_OK;
}

int nr_plugins_read(const char *yaml, struct nr_error *err)
{
	struct nr_error own = { 0 }, ignored = { 0 };
	if (!err) err = &own;
	struct nr_arena *arena = nr_arena_make();
	struct nr_yaml_errors *errors = arena ? nr_arena_alloc(arena, sizeof *errors) : NULL;
	struct nr_yaml_tree tree;
	size_t size = 0;
	int code = errors ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot read", yaml, "out of memory");
	const char *text = code ? NULL : nr_yaml_load(yaml, &size, arena, err);
	/* Broken YAML is for whoever reads the rest of it to say. */
	const bool read = text && !nr_yaml_tree(&tree, text, size, yaml, arena, errors, &ignored);
	const struct nr_yaml_node *n = read ? nr_yaml_value(tree.root, "plugins") : NULL;
	if (n) load_all(n, yaml, arena, err);
	code = err->code;
	nr_arena_free(arena);
	return code;
}

void nr_plugins_yaml(struct nr_str *s)
{
	for (int i = 0; i < n_files; i++) {
		nr_str_add(s, i ? ", \"" : "plugins: [\"");
		for (const char *c = files[i].path; *c; c++) nr_str_printf(s, strchr("\"\\", *c) ? "\\%c" : "%c", *c);
		nr_str_printf(s, " sha256=%s\"", files[i].sha256);
	}
	if (n_files) nr_str_add(s, "]\n");
}
