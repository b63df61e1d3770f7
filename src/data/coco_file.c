/* See coco_file.h. Entries are read by several threads, each on its own; what is wrong is told in the order of the file. */
#include "data/coco_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/coco_parts.h"
#include "picture/picture.h"

enum { TOLD = 50, NAMED = 3, MOST_CLASSES = 1000000 };
#define MOST_ENTRIES ((size_t)INT32_MAX / 2)

struct entry { struct nr_object o; struct nr_rle *mask; int64_t image; char *why; bool bad; };  /* bad: it cannot be used, as `why` says */
struct same { int64_t id; size_t entry; };  /* to find an id that occurs twice */
struct reader {
	struct nr_coco *to;
	const struct nr_coco_how *how;
	struct nr_arena *arena;
	struct nr_error *err;
	struct nr_str named;                /* the first entries that were left out */
	struct nr_str first;                /* what is wrong with the first of them */
};

static int no_memory(const struct reader *r) { return nr_fail(r->err, NR_EMEMORY, "cannot read", r->to->path, "out of memory"); }

/* ---- ids ---------------------------------------------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
	const struct same *x = a, *y = b;
	return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : (x->entry > y->entry) - (x->entry < y->entry);
}

/* first[i]: the entry before i that has its id; i itself if there is none. Entries without an id have none in common. */
static size_t *find_same(const json_t *list, size_t n)
{
	struct same *all = malloc((n + 1) * sizeof *all);
	size_t *first = malloc((n + 1) * sizeof *first), count = 0;
	for (size_t i = 0; all && first && i < n; i++) {
		first[i] = i;
		if (nr_coco_whole(json_object_get(json_array_get(list, i), "id"), &all[count].id)) all[count++].entry = i;
	}
	if (all && first && count) qsort(all, count, sizeof *all, by_id);
	for (size_t i = 1; all && first && i < count; i++)
		if (all[i].id == all[i - 1].id) first[all[i].entry] = first[all[i - 1].entry];
	free(all);
	if (all) return first;
	free(first);
	return NULL;
}

int64_t nr_coco_image(const struct nr_coco *c, int64_t id)
{
	for (int64_t low = 0, high = c->images; low < high;) {
		const int64_t middle = low + (high - low) / 2;
		if (c->image[middle].image_id == id) return middle;
		if (c->image[middle].image_id < id) low = middle + 1;
		else high = middle;
	}
	return -1;
}

int32_t nr_coco_class(const struct nr_coco *c, int64_t category)
{
	for (int32_t low = 0, high = c->classes; low < high;) {
		const int32_t middle = low + (high - low) / 2;
		if (c->category[middle] == category) return middle;
		if (c->category[middle] < category) low = middle + 1;
		else high = middle;
	}
	return -1;
}

/* ---- entries that cannot be used ---------------------------------------------------------------------------------------------- */

/* "annotation 17", or where it stands in the list if it has no id. */
static void name_of(char name[64], const char *kind, const json_t *list, size_t i)
{
	int64_t id;
	if (nr_coco_whole(json_object_get(json_array_get(list, i), "id"), &id)) snprintf(name, 64, "%s %lld", kind, (long long)id);
	else snprintf(name, 64, "entry %zu of '%ss'", i + 1, kind);
}

static void refuse(struct reader *r, const char *kind, const json_t *list, size_t i, const char *why)
{
	char name[64];
	name_of(name, kind, list, i);
	struct nr_coco *c = r->to;
	const int64_t before = c->left_out++;
	if (!before) nr_str_printf(&r->first, "%s: %s", name, why);
	if (r->how->bad == NR_COCO_SKIP) {
		if (before < NAMED) nr_str_printf(&r->named, "%s%s: %s", before ? "; " : "", name, why);
		return;
	}
	if (before == 1) nr_log_line(NR_LOG_ERROR, "'%s': %s", c->path, nr_str_text(&r->first));
	if (before > 0 && before < TOLD) nr_log_line(NR_LOG_ERROR, "'%s': %s: %s", c->path, name, why);
}

