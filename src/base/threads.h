/* The CPUs of OpenMP's threads. */
#ifndef NR_THREADS_H
#define NR_THREADS_H

#include <sched.h>

/* The CPUs that the threads of this process may use, and how many. OMP_PROC_BIND has libgomp tie the first thread to one of them before
 * main, so that its affinity tells no more; then they are those of OpenMP's places. */
int nr_threads_cpus(cpu_set_t *);

#endif
