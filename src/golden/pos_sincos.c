/* metrics/pos_sincos: fixed position tables of MAE, big_vision and T2T-ViT. */
#include "golden/check.h"
#include "math/sincos.h"

/* A grid setting is one number (square) or two. */
static void grid(struct golden_case *c, const char *key, int64_t *h, int64_t *w)
{
	const int square = json_is_number(json_object_get(c->config, key));
	*h = (int64_t)(square ? golden_number(c, key) : golden_item(c, key, 0));
	*w = square ? *h : (int64_t)golden_item(c, key, 1);
}

int golden_metric_pos_sincos(struct golden_case *c)
{
	const int64_t dim = (int64_t)golden_number(c, "dim"), n = (int64_t)golden_number(c, "t2t_positions");
	int64_t h, w;
	golden_expect(c, dim > 0 && dim % 4 == 0, "dim is a multiple of four");
	grid(c, "mae_grid", &h, &w);
	real *table = golden_reals(c, (1 + h * w) * dim);
	nr_sincos_mae(h, w, dim, 1, table);
	golden_check(c, "out", table, (1 + h * w) * dim, "mae_2d");
	grid(c, "bigvision_grid", &h, &w);
	table = golden_reals(c, h * w * dim);
	nr_sincos_bigvision(h, w, dim, table);
	golden_check(c, "out", table, h * w * dim, "bigvision_2d");
	table = golden_reals(c, n * dim);
	nr_sincos_1d(n, dim, table);
	golden_check(c, "out", table, n * dim, "t2t_1d");
	return GOLDEN_RAN;
}
