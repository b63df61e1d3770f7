/* Reconstruction pictures. See reconstruction.h. */
#include "tasks/reconstruction.h"

#include <math.h>
#include <stdlib.h>


enum { GAP = 2, CELL = 64, ROWS = 3 };

int nr_reconstruction_open(struct nr_reconstruction *d, const struct nr_task_run *r, int64_t count, struct nr_error *err)
{
	const struct nr_model_spec *m = &r->w->model;
	*d = (struct nr_reconstruction){ .count = count, .channels = nr_model_int(m, "channels"), .size = nr_model_int(m, "image"),
		.patch = nr_model_int(m, "patch"), .norm_pix = ((const struct nr_mae *)r->settings)->norm_pix };
	const struct nr_augment *a = &r->c->augment;
	for (int k = 0; k < 3; k++) {
		const bool own = a->std[k] > 0, known = own || r->source->std[k] > 0;
		d->mean[k] = !a->normalize || !known ? .5 : own ? a->mean[k] : (double)r->source->mean[k];
		d->std[k] = !a->normalize || !known ? .5 : own ? a->std[k] : (double)r->source->std[k];
	}
	const size_t pixels = (size_t)(count * d->channels * d->size * d->size);
	d->image = calloc(pixels, sizeof *d->image);
	d->pred = calloc(pixels, sizeof *d->pred);
	d->masked = calloc((size_t)(count * (d->size / d->patch) * (d->size / d->patch)), sizeof *d->masked);
	return d->image && d->pred && d->masked ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
}

/* Moments of a patch as the loss takes them: variance with N-1. */
static void patch_moments(const struct nr_reconstruction *d, const float *image, int64_t row, int64_t column, double *mean, double *std)
{
	const int64_t p = d->patch, n = p * p * d->channels;
	double sum = 0, square = 0;
	for (int pass = 0; pass < 2; pass++) {
		const double centre = pass ? sum / (double)n : 0;
		for (int64_t i = 0; i < n; i++) {
			const int64_t k = i / (p * p), y = row * p + i / p % p, x = column * p + i % p;
			const double v = (double)image[(k * d->size + y) * d->size + x] - centre;
			if (pass) square += v * v;
			else sum += v;
		}
	}
	*mean = sum / (double)n;
	*std = sqrt(square / (double)(n > 1 ? n - 1 : 1) + 1e-6);
}

void nr_reconstruction_keep(struct nr_reconstruction *d, const float *image, const real *pred, const real *masked)
{
	const int64_t side = d->size / d->patch, patches = side * side, width = d->patch * d->patch * d->channels;
	const int64_t pixels = d->channels * d->size * d->size;
	memcpy(d->image, image, (size_t)(d->count * pixels) * sizeof *image);
	for (int64_t i = 0; i < d->count * patches; i++) {
		double mean = 0, std = 1;
		if (d->norm_pix) patch_moments(d, d->image + i / patches * pixels, i % patches / side, i % side, &mean, &std);
		for (int64_t k = 0; k < width; k++) d->pred[i * width + k] = (float)((double)pred[i * width + k] * std + mean);
		d->masked[i] = (float)masked[i];
	}
}

/* The value of a pixel in a row of the sheet; NAN where nothing is shown. */
static double value_at(const struct nr_reconstruction *d, int64_t i, int row, int64_t y, int64_t x, int64_t k)
{
	const int64_t side = d->size / d->patch, p = d->patch, place = y / p * side + x / p;
	const float *image = d->image + i * d->channels * d->size * d->size;
	const double original = image[(k * d->size + y) * d->size + x];
	if (!row || y / p >= side || x / p >= side || d->masked[i * side * side + place] < .5f) return original;
	if (row == 1) return NAN;
	return d->pred[((i * side * side + place) * p * p + y % p * p + x % p) * d->channels + k];
}

int nr_reconstruction_draw(const struct nr_reconstruction *d, const char *path, struct nr_error *err)
{
	const int64_t zoom = (CELL + d->size - 1) / d->size, cell = zoom * d->size;
	const int64_t h = ROWS * (cell + GAP) + GAP, w = d->count * (cell + GAP) + GAP;
	struct nr_picture sheet = { 0 };
	if (nr_picture_resize(&sheet, (int32_t)h, (int32_t)w, 3, err)) return err->code;
	memset(sheet.pixels, 255, (size_t)(h * w * 3));
	for (int64_t at = 0; at < ROWS * d->count * cell * cell; at++) {
		const int64_t x = at % cell, y = at / cell % cell, i = at / (cell * cell) % d->count;
		const int row = (int)(at / (cell * cell * d->count));
		uint8_t *pixel = sheet.pixels + ((GAP + row * (cell + GAP) + y) * w + GAP + i * (cell + GAP) + x) * 3;
		for (int64_t k = 0; k < 3; k++) {
			const int64_t from = d->channels == 3 ? k : 0;
			const double v = value_at(d, i, row, y / zoom, x / zoom, from) * d->std[from] + d->mean[from];
			pixel[k] = isnan(v) ? 128 : (uint8_t)(v <= 0 ? 0 : v >= 1 ? 255 : v * 255 + .5);
		}
	}
	const int code = nr_picture_write_png(&sheet, path, err);
	nr_picture_release(&sheet);
	return code;
}

void nr_reconstruction_close(struct nr_reconstruction *d)
{
	free(d->image);
	free(d->pred);
	free(d->masked);
	*d = (struct nr_reconstruction){ 0 };
}
