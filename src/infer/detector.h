/* Detectors at work: batches of inputs (data/object_view.h) in, boxes and masks of the original pictures out. */
#ifndef NR_INFER_DETECTOR_H
#define NR_INFER_DETECTOR_H

#include "data/object_view.h"
#include "models/detector.h"
#include "norma/infer.h"
#include "picture/detection.h"

struct nr_detector_runner {                 /* all zero: closed */
	const struct nr_detector *of;
	struct nr_net *net;
	struct nr_plan *plan;
	struct nr_detector_graph g;
	int64_t batch;
	uint8_t *mask;                      /* of a whole picture */
	size_t mask_room;
};
/* norms: the plan of backbone and detector. Weights and settings outlive it. */
int nr_detector_runner_open(struct nr_detector_runner *, const struct nr_weights *, const struct nr_detector *, const char *norms,
	int64_t batch, struct nr_error *);
void nr_detector_runner_close(struct nr_detector_runner *);
/* A picture, made by the view, at a place of the batch. */
void nr_detector_runner_put(struct nr_detector_runner *, int64_t place, const float *image, const struct nr_object_sample *);
void nr_detector_runner_run(struct nr_detector_runner *, enum nr_stats);
/* What was found at that place, best first, in a picture of h x w pixels: at most of->keep; how many, or a negative error. masks: with
 * masks, which the caller frees. */
int64_t nr_detector_runner_found(struct nr_detector_runner *, int64_t place, const struct nr_object_sample *, int64_t image_id, int32_t h,
	int32_t w, bool masks, struct nr_detection *, struct nr_error *);

#endif
