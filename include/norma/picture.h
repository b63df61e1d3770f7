/* For using models and for data sets: pictures in memory and on disk, resized, and made into a network's input. nr_runner of infer.h does
 * all of it in one call.
 *
 * Example:
 *   struct nr_picture picture = { 0 }, small = { 0 };
 *   struct nr_resize_scratch scratch = { 0 };
 *   if (!nr_picture_read(&picture, "cat.jpg", 3, &err) &&
 *           !nr_resize(&picture, NULL, 32, 32, NR_FILTER_BICUBIC, &small, &scratch, &err))
 *           nr_picture_write_png(&small, "small.png", &err);
 *   nr_resize_scratch_release(&scratch);
 *   nr_picture_release(&small);
 *   nr_picture_release(&picture);
 */
#ifndef NORMA_PICTURE_H
#define NORMA_PICTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "norma/option.h"

struct nr_picture {                         /* 8 bits, rows of pixels of interleaved channels: (h,w,channels) */
	int32_t h, w, channels;             /* 1 grey, 3 RGB */
	uint8_t *pixels;
	size_t capacity;                    /* of pixels, which belong to the picture; all zero is an empty picture */
	int32_t turned;                     /* the EXIF orientation by which it was turned after it was read, 2 to 8; 0: it was not */
};
NR_API void nr_picture_release(struct nr_picture *);
/* Room for a picture of this size; the old pixels are lost. */
NR_API int nr_picture_resize(struct nr_picture *, int32_t h, int32_t w, int32_t channels, struct nr_error *);
/* JPEG, PNG, WebP or TIFF (its first page), told apart by their first bytes; brought to channels (1 or 3; 0: as the file has it, grey
 * or RGB) with the bytes that Pillow's convert("RGB") or convert("L") of the RGB gives: CMYK is taken to be Adobe's, 16 bits lose
 * their lower half, palettes are looked up, alpha is ignored (TIFF: transparent is black). A picture whose EXIF data say that the
 * camera was turned is turned back, as exif_transpose does. (16-bit grey: the upper half too, where Pillow clips.) */
NR_API int nr_picture_decode(struct nr_picture *, const void *bytes, size_t size, int32_t channels, const char *name, struct nr_error *);
NR_API int nr_picture_read(struct nr_picture *, const char *path, int32_t channels, struct nr_error *);
NR_API int nr_picture_write_png(const struct nr_picture *, const char *path, struct nr_error *);   /* atomically */

/* ---- from a picture to the network's input ------------------------------------------------------------------------- */
enum nr_filter { NR_FILTER_NEAREST, NR_FILTER_BOX, NR_FILTER_BILINEAR, NR_FILTER_BICUBIC, NR_FILTER_LANCZOS };
/* Byte-equal to Image.resize((w, h), filter, box) of Pillow 13. Scratch belongs to the caller's thread; all zero is empty. */
struct nr_resize_scratch { void *memory; size_t size; };
NR_API void nr_resize_scratch_release(struct nr_resize_scratch *);
NR_API int nr_resize(const struct nr_picture *from, const double box[4], int32_t h, int32_t w, enum nr_filter, struct nr_picture *to,
	struct nr_resize_scratch *, struct nr_error *);     /* box: left, upper, right, lower; NULL: all of it */

/* auto: none for a picture of the right size, else center */
enum nr_crop_kind { NR_CROP_NONE, NR_CROP_RESIZE, NR_CROP_CENTER, NR_CROP_RANDOM_RESIZED, NR_CROP_PAD, NR_CROP_AUTO };
struct nr_augment {                         /* what happens to one picture, in this order */
	int64_t size;                       /* of the square result */
	int32_t crop, filter;               /* enum nr_crop_kind, enum nr_filter */
	double crop_share;                  /* center: size / crop_share is the shorter side before the crop (224/256 = .875) */
	double scale_min, scale_max;        /* random_resized: share of the area */
	double ratio_min, ratio_max;
	int64_t pad;                        /* pad: zeros on each side, then a random crop of the old size */
	double flip;                        /* probability of a mirror image */
	double brightness, contrast, saturation, hue;   /* colour jitter; 0: none */
	double jitter;                      /* probability of that */
	double grey, blur, solarize;        /* probabilities; solarize: from level 128 on */
	double blur_min, blur_max;          /* radius in pixels */
	char *randaugment;                  /* "", or "n=2,m=9,std=0.5", or as timm writes it: "rand-m9-mstd0.5-inc1" */
	double erase;                       /* probability of random erasing, with noise per pixel */
	bool normalize;                     /* by mean and std of the source (or those below); else to [-1,1] */
	double mean[3], std[3];             /* std 0: those of the data */
	int32_t channels;                   /* of the result: 0 as the source has, 1, 3 */
	int64_t repeats;                    /* repeated augmentation: an epoch keeps its length, its samples come this often in a row */
};
extern NR_DATA const struct nr_option nr_augment_options[];
/* The augmentation for evaluation: resize and centre crop to the model's size, normalised as before, nothing left to chance. */
NR_API struct nr_augment nr_augment_for_eval(const struct nr_augment *train, int64_t size, int32_t channels, double crop_share);
/* What is known of a set of pictures. */
struct nr_pixel_stats {
	int32_t channels;                   /* 0: they differ */
	float mean[3], std[3];              /* of the training pictures / 255, by channel; std 0: not known */
};
/* out (channels,size,size) float. Every draw is a pure function of (seed, epoch, i), i < 2^26. The statistics may be NULL when mean
 * and std are given or not needed. A scratch serves one thread. */
struct nr_augment_scratch;
NR_API int nr_augment_scratch_make(struct nr_augment_scratch **, struct nr_error *);
NR_API void nr_augment_scratch_free(struct nr_augment_scratch *);
NR_API int nr_augment_run(const struct nr_augment *, const struct nr_pixel_stats *, const struct nr_picture *, uint64_t seed, int64_t epoch,
	int64_t i, float *out, struct nr_augment_scratch *, struct nr_error *);

#endif
