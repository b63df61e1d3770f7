/* WebP through libwebp: lossy and lossless. Alpha is dropped, as it is of PNG. A film is not a picture and is refused. */
#include "picture/picture.h"

#include <webp/decode.h>

static int complain(const char *name, const char *why, struct nr_error *err)
{
	nr_fail(err, NR_EFORMAT, "cannot decode", name, "WebP: %s", why);
	return nr_hint(err, "the file is damaged: copy it again or leave it out");
}

int nr_decode_webp(struct nr_picture *p, const uint8_t *bytes, size_t size, int32_t channels, const char *name, struct nr_error *err)
{
	WebPBitstreamFeatures f;
	const VP8StatusCode head = WebPGetFeatures(bytes, size, &f);
	if (head == VP8_STATUS_NOT_ENOUGH_DATA) return complain(name, "the file is incomplete", err);
	if (head != VP8_STATUS_OK || f.width < 1 || f.height < 1) return complain(name, "its header is wrong", err);
	if (f.has_animation) {
		nr_fail(err, NR_EFORMAT, "cannot decode", name, "WebP: it is animated");
		return nr_hint(err, "save one of its frames, or leave it out");
	}
	struct nr_picture raw = { 0 }, *to = channels == 1 ? &raw : p;
	int code = nr_picture_room(to, f.height, f.width, 3, name, err);
	if (!code && !WebPDecodeRGBInto(bytes, size, to->pixels, (size_t)f.width * (size_t)f.height * 3, f.width * 3))
		code = complain(name, "the file is incomplete or damaged", err);
	if (!code && to != p) code = nr_picture_convert(to, channels, p, err);
	nr_picture_release(&raw);
	return code;
}
