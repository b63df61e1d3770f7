/* See row.h. The statistics of a token are kept, x is read again in backward; the gradients of the parameters are summed
 * per block of rows and folded in block order. */
#include "norms/row.h"

#include "graph/blocks.h"
#include "graph/net.h"
#include "math/stream.h"

const char *const nr_row_scales[] = { "none", "depth", NULL };

real nr_row_times(const struct nr_net *n, int32_t scale)
{
	const int64_t block = nr_net_block(n);
	return scale && block >= 0 ? (real)(1 / sqrt((double)(block + 1))) : 1;
}

static const struct nr_row_norm *fused(const struct nr_node *k)
{
	return ((const struct nr_fused_attr *)k->attr)->consumer;
}

struct stats { real *mean, *rstd; };            /* (rows) each; mean: layer only */
static struct stats stats_of(const struct nr_call *k, enum nr_norm_kind kind, int64_t rows)
{
	real *s = k->stash;
	return kind == NR_NORM_LAYER ? (struct stats){ s + rows, s } : (struct stats){ NULL, s };
}

static int sizes(struct nr_node *k, enum nr_norm_kind kind, int first)   /* first: index of the gain */
{
	const nr_t *x = k->in[0];
	const int64_t C = nr_cols(x), params = k->n_in - first;
	k->stash = (kind == NR_NORM_LAYER ? 2 : 1) * (size_t)nr_rows(x) * sizeof(real);
	/* partial gradients of gain and bias; gain and bias as they act, and a gradient before it is passed on */
	k->scratch = (size_t)((params * nr_blocks_most(x) + 3) * C) * sizeof(real);
	return nr_expect(k, params == 0 || ((params == 1 || nr_len(k->in[first + 1]) == C) &&
		(nr_len(k->in[first]) == C || nr_len(k->in[first]) == 1)), "one weight and one bias per channel");
}

/* The gain as it acts, a vector of C, or NULL; made in the scratch where it is not the parameter itself. */
static const real *gain_of(const struct nr_call *k, const struct nr_row_norm *norm, int first, int64_t C)
{
	const int there = k->node->n_in > first;
	if (!there && norm->times == 1) return NULL;
	const real *gain = there ? k->x[first].p : NULL;
	const int64_t n = there ? nr_len(k->node->in[first]) : 0;
	if (n == C && norm->offset == 0 && norm->times == 1) return gain;
	real *all = k->scratch;
	for (int64_t i = 0; i < C; i++) all[i] = there ? (norm->offset + gain[n == C ? i : 0]) * norm->times : norm->times;
	return all;
}
static const real *bias_of(const struct nr_call *k, const struct nr_row_norm *norm, int first, int64_t C)
{
	if (k->node->n_in <= first + 1) return NULL;
	const real *bias = k->x[first + 1].p;
	if (norm->times == 1) return bias;
	real *all = (real *)k->scratch + C;
	for (int64_t i = 0; i < C; i++) all[i] = bias[i] * norm->times;
	return all;
}

/* b: what is added to x, with `sum` as its place; NULL: nothing. */
static void forward(const struct nr_call *k, const struct nr_row_norm *norm, const struct nr_view *x, const struct nr_view *b,
	const struct nr_view *sum, const struct nr_view *y, int first)
{
	const int64_t C = x->c;
	const int stream = nr_streams(x->rows * C);
	const int packed = nr_packed(x) && nr_packed(y) && (!b || nr_packed(b)) && (!sum || nr_packed(sum));
	const struct nr_blocks n = nr_blocks_of(x, packed);
	const struct stats s = stats_of(k, norm->kind, x->rows);
	const real *gain = gain_of(k, norm, first, C), *bias = bias_of(k, norm, first, C);
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < n.count; q++) {
		int64_t rows, r = nr_block(&n, q, &rows);
		nr_row_active->norm_forward(&(struct nr_norm_forward){ .kind = norm->kind, .rows = rows, .C = C,
			.x = nr_row(x, r), .ldx = C, .b = b ? nr_row(b, r) : NULL, .ldb = C, .sum = b ? nr_row(sum, r) : NULL,
			.lds = C, .y = nr_row(y, r), .ldy = C, .gain = gain, .bias = bias, .eps = norm->eps,
			.mean = s.mean ? s.mean + r : NULL, .rstd = s.rstd + r, .stream = stream });
	}
}

