/* Facts about this machine and this process, and settings that cost speed. */
#ifndef NR_MACHINE_H
#define NR_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench.h"

struct machine {
	char cpu[128], libraries[512];
	long cpus, allowed;             /* online; those of this process's affinity */
	double quota;                   /* CPUs that the control group grants; 0: no limit */
	long l1, l2, l3;                /* bytes; 0: not known */
	int64_t memory, available;      /* bytes */
	char huge_pages[16];            /* always, madvise, never; "" if not known */
	int threads;
	struct bench_limits limits;     /* peak of multiply-adds, copy; 0: not measured */
	double sgemm, foreign;          /* GFLOP/s, CPUs that others used meanwhile */
};
void machine_read(struct machine *);
void machine_measure(struct machine *);         /* about 0.2 s */

enum { MACHINE_MAX_WARNINGS = 16 };
struct warnings { char text[MACHINE_MAX_WARNINGS][256]; int count; };
void machine_check(const struct machine *, struct warnings *);

#endif
