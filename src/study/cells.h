/* The cells of a study's table, as texts, for every format. */
#ifndef NR_CELLS_H
#define NR_CELLS_H

#include "base/str.h"
#include "study/results.h"

enum { NR_CELL_TEXT = 96 };
struct nr_study_cells {
	int64_t rows, columns;                  /* row 0: titles; column 0: the arms */
	char (*text)[NR_CELL_TEXT];
	const char **key;                       /* (columns) arm, n, metric, ...; a further metric's is its name */
};

bool nr_cells_make(struct nr_study_cells *, const struct nr_summary *);       /* false: out of memory */
void nr_cells_release(struct nr_study_cells *);
const char *nr_cell_at(const struct nr_study_cells *, int64_t row, int64_t column);
/* How the table is to be read; one sentence a line, each after `bullet`. */
void nr_summary_legend(const struct nr_summary *, struct nr_str *, const char *bullet);

#endif
