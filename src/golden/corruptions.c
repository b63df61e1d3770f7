/* metrics/corruptions: deterministic ones byte by byte, others with given draws, through JPEG, or by their statistics over our own
 * draws. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden/check.h"
#include "picture/corrupt_inner.h"

static struct nr_picture picture_of(struct golden_case *c, const char *name)
{
	const struct golden_ints t = golden_ints(c, 3, "%s", name);
	golden_expect(c, t.d[2] == 3, "pictures of three colours");
	struct nr_picture p = { (int32_t)t.d[0], (int32_t)t.d[1], 3, golden_alloc(c, t.n, 1), (size_t)t.n };
	for (int64_t i = 0; i < t.n; i++) p.pixels[i] = (uint8_t)t.x[i];
	return p;
}

static struct nr_field field_of(struct golden_case *c, const struct nr_picture *p)
{
	struct nr_field f = { p->h, p->w, 3, golden_alloc(c, (int64_t)p->h * p->w * 3, sizeof *f.v) };
	for (int64_t i = 0; i < nr_field_len(&f); i++) f.v[i] = p->pixels[i] / 255.0;
	return f;
}

static void corrupt(struct golden_case *c, const struct nr_corrupt *how, struct nr_picture *p, struct nr_corrupt_scratch *s)
{
	struct nr_error err = { 0 };
	char text[512];
	if (nr_corrupt_run(how, p, s, &err)) golden_stop(c, NULL, "%s", nr_error_text(&err, text, sizeof text));
}

/* Pictures one after the other: no value more than a level off, and only `share` of them off at all. */
static void check_bytes(struct golden_case *c, const uint8_t *got, int64_t n, double share, const char *name)
{
	real *values = golden_reals(c, n);
	for (int64_t i = 0; i < n; i++) values[i] = (real)got[i];
	golden_check(c, "out", values, n, "%s", name);
	const struct golden_ints want = golden_ints(c, -1, "%s", name);
	int64_t off = 0;
	for (int64_t i = 0; i < n && i < want.n; i++) off += got[i] != want.x[i];
	c->checks++;
	if ((double)off > share * (double)n) golden_fail(c, name, "%.2f %% of the values differ", 100.0 * (double)off / (double)n);
}

static enum nr_corrupt_setting setting_of(struct golden_case *c)
{
	return golden_item(c, "parameters.gaussian_noise", 0) < 0.06 ? NR_CORRUPT_32 : NR_CORRUPT_224;
}

/* ---- imagenet, cifar ---- */

/* The number behind `stem` in the name of a tensor, 1 to 5; 0: there is none. */
static int severity_in_name(struct golden_case *c, const char *stem)
{
	char name[64];
	for (int i = 1; i <= NR_SEVERITIES; i++) {
		snprintf(name, sizeof name, "%s%d", stem, i);
		if (golden_has(c, name)) return i;
	}
	return 0;
}

/* Of one severity; and every number of the file's table against ours. */
static void check_kernel(struct golden_case *c)
{
	struct nr_error err = { 0 };
	const int severity = severity_in_name(c, "defocus_kernel_");
	const struct golden_tensor want = golden_tensor(c, 2, "defocus_kernel_%d", severity);
	const double *set = nr_corruption_setting(nr_corruption_find("defocus_blur", &err), setting_of(c), severity);
	double *kernel = golden_alloc(c, want.n, sizeof *kernel), worst = 0;
	golden_expect(c, nr_disk(set[0], set[1], NULL) == want.d[0] && want.d[1] == want.d[0], "the kernel's side");
	nr_disk(set[0], set[1], kernel);
	for (int64_t i = 0; i < want.n; i++) worst = fmax(worst, fabs(kernel[i] - (double)want.x[i]));
	c->checks++;
	if (!(worst <= 1e-6)) golden_fail(c, want.name, "error %.3g", worst);
}

