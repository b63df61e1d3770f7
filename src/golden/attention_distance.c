/* metrics/attention_distance: per head and token, with and without a class token. */
#include "analysis/attention_distance.h"
#include "golden/check.h"

static void check_heads(struct golden_case *c, const struct golden_tensor *a, int64_t h, int64_t w,
	int renormalise, const char *name, const char *tokens)
{
	const int64_t H = a->d[1], T = h * w, S = a->d[2] - T;
	golden_expect(c, a->d[2] == a->d[3] && S >= 0, "attention and grid");
	double *head = golden_alloc(c, H, sizeof *head);
	real *out = golden_reals(c, H), *token = golden_reals(c, H * T);
	nr_attention_distance(a->d[0], H, S, h, w, a->x, renormalise, head, token);
	for (int64_t k = 0; k < H; k++) out[k] = (real)head[k];
	golden_check(c, "out", out, H, "%s", name);
	if (tokens) golden_check(c, "out", token, H * T, "%s", tokens);
}

int golden_metric_attention_distance(struct golden_case *c)
{
	const int64_t h = (int64_t)golden_item(c, "grid", 0), w = (int64_t)golden_item(c, "grid", 1),
		      T = h * w;
	const struct golden_tensor a = golden_tensor(c, 4, "in.attn"),
				   cls = golden_tensor(c, 4, "in.attn_with_cls");
	real *d = golden_reals(c, T * T);
	nr_grid_distance(h, w, d);
	golden_check(c, "out", d, T * T, "distance_matrix");
	check_heads(c, &a, h, w, 0, "per_head", "per_token");
	check_heads(c, &cls, h, w, 0, "per_head_cls_dropped", NULL);
	check_heads(c, &cls, h, w, 1, "per_head_cls_renormalised", NULL);
	return GOLDEN_RAN;
}
