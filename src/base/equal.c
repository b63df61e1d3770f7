/* See equal.h: a table of places with open addressing. */
#include "base/equal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash(const struct nr_piece *p)              /* FNV-1a */
{
	uint64_t h = 0xcbf29ce484222325;
	for (size_t i = 0; i < p->bytes; i++) h = (h ^ ((const uint8_t *)p->data)[i]) * 0x100000001b3;
	return h;
}

static bool equal(const struct nr_piece *a, const struct nr_piece *b)
{
	return a->bytes == b->bytes && (!a->bytes || !memcmp(a->data, b->data, a->bytes));
}

int64_t nr_equal_pieces(const struct nr_piece *piece, int64_t n, int32_t *first)
{
	uint64_t room = 16;
	while (room < 2 * (uint64_t)n) room *= 2;
	int32_t *slot = malloc(room * sizeof *slot);
	if (!slot) return -1;
	for (uint64_t i = 0; i < room; i++) slot[i] = -1;
	int64_t different = 0;
	for (int64_t i = 0; i < n; i++) {
		uint64_t at = hash(&piece[i]) & (room - 1);
		while (slot[at] >= 0 && !equal(&piece[slot[at]], &piece[i])) at = (at + 1) & (room - 1);
		if (slot[at] < 0) slot[at] = (int32_t)i, different++;
		first[i] = slot[at];
	}
	free(slot);
	return different;
}
