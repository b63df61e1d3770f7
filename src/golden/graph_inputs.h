#ifndef GOLDEN_GRAPH_INPUTS_H
#define GOLDEN_GRAPH_INPUTS_H

#include "golden/check.h"

/* That preprocessing makes the model's inputs of in.graph.*, exactly; files without them pass. */
void golden_check_graph_inputs(struct golden_case *);

#endif
