/* Boxes, masks and names of objects drawn onto their picture. */
#ifndef NR_MARK_H
#define NR_MARK_H

#include "norma/picture.h"
#include "picture/rle.h"

struct nr_mark_of {
	double xywh[4];
	const struct nr_rle *mask;          /* of the picture's size; NULL: none */
	int32_t label;                      /* chooses the colour */
	const char *text;                   /* at the upper left corner; NULL: none. Other letters than ASCII's are shown as '?' */
	bool faint;                         /* only its mask and a dotted box: a crowd */
};
/* `to` becomes the picture with n marks, the last on top, each pixel as a square of `zoom` pixels; 0: so many that the longer side has at
 * least 384. */
int nr_picture_mark(const struct nr_picture *from, const struct nr_mark_of *, int64_t n, int32_t zoom, struct nr_picture *to,
	struct nr_error *);

#endif
