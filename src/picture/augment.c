/* From a picture to the network's input: crop, mirror, colours, RandAugment, to floats, erasing. See norma/data.h.
 * Crops and mirror images are views as long as nothing needs the bytes: small pictures are read once and written once. */
#include "picture/augment.h"

#include <stdlib.h>
#include <string.h>

static const char *const crops[] = { "none", "resize", "center", "random_resized", "pad", "auto", NULL };
static const char *const filters[] = { "nearest", "box", "bilinear", "bicubic", "lanczos", NULL };

enum { SIZE_LIMIT = 2048 };     /* the noise of a sample fits its part of the stream: see draws.h */

#define CHANNEL(field, c, label, what) \
	{ .name = #field "_" label, .type = NR_TFLOAT, .offset = offsetof(struct nr_augment, field) + (c) * sizeof(double), \
	  .size = sizeof(double), .text = "0", .min = 0, .max = 1, .help = what }

const struct nr_option nr_augment_options[] = {
	NR_OPT_INT(struct nr_augment, size, 224, 1, SIZE_LIMIT, "side of the square input in pixels"),
	NR_OPT_ENUM(struct nr_augment, crop, "auto", crops,
		"how a picture becomes a square; auto: as it is if it has the right size, otherwise center"),
	NR_OPT_ENUM(struct nr_augment, filter, "bicubic", filters, "filter for resizing and warping"),
	NR_OPT_FLOAT(struct nr_augment, crop_share, 0.875, 0.1, 1, "center: share of the shorter side that is kept"),
	NR_OPT_FLOAT(struct nr_augment, scale_min, 0.08, 0.0001, 1, "random_resized: smallest share of the area"),
	NR_OPT_FLOAT(struct nr_augment, scale_max, 1, 0.0001, 1, "random_resized: largest share of the area"),
	NR_OPT_FLOAT(struct nr_augment, ratio_min, 0.75, 0.01, 100, "random_resized: smallest width over height"),
	NR_OPT_FLOAT(struct nr_augment, ratio_max, 1.3333333333333333, 0.01, 100, "random_resized: largest width over height"),
	NR_OPT_INT(struct nr_augment, pad, 4, 0, SIZE_LIMIT, "pad: black pixels on each side before the random crop"),
	NR_OPT_FLOAT(struct nr_augment, flip, 0, 0, 1, "probability of mirroring"),
	NR_OPT_FLOAT(struct nr_augment, brightness, 0, 0, 10,
		"colour jitter: change brightness by up to this factor"),
	NR_OPT_FLOAT(struct nr_augment, contrast, 0, 0, 10, "colour jitter: contrast"),
	NR_OPT_FLOAT(struct nr_augment, saturation, 0, 0, 10, "colour jitter: saturation"),
	NR_OPT_FLOAT(struct nr_augment, hue, 0, 0, 0.5, "colour jitter: hue, in turns"),
	NR_OPT_FLOAT(struct nr_augment, jitter, 1, 0, 1, "probability of colour jitter"),
	NR_OPT_FLOAT(struct nr_augment, grey, 0, 0, 1, "probability of losing all colours"),
	NR_OPT_FLOAT(struct nr_augment, blur, 0, 0, 1, "probability of a Gaussian blur"),
	NR_OPT_FLOAT(struct nr_augment, blur_min, 0.1, 0, 100, "blur: smallest radius in pixels"),
	NR_OPT_FLOAT(struct nr_augment, blur_max, 2, 0, 100, "blur: largest radius in pixels"),
	NR_OPT_FLOAT(struct nr_augment, solarize, 0, 0, 1, "probability of inverting bright pixels"),
	NR_OPT_STRING(struct nr_augment, randaugment, "", "RandAugment: n=2,m=9,std=0.5 or timm's rand-m9-mstd0.5-inc1; empty: none"),
	NR_OPT_FLOAT(struct nr_augment, erase, 0, 0, 1, "probability of random erasing with noise"),
	NR_OPT_BOOL(struct nr_augment, normalize, "true", "normalize by mean and std; otherwise scale to [-1,1]"),
	CHANNEL(mean, 0, "r", "mean of red (or grey), used with std_r; 0: the data set's"),
	CHANNEL(mean, 1, "g", "mean of green"),
	CHANNEL(mean, 2, "b", "mean of blue"),
	CHANNEL(std, 0, "r", "standard deviation of red (or grey); 0: the data set's"),
	CHANNEL(std, 1, "g", "standard deviation of green"),
	CHANNEL(std, 2, "b", "standard deviation of blue"),
	NR_OPT_INT(struct nr_augment, channels, 0, 0, 3, "channels of the input: 1, 3, or 0 for those of the data"),
	NR_OPT_INT(struct nr_augment, repeats, 1, 1, 64,
		"repeated augmentation: times each sample of an epoch is used in a row"),
	NR_OPT_END
};

