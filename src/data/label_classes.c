/* The classes of label maps: of a known set, from a file of names, or from the maps themselves.
 *
 * A line of the file is NAME, or NAME R G B in either order, parted by blanks, tabs or commas; line i is number i. Such colours decide
 * where they are given. ADE20K's objectInfo150.txt counts from 1, and 0 does not count. Without a file classes are the numbers seen,
 * or the colours; masks of 0 and 255 alone have two. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/dataset.h"
#include "data/label_maps.h"
#include "picture/picture.h"

enum { LOOKED_AT = 2000, COLOURS = 64, TOLD = 20 };

static const char *const files[] = { "classes.txt", "class_names.txt", "labels.txt", "names.txt", "codes.txt", "label_colors.txt",
	"class_dict.csv", "classes.csv", "objectInfo150.txt", NULL };

static bool of_ade20k(const char *path)
{
	static const char name[] = "objectInfo150.txt";
	const size_t n = strlen(path), k = strlen(name);
	return n >= k && !strcmp(path + n - k, name);
}

/* The file of names beside the folders; NULL: there is none. */
static const char *file_of(const struct nr_source *s)
{
	for (int i = 0; files[i]; i++) {
		const char *path = nr_arena_printf(s->arena, "%s/%s", s->dir, files[i]);
		if (path && !access(path, R_OK)) return path;
	}
	return NULL;
}

static int out_of_memory(const struct nr_source *s, struct nr_error *err)
{
	return nr_fail(err, NR_EMEMORY, "cannot open", s->dir, "out of memory");
}

/* ---- what is said ----------------------------------------------------------------------------------------------------------- */

static bool is_void(const char *name)
{
	static const char *const words[] = { "void", "ignore", "ignored", "unlabelled", "unlabeled", NULL };
	for (int i = 0; words[i]; i++)
		if (!strcasecmp(name, words[i])) return true;
	return false;
}

static int set_names(struct nr_source *s, char *const *name, const uint8_t (*colour)[3], int32_t n, struct nr_error *err)
{
	uint8_t(*own)[3] = colour ? nr_arena_alloc(s->arena, (size_t)n * sizeof *own) : NULL;
	s->class_name = nr_arena_alloc(s->arena, ((size_t)n + 1) * sizeof *s->class_name);
	if (!s->class_name || (colour && !own)) return out_of_memory(s, err);
	for (int32_t i = 0; i < n; i++)
		if (!(s->class_name[i] = nr_arena_strdup(s->arena, name[i]))) return out_of_memory(s, err);
	if (own) memcpy(own, colour, (size_t)n * sizeof *own);
	s->colour = (const uint8_t(*)[3])own;
	s->classes = n;
	return NR_OK;
}

/* R G B at the end or at the beginning of a line; what is left of it is the name. */
static bool take_colour(char *line, uint8_t rgb[3])
{
	int v[3] = { -1, -1, -1 }, at = 0, n = 0;
	for (char *p = line; *p; p++)
		if (strchr(",;\t", *p)) *p = ' ';
	for (size_t end = strlen(line); end && line[end - 1] == ' ';) line[--end] = 0;
	if (sscanf(line, "%d %d %d %n", &v[0], &v[1], &v[2], &at) == 3 && line[at]) {
		memmove(line, line + at, strlen(line + at) + 1);
	} else {
		char *p = line + strlen(line);
		for (n = 0; n < 3 && p > line; n += p > line) {
			while (p > line && p[-1] != ' ') p--;
			while (p > line && p[-1] == ' ') p--;
		}
		int used = 0;
		if (n < 3 || sscanf(p, " %d %d %d%n", &v[0], &v[1], &v[2], &used) != 3 || p[used]) return false;
		*p = 0;
	}
	for (int k = 0; k < 3; k++) {
		if (v[k] < 0 || v[k] > 255) return false;
		rgb[k] = (uint8_t)v[k];
	}
	return true;
}

struct told { char *name[NR_LABEL_CLASSES + 1]; uint8_t rgb[NR_LABEL_CLASSES + 1][3]; int32_t lines, coloured; };

static int read_lines(struct nr_source *s, const char *path, struct told *t, struct nr_error *err)
{
	char **line;
	int64_t *number, n;
	if (nr_listed_lines(s, path, &line, &number, &n, err)) return err->code;
	for (int64_t i = 0; i < n; i++) {
		if (!i && (!strncasecmp(line[i], "name,", 5) || !strncmp(line[i], "Idx\t", 4))) continue;      /* a heading */
		if (t->lines > NR_LABEL_CLASSES)
			return nr_fail(err, NR_ELIMIT, "cannot read", path, "it names more than %d classes", NR_LABEL_CLASSES);
		char *last = strrchr(line[i], '\t');
		if (of_ade20k(path)) {
			t->name[t->lines] = last ? last + 1 : line[i];
			t->name[t->lines][strcspn(t->name[t->lines], ",")] = 0;
		} else {
			char *copy = nr_arena_strdup(s->arena, line[i]);
			if (!copy) return out_of_memory(s, err);
			const bool coloured = take_colour(copy, t->rgb[t->lines]);
			t->coloured += coloured;
			t->name[t->lines] = coloured ? copy : line[i];
		}
		t->lines++;
	}
	if (t->coloured && t->coloured < t->lines)
		return nr_fail(err, NR_EFORMAT, "cannot read", path, "%d of its %d lines have a colour: all or none must", t->coloured,
			t->lines);
	return t->lines ? NR_OK : nr_fail(err, NR_EFORMAT, "cannot read", path, "it names no class");
}

