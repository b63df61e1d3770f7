/* Rows of CSV and TSV, cut in place: fields with commas, quotes or line feeds are quoted in CSV; TSV has no quotes. */
#ifndef NR_CELLS_H
#define NR_CELLS_H

#include "norma/err.h"

struct nr_cells { char *at, separator; const char *name; int64_t line; };       /* line: of the row's end; name: for messages */
/* The cells of the next row; how many, or -1. More than `most` are an error. */
int nr_cells_row(struct nr_cells *, char **cell, int most, struct nr_error *);
/* The next row below a header of so many columns, blank lines left out: 1, 0 at the end, or -1; another number of cells is an error. */
int nr_cells_below(struct nr_cells *, char **cell, int most, int columns, struct nr_error *);

#endif
