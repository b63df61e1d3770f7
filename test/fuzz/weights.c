/* Fuzzer: any bytes as a file of weights. Its metadata names the model, its tensors must fit it; else it is guessed at. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "norma/infer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void open_it(const char *path)
{
	struct nr_weights *w;
	struct nr_error err = { 0 };
	if (nr_weights_open(&w, path, &(struct nr_weights_how){ .resample = "timm" }, &err)) {
		assert(!w && err.code != NR_OK);
		return;
	}
	assert(nr_store_count(w->store) > 0 && w->naming && w->norms);
	nr_weights_close(w);
}

/* JSON | data, with the length of the JSON put in front. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	static char path[64];
	if (fd < 0) {
		fd = memfd_create("weights", 0);
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	}
	const uint8_t *bar = size ? memchr(data, '|', size) : NULL;
	const uint64_t header = bar ? (uint64_t)(bar - data) : size, rest = bar ? size - header - 1 : 0;
	if (ftruncate(fd, 0) || pwrite(fd, &header, 8, 0) != 8 || pwrite(fd, data, header, 8) != (ssize_t)header) return 0;
	if (rest && pwrite(fd, bar + 1, rest, (off_t)(8 + header)) != (ssize_t)rest) return 0;
	open_it(path);
	return 0;
}
