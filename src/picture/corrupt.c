/* The table of corruptions, and one picture on its way through one of them; the laws are in corrupt_noise.c, corrupt_blur.c,
 * corrupt_weather.c and corrupt_digital.c. Settings: make_cifar_c.py and make_imagenet_c.py of hendrycks/robustness. */
#include "picture/corrupt.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "picture/corrupt_inner.h"
#include "picture/picture.h"

static const struct nr_corruption {
	const char *name, *group;
	nr_corrupt_fn *run;
	double setting[2][NR_SEVERITIES][NR_CORRUPT_CHOICES];
} corruptions[NR_CORRUPTIONS] = {
	{ "gaussian_noise", "noise", nr_gaussian_noise,                 /* sigma */
		{ { { .04 }, { .06 }, { .08 }, { .09 }, { .10 } }, { { .08 }, { .12 }, { .18 }, { .26 }, { .38 } } } },
	{ "shot_noise", "noise", nr_shot_noise,                         /* photons of a white pixel */
		{ { { 500 }, { 250 }, { 100 }, { 75 }, { 50 } }, { { 60 }, { 25 }, { 12 }, { 5 }, { 3 } } } },
	{ "impulse_noise", "noise", nr_impulse_noise,                   /* share of the values */
		{ { { .01 }, { .02 }, { .03 }, { .05 }, { .07 } }, { { .03 }, { .06 }, { .09 }, { .17 }, { .27 } } } },
	{ "defocus_blur", "blur", nr_defocus_blur,                      /* radius of the disk, sigma of its edge */
		{ { { .3, .4 }, { .4, .5 }, { .5, .6 }, { 1, .2 }, { 1.5, .1 } },
		  { { 3, .1 }, { 4, .5 }, { 6, .5 }, { 8, .5 }, { 10, .5 } } } },
	{ "glass_blur", "blur", nr_glass_blur,                          /* sigma, largest shift, rounds */
		{ { { .05, 1, 1 }, { .25, 1, 1 }, { .4, 1, 1 }, { .25, 1, 2 }, { .4, 1, 2 } },
		  { { .7, 1, 2 }, { .9, 2, 1 }, { 1, 2, 3 }, { 1.1, 3, 2 }, { 1.5, 4, 2 } } } },
	{ "motion_blur", "blur", nr_motion_blurred,                     /* radius, sigma */
		{ { { 6, 1 }, { 6, 1.5 }, { 6, 2 }, { 8, 2 }, { 9, 2.5 } },
		  { { 10, 3 }, { 15, 5 }, { 15, 8 }, { 15, 12 }, { 20, 15 } } } },
	{ "zoom_blur", "blur", nr_zoom_blur,                            /* 1 to below this, step */
		{ { { 1.06, .01 }, { 1.11, .01 }, { 1.16, .01 }, { 1.21, .01 }, { 1.26, .01 } },
		  { { 1.11, .01 }, { 1.16, .01 }, { 1.21, .02 }, { 1.26, .02 }, { 1.31, .03 } } } },
	{ "snow", "weather", nr_snow,                                   /* mean, deviation, zoom, threshold, radius, sigma, share of x */
		{ { { .1, .2, 1, .6, 8, 3, .95 }, { .1, .2, 1, .5, 10, 4, .9 }, { .15, .3, 1.75, .55, 10, 4, .9 },
		    { .25, .3, 2.25, .6, 12, 6, .85 }, { .3, .3, 1.25, .65, 14, 12, .8 } },
		  { { .1, .3, 3, .5, 10, 4, .8 }, { .2, .3, 2, .5, 12, 4, .7 }, { .55, .3, 4, .9, 12, 8, .7 },
		    { .55, .3, 4.5, .85, 12, 8, .65 }, { .55, .3, 2.5, .85, 12, 12, .55 } } } },
	{ "frost", "weather", nr_frosted,                               /* share of x, of the frost */
		{ { { 1, .2 }, { 1, .3 }, { .9, .4 }, { .85, .4 }, { .75, .45 } },
		  { { 1, .4 }, { .8, .6 }, { .7, .7 }, { .65, .7 }, { .6, .75 } } } },
	{ "fog", "weather", nr_fog,                                     /* amount, decay of the plasma */
		{ { { .2, 3 }, { .5, 3 }, { .75, 2.5 }, { 1, 2 }, { 1.5, 1.75 } },
		  { { 1.5, 2 }, { 2, 2 }, { 2.5, 1.7 }, { 2.5, 1.5 }, { 3, 1.4 } } } },
	{ "brightness", "weather", nr_brightness,                       /* added to the value of HSV */
		{ { { .05 }, { .1 }, { .15 }, { .2 }, { .3 } }, { { .1 }, { .2 }, { .3 }, { .4 }, { .5 } } } },
	{ "contrast", "digital", nr_lower_contrast,                     /* what is left */
		{ { { .75 }, { .5 }, { .4 }, { .3 }, { .15 } }, { { .4 }, { .3 }, { .2 }, { .1 }, { .05 } } } },
	{ "elastic_transform", "digital", nr_elastic,                   /* alpha, sigma, shift of the corners; of 32, of 244 pixels */
		{ { { 0, 0, .08 }, { .05, .2, .07 }, { .08, .06, .06 }, { .1, .04, .05 }, { .1, .03, .03 } },
		  { { 2, .7, .1 }, { 2, .08, .2 }, { .05, .01, .02 }, { .07, .01, .02 }, { .12, .01, .02 } } } },
	{ "pixelate", "digital", nr_pixelate,                           /* share of the side */
		{ { { .95 }, { .9 }, { .85 }, { .75 }, { .65 } }, { { .6 }, { .5 }, { .4 }, { .3 }, { .25 } } } },
	{ "jpeg_compression", "digital", nr_jpeg_compression,           /* quality */
		{ { { 80 }, { 65 }, { 58 }, { 50 }, { 40 } }, { { 25 }, { 18 }, { 15 }, { 10 }, { 7 } } } },
};

