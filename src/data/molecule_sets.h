/* Data sets of graphs: the molecules behind a source. */
#ifndef NR_MOLECULE_SETS_H
#define NR_MOLECULE_SETS_H

#include "data/molecules.h"
#include "norma/data.h"

/* The set that the source opened; its kind must be NR_MOLECULES. */
const struct nr_molecules *nr_source_molecules(const struct nr_source *);
/* Which graph of that set is sample i of a split. */
int64_t nr_source_graph(const struct nr_source *, enum nr_split, int64_t i);

#endif
