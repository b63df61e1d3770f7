/* Fuzzer: any text as a RandAugment setting. What is accepted is within its bounds and can be run. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "picture/augment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nr_randaugment r;
	struct nr_error err = { 0 };
	char *text = strndup((const char *)data, size < 4096 ? size : 4096);
	const int e = nr_randaugment_parse(&r, text, &err);
	assert(e == (int)err.code);
	if (!e) assert(r.n >= 0 && r.n <= 16 && r.m >= 0 && r.m <= 10 && r.std >= 0 && r.prob >= 0 && r.prob <= 1);
	free(text);
	return 0;
}
