/* Gradient norms by layer: see layer_gradients.h. */
#include "report/layer_gradients.h"

#include <math.h>
#include <string.h>

#include "report/figure.h"

enum { LAST_STEPS = 1000 };

/* The patch embedding, then the blocks in their order: columns of layer_gradients.csv that lie on the way through the depth. */
static bool on_the_way(const char *layer) { return !strcmp(layer, "patch_embed") || strstr(layer, "blocks."); }

/* The mean of a column over the last steps that were recorded. */
static double mean_at_end(const struct nr_columns *t, const struct nr_column *layer)
{
	const struct nr_column *step = nr_column_find(t, "step");
	double sum = 0, n = 0;
	for (int64_t i = 0; step && i < t->rows; i++)
		if (layer->given[i] && step->value[i] > step->value[t->rows - 1] - LAST_STEPS) sum += layer->value[i], n++;
	return n > 0 ? sum / n : (double)NAN;
}

static struct nr_points over_depth(const struct nr_lines *v, const struct nr_runfolder *r, struct nr_arena *arena)
{
	const struct nr_columns *t = &r->layer_gradients;
	struct nr_points p = nr_points_make(t->count, arena);
	(void)v;
	const struct nr_column *first = nr_column_find(t, "patch_embed");       /* recorded anywhere, it comes first */
	for (int c = -1; c < t->count && p.x && p.y; c++) {
		const struct nr_column *layer = c < 0 ? first : &t->column[c];
		if (!layer || (c >= 0 && layer == first) || !on_the_way(layer->name)) continue;
		const double mean = mean_at_end(t, layer);
		if (isfinite(mean)) p.x[p.n] = (double)p.n, p.y[p.n] = mean, p.n++;
	}
	return p;
}

static struct nr_points over_time(const struct nr_lines *v, const struct nr_runfolder *r, struct nr_arena *arena)
{
	const struct nr_columns *t = &r->layer_gradients;
	const struct nr_column *step = nr_column_find(t, "step"), *layer = nr_column_find(t, v->key);
	struct nr_points p = nr_points_make(step && layer ? t->rows : 0, arena);
	for (int64_t i = 0; step && layer && p.x && p.y && i < t->rows; i++)
		if (layer->given[i]) p.x[p.n] = step->value[i], p.y[p.n++] = layer->value[i];
	return p;
}

int nr_layer_gradients(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	static const struct nr_lines of[] = {
		{ .title = "Gradient norm by layer", .unit = "2-norm, mean of the last 1000 steps",
		  .x_label = "patch embedding, then blocks", .x_whole = true, .of = over_depth,
		  .says = "A first point far above the others is an embedding that gets more gradient than the blocks." },
		{ .title = "Gradient norm of the patch embedding", .unit = "2-norm", .x_label = "step", .noisy = true, .of = over_time,
		  .key = "patch_embed" },
	};
	int count = 0;
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		struct nr_lines v = of[i];
		v.scale = NR_LOG_IF_WIDE, v.factor = 1;
		count += nr_figure(s, a, &v, arena);
	}
	return count;
}