/* Numbers from `first` on, in the order of the lines; those called void do not count. */
static int take_lines(struct nr_source *s, const struct told *t, int32_t first, int32_t ignored, struct nr_error *err)
{
	struct nr_label_maps *m = s->own;
	struct told kept = { .lines = 0 };
	for (int32_t i = 0; i < t->lines; i++) {
		const bool counts = !is_void(t->name[i]) && i + first != ignored;
		const int16_t class_ = (int16_t)(counts ? kept.lines : NR_NO_CLASS);
		if (i + first < 256) m->class_of[i + first] = class_;
		if (t->coloured) memcpy(m->colour[m->colours].rgb, t->rgb[i], 3), m->colour[m->colours++].class_ = class_;
		if (!counts) continue;
		kept.name[kept.lines] = t->name[i];
		memcpy(kept.rgb[kept.lines++], t->rgb[i], 3);
	}
	m->by_colour = t->coloured > 0;
	if (!kept.lines || kept.lines > NR_LABEL_CLASSES)
		return nr_fail(err, NR_EVALUE, "cannot use", s->dir, "there are %d classes: 1 to %d", kept.lines, NR_LABEL_CLASSES);
	return set_names(s, kept.name, t->coloured ? (const uint8_t(*)[3])kept.rgb : NULL, kept.lines, err);
}

/* ---- what is seen ------------------------------------------------------------------------------------------------------------ */

struct seen {
	bool number[256], coloured;
	uint8_t rgb[COLOURS + 1][3];
	int32_t colours;
	struct nr_palette palette;
	struct nr_error bad;
};

static void see(struct seen *s, const struct nr_picture *p)
{
	const int64_t n = (int64_t)p->h * p->w;
	if (p->channels == 1) {
		for (int64_t i = 0; i < n; i++) s->number[p->pixels[i]] = true;
		return;
	}
	s->coloured = true;
	for (int64_t i = 0; i < n && s->colours <= COLOURS; i++) {
		const uint8_t *v = p->pixels + 3 * i;
		int32_t k = s->colours;
		if (i && !memcmp(v, v - 3, 3)) continue;
		for (k = 0; k < s->colours && memcmp(s->rgb[k], v, 3) != 0;) k++;
		if (k == s->colours) memcpy(s->rgb[s->colours++], v, 3);
	}
}

/* known: the classes are, and a map is to have no others. */
static void look(const struct nr_source *s, enum nr_split split, int64_t i, bool known, struct nr_picture *p, struct seen *to)
{
	char file[1024];
	struct nr_palette palette = { 0 };
	if (known) {
		nr_label_maps_get(s, split, i, p, &to->bad);
		return;
	}
	if (nr_picture_numbers(p, nr_label_maps_file(s, split, i, file, sizeof file), &palette, &to->bad)) return;
	see(to, p);
	if (palette.count > to->palette.count) to->palette = palette;
}

/* Each on a line, if there are several. */
static int tell_bad(const struct nr_source *s, const struct seen *of, int64_t n, struct nr_error *err)
{
	int64_t bad = 0;
	char text[1400];
	const struct seen *first = NULL;
	for (int64_t q = 0; q < n; q++)
		if (of[q].bad.code && !bad++) first = &of[q];
	if (bad == 1) *err = first->bad;
	for (int64_t q = 0, told = 0; q < n && bad > 1; q++)
		if (of[q].bad.code && told++ < TOLD) nr_log_line(NR_LOG_ERROR, "%s", nr_error_text(&of[q].bad, text, sizeof text));
	if (bad > 1) nr_fail(err, NR_EFORMAT, "cannot use", s->dir, "%lld of %lld label maps are not right", (long long)bad, (long long)n);
	return bad ? (int)err->code : NR_OK;
}

/* All maps, or as many spread over them; the sets are the same however the threads share them. */
static int look_at_all(const struct nr_source *s, struct seen *all, bool known, struct nr_error *err)
{
	int64_t n = 0;
	for (int k = 0; k < NR_SPLITS; k++) n += s->count[k];
	const int64_t some = n < LOOKED_AT ? n : LOOKED_AT;
	struct seen *of = calloc((size_t)some + 1, sizeof *of);
	if (!of) return out_of_memory(s, err);
#pragma omp parallel
	{
		struct nr_picture p = { 0 };
#pragma omp for schedule(dynamic, 4)
		for (int64_t q = 0; q < some; q++) {
			int64_t i = (int64_t)((double)q / (double)some * (double)n);
			int k = 0;
			while (i >= s->count[k]) i -= s->count[k++];
			look(s, (enum nr_split)k, i, known, &p, &of[q]);
		}
		nr_picture_release(&p);
	}
	const int code = tell_bad(s, of, some, err);
	for (int64_t q = 0; q < some; q++) {
		for (int v = 0; v < 256; v++) all->number[v] |= of[q].number[v];
		const struct nr_picture colours = { .h = 1, .w = of[q].colours, .channels = 3, .pixels = &of[q].rgb[0][0] };
		if (of[q].coloured) see(all, &colours);
		if (of[q].palette.count > all->palette.count) all->palette = of[q].palette;
	}
	free(of);
	return code;
}

