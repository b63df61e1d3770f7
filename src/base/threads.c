/* How long an idle thread spins before it sleeps, and where threads may run.
 *
 * libgomp's default is several milliseconds at every barrier: when another process holds a core, each of a step's
 * hundreds of regions then lasts a scheduler slice, and a step takes ten times as long. Sleeping at once costs 40 us per
 * region on a quiet machine. A short spin has neither fault (docs/performance.md). libgomp reads the setting before
 * main, so the program starts itself once more with it. */
#include "base/threads.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "norma/real.h"

#define SPINS "2000" /* about 0.1 ms */

static void add_place(cpu_set_t *set, int place)
{
	const int n = omp_get_place_num_procs(place);
	int *id = n > 0 ? malloc((size_t)n * sizeof *id) : NULL;
	if (!id) return;
	omp_get_place_proc_ids(place, id);
	for (int i = 0; i < n; i++)
		if (id[i] >= 0 && id[i] < CPU_SETSIZE) CPU_SET((size_t)id[i], set);
	free(id);
}

int nr_threads_cpus(cpu_set_t *set)
{
	CPU_ZERO(set);
	for (int i = 0; i < omp_get_num_places(); i++) add_place(set, i);
	if (!CPU_COUNT(set) && sched_getaffinity(0, sizeof *set, set)) CPU_ZERO(set);
	return CPU_COUNT(set);
}

/* Declared for users in norma/norma.h, the umbrella, which no file of the library includes. */
NR_API void nr_bound_spin(char *const argv[]);

void nr_bound_spin(char *const argv[])
{
	const char *preload = getenv("LD_PRELOAD");
	cpu_set_t all;
	if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY")) return;      /* the user's choice, or ours already */
	if (preload && strstr(preload, "vgpreload")) return;                    /* valgrind would lose sight of us */
	if (setenv("GOMP_SPINCOUNT", SPINS, 1)) return;
	if (nr_threads_cpus(&all)) sched_setaffinity(0, sizeof all, &all);      /* a new program keeps what the thread has */
	execv("/proc/self/exe", argv);
}
