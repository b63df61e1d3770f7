/* The loader alone. Small pictures from memory: 32 x 32, padded crop, mirror image, normalised. JPEG files of 500 x 375: decoded,
 * random resized crop to 224, mirror image, normalised; with --peer torchvision reads the same files with as many workers. */
#include "loader.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <turbojpeg.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/save.h"
#include "norma/data.h"

enum { SMALL = 32, SMALLS = 1000, WIDTH = 500, HEIGHT = 375, FILES = 64, STREAM = 40 << 24 };

static struct { uint8_t *small; char folder[64]; } data;

static int get_small(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p, struct nr_error *err)
{
	const int code = nr_picture_resize(p, SMALL, SMALL, 3, err);
	if (!code) memcpy(p->pixels, data.small + i % SMALLS * SMALL * SMALL * 3, SMALL * SMALL * 3);
	return code;
}

static void file_name(char *path, size_t size, int64_t i) { snprintf(path, size, "%s/%02d.jpg", data.folder, (int)(i % FILES)); }

static int get_file(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p, struct nr_error *err)
{
	char path[128];
	file_name(path, sizeof path, i);
	return nr_picture_read(p, path, 3, err);
}

static int32_t no_label(const struct nr_source *s, enum nr_split split, int64_t i) { return -1; }

/* Something like a photograph: waves of random direction whose height falls with their frequency, and a little noise. */
static void paint(uint8_t *rgb, uint32_t number)
{
	enum { WAVES = 24 };
	const struct nr_rng r = nr_rng_make(1, STREAM, number);
	for (int c = 0; c < 3; c++)
		for (int y = 0; y < HEIGHT; y++) {
			float row[WIDTH];
			for (int x = 0; x < WIDTH; x++)
				row[x] = 128 + 12 * nr_rng_uniform(r, ((uint64_t)c * HEIGHT + (uint64_t)y) * WIDTH + (uint64_t)x);
			for (uint64_t w = 0; w < WAVES; w++) {
				const float f = 0.004f * powf(1.3f, (float)w), turn = 6.2832f * nr_rng_uniform(r, 1 << 24 | 4 * w);
				const float phase = 6.2832f * nr_rng_uniform(r, (1 << 24 | 4 * w) + 1 + (w > 8 ? 0 : (uint64_t)c));
				const float dx = f * cosf(turn), at = f * sinf(turn) * (float)y + phase, high = 26 / (1 + 40 * f);
				for (int x = 0; x < WIDTH; x++) row[x] += high * sinf(6.2832f * dx * (float)x + at);
			}
			for (int x = 0; x < WIDTH; x++) {
				const float v = row[x] < 0 ? 0 : row[x] > 255 ? 255 : row[x];
				rgb[(y * WIDTH + x) * 3 + c] = (uint8_t)v;
			}
		}
}

static int write_files(int files, struct nr_error *err)
{
	uint8_t *rgb = malloc(WIDTH * HEIGHT * 3), *jpeg = NULL;
	tjhandle h = tjInitCompress();
	int code = rgb && h ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot make pictures", NULL, "out of memory");
	for (int i = 0; !code && i < files; i++) {
		unsigned long size = 0;
		char path[128];
		paint(rgb, (uint32_t)i);
		file_name(path, sizeof path, i);
		if (tjCompress2(h, rgb, WIDTH, 0, HEIGHT, TJPF_RGB, &jpeg, &size, TJSAMP_420, 90, 0))
			code = nr_fail(err, NR_EFORMAT, "cannot make pictures", NULL, "%s", tjGetErrorStr2(h));
		else
			code = nr_save_file(path, jpeg, size, err);
		tjFree(jpeg);
		jpeg = NULL;
	}
	if (h) tjDestroy(h);
	free(rgb);
	return code;
}

/* Samples per second, or a negative code. */
static double rate(const struct nr_loader_config *c, double seconds, bool tiny, struct nr_error *err)
{
	struct nr_loader *l;
	struct nr_batch *b;
	int code = nr_loader_open(&l, c, err);
	if (code) return code;
	double start = 0, now = 0;
	int64_t samples = 0;
	for (int i = 0; !code && (i < 4 || (now - start < seconds && !tiny)); i++) {    /* three to warm up */
		code = nr_loader_next(l, &b, err);
		if (code) break;
		now = nr_clock();
		if (i >= 3) samples += b->samples;
		if (i == 2) start = now;
		nr_loader_give_back(l, b);
	}
	nr_loader_close(l);
	return code ? code : (double)samples / (now - start);
}

static double peer_rate(int threads, double seconds, struct nr_error *err)
{
	char script[512], python[512], t[16], s[32];
	if (bench_find_peer("bench/peers/loader.py", script, python, sizeof python, err)) return err->code;
	snprintf(t, sizeof t, "%d", threads);
	snprintf(s, sizeof s, "%g", seconds);
	char folder_flag[] = "--folder", threads_flag[] = "--threads", seconds_flag[] = "--seconds";
	char *argv[] = { python, script, folder_flag, data.folder, threads_flag, t, seconds_flag, s, NULL };
	json_t *records = bench_records(argv, err);
	if (!records) return err->code;
	const double v = json_number_value(json_object_get(json_array_get(records, 0), "samples_per_s"));
	json_decref(records);
	return v > 0 ? v : nr_fail(err, NR_EFORMAT, "no result from", script, "samples_per_s is missing");
}

