/* The last section of the report: data, what batch statistics saw, machines, commands, and what is missing. */
#ifndef NR_REPORT_RUNS_H
#define NR_REPORT_RUNS_H

#include "report/arms.h"

/* Facts, machines and commands alone, without the section about them. */
void nr_report_origin(struct nr_str *, const struct nr_arms *, struct nr_arena *);
void nr_report_runs(struct nr_str *, const struct nr_arms *, struct nr_arena *);

#endif