struct nr_augment_scratch {
	struct nr_picture converted, a, b;
	struct nr_resize_scratch resize;
	struct nr_pixel_scale scaling;              /* that table was made for */
	float table[3][256];
	char text[64];                          /* that randaugment was read from */
	struct nr_randaugment randaugment;
};

int nr_augment_scratch_make(struct nr_augment_scratch **out, struct nr_error *err)
{
	*out = calloc(1, sizeof **out);
	return *out ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot augment", NULL, "out of memory");
}

void nr_augment_scratch_free(struct nr_augment_scratch *s)
{
	if (!s) return;
	nr_picture_release(&s->converted);
	nr_picture_release(&s->a);
	nr_picture_release(&s->b);
	nr_resize_scratch_release(&s->resize);
	free(s);
}

/* ---- checks ---- */

int32_t nr_augment_channels(const struct nr_augment *a, const struct nr_pixel_stats *s)
{
	return a->channels ? a->channels : s && s->channels ? s->channels : 3;
}

int nr_augment_pixel_scale(const struct nr_augment *a, const struct nr_pixel_stats *s, int32_t channels, struct nr_pixel_scale *k,
	struct nr_error *err)
{
	*k = (struct nr_pixel_scale){ { 0.5, 0.5, 0.5 }, { 0.5, 0.5, 0.5 } };
	if (!a->normalize) return NR_OK;
	const int32_t have = a->std[0] > 0 ? channels : s ? s->channels : 0;
	for (int32_t c = 0; c < channels; c++) {
		double mean = 0, std = 0;
		const int32_t first = have == channels ? c : 0, last = have > channels ? have : first + 1;
		for (int32_t i = first; i < last && have; i++) {
			mean += (a->std[0] > 0 ? a->mean[i] : (double)s->mean[i]) / (last - first);
			std += (a->std[0] > 0 ? a->std[i] : (double)s->std[i]) / (last - first);
		}
		if (!(std > 0)) {
			nr_fail(err, NR_EVALUE, "cannot normalize", NULL, "the standard deviation of channel %d is not known", (int)c);
			return nr_hint(err, "use --no-normalize to scale to [-1,1], or give --mean-r, --std-r and so "
				"on: norma data info prints them");
		}
		k->mean[c] = mean;
		k->std[c] = std;
	}
	return NR_OK;
}

int nr_augment_check(const struct nr_augment *a, const struct nr_pixel_stats *s, struct nr_error *err)
{
	static const char what[] = "cannot augment";
	struct nr_pixel_scale k;
	struct nr_randaugment r;
	if (a->size < 1 || a->size > SIZE_LIMIT)
		return nr_fail(err, NR_EVALUE, what, NULL,
			"size=%lld must be from 1 to %d", (long long)a->size,
			(int)SIZE_LIMIT);
	if (a->channels != 0 && a->channels != 1 && a->channels != 3)
		return nr_fail(err, NR_EVALUE, what, NULL, "channels must be 0, 1 or 3, not %d", (int)a->channels);
	if ((unsigned)a->crop > NR_CROP_AUTO || (unsigned)a->filter > NR_FILTER_LANCZOS)
		return nr_fail(err, NR_EVALUE, what, NULL,
			"unknown crop=%d or filter=%d", (int)a->crop, (int)a->filter);
	const bool scales = a->scale_min > 0 && a->scale_min <= a->scale_max, ratios = a->ratio_min > 0 && a->ratio_min <= a->ratio_max;
	if (a->crop == NR_CROP_RANDOM_RESIZED && !(scales && ratios))
		return nr_fail(err, NR_EVALUE, what, NULL,
			"scale %g to %g, ratio %g to %g: the lower end must come first", a->scale_min,
			a->scale_max, a->ratio_min, a->ratio_max);
	if ((a->crop == NR_CROP_CENTER || a->crop == NR_CROP_AUTO) && !(a->crop_share >= 0.1 && a->crop_share <= 1))
		return nr_fail(err, NR_EVALUE, what, NULL, "crop_share must be from 0.1 to 1, not %g", a->crop_share);
	if (a->blur > 0 && !(a->blur_min <= a->blur_max))
		return nr_fail(err, NR_EVALUE, what, NULL, "blur_min %g is more than blur_max %g", a->blur_min, a->blur_max);
	if (a->randaugment && *a->randaugment) {
		const int code = nr_randaugment_parse(&r, a->randaugment, err);
		if (code) return code;
	}
	return nr_augment_pixel_scale(a, s, nr_augment_channels(a, s), &k, err);
}

