/* Which part of a picture becomes the sample. */
#include "picture/augment.h"

#include <math.h>

/* Ten tries at a random area and aspect; then the largest part in the middle whose aspect is allowed. */
struct nr_region nr_random_part(int32_t h, int32_t w, const struct nr_augment *a, struct nr_draws *d)
{
	const double area = (double)h * w, low = log(a->ratio_min), high = log(a->ratio_max);
	for (int i = 0; i < 10; i++) {
		const double part = area * nr_draw_between(d, a->scale_min, a->scale_max), aspect = exp(nr_draw_between(d, low, high));
		const double pw = rint(sqrt(part * aspect)), ph = rint(sqrt(part / aspect));
		if (!(pw >= 1 && pw <= w && ph >= 1 && ph <= h)) continue;
		struct nr_region p = { .h = (int32_t)ph, .w = (int32_t)pw };
		p.y = nr_draw_below(d, h - p.h + 1);
		p.x = nr_draw_below(d, w - p.w + 1);
		return p;
	}
	struct nr_region p = { .h = h, .w = w };
	const double aspect = (double)w / h;
	if (aspect < a->ratio_min)
		p.h = (int32_t)rint(w / a->ratio_min);
	else if (aspect > a->ratio_max)
		p.w = (int32_t)rint(h * a->ratio_max);
	if (p.h < 1) p.h = 1;   /* a picture one pixel thin */
	if (p.w < 1) p.w = 1;
	p.y = (h - p.h) / 2;
	p.x = (w - p.w) / 2;
	return p;
}

int nr_center_part(int32_t h, int32_t w, const struct nr_augment *a, int32_t *all_h, int32_t *all_w, struct nr_region *part,
	struct nr_error *err)
{
	const double side = floor((double)a->size / a->crop_share);
	const double longer = floor(side * (h > w ? h : w) / (h > w ? w : h));
	if (longer > 1 << 30)
		return nr_fail(err, NR_ELIMIT, "cannot resize", NULL, "%d x %d pixels would become %.0f long", (int)w, (int)h, longer);
	*all_h = (int32_t)(h > w ? longer : side);
	*all_w = (int32_t)(h > w ? side : longer);
	const int32_t size = (int32_t)a->size;
	*part = (struct nr_region){ (int32_t)rint((*all_h - size) / 2.0), (int32_t)rint((*all_w - size) / 2.0), size, size };
	return NR_OK;
}
