/* Random erasing (Zhong et al. 2020) as timm does it in pixel mode: one box of 2 to 33 % of the area and an aspect of .3 to 3.3,
 * filled with normal noise; ten tries. */
#include "picture/augment.h"

#include <math.h>

static void four_normals(struct nr_rng r, uint64_t block, float out[4])
{
	uint32_t w[4];
	nr_rng_block(r, block, w);
	for (int i = 0; i < 4; i += 2) {
		const float radius = sqrtf(-2 * logf(((float)(w[i] >> 8) + 1) * 0x1p-24f));
		const float angle = 2 * (float)M_PI * nr_rng_unit(w[i + 1]);
		out[i] = radius * cosf(angle);
		out[i + 1] = radius * sinf(angle);
	}
}

void nr_erase(float *x, int32_t channels, int32_t size, double prob, struct nr_draws *d, struct nr_rng noise, uint64_t first)
{
	if (nr_draw(d) >= prob) return;
	const double area = (double)size * size, aspect = log(0.3);
	for (int i = 0; i < 10; i++) {
		const double part = area * nr_draw_between(d, 0.02, 1.0 / 3), ratio = exp(nr_draw_between(d, aspect, -aspect));
		const int32_t h = (int32_t)rint(sqrt(part * ratio)), w = (int32_t)rint(sqrt(part / ratio));
		if (w >= size || h >= size) continue;
		const int32_t top = nr_draw_below(d, size - h + 1), left = nr_draw_below(d, size - w + 1);
		float four[4];
		uint64_t k = 0;
		for (int32_t c = 0; c < channels; c++)
			for (int32_t y = 0; y < h; y++) {
				float *row = x + ((int64_t)c * size + top + y) * size + left;
				for (int32_t j = 0; j < w; j++, k++) {
					if (k % 4 == 0) four_normals(noise, first + k / 4, four);
					row[j] = four[k % 4];
				}
			}
		return;
	}
}
