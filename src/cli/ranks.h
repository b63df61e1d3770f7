/* Commands on the ranks of an MPI launcher: the first one speaks. */
#ifndef NR_CLI_RANKS_H
#define NR_CLI_RANKS_H

#include "cli.h"
#include "graph/comm.h"

/* For a command that measures: *out NULL: this process is alone. The other ranks fall silent. */
int cli_ranks_open(struct cli *, struct nr_comm **out);
/* The end of the ranks. After an error that only this one knows it ends the others; it does not return then. */
void cli_ranks_close(const struct cli *, struct nr_comm *);

#endif
