/* Resize of parts: see resize.c. */
#ifndef NR_RESIZE_H
#define NR_RESIZE_H

#include "picture/picture.h"

struct nr_region { int32_t y, x, h, w; };
/* What nr_resize does, for a view, of whose h x w result only the part (inside of it) is made. box NULL: all of the view. */
int nr_resize_part(struct nr_pixels from, const double box[4], int32_t h, int32_t w, struct nr_region, enum nr_filter,
	struct nr_picture *to, struct nr_resize_scratch *, struct nr_error *);

#endif
