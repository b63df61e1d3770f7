/* Fuzzer: any bytes as a text (a zero byte: a pair) for a small WordPiece and a small BPE. Ids exist, lengths are kept, types fit, and
 * what was encoded twice is the same. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "norma/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct nr_tokenizer *open_text(const char *text)
{
	char path[] = "/tmp/norma-fuzz-XXXXXX.json";
	const int fd = mkstemps(path, 5);
	assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	struct nr_tokenizer *t;
	struct nr_error err = { 0 };
	if (nr_tokenizer_open(&t, path, &err)) fprintf(stderr, "%s\n", err.detail), abort();
	unlink(path);
	return t;
}

#define ADDED                                                                                                    \
	"{\"id\":0,\"content\":\"[UNK]\",\"special\":true,\"lstrip\":true},"                                        \
	"{\"id\":1,\"content\":\"ab\",\"normalized\":true,\"single_word\":true},"                                   \
	"{\"id\":2,\"content\":\"\xc3\x89\",\"normalized\":true,\"rstrip\":true}"
static const char wordpiece[] =
	"{\"added_tokens\":[" ADDED "],\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
	"\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\","
	"\"vocab\":{\"[UNK]\":0,\"a\":3,\"##a\":4,\"b\":5,\"##b\":6,\"##ba\":7,\"bab\":8,\"!\":9,"
	"\"\xe1\x84\x80\":10,\"##\xe1\x85\xa1\":11}}}";
static const char bpe[] = "{\"added_tokens\":[" ADDED "],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true},"
	"\"post_processor\":{\"type\":\"RobertaProcessing\",\"cls\":[\"[UNK]\",0],\"sep\":[\"[UNK]\",0]},"
	"\"model\":{\"type\":\"BPE\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":0,\"a\":3,\"b\":4,\"\xc4\xa0\":5,\"aa\":6,\"\xc4\xa0"
	"b\":7,\"aaa\":8,\"baa\":9,\"ba\":10},"
	"\"merges\":[[\"a\",\"a\"],[\"\xc4\xa0\",\"b\"],[\"aa\",\"a\"],[\"b\",\"aa\"],[\"b\",\"a\"],[\"ba\",\"a\"]]}}";

static void check(const struct nr_tokenizer *t, struct nr_encoder *e, const char *s, size_t n, const char *pair, size_t m, int64_t length)
{
	struct nr_encoding out;
	const struct nr_encode_how how = { .max_length = length };
	static int32_t first[1 << 16];
	int64_t count = 0;
	for (int round = 0; round < 2; round++) {
		assert(!nr_encode(e, s, n, pair, m, &how, &out, NULL));
		assert(!length || out.count <= length);
		for (int64_t i = 0; i < out.count; i++) assert(nr_tokenizer_token(t, out.ids[i]) &&
			(out.types[i] == 0 || (pair && out.types[i] == 1)));
		if (out.count > 1 << 16) return;
		assert(!round || (count == out.count && (!count || !memcmp(first, out.ids, (size_t)count * sizeof *first))));
		if ((count = out.count)) memcpy(first, out.ids, (size_t)count * sizeof *first);     /* none need no address */
	}
	size_t bytes;
	char *text = nr_decode(t, out.ids, out.count, length, &bytes);
	assert(text && !text[bytes] && nr_utf8_valid(text, bytes));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct nr_tokenizer *t[2];
	static struct nr_encoder *e[2];
	if (!t[0]) {
		t[0] = open_text(wordpiece);
		t[1] = open_text(bpe);
		for (int i = 0; i < 2; i++) assert(!nr_encoder_make(&e[i], t[i], NULL));
	}
	char *exact = malloc(size + !size);     /* the sanitizer sees a step too far */
	memcpy(exact, data, size);
	const char *zero = size ? memchr(exact, 0, size) : NULL;
	const size_t n = zero ? (size_t)(zero - exact) : size;
	for (int i = 0; i < 2; i++) {
		check(t[i], e[i], exact, size, NULL, 0, 0);
		check(t[i], e[i], exact, n, zero ? zero + 1 : NULL, zero ? size - n - 1 : 0, 6);
	}
	free(exact);
	return 0;
}
