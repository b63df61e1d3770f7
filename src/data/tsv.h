/* Rows of labelled text: a number, one or two texts, perhaps more columns that are not read; separated by tabs, without quoting, UTF-8.
 * Texts may be empty. Lines end with \n or \r\n. */
#ifndef NR_TSV_H
#define NR_TSV_H

#include <stdbool.h>
#include <stddef.h>

#include "norma/err.h"

enum {
	NR_TSV_TEXTS = 2,
	NR_TSV_LIMIT = 1 << 30,             /* bytes of a file: those of the public sets are below 10 MB */
};

struct nr_tsv_form {
	int texts;                          /* 1 or 2 */
	bool more;                          /* further columns are allowed */
	bool whole;                         /* the number must be whole */
	double low, high;                   /* its range */
};
struct nr_tsv {
	int64_t count;
	double *value;                      /* (count) */
	const char **text[NR_TSV_TEXTS];    /* (count); NULL: the form has no such column */
	void *memory;                       /* holds all of them */
};

/* name is used in messages, which give the line. Empty lines and a file without rows are errors. */
int nr_tsv_parse(struct nr_tsv *, const void *bytes, size_t size, const struct nr_tsv_form *, const char *name, struct nr_error *);
/* path, or path.gz if only that is there. */
int nr_tsv_read(struct nr_tsv *, const char *path, const struct nr_tsv_form *, struct nr_error *);
void nr_tsv_release(struct nr_tsv *);

#endif
