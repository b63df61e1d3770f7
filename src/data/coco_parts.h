/* Pieces of COCO's JSON that annotations and detections share. A failure's detail says what is wrong with the entry. */
#ifndef NR_COCO_PARTS_H
#define NR_COCO_PARTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "picture/rle.h"

#define nr_coco_wrong(err, ...) nr_fail(err, NR_EFORMAT, "cannot use an entry", NULL, __VA_ARGS__)

bool nr_coco_whole(const json_t *, int64_t *to);        /* a whole number, perhaps written as 3.0 */
int nr_coco_box(const json_t *, double xywh[4], struct nr_error *);
/* Polygons, boxes among them (lists of 4 numbers), or runs, as numbers or as text; the caller frees the mask. */
int nr_coco_mask(const json_t *, int32_t h, int32_t w, struct nr_rle **, struct nr_error *);

#endif
