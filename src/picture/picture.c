/* Pictures in memory and on disk: see norma/picture.h. The formats are in jpeg.c, png.c, webp.c and tiff.c. */
#include "picture/picture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { FILE_LIMIT = 1 << 30 };

void nr_picture_release(struct nr_picture *p)
{
	free(p->pixels);
	*p = (struct nr_picture){ 0 };
}

int nr_picture_room(struct nr_picture *p, int64_t h, int64_t w, int32_t channels, const char *name, struct nr_error *err)
{
	static const char what[] = "cannot hold the picture";
	if (h < 1 || w < 1 || h > NR_PICTURE_SIDE || w > NR_PICTURE_SIDE || h * w > NR_PICTURE_PIXELS)
		return nr_fail(err, NR_ELIMIT, what, name, "it has %lld x %lld pixels; sides must be from 1 to %d, "
			"with at most %lld pixels", (long long)w,
			(long long)h, (int)NR_PICTURE_SIDE, (long long)NR_PICTURE_PIXELS);
	if (channels != 1 && channels != 3)
		return nr_fail(err, NR_EVALUE, what, name,
			"it has %d channels instead of 1 (grey) or 3 (RGB)", (int)channels);
	const size_t size = (size_t)h * (size_t)w * (size_t)channels;
	if (size > p->capacity) {
		uint8_t *grown = malloc(size);
		if (!grown) return nr_fail(err, NR_EMEMORY, what, name,
			"out of memory for %d x %d pixels", (int)w, (int)h);
		free(p->pixels);
		p->pixels = grown;
		p->capacity = size;
	}
	p->h = (int32_t)h, p->w = (int32_t)w, p->channels = channels;
	p->turned = 0;
	return NR_OK;
}

int nr_picture_resize(struct nr_picture *p, int32_t h, int32_t w, int32_t channels, struct nr_error *err)
{
	return nr_picture_room(p, h, w, channels, NULL, err);
}

int nr_picture_convert(const struct nr_picture *from, int32_t channels, struct nr_picture *to, struct nr_error *err)
{
	const int code = nr_picture_resize(to, from->h, from->w, channels, err);
	if (code) return code;
	const size_t n = (size_t)from->h * (size_t)from->w;
	const uint8_t *s = from->pixels;
	uint8_t *d = to->pixels;
	if (from->channels == channels)
		memcpy(d, s, n * (size_t)channels);
	else if (channels == 1)
		for (size_t i = 0; i < n; i++) d[i] = nr_luma(s + 3 * i);
	else
		for (size_t i = 0; i < n; i++) d[3 * i] = d[3 * i + 1] = d[3 * i + 2] = s[i];
	return NR_OK;
}

static int decode(struct nr_picture *p, const uint8_t *b, size_t size, int32_t channels, const char *name, struct nr_error *err)
{
	static const uint8_t png[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
	if (size >= 2 && b[0] == 0xff && b[1] == 0xd8) return nr_decode_jpeg(p, b, size, channels, name, err);
	if (size >= sizeof png && memcmp(b, png, sizeof png) == 0) return nr_decode_png(p, b, size, channels, name, err);
	if (size >= 12 && !memcmp(b, "RIFF", 4) && !memcmp(b + 8, "WEBP", 4)) return nr_decode_webp(p, b, size, channels, name, err);
	if (size >= 4 && (!memcmp(b, "II*", 4) || !memcmp(b, "MM\0*", 4) || !memcmp(b, "II+", 4) || !memcmp(b, "MM\0+", 4)))
		return nr_decode_tiff(p, b, size, channels, name, err);
	nr_fail(err, NR_EFORMAT, "cannot decode", name, size ? "it is neither JPEG, PNG, WebP nor TIFF" : "it is empty");
	return nr_hint(err, "convert it, or leave it out");
}

int nr_picture_decode(struct nr_picture *p, const void *bytes, size_t size, int32_t channels, const char *name, struct nr_error *err)
{
	if (channels != 0 && channels != 1 && channels != 3)
		return nr_fail(err, NR_EVALUE, "cannot decode", name,
			"channels must be 0 (those of the file), 1 or 3, not %d", (int)channels);
	const int code = decode(p, bytes, size, channels, name, err);
	return code ? code : nr_picture_upright(p, nr_exif_orientation(bytes, size), name, err);
}

static int read_failed(const char *path, struct nr_error *err)
{
	return nr_fail(err, NR_EIO, "cannot read", path, "%s", strerror(errno));
}

/* The whole file; size is its length. */
static int slurp(int fd, const char *path, uint8_t **bytes, size_t *size, struct nr_error *err)
{
	struct stat st;
	if (fstat(fd, &st)) return read_failed(path, err);
	if (st.st_size > FILE_LIMIT) return nr_fail(err, NR_ELIMIT, "cannot read", path,
		"the file is larger than 1 GiB");
	*bytes = malloc((size_t)st.st_size + 1);
	if (!*bytes) return nr_fail(err, NR_EMEMORY, "cannot read", path,
		"out of memory for %lld bytes", (long long)st.st_size);
	for (*size = 0; *size < (size_t)st.st_size;) {
		const ssize_t n = read(fd, *bytes + *size, (size_t)st.st_size - *size);
		if (n < 0 && errno == EINTR) continue;
		if (n < 0) return read_failed(path, err);
		if (n == 0) break;
		*size += (size_t)n;
	}
	return NR_OK;
}

int nr_picture_read(struct nr_picture *p, const char *path, int32_t channels, struct nr_error *err)
{
	const int fd = nr_file_open(path, err);
	if (fd < 0) return NR_EIO;
	uint8_t *bytes = NULL;
	size_t size = 0;
	int code = slurp(fd, path, &bytes, &size, err);
	close(fd);
	if (!code) code = nr_picture_decode(p, bytes, size, channels, path, err);
	free(bytes);
	return code;
}
