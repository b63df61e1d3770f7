/* See names_in.h. */
#include "data/names_in.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/mem.h"

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

bool nr_is_picture_name(const char *name)
{
	static const char *const kinds[] = { ".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff" };
	const char *dot = strrchr(name, '.');
	for (size_t i = 0; dot && dot > name && i < sizeof kinds / sizeof *kinds; i++)
		if (!strcasecmp(dot, kinds[i])) return true;
	return false;
}

bool nr_is_folder(const char *path)
{
	struct stat st;
	return path && !stat(path, &st) && S_ISDIR(st.st_mode);
}

int nr_names_in(const char *folder, struct nr_names_in *out, struct nr_arena *arena, struct nr_error *err)
{
	*out = (struct nr_names_in){ 0 };
	DIR *d = opendir(folder);
	if (!d) return nr_fail(err, NR_EIO, "cannot read", folder, "%s", strerror(errno));
	int e = NR_OK;
	for (struct dirent *f; !e && (f = readdir(d));) {
		if (*f->d_name == '.') continue;
		if (out->count == out->room) {
			out->room = out->room ? 2 * out->room : 256;
			char **more = realloc(out->item, out->room * sizeof *more);
			if (more) out->item = more;
			else e = nr_fail(err, NR_EMEMORY, "cannot read", folder, "out of memory");
		}
		if (!e && !(out->item[out->count++] = nr_arena_strdup(arena, f->d_name)))
			e = nr_fail(err, NR_EMEMORY, "cannot read", folder, "out of memory");
	}
	closedir(d);
	if (e) free(out->item), *out = (struct nr_names_in){ 0 };
	else if (out->count) qsort(out->item, out->count, sizeof *out->item, by_text);
	return e;
}

/* FNV-1a, its upper 32 bits mixed once more. */
double nr_name_share(const char *name)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
	return (double)(h >> 32) * 0x1p-32;
}
