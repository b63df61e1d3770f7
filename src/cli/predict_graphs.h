/* norma predict on molecules: SMILES in, what a model of graphs says of each. */
#ifndef NR_PREDICT_GRAPHS_H
#define NR_PREDICT_GRAPHS_H

#include "cli.h"
#include "norma/infer.h"

struct predict_graphs { enum nr_molecule_outputs outputs; char *const *name; int64_t names; bool json; };     /* names: of the tasks */
/* Lines `SMILES` or `SMILES NAME`: the arguments, or those of standard input if there is none. */
int cli_predict_graphs(struct cli *, const struct predict_graphs *, const struct nr_weights *, char *const *line, int64_t count);

#endif
