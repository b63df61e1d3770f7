/* Attention by layer and head: mean attention distance (DTN, Fig. 2; ViT, Fig. 7), entropy, what patch tokens give to special ones,
 * and the size of the logits, which grows without bound where training becomes unstable. */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/attention_stats.h"
#include "base/table.h"
#include "draw/heatmap.h"

struct attention { struct nr_attention_shape *shape; struct nr_head_sums *sum; };     /* (layers), (layers,H) */

static int begin(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct attention *s = own;
	const int64_t L = a->taps.attentions, H = a->taps.heads;
	s->shape = nr_arena_alloc(a->arena, (size_t)(L + 1) * sizeof *s->shape);
	s->sum = nr_arena_alloc(a->arena, (size_t)(L * H + 1) * sizeof *s->sum);
	if (!s->shape || !s->sum) return nr_fail(err, NR_EMEMORY, "cannot measure attention", NULL, "out of memory");
	for (int64_t l = 0; l < L; l++) {
		const nr_t *qkv = a->taps.attention[l].qkv;
		const struct nr_tokens none = { 0 }, *tok = qkv->tok ? qkv->tok : &none;
		s->shape[l] = (struct nr_attention_shape){ .H = H, .T = qkv->d[1], .d = qkv->d[2] / (3 * H), .special = tok->special,
			.h = tok->h, .w = tok->w, .cls = nr_taps_has_cls(a->w, qkv) };
	}
	return NR_OK;
}

static int take(struct nr_analysis *a, void *own, const struct nr_batch *b, int64_t first, struct nr_error *err)
{
	struct attention *s = own;
	(void)first;
	for (int64_t l = 0; l < a->taps.attentions; l++) {
		const struct nr_attention_tap *t = &a->taps.attention[l];
		if (t->sparse) {
			void *x[NR_MAXIN];
			for (int i = 0; i < t->sparse->n_in; i++) x[i] = nr_plan_data(a->taps.plan, t->in[i]);
			if (nr_sparse_stats(&s->shape[l], t->sparse, x, b->samples, s->sum + l * a->taps.heads, err)) return err->code;
			continue;
		}
		const struct nr_attention_batch batch = { .B = b->samples, .qkv = nr_plan_data(a->taps.plan, t->qkv),
			.bias = t->bias ? nr_plan_data(a->taps.plan, t->bias) : NULL, .biases = t->bias && t->bias->nd == 4,
			.nodes = a->view.form ? a->taps.nodes : NULL, .steps = a->view.form ? a->taps.steps : NULL };
		if (nr_attention_stats(&s->shape[l], &batch, s->sum + l * a->taps.heads, err)) return err->code;
	}
	return NR_OK;
}

enum { DISTANCE, ENTROPY, CLS_ENTROPY, ON_SPECIAL, LOGIT_RMS, LOGIT_MAX, MEASURES };
static const char *const measure_name[MEASURES] = { "distance", "entropy", "cls_entropy", "on_special", "logit_rms", "logit_max" };

static void values_of(const struct nr_analysis *a, const struct nr_attention_shape *shape, const struct nr_head_sums *s, double *out)
{
	const double n = (double)s->samples;
	out[DISTANCE] = a->view.form || shape->h * shape->w == shape->T - shape->special ? s->distance / n : NAN;
	out[ENTROPY] = s->entropy / n;
	out[CLS_ENTROPY] = shape->cls ? s->cls_entropy / n : NAN;
	out[ON_SPECIAL] = s->on_special / n;
	out[LOGIT_RMS] = sqrt(s->logit_square / n);
	out[LOGIT_MAX] = s->logit_max;
}

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct attention *s = own;
	json_t *all = json_array();
	for (int64_t l = 0; l < a->taps.attentions; l++) {
		json_t *heads = json_array();
		for (int64_t h = 0; h < a->taps.heads; h++) {
			json_t *one = json_object();
			double v[MEASURES];
			values_of(a, &s->shape[l], &s->sum[l * a->taps.heads + h], v);
			for (int i = 0; i < MEASURES; i++)
				if (isfinite(v[i])) json_object_set_new(one, measure_name[i], json_real(v[i]));
			json_array_append_new(heads, one);
		}
		json_array_append_new(all, json_pack("{s:s, s:f, s:o}", "layer", a->taps.attention[l].name, "largest_entropy",
						    s->sum[l * a->taps.heads].most_entropy / (double)s->sum[l * a->taps.heads].samples,
			"heads", heads));
	}
	return all;
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	const struct attention *s = own;
	const int64_t H = a->taps.heads, L = a->taps.attentions;
	if (!L) {
		nr_str_add(text, "\nattention: not measured, because the model has no attention over all tokens, blocks or buckets\n");
		return;
	}
	static const char *const titles[] = { "layer", "distance", "of heads", "entropy", "[CLS] entropy", "most", "to special",
		"logit rms", "largest" };
	struct nr_table *t = nr_table_make();
	double *far = malloc((size_t)(L + 1) * sizeof *far);
	for (int i = 0; i < 9; i++) nr_table_column(t, i == 6 && a->view.form ? "to [VNode]" : nr_say(a, titles[i]), i
		? NR_RIGHT : NR_LEFT);
	for (int64_t l = 0; far && l < L; l++) {
		double mean[MEASURES] = { 0 }, low = INFINITY, high = -INFINITY, most = 0;
		for (int64_t h = 0; h < H; h++) {
			double v[MEASURES];
			values_of(a, &s->shape[l], &s->sum[l * H + h], v);
			for (int i = 0; i < MEASURES; i++) mean[i] += v[i] / (double)H;
			low = fmin(low, v[DISTANCE]);
			high = fmax(high, v[DISTANCE]);
			most = fmax(most, v[LOGIT_MAX]);
		}
		far[l] = mean[DISTANCE];
		nr_table_cell(t, "%s", a->taps.attention[l].name);
		nr_cell_number(t, 'f', 2, mean[DISTANCE], "");
		if (low <= high) nr_table_cell(t, "%.2f to %.2f", low, high);
		else nr_table_cell(t, "%s", "");
		nr_table_cell(t, "%.2f", mean[ENTROPY]);
		nr_cell_number(t, 'f', 2, mean[CLS_ENTROPY], "");
		nr_table_cell(t, "%.2f", s->sum[l * H].most_entropy / (double)s->sum[l * H].samples);
		nr_table_cell(t, "%.1f %%", 100 * mean[ON_SPECIAL]);
		nr_table_cell(t, "%.2f", mean[LOGIT_RMS]);
		nr_table_cell(t, "%.2f", most);
	}
	nr_str_printf(text, "\n%s\n", nr_say(a, "attention: means over heads; distance in tokens of the grid, entropy in nats"));
	nr_table_show(t, text);
	if (far && L > 1) nr_show_curve(text, "mean attention distance by block", L, far);
	free(far);
}