static int conclude(struct reader *r)
{
	const struct nr_coco *c = r->to;
	if (!c->left_out || r->err->code) return r->err->code;
	if (r->how->bad == NR_COCO_SKIP) {
		nr_log_line(NR_LOG_WARNING, "%lld entries of '%s' cannot be used and are left out: %s%s", (long long)c->left_out, c->path,
			nr_str_text(&r->named), c->left_out > NAMED ? "; ..." : "");
		return NR_OK;
	}
	if (c->left_out > TOLD) nr_log_line(NR_LOG_ERROR, "and %lld more", (long long)(c->left_out - TOLD));
	if (c->left_out > 1)
		nr_fail(r->err, NR_EFORMAT, "cannot use", c->path, "%lld of its entries are wrong, the first: %s", (long long)c->left_out,
			nr_str_text(&r->first));
	else nr_fail(r->err, NR_EFORMAT, "cannot use", c->path, "%s", nr_str_text(&r->first));
	return r->how->bad == NR_COCO_FAIL ? nr_hint(r->err, "bad=skip leaves such entries out") : NR_EFORMAT;
}

/* ---- pictures and categories --------------------------------------------------------------------------------------------------- */

static json_t *list_of(const struct reader *r, const json_t *root, const char *key)
{
	json_t *list = json_object_get(root, key);
	if (json_is_array(list) && json_array_size(list) < MOST_ENTRIES) return list;
	nr_fail(r->err, NR_EFORMAT, "cannot read", r->to->path, "it has no list '%s'", key);
	nr_hint(r->err, "an annotation file of COCO has the lists images, annotations and categories");
	return NULL;
}

