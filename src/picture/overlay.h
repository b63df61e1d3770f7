/* Classes of pixels as colours over a picture. */
#ifndef NR_OVERLAY_H
#define NR_OVERLAY_H

#include "norma/picture.h"

/* A colour for class k where the data have none. */
void nr_class_colour(int32_t k, uint8_t rgb[3]);
/* The data's own colours, or those. */
void nr_class_colours(const uint8_t (*own)[3], int32_t classes, uint8_t (*out)[3]);
/* share of the class's colour, the rest is the picture in grey; pixels without a class stay as they are.
 * A map of another size is read at the nearest place. */
int nr_overlay(const struct nr_picture *, const struct nr_picture *map, const uint8_t (*colour)[3], int32_t classes, double share,
	struct nr_picture *out, struct nr_error *);

#endif
