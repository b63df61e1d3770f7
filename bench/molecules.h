/* norma bench molecules: molecules per second from SMILES to what Graphormer reads. */
#ifndef NR_BENCH_MOLECULES_H
#define NR_BENCH_MOLECULES_H

#include "bench.h"

int bench_molecules(const struct bench_options *, int threads, struct nr_error *);

#endif
