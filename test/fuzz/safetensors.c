/* Fuzzer: any bytes as a safetensors file. What opens is read to the last byte. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "norma/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void convert(const struct nr_st_tensor *t)
{
	int64_t n = nr_st_elements(t);
	assert((uint64_t)n * nr_st_width(t->dtype) == t->bytes);
	float *f = malloc((size_t)n * sizeof *f + 1);
	int64_t *v = malloc((size_t)n * sizeof *v + 1);
	assert(nr_st_to_f32(t, f, n, NULL) == NR_OK);
	nr_st_to_i64(t, v, n, NULL);
	free(f);
	free(v);
}

static void open_it(const uint8_t *data, size_t size)
{
	struct nr_st_file *f;
	struct nr_error err = { 0 };
	if (nr_st_open_memory(&f, data, size, "fuzz", &err) != NR_OK) {
		assert(!f && err.code != NR_OK && err.detail[0]);
		return;
	}
	size_t total = 0;
	for (int64_t i = 0; i < nr_st_count(f); i++) {
		const struct nr_st_tensor *t = nr_st_get(f, i);
		assert(nr_st_find(f, t->name) == t);
		convert(t);
		total += t->bytes;
	}
	assert(total <= size);
	nr_st_need(f, "weight", NULL);
	for (int64_t i = 0; i < nr_st_metadata_count(f); i++)
		assert(nr_st_metadata(f, nr_st_metadata_get(f, i).key));
	nr_st_close(f);
}

/* As it is, and with a right length in front, so that the fuzzer reaches the JSON. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	open_it(data, size);
	const uint8_t *bar = memchr(data, '|', size);
	uint64_t header = bar ? (uint64_t)(bar - data) : size, rest = bar ? size - header - 1 : 0;
	uint8_t *file = malloc(8 + size);
	memcpy(file, &header, 8);
	memcpy(file + 8, data, header);
	if (rest)
		memcpy(file + 8 + header, bar + 1, rest);
	open_it(file, 8 + header + rest);
	free(file);
	return 0;
}
