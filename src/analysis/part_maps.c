/* Attention maps: what [CLS] looks at, by head over the grid, for the first pictures; at a chosen block and at the last one. */
#include <math.h>

#include "analysis/analysis.h"
#include "analysis/attention_stats.h"
#include "base/table.h"
#include "draw/heatmap.h"

enum { PICTURES = 4, BLOCKS = 2 };

struct maps {
	int64_t pictures, blocks, side;         /* blocks 0: nothing to draw */
	int64_t at[BLOCKS];                     /* numbers of attentions */
	struct nr_attention_shape shape;
	double *weight;                         /* (pictures,blocks,H,T) */
	uint8_t *rgb;                           /* (pictures,side,side,3) */
};

static int begin(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct maps *s = own;
	const int64_t L = a->taps.attentions;
	if (!L) return NR_OK;
	const int64_t chosen = a->block < L ? a->block : L - 1;
	for (int i = chosen == L - 1; i < BLOCKS; i++) {
		const nr_t *qkv = a->taps.attention[i ? L - 1 : chosen].qkv;
		const struct nr_tokens *tok = qkv->tok;
		if (!tok || !nr_taps_has_cls(a->w, qkv) || tok->h * tok->w != qkv->d[1] - tok->special) continue;
		s->at[s->blocks++] = i ? L - 1 : chosen;
		s->shape = (struct nr_attention_shape){ .H = a->taps.heads, .T = qkv->d[1], .d = qkv->d[2] / (3 * a->taps.heads),
			.special = tok->special, .h = tok->h, .w = tok->w, .cls = 1 };
	}
	const int64_t most = a->count < a->batch ? a->count : a->batch;
	s->pictures = most < PICTURES ? most : PICTURES;
	s->side = nr_model_int(&a->w->model, "image");
	s->weight = nr_arena_alloc(a->arena, (size_t)(s->pictures * BLOCKS * s->shape.H * s->shape.T + 1) * sizeof *s->weight);
	s->rgb = nr_arena_alloc(a->arena, (size_t)(s->pictures * s->side * s->side * 3));
	return s->weight && s->rgb ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot keep attention maps", NULL, "out of memory");
}

/* The picture as the model gets it, stretched to what a screen can show. */
static void paint(const float *image, int64_t channels, int64_t pixels, uint8_t *rgb)
{
	float low = image[0], high = image[0];
	for (int64_t i = 0; i < channels * pixels; i++) low = fminf(low, image[i]), high = fmaxf(high, image[i]);
	for (int64_t i = 0; i < 3 * pixels; i++) {
		const float v = image[(channels == 3 ? i % 3 : 0) * pixels + i / 3];
		rgb[i] = (uint8_t)(high > low ? 255 * (v - low) / (high - low) + .5F : 0);
	}
}

static int take(struct nr_analysis *a, void *own, const struct nr_batch *b, int64_t first, struct nr_error *err)
{
	struct maps *s = own;
	const struct nr_attention_shape *v = &s->shape;
	const int64_t channels = nr_model_int(&a->w->model, "channels"), pixels = s->side * s->side;
	(void)err;
	if (first || !s->blocks) return NR_OK;
	for (int64_t i = 0; i < s->pictures; i++) {
		paint(b->image + i * channels * pixels, channels, pixels, s->rgb + i * pixels * 3);
		for (int64_t k = 0; k < s->blocks * v->H; k++) {
			const struct nr_attention_tap *t = &a->taps.attention[s->at[k / v->H]];
			const real *qkv = (const real *)nr_plan_data(a->taps.plan, t->qkv) + i * v->T * 3 * v->H * v->d;
			nr_attention_weights(v, qkv, t->bias ? nr_plan_data(a->taps.plan, t->bias) : NULL, k % v->H, 0,
				s->weight + ((i * s->blocks * v->H) + k) * v->T);
		}
	}
	return NR_OK;
}

/* ---- what is told --------------------------------------------------------------------------------------------------------- */

