/* Bytes of pictures: the two passes of a separable resize in fixed point; the `pixel` family.
 *
 * A result is (round + sum_k coef_k byte_k) >> 22, kept inside 0..255: Pillow's arithmetic for 8 bits, so every instruction
 * set gives the same bytes. */
#ifndef NR_PIXEL_H
#define NR_PIXEL_H

#include "math/isa.h"

enum { NR_PIXEL_BITS = 22, NR_PIXEL_ROWS = 4, NR_PIXEL_SLACK = 32 };

struct nr_pixel_taps {                  /* which source pixels make output i: first[i] .. first[i] + count[i] - 1 */
	int32_t n, ld;                  /* outputs; coefficients per output, zeros after count */
	const int32_t *first, *count;
	const int32_t *coef;            /* (n,ld) */
};

struct nr_pixel_kernels {
	/* NR_PIXEL_ROWS rows at once (some may be the same) of interleaved channels, 1 or 3. Up to NR_PIXEL_SLACK bytes after
	 * what the taps name may be read in each row, and after the last pixel written in each out. */
	void (*across)(const struct nr_pixel_taps *, int32_t channels, const uint8_t *const row[NR_PIXEL_ROWS],
		uint8_t *const out[NR_PIXEL_ROWS]);
	/* One output row of n bytes from count rows, stride bytes apart. */
	void (*down)(int64_t n, const uint8_t *row, int64_t stride, int32_t count, const int32_t *coef, uint8_t *out);
};
NR_FAMILY_DECLARE(pixel);

static inline uint8_t nr_pixel_byte(int32_t sum)
{
	sum >>= NR_PIXEL_BITS;
	return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

#endif