static void check_settings(struct golden_case *c)
{
	const char *name;
	json_t *all = json_object_get(c->config, "parameters"), *list;
	json_object_foreach(all, name, list)
	{
		struct nr_error err = { 0 };
		const int number = nr_corruption_find(name, &err);
		if (number < 0) golden_stop(c, NULL, "no corruption '%s'", name);
		const double unit = strcmp(name, "elastic_transform") ? 1 : setting_of(c) == NR_CORRUPT_32 ? 32 : 244;
		for (size_t i = 0; i < NR_SEVERITIES; i++) {
			const double *ours = nr_corruption_setting(number, setting_of(c), (int)i + 1);
			const json_t *one = json_array_get(list, i);
			for (size_t q = 0; q < (json_is_array(one) ? json_array_size(one) : 1); q++) {
				const double theirs = json_number_value(json_is_array(one) ? json_array_get(one, q) : one);
				c->checks++;
				if (fabs(theirs - unit * ours[q]) > 1e-9) golden_fail(c, name, "severity %zu has %g, not %g", i + 1,
					theirs, unit * ours[q]);
			}
		}
	}
}

static void check_zooms(struct golden_case *c)
{
	struct nr_error err = { 0 };
	for (int i = 0; i < NR_SEVERITIES; i++) {
		const double *set = nr_corruption_setting(nr_corruption_find("zoom_blur", &err), setting_of(c), i + 1);
		c->checks++;
		if (nr_zoom_count(set[0], set[1]) != (int)golden_item(c, "zoom_counts", (size_t)i))
			golden_fail(c, "zoom_blur", "severity %d has %d zooms", i + 1, (int)nr_zoom_count(set[0], set[1]));
	}
}

static void fixed(struct golden_case *c, struct nr_corrupt_scratch *s)
{
	static const char *const names[] = { "brightness", "contrast", "defocus_blur", "pixelate", "zoom_blur" };
	const struct nr_picture p = picture_of(c, "in.picture");
	const int64_t each = (int64_t)p.h * p.w * 3;
	for (size_t q = 0; q < sizeof names / sizeof *names; q++) {
		struct nr_error err = { 0 };
		uint8_t *all = golden_alloc(c, NR_SEVERITIES * each, 1);
		for (int severity = 1; severity <= NR_SEVERITIES; severity++) {
			struct nr_picture one = p;
			one.pixels = all + (severity - 1) * each;
			memcpy(one.pixels, p.pixels, (size_t)each);
			corrupt(c, &(struct nr_corrupt){ .number = nr_corruption_find(names[q], &err), .severity = severity,
				.setting = setting_of(c) }, &one, s);
		}
		check_bytes(c, all, NR_SEVERITIES * each, strcmp(names[q], "brightness") ? 0.02 : 0.1, names[q]);
	}
	check_kernel(c);
	check_settings(c);
	check_zooms(c);
}

/* ---- given_draw ---- */

static const double *severity_of(struct golden_case *c, const char *name, int i)
{
	struct nr_error err = { 0 };
	return nr_corruption_setting(nr_corruption_find(name, &err), setting_of(c), (int)golden_item(c, "severities", (size_t)i));
}

static int severities(struct golden_case *c) { return (int)json_array_size(json_object_get(c->config, "severities")); }

enum law { NOISE, FROST, FOG };
static void given(struct golden_case *c, const struct nr_picture *p, enum law law, const char *name)
{
	const struct nr_picture photo = picture_of(c, "in.frost");
	const struct golden_tensor noise = golden_tensor(c, 3, "in.noise"), plasma = golden_tensor(c, 2, "in.plasma");
	const int64_t each = (int64_t)p->h * p->w * 3;
	uint8_t *all = golden_alloc(c, severities(c) * each, 1);
	for (int i = 0; i < severities(c); i++) {
		struct nr_field x = field_of(c, p), frost = field_of(c, &photo);
		struct nr_picture one = *p;
		const double *set = severity_of(c, name, i);
		double *given = golden_alloc(c, each, sizeof *given);
		for (int64_t q = 0; q < (law == FOG ? plasma.n : noise.n); q++) given[q] = (double)(law == FOG ? plasma.x[q] : noise.x[q]);
		if (law == NOISE) nr_add_noise(&x, given, set[0]);
		if (law == FROST) nr_add_frost(&x, &frost, set[0], set[1]);
		if (law == FOG) nr_add_fog(&x, given, (int32_t)plasma.d[1], set[0]);
		one.pixels = all + i * each;
		nr_corrupt_put(&one, &x);
	}
	check_bytes(c, all, severities(c) * each, 0.02, name);
}

