/* What this program runs on: see host.h. */
#include "base/host.h"

#include <gnu/libc-version.h>
#include <jansson.h>
#include <link.h>
#include <png.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>
#include <zlib.h>

#include "base/str.h"

const char *nr_host_cpu(char *buf, size_t size)
{
	char line[512];
	FILE *f = fopen("/proc/cpuinfo", "re");
	snprintf(buf, size, "unknown");
	while (f && fgets(line, sizeof line, f)) {
		const char *colon = strchr(line, ':');
		if (!colon || strncmp(line, "model name", 10)) continue;
		colon += 1 + strspn(colon + 1, " ");
		snprintf(buf, size, "%.*s", (int)strcspn(colon, "\n"), colon);
		break;
	}
	if (f) fclose(f);
	return buf;
}

const char *nr_host_compiler(void)
{
#ifdef __clang__
	return "clang " __clang_version__;
#else
	return "gcc " __VERSION__;
#endif
}

/* Loaded libraries without a call for it tell their version by the name of their file. */
static int add_file(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	static const char *const ours[] = { "libgomp.so", "libomp.so", "libturbojpeg.so", "libnorma.so" };
	char *path = info->dlpi_name && *info->dlpi_name ? realpath(info->dlpi_name, NULL) : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL, *name = slash ? slash + 1 : "";
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		if (!strncmp(name, ours[i], strlen(ours[i]))) nr_str_printf(arg, ", %s", name);
	free(path);
	return 0;
}

void nr_host_libraries(struct nr_str *s)
{
	nr_str_printf(s, "glibc %s, libyaml %s, jansson %s, SQLite %s, zlib %s, libpng %s", gnu_get_libc_version(),
		yaml_get_version_string(), jansson_version_str(), sqlite3_libversion(), zlibVersion(), png_get_libpng_ver(NULL));
	dl_iterate_phdr(add_file, s);
}
