/* Dual PatchNorm (Fig. 3): the norm before the patch projection sees pixels, so that its gain and bias are pictures of a patch, one
 * for each colour. The gains of the norm after the projection are drawn by size. */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "draw/heatmap.h"

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

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct patch *s = own;
	(void)a;
	if (!s->gain.n && !s->bias.n && !s->post.n) return NULL;
	return json_pack("{s:I, s:I, s:o, s:o, s:o}", "channels", (json_int_t)s->channels, "side", (json_int_t)s->side, "gain",
		nr_json_numbers(s->gain.n, s->gain.value), "bias", nr_json_numbers(s->bias.n, s->bias.value), "post_gain",
			nr_json_numbers(s->post.n, s->post.value));
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

static int draw_pixels(const struct patch *s, struct nr_sheet *sheet, struct nr_error *err)
{
	static const char *const rgb[] = { "red", "green", "blue" }, *const grey[] = { "grey" };
	const struct vector *const all[] = { &s->gain, &s->bias };
	const int64_t C = s->channels, pixels = s->side * s->side;
	const char *label[2];
	struct nr_tile *tile = calloc((size_t)(2 * C), sizeof *tile);
	int64_t rows = 0;
	if (!tile) return nr_fail(err, NR_EMEMORY, "cannot draw", "patch_norm.svg", "out of memory");
	for (int i = 0; i < 2; i++) {
		if (!all[i]->n) continue;
		for (int64_t c = 0; c < C; c++)
			tile[rows * C + c] = (struct nr_tile){ .h = s->side, .w = s->side, .value = all[i]->value + c * pixels };
		label[rows++] = i ? "bias" : "gain";
	}
	if (rows)
		nr_sheet_put(sheet, "of the norm before the patch projection, by pixel of a patch", nr_svg_tiles(&sheet->panel,
			&(struct nr_tiles){
			.name = "gain and bias by pixel", .rows = rows, .cols = C, .tile = tile, .row_label = label,
			.col_label = C == 3 ? rgb : C == 1 ? grey : NULL }));
	free(tile);
	return NR_OK;
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x < y) - (x > y);
}

static int draw_post(const struct patch *s, struct nr_sheet *sheet, struct nr_error *err)
{
	double *sorted = malloc((size_t)(s->post.n + 1) * sizeof *sorted);
	if (!sorted) return nr_fail(err, NR_EMEMORY, "cannot draw", "patch_norm.svg", "out of memory");
	memcpy(sorted, s->post.value, (size_t)s->post.n * sizeof *sorted);
	qsort(sorted, (size_t)s->post.n, sizeof *sorted, by_size);
	nr_sheet_row(sheet);
	nr_sheet_put(sheet, "gains of the norm after the projection, by size", nr_draw_curves(&sheet->panel, &(struct nr_curves){
		.name = "gains by size", .x_label = "channel, largest first", .y_label = "gain", .n = s->post.n, .count = 1,
			.y = sorted }));
	free(sorted);
	return NR_OK;
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	const struct patch *s = own;
	struct nr_sheet sheet = { 0 };
	(void)a;
	if (!s->gain.n && !s->bias.n && !s->post.n) return NR_OK;
	if (draw_pixels(s, &sheet, err) || (s->post.n && draw_post(s, &sheet, err))) {
		nr_sheet_release(&sheet);
		return err->code;
	}
	return nr_sheet_save(&sheet, dir, "patch_norm.svg", "Dual PatchNorm: what the patch norms learned",
		"A gain that is larger at the edge or in the middle of the patch shows which pixels the model uses; "
		"an even picture means that the norm only sets the scale. Gains near 0 after the projection are "
		"channels that the model has switched off.", err);
}

/* ---- what is told of it ----------------------------------------------------------------------------------------------------- */

static const struct nr_part_number numbers[] = {
	{ "gain, bias",
		"of the norm before the patch projection, as pictures, one per colour; gains of the norm after it, "
		"sorted",
		"Dual PatchNorm, Fig. 3" },
	{ .name = NULL },
};

const struct nr_part nr_part_patch = {
	.name = "patch", .title = "patch norms", .size = sizeof(struct patch), .begin = begin, .json = json, .show = show, .write = write,
	.told = { .about = "Dual PatchNorm's gain and bias as pictures",
		.numbers = numbers },
};
