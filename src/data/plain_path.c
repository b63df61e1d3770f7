/* See plain_path.h. */
#include "data/plain_path.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "data/label_maps.h"

static bool ends_with(const char *name, const char *end)
{
	const size_t n = strlen(name), k = strlen(end);
	return n > k && !strcasecmp(name + n - k, end);
}

/* Folders in it, names with a dot in front apart. */
static int64_t folders_in(const char *path, struct nr_arena *arena)
{
	DIR *d = opendir(path);
	int64_t n = 0;
	for (struct dirent *f; d && (f = readdir(d));) {
		struct stat st;
		const char *full = *f->d_name == '.' ? NULL : nr_arena_printf(arena, "%s/%s", path, f->d_name);
		n += full && !stat(full, &st) && S_ISDIR(st.st_mode);
	}
	if (d) closedir(d);
	return n;
}

/* Annotation files of COCO beside their pictures. */
static bool has_annotations(const char *path, struct nr_arena *arena)
{
	const char *folder = nr_arena_printf(arena, "%s/annotations", path);
	DIR *d = folder ? opendir(folder) : NULL;
	bool found = false;
	for (struct dirent *f; d && !found && (f = readdir(d));)
		found = !strncmp(f->d_name, "instances_", 10) && ends_with(f->d_name, ".json");
	if (d) closedir(d);
	return found;
}

/* Does the first line, packed or not, have this cell? */
static bool has_column(const char *path, const char *name)
{
	char line[65536] = "";
	gzFile f = gzopen(path, "re");
	const bool read = f && gzgets(f, line, sizeof line);
	if (f) gzclose(f);
	for (char *rest = line, *cell; read && (cell = strsep(&rest, ",\t\r\n"));) {
		if (!strncmp(cell, "\xef\xbb\xbf", 3)) cell += 3;
		if (*cell == '"') cell++;
		cell[strcspn(cell, "\"")] = 0;
		if (!strcasecmp(cell, name)) return true;
	}
	return false;
}

static void unclear(const char *path, const char *why, struct nr_error *err)
{
	nr_fail(err, NR_EVALUE, "cannot tell what kind of data is in", path, "%s", why);
}

static const struct nr_dataset *of_folder(const char *path, struct nr_arena *arena, struct nr_error *err)
{
	struct stat st;
	const char *raw = nr_arena_printf(arena, "%s/raw/edge.csv.gz", path);
	if (raw && !stat(raw, &st)) return nr_dataset_find("molecules", err);
	if (has_annotations(path, arena)) return nr_dataset_find("coco", err);
	if (nr_label_folder_like(path, arena)) return nr_dataset_find("labelmaps", err);
	if (folders_in(path, arena)) return nr_dataset_find("folder", err);
	unclear(path, "the folder has no folders in it, one for each class of pictures", err);
	nr_hint(err, "pictures are in %s/CLASS/*.jpg; others are files: text:path=FILE, molecules:path=FILE.csv", path);
	return NULL;
}

static const struct nr_dataset *of_file(const char *path, struct nr_error *err)
{
	const bool table = ends_with(path, ".csv") || ends_with(path, ".csv.gz") || ends_with(path, ".tsv");
	if (ends_with(path, ".npz")) return nr_dataset_find("npz", err);
	if (ends_with(path, ".txt") || ends_with(path, ".txt.gz")) return nr_dataset_find("text", err);
	if (table && has_column(path, "smiles")) return nr_dataset_find("molecules", err);
	if (table && has_column(path, "label")) return nr_dataset_find("labelled", err);
	if (table) {
		unclear(path, "line 1 has neither a column 'smiles' nor 'label'", err);
		nr_hint(err, "molecules:path=%s,smiles=COLUMN for molecules, text:path=%s for texts, labelled:path=%s,label=COLUMN for "
			"texts with labels", path, path, path);
	} else {
		unclear(path, "its name does not end with .txt, .csv or .npz", err);
		nr_hint(err,
			"text:path=%s for texts, molecules:path=%s for molecules; pictures are in a folder: folder:path=DIR", path, path);
	}
	return NULL;
}

const struct nr_dataset *nr_plain_path(const char *text, const char **path, const char **options, struct nr_arena *arena,
	struct nr_error *err)
{
	struct stat st;
	char *name = nr_arena_strdup(arena, text), *colon = name ? strrchr(name, ':') : NULL;
	*options = "";
	if (name && stat(name, &st) && colon) *colon = 0, *options = colon + 1;
	if (!name || !*name || stat(name, &st)) return NULL;
	for (size_t n = strlen(name); n > 1 && name[n - 1] == '/'; n--) name[n - 1] = 0;
	*path = name;
	return S_ISDIR(st.st_mode) ? of_folder(name, arena, err) : of_file(name, err);
}
