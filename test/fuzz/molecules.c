/* Fuzzer: any bytes as a CSV of molecules, and as a cache of prepared graphs whose checksum is right. What opens can be read back. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "graphs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void as_csv(const char *path)
{
	struct nr_molecules *m;
	struct nr_error err = { 0 };
	const int e = nr_molecules_open(&m, &(struct nr_molecules_config){ .path = path, .bad = NR_BAD_SKIP }, &err);
	assert(e == (int)err.code && (!e || err.detail[0]));
	if (!e) read_back(m);
	nr_molecules_close(m);
}

static void as_cache(const char *path)
{
	struct nr_molecules *m = calloc(1, sizeof *m);
	struct nr_error err = { 0 };
	if (!nr_molecules_load(m, path, 0, NR_FEATURES_OGB, &err)) read_back(m);
	nr_molecules_close(m);
}

static void put(int fd, const void *data, size_t size) { assert(write(fd, data, size) == (ssize_t)size); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t head[16] = { 'N', 'R', 'G', 'R', 'A', 'P', 'H', 'S', 1 };
	char path[64];
	const int fd = memfd_create("fuzz", 0);
	if (fd < 0 || !size) return 0;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (*data != '!') {
		put(fd, data, size);
		as_csv(path);
	} else {                                /* the rest of a header and the arrays */
		const uint32_t sum = nr_crc32c(nr_crc32c(0, head, sizeof head), data + 1, size - 1);
		put(fd, head, sizeof head);
		put(fd, data + 1, size - 1);
		put(fd, &sum, sizeof sum);
		as_cache(path);
	}
	close(fd);
	return 0;
}
