/* metrics/pos_resample: position tables brought to another grid, as KIND_N or KIND_HxW says; maps,
 * bilinear_HxW. */
#include <string.h>

#include "golden/check.h"
#include "math/resample.h"

static const struct kind { const char *name; enum nr_resample method; } kinds[] = {
	{ "timm", NR_RESAMPLE_TIMM },
	{ "mae", NR_RESAMPLE_BICUBIC },
	{ "dino", NR_RESAMPLE_DINO },
	{ "bilinear", NR_RESAMPLE_BILINEAR },
	{ "bigvision", NR_RESAMPLE_BILINEAR_CORNERS },
};

/* "14" or "16x20" */
static bool parse_grid(const char *text, int64_t *h, int64_t *w)
{
	long long a, b;
	int end = 0;
	if (sscanf(text, "%lldx%lld%n", &a, &b, &end) == 2 && !text[end]) return *h = a, *w = b, true;
	if (sscanf(text, "%lld%n", &a, &end) == 1 && !text[end]) return *h = *w = a, true;
	return false;
}

static void resample(struct golden_case *c, enum nr_resample method, int64_t h, int64_t w, int64_t H,
	int64_t W, int64_t C, const real *x, real *y)
{
	const struct nr_axis rows = nr_axis_init(method, h, H, golden_alloc(c, 1, nr_axis_bytes(h, H)));
	const struct nr_axis cols = nr_axis_init(method, w, W, golden_alloc(c, 1, nr_axis_bytes(w, W)));
	nr_resample_forward(&rows, &cols, C, x, y, golden_reals(c, H * w * C));
}

/* The table in.pos_G: leading special rows stay as they are. */
static void table(struct golden_case *c, enum nr_resample method, const char *name, int64_t H, int64_t W)
{
	const char *source = NULL;
	int64_t h = 0, w = 0;
	for (int64_t i = 0; i < nr_st_count(c->file) && !source; i++) {
		source = nr_st_get(c->file, i)->name;
		if (strncmp(source, "in.pos_", 7) || !parse_grid(source + 7, &h, &w)) source = NULL;
	}
	if (!source) golden_stop(c, name, "no table in.pos_GRID");
	const struct golden_tensor x = golden_tensor(c, 3, "%s", source);
	const int64_t C = x.d[2], S = x.d[1] - h * w;
	golden_expect(c, x.d[0] == 1 && S >= 0, "table and grid");
	real *y = golden_reals(c, (S + H * W) * C);
	memcpy(y, x.x, (size_t)(S * C) * sizeof *y);
	resample(c, method, h, w, H, W, C, x.x + S * C, y + S * C);
	golden_check(c, "out", y, (S + H * W) * C, "%s", name);
}

static void map(struct golden_case *c, enum nr_resample method, const char *name, int64_t H, int64_t W)
{
	const struct golden_tensor x = golden_tensor(c, 4, "in.map");
	const int64_t planes = x.d[0] * x.d[1], h = x.d[2], w = x.d[3];
	real *y = golden_reals(c, planes * H * W);
	for (int64_t p = 0; p < planes; p++)
		resample(c, method, h, w, H, W, 1, x.x + p * h * w, y + p * H * W);
	golden_check(c, "out", y, planes * H * W, "%s", name);
}

int golden_metric_pos_resample(struct golden_case *c)
{
	for (int64_t i = 0; i < nr_st_count(c->file); i++)
		for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
			const char *name = nr_st_get(c->file, i)->name;
			const size_t len = strlen(kinds[k].name);
			int64_t H, W;
			if (strncmp(name, kinds[k].name, len) || name[len] != '_' ||
				!parse_grid(name + len + 1, &H, &W))
				continue;
			golden_expect(c, H > 0 && W > 0 && H < 10000 && W < 10000, "sizes of grids");
			(kinds[k].method == NR_RESAMPLE_BILINEAR ? map : table)(
				c, kinds[k].method, name, H, W);
		}
	return GOLDEN_RAN;
}
