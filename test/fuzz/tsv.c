/* Fuzzer: any bytes as rows of labelled text, in both forms. What is accepted has its columns, within range, as strings without tabs and
 * newlines. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "data/tsv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const uint8_t *data, size_t size, const struct nr_tsv_form *f)
{
	struct nr_tsv t;
	struct nr_error err = { 0 };
	const int e = nr_tsv_parse(&t, data, size, f, "fuzz", &err);
	assert(e == (int)err.code);
	if (e) {
		assert(err.detail[0] && !t.memory);
		return;
	}
	assert(t.count > 0);
	for (int64_t i = 0; i < t.count; i++) {
		assert(t.value[i] >= f->low && t.value[i] <= f->high);
		for (int k = 0; k < f->texts; k++) assert(!strpbrk(t.text[k][i], "\t\n"));
	}
	nr_tsv_release(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	parse(data, size, &(struct nr_tsv_form){ .texts = 2, .more = true, .high = 5 });
	parse(data, size, &(struct nr_tsv_form){ .texts = 1, .whole = true, .high = 5 });
	return 0;
}
