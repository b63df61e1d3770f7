/* COCO's scores of detections: average precision and recall, exactly as pycocotools' COCOeval computes them (crowds, ties, limits and the
 * ignored truth outside a range of areas included). */
#ifndef NR_COCO_EVAL_H
#define NR_COCO_EVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "norma/data.h"
#include "picture/detection.h"

enum { NR_COCO_IOUS = 10, NR_COCO_RECALLS = 101, NR_COCO_AREAS = 4, NR_COCO_LIMITS = 3, NR_COCO_STATS = 12 };
enum nr_coco_stat { NR_AP, NR_AP50, NR_AP75, NR_AP_SMALL, NR_AP_MEDIUM, NR_AP_LARGE, NR_AR1, NR_AR10, NR_AR100, NR_AR_SMALL, NR_AR_MEDIUM,
	NR_AR_LARGE };
extern const char *const nr_coco_stat_names[NR_COCO_STATS];        /* "AP", "AP50", ..., "ARl" */
extern const double nr_coco_ious[NR_COCO_IOUS];                    /* .5, .55, ..., .95 */

struct nr_coco_class {
	int64_t truths, crowds, found;      /* objects that count; crowds; detections */
	double ap, ap50, ap75, ar100;       /* -1: there is no such object */
};
struct nr_coco_result {                     /* -1: no truth of that kind; means leave it out. Limits: of a picture and class */
	double stat[NR_COCO_STATS];
	int32_t classes;
	struct nr_coco_class *class;        /* (classes) */
	double *precision;                  /* (10 IoUs, 101 recalls 0, .01, ..., 1, classes) all areas, limit 100 */
	double *recall;                     /* (10, classes, 4 areas: all, small, medium, large; 3 limits: 1, 10, 100) */
};
void nr_coco_result_release(struct nr_coco_result *);

/* Scores n detections, in any order, of pictures that each occur once in `truth`. masks: IoU of masks instead of boxes. A match with an
 * object whose id is 0 counts as none, as in the reference: number them from 1. */
int nr_coco_eval(const struct nr_objects *const *truth, int64_t images, const struct nr_detection *, int64_t n, int32_t classes, bool masks,
	struct nr_coco_result *, struct nr_error *);

#endif