/* Partial gradients (blocks,C), times what acted on the parameter, into the gradient of input i. */
static void fold(const struct nr_call *k, real times, int64_t blocks, int64_t C, const real *part, int i, real *room)
{
	if (!(k->want >> i & 1)) return;
	const int whole = nr_len(k->node->in[i]) == C;
	if (whole && times == 1) {
		nr_fold(blocks, C, part, k->dx[i].p, k->add[i]);
		return;
	}
	nr_fold(blocks, C, part, room, 0);
	for (int64_t j = 0; times != 1 && j < C; j++) room[j] *= times;
	if (whole) nr_row_active->put(C, room, k->dx[i].p, k->add[i]);
	else nr_put(k->dx[i].p, nr_sum(C, room), k->add[i]);
}

/* dx (+)= the gradient through the norm of x. */
static void backward(const struct nr_call *k, const struct nr_row_norm *norm, const struct nr_view *x,
	const struct nr_view *dy, const struct nr_view *dx, int add, int first)
{
	const int64_t C = x->c;
	const int stream = nr_streams(x->rows * C);
	const struct nr_blocks n = nr_blocks_of(x, nr_packed(x) && nr_packed(dy) && nr_packed(dx));
	const struct stats s = stats_of(k, norm->kind, x->rows);
	const real *gain = gain_of(k, norm, first, C);
	real *room = (real *)k->scratch + 2 * C, *dg = room + C, *db = dg + n.count * C;
	if (k->node->n_in <= first) dg = NULL;
	if (k->node->n_in <= first + 1) db = NULL;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < n.count; q++) {
		int64_t rows, r = nr_block(&n, q, &rows);
		real *dg_q = dg ? memset(dg + q * C, 0, (size_t)C * sizeof(real)) : NULL;
		real *db_q = db ? memset(db + q * C, 0, (size_t)C * sizeof(real)) : NULL;
		nr_row_active->norm_backward(&(struct nr_norm_backward){ .kind = norm->kind, .rows = rows, .C = C,
			.x = nr_row(x, r), .ldx = C, .dy = nr_row(dy, r), .lddy = C, .gain = gain,
			.mean = s.mean ? s.mean + r : NULL, .rstd = s.rstd + r, .eps = norm->eps, .dx = nr_row(dx, r),
			.lddx = C, .add = add, .stream = stream, .dgain = dg_q, .dbias = db_q });
	}
	if (dg) fold(k, norm->times, n.count, C, dg, first, room);
	if (db) fold(k, norm->times, n.count, C, db, first + 1, room);
}

static void cost(const nr_t *x, enum nr_norm_kind kind, int adds, double *there, double *back)
{
	static const double flops[][2] = { { 7, 11 }, { 4, 8 }, { 4, 7 } };       /* by kind */
	const double n = (double)nr_len(x);
	*there = (flops[kind][0] + adds) * n;
	*back = (flops[kind][1] + adds) * n;
}

int nr_row_norm_shape(struct nr_node *k)
{
	nr_out_like(k, 0, k->in[0]);
	return sizes(k, ((const struct nr_row_norm *)k->attr)->kind, 1);
}
void nr_row_norm_forward(const struct nr_call *k) { forward(k, k->node->attr, &k->x[0], NULL, NULL, &k->y[0], 1); }
void nr_row_norm_backward(const struct nr_call *k)
{
	backward(k, k->node->attr, &k->x[0], &k->dy[0], &k->dx[0], k->add[0], 1);
}
void nr_row_norm_cost(const struct nr_node *k, double *there, double *back)
{
	cost(k->in[0], ((const struct nr_row_norm *)k->attr)->kind, 0, there, back);
}

int nr_add_row_norm_shape(struct nr_node *k)
{
	nr_out_like(k, 0, k->in[0]);
	nr_out_like(k, 1, k->in[0]);
	return sizes(k, fused(k)->kind, 2);
}
void nr_add_row_norm_forward(const struct nr_call *k)
{
	forward(k, fused(k->node), &k->x[0], &k->x[1], &k->y[0], &k->y[1], 2);
}
/* y again, from the sum. */
void nr_add_row_norm_rebuild(const struct nr_call *k) { forward(k, fused(k->node), &k->y[0], NULL, NULL, &k->y[1], 2); }
/* dsum = dy[0] + what comes through the norm, left in dy[0]; both inputs of the sum get it. */
void nr_add_row_norm_backward(const struct nr_call *k)
{
	const struct nr_view *dsum = &k->dy[0];
	if (k->dy[1].p) backward(k, fused(k->node), &k->y[0], &k->dy[1], dsum, !k->dy_empty, 2);
	for (int i = 0; i < 2; i++)
		if (k->want >> i & 1 && k->dx[i].p != dsum->p) nr_rows_put(&k->dx[i], dsum, k->add[i]);
}
void nr_add_row_norm_cost(const struct nr_node *k, double *there, double *back)
{
	cost(k->in[0], fused(k)->kind, 1, there, back);
}
