/* Fuzzer: any bytes as an NPY file. What is accepted lies within its file and converts. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const uint8_t *data, size_t size)
{
	struct nr_st_tensor a;
	struct nr_error err = { 0 };
	const int e = nr_npy_parse(&a, data, size, "fuzz", &err);
	assert(e == (int)err.code);
	if (e) {
		assert(err.detail[0]);
		return;
	}
	assert((const uint8_t *)a.data + a.bytes == data + size);
	const int64_t n = nr_st_elements(&a);
	assert((uint64_t)n * nr_st_width(a.dtype) == a.bytes);
	float *f = malloc((size_t)n * sizeof *f + 1);
	assert(!nr_st_to_f32(&a, f, n, NULL));
	free(f);
}

/* As it is, and as the header of a file with so many bytes of data, so that the fuzzer reaches the dictionary. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	parse(data, size);
	const uint8_t *bar = size < 60000 ? memchr(data, '|', size) : NULL;
	const size_t header = bar ? (size_t)(bar - data) : size < 60000 ? size : 60000, rest = bar ?
		size - header - 1 : 0;
	uint8_t *file = malloc(10 + size);
	memcpy(file, "\x93NUMPY\1\0", 8);
	file[8] = (uint8_t)(header & 255);
	file[9] = (uint8_t)(header >> 8);
	memcpy(file + 10, data, header);
	if (rest) memcpy(file + 10 + header, bar + 1, rest);
	parse(file, 10 + header + rest);
	free(file);
	return 0;
}
