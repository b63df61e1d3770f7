/* Fuzzer: any bytes as an IDX file. What is accepted fills its file exactly. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "data/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nr_idx x;
	struct nr_error err = { 0 };
	const int e = nr_idx_parse(&x, data, size, "fuzz", &err);
	assert(e == (int)err.code);
	if (e) {
		assert(err.detail[0]);
		return 0;
	}
	int64_t n = 1;
	unsigned sum = 0;
	for (int i = 0; i < x.nd; i++) n *= x.dim[i];
	assert(x.data + n == data + size);
	for (int64_t i = 0; i < n; i++) sum += x.data[i];
	return sum == 12345;
}
