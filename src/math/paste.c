/* See paste.h. */
#include "math/paste.h"

#include <string.h>

/* The map's value at whole places, 0 outside. */
static double at(const real *map, int64_t M, int64_t y, int64_t x)
{
	return y < 0 || x < 0 || y >= M || x >= M ? 0 : (double)map[y * M + x];
}

static double between(const real *map, int64_t M, double y, double x)
{
	const double y0 = floor(y), x0 = floor(x), b = y - y0, a = x - x0;
	const int64_t i = (int64_t)y0, j = (int64_t)x0;
	return (1 - b) * ((1 - a) * at(map, M, i, j) + a * at(map, M, i, j + 1)) +
		b * ((1 - a) * at(map, M, i + 1, j) + a * at(map, M, i + 1, j + 1));
}

/* Where the centre of pixel p of `size` lies between the `places` of a map that is as large, not beyond its first and last one. */
static double place(int64_t p, int64_t size, int64_t places)
{
	const double x = ((double)p + .5) * (double)places / (double)size - .5;
	return fmin(fmax(x, 0), (double)(places - 1));
}

static int64_t limit(double x, int64_t most) { return x < 0 ? 0 : x > (double)most ? most : (int64_t)x; }

static void padded(int64_t M, const real *map, const real box[4], int64_t h, int64_t w, uint8_t *mask)
{
	const double by = ((double)M + 2) / (double)M / 2;
	double lo[2], hi[2];
	int64_t size[2];
	for (int j = 0; j < 2; j++) {
		const double middle = .5 * ((double)box[j] + (double)box[j + 2]), half = ((double)box[j + 2] - (double)box[j]) * by;
		lo[j] = trunc(middle - half), hi[j] = trunc(middle + half);
		size[j] = hi[j] - lo[j] + 1 > 1 ? (int64_t)(hi[j] - lo[j] + 1) : 1;
	}
	for (int64_t y = limit(lo[1], h); y < limit(hi[1] + 1, h); y++)
		for (int64_t x = limit(lo[0], w); x < limit(hi[0] + 1, w); x++) {
			const double v = place(y - (int64_t)lo[1], size[1], M + 2), u = place(x - (int64_t)lo[0], size[0], M + 2);
			mask[y * w + x] = between(map, M, v - 1, u - 1) > .5;
		}
}

static void at_centres(int64_t M, const real *map, const real box[4], int64_t h, int64_t w, uint8_t *mask)
{
	const double sx = (double)M / ((double)box[2] - (double)box[0]), sy = (double)M / ((double)box[3] - (double)box[1]);
	for (int64_t y = limit((double)box[1] - 1, h); y < limit((double)box[3] + 2, h); y++)
		for (int64_t x = limit((double)box[0] - 1, w); x < limit((double)box[2] + 2, w); x++)
			mask[y * w + x] = between(map, M, ((double)y + .5 - (double)box[1]) * sy - .5,
						  ((double)x + .5 - (double)box[0]) * sx - .5) >= .5;
}

void nr_mask_paste(enum nr_paste how, int64_t M, const real *map, const real box[4], int64_t h, int64_t w, uint8_t *mask)
{
	memset(mask, 0, (size_t)(h * w));
	if (!(box[2] > box[0] && box[3] > box[1])) return;
	(how == NR_PASTE_PADDED ? padded : at_centres)(M, map, box, h, w, mask);
}
