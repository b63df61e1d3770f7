/* Files of detections, as pycocotools reads and writes them: a list of {"image_id", "category_id", "bbox" or "segmentation", "score"}. */
#ifndef NR_COCO_RESULTS_H
#define NR_COCO_RESULTS_H

#include "data/coco_file.h"
#include "picture/detection.h"

enum nr_coco_scored { NR_COCO_BOXES, NR_COCO_MASKS, NR_COCO_EITHER };      /* EITHER: masks if there are no boxes */
struct nr_coco_results { int64_t count; struct nr_detection *item; bool masks; };  /* masks are its own; are they what is scored? */
void nr_coco_results_release(struct nr_coco_results *);
/* Of pictures and categories of `truth`; others, broken boxes and masks are errors that name the entry. Each must have what
 * is scored. */
int nr_coco_results_read(struct nr_coco_results *, const char *path, const struct nr_coco *truth, enum nr_coco_scored, struct nr_error *);
int nr_coco_results_parse(struct nr_coco_results *, const char *text, size_t size, const char *path, const struct nr_coco *truth,
	enum nr_coco_scored, struct nr_error *);
/* category[label] is the id to write; NULL: label + 1. masks: with masks and without boxes, since pycocotools takes the areas of boxes
 * where it finds some. Written atomically. */
int nr_coco_results_write(const char *path, const struct nr_detection *, int64_t n, const int64_t *category, bool masks, struct nr_error *);

#endif
