/* Strings: nearest matches, whole-string numbers, UTF-8 and a growing string. Nothing here depends on the
 * locale. */
#ifndef NR_STR_H
#define NR_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nr_arena;
struct nr_option;

/* The nearest of many candidates. Offer each with nr_near_try; best stays NULL while none is near enough to
 * suggest.
 *   struct nr_near near = { .word = name }; */
struct nr_near { const char *word, *best; size_t distance; };

void nr_near_try(struct nr_near *, const char *candidate);
const char *nr_nearest(const char *word, const char *const *list);               /* list ends with NULL */
const char *nr_nearest_option(const char *word, const struct nr_option *table);  /* a row's name, or NULL */
/* Damerau-Levenshtein distance (neighbours swapped count once), case and '-' against '_' ignored; SIZE_MAX if
 * either string is longer than 128 bytes. */
size_t nr_distance(const char *a, const char *b);

/* The whole string must be the number: no spaces, no rest. Integers are decimal; false on overflow. */
bool nr_parse_int(const char *, int64_t *);
bool nr_parse_double(const char *, double *);  /* decimal, also inf and nan */
/* Fewest digits that read back as the same value (as float if single); returns buf. */
const char *nr_double_text(double, bool single, char *buf, size_t size);

bool nr_utf8_valid(const char *, size_t size);
/* Bytes of the longest valid beginning; equal to size if all is valid. */
size_t nr_utf8_span(const char *, size_t size);
/* Terminal columns: 0 for combining marks, 2 for wide East Asian letters and emoji. */
size_t nr_utf8_width(const char *);

/* A growing string; all zero is empty. When memory runs out, failed is set, the content stays as it was
 * before and further appends do nothing. */
struct nr_str { char *text; size_t len, cap; bool failed; };

void nr_str_add(struct nr_str *, const char *);
void nr_str_add_n(struct nr_str *, const char *, size_t);
void nr_str_fill(struct nr_str *, char, size_t count);
void nr_str_printf(struct nr_str *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *nr_str_text(const struct nr_str *);  /* never NULL */
char *nr_str_take(struct nr_str *);              /* the text, now the caller's to free(); NULL after failed */
char *nr_str_keep(struct nr_str *, struct nr_arena *);   /* the text, now in the arena, and the string is empty; likewise */
void nr_str_release(struct nr_str *);

#endif
