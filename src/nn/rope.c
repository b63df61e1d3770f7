/* rope: rotary positions on a grid. A pair of channels (a, b) of a head becomes (a cos t - b sin t, b cos t + a sin t); the angle t grows
 * with the token's row for one half of the pairs and with its column for the other, i = 0 .. d/4 - 1 in each:
 *
 *   eva      pairs (2i, 2i+1), rows in the first d/2 channels;  t = p reference/n theta^(-i/(d/4)),  p = 0 .. n-1
 *            Fang et al. 2023 (EVA-02), arXiv:2303.11331, section 2.1 and the released code
 *   dinov3   pairs (j, j + d/2), rows in j < d/4;  t = 2 pi c theta^(-i/(d/4)),  c = 2 (p + 1/2)/n - 1
 *            Simeoni et al. 2025 (DINOv3), arXiv:2508.10104, section 3.2 and the released code
 *
 * for n rows (columns). Special tokens do not turn. A subset of the tokens (MAE) brings their places as a second input. */
#include <math.h>
#include <stdbool.h>

#include "math/row.h"
#include "nn/op.h"

struct attr { struct nr_rope o; int64_t h, w, special; };

static int shape(struct nr_node *k)
{
	const struct attr *a = k->attr;
	const nr_t *x = k->in[0];
	char s[64];
	if (nr_expect(k, x->nd == 3 && a->h > 0 && a->w > 0, "%s: tokens on a grid are needed", nr_shape_text(x, s, sizeof s)) ||
	    nr_expect(k, a->o.width > 0 && a->o.width % 4 == 0 && nr_cols(x) % a->o.width == 0 && a->o.turned * a->o.width <= nr_cols(x),
		"rotary positions need heads of 4, 8, 12, ... channels, not %lld", (long long)a->o.width) ||
	    nr_expect(k, k->n_in > 1 ? k->in[1]->d[1] == x->d[1] - a->special : x->d[1] == a->special + a->h * a->w,
		"%s does not fill a grid of %lld x %lld", nr_shape_text(x, s, sizeof s), (long long)a->h, (long long)a->w))
		return NR_ESHAPE;
	nr_out_like(k, 0, x);
	k->scratch = (size_t)((a->h + a->w) * a->o.width / 2) * sizeof(real);  /* cos and sin of each row and column */
	return 0;
}

/* Of place p of n, which are counted as so many; 0: as they are. */
static double angle(const struct attr *a, int64_t p, int64_t n, int64_t as, int64_t i)
{
	const double slower = pow(a->o.theta, -(double)i / ((double)a->o.width / 4));
	if (a->o.kind == NR_ROPE_DINOV3) return 2 * M_PI * (2 * ((double)p + .5) / (double)n - 1) * slower;
	return (double)p * (as ? (double)as / (double)n : 1) * slower;
}

/* Rows, then columns: (h + w, d/4, 2). */
static const real *make_table(const struct attr *a, real *table)
{
	const int64_t quarter = a->o.width / 4, rows = a->o.reference, cols = a->o.reference_w ? a->o.reference_w : rows;
	for (int64_t p = 0; p < a->h + a->w; p++)
		for (int64_t i = 0; i < quarter; i++) {
			const double t = p < a->h ? angle(a, p, a->h, rows, i) : angle(a, p - a->h, a->w, cols, i);
			table[(p * quarter + i) * 2] = (real)cos(t);
			table[(p * quarter + i) * 2 + 1] = (real)sin(t);
		}
	return table;
}

/* One head of one token: half 0 turns with the row, half 1 with the column. way -1: back. */
static void turn(const struct attr *a, const real *const at[2], real way, const real *x, real *y, int add)
{
	const int64_t d = a->o.width, quarter = d / 4;
	for (int64_t half = 0; half < 2; half++)
		for (int64_t i = 0; i < quarter; i++) {
			const bool split = a->o.kind == NR_ROPE_DINOV3;
			const int64_t p = split ? half * quarter + i : half * d / 2 + 2 * i, q = split ? p + d / 2 : p + 1;
			const real c = at[half][2 * i], s = way * at[half][2 * i + 1], u = x[p], v = x[q];
			nr_put(&y[p], u * c - v * s, add);
			nr_put(&y[q], v * c + u * s, add);
		}
}

static void run(const struct nr_call *k, const struct nr_view *x, const struct nr_view *y, real way, int add)
{
	const struct attr *a = k->node->attr;
	const int64_t d = a->o.width, turned = a->o.turned * d, T = x->t;
	const real *table = make_table(a, k->scratch);
	const int32_t *pos = k->node->n_in > 1 ? k->x[1].p : NULL;
#pragma omp parallel for schedule(static) if (x->rows * x->c > 16384)
	for (int64_t r = 0; r < x->rows; r++) {
		const int64_t t = r % T - a->special, from = t < 0 ? 0 : turned;
		const real *in = nr_row(x, r);
		real *out = nr_row(y, r);
		if (t >= 0) {
			const int64_t place = pos ? pos[r / T * (T - a->special) + t] : t;
			const real *const at[2] = { table + place / a->w * (d / 2), table + (a->h + place % a->w) * (d / 2) };
			for (int64_t c = 0; c < turned; c += d) turn(a, at, way, in + c, out + c, add);
		}
		if (in != out || add) nr_row_put(x->c - from, in + from, out + from, add);
	}
}
static void forward(const struct nr_call *k) { run(k, &k->x[0], &k->y[0], 1, 0); }
static void backward(const struct nr_call *k)
{
	if (k->want & 1) run(k, &k->dy[0], &k->dx[0], -1, k->add[0]);
}

/* "e", "d", "r" and "s" (with a reference grid, which need not be square): the kind; heads that turn, special tokens; the grid is 2 x 3 */
static nr_t *try_case(struct nr_net *n, nr_t **x, const char *o)
{
	const struct nr_tokens tok = { .special = o[2] - '0', .h = 2, .w = 3, .pos = o[3] == 'p' ? x[1] : NULL };
	const bool split = o[0] == 'd';
	const struct nr_rope r = { split ? NR_ROPE_DINOV3 : NR_ROPE_EVA, split ? 8 : 4, o[1] - '0', 100,
		o[0] == 'r' || o[0] == 's' ? 5 : 0, o[0] == 's' ? 2 : 0 };
	return nr_rope(n, nr_with_tokens(n, x[0], tok), r);
}
static const struct nr_case cases[] = { { "2x6x8", "e20" }, { "1x7x12", "e21" }, { "2x8x24", "d22" }, { "1x6x8", "d10" },
	{ "3x7x12", "r31" }, { "1x6x8", "s20" }, { "2x4x8 2x3:i0-5", "e21p" }, { NULL, NULL } };
const struct nr_op nr_op_rope = {
	.name = "rope", .shape = shape, .forward = forward, .backward = backward,
	.flags = NR_CHEAP | NR_STRIDED | NR_INPLACE | NR_INPLACE_GRAD, .keeps = NR_KEEP_X(1), .try_case = try_case, .cases = cases,
};

nr_t *nr_rope(struct nr_net *n, nr_t *x, struct nr_rope o)
{
	if (!x) return NULL;
	if (!x->tok) return nr_net_fail(n, NR_ESHAPE, "rope", "these tokens have no grid");
	const struct attr a = { o, x->tok->h, x->tok->w, x->tok->special };
	if (x->tok->pos) return nr_apply(n, &nr_op_rope, &a, sizeof a, x, x->tok->pos);
	return nr_apply(n, &nr_op_rope, &a, sizeof a, x);
}
