/* modules.json lists what a text passes: Transformer, Pooling, perhaps Normalize (to length 1) and others; the folder of
 * Pooling has a config.json with a flag for each kind, or the kind by name. */
#include "models/sentence_modules.h"

#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

static bool is_kind(const char *type, const char *kind)     /* "sentence_transformers.models.Pooling" */
{
	const char *dot = strrchr(type, '.');
	return !strcmp(dot ? dot + 1 : type, kind);
}

static void add(struct nr_str *kinds, const char *kind) { nr_str_printf(kinds, "%s%s", kinds->len ? " and " : "", kind); }

/* Kinds of pooling, "cls and mean". */
static int read_pooling(const char *path, struct nr_str *kinds, struct nr_error *err)
{
	static const char flag[] = "pooling_mode_";
	const char *key;
	json_t *value, *config = nr_json_load(path, err);
	if (!config) return err->code;
	const char *named = json_string_value(json_object_get(config, "pooling_mode"));
	if (named) add(kinds, named);
	else json_object_foreach(config, key, value)
		if (!strncmp(key, flag, strlen(flag)) && json_is_true(value)) {
			const char *kind = key + strlen(flag);
			add(kinds, !strcmp(kind, "mean_tokens") ? "mean" : !strcmp(kind, "cls_token") ? "cls" : kind);
		}
	json_decref(config);
	return kinds->len ? NR_OK : nr_fail(err, NR_EFORMAT, "cannot read", path,
		"it does not name a kind of pooling");
}

static int read_modules(const json_t *modules, const char *path, const char *folder, struct nr_arena *arena, struct nr_str *kinds,
	bool *normalize, struct nr_error *err)
{
	size_t i;
	const json_t *module;
	json_array_foreach(modules, i, module) {
		const char *type = json_string_value(json_object_get(module, "type"));
		const char *inner = json_string_value(json_object_get(module, "path"));
		if (!type || !inner) return nr_fail(err, NR_EFORMAT, "cannot read", path, "module %zu has no type or no path", i);
		if (is_kind(type, "Transformer")) continue;
		if (is_kind(type, "Normalize")) {
			*normalize = true;
			continue;
		}
		if (!is_kind(type, "Pooling")) {
			const char *dot = strrchr(type, '.');
			nr_str_printf(kinds, ", then %s", dot ? dot + 1 : type);
			continue;
		}
		const char *config = nr_arena_printf(arena, "%s%s/config.json", folder, inner);
		if (!config) return nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
		if (read_pooling(config, kinds, err)) return err->code;
	}
	return kinds->len ? NR_OK : nr_fail(err, NR_EFORMAT, "cannot read", path, "it has no module Pooling");
}

int nr_sentence_pooler(const char **pooler, const char *weights, struct nr_arena *arena, struct nr_error *err)
{
	const char *slash = strrchr(weights, '/');
	const char *folder = nr_arena_printf(arena, "%.*s", slash ? (int)(slash - weights) + 1 : 0, weights);
	const char *path = folder ? nr_arena_printf(arena, "%smodules.json", folder) : NULL;
	struct nr_str kinds = { 0 };
	bool normalize = false;
	*pooler = NULL;
	if (!path) return nr_fail(err, NR_EMEMORY, "cannot read", weights, "out of memory");
	if (access(path, F_OK)) return NR_OK;
	json_t *modules = nr_json_load(path, err);
	int code = modules ? read_modules(modules, path, folder, arena, &kinds, &normalize, err) : (int)err->code;
	const char *text = nr_str_text(&kinds);
	if (!code) *pooler = nr_arena_printf(arena, "%s%s", !strcmp(text, "mean") ? "avg" : !strcmp(text, "cls")
		? "cls_before_pooler" : text,
		normalize ? "+normalize" : "");
	if (!code && (kinds.failed || !*pooler)) code = nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	nr_str_release(&kinds);
	json_decref(modules);
	return code;
}
