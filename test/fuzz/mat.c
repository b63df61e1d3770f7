/* Fuzzer: any bytes as a MAT file. What is accepted has as many numbers as its dimensions say, all of which can be read. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "data/mat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "X", "labels" };
	volatile double sum = 0;
	for (int i = 0; i < 2; i++) {
		struct nr_mat m;
		struct nr_error err = { 0 };
		const int e = nr_mat_parse(&m, data, size, "fuzz", names[i], 1 << 20, &err);
		assert(e == (int)err.code && (!e || (err.detail[0] && !m.data)));
		if (e) continue;
		assert(m.count > 0 && m.count <= 1 << 20 && m.count == m.dim[0] * m.dim[1] * m.dim[2] * m.dim[3]);
		for (int64_t k = 0; k < m.count; k++) sum += nr_mat_at(&m, k);
		if (nr_mat_bytes(&m)) sum += nr_mat_bytes(&m)[m.count - 1];
		nr_mat_release(&m);
	}
	(void)sum;
	return 0;
}
