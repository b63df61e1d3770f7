/* What the files of corruptions share. Numbers are doubles: results are cut to bytes, not rounded, so that the last bit may show. */
#ifndef NR_CORRUPT_INNER_H
#define NR_CORRUPT_INNER_H

#include "base/draws.h"
#include "picture/corrupt.h"

struct nr_field { int32_t h, w, c; double *v; };                /* (h,w,c), 0 to 1 where it is a picture */
static inline int64_t nr_field_len(const struct nr_field *f) { return (int64_t)f->h * f->w * f->c; }

enum { NR_CORRUPT_ROOMS = 6, NR_CORRUPT_CHOICES = 7 };

struct nr_corrupting {                                          /* one picture on its way */
	const double *c;                                        /* the severity's numbers, as the published table has them */
	const struct nr_corrupt *how;
	struct nr_picture *p;
	struct nr_field x;                                      /* p over 255 */
	struct nr_draws draws;                                  /* single numbers; arrays take the stream's first words */
	struct nr_corrupt_scratch *s;
	struct nr_error *err;
};
/* Room number i for n numbers, not cleared; NULL: out of memory, and the error says so. */
double *nr_corrupt_room(struct nr_corrupting *, int i, int64_t n);
struct nr_picture *nr_corrupt_picture(struct nr_corrupting *, int i);      /* 0 or 1 */
struct nr_resize_scratch *nr_corrupt_resize(struct nr_corrupting *);
/* cdf (NR_POISSON_MOST) of Poisson numbers of mean level / 255 c, kept for the next pixel of that level. */
enum { NR_POISSON_MOST = 1024 };
const double *nr_corrupt_poisson(struct nr_corrupting *, double c, int level);

/* x, clipped and cut to bytes, becomes the picture. */
void nr_corrupt_put(struct nr_picture *, const struct nr_field *);

void nr_poisson_cdf(double mean, double *cdf);                   /* (NR_POISSON_MOST) */

/* The laws themselves, with given draws (corrupt_LAW.c). */
void nr_add_noise(struct nr_field *, const double *noise, double sigma);
enum nr_border { NR_BORDER_EDGE, NR_BORDER_MIRROR, NR_BORDER_MIRROR_INSIDE };     /* aaa|abc, cba|abc, cb|abc */
int32_t nr_border(int32_t i, int32_t n, enum nr_border);
/* Gaussian of radius int(truncate sigma + .5), in place; room: nr_smooth_room numbers. */
int64_t nr_smooth_room(const struct nr_field *);
void nr_smooth(struct nr_field *, double sigma, double truncate, enum nr_border, double *room);
/* A disk softened at its edge: (side,side), the side is returned; NULL kernel: the side alone. */
int32_t nr_disk(double radius, double sigma, double *kernel);
void nr_correlate(const struct nr_field *, const double *kernel, int32_t side, struct nr_field *to);
/* dx, dy (rounds,h,w): where each pixel is copied from; room as of nr_smooth. */
void nr_glass(struct nr_field *, double sigma, int32_t shift, int32_t rounds, const int32_t *dx, const int32_t *dy, double *room);
void nr_motion_blur(const struct nr_field *, double radius, double sigma, double degrees, struct nr_field *to);
/* The middle part, enlarged by zoom, h x w of it added to `to` (in single precision if it says so). */
void nr_add_zoomed(const struct nr_field *, double zoom, bool single, struct nr_field *to);
int32_t nr_zoom_count(double stop, double step);
double nr_zoom_factor(int32_t i, double step);
/* map (side,side), side a power of two, 0 to 1. */
void nr_plasma(struct nr_rng, double decay, int32_t side, double *map);
void nr_add_fog(struct nr_field *, const double *map, int32_t side, double amount);
void nr_add_frost(struct nr_field *, const struct nr_field *frost, double share, double of_frost);

/* The corruptions, each by its settings c. */
typedef int nr_corrupt_fn(struct nr_corrupting *);
nr_corrupt_fn nr_gaussian_noise, nr_shot_noise, nr_impulse_noise, nr_defocus_blur, nr_glass_blur, nr_motion_blurred, nr_zoom_blur, nr_snow,
	nr_frosted, nr_fog, nr_brightness, nr_lower_contrast, nr_elastic, nr_pixelate, nr_jpeg_compression;

#endif
