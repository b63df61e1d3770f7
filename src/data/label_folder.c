/* A folder of pictures and label maps: which of its folders are which. Known forms, S one of train, val, test:
 *   images/ labels/            all pictures, of which a share becomes val
 *   images/S/ labels/S/        ADE20K, Cityscapes
 *   S/images/ S/labels/
 *   S/ Sannot/                 CamVid; also S_labels, S_masks, ...
 * The map of a picture is the PNG of the same name, perhaps with _mask, _label and their like behind it. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/label_maps.h"
#include "data/names_in.h"
#include "data/survey.h"
#include "picture/picture.h"

enum { MAX_DEPTH = 8 };
#define OWN_SHARE 0.1

static const char *const images[] = { "images", "image", "imgs", "img", "pictures", "photos", "JPEGImages", "leftImg8bit", NULL };
static const char *const labels[] = { "labels", "label", "annotations", "annotation", "masks", "mask", "segmentations", "segmentation",
	"SegmentationClass", "gtFine", "gt", NULL };
static const char *const beside[] = { "annot", "_annot", "annotations", "_annotations", "labels", "_labels", "_label", "masks", "_masks",
	"_mask", "_gt", NULL };
static const char *const ends[] = { "", "_mask", "_masks", "_label", "_labels", "_L", "_gt", "_seg", "_gtFine_labelIds", NULL };
static const char *const splits[][5] = { { "train", "training", NULL }, { "val", "valid", "validation", NULL }, { "test", "testing",
	NULL } };
enum { DIVIDED = 3 };

/* The folder below `in` that has one of these names, whatever their case; NULL: none. */
static const char *folder_of(const char *in, const char *const *names, struct nr_arena *arena)
{
	struct nr_names_in n;
	const char *found = NULL;
	if (!nr_is_folder(in) || nr_names_in(in, &n, arena, &(struct nr_error){ 0 })) return NULL;
	for (; *names && !found; names++)
		for (size_t i = 0; i < n.count && !found; i++) {
			const char *path = strcasecmp(n.item[i], *names) ? NULL : nr_arena_printf(arena, "%s/%s", in, n.item[i]);
			if (nr_is_folder(path)) found = path;
		}
	free(n.item);
	return found;
}

/* "train" and what stands beside it: "trainannot", "train_labels". */
static const char *folder_beside(const char *folder, struct nr_arena *arena)
{
	for (int i = 0; beside[i]; i++) {
		const char *path = nr_arena_printf(arena, "%s%s", folder, beside[i]);
		if (nr_is_folder(path)) return path;
	}
	return NULL;
}

struct pair { const char *picture, *map; };     /* folders */
struct layout { struct pair split[DIVIDED], all; bool divided; };

static bool is_whole(struct pair p) { return p.picture && p.map; }

static struct layout layout_of(const char *dir, struct nr_arena *arena)
{
	struct layout l = { .all = { folder_of(dir, images, arena), folder_of(dir, labels, arena) } };
	for (int k = 0; k < DIVIDED; k++) {
		const char *of = folder_of(dir, splits[k], arena);
		struct pair p = { NULL, NULL };
		if (is_whole(l.all)) p = (struct pair){ folder_of(l.all.picture, splits[k], arena), folder_of(l.all.map, splits[k],
			arena) };
		if (!is_whole(p) && of) p = (struct pair){ folder_of(of, images, arena), folder_of(of, labels, arena) };
		if (!is_whole(p) && of) p = (struct pair){ of, folder_beside(of, arena) };
		if (is_whole(p)) l.split[k] = p, l.divided = true;
	}
	return l;
}

bool nr_label_folder_like(const char *path, struct nr_arena *arena)
{
	const struct layout l = layout_of(path, arena);
	return l.divided || is_whole(l.all);
}

/* ---- pictures and their maps ---------------------------------------------------------------------------------------------- */

