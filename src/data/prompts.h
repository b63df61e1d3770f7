/* Texts that describe classes: every name in every template. Radford et al. 2021, arXiv:2103.00020, section 3.1.4. */
#ifndef NR_PROMPTS_H
#define NR_PROMPTS_H

#include <stdint.h>

#include "norma/err.h"

struct nr_arena;

struct nr_prompts {
	int64_t classes, templates;
	const char **text;                  /* (classes,templates) */
	const char **name;                  /* (classes) */
};
/* Names of the classes, unless a file has others, one a line; "_" is read as a blank. A file of templates has one a line, with {} in the
 * place of the name; without one there is "a photo of a {}.". All in the arena; files may be NULL or "". what: the data set, for
 * messages. */
int nr_prompts_make(struct nr_prompts *, const char *what, char *const *class_name, int64_t classes, const char *names,
	const char *templates, struct nr_arena *, struct nr_error *);

#endif
