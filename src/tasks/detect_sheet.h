/* A sheet of evaluated pictures: what is in them, and below it what was found. */
#ifndef NR_DETECT_SHEET_H
#define NR_DETECT_SHEET_H

#include "analysis/detector_eval.h"

/* The first pictures of an evaluation, which `found` has in its order. */
int nr_detect_sheet_draw(const struct nr_source *, enum nr_split, const int32_t *index, const struct nr_detector_found *, const char *path,
	struct nr_error *);

#endif
