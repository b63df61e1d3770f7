/* A YAML document as a tree in an arena: see yaml.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/yaml_document.h"

static int64_t length(const yaml_node_t *n)
{
	if (n->type == YAML_SEQUENCE_NODE) return n->data.sequence.items.top - n->data.sequence.items.start;
	return n->type == YAML_MAPPING_NODE ? n->data.mapping.pairs.top - n->data.mapping.pairs.start : 0;
}

/* Where keys were met: places of pairs + 1, found by hash; a power of two of slots, at most half of them full. */
struct keys { int64_t *slot; size_t mask; };

static bool keys_make(struct keys *k, int64_t count, struct nr_arena *arena)
{
	size_t slots = 16;
	while (slots < 2 * (size_t)count) slots *= 2;
	*k = (struct keys){ nr_arena_alloc(arena, slots * sizeof *k->slot), slots - 1 };
	return k->slot;
}

/* The place + 1 of the same key before, or 0 and it is remembered. */
static int64_t keys_meet(struct keys *k, struct nr_yaml_document *d, const yaml_node_pair_t *pair, int64_t i)
{
	const char *text = nr_yaml_scalar(nr_yaml_at(d, pair[i].key));
	uint64_t hash = 0xcbf29ce484222325u;
	for (const char *c = text; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
	size_t at = (size_t)(hash ^ hash >> 32) & k->mask;
	for (; k->slot[at]; at = (at + 1) & k->mask)
		if (!strcmp(nr_yaml_scalar(nr_yaml_at(d, pair[k->slot[at] - 1].key)), text)) return k->slot[at];
	k->slot[at] = i + 1;
	return 0;
}

static bool good_key(struct nr_yaml_document *d, struct keys *keys, const yaml_node_t *map, int64_t i)
{
	const yaml_node_pair_t *pair = map->data.mapping.pairs.start;
	const yaml_node_t *key = nr_yaml_at(d, pair[i].key);
	if (!nr_yaml_is_text(key)) {
		nr_yaml_complain(d, key->start_mark, "a key should be text, not %s", nr_yaml_kind_text(key));
		return false;
	}
	const int64_t before = keys_meet(keys, d, pair, i);
	if (before) nr_yaml_complain(d, key->start_mark, "key '%.100s' is given twice, first in line %zu", nr_yaml_scalar(key),
		nr_yaml_at(d, pair[before - 1].key)->start_mark.line + 1);
	return !before;
}

/* The node's place in `all` is its number in the document, so that aliases share it and loops end. */
static bool fill(struct nr_yaml_document *d, struct nr_yaml_node *all, struct nr_yaml_node *to, const yaml_node_t *from)
{
	const int64_t n = length(from);
	const yaml_mark_t mark = from->start_mark;
	*to = (struct nr_yaml_node){ .line = (int64_t)mark.line + 1, .column = (int64_t)mark.column + 1, .text = "" };
	if (from->type == YAML_SCALAR_NODE) {
		to->kind = nr_yaml_is_null(from) ? NR_YAML_NULL : NR_YAML_VALUE;
		if (!nr_yaml_is_text(from)) nr_yaml_complain(d, from->start_mark, "text with a zero byte");
		else if (to->kind == NR_YAML_VALUE) to->text = nr_arena_strdup(d->arena, nr_yaml_scalar(from));
		return to->text;
	}
	const struct nr_yaml_node **item = nr_arena_alloc(d->arena, (size_t)(2 * n + 1) * sizeof *item);
	struct keys keys = { 0 };
	if (!item || (from->type == YAML_MAPPING_NODE && !keys_make(&keys, n, d->arena))) return false;
	const struct nr_yaml_node **key = item + n;
	to->kind = from->type == YAML_MAPPING_NODE ? NR_YAML_MAP : NR_YAML_LIST;
	for (int64_t i = 0; i < n && !d->errors->more; i++) {
		const bool map = to->kind == NR_YAML_MAP;
		if (map && !good_key(d, &keys, from, i)) continue;
		if (map) key[to->count] = &all[from->data.mapping.pairs.start[i].key];
		item[to->count++] = &all[map ? from->data.mapping.pairs.start[i].value : from->data.sequence.items.start[i]];
	}
	to->key = key;
	to->item = item;
	return true;
}

int nr_yaml_tree(struct nr_yaml_tree *t, const char *text, size_t size, const char *name, struct nr_arena *arena,
		 struct nr_yaml_errors *errors, struct nr_error *err)
{
	*errors = (struct nr_yaml_errors){ .file = nr_arena_strdup(arena, name) };
	*t = (struct nr_yaml_tree){ .text = text, .size = size, .arena = arena, .errors = errors };
	struct nr_yaml_document d = { .text = text, .size = size, .name = name, .arena = arena, .errors = errors };
	if (!errors->file) return nr_fail(err, NR_EMEMORY, "cannot read", name, "out of memory");
	if (!nr_yaml_document_load(&d))
		return errors->count ? nr_yaml_summary(errors, err) : nr_fail(err, NR_EMEMORY, "cannot read", name, "out of memory");
	const yaml_node_t *first = d.doc.nodes.start;
	const int64_t n = d.doc.nodes.top - first;
	struct nr_yaml_node *all = nr_arena_alloc(arena, (size_t)(n + 1) * sizeof *all);
	bool good = all;
	for (int64_t i = 0; i < n && good && !errors->more; i++) good = fill(&d, all, &all[i + 1], &first[i]);  /* ids begin at 1 */
	t->root = good && n ? &all[1] : NULL;
	yaml_document_delete(&d.doc);
	if (!good) return nr_fail(err, NR_EMEMORY, "cannot read", name, "out of memory");
	return nr_yaml_tree_done(t, err);
}

const struct nr_yaml_node *nr_yaml_value(const struct nr_yaml_node *map, const char *key)
{
	for (int64_t i = 0; map && map->kind == NR_YAML_MAP && i < map->count; i++)
		if (!strcmp(map->key[i]->text, key)) return map->item[i];
	return NULL;
}

void nr_yaml_tree_complain(struct nr_yaml_tree *t, const struct nr_yaml_node *at, const char *hint, const char *fmt, ...)
{
	struct nr_yaml_document d = { .text = t->text, .size = t->size, .arena = t->arena, .errors = t->errors };
	const yaml_mark_t mark = { .line = at ? (size_t)at->line - 1 : 0, .column = at ? (size_t)at->column - 1 : 0 };
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	struct nr_yaml_error *e = nr_yaml_complain(&d, mark, "%s", text);
	if (e && hint && *hint) e->hint = nr_arena_strdup(t->arena, hint);
}

int nr_yaml_tree_done(const struct nr_yaml_tree *t, struct nr_error *err)
{
	return t->errors->count ? nr_yaml_summary(t->errors, err) : NR_OK;
}
