/* See overlay.h. */
#include "picture/overlay.h"

#include <string.h>

#include "picture/picture.h"

/* The bits of k + 1, dealt to the three colours from the highest on, as PASCAL VOC does. */
void nr_class_colour(int32_t k, uint8_t rgb[3])
{
	memset(rgb, 0, 3);
	for (int32_t bits = k + 1, place = 7; bits && place >= 0; bits >>= 3, place--)
		for (int c = 0; c < 3; c++) rgb[c] |= (uint8_t)((bits >> c & 1) << place);
}

void nr_class_colours(const uint8_t (*own)[3], int32_t classes, uint8_t (*out)[3])
{
	for (int32_t k = 0; k < classes; k++)
		if (own) memcpy(out[k], own[k], 3);
		else nr_class_colour(k, out[k]);
}

int nr_overlay(const struct nr_picture *p, const struct nr_picture *map, const uint8_t (*colour)[3], int32_t classes, double share,
	struct nr_picture *out, struct nr_error *err)
{
	if (nr_picture_resize(out, p->h, p->w, 3, err)) return err ? (int)err->code : NR_EMEMORY;
	for (int32_t y = 0; y < p->h; y++)
		for (int32_t x = 0; x < p->w; x++) {
			const size_t at = (size_t)y * (size_t)p->w + (size_t)x;
			const int64_t row = ((int64_t)2 * y + 1) * map->h / (2 * p->h), column = ((int64_t)2 * x + 1) * map->w / (2 * p->w);
			const uint8_t k = map->pixels[row * map->w + column], *from = p->pixels + at * (size_t)p->channels;
			const uint8_t own[3] = { from[0], from[p->channels == 3 ? 1 : 0], from[p->channels == 3 ? 2 : 0] };
			uint8_t *to = out->pixels + 3 * at;
			memcpy(to, own, 3);
			if (k >= classes) continue;
			for (int c = 0; c < 3; c++) to[c] = (uint8_t)(share * colour[k][c] + (1 - share) * nr_luma(own) + .5);
		}
	return NR_OK;
}
