/* Arms that are combined, "S/16, DPN" with "S/32, DPN" and so on, as one chart: over what comes before the last comma (architectures as
 * in Figure 1 of Dual PatchNorm, values of lambda as in Figure 5 of SepNorm), with a line for each name behind it. */
#ifndef NR_STUDY_FAMILIES_H
#define NR_STUDY_FAMILIES_H

#include "report/study_read.h"

/* The difference to the baseline if that is one of the names behind the comma, else the metric itself. Nothing for studies whose arms are
 * not combined. */
void nr_study_families(struct nr_str *, const struct nr_study_read *, struct nr_arena *);

#endif