static void glass(struct golden_case *c, const struct nr_picture *p)
{
	const double sigma = golden_item(c, "glass_parameters", 0);
	const int32_t shift = (int32_t)golden_item(c, "glass_parameters", 1), rounds = (int32_t)golden_item(c, "glass_parameters", 2);
	const struct golden_ints dx = golden_ints(c, 3, "in.glass_dx"), dy = golden_ints(c, 3, "in.glass_dy");
	struct nr_field x = field_of(c, p);
	struct nr_picture one = *p;
	golden_expect(c, dx.n == (int64_t)rounds * p->h * p->w && dy.n == dx.n, "shifts of every pixel in every round");
	nr_glass(&x, sigma, shift, rounds, dx.x, dy.x, golden_alloc(c, nr_smooth_room(&x), sizeof(double)));
	one.pixels = golden_alloc(c, nr_field_len(&x), 1);
	nr_corrupt_put(&one, &x);
	char name[64];
	snprintf(name, sizeof name, "glass_blur_imagenet_%d", severity_in_name(c, "glass_blur_imagenet_"));
	check_bytes(c, one.pixels, nr_field_len(&x), 0.02, name);
}

static void motion(struct golden_case *c, const struct nr_picture *p)
{
	const struct golden_tensor want = golden_tensor(c, 4, "motion_blur_float");
	double worst = 0;
	golden_expect(c, want.d[0] == severities(c) && want.n == severities(c) * (int64_t)p->h * p->w * 3, want.name);
	for (int i = 0; i < severities(c); i++) {
		const struct nr_field x = field_of(c, p), y = field_of(c, p);
		const double *set = severity_of(c, "motion_blur", i);
		const int64_t n = nr_field_len(&x);
		struct nr_field to = y;
		nr_motion_blur(&x, set[0], set[1], golden_item(c, "motion_angle", (size_t)i), &to);
		for (int64_t q = 0; q < n; q++) worst = fmax(worst, fabs(255 * to.v[q] - (double)want.x[i * n + q]));
	}
	c->checks++;
	if (!(worst <= 255e-4)) golden_fail(c, want.name, "error %.3g of 255", worst);
}

/* ---- jpeg ---- */

static void jpeg(struct golden_case *c, struct nr_corrupt_scratch *s, enum nr_corrupt_setting setting, const char *name)
{
	char key[64];
	snprintf(key, sizeof key, "in.picture_%s", name);
	const struct nr_picture p = picture_of(c, key);
	const struct golden_ints want = golden_ints(c, 4, "%s", name);
	const int64_t each = (int64_t)p.h * p.w * 3;
	struct nr_error err = { 0 };
	for (int severity = 1; severity <= NR_SEVERITIES; severity++) {
		struct nr_picture one = { 0 };
		if (nr_picture_resize(&one, p.h, p.w, 3, &err)) golden_stop(c, name, "out of memory");
		memcpy(one.pixels, p.pixels, (size_t)each);
		corrupt(c, &(struct nr_corrupt){ .number = nr_corruption_find("jpeg_compression", &err), .severity = severity,
			.setting = setting }, &one, s);
		int64_t sum = 0, most = 0;
		for (int64_t i = 0; i < each; i++) {
			const int64_t d = llabs((int64_t)one.pixels[i] - want.x[(severity - 1) * each + i]);
			sum += d;
			most = d > most ? d : most;
		}
		nr_picture_release(&one);
		c->checks++;
		if ((double)sum > 3.5 * (double)each || most > 64)
			golden_fail(c, name, "severity %d: mean difference %.2f, largest %d", severity, (double)sum / (double)each,
				(int)most);
	}
}

