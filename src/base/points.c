/* Numbers with points: see points.h. */
#include "base/points.h"

locale_t nr_points_begin(void)
{
	const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	return c ? uselocale(c) : (locale_t)0;
}

void nr_points_end(locale_t before)
{
	if (before) freelocale(uselocale(before));
}
