/* YAML by option tables: see yaml.h. */
#include "base/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/args.h"
#include "base/mem.h"
#include "base/str.h"

struct reader {
	const char *text;
	size_t size;
	const char *name;
	const struct nr_yaml_section *sections;
	struct nr_arena *arena;
	struct nr_yaml_errors *errors;
	yaml_document_t doc;
};

/* Bytes of the line break at s (libyaml's idea of one: CR LF NEL LS PS), 0 if there is none. */
static size_t line_break(const char *s, size_t left)
{
	if (left >= 2 && s[0] == '\r' && s[1] == '\n')
		return 2;
	if (left >= 1 && (s[0] == '\r' || s[0] == '\n'))
		return 1;
	if (left >= 2 && memcmp(s, "\xC2\x85", 2) == 0)
		return 2;
	if (left >= 3 && (memcmp(s, "\xE2\x80\xA8", 3) == 0 || memcmp(s, "\xE2\x80\xA9", 3) == 0))
		return 3;
	return 0;
}

/* The source line (from 0), cut to what a terminal shows. */
static const char *source_line(const struct reader *r, size_t line)
{
	size_t at = 0, n;
	while (line && at < r->size) {
		n = line_break(r->text + at, r->size - at);
		line -= n > 0;
		at += n ? n : 1;
	}
	size_t end = at;
	while (end < r->size && end - at < 160 && !line_break(r->text + end, r->size - end))
		end++;
	n = nr_utf8_span(r->text + at, end - at);
	char *copy = nr_arena_printf(r->arena, "%.*s", (int)n, r->text + at);
	for (char *p = copy; p && *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7F)
			*p = *p == '\t' ? ' ' : '?';
	return copy;
}

/* Room for one more error at this place, or NULL at the limit. */
static struct nr_yaml_error *report(struct reader *r, yaml_mark_t mark)
{
	struct nr_yaml_errors *all = r->errors;
	if (all->count == NR_YAML_MAX_ERRORS) {
		all->more = true;
		return NULL;
	}
	struct nr_yaml_error *e = &all->item[all->count++];
	*e = (struct nr_yaml_error){ (int64_t)mark.line + 1, (int64_t)mark.column + 1, "", NULL,
				     source_line(r, mark.line) };
	return e;
}

