/* What a paper claims in words, and where it contradicts itself, as recipes/published.yaml has it: shown beside published numbers. */
#ifndef NR_STUDY_CLAIMS_H
#define NR_STUDY_CLAIMS_H

#include "base/yaml.h"
#include "study/published.h"

/* Fills p->claims with all of the paper's and p->conflicts with those that concern the table with this label ("Table 1, left": those of
 * Table 1) and those of no table. -1: out of memory. */
int nr_claims_read(struct nr_published *p, const struct nr_yaml_node *paper, const char *label, struct nr_arena *);

#endif