/* ---- random_stats ---- */

struct sums { double change, square, changes, squares; };       /* of the pictures' means, and their squares */

static void statistics(struct golden_case *c, struct nr_corrupt_scratch *s, const struct nr_picture *p, const char *name)
{
	struct nr_error err = { 0 };
	const bool small = !strncmp(name, "cifar.", 6);
	const int number = nr_corruption_find(strchr(name, '.') + 1, &err);
	if (number < 0) golden_stop(c, name, "no such corruption");
	const bool glass = strstr(name, "glass") != NULL;
	const double theirs = golden_number(c, glass ? "draws_glass" : "draws"), ours = glass ? 25 : 100;
	const struct golden_tensor want = golden_tensor(c, 2, "%s", name);
	const int64_t n = (int64_t)p->h * p->w * 3;
	struct nr_picture one = *p;
	one.pixels = golden_alloc(c, n, 1);
	golden_expect(c, want.d[0] == NR_SEVERITIES && want.d[1] == 4, "four numbers for each severity");
	for (int severity = 1; severity <= NR_SEVERITIES; severity++) {
		double change = 0, square = 0;
		for (int64_t draw = 0; draw < (int64_t)ours; draw++) {
			memcpy(one.pixels, p->pixels, (size_t)n);
			corrupt(c, &(struct nr_corrupt){ .number = number, .severity = severity, .seed = 11, .sample = draw,
				.setting = small ? NR_CORRUPT_32 : NR_CORRUPT_224 }, &one, s);
			double d = 0, d2 = 0;
			for (int64_t i = 0; i < n; i++) {
				const double v = one.pixels[i] - p->pixels[i];
				d += v, d2 += v * v;
			}
			change += d / (double)n / ours;
			square += d2 / (double)n / ours;
		}
		const real *w = want.x + 4 * (severity - 1);
		const double share = sqrt(1 / ours + 1 / theirs);
		c->checks += 2;
		if (!(fabs(change - (double)w[0]) <= 4 * (double)w[1] * share + 0.5))
			golden_fail(c, name, "severity %d: mean change %.3f, theirs %.3f +- %.3f", severity, change, (double)w[0],
				(double)w[1]);
		if (!(fabs(square - (double)w[2]) <= 4 * (double)w[3] * share + 0.5))
			golden_fail(c, name, "severity %d: mean squared change %.2f, theirs %.2f +- %.2f", severity, square, (double)w[2],
				(double)w[3]);
	}
}

int golden_metric_corruptions(struct golden_case *c)
{
	struct nr_error err = { 0 };
	struct nr_corrupt_scratch *s;
	if (nr_corrupt_scratch_make(&s, &err)) golden_stop(c, NULL, "out of memory");
	if (severity_in_name(c, "defocus_kernel_")) fixed(c, s);
	else if (golden_has(c, "in.noise")) {
		const struct nr_picture p = picture_of(c, "in.picture");
		given(c, &p, NOISE, "gaussian_noise");
		given(c, &p, FROST, "frost");
		given(c, &p, FOG, "fog");
		glass(c, &p);
		motion(c, &p);
	} else if (golden_has(c, "in.picture_cifar") || golden_has(c, "in.picture_imagenet")) {
		if (golden_has(c, "in.picture_cifar")) jpeg(c, s, NR_CORRUPT_32, "cifar");
		if (golden_has(c, "in.picture_imagenet")) jpeg(c, s, NR_CORRUPT_224, "imagenet");
	} else {
		const struct nr_picture p = picture_of(c, "in.picture");
		for (int64_t i = 0; i < nr_st_count(c->file); i++) {
			const char *name = nr_st_get(c->file, i)->name;
			if (strncmp(name, "in.", 3)) statistics(c, s, &p, name);
		}
	}
	nr_corrupt_scratch_free(s);
	return GOLDEN_RAN;
}
