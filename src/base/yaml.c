/* YAML by option tables: see yaml.h. */
#include "base/yaml.h"

#include <string.h>

#include "base/args.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml_document.h"

static const char *expected(const struct nr_option *o)
{
	switch (o->type) {
	case NR_TBOOL: return "true or false";
	case NR_TINT: return "a whole number";
	case NR_TFLOAT: return "a number";
	case NR_TENUM: return "one of its choices";
	case NR_TSTRING: return "a text";
	case NR_TLIST: return "text or a list of texts";
	}
	return "a value";
}

static bool set_scalar(struct nr_yaml_document *r, const struct nr_option *o, void *conf, const yaml_node_t *value)
{
	struct nr_yaml_error *e;
	if (!nr_yaml_is_text(value)) {
		nr_yaml_complain(r, value->start_mark, "'%s' should be %s, not %s", o->name, expected(o),
			 value->type == YAML_SCALAR_NODE ? "text with a zero byte" : nr_yaml_kind_text(value));
		return false;
	}
	if (nr_yaml_is_null(value)) {
		nr_yaml_complain(r, value->start_mark, "'%s' has no value, it should be %s", o->name, expected(o));
		return false;
	}
	bool literal = o->type == NR_TBOOL || o->type == NR_TINT || o->type == NR_TFLOAT;
	if (literal && !nr_yaml_is_plain(value)) {
		e = nr_yaml_complain(r, value->start_mark, "'%s' should be %s, not text", o->name, expected(o));
		if (e)
			e->hint = "remove the quotes";
		return false;
	}
	struct nr_error err = { 0 };
	if (nr_option_set(o, conf, o->name, nr_yaml_scalar(value), r->arena, &err) == NR_OK)
		return true;
	e = nr_yaml_complain(r, value->start_mark, "%s '%s': %.300s", err.what, err.subject, err.detail);
	if (e && err.hint[0])
		e->hint = nr_arena_strdup(r->arena, err.hint);
	return false;
}

static void set_option(struct nr_yaml_document *r, const struct nr_option *o, void *conf, const yaml_node_t *value)
{
	if (o->type != NR_TLIST) {
		set_scalar(r, o, conf, value);
		return;
	}
	memset((char *)conf + o->offset, 0, o->size);
	if (value->type != YAML_SEQUENCE_NODE) {
		set_scalar(r, o, conf, value);
		return;
	}
	for (const yaml_node_item_t *i = value->data.sequence.items.start; i < value->data.sequence.items.top;
	     i++)
		if (!set_scalar(r, o, conf, nr_yaml_at(r, *i)) && r->errors->more)
			return;
}

/* The section that does know this key, to say where it belongs. */
static const char *home_of(const struct nr_yaml_document *r, const char *key, const struct nr_yaml_section *but)
{
	for (const struct nr_yaml_section *s = r->sections; s->options; s++)
		if (s != but && nr_option_find(s->options, key))
			return s->key ? s->key : "";
	return NULL;
}

/* where NULL: the top of the file */
static void unknown_key(struct nr_yaml_document *r, const struct nr_yaml_section *section, const char *where,
			const yaml_node_t *key)
{
	const char *name = nr_yaml_scalar(key), *home = home_of(r, name, section);
	struct nr_near near = { .word = name };
	for (const struct nr_option *o = section ? section->options : NULL; o && o->name; o++)
		nr_near_try(&near, o->name);
	for (const struct nr_yaml_section *s = r->sections; !where && s->options; s++)
		if (s->key)
			nr_near_try(&near, s->key);
	struct nr_yaml_error *e = nr_yaml_complain(r, key->start_mark, "unknown key '%.100s'%s%s%s", name,
					   where ? " in '" : "", where ? where : "", where ? "'" : "");
	if (!e)
		return;
	if (strcmp(name, "<<") == 0)
		e->hint = "merge keys are not supported: repeat the keys";
	else if (near.best && (near.distance == 0 || !home))
		e->hint = nr_arena_printf(r->arena, "did you mean '%s'?", near.best);
	else if (home)
		e->hint = *home ? nr_arena_printf(r->arena, "it belongs under '%s:'", home)
				: "it belongs at the top";
}

static const struct nr_yaml_section *find_section(const struct nr_yaml_document *r, const char *key)
{
	for (const struct nr_yaml_section *s = r->sections; s->options; s++)
		if (key ? s->key && strcmp(s->key, key) == 0 : !s->key)
			return s;
	return NULL;
}

/* Remembers where each key was first met; a second time is an error. */
static bool repeated(struct nr_yaml_document *r, const yaml_node_t *key, int64_t *first_line)
{
	if (*first_line) {
		nr_yaml_complain(r, key->start_mark, "key '%s' is given twice, first in line %lld", nr_yaml_scalar(key),
			 (long long)*first_line);
		return true;
	}
	*first_line = (int64_t)key->start_mark.line + 1;
	return false;
}

static int64_t *lines_for(struct nr_yaml_document *r, const struct nr_option *table)
{
	size_t n = 0;
	while (table && table[n].name)
		n++;
	return nr_arena_alloc(r->arena, (n + 1) * sizeof(int64_t));
}

static void require(struct nr_yaml_document *r, const struct nr_yaml_section *s, yaml_mark_t mark)
{
	const struct nr_option *o = s->options;
	while ((o = nr_option_missing(o, s->conf))) {
		nr_yaml_complain(r, mark, "key '%s' is missing%s%s%s", o->name, s->key ? " in '" : "",
			 s->key ? s->key : "", s->key ? "'" : "");
		o++;
	}
}

