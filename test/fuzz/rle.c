/* Fuzzer: any text as the runs of a mask, any bytes as a polygon. What is accepted fills its picture and comes back. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "picture/rle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void whole(struct nr_rle *r)
{
	uint8_t *mask = malloc((size_t)r->h * (size_t)r->w);
	struct nr_str text = { 0 };
	nr_rle_to_mask(r, mask);
	struct nr_rle *again = nr_rle_of_mask(r->h, r->w, mask, NULL);
	nr_rle_to_string(r, &text);
	struct nr_rle *read = nr_rle_of_string(r->h, r->w, nr_str_text(&text), text.len, NULL);
	assert(again && read && nr_rle_area(again) == nr_rle_area(r));
	assert(read->runs == r->runs && !memcmp(read->run, r->run, (size_t)r->runs * sizeof *r->run));
	assert(!nr_rle_area(r) || nr_rle_iou(r, again, false) == 1);
	double box[4];
	nr_rle_box(r, box);
	assert(box[0] + box[2] <= r->w && box[1] + box[3] <= r->h);
	nr_rle_free(again);
	nr_rle_free(read);
	nr_str_release(&text);
	free(mask);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2) return 0;
	const int32_t h = data[0], w = data[1];
	struct nr_error err = { 0 };
	struct nr_rle *r = nr_rle_of_string(h, w, (const char *)data + 2, size - 2, &err);
	assert(r || err.detail[0]);
	if (r) whole(r);
	nr_rle_free(r);
	double xy[64];
	int64_t n = 0;
	for (size_t i = 2; i + 1 < size && n < 64; i += 2) xy[n++] = (int16_t)(data[i] | data[i + 1] << 8) / 64.0;
	r = h && w ? nr_rle_of_polygon(h, w, xy, n / 2, &err) : NULL;
	if (r) whole(r);
	nr_rle_free(r);
	return 0;
}