/* ---- crops ---- */

struct state {
	const struct nr_augment *a;
	struct nr_augment_scratch *s;
	struct nr_draws draws;
	struct nr_pixels v;             /* what the result is made of */
	int32_t y, x;                   /* where its upper left pixel is in v; may be outside */
	bool mirrored, own;             /* own: v is all of s->a */
};

static int refuse_size(const struct state *t, const char *detail, struct nr_error *err)
{
	nr_fail(err, NR_ESHAPE, "cannot crop", NULL, "a picture of %d x %d pixels %s size=%lld", (int)t->v.w, (int)t->v.h, detail,
		(long long)t->a->size);
	return nr_hint(err, "use --crop auto, resize, center or random_resized");
}

static int crop(struct state *t, struct nr_error *err)
{
	const struct nr_augment *a = t->a;
	const int32_t size = (int32_t)a->size;
	const enum nr_filter filter = (enum nr_filter)a->filter;
	struct nr_pixels from = t->v;
	struct nr_region part = { 0, 0, size, size };
	int32_t h = size, w = size;
	int code = NR_OK;
	const bool right = t->v.h == size && t->v.w == size;
	switch ((enum nr_crop_kind)a->crop) {
	case NR_CROP_NONE:
		return right ? NR_OK : refuse_size(t, "is not of", err);
	case NR_CROP_PAD:
		if (t->v.h + 2 * a->pad < size || t->v.w + 2 * a->pad < size) return refuse_size(t, "and its padding are below", err);
		t->y = nr_draw_below(&t->draws, (int32_t)(t->v.h + 2 * a->pad - size + 1)) - (int32_t)a->pad;
		t->x = nr_draw_below(&t->draws, (int32_t)(t->v.w + 2 * a->pad - size + 1)) - (int32_t)a->pad;
		return NR_OK;
	case NR_CROP_AUTO:
		if (right) return NR_OK;
		/* fall through */
	case NR_CROP_CENTER:
		code = nr_center_part(from.h, from.w, a, &h, &w, &part, err);
		break;
	case NR_CROP_RANDOM_RESIZED: {
		const struct nr_region box = nr_random_part(from.h, from.w, a, &t->draws);
		from = nr_pixels_part(from, box.y, box.x, box.h, box.w);
		break;
	}
	case NR_CROP_RESIZE: break;
	}
	if (!code) code = nr_resize_part(from, NULL, h, w, part, filter, &t->s->a, &t->s->resize, err);
	t->v = nr_pixels_of(&t->s->a);
	t->own = true;
	return code;
}

/* The bytes themselves into s->a, as steps that change them need: padding and mirror image made real. */
static int settle(struct state *t, struct nr_error *err)
{
	const int32_t size = (int32_t)t->a->size, C = t->v.channels;
	if (t->own && !t->mirrored) return NR_OK;
	struct nr_picture *to = t->own ? &t->s->b : &t->s->a;
	const int code = nr_picture_resize(to, size, size, C, err);
	if (code) return code;
	for (int32_t y = 0; y < size; y++) {
		const bool row = t->y + y >= 0 && t->y + y < t->v.h;
		uint8_t *out = to->pixels + (size_t)y * (size_t)size * (size_t)C;
		for (int32_t x = 0; x < size; x++, out += C) {
			const int32_t sx = t->x + (t->mirrored ? size - 1 - x : x);
			const bool in = row && sx >= 0 && sx < t->v.w;
			for (int32_t c = 0; c < C; c++) out[c] = in ? t->v.p[(t->y + y) * t->v.stride + (ptrdiff_t)sx * C + c] : 0;
		}
	}
	if (t->own) {
		const struct nr_picture swap = t->s->a;
		t->s->a = t->s->b, t->s->b = swap;
	}
	t->v = nr_pixels_of(&t->s->a);
	t->y = t->x = 0;
	t->mirrored = false, t->own = true;
	return NR_OK;
}

