/* data/augment*.c, crop.c, erase.c, randaugment.c, draws.c: Pillow's bytes, torchvision's and timm's geometry, pure draws. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "picture/augment.h"
#include "unit/pictures.h"

enum op {
	BRIGHTEN, CONTRAST, SATURATE, SHARPEN, INVERT, AUTOCONTRAST, EQUALIZE, POSTERIZE, SOLARIZE, SOLARIZE_ADD, BLUR, HUE,
	ROTATE_BILINEAR, SHEAR_X_BILINEAR, SHEAR_Y_BILINEAR, TRANSLATE_X_BILINEAR, TRANSLATE_Y_BILINEAR,
	ROTATE_BICUBIC, SHEAR_X_BICUBIC, SHEAR_Y_BICUBIC, TRANSLATE_X_BICUBIC, TRANSLATE_Y_BICUBIC,
};
static const struct one { enum op op; int32_t channels; int kind; double value; uint64_t hash; } cases[] = {
#define COLOUR(...) { __VA_ARGS__ },
#include "data/pictures/colour.def"
#undef COLOUR
};

static struct nr_picture p, q;
static struct nr_augment_scratch *scratch;
static struct nr_augment a;
static struct nr_error err;
static float out[3 * 64 * 64], out2[3 * 64 * 64];

static int setup(void **state)
{
	(void)state;
	err = (struct nr_error){ 0 };
	nr_option_defaults(nr_augment_options, &a);
	a.normalize = false;
	return nr_augment_scratch_make(&scratch, &err);
}

static int teardown(void **state)
{
	(void)state;
	nr_picture_release(&p);
	nr_picture_release(&q);
	nr_augment_scratch_free(scratch);
	return 0;
}

static int run(int64_t i, float *to) { return nr_augment_run(&a, NULL, &p, 7, 3, i, to, scratch, &err); }

static void warp(enum op op, double v)
{
	static const uint8_t fill[3] = { 5, 130, 250 };
	const enum nr_filter filter = op >= ROTATE_BICUBIC ? NR_FILTER_BICUBIC : NR_FILTER_BILINEAR;
	double m[6] = { 1, 0, 0, 0, 1, 0 };
	switch ((op - ROTATE_BILINEAR) % 5) {
	case 0: nr_rotation(p.h, p.w, v, m); break;
	case 1: m[1] = v; break;
	case 2: m[3] = v; break;
	case 3: m[2] = v * p.w; break;
	default: m[5] = v * p.h;
	}
	nr_warp(&p, m, filter, fill, &q);
}

static void every_operation_gives_pillows_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct one *c = &cases[i];
		make_picture(&p, 31, 26, c->channels, c->kind);
		make_picture(&q, 31, 26, c->channels, 0);
		const bool other = c->op == SHARPEN || c->op >= ROTATE_BILINEAR;
		switch (c->op) {
		case BRIGHTEN: nr_brighten(&p, (float)c->value); break;
		case CONTRAST: nr_contrast(&p, (float)c->value); break;
		case SATURATE: nr_saturate(&p, (float)c->value); break;
		case SHARPEN: nr_sharpen(&p, (float)c->value, &q); break;
		case INVERT: nr_invert(&p); break;
		case AUTOCONTRAST: nr_autocontrast(&p); break;
		case EQUALIZE: nr_equalize(&p); break;
		case POSTERIZE: nr_posterize(&p, (int)c->value); break;
		case SOLARIZE: nr_solarize(&p, (int)c->value); break;
		case SOLARIZE_ADD: nr_solarize_add(&p, (int)c->value); break;
		case BLUR: assert_int_equal(nr_blur(&p, c->value, &q, &err), NR_OK); break;
		case HUE: nr_shift_hue(&p, c->value); break;
		default: warp(c->op, c->value);
		}
		if (picture_hash(other ? &q : &p) != c->hash)
			fail_msg("operation %d by %g on kind %d, %d channels (row %zu) differs", (int)c->op, c->value, c->kind,
				(int)c->channels, i + 2);
	}
}

static void floats_are_scaled_as_torchvision_scales(void **state)
{
	(void)state;
	a.size = 16;
	a.normalize = true;
	for (int c = 0; c < 3; c++) a.mean[c] = 0.1 * (c + 3), a.std[c] = 0.2 + 0.01 * c;
	make_picture(&p, 16, 16, 3, 0);
	assert_int_equal(run(0, out), NR_OK);
	for (int c = 0; c < 3; c++)
		for (int i = 0; i < 256; i++) {
			const float v = ((float)p.pixels[3 * i + c] / 255.0f - (float)a.mean[c]) / (float)a.std[c];
			assert_true(out[256 * c + i] == v);
		}
	a.normalize = false;
	assert_int_equal(run(0, out), NR_OK);
	for (int i = 0; i < 256; i++) assert_true(fabsf(out[i] - ((float)p.pixels[3 * i] / 127.5f - 1)) < 1e-6f);
}

static void unknown_statistics_are_an_error_with_a_way_out(void **state)
{
	(void)state;
	a.size = 8;
	a.normalize = true;
	make_picture(&p, 8, 8, 3, 0);
	assert_int_equal(run(0, out), NR_EVALUE);
	assert_non_null(strstr(err.hint, "--no-normalize"));
	const struct nr_pixel_stats s = { .channels = 3, .mean = { .5f, .5f, .5f }, .std = { .2f, .2f, .2f } };
	assert_int_equal(nr_augment_run(&a, &s, &p, 1, 1, 0, out, scratch, NULL), NR_OK);
}

static void a_picture_of_another_size_needs_a_crop(void **state)
{
	(void)state;
	a.size = 16;
	make_picture(&p, 16, 17, 3, 0);
	a.crop = NR_CROP_NONE;
	assert_int_equal(run(0, out), NR_ESHAPE);
	assert_non_null(strstr(err.hint, "--crop auto"));
	a.crop = NR_CROP_RESIZE;
	err = (struct nr_error){ 0 };
	assert_int_equal(run(0, out), NR_OK);
}

static void auto_crops_the_middle_of_pictures_of_another_size_only(void **state)
{
	(void)state;
	static float want[3 * 16 * 16];
	a.size = 16;
	for (int32_t w = 16; w < 40; w += 11) {
		make_picture(&p, 16, w, 3, 0);
		a.crop = w == 16 ? NR_CROP_NONE : NR_CROP_CENTER;
		assert_int_equal(run(0, want), NR_OK);
		a.crop = NR_CROP_AUTO;
		assert_int_equal(run(0, out), NR_OK);
		assert_memory_equal(out, want, sizeof want);
	}
}

static void channels_are_brought_to_those_wanted(void **state)
{
	(void)state;
	a.size = 12;
	a.channels = 3;
	make_picture(&p, 12, 12, 1, 0);
	assert_int_equal(run(0, out), NR_OK);
	assert_memory_equal(out, out + 144, 144 * sizeof *out);
	assert_memory_equal(out, out + 288, 144 * sizeof *out);
	a.channels = 1;
	make_picture(&p, 12, 12, 3, 0);
	assert_int_equal(run(0, out), NR_OK);
	for (int i = 0; i < 144; i++) assert_true(fabsf(out[i] - ((float)nr_luma(p.pixels + 3 * i) / 127.5f - 1)) < 1e-6f);
}

/* The result must be a window of the padded picture, perhaps mirrored; every place and both directions occur. */
static void pad_takes_every_window_of_the_padded_picture(void **state)
{
	(void)state;
	bool seen[2][5][5] = { 0 };
	a.crop = NR_CROP_PAD;
	a.size = 12;
	a.pad = 2;
	a.flip = 0.5;
	make_picture(&p, 12, 12, 3, 0);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(run(i, out), NR_OK);
		int found = 0;
		for (int k = 0; k < 50; k++) {
			const int m = k / 25, oy = k / 5 % 5 - 2, ox = k % 5 - 2;
			bool same = true;
			for (int j = 0; j < 3 * 144 && same; j++) {
				const int c = j / 144, y = j % 144 / 12 + oy, col = j % 12, x = (m ? 11 - col : col) + ox;
				const bool in = y >= 0 && y < 12 && x >= 0 && x < 12;
				const float v = (float)(in ? p.pixels[(y * 12 + x) * 3 + c] : 0) / 127.5f - 1;
				same = fabsf(out[j] - v) < 1e-6f;
			}
			if (same) seen[m][oy + 2][ox + 2] = true;
			found += same;
		}
		assert_int_equal(found, 1);
	}
	for (int k = 0; k < 50; k++) assert_true((&seen[0][0][0])[k]);
	/* a window smaller than the picture, and one that does not fit */
	a.size = 10, a.pad = 0;
	assert_int_equal(run(0, out), NR_OK);
	a.size = 20, a.pad = 3;
	assert_int_equal(run(0, out), NR_ESHAPE);
}

