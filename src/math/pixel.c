/* The plain reference of the pixel family. See pixel.h. */
#include "math/pixel.h"

static void across(const struct nr_pixel_taps *t, int32_t channels, const uint8_t *const row[NR_PIXEL_ROWS],
	uint8_t *const out[NR_PIXEL_ROWS])
{
	for (int r = 0; r < NR_PIXEL_ROWS; r++)
		for (int32_t i = 0; i < t->n; i++) {
			const int32_t *k = t->coef + (int64_t)i * t->ld;
			const uint8_t *from = row[r] + (int64_t)t->first[i] * channels;
			for (int32_t c = 0; c < channels; c++) {
				int32_t sum = 1 << (NR_PIXEL_BITS - 1);
				for (int32_t j = 0; j < t->count[i]; j++) sum += k[j] * from[j * channels + c];
				out[r][i * channels + c] = nr_pixel_byte(sum);
			}
		}
}

static void down(int64_t n, const uint8_t *row, int64_t stride, int32_t count, const int32_t *coef, uint8_t *out)
{
	for (int64_t i = 0; i < n; i++) {
		int32_t sum = 1 << (NR_PIXEL_BITS - 1);
		for (int32_t j = 0; j < count; j++) sum += coef[j] * row[j * stride + i];
		out[i] = nr_pixel_byte(sum);
	}
}

const struct nr_pixel_kernels nr_pixel_plain = { across, down };
const struct nr_pixel_kernels *nr_pixel_active = &nr_pixel_plain;
