/* Fuzzer: any bytes as the files of a tokenizer. The first byte says which: tokenizer.json, vocab.txt, or vocab.json and merges.txt (a line
 * "--" between them). Must not crash; an error says something; what is accepted encodes and decodes. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "norma/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64];

static void leave(void)
{
	static const char *const names[] = { "tokenizer.json", "vocab.txt", "vocab.json", "merges.txt" };
	char path[128];
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

static const char *write_as(const char *name, const uint8_t *data, size_t size)
{
	static char path[128];
	if (!*folder) {
		strcpy(folder, "/tmp/norma-fuzz-XXXXXX");
		assert(mkdtemp(folder));
		atexit(leave);
	}
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "wb");
	assert(f);
	fwrite(data, 1, size, f);
	fclose(f);
	return path;
}

static void try_texts(const struct nr_tokenizer *t)
{
	static const char *const texts[] = { "", "a", "Hello, wOrld! [CLS] <s> it's",
		"\xe6\xbc\xa2 \xc3\x89\xff\xcc\x81 \xf0\x9f\x91\x8d", "   x\n\n y" };
	struct nr_encoder *e;
	struct nr_encoding out;
	assert(!nr_encoder_make(&e, t, NULL));
	for (int i = 0; i < 5; i++) {
		const struct nr_encode_how how = { .max_length = i == 4 ? 5 : 0 };
		struct nr_error err = { 0 };
		if (nr_encode(e, texts[i], strlen(texts[i]), i % 2 ? texts[i] : NULL, i % 2 ? strlen(texts[i]) : 0, &how, &out, &err)) {
			assert(how.max_length && err.detail[0]);
			continue;
		}
		assert(!how.max_length || out.count <= how.max_length);
		for (int64_t k = 0; k < out.count; k++) assert(nr_tokenizer_token(t, out.ids[k]));
		size_t bytes;
		char *back = nr_decode(t, out.ids, out.count, i % 2, &bytes);
		assert(back && !back[bytes] && nr_utf8_valid(back, bytes));
		free(back);
	}
	nr_encoder_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nr_tokenizer *t;
	struct nr_error err = { 0 };
	const char *path;
	if (size < 2) return 0;
	const uint8_t kind = *data++ % 3, *cut = size > 4 ? memmem(data, size - 1, "\n--\n", 4) : NULL;
	size--;
	if (kind == 2) {
		const size_t first = cut ? (size_t)(cut - data) : size;
		write_as("merges.txt", cut ? cut + 4 : data, cut ? size - first - 4 : 0);
		path = write_as("vocab.json", data, first);
	} else {
		path = write_as(kind ? "vocab.txt" : "tokenizer.json", data, size);
	}
	const int code = nr_tokenizer_open(&t, path, &err);
	assert(code == (int)err.code && (!code || err.detail[0]));
	if (!code) try_texts(t);
	nr_tokenizer_close(t);
	return 0;
}
