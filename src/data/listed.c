/* Data sets of picture files: see listed.h. */
#include "data/listed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/str.h"

enum { MOST_TEXT = 1 << 28 };

struct nr_listed *nr_listed_make(struct nr_source *s, struct nr_error *err)
{
	struct nr_listed *l = s->own;
	if (!l && (l = s->own = nr_arena_alloc(s->arena, sizeof *l))) l->dir = s->dir;
	if (!l) nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	return l;
}

/* Grows by doubling; the old arrays stay in the arena, which in all is less than the new ones. */
int nr_listed_add(struct nr_source *s, enum nr_split split, const char *path, int32_t label, struct nr_error *err)
{
	struct nr_listed *l = nr_listed_make(s, err);
	if (!l) return NR_EMEMORY;
	const int64_t n = s->count[split];
	if (n == INT32_MAX) return nr_fail(err, NR_ELIMIT, "cannot open", s->of->name,
		"there are more than %d pictures",
		INT32_MAX);
	if (n == l->split[split].room) {
		const size_t room = n ? 2 * (size_t)n : 1024;
		const char **paths = nr_arena_alloc(s->arena, room * sizeof *paths);
		int32_t *labels = nr_arena_alloc(s->arena, room * sizeof *labels);
		if (!paths || !labels) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
		if (n) {
			memcpy(paths, l->split[split].path, (size_t)n * sizeof *paths);
			memcpy(labels, l->split[split].label, (size_t)n * sizeof *labels);
		}
		l->split[split].path = paths;
		l->split[split].label = labels;
		l->split[split].room = (int64_t)room;
	}
	char *copy = nr_arena_strdup(s->arena, path);
	if (!copy) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	l->split[split].path[n] = copy;
	l->split[split].label[n] = label;
	s->count[split]++;
	return NR_OK;
}

int nr_listed_probe(const struct nr_source *s, struct nr_error *err)
{
	const struct nr_listed *l = s->own;
	for (int i = 0; i < NR_SPLITS; i++) {
		if (!l || !s->count[i]) continue;
		struct nr_str path = { 0 };
		nr_str_printf(&path, "%s/%s", l->dir, l->split[i].path[0]);
		const int number = access(nr_str_text(&path), R_OK) ? errno : 0;
		if (number) {
			nr_fail(err, NR_EIO, "cannot read", nr_str_text(&path), "%s", strerror(number));
			nr_hint(err, "the lists are there but the pictures are not: unpack them, too");
		}
		nr_str_release(&path);
		if (number) return NR_EIO;
	}
	return NR_OK;
}

int nr_listed_get(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p, struct nr_error *err)
{
	const struct nr_listed *l = s->own;
	struct nr_str path = { 0 };
	const char *file = l->split[split].path[i];
	nr_str_printf(&path, "%s%s%s", *file == '/' ? "" : l->dir, *file == '/' ? "" : "/", file);
	int e = path.failed ? nr_fail(err, NR_EMEMORY, "cannot read", l->split[split].path[i], "out of memory") :
		nr_picture_read(p, path.text, s->channels, err);
	if (!e && p->turned && l->fit) e = l->fit(s, split, i, p, path.text, err);
	if (!e && p->h <= l->cut)
		e = nr_fail(err, NR_EFORMAT, "cannot use", path.text,
			"it has %d rows, the lower %d of which do not belong to the picture", p->h, l->cut);
	if (!e) p->h -= l->cut;
	if (!e && l->check) e = l->check(s, split, i, p, path.text, err);
	nr_str_release(&path);
	return e;
}

const char *nr_source_file(const struct nr_source *s, enum nr_split split, int64_t i, char *buf, size_t size)
{
	const struct nr_listed *l = s->own;
	*buf = 0;
	if (s->of->get != nr_listed_get) return buf;
	const char *path = l->split[split].path[i], *slash = strrchr(l->dir, '/');
	path += !strncmp(path, "./", 2) ? 2 : 0;        /* a folder that is not divided */
	snprintf(buf, size, "%s%s%s", *path == '/' ? "" : l->dir, *path == '/' || (slash && !slash[1]) ? "" : "/", path);
	return buf;
}

int32_t nr_listed_label(const struct nr_source *s, enum nr_split split, int64_t i)
{
	return ((const struct nr_listed *)s->own)->split[split].label[i];
}

/* A folder that is called by a number, as those of ImageNet-V2 are, is the class of that number, unless one has the name. */
static int32_t place_of(const char *name, char *const *names, int32_t count)
{
	int64_t number;
	for (int32_t i = 0; i < count; i++)
		if (!strcmp(names[i], name)) return i;
	return nr_parse_int(name, &number) && number >= 0 && number < count ? (int32_t)number : -1;
}

int nr_source_relabel(struct nr_source *s, char *const *names, int32_t count, struct nr_error *err)
{
	struct nr_listed *l = s->own;
	bool same = s->classes == count;
	if (s->of->label != nr_listed_label || !s->class_name) return NR_OK;
	for (int32_t i = 0; same && i < count; i++) same = !strcmp(s->class_name[i], names[i]);
	if (same) return NR_OK;
	int32_t *to = nr_arena_alloc(s->arena, ((size_t)s->classes + 1) * sizeof *to);
	char **all = nr_arena_alloc(s->arena, ((size_t)count + 1) * sizeof *all);
	if (!to || !all) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	for (int32_t i = 0; i < s->classes; i++) {
		if ((to[i] = place_of(s->class_name[i], names, count)) >= 0) continue;
		return nr_fail(err, NR_EVALUE, "cannot use", s->dir,
			"the model does not know the class '%s' (it has %d classes, the data %d)",
			s->class_name[i], count, s->classes);
	}
	for (int k = 0; k < NR_SPLITS; k++)
		for (int64_t i = 0; i < s->count[k]; i++)
			if (l->split[k].label[i] >= 0) l->split[k].label[i] = to[l->split[k].label[i]];
	for (int32_t i = 0; i < count; i++)
		if (!(all[i] = nr_arena_strdup(s->arena, names[i])))
			return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	s->class_name = all;
	s->classes = count;
	return NR_OK;
}

int nr_listed_lines(struct nr_source *s, const char *path, char ***line, int64_t **number, int64_t *count,
	struct nr_error *err)
{
	struct nr_bytes b;
	if (nr_bytes_map(&b, path, err)) return err->code;
	int64_t lines = 1;
	for (size_t i = 0; i < b.size; i++) lines += b.data[i] == '\n';
	const bool fits = b.size < MOST_TEXT && !memchr(b.data, 0, b.size);
	char *text = fits ? nr_arena_alloc(s->arena, b.size + 1) : NULL;
	char **list = fits ? nr_arena_alloc(s->arena, ((size_t)lines + 1) * sizeof *list) : NULL;
	int64_t *numbers = fits ? nr_arena_alloc(s->arena, ((size_t)lines + 1) * sizeof *numbers) : NULL;
	if (text) memcpy(text, b.data, b.size);
	nr_bytes_release(&b);
	if (!fits) return nr_fail(err, NR_EFORMAT, "cannot read", path, "it is not text, or too long");
	if (!text || !list || !numbers) return nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	int64_t n = 0;
	for (int64_t i = 1; text; i++) {
		char *one = strsep(&text, "\n");
		one[strcspn(one, "\r")] = 0;
		if (*one) list[n] = one, numbers[n++] = i;
	}
	*line = list;
	*number = numbers;
	*count = n;
	return NR_OK;
}