static const double *map_of(const struct maps *s, int64_t picture, int64_t block, int64_t head)
{
	return s->weight + ((picture * s->blocks + block) * s->shape.H + head) * s->shape.T;
}

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct maps *s = own;
	const struct nr_attention_shape *v = &s->shape;
	if (!s->blocks) return NULL;
	json_t *all = json_array();
	for (int64_t i = 0; i < s->pictures * s->blocks; i++) {
		json_t *heads = json_array();
		for (int64_t h = 0; h < v->H; h++)
			json_array_append_new(heads, nr_json_numbers(v->T, map_of(s, i / s->blocks, i % s->blocks, h)));
		json_array_append_new(all, json_pack("{s:I, s:s, s:o}", "picture", (json_int_t)(i / s->blocks), "layer",
			a->taps.attention[s->at[i % s->blocks]].name, "heads", heads));
	}
	return json_pack("{s:I, s:I, s:I, s:o}", "special", (json_int_t)v->special, "h", (json_int_t)v->h, "w", (json_int_t)v->w,
		"maps", all);
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	const struct maps *s = own;
	const struct nr_attention_shape *v = &s->shape;
	static const char *const titles[] = { "layer", "head", "to special tokens", "to its favourite patch",
		"if uniform" };
	if (!s->blocks) return;
	struct nr_table *t = nr_table_make();
	for (int i = 0; i < 5; i++) nr_table_column(t, titles[i], i ? NR_RIGHT : NR_LEFT);
	for (int64_t k = 0; k < s->blocks * v->H; k++) {
		double special = 0, most = 0;
		for (int64_t i = 0; i < s->pictures; i++) {
			const double *w = map_of(s, i, k / v->H, k % v->H);
			double top = 0;
			for (int64_t j = 0; j < v->T; j++) {
				if (j < v->special) special += w[j] / (double)s->pictures;
				else top = fmax(top, w[j]);
			}
			most += top / (double)s->pictures;
		}
		nr_table_cell(t, "%s", a->taps.attention[s->at[k / v->H]].name);
		nr_table_cell(t, "%lld", (long long)(k % v->H));
		nr_table_cell(t, "%.1f %%", 100 * special);
		nr_table_cell(t, "%.1f %%", 100 * most);
		nr_table_cell(t, "%.1f %%", 100 / (double)v->T);
	}
	nr_str_printf(text, "\nattention of [CLS] on the first %lld pictures, means\n", (long long)s->pictures);
	nr_table_show(t, text);
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	const struct maps *s = own;
	const struct nr_attention_shape *v = &s->shape;
	if (!s->blocks) return NR_OK;
	const int64_t rows = s->pictures * s->blocks, cols = v->H + 1;
	struct nr_tile *tile = nr_arena_alloc(a->arena, (size_t)(rows * cols) * sizeof *tile);
	const char **label = nr_arena_alloc(a->arena, (size_t)(rows + cols) * sizeof *label);
	struct nr_sheet sheet = { 0 };
	if (!tile || !label) return nr_fail(err, NR_EMEMORY, "cannot draw", dir, "out of memory");
	const char **head = label + rows;
	for (int64_t i = 0; i < rows * cols; i++) {
		const int64_t picture = i / cols / s->blocks, block = i / cols % s->blocks, h = i % cols;
		label[i / cols] = a->taps.attention[s->at[block]].name;
		head[h] = h ? nr_arena_printf(a->arena, "head %lld", (long long)(h - 1)) : "picture";
		if (!head[h]) return nr_fail(err, NR_EMEMORY, "cannot draw", dir, "out of memory");
		if (!h && !block) tile[i] = (struct nr_tile){ .h = s->side, .w = s->side, .rgb = s->rgb + picture * s->side * s->side * 3 };
		if (h) tile[i] = (struct nr_tile){ .h = v->h, .w = v->w, .value = map_of(s, picture, block, h - 1) + v->special };
	}
	nr_sheet_put(&sheet, NULL, nr_svg_tiles(&sheet.panel, &(struct nr_tiles){ .name = "attention of [CLS] by picture, block and head",
		.rows = rows, .cols = cols, .tile = tile, .row_label = label, .col_label = head }));
	return nr_sheet_save(&sheet, dir, "attention_maps.svg", "What [CLS] looks at",
		"Each map is the share of attention that [CLS] gives to every patch; bright is most, the numbers are "
		"the smallest and the largest share. Heads that follow the object's shape look at the object; a map "
		"that is the same for every picture looks only at positions.", err);
}

/* ---- what is told of it ----------------------------------------------------------------------------------------------------- */

static const struct nr_part_number numbers[] = {
	{ "attention of [CLS]", "to each patch, by head, for the first four pictures, in block `--block` and in the last block", "" },
	{ .name = NULL },
};

const struct nr_part nr_part_maps = {
	.name = "maps", .title = "attention maps of [CLS]", .size = sizeof(struct maps), .taps = NR_TAPS_ATTENTION, .begin = begin,
		.take = take, .json = json, .show = show, .write = write,
	.told = { .about = "what [CLS] looks at",
		.numbers = numbers },
};
