/* Fuzzer: any bytes as an archive. Nothing is written outside the folder, and no link that is left points out of it. */
#include <dirent.h>
#include <limits.h>

#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *dir, const char *root, int depth)
{
	DIR *d = opendir(dir);
	assert(d && depth < 100);
	for (const struct dirent *f; (f = readdir(d));) {
		char path[PATH_MAX], real[PATH_MAX];
		struct stat st;
		if (!strcmp(f->d_name, ".") || !strcmp(f->d_name, "..")) continue;
		if (snprintf(path, sizeof path, "%s/%s", dir, f->d_name) >= (int)sizeof path || lstat(path, &st)) continue;
		assert(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode));
		if (S_ISDIR(st.st_mode)) check(path, root, depth + 1);
		if (S_ISLNK(st.st_mode) && realpath(path, real)) assert(!strncmp(real, root, strlen(root)));
	}
	closedir(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nr_error err = { 0 };
	struct nr_bytes b;
	char root[512];
	fuzz_write("archive", data, size);
	snprintf(root, sizeof root, "%s", fuzz_path("into"));
	mkdir(root, 0777);
	const struct nr_unpack u = { .archive = fuzz_path("archive"), .into = root, .max_bytes = 1 << 20, .max_files = 200 };
	const int e = nr_unpack(&u, &err);
	assert(e == (int)err.code && (!e || err.detail[0]));
	check(root, root, 0);
	if (!nr_unpack_bytes(&b, fuzz_path("archive"), "a", 1 << 16, NULL)) nr_bytes_release(&b);
	fuzz_clear();
	return 0;
}
