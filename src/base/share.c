/* Installed files: see share.h. */
#include "base/share.h"

#include <string.h>
#include <unistd.h>

const char *nr_share_find(const char *name, struct nr_arena *arena)
{
	char self[4096];
	const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n <= 0) return NULL;
	self[n] = 0;
	const char *slash = strrchr(self, '/');
	const char *path = nr_arena_printf(arena, "%.*s/../share/norma/%s", slash ? (int)(slash - self) : 0, self, name);
	return path && !access(path, R_OK) ? path : NULL;
}

const char *nr_recipe_find(const char *name, struct nr_arena *arena)
{
	static const char *const ends[] = { "", ".yaml", NULL };
	if (*name == '/' || *name == '.' || !access(name, F_OK)) return name;
	for (int i = 0; ends[i]; i++) {
		const char *file = nr_arena_printf(arena, "recipes/%s%s", name, ends[i]), *path = file ? nr_share_find(file, arena) : NULL;
		if (path && (i || strrchr(name, '.'))) return path;
	}
	return name;
}
