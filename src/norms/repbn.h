/* repbn as a part of prepbn. */
#ifndef NR_NORMS_REPBN_H
#define NR_NORMS_REPBN_H

#include <stdbool.h>

#include "norma/norm.h"

struct nr_repbn { float eps, momentum, eta; bool sync; };
/* While *steps < warm its running statistics stand still; steps NULL: they never do. */
nr_t *nr_repbn(struct nr_net *, nr_t *x, const struct nr_repbn *, nr_t *steps, int64_t warm);

#endif
