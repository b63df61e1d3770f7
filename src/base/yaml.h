/* Configurations: YAML (libyaml) read by option tables. All errors of a file are collected, each with line,
 * column, source line and nearest match; broken YAML is one error.
 *
 *   const struct nr_yaml_section sections[] = {
 *           { NULL, run_options, &run },             keys at the top of the file
 *           { "train", train_options, &train },      keys below `train:`
 *           { 0 }
 *   };
 */
#ifndef NR_YAML_H
#define NR_YAML_H

#include <stdbool.h>

#include "norma/option.h"

struct nr_str;

/* conf already holds defaults (nr_option_defaults). A list given in the file replaces the one in conf. */
struct nr_yaml_section { const char *key; const struct nr_option *options; void *conf; };

enum { NR_YAML_MAX_ERRORS = 20, NR_YAML_MAX_BYTES = 1 << 20, NR_YAML_MAX_DEPTH = 64 };

/* line and column count from 1; column counts characters. Texts live in the arena of the reading call. */
struct nr_yaml_error { int64_t line, column; const char *text, *hint, *source; };

struct nr_yaml_errors {
	const char *file;
	struct nr_yaml_error item[NR_YAML_MAX_ERRORS];
	int count;
	bool more;  /* there were others: reading stopped at the limit */
};

/* Fills the confs, which after an error hold the keys that were right. err gets a summary of one line.
 * Sections and conf must name each key once. Options without default must be in the file or already in
 * conf. */
int nr_yaml_read(const char *path, const struct nr_yaml_section *, struct nr_arena *, struct nr_yaml_errors *,
		 struct nr_error *err);
int nr_yaml_parse(const char *text, size_t size, const char *name, const struct nr_yaml_section *,
		  struct nr_arena *, struct nr_yaml_errors *, struct nr_error *err);
/* One scalar before the schema is known, such as the model's name that picks its option table: `section` NULL
 * is the top. NULL if it is not there or the text is not YAML; nr_yaml_parse then says why. */
const char *nr_yaml_peek(const char *text, size_t size, const char *section, const char *key,
			 struct nr_arena *);
/* The file's text, in the arena, ended by a zero byte not counted in *size; NULL and err on failure. */
char *nr_yaml_load(const char *path, size_t *size, struct nr_arena *, struct nr_error *err);

/* A document as a tree, for files whose form no option table can say (lists of mappings). What an alias names is shared, and
 * may contain itself: walk it as deep as the form goes, not further. */
enum nr_yaml_kind { NR_YAML_NULL, NR_YAML_VALUE, NR_YAML_LIST, NR_YAML_MAP };

struct nr_yaml_node {
	enum nr_yaml_kind kind;
	int64_t line, column;
	const char *text;                         /* of a value; else "" */
	const struct nr_yaml_node *const *key;    /* of a mapping: values, each key once */
	const struct nr_yaml_node *const *item;   /* of a list; a mapping's values */
	int64_t count;
};

struct nr_yaml_tree {
	const struct nr_yaml_node *root;          /* NULL: an empty file */
	const char *text;                         /* the caller's, for the source lines of errors */
	size_t size;
	struct nr_arena *arena;
	struct nr_yaml_errors *errors;
};

/* NR_OK, or err and errors as nr_yaml_parse gives them. */
int nr_yaml_tree(struct nr_yaml_tree *, const char *text, size_t size, const char *name, struct nr_arena *,
		 struct nr_yaml_errors *, struct nr_error *err);
/* The value below a mapping's key, or NULL. */
const struct nr_yaml_node *nr_yaml_value(const struct nr_yaml_node *map, const char *key);
/* One more error, at this node; hint may be NULL. */
void nr_yaml_tree_complain(struct nr_yaml_tree *, const struct nr_yaml_node *, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* NR_OK if there are no errors; else err gets the first and the number of the others. */
int nr_yaml_tree_done(const struct nr_yaml_tree *, struct nr_error *err);

/* As a compiler would print them:
 *   recipe.yaml:3:3: unknown key 'dpeth' in 'model' (did you mean 'depth'?)
 *       3 |   dpeth: 12
 *         |   ^
 */
void nr_yaml_errors_text(const struct nr_yaml_errors *, struct nr_str *);

#endif
