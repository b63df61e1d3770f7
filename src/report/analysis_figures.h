/* What norma analyze measured, as figures: layers by depth, gradients, attention, similarity of layers, maps of samples. */
#ifndef NR_ANALYSIS_FIGURES_H
#define NR_ANALYSIS_FIGURES_H

#include "report/arms.h"

/* A section; nothing if no run was analysed. */
void nr_analysis_figures(struct nr_str *, const struct nr_arms *, struct nr_arena *);

#endif