static void the_centre_is_torchvisions(void **state)
{
	(void)state;
	static const struct { int h, w, size; double share; int all_h, all_w, y, x; } want[] = {
		{ 375, 500, 224, 0.875, 256, 341, 16, 58 },
		{ 500, 375, 224, 0.875, 341, 256, 58, 16 },
		{ 100, 100, 32, 0.9, 35, 35, 2, 2 },
		{ 33, 64, 33, 1, 33, 64, 0, 16 },
	};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		int32_t h, w;
		struct nr_region part;
		a.size = want[i].size, a.crop_share = want[i].share;
		assert_int_equal(nr_center_part(want[i].h, want[i].w, &a, &h, &w, &part, &err), NR_OK);
		assert_int_equal(h, want[i].all_h);
		assert_int_equal(w, want[i].all_w);
		assert_int_equal(part.y, want[i].y);
		assert_int_equal(part.x, want[i].x);
	}
	/* through the whole: a resize, then a cut */
	struct nr_resize_scratch r = { 0 };
	a = (struct nr_augment){ .size = 24, .crop = NR_CROP_CENTER, .crop_share = 0.75, .filter = NR_FILTER_BICUBIC };
	make_picture(&p, 61, 47, 3, 0);
	assert_int_equal(run(0, out), NR_OK);
	assert_int_equal(nr_resize(&p, NULL, 41, 32, NR_FILTER_BICUBIC, &q, &r, &err), NR_OK);
	for (int y = 0; y < 24; y++)
		for (int x = 0; x < 24; x++)
			assert_true(fabsf(out[y * 24 + x] - ((float)q.pixels[((y + 8) * 32 + x + 4) * 3] / 127.5f - 1)) < 1e-6f);
	nr_resize_scratch_release(&r);
}

