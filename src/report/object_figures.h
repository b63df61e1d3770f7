/* The section of objects, from the objects.json of runs that detect (analysis/coco_record.h): average precision of boxes and masks, by size
 * and class, and precision at every recall. */
#ifndef NR_OBJECT_FIGURES_H
#define NR_OBJECT_FIGURES_H

#include "report/arms.h"

/* Nothing if no run has one. */
void nr_section_objects(struct nr_str *, const struct nr_arms *, struct nr_arena *);

#endif
