/* Dual PatchNorm (Fig. 3): the norm before the patch projection sees pixels, so that its gain and bias are pictures of a patch, one
 * for each colour. The gains of the norm after the projection are drawn by size. */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/canvas.h"

struct vector { const char *name; int64_t n; double *value; double low, mean, high; };   /* n 0: there is none */
struct patch { struct vector gain, bias, post; int64_t channels, side; };

static int load(struct nr_analysis *a, const char *name, struct vector *v, struct nr_error *err)
{
	const struct nr_entry *e = nr_store_find(a->w->store, name);
	if (!e) return NR_OK;
	*v = (struct vector){ name, e->count, nr_arena_alloc(a->arena, (size_t)e->count * sizeof *v->value), INFINITY, 0, -INFINITY };
	if (!v->value) return nr_fail(err, NR_EMEMORY, "cannot read the patch norm", name, "out of memory");
	for (int64_t i = 0; i < v->n; i++) {
		v->value[i] = (double)nr_value(e)[i];
		v->low = fmin(v->low, v->value[i]);
		v->high = fmax(v->high, v->value[i]);
		v->mean += v->value[i] / (double)v->n;
	}
	return NR_OK;
}

static int begin(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct patch *s = own;
	s->channels = nr_model_int(&a->w->model, "channels");
	s->side = nr_model_int(&a->w->model, "patch");
	if (load(a, "patch.in.weight", &s->gain, err) || load(a, "patch.in.bias", &s->bias, err) ||
		load(a, "patch.out.weight", &s->post, err))
		return err->code;
	const int64_t pixels = s->channels * s->side * s->side;
	if (s->gain.n != pixels) s->gain.n = 0;         /* one number for all: nothing to see */
	if (s->bias.n != pixels) s->bias.n = 0;
	return s->post.n ? NR_OK : load(a, "patch.pos.weight", &s->post, err);
}

static json_t *vector_json(const struct vector *v)
{
	json_t *all = json_array();
	for (int64_t i = 0; i < v->n; i++) json_array_append_new(all, nr_json_number(v->value[i]));
	return all;
}

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct patch *s = own;
	(void)a;
	if (!s->gain.n && !s->bias.n && !s->post.n) return NULL;
	return json_pack("{s:I, s:I, s:o, s:o, s:o}", "channels", (json_int_t)s->channels, "side", (json_int_t)s->side, "gain",
		vector_json(&s->gain), "bias", vector_json(&s->bias), "post_gain", vector_json(&s->post));
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	const struct patch *s = own;
	const struct vector *const all[] = { &s->gain, &s->bias, &s->post };
	(void)a;
	if (!s->gain.n && !s->bias.n && !s->post.n) return;
	nr_str_printf(text, "\npatch norms\n");
	for (int i = 0; i < 3; i++)
		if (all[i]->n)
			nr_str_printf(text, "%-18s mean %.4g, from %.4g to %.4g over %lld\n", all[i]->name, all[i]->mean, all[i]->low,
				all[i]->high, (long long)all[i]->n);
}

static int draw_pixels(const struct nr_analysis *a, const struct patch *s, const char *dir, struct nr_error *err)
{
	static const char *const rgb[] = { "red", "green", "blue" }, *const grey[] = { "grey" };
	const char *labels[2];
	int64_t rows = 0;
	const int64_t pixels = s->channels * s->side * s->side;
	double *value = nr_arena_alloc(a->arena, (size_t)(2 * pixels) * sizeof *value);
	const char *path = nr_arena_printf(a->arena, "%s/patch_norm.png", dir);
	if (!value || !path) return nr_fail(err, NR_EMEMORY, "cannot draw", dir, "out of memory");
	const struct vector *const all[] = { &s->gain, &s->bias };
	for (int i = 0; i < 2; i++) {
		if (!all[i]->n) continue;
		memcpy(value + rows * pixels, all[i]->value, (size_t)pixels * sizeof *value);
		labels[rows++] = i ? "bias" : "gain";
	}
	const struct nr_tiles t = { .rows = rows, .cols = s->channels, .h = s->side, .w = s->side, .value = value, .row_label = labels,
		.col_label = s->channels == 3 ? rgb : s->channels == 1 ? grey : NULL };
	return rows ? nr_tiles_draw(&t, "norm before the patch projection in pixels", path, err) : NR_OK;
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x < y) - (x > y);
}

static int draw_post(const struct nr_analysis *a, const struct patch *s, const char *dir, struct nr_error *err)
{
	double *sorted = nr_arena_alloc(a->arena, (size_t)s->post.n * sizeof *sorted);
	const char *path = nr_arena_printf(a->arena, "%s/patch_post_gain.png", dir);
	struct nr_frame f = { .x = 80, .y = 50, .w = 420, .h = 200, .low = 0, .high = s->post.high };
	struct nr_picture p;
	if (!sorted || !path) return nr_fail(err, NR_EMEMORY, "cannot draw", dir, "out of memory");
	if (nr_canvas_open(&p, f.x + f.w + 20, f.y + f.h + 20, err)) return err->code;
	memcpy(sorted, s->post.value, (size_t)s->post.n * sizeof *sorted);
	qsort(sorted, (size_t)s->post.n, sizeof *sorted, by_size);
	nr_frame_hold(&f, s->post.n, sorted);
	nr_frame_draw(&p, &f, "gains after the patch projection - by size");
	nr_frame_curve(&p, &f, s->post.n, sorted, NR_BLUE);
	const int code = nr_picture_write_png(&p, path, err);
	nr_picture_release(&p);
	return code;
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	const struct patch *s = own;
	const int code = draw_pixels(a, s, dir, err);
	return code || !s->post.n ? code : draw_post(a, s, dir, err);
}

const struct nr_part nr_part_patch = {
	.name = "patch", .title = "patch norms", .size = sizeof(struct patch), .begin = begin, .json = json, .show = show, .write = write,
};
