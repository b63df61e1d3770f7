/* Fuzzer: a first byte that says the form, then any bytes as a file of texts. What is accepted has its columns as UTF-8 strings, and a
 * document number that never falls. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"
#include "norma/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const struct nr_source *s)
{
	int32_t document = 0;
	assert(s->columns >= 1 && s->columns <= 3 && s->count[NR_TRAIN] > 0);
	for (int64_t i = 0; i < s->count[NR_TRAIN]; i++) {
		for (int32_t k = 0; k < s->columns; k++) {
			const char *text = nr_source_text(s, NR_TRAIN, i, k);
			assert(text && nr_utf8_span(text, strlen(text)) == strlen(text));
		}
		assert(nr_source_label(s, NR_TRAIN, i) >= document);
		document = nr_source_label(s, NR_TRAIN, i);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const forms[] = { "lines", "csv", "tsv" };
	struct nr_error err = { 0 };
	struct nr_source *s = NULL;
	char spec[128];
	if (size < 2) return 0;
	const int file = memfd_create("text", 0);
	if (file < 0) return 0;
	if (write(file, data + 1, size - 1) == (ssize_t)(size - 1)) {
		snprintf(spec, sizeof spec, "text:path=/proc/self/fd/%d,form=%s", file, forms[data[0] % 3]);
		const int e = nr_source_open(&s, spec, NULL, &err);
		assert(e == (int)err.code);
		if (!e) look(s), nr_source_close(s);
	}
	close(file);
	return 0;
}
