/* The best boxes of a picture out of several groups (levels of a pyramid, classes), without those that overlap a better one of their
 * group: R-CNN's proposals and detections. Ties: the earlier group, then the lower index. */
#ifndef NR_SELECT_H
#define NR_SELECT_H

#include <stddef.h>

#include "base/real.h"

struct nr_decode {
	double std[4], limit;           /* offsets are multiplied with std; the logarithms of sizes are at most limit */
	int both_sides;                 /* and at least -limit */
};
/* Offset from a box (x1 y1 x2 y2), clipped to a picture of h x w. */
void nr_box_decode(const struct nr_decode *, const real box[4], const real offset[4], double h, double w, real out[4]);

struct nr_select {
	int groups;
	int64_t most;                   /* candidates of a group */
	real *box, *score;              /* (groups,most,4) (groups,most) */
	int32_t *from;                  /* (groups,most): the caller's */
	int32_t *keep, *order;          /* (groups,most) each: scratch */
	int32_t *count, *next;          /* (groups) */
};
size_t nr_select_bytes(int groups, int64_t most);
struct nr_select nr_select_at(void *memory, int groups, int64_t most);   /* nr_select_bytes of it */
void nr_select_start(struct nr_select *, int group);                     /* a group without candidates */
/* Adds a candidate unless its sides are 0 or less than min_size. */
void nr_select_add(struct nr_select *, int group, const real box[4], real score, int32_t from, double min_size);
void nr_select_nms(struct nr_select *, int group, double threshold);
/* After nr_select_nms of all: the best rows over all groups; place[i] is group * most + number of candidate. How many. */
int64_t nr_select_best(struct nr_select *, int64_t rows, int32_t *place);

#endif
