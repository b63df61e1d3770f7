/* For whoever declares a knob: the option table. Flags, YAML keys, help, man pages, completion and the text form (`key=value`) of a
 * configuration all derive from rows of struct nr_option.
 *
 * Example:
 *   struct rms { float eps; };
 *   static const struct nr_option options[] = {
 *           NR_OPT_FLOAT(struct rms, eps, 1e-6, 0, 1, "added to the mean square"),
 *           NR_OPT_END
 *   };
 *   struct rms rms;
 *   struct nr_arena *arena = nr_arena_make();
 *   nr_option_defaults(options, &rms);
 *   if (!nr_option_parse(options, &rms, "eps=1e-5", arena, &err)) printf("eps is %g\n", rms.eps);
 *   nr_arena_free(arena);
 */
#ifndef NORMA_OPTION_H
#define NORMA_OPTION_H

#include "norma/arena.h"
#include "norma/err.h"

enum nr_type { NR_TBOOL, NR_TINT, NR_TFLOAT, NR_TSTRING, NR_TENUM, NR_TLIST };

struct nr_option {
	const char *name;            /* as in `key=value` and YAML; flags turn '_' into '-' */
	enum nr_type type;
	size_t offset;               /* of the field: bool, int64_t, double/float (see size), char *, int32_t (enum), struct nr_list */
	size_t size;                 /* of the field, so that float and double, int32_t and int64_t can both be used */
	const char *text;            /* default as text; NULL: none, the option must be given; "" is an empty string */
	double min, max;             /* inclusive, for numbers */
	const char *const *choices;  /* NR_TENUM: NULL-terminated; the field holds the index */
	const char *metavar;         /* what help shows for the value, NULL: by type */
	const char *help;            /* one line, lower case, no full stop */
	char letter;                 /* short flag, 0: none */
};

/* A repeated option (`--norm ln --norm dtn`), strings owned by the arena that parsed them. */
struct nr_list { char **item; int64_t count; };

#define NR_FIELD_SIZE(S, f) sizeof(((S *)0)->f)
#define NR_OPT_BOOL(S, f, def, help_) \
	{ .name = #f, .type = NR_TBOOL, .offset = offsetof(S, f), .size = NR_FIELD_SIZE(S, f), .text = def, .help = help_ }
#define NR_OPT_INT(S, f, def, lo, hi, help_) \
	{ .name = #f, .type = NR_TINT, .offset = offsetof(S, f), .size = NR_FIELD_SIZE(S, f), .text = #def, .min = lo, \
	  .max = hi, .help = help_ }
#define NR_OPT_FLOAT(S, f, def, lo, hi, help_) \
	{ .name = #f, .type = NR_TFLOAT, .offset = offsetof(S, f), .size = NR_FIELD_SIZE(S, f), .text = #def, .min = lo, \
	  .max = hi, .help = help_ }
#define NR_OPT_STRING(S, f, def, help_) \
	{ .name = #f, .type = NR_TSTRING, .offset = offsetof(S, f), .size = NR_FIELD_SIZE(S, f), .text = def, .help = help_ }
#define NR_OPT_ENUM(S, f, def, choices_, help_) \
	{ .name = #f, .type = NR_TENUM, .offset = offsetof(S, f), .size = NR_FIELD_SIZE(S, f), .text = def, \
	  .choices = choices_, .help = help_ }
#define NR_OPT_LIST(S, f, help_) \
	{ .name = #f, .type = NR_TLIST, .offset = offsetof(S, f), .size = NR_FIELD_SIZE(S, f), .text = "", .help = help_ }
#define NR_OPT_END { .name = NULL }

/* Fills conf with the defaults. Strings point into the table. */
NR_API void nr_option_defaults(const struct nr_option *, void *conf);
NR_API const struct nr_option *nr_option_find(const struct nr_option *, const char *name);
/* Parses text into the field. Unknown names get the nearest match as hint; values are range checked, whole text must parse.
 * Strings are copied into the arena. */
NR_API int nr_option_set(const struct nr_option *, void *conf, const char *name, const char *text, struct nr_arena *, struct nr_error *);
/* "eps=1e-5,affine=0": what follows a norm's name in a plan. Empty text is fine. */
NR_API int nr_option_parse(const struct nr_option *, void *conf, const char *text, struct nr_arena *, struct nr_error *);
/* The value as text that nr_option_set would read back; buf is returned. */
NR_API const char *nr_option_text(const struct nr_option *, const void *conf, char *buf, size_t size);
/* All of them as nr_option_parse reads them: "eps=1e-05,affine=true". NULL when out of memory. */
NR_API const char *nr_options_text(const struct nr_option *, const void *conf, struct nr_arena *);

#endif