static bool good_key(struct nr_yaml_document *r, const yaml_node_t *key)
{
	if (!nr_yaml_is_text(key))
		nr_yaml_complain(r, key->start_mark, "a key should be text, not %s", nr_yaml_kind_text(key));
	return nr_yaml_is_text(key);
}

/* The keys below `section:`. */
static void read_section(struct nr_yaml_document *r, const struct nr_yaml_section *s, const yaml_node_t *map)
{
	if (nr_yaml_is_null(map))
		return;
	if (map->type != YAML_MAPPING_NODE) {
		nr_yaml_complain(r, map->start_mark, "'%s' should be a mapping of keys, not %s", s->key, nr_yaml_kind_text(map));
		return;
	}
	int64_t *lines = lines_for(r, s->options);
	const yaml_node_pair_t *p = map->data.mapping.pairs.start;
	for (; lines && p < map->data.mapping.pairs.top && !r->errors->more; p++) {
		const yaml_node_t *key = nr_yaml_at(r, p->key);
		if (!good_key(r, key))
			continue;
		const struct nr_option *o = nr_option_find(s->options, nr_yaml_scalar(key));
		if (!o)
			unknown_key(r, s, s->key, key);
		else if (!repeated(r, key, &lines[o - s->options]))
			set_option(r, o, s->conf, nr_yaml_at(r, p->value));
	}
}

static void read_top(struct nr_yaml_document *r, const yaml_node_t *map)
{
	const struct nr_yaml_section *top = find_section(r, NULL);
	size_t n = 0;
	while (r->sections[n].options)
		n++;
	int64_t *lines = lines_for(r, top ? top->options : NULL);
	int64_t *section_lines = nr_arena_alloc(r->arena, (n + 1) * sizeof *section_lines);
	const yaml_node_pair_t *p = map->data.mapping.pairs.start;
	for (; lines && section_lines && p < map->data.mapping.pairs.top && !r->errors->more; p++) {
		const yaml_node_t *key = nr_yaml_at(r, p->key), *value = nr_yaml_at(r, p->value);
		if (!good_key(r, key))
			continue;
		if (!strcmp(nr_yaml_scalar(key), "plugins"))   /* loaded before, for they may bring rows: nr_plugins_read */
			continue;
		const struct nr_yaml_section *s = find_section(r, nr_yaml_scalar(key));
		const struct nr_option *o = top && !s ? nr_option_find(top->options, nr_yaml_scalar(key)) : NULL;
		if (s && !repeated(r, key, &section_lines[s - r->sections]))
			read_section(r, s, value);
		else if (o && !repeated(r, key, &lines[o - top->options]))
			set_option(r, o, top->conf, value);
		else if (!s && !o)
			unknown_key(r, top, NULL, key);
	}
}

int nr_yaml_parse(const char *text, size_t size, const char *name, const struct nr_yaml_section *sections,
		  struct nr_arena *arena, struct nr_yaml_errors *errors, struct nr_error *err)
{
	*errors = (struct nr_yaml_errors){ .file = nr_arena_strdup(arena, name) };
	struct nr_yaml_document r = { .text = text,
			    .size = size,
			    .name = name,
			    .sections = sections,
			    .arena = arena,
			    .errors = errors };
	if (!errors->file)
		return nr_fail(err, NR_EMEMORY, "cannot read", name, "out of memory");
	if (!nr_yaml_document_load(&r))
		return errors->count ? nr_yaml_summary(errors, err)
				     : nr_fail(err, NR_EMEMORY, "cannot read", name, "out of memory");
	const yaml_node_t *root = yaml_document_get_root_node(&r.doc);
	if (root && root->type == YAML_MAPPING_NODE)
		read_top(&r, root);
	else if (root && !nr_yaml_is_null(root))
		nr_yaml_complain(&r, root->start_mark,
			"a configuration should be a mapping of keys, not %s", nr_yaml_kind_text(root));
	yaml_mark_t start = { 0 };
	for (const struct nr_yaml_section *s = sections; s->options && !errors->more; s++)
		require(&r, s, root ? root->start_mark : start);
	yaml_document_delete(&r.doc);
	return errors->count ? nr_yaml_summary(errors, err) : NR_OK;
}

int nr_yaml_read(const char *path, const struct nr_yaml_section *sections, struct nr_arena *arena,
		 struct nr_yaml_errors *errors, struct nr_error *err)
{
	size_t size;
	*errors = (struct nr_yaml_errors){ .file = path };
	char *text = nr_yaml_load(path, &size, arena, err);
	return text ? nr_yaml_parse(text, size, path, sections, arena, errors, err) : NR_EIO;
}

static const yaml_node_t *value_of(struct nr_yaml_document *r, const yaml_node_t *map, const char *key)
{
	if (!map || map->type != YAML_MAPPING_NODE)
		return NULL;
	for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
	     p++) {
		const yaml_node_t *k = nr_yaml_at(r, p->key);
		if (nr_yaml_is_text(k) && strcmp(nr_yaml_scalar(k), key) == 0)
			return nr_yaml_at(r, p->value);
	}
	return NULL;
}

const char *nr_yaml_peek(const char *text, size_t size, const char *section, const char *key,
			 struct nr_arena *arena)
{
	struct nr_yaml_errors errors = { 0 };
	struct nr_yaml_document r = { .text = text, .size = size, .name = "", .arena = arena, .errors = &errors };
	if (!nr_yaml_document_load(&r))
		return NULL;
	const yaml_node_t *n = yaml_document_get_root_node(&r.doc);
	if (section)
		n = value_of(&r, n, section);
	n = value_of(&r, n, key);
	const char *copy = nr_yaml_is_text(n) && !nr_yaml_is_null(n) ? nr_arena_strdup(arena, nr_yaml_scalar(n)) : NULL;
	yaml_document_delete(&r.doc);
	return copy;
}
