/* roi_align: boxes (B,S,4) of a batch of pictures, each read from the level of a pyramid that its size asks for (math/roi.h). Inputs are
 * the boxes, then the maps (B,T,C) with their grids. Boxes get no gradient. */
#include "math/roi.h"
#include "nn/op.h"
#include "nn/regions.h"

static struct nr_roi_maps maps_of(const struct nr_node *k)
{
	const struct nr_roi_align_options *o = k->attr;
	struct nr_roi_maps m = {
		.roi = { o->size, o->size, o->samples, o->aligned }, .pick = { o->side, o->at, o->inside }, .B = k->in[0]->d[0],
		.S = k->in[0]->d[1], .C = nr_cols(k->in[1]), .levels = k->n_in - 1, .channels_first = o->channels_first,
		.threads = k->threads,
	};
	for (int l = 0; l < m.levels; l++) {
		const struct nr_tokens *t = k->in[l + 1]->tok;
		m.level[l].h = t->h, m.level[l].w = t->w, m.level[l].scale = 1 / o->stride[l];
	}
	return m;
}

static int shape(struct nr_node *k)
{
	const struct nr_roi_align_options *o = k->attr;
	const nr_t *box = k->in[0];
	char s[64];
	if (nr_expect(k, box->nd == 3 && box->dtype == NR_REAL && box->d[2] == 4, "boxes are (B,S,4), not %s",
		nr_shape_text(box, s, sizeof s)) ||
	    nr_expect(k, o->size > 0 && o->samples >= 0 && o->side > 0, "size %lld, samples %lld and side %g", (long long)o->size,
		(long long)o->samples, o->side))
		return NR_ESHAPE;
	for (int l = 1; l < k->n_in; l++) {
		const nr_t *x = k->in[l];
		nr_shape_text(x, s, sizeof s);
		if (nr_expect(k, x->nd == 3 && x->dtype == NR_REAL && x->tok && (int64_t)x->tok->h * x->tok->w == x->d[1],
			"level %d, %s, is no grid of tokens", l - 1, s) ||
		    nr_expect(k, x->d[0] == box->d[0] && nr_cols(x) == nr_cols(k->in[1]),
			"level %d, %s, has another batch or other channels than the first", l - 1, s) ||
		    nr_expect(k, o->stride[l - 1] > 0, "the stride %g of level %d is not positive", o->stride[l - 1], l - 1))
			return NR_ESHAPE;
	}
	const struct nr_roi_maps m = maps_of(k);
	const int64_t P = o->size * o->size;
	if (o->channels_first) nr_out(k, 0, NR_REAL, 3, (int64_t[]){ m.B, m.S, m.C * P }, NULL);
	else nr_out(k, 0, NR_REAL, 4, (int64_t[]){ m.B * m.S, o->size, o->size, m.C }, NULL);
	k->scratch = nr_roi_scratch(&m);
	return 0;
}

static void forward(const struct nr_call *k)
{
	const struct nr_roi_maps m = maps_of(k->node);
	const real *map[NR_ROI_LEVELS];
	for (int l = 0; l < m.levels; l++) map[l] = k->x[l + 1].p;
	nr_roi_forward(&m, map, k->x[0].p, k->y[0].p, k->scratch);
}

static void backward(const struct nr_call *k)
{
	const struct nr_roi_maps m = maps_of(k->node);
	real *map[NR_ROI_LEVELS], *box = k->dx[0].p;
	for (int l = 0; l < m.levels; l++) map[l] = k->want >> (l + 1) & 1 ? k->dx[l + 1].p : NULL;
	nr_roi_backward(&m, k->x[0].p, k->dy[0].p, map, k->add + 1);
	for (int64_t i = 0; k->want & 1 && !k->add[0] && i < 4 * m.B * m.S; i++) box[i] = 0;
}

static void cost(const struct nr_node *k, double *forward, double *backward)
{
	const struct nr_roi_align_options *o = k->attr;
	*forward = 8.0 * (double)nr_len(k->out[0]) * (double)(o->samples ? o->samples * o->samples : 4);
	*backward = *forward;
}

/* ---- tests: whole numbers (B,S,4) become boxes x1, y1, w, h in quarters of a pixel, some outside ------------------------------ */

static int quarters_shape(struct nr_node *k) { return nr_out(k, 0, NR_REAL, 3, k->in[0]->d, NULL) ? 0 : NR_EMEMORY; }
static void quarters_forward(const struct nr_call *k)
{
	const int32_t *q = nr_ints(&k->x[0]);
	real *box = k->y[0].p;
	for (int64_t i = 0; i < nr_len(k->node->in[0]); i += 4) {
		for (int j = 0; j < 2; j++) {
			box[i + j] = (real)q[i + j] / 4 - 3 + (real).1;
			box[i + 2 + j] = box[i + j] + (real)q[i + 2 + j] / 4 + (real).13;
		}
	}
}
static const struct nr_op quarters = { .name = "quarters", .shape = quarters_shape, .forward = quarters_forward };

static nr_t *on_grid(struct nr_net *n, nr_t *x, int32_t h)
{
	return x ? nr_with_tokens(n, x, (struct nr_tokens){ .h = h, .w = (int32_t)x->d[1] / h }) : NULL;
}
/* "size samples aligned inside channels_first" */
static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	struct nr_roi_align_options o = { .size = options[0] - '0', .samples = options[1] - '0', .aligned = options[2] == '1',
		.inside = options[3] == '1', .channels_first = options[4] == '1', .side = 6, .stride = { 2, 4, 8 } };
	nr_t *map[3] = { on_grid(n, x[1], 4), x[2] ? on_grid(n, x[2], 2) : NULL, x[3] ? on_grid(n, x[3], 1) : NULL };
	return nr_roi_align(n, nr_apply(n, &quarters, NULL, 0, x[0]), map, x[3] ? 3 : x[2] ? 2 : 1, o);
}
static const struct nr_case cases[] = {
	{ "2x3x4:i32 2x24x3 2x6x3 2x2x3", "22000" }, { "2x5x4:i32 2x24x3 2x6x3", "30110" }, { "1x1x4:i9 1x4x1", "12101" },
	{ "2x4x4:i40 2x24x19 2x6x19", "22011" }, { "1x7x4:i48 1x24x17 1x6x17 1x2x17", "40001" }, { NULL, NULL },
};

const struct nr_op nr_op_roi_align = {
	.name = "roi_align", .shape = shape, .forward = forward, .backward = backward, .cost = cost, .keeps = NR_KEEP_X(0),
	.try_case = try_case, .cases = cases,
};

nr_t *nr_roi_align(struct nr_net *n, nr_t *boxes, nr_t *const *maps, int levels, struct nr_roi_align_options o)
{
	nr_t *in[NR_MAXIN] = { boxes };
	if (levels < 1 || levels >= NR_MAXIN) return nr_net_fail(n, NR_ESHAPE, "roi_align", "%d levels: 1 to %d", levels, NR_MAXIN - 1);
	for (int l = 0; l < levels; l++) in[l + 1] = maps[l];
	return nr_apply_list(n, &nr_op_roi_align, &o, sizeof o, levels + 1, in);
}
