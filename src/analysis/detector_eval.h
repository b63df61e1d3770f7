/* A detector on all pictures of a split, scored as COCO does. */
#ifndef NR_DETECTOR_EVAL_H
#define NR_DETECTOR_EVAL_H

#include "analysis/coco_eval.h"
#include "infer/detector.h"

struct nr_detector_found {                  /* of all pictures; the objects are the source's */
	const struct nr_objects **truth;
	int64_t images, count, room;
	struct nr_detection *item;
};
struct nr_detector_score { struct nr_coco_result box, mask; };      /* mask: without classes if none were scored */
/* masks: also those. Returns 1 when the watch stopped it. */
int nr_detector_look(struct nr_detector_runner *, const struct nr_object_view *, const struct nr_evaluation *, bool masks,
	struct nr_detector_found *, struct nr_error *);
int nr_detector_score(const struct nr_detector_found *, int32_t classes, bool masks, struct nr_detector_score *, struct nr_error *);
void nr_detector_score_release(struct nr_detector_score *);
void nr_detector_found_release(struct nr_detector_found *);

#endif
