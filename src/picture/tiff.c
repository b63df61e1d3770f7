/* TIFF through libtiff, from memory, its first page only. Bits of a colour, palettes, inks and compressions are those that
 * libtiff's RGBA interface takes; others, such as floating point, are refused with its words. Transparent pixels come
 * multiplied by their alpha, on black.
 *
 * A little file may claim a large picture: its size is checked before anything is decoded, and libtiff's own allocations are
 * bounded. Errors of libtiff go to the reader, so that threads do not mix them. */
#include "picture/picture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

#define MOST_PIXELS ((int64_t)1 << 26)          /* 256 MiB of RGBA */
enum { MOST_ALLOCATED = 1 << 28 };

struct reader {
	const uint8_t *bytes;
	size_t size, at;
	bool failed;
	char message[160];
};

static tmsize_t take(thandle_t h, void *to, tmsize_t n)
{
	struct reader *r = h;
	const size_t left = r->at < r->size ? r->size - r->at : 0, got = (size_t)n < left ? (size_t)n : left;
	if (n < 0) return 0;
	if (got) memcpy(to, r->bytes + r->at, got);
	r->at += got;
	return (tmsize_t)got;
}

static tmsize_t refuse(thandle_t h, void *from, tmsize_t n)
{
	(void)h, (void)from, (void)n;
	return 0;
}

static toff_t seek(thandle_t h, toff_t to, int whence)
{
	struct reader *r = h;
	r->at = (size_t)(whence == SEEK_SET ? to : whence == SEEK_CUR ? r->at + to : r->size + to);
	return r->at;
}

static int leave(thandle_t h)
{
	(void)h;
	return 0;
}

static toff_t length(thandle_t h) { return ((const struct reader *)h)->size; }

__attribute__((format(printf, 4, 0))) static int keep_error(TIFF *t, void *reader, const char *module, const char *format, va_list values)
{
	struct reader *r = reader;
	(void)t, (void)module;
	if (!r->failed) vsnprintf(r->message, sizeof r->message, format, values);
	r->failed = true;
	return 1;
}

static int no_warning(TIFF *t, void *reader, const char *module, const char *format, va_list values)
{
	(void)t, (void)reader, (void)module, (void)format, (void)values;
	return 1;
}

static int complain(const struct reader *r, const char *name, struct nr_error *err)
{
	nr_fail(err, NR_EFORMAT, "cannot decode", name, "TIFF: %s", *r->message ? r->message : "the file is incomplete or damaged");
	return nr_hint(err, "save it as 8-bit RGB, or leave it out");
}

/* RGBA words of libtiff to rows of RGB. */
static void to_rgb(const uint32_t *from, int64_t n, uint8_t *to)
{
	for (int64_t i = 0; i < n; i++, to += 3) {
		to[0] = (uint8_t)TIFFGetR(from[i]);
		to[1] = (uint8_t)TIFFGetG(from[i]);
		to[2] = (uint8_t)TIFFGetB(from[i]);
	}
}

static bool is_grey(TIFF *t)
{
	uint16_t colours = 0;
	return TIFFGetField(t, TIFFTAG_PHOTOMETRIC, &colours) && (colours == PHOTOMETRIC_MINISBLACK || colours == PHOTOMETRIC_MINISWHITE);
}

static int decode(TIFF *t, struct reader *r, struct nr_picture *p, int32_t channels, const char *name, struct nr_error *err)
{
	uint32_t w = 0, h = 0;
	uint16_t held = ORIENTATION_TOPLEFT;
	char why[1024] = "";
	const bool sized = TIFFGetField(t, TIFFTAG_IMAGEWIDTH, &w) && TIFFGetField(t, TIFFTAG_IMAGELENGTH, &h);
	if (!sized || !w || !h) return complain(r, name, err);
	if (!TIFFRGBAImageOK(t, why)) {
		if (!*r->message) snprintf(r->message, sizeof r->message, "%.150s", why);
		return complain(r, name, err);
	}
	if (!TIFFGetField(t, TIFFTAG_ORIENTATION, &held) || held < 1 || held > 8) held = ORIENTATION_TOPLEFT;
	struct nr_picture rgb = { 0 };
	const int32_t want = channels ? channels : is_grey(t) ? 1 : 3;
	struct nr_picture *to = want == 3 ? p : &rgb;
	int code = (int64_t)w * h > MOST_PIXELS ? nr_fail(err, NR_ELIMIT, "cannot decode", name,
		"TIFF: %u x %u pixels are more than %lld", (unsigned)w, (unsigned)h, (long long)MOST_PIXELS)
						: nr_picture_room(to, h, w, 3, name, err);
	uint32_t *raster = code ? NULL : malloc((size_t)w * h * sizeof *raster);
	if (!code && !raster) code = nr_fail(err, NR_EMEMORY, "cannot decode", name, "out of memory for %u rows", (unsigned)h);
	/* asked for the orientation that it has, libtiff moves nothing: of those with quarter turns it would make mirror images */
	if (!code && (!TIFFReadRGBAImageOriented(t, w, h, raster, held, 1) || r->failed)) code = complain(r, name, err);
	if (!code) to_rgb(raster, (int64_t)w * h, to->pixels);
	if (!code && to != p) code = nr_picture_convert(to, want, p, err);
	if (!code) code = nr_picture_upright(p, held, name, err);
	free(raster);
	nr_picture_release(&rgb);
	return code;
}

int nr_decode_tiff(struct nr_picture *p, const uint8_t *bytes, size_t size, int32_t channels, const char *name, struct nr_error *err)
{
	struct reader r = { .bytes = bytes, .size = size };
	TIFFOpenOptions *how = TIFFOpenOptionsAlloc();
	if (!how) return nr_fail(err, NR_EMEMORY, "cannot decode", name, "out of memory for the TIFF decoder");
	TIFFOpenOptionsSetMaxSingleMemAlloc(how, MOST_ALLOCATED);
	TIFFOpenOptionsSetErrorHandlerExtR(how, keep_error, &r);
	TIFFOpenOptionsSetWarningHandlerExtR(how, no_warning, &r);
	TIFF *t = TIFFClientOpenExt("memory", "rm", &r, take, refuse, seek, leave, length, NULL, NULL, how);
	TIFFOpenOptionsFree(how);
	const int code = t ? decode(t, &r, p, channels, name, err) : complain(&r, name, err);
	if (t) TIFFClose(t);
	return code;
}
