/* Parts of augmentation, shared by augment.c and the files of its steps. All work on whole pictures of 8 bits, grey or RGB,
 * and give Pillow's bytes for given parameters; they are tested on those. */
#ifndef NR_AUGMENT_H
#define NR_AUGMENT_H

#include "base/draws.h"
#include "picture/picture.h"
#include "picture/resize.h"

/* ---- colour (augment_colour.c), in place ---- */
void nr_brighten(struct nr_picture *, float factor);            /* ImageEnhance.Brightness */
void nr_contrast(struct nr_picture *, float factor);            /* ImageEnhance.Contrast: about the mean luma */
void nr_saturate(struct nr_picture *, float factor);            /* ImageEnhance.Color */
void nr_shift_hue(struct nr_picture *, double turn);            /* by turn in [-.5,.5], through 8-bit HSV as torchvision */
void nr_invert(struct nr_picture *);
void nr_autocontrast(struct nr_picture *);
void nr_equalize(struct nr_picture *);
void nr_posterize(struct nr_picture *, int bits);               /* 0 to 8; 0 is black */
void nr_solarize(struct nr_picture *, int threshold);           /* 0 to 256 */
void nr_solarize_add(struct nr_picture *, int add);             /* below 128 */
/* ImageEnhance.Sharpness; to is not from and has its size. */
void nr_sharpen(const struct nr_picture *from, float factor, struct nr_picture *to);

/* ---- blur (blur.c) ---- */
int nr_blur(struct nr_picture *, double radius, struct nr_picture *room, struct nr_error *);    /* ImageFilter.GaussianBlur */

/* ---- warps (augment_warp.c); to is not from and has its size ---- */
/* Pixel (x,y) of to comes from m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]; fill where that is outside. Bilinear or bicubic. */
void nr_warp(const struct nr_picture *from, const double m[6], enum nr_filter, const uint8_t fill[3], struct nr_picture *to);
void nr_rotation(int32_t h, int32_t w, double degrees, double m[6]);     /* the matrix of Image.rotate */

/* ---- RandAugment (randaugment.c) ---- */
struct nr_randaugment { int64_t n; double m, std, prob; bool inc; };
/* "n=2,m=9,std=0.5" or timm's "rand-m9-n2-mstd0.5-inc1". */
int nr_randaugment_parse(struct nr_randaugment *, const char *text, struct nr_error *);
/* Works on a, with b as the other buffer; the result is in a. */
int nr_randaugment_run(const struct nr_randaugment *, enum nr_filter, const uint8_t fill[3], struct nr_picture *a, struct nr_picture *b,
	struct nr_draws *, struct nr_error *);

/* ---- boxes (crop.c) ---- */
/* torchvision's RandomResizedCrop.get_params. */
struct nr_region nr_random_part(int32_t h, int32_t w, const struct nr_augment *, struct nr_draws *);
/* Shorter side before the centre crop -> size of the whole and the part of it. */
int nr_center_part(int32_t h, int32_t w, const struct nr_augment *, int32_t *all_h, int32_t *all_w, struct nr_region *, struct nr_error *);

/* ---- erasing (erase.c) ---- */
/* timm's RandomErasing in pixel mode on x (channels,size,size), normalised already; noise from block `first` of its stream. */
void nr_erase(float *x, int32_t channels, int32_t size, double prob, struct nr_draws *, struct nr_rng noise, uint64_t first);

/* ---- the whole ---- */
/* What can be known without a picture; the loader asks before it starts. */
int nr_augment_check(const struct nr_augment *, const struct nr_pixel_stats *, struct nr_error *);
/* What values / 255 are scaled by. Grey made of RGB takes the average, RGB made of grey repeats it. */
struct nr_pixel_scale { double mean[3], std[3]; };
int nr_augment_pixel_scale(
	const struct nr_augment *, const struct nr_pixel_stats *, int32_t channels, struct nr_pixel_scale *, struct nr_error *);
int32_t nr_augment_channels(const struct nr_augment *, const struct nr_pixel_stats *);
/* What bytes of each channel become. */
int nr_augment_table(const struct nr_augment *, const struct nr_pixel_stats *, int32_t channels, float table[3][256], struct nr_error *);
/* A thread's own picture and memory to resize with. */
void nr_augment_room(struct nr_augment_scratch *, struct nr_picture **, struct nr_resize_scratch **);

#endif
