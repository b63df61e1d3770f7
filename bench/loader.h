/* norma bench loader: samples per second of the data loader. */
#ifndef NR_BENCH_LOADER_H
#define NR_BENCH_LOADER_H

#include "bench.h"

int bench_loader(const struct bench_options *, int threads, struct nr_error *);

#endif
