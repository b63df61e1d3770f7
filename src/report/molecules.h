/* The section of molecules, from the predictions.csv of runs on graphs: predictions against targets, and formulas of the molecules that
 * each arm predicts best and worst. Nothing if no run has one. */
#ifndef NR_REPORT_MOLECULES_H
#define NR_REPORT_MOLECULES_H

#include "report/arms.h"

void nr_section_molecules(struct nr_str *, const struct nr_arms *, struct nr_arena *);

#endif
