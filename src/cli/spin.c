/* How long an idle thread spins before it sleeps.
 *
 * libgomp's default is several milliseconds at every barrier: when another process holds a core, each of a step's
 * hundreds of regions then lasts a scheduler slice, and a step takes ten times as long. Sleeping at once costs 40 us per
 * region on a quiet machine. A short spin has neither fault (docs/performance.md). libgomp reads the setting before
 * main, so the command starts itself once more with it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define SPINS "2000" /* about 0.1 ms */

void cli_bound_spin(const struct cli *c)
{
	const char *preload = getenv("LD_PRELOAD");
	if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY")) return;      /* the user's choice, or ours already */
	if (preload && strstr(preload, "vgpreload")) return;                    /* valgrind would lose sight of us */
	if (setenv("GOMP_SPINCOUNT", SPINS, 1) == 0) execv("/proc/self/exe", c->argv);
}
