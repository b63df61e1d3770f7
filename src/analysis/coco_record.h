/* Scores of detections as JSON: what `norma score --json` prints, a run's detections.json holds and the report draws. */
#ifndef NR_COCO_RECORD_H
#define NR_COCO_RECORD_H

#include <jansson.h>

#include "analysis/coco_eval.h"

struct nr_str;

/* {"AP": .., ..., "classes": [{"name", "objects", "detections", "AP", "AP50", "AP75", "AR100", "precision": [101] at IoU .5}, ..],
 * "precision": [10][101] means over classes}. Values that are not known are null. */
json_t *nr_coco_json(const struct nr_coco_result *, char *const *names);
/* {"split", "pictures", "boxes", "masks"} as a line; masks may be NULL. */
int nr_coco_record(struct nr_str *, const struct nr_coco_result *boxes, const struct nr_coco_result *masks, char *const *names,
	const char *split, int64_t pictures, struct nr_error *);

#endif
