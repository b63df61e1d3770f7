/* DTN's lambda by head and layer over the training, mean and variance apart: Figure 8 of its paper. */
#ifndef NR_REPORT_LAMBDA_H
#define NR_REPORT_LAMBDA_H

#include "report/arms.h"

/* Nothing if no run has a lambda.csv, which --microscope writes for models with DTN. */
void nr_lambda_section(struct nr_str *, const struct nr_arms *, struct nr_arena *);

#endif
