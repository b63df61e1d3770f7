/* Gradient norms by layer, recorded in training (norma train --gradients): Figure 2 of Dual PatchNorm. */
#ifndef NR_REPORT_LAYER_GRADIENTS_H
#define NR_REPORT_LAYER_GRADIENTS_H

#include "report/arms.h"

/* Charts over depth and over time; how many. */
int nr_layer_gradients(struct nr_str *, const struct nr_arms *, struct nr_arena *);

#endif