__attribute__((format(printf, 3, 4)))
static struct nr_yaml_error *complain(struct reader *r, yaml_mark_t mark, const char *fmt, ...)
{
	struct nr_yaml_error *e = report(r, mark);
	char buf[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(buf, sizeof buf, fmt, ap);
	va_end(ap);
	for (char *p = buf; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7F)
			*p = '?';  /* "\e[2J" can be a key */
	if (e)
		e->text = nr_arena_strdup(r->arena, buf);
	return e;
}

static yaml_node_t *node(struct reader *r, int id)
{
	return yaml_document_get_node(&r->doc, id);
}

static const char *scalar(const yaml_node_t *n)
{
	return (const char *)n->data.scalar.value;
}

/* A key or value with a zero byte inside would be cut short unseen. */
static bool is_text(const yaml_node_t *n)
{
	return n && n->type == YAML_SCALAR_NODE && strlen(scalar(n)) == n->data.scalar.length;
}

static bool is_plain(const yaml_node_t *n)
{
	return n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static bool is_null(const yaml_node_t *n)
{
	return is_text(n) && is_plain(n) &&
		(!*scalar(n) || !strcmp(scalar(n), "~") || !strcmp(scalar(n), "null"));
}

static const char *kind(const yaml_node_t *n)
{
	if (n->type == YAML_MAPPING_NODE)
		return "a mapping";
	return n->type == YAML_SEQUENCE_NODE ? "a list" : "a value";
}

static const char *expected(const struct nr_option *o)
{
	switch (o->type) {
	case NR_TBOOL: return "true or false";
	case NR_TINT: return "a whole number";
	case NR_TFLOAT: return "a number";
	case NR_TENUM: return "one of its choices";
	case NR_TSTRING: return "a text";
	case NR_TLIST: return "a text or a list of texts";
	}
	return "a value";
}

static bool set_scalar(struct reader *r, const struct nr_option *o, void *conf, const yaml_node_t *value)
{
	struct nr_yaml_error *e;
	if (!is_text(value)) {
		complain(r, value->start_mark, "'%s' should be %s, not %s", o->name, expected(o),
			 value->type == YAML_SCALAR_NODE ? "a text with a zero byte" : kind(value));
		return false;
	}
	if (is_null(value)) {
		complain(r, value->start_mark, "'%s' has no value, it should be %s", o->name, expected(o));
		return false;
	}
	bool literal = o->type == NR_TBOOL || o->type == NR_TINT || o->type == NR_TFLOAT;
	if (literal && !is_plain(value)) {
		e = complain(r, value->start_mark, "'%s' should be %s, not a text", o->name, expected(o));
		if (e)
			e->hint = "remove the quotes";
		return false;
	}
	struct nr_error err = { 0 };
	if (nr_option_set(o, conf, o->name, scalar(value), r->arena, &err) == NR_OK)
		return true;
	e = complain(r, value->start_mark, "%s '%s': %.300s", err.what, err.subject, err.detail);
	if (e && err.hint[0])
		e->hint = nr_arena_strdup(r->arena, err.hint);
	return false;
}

static void set_option(struct reader *r, const struct nr_option *o, void *conf, const yaml_node_t *value)
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
		if (!set_scalar(r, o, conf, node(r, *i)) && r->errors->more)
			return;
}

/* The section that does know this key, to say where it belongs. */
static const char *home_of(const struct reader *r, const char *key, const struct nr_yaml_section *but)
{
	for (const struct nr_yaml_section *s = r->sections; s->options; s++)
		if (s != but && nr_option_find(s->options, key))
			return s->key ? s->key : "";
	return NULL;
}

/* where NULL: the top of the file */
static void unknown_key(struct reader *r, const struct nr_yaml_section *section, const char *where,
			const yaml_node_t *key)
{
	const char *name = scalar(key), *home = home_of(r, name, section);
	struct nr_near near = { .word = name };
	for (const struct nr_option *o = section ? section->options : NULL; o && o->name; o++)
		nr_near_try(&near, o->name);
	for (const struct nr_yaml_section *s = r->sections; !where && s->options; s++)
		if (s->key)
			nr_near_try(&near, s->key);
	struct nr_yaml_error *e = complain(r, key->start_mark, "unknown key '%.100s'%s%s%s", name,
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

static const struct nr_yaml_section *find_section(const struct reader *r, const char *key)
{
	for (const struct nr_yaml_section *s = r->sections; s->options; s++)
		if (key ? s->key && strcmp(s->key, key) == 0 : !s->key)
			return s;
	return NULL;
}

/* Remembers where each key was first met; a second time is an error. */
static bool repeated(struct reader *r, const yaml_node_t *key, int64_t *first_line)
{
	if (*first_line) {
		complain(r, key->start_mark, "key '%s' is given twice, first in line %lld", scalar(key),
			 (long long)*first_line);
		return true;
	}
	*first_line = (int64_t)key->start_mark.line + 1;
	return false;
}

static int64_t *lines_for(struct reader *r, const struct nr_option *table)
{
	size_t n = 0;
	while (table && table[n].name)
		n++;
	return nr_arena_alloc(r->arena, (n + 1) * sizeof(int64_t));
}

static void require(struct reader *r, const struct nr_yaml_section *s, yaml_mark_t mark)
{
	const struct nr_option *o = s->options;
	while ((o = nr_option_missing(o, s->conf))) {
		complain(r, mark, "key '%s' is missing%s%s%s", o->name, s->key ? " in '" : "",
			 s->key ? s->key : "", s->key ? "'" : "");
		o++;
	}
}

static bool good_key(struct reader *r, const yaml_node_t *key)
{
	if (!is_text(key))
		complain(r, key->start_mark, "a key should be a text, not %s", kind(key));
	return is_text(key);
}

/* The keys below `section:`. */
static void read_section(struct reader *r, const struct nr_yaml_section *s, const yaml_node_t *map)
{
	if (is_null(map))
		return;
	if (map->type != YAML_MAPPING_NODE) {
		complain(r, map->start_mark, "'%s' should be a mapping of keys, not %s", s->key, kind(map));
		return;
	}
	int64_t *lines = lines_for(r, s->options);
	const yaml_node_pair_t *p = map->data.mapping.pairs.start;
	for (; lines && p < map->data.mapping.pairs.top && !r->errors->more; p++) {
		const yaml_node_t *key = node(r, p->key);
		if (!good_key(r, key))
			continue;
		const struct nr_option *o = nr_option_find(s->options, scalar(key));
		if (!o)
			unknown_key(r, s, s->key, key);
		else if (!repeated(r, key, &lines[o - s->options]))
			set_option(r, o, s->conf, node(r, p->value));
	}
}

static void read_top(struct reader *r, const yaml_node_t *map)
{
	const struct nr_yaml_section *top = find_section(r, NULL);
	size_t n = 0;
	while (r->sections[n].options)
		n++;
	int64_t *lines = lines_for(r, top ? top->options : NULL);
	int64_t *section_lines = nr_arena_alloc(r->arena, (n + 1) * sizeof *section_lines);
	const yaml_node_pair_t *p = map->data.mapping.pairs.start;
	for (; lines && section_lines && p < map->data.mapping.pairs.top && !r->errors->more; p++) {
		const yaml_node_t *key = node(r, p->key), *value = node(r, p->value);
		if (!good_key(r, key))
			continue;
		const struct nr_yaml_section *s = find_section(r, scalar(key));
		const struct nr_option *o = top && !s ? nr_option_find(top->options, scalar(key)) : NULL;
		if (s && !repeated(r, key, &section_lines[s - r->sections]))
			read_section(r, s, value);
		else if (o && !repeated(r, key, &lines[o - top->options]))
			set_option(r, o, top->conf, value);
		else if (!s && !o)
			unknown_key(r, top, NULL, key);
	}
}

static void broken(struct reader *r, const yaml_parser_t *p)
{
	const char *problem = p->problem ? p->problem : "it is not YAML";
	if (p->error == YAML_MEMORY_ERROR)
		problem = "out of memory";
	if (p->error == YAML_READER_ERROR) {  /* libyaml gives no mark here, only a byte offset */
		yaml_mark_t mark = { 0 };
		for (size_t at = 0; at < p->problem_offset && at < r->size;) {
			size_t n = line_break(r->text + at, r->size - at);
			mark.line += n > 0;
			mark.column = n ? 0 : mark.column + ((r->text[at] & 0xC0) != 0x80);
			at += n ? n : 1;
		}
		complain(r, mark, "%s", problem);
	} else if (p->context) {
		complain(r, p->problem_mark, "%s, %s (line %zu)", problem, p->context,
			 p->context_mark.line + 1);
	} else {
		complain(r, p->problem_mark, "%s", problem);
	}
}

/* libyaml's time grows with the square of the depth: bound it before the document is built. */
static bool too_deep(struct reader *r)
{
	yaml_parser_t p;
	if (!yaml_parser_initialize(&p))
		return false;
	yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p, (const unsigned char *)r->text, r->size);
	bool deep = false, end = false;
	for (int depth = 0; !deep && !end;) {
		yaml_event_t event;
		if (!yaml_parser_parse(&p, &event))
			break;  /* the document's loader meets it again and reports it */
		depth += event.type == YAML_MAPPING_START_EVENT || event.type == YAML_SEQUENCE_START_EVENT;
		depth -= event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT;
		deep = depth > NR_YAML_MAX_DEPTH;
		end = event.type == YAML_STREAM_END_EVENT;
		if (deep)
			complain(r, event.start_mark, "nested deeper than %d levels", NR_YAML_MAX_DEPTH);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&p);
	return deep;
}

/* Builds r->doc, to be deleted by the caller if true. */
static bool load(struct reader *r)
{
	size_t valid = nr_utf8_span(r->text, r->size);
	if (valid != r->size) {
		broken(r,
		       &(yaml_parser_t){ .error = YAML_READER_ERROR,
					 .problem = "it is not UTF-8",
					 .problem_offset = valid });
		return false;
	}
	if (r->size > NR_YAML_MAX_BYTES) {
		complain(r, (yaml_mark_t){ 0 }, "a configuration of %zu bytes, at most %d are accepted",
			 r->size, NR_YAML_MAX_BYTES);
		return false;
	}
	yaml_parser_t p;
	if (too_deep(r) || !yaml_parser_initialize(&p))
		return false;
	yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p, (const unsigned char *)r->text, r->size);
	bool good = yaml_parser_load(&p, &r->doc);
	if (good) {
		yaml_document_t second;
		bool more = yaml_parser_load(&p, &second);
		const yaml_node_t *root = more ? yaml_document_get_root_node(&second) : NULL;
		if (!more)
			broken(r, &p);
		else if (root)
			complain(r, root->start_mark, "a second document begins here: only one is read");
		good = more && !root;
		if (more)
			yaml_document_delete(&second);
		if (!good)
			yaml_document_delete(&r->doc);
	} else {
		broken(r, &p);
	}
	yaml_parser_delete(&p);
	return good;
}

static int summarize(const struct nr_yaml_errors *all, struct nr_error *err)
{
	const struct nr_yaml_error *e = &all->item[0];
	char others[64] = "";
	if (all->count > 1)
		snprintf(others, sizeof others, "; and %d%s more error%s", all->count - 1,
			 all->more ? " or" : "", all->count > 2 ? "s" : "");
	nr_fail(err, NR_EFORMAT, "cannot read", all->file, "line %lld, column %lld: %s%s", (long long)e->line,
		(long long)e->column, e->text ? e->text : "out of memory", others);
	if (e->hint)
		nr_hint(err, "%s", e->hint);
	return NR_EFORMAT;
}

int nr_yaml_parse(const char *text, size_t size, const char *name, const struct nr_yaml_section *sections,
		  struct nr_arena *arena, struct nr_yaml_errors *errors, struct nr_error *err)
{
	*errors = (struct nr_yaml_errors){ .file = nr_arena_strdup(arena, name) };
	struct reader r = { .text = text,
			    .size = size,
			    .name = name,
			    .sections = sections,
			    .arena = arena,
			    .errors = errors };
	if (!errors->file)
		return nr_fail(err, NR_EMEMORY, "cannot read", name, "out of memory");
	if (!load(&r))
		return errors->count ? summarize(errors, err)
				     : nr_fail(err, NR_EMEMORY, "cannot read", name, "out of memory");
	const yaml_node_t *root = yaml_document_get_root_node(&r.doc);
	if (root && root->type == YAML_MAPPING_NODE)
		read_top(&r, root);
	else if (root && !is_null(root))
		complain(&r, root->start_mark, "a configuration is a mapping of keys, not %s", kind(root));
	yaml_mark_t start = { 0 };
	for (const struct nr_yaml_section *s = sections; s->options && !errors->more; s++)
		require(&r, s, root ? root->start_mark : start);
	yaml_document_delete(&r.doc);
	return errors->count ? summarize(errors, err) : NR_OK;
}

int nr_yaml_read(const char *path, const struct nr_yaml_section *sections, struct nr_arena *arena,
		 struct nr_yaml_errors *errors, struct nr_error *err)
{
	size_t size;
	*errors = (struct nr_yaml_errors){ .file = path };
	char *text = nr_yaml_load(path, &size, arena, err);
	return text ? nr_yaml_parse(text, size, path, sections, arena, errors, err) : NR_EIO;
}

static const yaml_node_t *value_of(struct reader *r, const yaml_node_t *map, const char *key)
{
	if (!map || map->type != YAML_MAPPING_NODE)
		return NULL;
	for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
	     p++) {
		const yaml_node_t *k = node(r, p->key);
		if (is_text(k) && strcmp(scalar(k), key) == 0)
			return node(r, p->value);
	}
	return NULL;
}

const char *nr_yaml_peek(const char *text, size_t size, const char *section, const char *key,
			 struct nr_arena *arena)
{
	struct nr_yaml_errors errors = { 0 };
	struct reader r = { .text = text, .size = size, .name = "", .arena = arena, .errors = &errors };
	if (!load(&r))
		return NULL;
	const yaml_node_t *n = yaml_document_get_root_node(&r.doc);
	if (section)
		n = value_of(&r, n, section);
	n = value_of(&r, n, key);
	const char *copy = is_text(n) && !is_null(n) ? nr_arena_strdup(arena, scalar(n)) : NULL;
	yaml_document_delete(&r.doc);
	return copy;
}
