/* What fuzzers of folders share: the input is cut at bytes 0xff, and each piece becomes a file. 0xff is in no text. */
#ifndef FUZZ_FILES_H
#define FUZZ_FILES_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/save.h"
#include "fetch/unpack.h"

/* A folder in memory where there is one, made at the first call and empty after each fuzz_clear. */
static inline const char *fuzz_folder(void)
{
	static char dir[64];
	if (!*dir) {
		snprintf(dir, sizeof dir, "%s/norma-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
		assert(mkdtemp(dir));
	}
	return dir;
}

static inline const char *fuzz_path(const char *name)
{
	static char path[4][512];
	static int k;
	snprintf(path[k = (k + 1) % 4], sizeof path[0], "%s/%s", fuzz_folder(), name);
	return path[k];
}

static inline void fuzz_write(const char *name, const void *bytes, size_t size)
{
	char *path = strdup(fuzz_path(name)), *slash = strrchr(path, '/');
	*slash = 0;
	nr_folder_make(path, NULL);
	*slash = '/';
	FILE *f = fopen(path, "wb");
	assert(f);
	if (size) fwrite(bytes, 1, size, f);
	fclose(f);
	free(path);
}

/* The pieces of the input under these names, as many as there are; the last name takes the rest. */
static inline void fuzz_split(const uint8_t *data, size_t size, const char *const *names)
{
	for (; *names; names++) {
		const uint8_t *end = size ? memchr(data, 0xff, size) : NULL;
		const size_t n = end && names[1] ? (size_t)(end - data) : size;
		fuzz_write(*names, data, n);
		if (!end) return;
		data += n + (n < size);
		size -= n + (n < size);
	}
}

static inline void fuzz_clear(void)
{
	nr_remove_tree(fuzz_folder(), NULL);
	mkdir(fuzz_folder(), 0777);
}

#endif