const char *nr_corruption_name(int number) { return corruptions[number].name; }
const char *nr_corruption_group(int number) { return corruptions[number].group; }
const double *nr_corruption_setting(int number, enum nr_corrupt_setting which, int severity)
{
	return corruptions[number].setting[which][severity - 1];
}

int nr_corruption_find(const char *name, struct nr_error *err)
{
	struct nr_near near = { .word = name };
	for (int i = 0; i < NR_CORRUPTIONS; i++) {
		if (!strcmp(corruptions[i].name, name)) return i;
		nr_near_try(&near, corruptions[i].name);
	}
	nr_fail(err, NR_ENAME, "no corruption", name, "no such name");
	return nr_hint(err, near.best ? "did you mean '%s'?" : "there are gaussian_noise, fog, jpeg_compression and others", near.best);
}

enum nr_corrupt_setting nr_corrupt_setting_for(int64_t side) { return side < 96 ? NR_CORRUPT_32 : NR_CORRUPT_224; }

/* ---- room ---- */

struct nr_corrupt_scratch {
	double *room[NR_CORRUPT_ROOMS];
	int64_t have[NR_CORRUPT_ROOMS];
	struct nr_picture picture[2];
	struct nr_resize_scratch resize;
	double photons, *cdf[256];                              /* of a white pixel; by level */
};

int nr_corrupt_scratch_make(struct nr_corrupt_scratch **out, struct nr_error *err)
{
	*out = calloc(1, sizeof **out);
	return *out ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot corrupt pictures", NULL, "out of memory");
}

static void forget_poisson(struct nr_corrupt_scratch *s)
{
	for (int i = 0; i < 256; i++) {
		free(s->cdf[i]);
		s->cdf[i] = NULL;
	}
}

void nr_corrupt_scratch_free(struct nr_corrupt_scratch *s)
{
	if (!s) return;
	for (int i = 0; i < NR_CORRUPT_ROOMS; i++) free(s->room[i]);
	for (int i = 0; i < 2; i++) nr_picture_release(&s->picture[i]);
	nr_resize_scratch_release(&s->resize);
	forget_poisson(s);
	free(s);
}

double *nr_corrupt_room(struct nr_corrupting *k, int i, int64_t n)
{
	struct nr_corrupt_scratch *s = k->s;
	if (n > s->have[i]) {
		double *grown = realloc(s->room[i], (size_t)n * sizeof *grown);
		if (grown) s->room[i] = grown, s->have[i] = n;
		else nr_fail(k->err, NR_EMEMORY, "cannot corrupt a picture", NULL, "out of memory");
		if (!grown) return NULL;
	}
	return s->room[i];
}

struct nr_picture *nr_corrupt_picture(struct nr_corrupting *k, int i) { return &k->s->picture[i]; }
struct nr_resize_scratch *nr_corrupt_resize(struct nr_corrupting *k) { return &k->s->resize; }

const double *nr_corrupt_poisson(struct nr_corrupting *k, double c, int level)
{
	struct nr_corrupt_scratch *s = k->s;
	if (c != s->photons) forget_poisson(s);
	s->photons = c;
	if (s->cdf[level]) return s->cdf[level];
	double *cdf = s->cdf[level] = malloc(NR_POISSON_MOST * sizeof *cdf);
	if (!cdf) nr_fail(k->err, NR_EMEMORY, "cannot corrupt a picture", NULL, "out of memory");
	else nr_poisson_cdf(level / 255.0 * c, cdf);
	return cdf;
}

/* ---- one picture ---- */

void nr_corrupt_put(struct nr_picture *p, const struct nr_field *x)
{
	const int64_t n = nr_field_len(x);
	for (int64_t i = 0; i < n; i++) {
		const double v = x->v[i] < 0 ? 0 : x->v[i] > 1 ? 1 : x->v[i];
		p->pixels[i] = (uint8_t)(v * 255);
	}
}

int nr_corrupt_run(const struct nr_corrupt *how, struct nr_picture *p, struct nr_corrupt_scratch *s, struct nr_error *err)
{
	const struct nr_corruption *of = &corruptions[how->number];
	if (how->severity < 1 || how->severity > NR_SEVERITIES)
		return nr_fail(err, NR_EVALUE, "cannot corrupt a picture", of->name, "there is no severity %d", (int)how->severity);
	const enum nr_data_stream stream = (enum nr_data_stream)(NR_STREAM_CORRUPT + 16 * how->number + how->severity);
	struct nr_corrupting k = { .c = of->setting[how->setting][how->severity - 1], .how = how, .p = p, .s = s, .err = err,
		.x = { p->h, p->w, p->channels, NULL }, .draws = nr_draws_of(how->seed, stream, how->sample, (uint64_t)1 << 40) };
	const int64_t n = nr_field_len(&k.x);
	if (!(k.x.v = nr_corrupt_room(&k, 0, n))) return err->code;
	for (int64_t i = 0; i < n; i++) k.x.v[i] = p->pixels[i] / 255.0;
	const int code = of->run(&k);
	return code || !how->stored ? code : nr_jpeg_again(p, 85, err);
}
