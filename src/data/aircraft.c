/* FGVC-Aircraft (arXiv:1306.5151): data/images/ID.jpg with a banner of 20 rows at the bottom; lists of lines
 * "ID CLASS", where the
 * class may hold spaces and slashes; the number of a class is its line in variants.txt, families.txt or
 * manufacturers.txt. */
#include <string.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "data/listed.h"

enum { BANNER = 20 };
struct aircraft { int32_t level; bool banner; };
static const char *const levels[] = { "variant", "family", "manufacturer", NULL };
static const struct nr_option options[] = {
	NR_OPT_ENUM(struct aircraft, level, "variant", levels, "100 variants, 70 families or 41 manufacturers"),
	NR_OPT_BOOL(struct aircraft, banner, "0", "keep the 20 rows with the photographer's name"), NR_OPT_END
};

static int32_t find_class(const struct nr_source *s, const char *name)
{
	for (int32_t i = 0; i < s->classes; i++)
		if (!strcmp(s->class_name[i], name)) return i;
	return -1;
}

static int read_split(struct nr_source *s, const char *level, enum nr_split split, struct nr_error *err)
{
	const char *path = nr_arena_printf(s->arena, "%s/data/images_%s_%s.txt", s->dir, level, nr_split_name(split));
	char **line;
	int64_t *number, n;
	if (!path) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	if (nr_listed_lines(s, path, &line, &number, &n, err)) return err->code;
	for (int64_t i = 0; i < n; i++) {
		char *space = strchr(line[i], ' ');
		if (!space || space - line[i] != 7 || strspn(line[i], "0123456789") != 7)
			return nr_fail(err, NR_EFORMAT, "cannot read", path,
				"line %lld is not 7 digits, a space and a class", (long long)number[i]);
		const int32_t class = find_class(s, space + 1);
		if (class < 0)
			return nr_fail(err, NR_EFORMAT, "cannot read", path, "line %lld: no class '%s'",
				(long long)number[i], space + 1);
		char file[32] = "data/images/";
		memcpy(file + 12, line[i], 7);
		memcpy(file + 19, ".jpg", 5);
		if (nr_listed_add(s, split, file, class, err)) return err->code;
	}
	return NR_OK;
}

static int open_aircraft(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	static const char *const lists[] = { "variants.txt", "families.txt", "manufacturers.txt" };
	const struct aircraft *o = conf;
	struct nr_listed *l = nr_listed_make(s, err);
	const char *names = nr_arena_printf(s->arena, "%s/data/%s", dir, lists[o->level]);
	if (!l || !names) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	if (nr_source_classes_read(s, names, 0, err)) return err->code;
	s->channels = 3;
	l->cut = o->banner ? 0 : BANNER;
	for (enum nr_split i = NR_TRAIN; i <= NR_TEST; i++)
		if (read_split(s, levels[o->level], i, err)) return err->code;
	return nr_listed_probe(s, err);
}

static const struct nr_data_file files[] = {
	{ .path = "data/variants.txt" }, { .path = "data/images_variant_train.txt" },
		{ .path = "data/images_variant_val.txt" },
	{ .path = "data/images_variant_test.txt" }, { 0 }
};
static const struct nr_download downloads[] = {
	{ .from = "official", .url = "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/archives/fgvc-aircraft-2013b.tar.gz",
	  .file = "fgvc-aircraft-2013b.tar.gz", .md5 = "d4acdd33327262359767eeaa97a4f732",
		.inside = "fgvc-aircraft-2013b" },
	{ 0 }
};

const struct nr_dataset nr_dataset_aircraft = {
	.name = "aircraft", .title = "models of aeroplanes (FGVC)", .cite = "arXiv:1306.5151",
	.licence = "non-commercial research", .facts = "3334 + 3333 val + 3333 test, JPEG, 100, 70 or 41 classes",
	.folder = "fgvc-aircraft-2013b", .files = files, .downloads = downloads,
		.conf_size = sizeof(struct aircraft), .options = options,
	.open = open_aircraft, .get = nr_listed_get, .label = nr_listed_label,
};
