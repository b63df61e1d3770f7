/* JPEG through libturbojpeg, with the exact integer DCT and smooth chroma upsampling that Pillow uses. CMYK and YCCK files are
 * taken to be inverted, as Adobe writes them and as Pillow assumes. */
#include "picture/picture.h"

#include <stdlib.h>
#include <string.h>

#include <turbojpeg.h>

/* Pixels of four inks, inverted (255: none), to RGB, by the multiplication that divides by 255 with rounding. */
static void inks_to_rgb(const uint8_t *inks, size_t n, uint8_t *rgb)
{
	for (size_t i = 0; i < n; i++, inks += 4, rgb += 3) {
		const unsigned k = inks[3];
		for (int c = 0; c < 3; c++) {
			const unsigned t = (255u - inks[c]) * k + 128;
			rgb[c] = (uint8_t)(k - (((t >> 8) + t) >> 8));
		}
	}
}

static int complain(tjhandle h, const char *name, struct nr_error *err)
{
	nr_fail(err, NR_EFORMAT, "cannot decode", name, "JPEG: %s", tjGetErrorStr2(h));
	return nr_hint(err, "the file is damaged: copy it again or leave it out");
}

/* Warnings pass, as they do in Pillow: odd bytes between markers and the like. A cut-off file does not. The library calls an
 * error that follows a warning a warning too, so they are told apart by how libjpeg's warnings begin. */
static bool harmless(const char *message)
{
	static const char *const begin[] = { "Corrupt JPEG data", "Warning:", "Invalid SOS parameters for sequential",
		"Inconsistent progression sequence", "Unknown Adobe color transform" };
	for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
		if (strncmp(message, begin[i], strlen(begin[i])) == 0) return true;
	return false;
}

static int decompress(tjhandle h, const uint8_t *bytes, size_t size, const struct nr_picture *p, int format, uint8_t *pixels,
	const char *name, struct nr_error *err)
{
	if (tjDecompress2(h, bytes, (unsigned long)size, pixels, p->w, 0, p->h, format, TJFLAG_ACCURATEDCT) == 0) return NR_OK;
	return tjGetErrorCode(h) == TJERR_WARNING && harmless(tjGetErrorStr2(h)) ? NR_OK : complain(h, name, err);
}

static int decode(tjhandle h, struct nr_picture *p, const uint8_t *bytes, size_t size, int32_t channels, const char *name,
	struct nr_error *err)
{
	int w = 0, rows = 0, sampling, colours = TJCS_RGB;
	if (tjDecompressHeader3(h, bytes, (unsigned long)size, &w, &rows, &sampling, &colours)) return complain(h, name, err);
	if (w < 1 || rows < 1) {        /* tables alone are a JPEG too, and leave these as they were */
		nr_fail(err, NR_EFORMAT, "cannot decode", name, "JPEG: there is no picture in the file");
		return nr_hint(err, "the file is damaged: copy it again or leave it out");
	}
	const bool grey = colours == TJCS_GRAY, inks = colours == TJCS_CMYK || colours == TJCS_YCCK;
	const int32_t have = grey ? 1 : 3, want = channels ? channels : have;
	/* Grey of a coloured file is Pillow's luma of RGB, not the file's Y. */
	const bool through = inks || (want == 1 && !grey);
	int code = nr_picture_room(p, rows, w, want, name, err);
	if (code || !through) return code ? code : decompress(h, bytes, size, p, want == 1 ? TJPF_GRAY : TJPF_RGB, p->pixels, name, err);

	const size_t n = (size_t)rows * (size_t)w;
	uint8_t *full = malloc(n * 4);
	if (!full) return nr_fail(err, NR_EMEMORY, "cannot decode", name,
		"out of memory for %d x %d pixels", w, rows);
	code = decompress(h, bytes, size, p, inks ? TJPF_CMYK : TJPF_RGB, full, name, err);
	if (!code && inks) inks_to_rgb(full, n, want == 3 ? p->pixels : full);
	if (!code && want == 1)
		for (size_t i = 0; i < n; i++) p->pixels[i] = nr_luma(full + 3 * i);
	free(full);
	return code;
}

int nr_decode_jpeg(struct nr_picture *p, const uint8_t *bytes, size_t size, int32_t channels, const char *name, struct nr_error *err)
{
	tjhandle h = tjInitDecompress();
	if (!h) return nr_fail(err, NR_EMEMORY, "cannot decode", name, "out of memory for the JPEG decoder");
	const int code = decode(h, p, bytes, size, channels, name, err);
	tjDestroy(h);
	return code;
}

int nr_jpeg_again(struct nr_picture *p, int quality, struct nr_error *err)
{
	unsigned char *file = NULL;
	unsigned long size = 0;
	const bool grey = p->channels == 1;
	tjhandle h = tjInitCompress();
	if (!h) return nr_fail(err, NR_EMEMORY, "cannot compress a picture", NULL, "out of memory for the JPEG encoder");
	int code = tjCompress2(h, p->pixels, p->w, 0, p->h, grey ? TJPF_GRAY : TJPF_RGB, &file, &size, grey ? TJSAMP_GRAY : TJSAMP_420,
		quality, TJFLAG_ACCURATEDCT);
	if (code) code = nr_fail(err, NR_EFORMAT, "cannot compress a picture", NULL, "JPEG: %s", tjGetErrorStr2(h));
	else code = nr_decode_jpeg(p, file, size, p->channels, NULL, err);
	tjFree(file);
	tjDestroy(h);
	return code;
}
