/* Shapes as files: see shapes.h. Several threads draw and write a piece of the pictures, then their annotations follow in order. */
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/save.h"
#include "base/str.h"
#include "data/shapes.h"

enum { PIECE = 64 };
static const char *const splits[] = { "train", "val" };

struct drawn { struct nr_shapes shapes; struct nr_error err; };

static void draw_one(const struct nr_shapes_how *how, int64_t number, const char *path, struct drawn *d)
{
	struct nr_picture p = { 0 };
	if (!path) nr_fail(&d->err, NR_EMEMORY, "cannot draw shapes", NULL, "out of memory");
	else if (!nr_shapes_draw(how, number, &p, &d->shapes, &d->err)) nr_picture_write_png(&p, path, &d->err);
	nr_picture_release(&p);
}

static int64_t add_objects(json_t *list, const struct nr_shapes *s, int64_t image, int64_t id, struct nr_error *err)
{
	for (int32_t i = 0; i < s->count; i++) {
		const struct nr_rle *mask = s->shape[i].mask;
		struct nr_str runs = { 0 };
		double box[4];
		nr_rle_box(mask, box);
		nr_rle_to_string(mask, &runs);
		json_t *j = json_pack("{s:I, s:I, s:i, s:[f,f,f,f], s:I, s:i, s:{s:[i,i], s:s}}", "id", (json_int_t)(id + i), "image_id",
			(json_int_t)image, "category_id", s->shape[i].kind + 1, "bbox", box[0], box[1], box[2], box[3], "area",
			(json_int_t)nr_rle_area(mask), "iscrowd", 0, "segmentation", "size", mask->h, mask->w, "counts",
			nr_str_text(&runs));
		if (json_array_append_new(list, j) || runs.failed) nr_fail(err, NR_EMEMORY, "cannot draw shapes", NULL, "out of memory");
		nr_str_release(&runs);
	}
	return id + s->count;
}

static json_t *categories(void)
{
	json_t *list = json_array();
	for (int i = 0; i < NR_SHAPE_KINDS; i++)
		json_array_append_new(list, json_pack("{s:i, s:s}", "id", i + 1, "name", nr_shape_names[i]));
	return list;
}

static int write_json(const struct nr_shapes_files *f, const char *path, json_t *images, json_t *annotations, struct nr_error *err)
{
	struct nr_str text = { 0 };
	json_t *root = json_pack("{s:{s:s, s:I, s:I, s:[I,I]}, s:O, s:O, s:o}", "info", "description", "norma data make shapes", "seed",
		(json_int_t)f->how.seed, "size", (json_int_t)f->how.size, "shapes", (json_int_t)f->how.fewest, (json_int_t)f->how.most,
		"images", images, "annotations", annotations, "categories", categories());
	int code = nr_json_add(&text, root, err);
	if (!code) code = nr_save_file(path, text.text, text.len, err);
	nr_str_release(&text);
	return code;
}

/* first: the number of its first picture; ids go on from those of the split before. */
static int write_split(struct nr_shapes_files *f, int split, int64_t first, const char *dir, struct nr_arena *arena, struct nr_error *err)
{
	struct drawn *piece = calloc(PIECE, sizeof *piece);
	json_t *images = json_array(), *annotations = json_array();
	const char *folder = nr_arena_printf(arena, "%s/%s", dir, splits[split]);
	const char *file = nr_arena_printf(arena, "%s/annotations/instances_%s.json", dir, splits[split]);
	if (!piece || !images || !annotations || !folder || !file) nr_fail(err, NR_EMEMORY, "cannot draw shapes", NULL, "out of memory");
	else nr_folder_make(folder, err);
	for (int64_t i = 0; i < f->count[split] && !err->code; i += PIECE) {
		const int n = (int)(f->count[split] - i < PIECE ? f->count[split] - i : PIECE);
		const struct nr_mark mark = nr_arena_mark(arena);
		const char *path[PIECE];
		for (int k = 0; k < n; k++) path[k] = nr_arena_printf(arena, "%s/%06lld.png", folder, (long long)(first + i + k + 1));
#pragma omp parallel for schedule(dynamic, 1)
		for (int k = 0; k < n; k++) draw_one(&f->how, first + i + k, path[k], &piece[k]);
		for (int k = 0; k < n; k++) {
			const long long id = first + i + k + 1;
			if (piece[k].err.code && !err->code) *err = piece[k].err;
			json_array_append_new(images, json_pack("{s:I, s:s, s:I, s:I}", "id", (json_int_t)id, "file_name",
				nr_arena_printf(arena, "%06lld.png", id), "height", (json_int_t)f->how.size, "width",
					(json_int_t)f->how.size));
			f->shapes = add_objects(annotations, &piece[k].shapes, id, f->shapes + 1, err) - 1;
			nr_shapes_release(&piece[k].shapes);
		}
		nr_arena_reset(arena, mark);
		if (f->watch) f->watch(f->context, first + i + n);
	}
	if (!err->code) write_json(f, file, images, annotations, err);
	json_decref(images);
	json_decref(annotations);
	free(piece);
	return err->code;
}

int nr_shapes_write(struct nr_shapes_files *f, const char *dir, struct nr_error *err)
{
	struct nr_arena *arena = nr_arena_make();
	const char *folder = arena ? nr_arena_printf(arena, "%s/annotations", dir) : NULL;
	f->shapes = 0;
	if (!folder) nr_fail(err, NR_EMEMORY, "cannot write", dir, "out of memory");
	else nr_folder_make(folder, err);
	for (int k = 0; k < 2 && !err->code; k++) write_split(f, k, k ? f->count[0] : 0, dir, arena, err);
	nr_arena_free(arena);
	return err->code;
}