static void random_parts_have_the_area_and_aspect_asked_for(void **state)
{
	(void)state;
	double sum = 0;
	struct nr_draws d = nr_draws_of(1, NR_STREAM_SAMPLE, 0, 0);
	for (int i = 0; i < 20000; i++) {
		const struct nr_region r = nr_random_part(400, 500, &a, &d);
		const double area = (double)r.h * r.w / 200000, aspect = (double)r.w / r.h;
		assert_true(r.y >= 0 && r.x >= 0 && r.y + r.h <= 400 && r.x + r.w <= 500);
		assert_true(area > 0.078 && area < 1.0001 && aspect > 0.74 && aspect < 1.35);
		sum += area;
	}
	assert_true(fabs(sum / 20000 - 0.452) < 0.008);  /* torchvision's: large ones fit less often */
	/* no try can fit: the middle with the nearest aspect */
	const struct nr_region tall = nr_random_part(1000, 10, &a, &d), flat = nr_random_part(10, 1000, &a, &d);
	assert_true(tall.w == 10 && tall.h == 13 && tall.x == 0 && tall.y == 493);
	assert_true(flat.h == 10 && flat.w == 13 && flat.y == 0 && flat.x == 493);
	const struct nr_region thin = nr_random_part(1, 1, &a, &d);
	assert_true(thin.h == 1 && thin.w == 1);
}