static int by_category(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Without their categories no annotation means anything: what is wrong here is never left out. */
static int read_categories(struct reader *r, const json_t *list)
{
	struct nr_coco *c = r->to;
	const size_t n = json_array_size(list);
	if (!n || n > MOST_CLASSES) return nr_fail(r->err, NR_EFORMAT, "cannot read", c->path, "it has %zu categories", n);
	c->category = nr_arena_alloc(r->arena, n * sizeof *c->category);
	c->name = nr_arena_alloc(r->arena, (n + 1) * sizeof *c->name);
	if (!c->category || !c->name) return no_memory(r);
	c->classes = (int32_t)n;
	for (size_t i = 0; i < n; i++) {
		const json_t *j = json_array_get(list, i);
		if (!nr_coco_whole(json_object_get(j, "id"), &c->category[i]) || !json_is_string(json_object_get(j, "name")))
			return nr_fail(r->err, NR_EFORMAT, "cannot read", c->path,
				"entry %zu of 'categories' needs an id, a whole number, and a name", i + 1);
	}
	qsort(c->category, n, sizeof *c->category, by_category);
	for (size_t i = 0; i < n; i++) {
		const json_t *j = json_array_get(list, i);
		int64_t id = 0;
		nr_coco_whole(json_object_get(j, "id"), &id);
		char **name = &c->name[nr_coco_class(c, id)];
		if (*name) return nr_fail(r->err, NR_EFORMAT, "cannot read", c->path, "there are two categories %lld", (long long)id);
		if (!(*name = nr_arena_strdup(r->arena, json_string_value(json_object_get(j, "name"))))) return no_memory(r);
	}
	return NR_OK;
}

static int read_image(const json_t *j, struct nr_objects *to, const char **file, struct nr_error *err)
{
	int64_t h, w;
	*file = json_string_value(json_object_get(j, "file_name"));
	if (!nr_coco_whole(json_object_get(j, "id"), &to->image_id)) return nr_coco_wrong(err, "it has no 'id', a whole number");
	if (!*file || !**file) return nr_coco_wrong(err, "it has no 'file_name'");
	if (!nr_coco_whole(json_object_get(j, "height"), &h) || !nr_coco_whole(json_object_get(j, "width"), &w))
		return nr_coco_wrong(err, "it has no 'height' and 'width', whole numbers");
	if (h < 1 || w < 1 || h > NR_PICTURE_SIDE || w > NR_PICTURE_SIDE || h * w > NR_PICTURE_PIXELS)
		return nr_coco_wrong(err, "its size is %lld x %lld", (long long)h, (long long)w);
	to->h = (int32_t)h, to->w = (int32_t)w;
	return NR_OK;
}

struct picture { struct nr_objects o; const char *file; };
static int by_picture(const void *a, const void *b)
{
	const int64_t x = ((const struct picture *)a)->o.image_id, y = ((const struct picture *)b)->o.image_id;
	return (x > y) - (x < y);
}

static int read_images(struct reader *r, const json_t *list)
{
	struct nr_coco *c = r->to;
	const size_t n = json_array_size(list);
	struct picture *all = malloc((n + 1) * sizeof *all);
	size_t *first = find_same(list, n);
	c->image = nr_arena_alloc(r->arena, (n + 1) * sizeof *c->image);
	c->file = nr_arena_alloc(r->arena, (n + 1) * sizeof *c->file);
	const bool room = all && first && c->image && c->file;
	if (!room) no_memory(r);
	for (size_t i = 0; room && i < n; i++) {
		struct picture p = { .file = NULL };
		struct nr_error why = { 0 };
		if (!read_image(json_array_get(list, i), &p.o, &p.file, &why) && first[i] != i)
			nr_coco_wrong(&why, "entry %zu of 'images' has the same id", first[i] + 1);
		if (why.code) refuse(r, "image", list, i, why.detail);
		else all[c->images++] = p;
	}
	if (room && c->images) qsort(all, (size_t)c->images, sizeof *all, by_picture);
	for (int64_t i = 0; room && i < c->images; i++) {
		c->image[i] = all[i].o;
		if (!(c->file[i] = nr_arena_strdup(r->arena, all[i].file))) no_memory(r);
	}
	free(all);
	free(first);
	return r->err->code;
}

/* ---- annotations ---------------------------------------------------------------------------------------------------------------- */

/* Boxes may end a pixel beyond their picture, where somebody rounded. */
static int check_box(const double b[4], const struct nr_objects *image, struct nr_error *err)
{
	char box[160];
	snprintf(box, sizeof box, "its box (left %.6g, top %.6g, width %.6g, height %.6g)", b[0], b[1], b[2], b[3]);
	if (!(b[2] > 0 && b[3] > 0)) return nr_coco_wrong(err, "%s has no area", box);
	if (b[0] < -1 || b[1] < -1 || b[0] + b[2] > image->w + 1 || b[1] + b[3] > image->h + 1)
		return nr_coco_wrong(err, "%s is not inside the picture of %d x %d pixels (width x height)", box, image->w, image->h);
	return NR_OK;
}

static int read_annotation(const struct reader *r, const json_t *j, struct entry *e, struct nr_error *err)
{
	const struct nr_coco *c = r->to;
	const json_t *crowd = json_object_get(j, "iscrowd"), *area = json_object_get(j, "area");
	int64_t image, category, many = 0;
	if (!nr_coco_whole(json_object_get(j, "id"), &e->o.id)) return nr_coco_wrong(err, "it has no 'id', a whole number");
	if (!nr_coco_whole(json_object_get(j, "image_id"), &image)) return nr_coco_wrong(err, "it has no 'image_id', a whole number");
	if ((e->image = nr_coco_image(c, image)) < 0) return nr_coco_wrong(err, "there is no image %lld", (long long)image);
	if (!nr_coco_whole(json_object_get(j, "category_id"), &category))
		return nr_coco_wrong(err, "it has no 'category_id', a whole number");
	if ((e->o.label = nr_coco_class(c, category)) < 0) return nr_coco_wrong(err, "there is no category %lld", (long long)category);
	if (crowd && !json_is_boolean(crowd) && (!nr_coco_whole(crowd, &many) || many < 0 || many > 1))
		return nr_coco_wrong(err, "its 'iscrowd' is neither 0 nor 1");
	e->o.crowd = many || json_is_true(crowd);
	const struct nr_objects *picture = &c->image[e->image];
	if (nr_coco_box(json_object_get(j, "bbox"), e->o.xywh, err)) return err->code;
	if (r->how->bad != NR_COCO_TRUST && check_box(e->o.xywh, picture, err)) return err->code;
	const json_t *outline = json_object_get(j, "segmentation");
	const bool none = !r->how->masks || !outline || json_is_null(outline) || (json_is_array(outline) && !json_array_size(outline));
	if (!none && nr_coco_mask(outline, picture->h, picture->w, &e->mask, err)) return err->code;
	if (area && !json_is_null(area) && (!json_is_number(area) || !isfinite(json_number_value(area))))
		return nr_coco_wrong(err, "its 'area' is not a number");
	if (json_is_number(area)) e->o.area = json_number_value(area);
	else e->o.area = e->mask ? (double)nr_rle_area(e->mask) : e->o.xywh[2] * e->o.xywh[3];
	return NR_OK;
}

/* The objects of a picture in the order of the file. */
static int keep(struct reader *r, struct entry *all, size_t n)
{
	struct nr_coco *c = r->to;
	for (size_t i = 0; i < n; i++)
		if (!all[i].bad) c->image[all[i].image].count++;
	for (int64_t i = 0; i < c->images; i++) {
		struct nr_objects *o = &c->image[i];
		if (o->count && !(o->object = nr_arena_alloc(r->arena, (size_t)o->count * sizeof *o->object))) return no_memory(r);
		o->count = 0;
	}
	for (size_t i = 0; i < n; i++) {
		if (all[i].bad) continue;
		struct nr_objects *o = &c->image[all[i].image];
		if (all[i].mask && !(all[i].o.mask = nr_rle_keep(all[i].mask, r->arena))) return no_memory(r);
		nr_rle_free(all[i].mask);
		all[i].mask = NULL;
		o->object[o->count++] = all[i].o;
		c->objects++;
	}
	return NR_OK;
}

static int read_annotations(struct reader *r, const json_t *list)
{
	const size_t n = json_array_size(list);
	struct entry *all = calloc(n + 1, sizeof *all);
	size_t *first = find_same(list, n);
	if (!all || !first) no_memory(r);
	else {
#pragma omp parallel for schedule(dynamic, 64)
		for (size_t i = 0; i < n; i++) {
			struct nr_error why = { 0 };
			if (!read_annotation(r, json_array_get(list, i), &all[i], &why) && first[i] != i)
				nr_coco_wrong(&why, "entry %zu of 'annotations' has the same id", first[i] + 1);
			all[i].bad = why.code != NR_OK;
			if (all[i].bad) all[i].why = strdup(why.detail);
		}
		for (size_t i = 0; i < n; i++)
			if (all[i].bad) refuse(r, "annotation", list, i, all[i].why ? all[i].why : "out of memory");
		keep(r, all, n);
	}
	for (size_t i = 0; all && i < n; i++) {
		nr_rle_free(all[i].mask);
		free(all[i].why);
	}
	free(all);
	free(first);
	return r->err->code;
}

/* ---- the file -------------------------------------------------------------------------------------------------------------------- */

static int read_root(struct nr_coco *c, json_t *root, const char *path, const struct nr_coco_how *how, struct nr_arena *arena,
	struct nr_error *err)
{
	const int64_t before = nr_memory_failures();
	struct nr_error own = { 0 };
	struct reader r = { .to = c, .how = how, .arena = arena, .err = err ? err : &own };
	*c = (struct nr_coco){ .path = nr_arena_strdup(arena, path) };
	const json_t *images = NULL, *annotations = NULL, *categories = NULL;
	if (!c->path) no_memory(&r);
	else if ((images = list_of(&r, root, "images")) && (annotations = list_of(&r, root, "annotations")))
		categories = list_of(&r, root, "categories");
	if (categories && !read_categories(&r, categories) && !read_images(&r, images)) read_annotations(&r, annotations);
	if (!r.err->code) nr_memory_since(before, "cannot read", path, r.err);
	conclude(&r);
	nr_str_release(&r.named);
	nr_str_release(&r.first);
	return r.err->code;
}

int nr_coco_read(struct nr_coco *c, const char *path, const struct nr_coco_how *how, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_error own = { 0 };
	json_t *root = nr_json_load(path, err ? err : &own);
	if (!root) return err ? (int)err->code : (int)own.code;
	const int code = read_root(c, root, path, how, arena, err);
	json_decref(root);
	return code;
}

int nr_coco_parse(struct nr_coco *c, const char *text, size_t size, const char *path, const struct nr_coco_how *how, struct nr_arena *arena,
	struct nr_error *err)
{
	struct nr_error own = { 0 };
	json_t *root = nr_json_parse(text, size, path, err ? err : &own);
	if (!root) return err ? (int)err->code : (int)own.code;
	const int code = read_root(c, root, path, how, arena, err);
	json_decref(root);
	return code;
}
