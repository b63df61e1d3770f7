/* What the picture files share; see norma/picture.h. */
#ifndef NR_PICTURE_H
#define NR_PICTURE_H

#include "norma/picture.h"

enum { NR_PICTURE_SIDE = 1 << 20 };             /* pixels */
#define NR_PICTURE_PIXELS ((int64_t)1 << 28)    /* more is taken for a bomb: it would be 768 MiB of RGB */

/* A rectangle of somebody's pixels: rows of w pixels, stride bytes apart. */
struct nr_pixels {
	int32_t h, w, channels;
	ptrdiff_t stride;
	const uint8_t *p;
};
static inline struct nr_pixels nr_pixels_of(const struct nr_picture *p)
{
	return (struct nr_pixels){ p->h, p->w, p->channels, (ptrdiff_t)p->w * p->channels, p->pixels };
}
static inline struct nr_pixels nr_pixels_part(struct nr_pixels v, int32_t y, int32_t x, int32_t h, int32_t w)
{
	return (struct nr_pixels){ h, w, v.channels, v.stride, v.p + y * v.stride + (ptrdiff_t)x * v.channels };
}

/* ITU-R 601 luma in Pillow's fixed point. */
static inline uint8_t nr_luma(const uint8_t *rgb)
{
	return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}
/* nr_picture_resize with a subject for its messages. */
int nr_picture_room(struct nr_picture *, int64_t h, int64_t w, int32_t channels, const char *name, struct nr_error *);
/* Grey to RGB or RGB to grey; to is not from. */
int nr_picture_convert(const struct nr_picture *from, int32_t channels, struct nr_picture *to, struct nr_error *);

/* A PNG whose pixels stand for numbers: indices of a palette or levels of grey as they are stored, in one channel; RGB as it is, in three.
 * Alpha is ignored; 16 bits are taken if the numbers fit into 8. */
struct nr_palette { int32_t count; uint8_t colour[256][3]; };   /* count 0: the file has none */
int nr_picture_numbers(struct nr_picture *, const char *path, struct nr_palette *, struct nr_error *);
/* The size of a PNG, from its first bytes; 0 x 0: it is none. */
void nr_png_size(const char *path, int32_t *h, int32_t *w);

/* The formats, as nr_picture_decode. */
int nr_decode_jpeg(struct nr_picture *, const uint8_t *bytes, size_t size, int32_t channels, const char *name, struct nr_error *);
int nr_decode_png(struct nr_picture *, const uint8_t *bytes, size_t size, int32_t channels, const char *name, struct nr_error *);
int nr_decode_webp(struct nr_picture *, const uint8_t *bytes, size_t size, int32_t channels, const char *name, struct nr_error *);
int nr_decode_tiff(struct nr_picture *, const uint8_t *bytes, size_t size, int32_t channels, const char *name, struct nr_error *);

/* The picture as it comes back from a JPEG of this quality, 1 to 100 (colours at half the resolution, as most programs write them). */
int nr_jpeg_again(struct nr_picture *, int quality, struct nr_error *);

/* How a camera was held, from the EXIF data of a JPEG, PNG or WebP: 1 (upright) to 8; 1 if nothing is said. */
int nr_exif_orientation(const uint8_t *bytes, size_t size);
/* Turns and mirrors the picture so that it is upright. */
int nr_picture_upright(struct nr_picture *, int orientation, const char *name, struct nr_error *);
/* Undoes that. */
int nr_picture_as_stored(struct nr_picture *, const char *name, struct nr_error *);
/* Undoes that if the picture has this size then, and not now: what was said of it was said of the pixels as they are stored. */
int nr_picture_as_sized(struct nr_picture *, int32_t h, int32_t w, const char *name, struct nr_error *);

#endif