static int draw(const struct nr_analysis *a, const struct attention *s, const char *dir, struct nr_error *err)
{
	static const int shown[] = { DISTANCE, ENTROPY, ON_SPECIAL, LOGIT_RMS };
	static const char *const title[] = { "mean distance, in tokens of the grid", "entropy, in nats", "share given to special tokens",
		"root mean square of the logits" };
	const int64_t L = a->taps.attentions, H = a->taps.heads;
	struct nr_sheet sheet = { 0 };
	double *map = malloc((size_t)(L * H + 1) * sizeof *map);
	const char **name = malloc((size_t)(L + 1) * sizeof *name);
	for (int64_t l = 0; name && l < L; l++) name[l] = a->taps.attention[l].name;
	for (int i = 0; map && name && i < 4; i++) {
		for (int64_t k = 0; k < L * H; k++) {
			double v[MEASURES];
			values_of(a, &s->shape[k / H], &s->sum[k], v);
			map[k] = v[shown[i]];
		}
		if (i == 2) nr_sheet_row(&sheet);
		const char *said = nr_say(a, title[i]);
		nr_sheet_put(&sheet, said, nr_svg_heatmap(&sheet.panel, &(struct nr_heatmap){ .name = said,
			.x_label = "head", .rows = L, .cols = H, .value = map, .row_label = name }));
	}
	const bool whole = map && name;
	free(map);
	free(name);
	if (!whole) return nr_fail(err, NR_EMEMORY, "cannot draw", dir, "out of memory");
	return nr_sheet_save(&sheet, dir, "attention.svg", "Attention by layer and head", nr_say(a,
		"Heads with a small distance look at their neighbours, like a convolution, those with a large one at "
		"the whole picture; a layer with both kinds sees both scales. An entropy near its largest value "
		"means attention that selects nothing. Large logits precede divergence."), err);
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	const struct attention *s = own;
	const int64_t L = a->taps.attentions, H = a->taps.heads;
	if (!L) return NR_OK;
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "layer", NR_LEFT);
	nr_table_column(t, "head", NR_RIGHT);
	for (int i = 0; i < MEASURES; i++) nr_table_column(t, measure_name[i], NR_RIGHT);
	for (int64_t k = 0; k < L * H; k++) {
		double v[MEASURES];
		values_of(a, &s->shape[k / H], &s->sum[k], v);
		nr_table_cell(t, "%s", a->taps.attention[k / H].name);
		nr_table_cell(t, "%lld", (long long)(k % H));
		for (int i = 0; i < MEASURES; i++) nr_cell_number(t, 'g', 9, v[i], "");
	}
	const int code = nr_table_save(t, dir, "attention.csv", err);
	return code ? code : draw(a, s, dir, err);
}

/* ---- what is told of it ----------------------------------------------------------------------------------------------------- */

static const struct nr_part_number numbers[] = {
	{ "distance",
		"sum over patches of attention times distance on the grid, in tokens; without special tokens, "
		"rescaled to sum to 1",
		"DTN, Fig. 2; ViT, Fig. 7" },
	{ "entropy, most", "entropy of a patch token's and of [CLS]'s attention, in nats; most: that of uniform attention", "" },
	{ "to special", "share of attention that patch tokens give to [CLS] and registers", "" },
	{ "logit rms, largest", "size of q k / sqrt(d): large logits precede divergence", "" },
	{ .name = NULL },
};

static const struct nr_part_curve curves[] = {
	{ "Attention distance by layer", "mean over heads, in tokens",
		"Low is local, high is global.", "[].heads[].distance", NR_LINEAR },
	{ .title = NULL },
};

static struct nr_part_matrix distances(const json_t *analysis, struct nr_arena *arena)
{
	return nr_part_matrix_rows(json_object_get(analysis, "attention"), "layer", "heads", "distance", arena);
}
static const struct nr_part_heat heats[] = {
	{ "Mean attention distance", "block", "head", "Rows are blocks, columns heads; dark heads look nearby, bright ones far.", 0, 0,
		distances },
	{ .title = NULL },
};

const struct nr_part nr_part_attention = {
	.name = "attention", .title = "attention", .size = sizeof(struct attention),
	.texts = true, .graphs = true, .taps = NR_TAPS_ATTENTION, .begin = begin,
	.take = take, .json = json, .show = show, .write = write,
	.told = { .about = "attention distance, entropy and logits of each head",
		.numbers = numbers, .curves = curves, .heats = heats },
};
