/* Fuzzer: any bytes as a JPEG or PNG. What decodes is whole, and can be resized and written to floats. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "norma/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Sides in the header, so that time goes into decoding, not into filling large pictures with grey. */
static int64_t promised(const uint8_t *d, size_t n)
{
	if (n >= 24 && d[0] == 0x89)
		return d[16] || d[17] || d[20] || d[21] ? INT64_MAX
							: (int64_t)(d[18] << 8 | d[19]) * (d[22] << 8 | d[23]);
	int64_t most = 0;
	for (size_t i = 0; i + 8 < n; i++)
		if (d[i] == 0xff && (d[i + 1] & 0xf0) == 0xc0) {
			const int64_t pixels = (int64_t)(d[i + 5] << 8 | d[i + 6]) * (d[i + 7] << 8 | d[i + 8]);
			if (pixels > most) most = pixels;
		}
	return most;
}

static void use(const struct nr_picture *p)
{
	static float out[3 * 16 * 16];
	static struct nr_augment_scratch *scratch;
	struct nr_augment a;
	struct nr_error err = { 0 };
	if (!scratch && nr_augment_scratch_make(&scratch, &err)) return;
	nr_option_defaults(nr_augment_options, &a);
	a.size = 16;
	a.normalize = false;
	for (int32_t crop = NR_CROP_RESIZE; crop <= NR_CROP_RANDOM_RESIZED; crop++) {
		a.crop = crop;
		const int code = nr_augment_run(&a, NULL, p, 1, 1, 1, out, scratch, &err);
		assert(code == err.code);
		assert(code == NR_OK || code == NR_ELIMIT);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct nr_picture p;
	if (promised(data, size) > 1 << 16) return 0;
	for (int32_t channels = 0; channels <= 3; channels++) {
		if (channels == 2) continue;
		struct nr_error err = { 0 };
		const int code = nr_picture_decode(&p, data, size, channels, "fuzz", &err);
		assert(code == (int)err.code);
		if (code) {
			assert(err.detail[0] && !strcmp(err.subject, "fuzz"));
			return 0;
		}
		assert(p.h > 0 && p.w > 0 && (size_t)p.h * (size_t)p.w * (size_t)p.channels <= p.capacity);
		assert(!channels || p.channels == channels);
		use(&p);
	}
	return 0;
}
