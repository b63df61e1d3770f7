/* COCO's scores of detections as tables: what `norma score` and `norma eval` of a detector print. */
#ifndef NR_SCORE_TABLES_H
#define NR_SCORE_TABLES_H

#include "analysis/coco_eval.h"

/* Of each class, unless there are very many, then of all. */
void cli_print_objects(const struct nr_coco_result *, char *const *names);

#endif