static void everything_at_once_is_a_pure_function_of_the_sample(void **state)
{
	(void)state;
	struct nr_augment_scratch *other;
	a.size = 20;
	a.crop = NR_CROP_RANDOM_RESIZED;
	a.flip = 0.5, a.erase = 0.5, a.hue = 0.1, a.brightness = a.contrast = a.saturation = 0.4;
	char text[] = "n=3,m=9,std=0.5,prob=1";
	a.randaugment = text;
	assert_int_equal(nr_augment_scratch_make(&other, &err), NR_OK);
	for (int channels = 1; channels <= 3; channels += 2) {
		make_picture(&p, 50, 37, channels, 1);
		uint64_t before = 0;
		for (int64_t i = 0; i < 200; i++) {
			const size_t n = (size_t)channels * 400 * sizeof *out;
			assert_int_equal(run(i, out), NR_OK);
			for (size_t k = 0; k < n / sizeof *out; k++) assert_true(isfinite(out[k]));
			assert_int_equal(nr_augment_run(&a, NULL, &p, 7, 3, i, out2, other, &err), NR_OK);
			assert_memory_equal(out, out2, n);
			assert_true(fnv(out, n) != before);
			before = fnv(out, n);
		}
		assert_int_equal(run(5, out), NR_OK);
		assert_int_equal(nr_augment_run(&a, NULL, &p, 8, 3, 5, out2, other, &err), NR_OK);
		assert_memory_not_equal(out, out2, 400 * sizeof *out);
		assert_int_equal(nr_augment_run(&a, NULL, &p, 7, 4, 5, out2, other, &err), NR_OK);
		assert_memory_not_equal(out, out2, 400 * sizeof *out);
	}
	nr_augment_scratch_free(other);
}

static void randaugment_reads_our_way_and_timms(void **state)
{
	(void)state;
	struct nr_randaugment r;
	assert_int_equal(nr_randaugment_parse(&r, "n=3,m=7", &err), NR_OK);
	assert_true(r.n == 3 && r.m == 7 && r.std == 0.5 && r.prob == 0.5 && r.inc);
	assert_int_equal(nr_randaugment_parse(&r, "rand-m9-mstd0.5-inc1", &err), NR_OK);
	assert_true(r.n == 2 && r.m == 9 && r.std == 0.5 && r.prob == 0.5 && r.inc);
	assert_int_equal(nr_randaugment_parse(&r, "rand-m6-n4-p1", &err), NR_OK);
	assert_true(r.n == 4 && r.m == 6 && r.std == 0 && r.prob == 1 && !r.inc);
	static const char *const bad[] = { "rand-x3", "rand-m", "m=11", "rand-m9-inc7", "q=1", "rand-m9-tweights", "rand--" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		err = (struct nr_error){ 0 };
		assert_int_not_equal(nr_randaugment_parse(&r, bad[i], &err), NR_OK);
		assert_true(err.code && err.what[0]);
	}
}

static void randaugment_of_no_operation_changes_nothing(void **state)
{
	(void)state;
	char none[] = "n=0", never[] = "n=5,prob=0";
	a.size = 20;
	make_picture(&p, 20, 20, 3, 0);
	assert_int_equal(run(1, out), NR_OK);
	for (int i = 0; i < 2; i++) {
		a.randaugment = i ? none : never;
		assert_int_equal(run(1, out2), NR_OK);
		assert_memory_equal(out, out2, 1200 * sizeof *out);
	}
}

