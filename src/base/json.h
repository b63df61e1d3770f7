/* JSON: jansson's own types and calls, plus loading with our errors and one object per line. */
#ifndef NR_JSON_H
#define NR_JSON_H

#include <jansson.h>
#include <stdio.h>

#include "norma/err.h"

struct nr_str;

/* Duplicate keys are errors. The caller owns the result (json_decref); NULL and err on failure, with line and
 * column. */
json_t *nr_json_load(const char *path, struct nr_error *err);
/* All numbers are reals: for files with whole numbers beyond 64 bits. */
json_t *nr_json_load_reals(const char *path, struct nr_error *err);
json_t *nr_json_parse(const char *text, size_t size, const char *name, struct nr_error *err);

/* json_dumps, all of the text or NULL: jansson's own leaves words out when its buffer cannot grow. The caller frees it. */
char *nr_json_dump(const json_t *, size_t flags);
/* For a program, once: where jansson gets no memory, the memory counts as failed (base/mem.h), and what this thread built since its last
 * nr_json_dump is not written by the next one, which returns NULL: a value that nobody saw fail would be missing in it. */
void nr_json_watch_memory(void);

/* An object as one compact line with a newline, in one write. Takes the reference of object, so that
 * `nr_json_line(f, json_pack("{s:i, s:f}", "step", step, "loss", loss), &err)` leaks nothing; a NULL object
 * (numbers that are not finite have no JSON form) is an error. Numbers get 17 digits: doubles read back as
 * they were. */
int nr_json_line(FILE *, json_t *object, struct nr_error *err);
int nr_json_add(struct nr_str *, json_t *object, struct nr_error *err);

#endif
