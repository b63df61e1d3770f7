/* src/picture/corrupt*.c: draws depend on seed, sample, corruption and severity alone; each law on pictures that show it. (Published bytes
 * and statistics: test/golden/dense/metrics/corruptions__*.) */
#include <math.h>

#include "unit/datasets.h"
#include "unit/pictures.h"

#include "picture/corrupt_inner.h"

static struct nr_corrupt_scratch *scratch;
static struct nr_error err;

static int open_scratch(void **state)
{
	(void)state;
	err = (struct nr_error){ 0 };
	return nr_corrupt_scratch_make(&scratch, &err);
}

static int close_scratch(void **state)
{
	(void)state;
	nr_corrupt_scratch_free(scratch);
	return 0;
}

static uint64_t corrupted(int32_t side, int32_t channels, struct nr_corrupt how)
{
	struct nr_picture p = { 0 };
	char line[512];
	make_picture(&p, side, side, channels, 1);
	if (nr_corrupt_run(&how, &p, scratch, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	const uint64_t hash = picture_hash(&p);
	nr_picture_release(&p);
	return hash;
}

static int number(const char *name)
{
	const int n = nr_corruption_find(name, &err);
	assert_true(n >= 0);
	return n;
}

static bool drawn(int n)
{
	static const char *const fixed[] = { "defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg_compression" };
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		if (!strcmp(nr_corruption_name(n), fixed[i])) return false;
	return true;
}

static void every_corruption_changes_pictures_of_any_size_and_kind(void **state)
{
	(void)state;
	for (int n = 0; n < NR_CORRUPTIONS; n++)
		for (int severity = 1; severity <= NR_SEVERITIES; severity++)
			for (int channels = 1; channels <= 3; channels += 2) {
				struct nr_picture p = { 0 };
				make_picture(&p, 28, 28, channels, 1);
				const struct nr_corrupt how = { .number = n, .severity = severity, .setting = NR_CORRUPT_32, .sample = 3 };
				/* a shift of elastic pictures, and glass of no width, may leave some alone; noise never */
				if (corrupted(28, channels, how) == picture_hash(&p))
					fail_msg("%s of severity %d changes nothing", nr_corruption_name(n), severity);
				nr_picture_release(&p);
				corrupted(57, channels, (struct nr_corrupt){ .number = n, .severity = severity,
					.setting = NR_CORRUPT_224 });
			}
}

static void draws_are_a_function_of_seed_sample_and_severity(void **state)
{
	(void)state;
	for (int n = 0; n < NR_CORRUPTIONS; n++) {
		const struct nr_corrupt how = { .number = n, .severity = 3, .setting = NR_CORRUPT_32, .seed = 5, .sample = 7 };
		struct nr_corrupt other = how;
		const uint64_t first = corrupted(32, 3, how);
		other.sample = 8;
		const uint64_t sample = corrupted(32, 3, other);
		other = how, other.seed = 6;
		const uint64_t seed = corrupted(32, 3, other);
		assert_true(corrupted(32, 3, how) == first);                    /* whatever the scratch was used for */
		assert_int_equal(sample != first, drawn(n));
		assert_int_equal(seed != first, drawn(n));
	}
}

static struct nr_picture flat(int32_t side, uint8_t level)
{
	struct nr_picture p = { 0 };
	assert_int_equal(nr_picture_resize(&p, side, side, 3, &err), 0);
	memset(p.pixels, level, (size_t)side * (size_t)side * 3);
	return p;
}

/* Mean, deviation, and the shares of black and of white, of a flat grey picture that went through. */
struct seen { double mean, sd, black, white; };
static struct seen through(const char *name, enum nr_corrupt_setting setting, int severity, uint8_t level)
{
	struct nr_picture p = flat(64, level);
	const int64_t n = 64 * 64 * 3;
	struct seen s = { 0 };
	assert_int_equal(nr_corrupt_run(&(struct nr_corrupt){ .number = number(name), .severity = severity, .setting = setting }, &p,
		scratch, &err), 0);
	for (int64_t i = 0; i < n; i++) {
		s.mean += p.pixels[i] / (double)n;
		s.black += (p.pixels[i] == 0) / (double)n;
		s.white += (p.pixels[i] == 255) / (double)n;
	}
	for (int64_t i = 0; i < n; i++) s.sd += (p.pixels[i] - s.mean) * (p.pixels[i] - s.mean) / (double)n;
	s.sd = sqrt(s.sd);
	nr_picture_release(&p);
	return s;
}
#define NEAR(a, b, by) assert_true(fabs((double)(a) - (b)) <= (by))

static void noise_has_its_deviation_and_shares(void **state)
{
	(void)state;
	struct seen s = through("gaussian_noise", NR_CORRUPT_32, 5, 128);
	NEAR(s.mean, 127.5, 1);
	NEAR(s.sd, 25.5, 1);                                                    /* a tenth of the range */
	s = through("shot_noise", NR_CORRUPT_224, 1, 128);
	NEAR(s.mean, 127.5, 1.5);
	NEAR(s.sd, 255 * sqrt(128 / 255. / 60), 1);                             /* Poisson: variance = mean, in photons */
	s = through("shot_noise", NR_CORRUPT_32, 1, 255);                       /* 500 photons: half of the pixels are as white as before */
	NEAR(s.white, 0.5, 0.05);
	s = through("impulse_noise", NR_CORRUPT_224, 5, 128);
	NEAR(s.black, 0.135, 0.015);
	NEAR(s.white, 0.135, 0.015);
	s = through("shot_noise", NR_CORRUPT_32, 3, 0);                         /* no light, no noise */
	NEAR(s.mean, 0, 0);
}

static void blurs_keep_flat_pictures(void **state)
{
	(void)state;
	static const char *const blurs[] = { "defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "elastic_transform", "pixelate" };
	for (size_t i = 0; i < sizeof blurs / sizeof *blurs; i++)
		for (int severity = 1; severity <= NR_SEVERITIES; severity++) {
			const struct seen s = through(blurs[i], NR_CORRUPT_224, severity, 100);
			/* cut to bytes, not rounded, by glass twice; and the edge of a large disk's kernel is folded back, as published */
			NEAR(s.mean, 100, !strcmp(blurs[i], "defocus_blur") && severity > 3 ? 4 : 2);
			NEAR(s.sd, 0, 0.5);
		}
}

static void kernels_sum_to_one_and_borders_fold(void **state)
{
	(void)state;
	static const double disks[][2] = { { .3, .4 }, { 1.5, .1 }, { 8, .5 }, { 10, .5 } };
	for (size_t i = 0; i < 4; i++) {
		double kernel[64 * 64], sum = 0;
		const int32_t side = nr_disk(disks[i][0], disks[i][1], NULL);
		assert_int_equal(side, disks[i][0] > 8 ? 21 : 17);
		nr_disk(disks[i][0], disks[i][1], kernel);
		for (int32_t k = 0; k < side * side; k++) sum += kernel[k];
		NEAR(sum, 1, disks[i][0] < 8 ? 1e-12 : 0.04);           /* at 8 and more the mirrored border adds to it */
	}
	static const int32_t mirror[] = { 2, 2, 1, 0, 0, 1, 2, 2, 1 }, inside[] = { 0, 1, 2, 1, 0, 1, 2, 1, 0 };
	for (int32_t i = -4; i < 5; i++) {
		assert_int_equal(nr_border(i, 3, NR_BORDER_MIRROR), mirror[i + 4]);
		assert_int_equal(nr_border(i, 3, NR_BORDER_MIRROR_INSIDE), inside[i + 4]);
		assert_int_equal(nr_border(i, 3, NR_BORDER_EDGE), i < 0 ? 0 : i > 2 ? 2 : i);
	}
}

static void plasma_fills_the_range_and_decays(void **state)
{
	(void)state;
	double rough[2] = { 0, 0 }, map[64 * 64];
	for (int k = 0; k < 2; k++) {
		double low = 1, high = 0;
		nr_plasma(nr_rng_make(1, NR_STREAM_CORRUPT, 0), k ? 1.4 : 3, 64, map);
		for (int i = 0; i < 64 * 64; i++) low = fmin(low, map[i]), high = fmax(high, map[i]);
		assert_true(low == 0 && high == 1);
		for (int i = 1; i < 64 * 64; i++) rough[k] += fabs(map[i] - map[i - 1]);
	}
	assert_true(rough[1] > 2 * rough[0]);
}

static void brightness_raises_the_value_and_contrast_keeps_the_mean(void **state)
{
	(void)state;
	struct nr_picture p = flat(8, 0);
	for (int i = 0; i < 64; i++) p.pixels[3 * i] = 100, p.pixels[3 * i + 1] = 50;   /* value 100/255, saturation 1 */
	assert_int_equal(nr_corrupt_run(&(struct nr_corrupt){ .number = number("brightness"), .severity = 2, .setting = NR_CORRUPT_224 },
		&p,
		scratch, &err), 0);
	NEAR(p.pixels[0], 151, 1);
	NEAR(p.pixels[1], 75.5, 1);                                             /* the hue stays */
	assert_int_equal(p.pixels[2], 0);
	for (int i = 0; i < 64; i++) memset(p.pixels + 3 * i, i < 32 ? 0 : 200, 3);
	assert_int_equal(nr_corrupt_run(&(struct nr_corrupt){ .number = number("contrast"), .severity = 3, .setting = NR_CORRUPT_224 }, &p,
		scratch, &err), 0);
	NEAR(p.pixels[0], 80, 1);
	NEAR(p.pixels[3 * 63], 120, 1);
	nr_picture_release(&p);
}

static void frost_is_cut_from_photographs_large_enough(void **state)
{
	(void)state;
	char dir[512];
	struct nr_frost frost;
	struct nr_picture p = flat(32, 100);
	made_file(made_path("frost-empty"), "", 0);
	assert_int_equal(nr_frost_open(&frost, made_path("no-such-folder"), &err), NR_EIO);
	strcpy(dir, made_path("frost"));
	assert_int_equal(mkdir(dir, 0777), 0);
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_frost_open(&frost, dir, &err), NR_EIO);             /* empty */
	err = (struct nr_error){ 0 };
	made_picture(made_path("frost/1.png"), 1, 200, 240, 3);
	assert_int_equal(nr_frost_open(&frost, dir, &err), 0);
	assert_int_equal(frost.count, 1);
	struct nr_corrupt how = { .number = number("frost"), .severity = 1, .setting = NR_CORRUPT_32, .frost = &frost };
	assert_int_equal(nr_corrupt_run(&how, &p, scratch, &err), 0);
	for (int i = 0; i < 32 * 32 * 3; i++) assert_true(p.pixels[i] >= 99 && p.pixels[i] <= 151);    /* 100 + .2 x photograph */
	nr_picture_release(&p);
	p = flat(48, 100);                                                      /* a fifth of 200 is less */
	assert_int_equal(nr_corrupt_run(&how, &p, scratch, &err), NR_ESHAPE);
	nr_frost_close(&frost);
	nr_picture_release(&p);
}

static void names_and_severities_are_checked(void **state)
{
	(void)state;
	struct nr_picture p = flat(8, 1);
	assert_true(nr_corruption_find("gausian_noise", &err) < 0);
	assert_non_null(strstr(err.hint, "gaussian_noise"));
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_corrupt_run(&(struct nr_corrupt){ .severity = 6 }, &p, scratch, &err), NR_EVALUE);
	assert_int_equal(nr_corrupt_setting_for(32), NR_CORRUPT_32);
	assert_int_equal(nr_corrupt_setting_for(224), NR_CORRUPT_224);
	nr_picture_release(&p);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scratch, close_scratch)
	const struct CMUnitTest tests[] = {
		TEST(every_corruption_changes_pictures_of_any_size_and_kind),
		TEST(draws_are_a_function_of_seed_sample_and_severity),
		TEST(noise_has_its_deviation_and_shares),
		TEST(blurs_keep_flat_pictures),
		TEST(kernels_sum_to_one_and_borders_fold),
		TEST(plasma_fills_the_range_and_decays),
		TEST(brightness_raises_the_value_and_contrast_keeps_the_mean),
		TEST(frost_is_cut_from_photographs_large_enough),
		TEST(names_and_severities_are_checked),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