static void erasing_fills_one_box_with_noise_as_often_as_asked(void **state)
{
	(void)state;
	int erased = 0;
	double sum = 0, square = 0, count = 0;
	for (uint64_t i = 0; i < 2000; i++) {
		for (int k = 0; k < 3 * 32 * 32; k++) out[k] = 100;
		struct nr_draws d = nr_draws_of(3, NR_STREAM_SAMPLE, 0, i << 16);
		nr_erase(out, 3, 32, 0.25, &d, nr_rng_make(3, NR_STREAM_NOISE, 0), i << 22);
		int n = 0, top = 32, left = 32, bottom = -1, right = -1;
		for (int k = 0; k < 1024; k++) {
			assert_int_equal(out[k] == 100, out[k + 1024] == 100);
			if (out[k] == 100) continue;
			n++;
			top = k / 32 < top ? k / 32 : top, bottom = k / 32 > bottom ? k / 32 : bottom;
			left = k % 32 < left ? k % 32 : left, right = k % 32 > right ? k % 32 : right;
			for (int c = 0; c < 3; c++) sum += out[k + 1024 * c], square += (double)out[k + 1024 * c] * out[k + 1024 * c];
			count += 3;
		}
		if (!n) continue;
		erased++;
		assert_int_equal(n, (bottom - top + 1) * (right - left + 1));
		assert_true(n >= 14 && n <= 380);       /* 2 to 33 % of 1024, rounded sides */
	}
	assert_true(erased > 420 && erased < 580);
	assert_true(fabs(sum / count) < 0.01 && fabs(square / count - 1) < 0.01);
}

static void beta_draws_have_their_moments(void **state)
{
	(void)state;
	static const double alpha[] = { 0.02, 0.2, 0.8, 1, 2.5, 30 };
	for (size_t k = 0; k < sizeof alpha / sizeof *alpha; k++) {
		double sum = 0, square = 0;
		const int n = 40000;
		for (int i = 0; i < n; i++) {
			struct nr_draws d = nr_draws_of(1, NR_STREAM_MIX, i, 0);
			const double v = nr_draw_beta(&d, alpha[k]);
			assert_true(v >= 0 && v <= 1);
			sum += v;
			square += (v - 0.5) * (v - 0.5);
		}
		const double var = 1 / (4 * (2 * alpha[k] + 1));
		assert_true(fabs(sum / n - 0.5) < 5 * sqrt(var / n));
		assert_true(fabs(square / n / var - 1) < 0.04);
	}
}

static void wrong_settings_are_refused_before_any_picture(void **state)
{
	(void)state;
	const struct nr_augment good = a;
	assert_int_equal(nr_augment_check(&a, NULL, &err), NR_OK);
	a.channels = 2;
	assert_int_equal(nr_augment_check(&a, NULL, NULL), NR_EVALUE);
	a = good, a.size = 5000;
	assert_int_equal(nr_augment_check(&a, NULL, NULL), NR_EVALUE);
	a = good, a.crop = NR_CROP_RANDOM_RESIZED, a.scale_min = 0.9, a.scale_max = 0.5;
	assert_int_equal(nr_augment_check(&a, NULL, NULL), NR_EVALUE);
	char text[] = "mm=3";
	a = good, a.randaugment = text;
	assert_int_not_equal(nr_augment_check(&a, NULL, NULL), NR_OK);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(every_operation_gives_pillows_bytes),
		T(floats_are_scaled_as_torchvision_scales),
		T(unknown_statistics_are_an_error_with_a_way_out),
		T(a_picture_of_another_size_needs_a_crop), T(auto_crops_the_middle_of_pictures_of_another_size_only),
		T(channels_are_brought_to_those_wanted),
		T(pad_takes_every_window_of_the_padded_picture),
		T(the_centre_is_torchvisions),
		T(random_parts_have_the_area_and_aspect_asked_for),
		T(everything_at_once_is_a_pure_function_of_the_sample),
		T(randaugment_reads_our_way_and_timms),
		T(randaugment_of_no_operation_changes_nothing),
		T(erasing_fills_one_box_with_noise_as_often_as_asked),
		T(beta_draws_have_their_moments),
		T(wrong_settings_are_refused_before_any_picture),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
