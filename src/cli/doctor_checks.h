/* How fast this machine is, and settings that cost speed. */
#ifndef NR_DOCTOR_CHECKS_H
#define NR_DOCTOR_CHECKS_H

#include "base/machine.h"
#include "bench/bench.h"

struct doctor_speed {
	struct bench_limits limits;     /* peak of multiply-adds, copy; 0: not measured */
	double sgemm, foreign;          /* GFLOP/s, CPUs that others used meanwhile */
};
void doctor_measure(struct doctor_speed *);     /* about 0.2 s */

enum { DOCTOR_WARNINGS = 16 };
struct doctor_warnings { char text[DOCTOR_WARNINGS][256]; int count; };
void doctor_check(const struct nr_machine *, const struct doctor_speed *, struct doctor_warnings *);

#endif
