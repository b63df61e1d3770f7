/* No allocation of ours fails unnoticed: the linker leads the calls of our objects to these (CMakeLists.txt), so that a command never ends
 * with success when a part of its work may be missing (base/mem.h). */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define NOTED(result, name, parameters, arguments, bad) \
	result __real_##name parameters; \
	result __wrap_##name parameters; \
	result __wrap_##name parameters \
	{ \
		const int before = errno; \
		errno = 0; \
		result got = __real_##name arguments; \
		if (got == (bad) && errno == ENOMEM) nr_memory_note_failure(); \
		if (!errno) errno = before; \
		return got; \
	}

NOTED(void *, malloc, (size_t n), (n), NULL)
NOTED(void *, calloc, (size_t n, size_t size), (n, size), NULL)
NOTED(void *, realloc, (void *p, size_t n), (p, n), NULL)
NOTED(void *, aligned_alloc, (size_t align, size_t n), (align, n), NULL)
NOTED(char *, strdup, (const char *s), (s), NULL)
NOTED(char *, strndup, (const char *s, size_t n), (s, n), NULL)
NOTED(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)
NOTED(FILE *, fdopen, (int fd, const char *mode), (fd, mode), NULL)
NOTED(FILE *, open_memstream, (char **text, size_t *size), (text, size), NULL)
NOTED(DIR *, opendir, (const char *path), (path), NULL)
NOTED(DIR *, fdopendir, (int fd), (fd), NULL)
NOTED(char *, realpath, (const char *path, char *to), (path, to), NULL)
NOTED(ssize_t, getline, (char **text, size_t *size, FILE *from), (text, size, from), -1)
NOTED(ssize_t, __getdelim, (char **text, size_t *size, int end, FILE *from), (text, size, end, from), -1)
NOTED(int, scandir, (const char *path, struct dirent ***list, int (*takes)(const struct dirent *),
	int (*order)(const struct dirent **, const struct dirent **)), (path, list, takes, order), -1)