/* torchvision's ColorJitter: the four in random order. */
static void jitter(const struct nr_augment *a, struct nr_picture *p, struct nr_draws *d)
{
	int order[4] = { 0, 1, 2, 3 };
	for (int i = 3; i > 0; i--) {
		const int j = nr_draw_below(d, i + 1), k = order[i];
		order[i] = order[j];
		order[j] = k;
	}
	const double by[3] = { a->brightness, a->contrast, a->saturation };
	double factor[3];
	for (int i = 0; i < 3; i++) factor[i] = nr_draw_between(d, by[i] < 1 ? 1 - by[i] : 0, 1 + by[i]);
	const double turn = nr_draw_between(d, -a->hue, a->hue);
	static void (*const enhance[3])(struct nr_picture *, float) = { nr_brighten, nr_contrast, nr_saturate };
	for (int i = 0; i < 4; i++) {
		const int k = order[i];
		if (k == 3 && a->hue > 0) nr_shift_hue(p, turn);
		if (k < 3 && by[k] > 0) enhance[k](p, (float)factor[k]);
	}
}

static bool happens(struct nr_draws *d, double probability) { return probability > 0 && nr_draw(d) < probability; }

/* What the views of self-supervised learning have in addition: DINO's, and before it SimCLR's and BYOL's. */
static bool contrasts(const struct nr_augment *a) { return a->grey > 0 || a->blur > 0 || a->solarize > 0; }
static int contrast(struct state *t, struct nr_error *err)
{
	const struct nr_augment *a = t->a;
	int code = NR_OK;
	if (happens(&t->draws, a->grey)) nr_saturate(&t->s->a, 0);
	if (happens(&t->draws, a->blur)) code = nr_blur(&t->s->a, nr_draw_between(&t->draws, a->blur_min, a->blur_max), &t->s->b, err);
	if (happens(&t->draws, a->solarize)) nr_solarize(&t->s->a, 128);
	return code;
}

/* ---- to floats ---- */

static void make_table(struct nr_augment_scratch *s, const struct nr_pixel_scale *k)
{
	if (memcmp(&s->scaling, k, sizeof *k) == 0) return;
	s->scaling = *k;
	for (int c = 0; c < 3; c++)
		for (int v = 0; v < 256; v++) s->table[c][v] = ((float)v / 255.0f - (float)k->mean[c]) / (float)k->std[c];
}

int nr_augment_table(const struct nr_augment *a, const struct nr_pixel_stats *stats, int32_t channels, float table[3][256],
	struct nr_error *err)
{
	struct nr_augment_scratch s = { .table = { { 0 } } };
	struct nr_pixel_scale k;
	if (nr_augment_pixel_scale(a, stats, channels, &k, err)) return err->code;
	make_table(&s, &k);
	memcpy(table, s.table, sizeof s.table);
	return NR_OK;
}

void nr_augment_room(struct nr_augment_scratch *s, struct nr_picture **p, struct nr_resize_scratch **resize)
{
	*p = &s->a;
	*resize = &s->resize;
}

/* n pixels from p on (backwards if step is negative) to the planes. */
static void emit(int32_t C, int32_t n, const uint8_t *p, ptrdiff_t step, const float table[3][256], float *out, int64_t plane)
{
	if (C == 1)
		for (int32_t i = 0; i < n; i++, p += step) out[i] = table[0][*p];
	else
		for (int32_t i = 0; i < n; i++, p += step) {
			out[i] = table[0][p[0]];
			out[i + plane] = table[1][p[1]];
			out[i + 2 * plane] = table[2][p[2]];
		}
}

static void black(int32_t C, int32_t n, const float table[3][256], float *out, int64_t plane)
{
	for (int32_t c = 0; c < C; c++)
		for (int32_t i = 0; i < n; i++) out[c * plane + i] = table[c][0];
}

