/* The section of classes, from the classes.json of runs that classify: how well each class is told, and which are taken for which. */
#ifndef NR_CLASS_FIGURES_H
#define NR_CLASS_FIGURES_H

#include "report/arms.h"

/* Nothing if no run has one. */
void nr_section_classes(struct nr_str *, const struct nr_arms *, struct nr_arena *);

#endif