static int report(const struct bench_options *o, const char *name, int threads, double ours, double peer, double ratio,
	double foreign, struct nr_error *err)
{
	if (o->json) {
		json_t *r = json_pack("{s:s,s:i,s:f,s:f}", "case", name, "threads", threads, "samples_per_s", ours, "foreign_cpu", foreign);
		if (r) bench_limits_add(r, o->tiny);
		if (r && peer > 0) {
			json_object_set_new(r, "peer_samples_per_s", json_real(peer));
			json_object_set_new(r, "ratio", json_real(ratio));
		}
		return bench_json_line(stdout, r, err);
	}
	printf("%-28s %7d %12.0f", name, threads, ours);
	if (peer > 0) printf(" %12.0f %6.2fx", peer, ratio);
	printf("%s\n", foreign > 0.15 ? "   (other programs used the CPU)" : "");
	return NR_OK;
}

/* With a peer: ours and theirs in turn, the median of the rounds' ratios. */
static int one(const struct bench_options *o, const char *name, const struct nr_loader_config *c, bool peer, struct nr_error *err)
{
	double ours[BENCH_MAX_ROUNDS], theirs[BENCH_MAX_ROUNDS], ratio[BENCH_MAX_ROUNDS];
	const int64_t rounds = peer ? o->rounds : 1;
	const struct bench_load load = bench_load_start();
	for (int64_t i = 0; i < rounds; i++) {
		ours[i] = rate(c, o->seconds, o->tiny, err);
		if (ours[i] < 0) return (int)ours[i];
		theirs[i] = peer ? peer_rate(c->threads, o->seconds, err) : 0;
		if (theirs[i] < 0) return (int)theirs[i];
		ratio[i] = peer ? ours[i] / theirs[i] : 0;
	}
	return report(o, name, c->threads, bench_median(ours, rounds), bench_median(theirs, rounds), bench_median(ratio, rounds),
		peer ? 0 : bench_load_share(&load), err);
}

static int run(const struct bench_options *o, int threads, struct nr_error *err)
{
	static const struct nr_dataset small = { .name = "small", .get = get_small, .label = no_label };
	static const struct nr_dataset files = { .name = "files", .get = get_file, .label = no_label };
	struct nr_source source = { .count = { 50000 }, .channels = 3, .mean = { .485f, .456f, .406f }, .std = { .229f, .224f, .225f } };
	struct nr_augment a;
	struct nr_loader_config c = { .source = &source, .augment = &a, .batch = 256, .shuffle = true, .drop_last = true, .seed = 1 };
	int code = write_files(o->tiny ? 2 : FILES, err);
	if (!code && !o->json)
		printf("%-28s %7s %12s%s\n", "case", "threads", "samples/s", o->peer != BENCH_NONE ? "  torchvision   ratio" : "");
	nr_option_defaults(nr_augment_options, &a);
	a.flip = 0.5;
	a.size = SMALL, a.crop = NR_CROP_PAD;
	source.of = &small;
	for (c.threads = 1; !code && c.threads <= threads; c.threads++) code = one(o, "memory 32 px, pad, flip", &c, false, err);
	a.size = 224, a.crop = NR_CROP_RANDOM_RESIZED, a.filter = NR_FILTER_BICUBIC;
	source.of = &files;
	source.count[NR_TRAIN] = o->tiny ? 2 : 50000;
	c.batch = o->tiny ? 2 : 32;
	for (c.threads = 1; !code && c.threads <= threads; c.threads++)
		code = one(o, "JPEG 500x375 to 224, flip", &c, o->peer != BENCH_NONE, err);
	return code;
}

int bench_loader(const struct bench_options *o, int threads, struct nr_error *err)
{
	strcpy(data.folder, "/tmp/norma-bench-XXXXXX");
	if (!mkdtemp(data.folder)) return nr_fail(err, NR_EIO, "cannot make a folder", data.folder, "%s", strerror(errno));
	data.small = malloc(SMALLS * SMALL * SMALL * 3);
	if (!data.small) {
		rmdir(data.folder);
		return nr_fail(err, NR_EMEMORY, "cannot bench the loader", NULL, "out of memory");
	}
	for (int64_t i = 0; i < SMALLS * SMALL * SMALL * 3; i++) data.small[i] = (uint8_t)(i * 2654435761u >> 13);
	const int code = run(o, threads, err);
	for (int i = 0; i < FILES; i++) {
		char path[128];
		file_name(path, sizeof path, i);
		unlink(path);
	}
	rmdir(data.folder);
	free(data.small);
	return code;
}