static void to_floats(const struct state *t, float *out)
{
	const int32_t size = (int32_t)t->a->size, C = t->v.channels;
	const int64_t plane = (int64_t)size * size;
	/* columns of the result before mirroring that lie inside */
	const int32_t from = t->x < 0 ? (-t->x < size ? -t->x : size) : 0;
	const int32_t room = t->v.w - t->x, to = room < from ? from : room < size ? room : size;
	const int32_t left = t->mirrored ? size - to : from, n = to - from;
	for (int32_t y = 0; y < size; y++, out += size) {
		const int32_t sy = t->y + y;
		if (sy < 0 || sy >= t->v.h) {
			black(C, size, t->s->table, out, plane);
			continue;
		}
		const int32_t first = t->x + (t->mirrored ? to - 1 : from);
		black(C, left, t->s->table, out, plane);
		emit(C, n, t->v.p + sy * t->v.stride + (ptrdiff_t)first * C, t->mirrored ? -C : C, t->s->table, out + left, plane);
		black(C, size - left - n, t->s->table, out + left + n, plane);
	}
}

/* ---- the whole ---- */

static int randaugment(struct state *t, const struct nr_pixel_scale *k, struct nr_error *err)
{
	struct nr_augment_scratch *s = t->s;
	const char *text = t->a->randaugment;
	if (strcmp(text, s->text) != 0) {
		const int code = nr_randaugment_parse(&s->randaugment, text, err);
		if (code) return code;
		if (strlen(text) < sizeof s->text) strcpy(s->text, text);
	}
	uint8_t fill[3];
	for (int c = 0; c < 3; c++) {
		const double level = k->mean[c] * 255;
		fill[c] = (uint8_t)(level >= 255 ? 255 : level + 0.5);
	}
	return nr_randaugment_run(&s->randaugment, (enum nr_filter)t->a->filter, fill, &s->a, &s->b, &t->draws, err);
}

struct nr_augment nr_augment_for_eval(const struct nr_augment *train, int64_t size, int32_t channels, double crop_share)
{
	static char none[] = "";
	struct nr_augment a = *train;
	a.size = size;
	a.channels = channels;
	a.crop = NR_CROP_CENTER;
	a.crop_share = crop_share;
	a.flip = a.brightness = a.contrast = a.saturation = a.hue = a.erase = 0;
	a.grey = a.blur = a.solarize = 0;
	a.randaugment = none;
	a.repeats = 1;
	return a;
}

int nr_augment_run(const struct nr_augment *a, const struct nr_pixel_stats *stats, const struct nr_picture *p, uint64_t seed, int64_t epoch,
	int64_t i, float *out, struct nr_augment_scratch *s, struct nr_error *err)
{
	const int32_t channels = a->channels ? a->channels : stats && stats->channels ? stats->channels : p->channels;
	struct state t = { .a = a, .s = s, .draws = nr_draws_of(seed, NR_STREAM_SAMPLE, epoch, (uint64_t)i << 16), .v = nr_pixels_of(p) };
	struct nr_pixel_scale k;
	int code = nr_augment_pixel_scale(a, stats, channels, &k, err);
	if (!code && p->channels != channels) {
		code = nr_picture_convert(p, channels, &s->converted, err);
		t.v = nr_pixels_of(&s->converted);
	}
	if (!code) code = crop(&t, err);
	if (code) return code;
	t.mirrored = a->flip > 0 && nr_draw(&t.draws) < a->flip;
	const bool colours = a->brightness > 0 || a->contrast > 0 || a->saturation > 0 || a->hue > 0, contrasted = contrasts(a);
	const bool rand = a->randaugment && *a->randaugment;
	if (colours || rand || contrasted) code = settle(&t, err);
	if (!code && colours && (a->jitter >= 1 || happens(&t.draws, a->jitter))) jitter(a, &s->a, &t.draws);
	if (!code && contrasted) code = contrast(&t, err);
	if (!code && rand) {
		code = randaugment(&t, &k, err);
		t.v = nr_pixels_of(&s->a);
	}
	if (code) return code;
	make_table(s, &k);
	to_floats(&t, out);
	if (a->erase > 0)
		nr_erase(out, channels, (int32_t)a->size, a->erase, &t.draws, nr_rng_make(seed, NR_STREAM_NOISE, (uint32_t)epoch),
			(uint64_t)i << 22);
	return NR_OK;
}
