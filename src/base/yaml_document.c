/* A YAML document and the places of its errors: see yaml_document.h. */
#include "base/yaml_document.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

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
static const char *source_line(const struct nr_yaml_document *r, size_t line)
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
static struct nr_yaml_error *report(struct nr_yaml_document *r, yaml_mark_t mark)
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

struct nr_yaml_error *nr_yaml_complain(struct nr_yaml_document *r, yaml_mark_t mark, const char *fmt, ...)
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

yaml_node_t *nr_yaml_at(struct nr_yaml_document *r, int id)
{
	return yaml_document_get_node(&r->doc, id);
}

const char *nr_yaml_scalar(const yaml_node_t *n)
{
	return (const char *)n->data.scalar.value;
}

/* A key or value with a zero byte inside would be cut short unseen. */
bool nr_yaml_is_text(const yaml_node_t *n)
{
	return n && n->type == YAML_SCALAR_NODE && strlen(nr_yaml_scalar(n)) == n->data.scalar.length;
}

bool nr_yaml_is_plain(const yaml_node_t *n)
{
	return n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

bool nr_yaml_is_null(const yaml_node_t *n)
{
	return nr_yaml_is_text(n) && nr_yaml_is_plain(n) &&
		(!*nr_yaml_scalar(n) || !strcmp(nr_yaml_scalar(n), "~") || !strcmp(nr_yaml_scalar(n), "null"));
}

const char *nr_yaml_kind_text(const yaml_node_t *n)
{
	if (n->type == YAML_MAPPING_NODE)
		return "a mapping";
	return n->type == YAML_SEQUENCE_NODE ? "a list" : "a value";
}

static void broken(struct nr_yaml_document *r, const yaml_parser_t *p)
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
		nr_yaml_complain(r, mark, "%s", problem);
	} else if (p->context) {
		nr_yaml_complain(r, p->problem_mark, "%s, %s (line %zu)", problem, p->context,
			 p->context_mark.line + 1);
	} else {
		nr_yaml_complain(r, p->problem_mark, "%s", problem);
	}
}

/* libyaml's time grows with the square of the depth: bound it before the document is built. */
static bool too_deep(struct nr_yaml_document *r)
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
			nr_yaml_complain(r, event.start_mark, "nested deeper than %d levels", NR_YAML_MAX_DEPTH);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&p);
	return deep;
}

/* Builds r->doc, to be deleted by the caller if true. */
bool nr_yaml_document_load(struct nr_yaml_document *r)
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
		nr_yaml_complain(r, (yaml_mark_t){ 0 }, "a configuration of %zu bytes, at most %d are accepted",
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
			nr_yaml_complain(r, root->start_mark,
				"a second document starts here, but only one is allowed");
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

int nr_yaml_summary(const struct nr_yaml_errors *all, struct nr_error *err)
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
