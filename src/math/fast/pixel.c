/* Resize passes in vectors of 8 int32. See ../pixel.h. */
#include "math/pixel.h"

#include <string.h>

#include "math/fast/vec.h"

INL void down_block(int vectors, const uint8_t *row, int64_t stride, int32_t count, const int32_t *coef, uint8_t *out)
{
	i8 s[8];
	for (int v = 0; v < vectors; v++) s[v] = (i8){ 0 } + (1 << (NR_PIXEL_BITS - 1));
	for (int32_t j = 0; j < count; j++, row += stride)
		for (int v = 0; v < vectors; v++) s[v] += widen_bytes(row + 8 * v) * coef[j];
	for (int v = 0; v < vectors; v += 2) st_bytes16(out + 8 * v, s[v] >> NR_PIXEL_BITS, s[v + 1] >> NR_PIXEL_BITS);
}

static void down_pass(int64_t n, const uint8_t *row, int64_t stride, int32_t count, const int32_t *coef, uint8_t *out)
{
	int64_t i = 0;
	for (; i + 64 <= n; i += 64) down_block(8, row + i, stride, count, coef, out + i);
	for (; i + 16 <= n; i += 16) down_block(2, row + i, stride, count, coef, out + i);
	if (i < n && n >= 16)  /* the last 16 again */
		down_block(2, row + n - 16, stride, count, coef, out + n - 16);
	else if (i < n)
		nr_pixel_plain.down(n - i, row + i, stride, count, coef, out + i);
}

INL i4 rounded_sum(i8 s) { return (fold_halves(s) + (1 << (NR_PIXEL_BITS - 1))) >> NR_PIXEL_BITS; }

static void across3(const struct nr_pixel_taps *t, const uint8_t *const row[NR_PIXEL_ROWS], uint8_t *const out[NR_PIXEL_ROWS])
{
	for (int32_t i = 0; i < t->n; i++) {
		const int32_t *k = t->coef + (int64_t)i * t->ld;
		const int64_t at = (int64_t)t->first[i] * 3;
		const uint8_t *a = row[0] + at, *b = row[1] + at, *c = row[2] + at, *d = row[3] + at;
		i8 sa = { 0 }, sb = sa, sc = sa, sd = sa;
		for (int32_t j = 0; j < t->count[i]; j += 2, a += 6, b += 6, c += 6, d += 6) {
			const i8 kk = two_weights(k + j);
			sa += two_pixels(a) * kk;
			sb += two_pixels(b) * kk;
			sc += two_pixels(c) * kk;
			sd += two_pixels(d) * kk;
		}
		uint32_t four[NR_PIXEL_ROWS];   /* three bytes and a zero, which the next pixel overwrites */
		st_bytes4x4(four, rounded_sum(sa), rounded_sum(sb), rounded_sum(sc), rounded_sum(sd));
		for (int r = 0; r < NR_PIXEL_ROWS; r++) memcpy(out[r] + 3 * i, &four[r], 4);
	}
}

static void across(const struct nr_pixel_taps *t, int32_t channels, const uint8_t *const row[NR_PIXEL_ROWS],
	uint8_t *const out[NR_PIXEL_ROWS])
{
	if (channels == 3)
		across3(t, row, out);
	else
		nr_pixel_plain.across(t, channels, row, out);
}

const struct nr_pixel_kernels NR_FAST(pixel) = { across, down_pass };
