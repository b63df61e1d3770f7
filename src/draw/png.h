/* Pixels as a PNG file in memory, for pictures inside a drawing. */
#ifndef NR_PNG_H
#define NR_PNG_H

#include <stdint.h>

#include "base/str.h"

/* w x h pixels of RGB, each drawn as a square of `zoom` pixels, so that no viewer blurs them; as <image href="data:..."> of
 * the size side_w x side_h at x, y. Nothing if there are no pixels. */
struct nr_raster { int64_t w, h; const uint8_t *rgb; };
void nr_svg_image(struct nr_str *, const struct nr_raster *, double x, double y, double side_w, double side_h);
/* The file's bytes. */
void nr_png_add(struct nr_str *, const struct nr_raster *, int64_t zoom);

#endif
