/* See sort.h. */
#include "base/sort.h"

#include <string.h>

void nr_sort_by_key(int32_t *item, int64_t n, const int32_t *key, int32_t most, int32_t *spare)
{
	int32_t *place = spare + n;                             /* (most+2): where the next item of a key goes */
	memset(place, 0, ((size_t)most + 2) * sizeof *place);
	for (int64_t i = 0; i < n; i++) place[key[item[i]] + 1]++;
	for (int32_t k = 0; k < most; k++) place[k + 1] += place[k];
	memcpy(spare, item, (size_t)n * sizeof *item);
	for (int64_t i = 0; i < n; i++) item[place[key[spare[i]]]++] = spare[i];
}