struct walk {
	struct nr_source *s;
	const struct nr_label_folder *how;
	struct pair of;
	enum nr_split split;
	double val;
	int64_t without;                        /* pictures that have no map */
	struct nr_error *err;
};

/* The map of a picture, "town/a.jpg" below the folder; NULL: there is none. */
static const char *map_of(const struct walk *w, const char *picture)
{
	const char *dot = strrchr(picture, '.');
	for (int i = 0; ends[i]; i++) {
		const char *path = nr_arena_printf(w->s->arena, "%s/%.*s%s.png", w->of.map, (int)(dot - picture), picture, ends[i]);
		if (path && !access(path, F_OK)) return path;
	}
	return NULL;
}

/* What follows the set's folder. */
static const char *below(const struct walk *w, const char *path) { return path + strlen(w->s->dir) + 1; }

static int add_picture(struct walk *w, const char *inner)
{
	const char *map = map_of(w, inner), *full = nr_arena_printf(w->s->arena, "%s/%s", w->of.picture, inner);
	if (!full) return nr_fail(w->err, NR_EMEMORY, "cannot open", w->s->dir, "out of memory");
	if (map) return nr_label_maps_add(w->s, w->val > 0 && nr_name_share(inner) < w->val ? NR_VAL : w->split, below(w, full), below(w,
		map),
		w->err);
	w->without++;
	if (w->how->skip) return NR_OK;
	nr_fail(w->err, NR_EIO, "cannot use", full, "it has no label map: no '%.*s.png' in '%s'", (int)(strrchr(inner, '.') - inner), inner,
		w->of.map);
	return nr_hint(w->err, "it may also be called %.*s_mask.png or ..._label.png; labelmaps:path=DIR,bad=skip leaves such pictures out",
		(int)(strrchr(inner, '.') - inner), inner);
}

static int add_folder(struct walk *w, const char *inner, int depth)
{
	struct nr_names_in n;
	const char *path = nr_arena_printf(w->s->arena, "%s%s%s", w->of.picture, *inner ? "/" : "", inner);
	if (!path) return nr_fail(w->err, NR_EMEMORY, "cannot open", w->s->dir, "out of memory");
	if (nr_names_in(path, &n, w->s->arena, w->err)) return w->err->code;
	int code = NR_OK;
	for (size_t i = 0; i < n.count && !code; i++) {
		const char *one = nr_arena_printf(w->s->arena, "%s%s%s", inner, *inner ? "/" : "", n.item[i]);
		const char *full = one ? nr_arena_printf(w->s->arena, "%s/%s", w->of.picture, one) : NULL;
		if (!full) code = nr_fail(w->err, NR_EMEMORY, "cannot open", w->s->dir, "out of memory");
		else if (nr_is_picture_name(n.item[i])) code = add_picture(w, one);
		else if (depth < MAX_DEPTH && nr_is_folder(full)) code = add_folder(w, one, depth + 1);
	}
	free(n.item);
	return code;
}

/* A folder without val gets one, however few pictures it has. */
static int keep_one(struct nr_source *s, struct nr_error *err)
{
	struct nr_listed *l = s->own;
	const int64_t last = s->count[NR_TRAIN] - 1;
	if (s->count[NR_VAL] || last < 1) return NR_OK;
	const int code = nr_listed_add(s, NR_VAL, l->split[NR_TRAIN].path[last], l->split[NR_TRAIN].label[last], err);
	if (!code) s->count[NR_TRAIN]--;
	return code;
}

static int read_all(struct nr_source *s, const struct nr_label_folder *how, const struct layout *l, int64_t *without, struct nr_error *err)
{
	static const enum nr_split of[] = { NR_TRAIN, NR_VAL, NR_TEST };
	const bool vals = l->divided && (l->split[1].map || l->split[2].map);
	const double share = how->val >= 0 ? how->val : vals ? 0 : OWN_SHARE;
	struct walk w = { .s = s, .how = how, .err = err };
	for (int k = 0; k < DIVIDED; k++) {
		w.of = l->divided ? l->split[k] : l->all;
		w.split = of[k];
		w.val = k ? 0 : share;
		if (is_whole(w.of) && (l->divided || !k) && add_folder(&w, "", 0)) return err->code;
	}
	*without = w.without;
	return share > 0 ? keep_one(s, err) : NR_OK;
}

