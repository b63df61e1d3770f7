/* A folder of a test's own, gone with all that is in it when the test is done. Included after cmocka.h. */
#ifndef TEST_FOLDER_H
#define TEST_FOLDER_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/save.h"
#include "fetch/unpack.h"

static char made_dir[64];

static inline int made_setup(void **state)
{
	(void)state;
	strcpy(made_dir, "/tmp/norma-unit-XXXXXX");
	return mkdtemp(made_dir) ? 0 : -1;
}

static inline int made_teardown(void **state)
{
	(void)state;
	return nr_remove_tree(made_dir, NULL);
}

/* A path below the test's folder; the folders on the way are made. One of eight texts that take turns. */
__attribute__((format(printf, 1, 2))) static inline const char *made_path(const char *fmt, ...)
{
	static char text[8][512];
	static int turn;
	char *path = text[turn++ % 8];
	const int n = snprintf(path, sizeof text[0], "%s/", made_dir);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(path + n, sizeof text[0] - (size_t)n, fmt, ap);
	va_end(ap);
	for (char *s = path + n; *s; s++)
		if (*s == '/') *s = 0, mkdir(path, 0777), *s = '/';
	return path;
}

/* A file with this text below it; returns its path. */
static inline const char *made_with(const char *name, const char *text)
{
	const char *path = made_path("%s", name);
	assert_int_equal(nr_save_file(path, text, strlen(text), NULL), 0);
	return path;
}

#endif
