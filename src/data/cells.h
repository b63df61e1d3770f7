/* Rows of CSV and TSV, cut in place: fields with commas, quotes or line feeds are quoted in CSV; TSV has no quotes. */
#ifndef NR_CELLS_H
#define NR_CELLS_H

#include "norma/err.h"

struct nr_cells { char *at, separator; const char *name; int64_t line; };       /* line: of the row's end; name: for messages */
/* The cells of the next row; how many, or -1. More than `most` are an error. */
int nr_cells_row(struct nr_cells *, char **cell, int most, struct nr_error *);

#endif
