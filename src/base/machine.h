/* What this machine has and this process may use of it. */
#ifndef NR_MACHINE_H
#define NR_MACHINE_H

#include <stdint.h>

struct nr_machine {
	char cpu[128], libraries[512];
	long cpus, allowed;             /* online; those of this process's affinity */
	double quota;                   /* CPUs that the control group grants; 0: no limit */
	long l1, l2, l3;                /* bytes; 0: not known */
	int64_t memory, available;      /* bytes */
	char huge_pages[16];            /* always, madvise, never; "" if not known */
	int threads;
};
void nr_machine_read(struct nr_machine *);

#endif
