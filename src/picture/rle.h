/* Masks of objects as lengths of runs, as COCO keeps them: pixels in columns, from top to bottom and left to right, first a run of zeros
 * (perhaps empty), then one of ones, and so on. Polygons, boxes, merged masks and IoU give the runs and the numbers that the reference
 * (pycocotools) gives. */
#ifndef NR_RLE_H
#define NR_RLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "norma/err.h"

struct nr_arena;
struct nr_str;

struct nr_rle { int32_t h, w; int64_t runs; uint32_t *run; };  /* (runs), in one allocation with the struct */

/* All that make one return NULL after an error. The caller frees it; NULL is fine. */
void nr_rle_free(struct nr_rle *);
struct nr_rle *nr_rle_keep(const struct nr_rle *, struct nr_arena *);        /* a copy that is the arena's */
/* Runs must fill the picture exactly. */
struct nr_rle *nr_rle_of_runs(int32_t h, int32_t w, const uint32_t *run, int64_t runs, struct nr_error *);
struct nr_rle *nr_rle_of_mask(int32_t h, int32_t w, const uint8_t *mask, struct nr_error *);   /* (h,w) by rows; not 0: inside */
void nr_rle_to_mask(const struct nr_rle *, uint8_t *mask);                                       /* (h,w) by rows, 0 and 1 */
/* COCO's text of the runs. */
struct nr_rle *nr_rle_of_string(int32_t h, int32_t w, const char *text, size_t size, struct nr_error *);
void nr_rle_to_string(const struct nr_rle *, struct nr_str *);
/* xy (points,2); points outside the picture are cut off at its edges. */
struct nr_rle *nr_rle_of_polygon(int32_t h, int32_t w, const double *xy, int64_t points, struct nr_error *);
struct nr_rle *nr_rle_of_box(int32_t h, int32_t w, const double box[4], struct nr_error *);    /* x y w h */
/* Union, or what all have in common, of n > 0 masks of one size. */
struct nr_rle *nr_rle_merge(const struct nr_rle *const *, int64_t n, bool common, struct nr_error *);

int64_t nr_rle_area(const struct nr_rle *);
void nr_rle_box(const struct nr_rle *, double box[4]);          /* x y w h; zeros of an empty mask */
/* A crowd's is the share of the detection that lies in it. Masks of two sizes: -1. */
double nr_rle_iou(const struct nr_rle *detection, const struct nr_rle *truth, bool crowd);
double nr_box_iou_xywh(const double detection[4], const double truth[4], bool crowd);

#endif
