/* See label_maps.h. */
#include "data/label_maps.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "picture/picture.h"

/* The size of a map tells whether it is of the upright picture or of the one that the file stores. */
static int fit(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p, const char *path, struct nr_error *err)
{
	const struct nr_label_maps *m = s->own;
	char file[1024];
	int32_t h, w;
	if (m->stored) return nr_picture_as_stored(p, path, err);
	nr_png_size(nr_label_maps_file(s, split, i, file, sizeof file), &h, &w);
	return nr_picture_as_sized(p, h, w, path, err);
}

struct nr_label_maps *nr_label_maps_make(struct nr_source *s, struct nr_error *err)
{
	struct nr_label_maps *m = s->own = nr_arena_alloc(s->arena, sizeof *m);
	if (!m) {
		nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
		return NULL;
	}
	m->listed.dir = s->dir;
	m->listed.fit = fit;
	for (int i = 0; i < 256; i++) m->class_of[i] = NR_UNKNOWN_NUMBER;
	return m;
}

int nr_label_maps_add(struct nr_source *s, enum nr_split split, const char *picture, const char *map, struct nr_error *err)
{
	struct nr_label_maps *m = s->own;
	if (m->maps == m->room) {
		const int64_t room = m->room ? 2 * m->room : 256;
		const char **more = nr_arena_alloc(s->arena, (size_t)room * sizeof *more);
		if (!more) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
		if (m->maps) memcpy(more, m->map, (size_t)m->maps * sizeof *more);
		m->map = more;
		m->room = room;
	}
	if (!(m->map[m->maps] = nr_arena_strdup(s->arena, map))) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name,
		"out of memory");
	return nr_listed_add(s, split, picture, (int32_t)m->maps++, err);
}

int32_t nr_label_maps_none(const struct nr_source *s, enum nr_split split, int64_t i)
{
	(void)s, (void)split, (void)i;
	return -1;
}

const char *nr_label_maps_file(const struct nr_source *s, enum nr_split split, int64_t i, char *buf, size_t size)
{
	const struct nr_label_maps *m = s->own;
	snprintf(buf, size, "%s/%s", s->dir, m->map[m->listed.split[split].label[i]]);
	return buf;
}

static int16_t class_of_colour(const struct nr_label_maps *m, const uint8_t *rgb)
{
	for (int32_t i = 0; i < m->colours; i++)
		if (!memcmp(m->colour[i].rgb, rgb, 3)) return m->colour[i].class_;
	return NR_UNKNOWN_NUMBER;
}

static int unknown(const struct nr_source *s, const struct nr_picture *p, int64_t at, const char *file, const char *what,
	struct nr_error *err)
{
	nr_fail(err, NR_EVALUE, "cannot use the labels of", file, "pixel (%d,%d) is %s, which is no class of the %d of '%s'",
		(int)(at % p->w), (int)(at / p->w), what, s->classes, s->of->name);
	return nr_hint(err, "255 is for pixels that do not count");
}

/* Numbers become classes in place. */
static int translate_numbers(const struct nr_source *s, struct nr_picture *p, const struct nr_palette *palette, const char *file,
	struct nr_error *err)
{
	const struct nr_label_maps *m = s->own;
	int16_t of[256];
	char text[32];
	for (int i = 0; i < 256; i++) of[i] = m->class_of[i];
	for (int i = 0; i < palette->count && m->by_colour; i++) of[i] = class_of_colour(m, palette->colour[i]);
	for (int64_t i = 0; i < (int64_t)p->h * p->w; i++) {
		const uint8_t v = p->pixels[i];
		if (of[v] == NR_UNKNOWN_NUMBER) {
			snprintf(text, sizeof text, "%d", v);
			return unknown(s, p, i, file, text, err);
		}
		p->pixels[i] = (uint8_t)of[v];
	}
	return NR_OK;
}

/* Three bytes become one in place. */
static int translate_colours(const struct nr_source *s, struct nr_picture *p, const char *file, struct nr_error *err)
{
	const struct nr_label_maps *m = s->own;
	uint8_t last[3] = { 0 };
	char text[32];
	int16_t class_ = class_of_colour(m, last);
	if (!m->by_colour) {
		nr_fail(err, NR_EFORMAT, "cannot use the labels of", file, "they are colours, but nothing says which class has which");
		return nr_hint(err, "a file classes.txt beside the folders, with a line 'NAME R G B' for each class");
	}
	for (int64_t i = 0; i < (int64_t)p->h * p->w; i++) {
		const uint8_t *v = p->pixels + 3 * i;
		if (memcmp(v, last, 3) != 0) memcpy(last, v, 3), class_ = class_of_colour(m, last);
		if (class_ == NR_UNKNOWN_NUMBER) {
			snprintf(text, sizeof text, "#%02x%02x%02x", v[0], v[1], v[2]);
			return unknown(s, p, i, file, text, err);
		}
		p->pixels[i] = (uint8_t)class_;
	}
	p->channels = 1;
	return NR_OK;
}

int nr_label_maps_get(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p, struct nr_error *err)
{
	char file[1024];
	struct nr_palette palette = { 0 };
	nr_label_maps_file(s, split, i, file, sizeof file);
	if (nr_picture_numbers(p, file, &palette, err)) return err ? (int)err->code : NR_EFORMAT;
	return p->channels == 3 ? translate_colours(s, p, file, err) : translate_numbers(s, p, &palette, file, err);
}