static int by_bytes(const void *a, const void *b) { return memcmp(a, b, 3); }

/* Colours in the order of their numbers are the classes. */
static int take_colours(struct nr_source *s, struct seen *all, struct nr_error *err)
{
	struct told t = { .lines = all->colours, .coloured = all->colours };
	if (all->colours > COLOURS) {
		nr_fail(err, NR_EFORMAT, "cannot use the label maps in", s->dir, "they have more than %d colours, and nothing names them",
			COLOURS);
		return nr_hint(err, "a file classes.txt beside the folders, with a line 'NAME R G B' for each class");
	}
	qsort(all->rgb, (size_t)all->colours, sizeof *all->rgb, by_bytes);
	for (int32_t i = 0; i < all->colours; i++) {
		memcpy(t.rgb[i], all->rgb[i], 3);
		t.name[i] = nr_arena_printf(s->arena, "#%02x%02x%02x", all->rgb[i][0], all->rgb[i][1], all->rgb[i][2]);
		if (!t.name[i]) return out_of_memory(s, err);
	}
	return take_lines(s, &t, 0, -1, err);
}

static int take_numbers(struct nr_source *s, const struct seen *all, int32_t ignored, struct nr_error *err)
{
	struct nr_label_maps *m = s->own;
	struct told t = { .lines = 0 };
	int32_t most = -1, kinds = 0;
	for (int32_t v = 0; v < 256; v++) {
		kinds += all->number[v];
		if (all->number[v] && v < NR_NO_CLASS && v != ignored) most = v;
	}
	if (!all->palette.count && kinds == 2 && all->number[0] && all->number[255] && ignored < 0) {
		static char background[] = "background", foreground[] = "foreground";
		static char *const two[] = { background, foreground };
		m->class_of[0] = 0, m->class_of[255] = 1;
		s->said = "label maps are masks of 0 and 255";
		return set_names(s, two, NULL, 2, err);
	}
	for (int32_t v = 0; v <= most; v++, t.lines++)
		if (!(t.name[v] = nr_arena_printf(s->arena, "%d", v))) return out_of_memory(s, err);
	if (!t.lines) return nr_fail(err, NR_EVALUE, "cannot use", s->dir, "no pixel of its label maps has a class");
	s->said = nr_arena_printf(s->arena, "classes are the numbers 0 to %d of the label maps, for want of classes.txt", most);
	if (take_lines(s, &t, 0, ignored, err)) return err->code;
	if (all->palette.count <= most) return NR_OK;
	uint8_t(*own)[3] = nr_arena_alloc(s->arena, sizeof all->palette.colour);
	if (!own) return out_of_memory(s, err);
	for (int32_t v = 0; v <= most; v++)
		if (m->class_of[v] < NR_NO_CLASS) memcpy(own[m->class_of[v]], all->palette.colour[v], 3);
	s->colour = (const uint8_t(*)[3])own;
	return NR_OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------------------- */

static int of_known(struct nr_source *s, const struct nr_label_folder *how, struct nr_error *err)
{
	struct nr_label_maps *m = s->own;
	if (nr_source_classes(s, how->names, err)) return err->code;
	for (int32_t k = 0; k < s->classes; k++) m->class_of[k] = (int16_t)k;
	s->colour = how->colour;
	return NR_OK;
}

int nr_label_classes_find(struct nr_source *s, const struct nr_label_folder *how, struct nr_error *err)
{
	struct nr_label_maps *m = s->own;
	struct told *told = nr_arena_alloc(s->arena, sizeof *told);
	struct seen *all = nr_arena_alloc(s->arena, sizeof *all);
	if (!told || !all) return out_of_memory(s, err);
	m->class_of[NR_NO_CLASS] = NR_NO_CLASS;
	if (how->ignored >= 0) m->class_of[how->ignored] = NR_NO_CLASS;
	if (how->names) return of_known(s, how, err);
	const char *path = file_of(s);
	const bool ade = path && of_ade20k(path);
	if (path && (read_lines(s, path, told, err) || take_lines(s, told, ade, how->ignored, err))) return err->code;
	if (ade) m->class_of[0] = NR_NO_CLASS;
	if (how->trusted) return NR_OK;
	if (look_at_all(s, all, path != NULL, err) || path) return err->code;
	return all->coloured ? take_colours(s, all, err) : take_numbers(s, all, how->ignored, err);
}