/* While all pictures are looked at, not in the middle of the training. */
static int check_size(const struct nr_source *s, enum nr_split split, int64_t i, const struct nr_picture *p, const char *path,
	struct nr_error *err)
{
	char file[1024];
	struct nr_picture map = { 0 };
	struct nr_palette palette = { 0 };
	int code = nr_picture_numbers(&map, nr_label_maps_file(s, split, i, file, sizeof file), &palette, err);
	if (!code && (map.h != p->h || map.w != p->w))
		code = nr_fail(err, NR_ESHAPE, "cannot use", path, "it has %d x %d pixels (width x height), but its label map '%s' %d x %d",
			p->w, p->h, file, map.w, map.h);
	nr_picture_release(&map);
	return code;
}

/* The sizes of the maps decide which pictures fit. */
static const char *stamp_of(const struct nr_source *s)
{
	const struct nr_label_maps *m = s->own;
	struct nr_str text = { 0 };
	if (m->stored) nr_str_add(&text, "stored\n");
	for (int64_t i = 0; i < m->maps; i++) {
		struct stat st;
		if (stat(nr_arena_printf(s->arena, "%s/%s", s->dir, m->map[i]), &st)) continue;
		nr_str_printf(&text, "%s %lld %lld.%ld\n", m->map[i], (long long)st.st_size, (long long)st.st_mtim.tv_sec,
			st.st_mtim.tv_nsec);
	}
	return nr_str_keep(&text, s->arena);
}

static int not_found(const struct nr_source *s, struct nr_error *err)
{
	nr_fail(err, NR_EFORMAT, "cannot open", s->dir, "there are no folders of pictures and of label maps");
	return nr_hint(err, "it needs images/*.jpg and labels/*.png (or masks/, annotations/), perhaps each with train/ and val/ in it; or "
		"train/, trainannot/, val/, valannot/");
}

int nr_label_folder_open(struct nr_source *s, const struct nr_label_folder *how, struct nr_error *err)
{
	const struct layout l = layout_of(s->dir, s->arena);
	int64_t without = 0, bad = 0;
	struct nr_str said = { 0 };
	if (!l.divided && !is_whole(l.all)) return not_found(s, err);
	if (!nr_label_maps_make(s, err) || read_all(s, how, &l, &without, err)) return err->code;
	s->channels = 3;
	int64_t all = 0;
	for (int k = 0; k < NR_SPLITS; k++) all += s->count[k];
	if (!all) return not_found(s, err);
	for (int k = 0; k < 3 && how->mean; k++) s->mean[k] = how->mean[k], s->std[k] = how->std[k];
	struct nr_label_maps *own = s->own;
	struct nr_listed *listed = &own->listed;
	own->stored = how->stored;
	listed->check = check_size;
	if (!how->mean) listed->stamp = stamp_of(s);
	if (!how->mean && nr_survey(s, how->root, how->skip, &bad, err)) return err->code;
	listed->check = NULL;
	if (nr_label_classes_find(s, how, err)) return err->code;
	if (without) nr_log_line(NR_LOG_WARNING, "%lld pictures of '%s' have no label map and are left out", (long long)without, s->dir);
	if (s->said) nr_str_add(&said, s->said);
	if (!l.divided || (s->count[NR_VAL] && !l.split[1].map))
		nr_str_printf(&said, "%sval is %lld of %lld pictures, chosen by their names", said.len ? "; " : "",
			(long long)s->count[NR_VAL],
			(long long)(s->count[NR_TRAIN] + s->count[NR_VAL]));
	s->said = said.len ? nr_str_keep(&said, s->arena) : NULL;
	nr_str_release(&said);
	return NR_OK;
}
