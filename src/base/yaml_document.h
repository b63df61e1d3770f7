/* The inside of the YAML readers: a libyaml document with its text, so that errors can show their line. */
#ifndef NR_YAML_DOCUMENT_H
#define NR_YAML_DOCUMENT_H

#include <yaml.h>

#include "base/yaml.h"

struct nr_yaml_document {
	const char *text;
	size_t size;
	const char *name;
	const struct nr_yaml_section *sections;  /* of the reader by option tables */
	struct nr_arena *arena;
	struct nr_yaml_errors *errors;
	yaml_document_t doc;
};

/* Builds doc, to be deleted by the caller if true; else the errors say why (none: out of memory). */
bool nr_yaml_document_load(struct nr_yaml_document *);
/* One more error at this place; NULL at the limit. */
struct nr_yaml_error *nr_yaml_complain(struct nr_yaml_document *, yaml_mark_t, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* err gets the first error and the number of the others; returns NR_EFORMAT. */
int nr_yaml_summary(const struct nr_yaml_errors *, struct nr_error *err);

yaml_node_t *nr_yaml_at(struct nr_yaml_document *, int id);
const char *nr_yaml_scalar(const yaml_node_t *);
bool nr_yaml_is_text(const yaml_node_t *), nr_yaml_is_plain(const yaml_node_t *), nr_yaml_is_null(const yaml_node_t *);
const char *nr_yaml_kind_text(const yaml_node_t *);  /* "a mapping" */

#endif
