/* pixel_cross_entropy: cross entropy of every pixel of a label map, of logits that are enlarged bilinearly to its size.
 *
 * The enlarged logits are never in memory: a thread makes one row of pixels at a time. Rows of pixels that lie between the same two rows
 * of the grid are one band; backward sums what a band has for the row above and below it, and adds the two bands of each row in order. */
#include <omp.h>
#include <string.h>

#include "math/resample.h"
#include "math/row.h"
#include "math/softmax.h"
#include "nn/op.h"

struct pixels { int32_t ignore, corners; };
struct sizes { int64_t B, h, w, K, H, W; };

static struct sizes sizes_of(const struct nr_node *k)
{
	const int64_t *x = k->in[0]->d, *y = k->in[1]->d;
	return (struct sizes){ x[0], x[1], x[2], x[3], y[1], y[2] };
}

static int64_t whole(int64_t bytes) { return (bytes + 63) / 64 * 64; }
static int64_t axes_bytes(const struct sizes *n)
{
	return whole((int64_t)nr_axis_bytes(n->h, n->H)) + whole((int64_t)nr_axis_bytes(n->w, n->W));
}
/* Of a thread: a row between those of the grid, its gradient, a row of pixels, their losses. */
static int64_t room_of(const struct sizes *n) { return 2 * n->w * n->K + n->W * n->K + n->W; }

/* Scratch: both axes; the threads' room; losses by rows of pixels and their sums, or two rows of gradients for each band. */
static int shape(struct nr_node *k)
{
	const nr_t *x = k->in[0], *t = k->in[1];
	char sx[64], st[64];
	nr_shape_text(x, sx, sizeof sx), nr_shape_text(t, st, sizeof st);
	if (nr_expect(k, x->nd == 4 && x->dtype == NR_REAL && t->nd == 3 && t->dtype == NR_I32 && t->d[0] == x->d[0],
		      "logits %s and labels %s are not (B,h,w,K) and int32 (B,H,W)", sx, st))
		return NR_ESHAPE;
	const struct sizes n = sizes_of(k);
	const int64_t rows = n.B * n.H, losses = rows + nr_array_chunks(rows), bands = 2 * n.B * n.h * n.w * n.K;
	nr_out(k, 0, NR_REAL, 1, (int64_t[]){ 1 }, NULL);
	k->stash = sizeof(real);                        /* 1 / number of pixels that count */
	k->scratch = (size_t)axes_bytes(&n) + (size_t)(room_of(&n) * k->threads + nr_max64(losses, bands)) * sizeof(real);
	return 0;
}

struct work {
	struct sizes n;
	struct nr_axis rows, cols;
	real *room, *rest;                              /* rest: losses or bands */
	int team;
};
static struct work work_of(const struct nr_call *k)
{
	struct work w = { .n = sizes_of(k->node) };
	char *s = k->scratch;
	const int most = omp_get_max_threads();
	const struct pixels *a = k->node->attr;
	const enum nr_resample how = a->corners ? NR_RESAMPLE_BILINEAR_CORNERS : NR_RESAMPLE_BILINEAR;
	w.rows = nr_axis_init(how, w.n.h, w.n.H, s);
	w.cols = nr_axis_init(how, w.n.w, w.n.W, s + whole((int64_t)nr_axis_bytes(w.n.h, w.n.H)));
	w.room = (real *)(s + axes_bytes(&w.n));
	w.rest = w.room + room_of(&w.n) * k->node->threads;
	w.team = k->node->threads < most ? k->node->threads : most;
	return w;
}

/* Row i of the enlarged logits of sample b, in the thread's room. */
static real *pixels_of(const struct nr_call *k, const struct work *w, int64_t b, int64_t i, real *room)
{
	const int64_t line = w->n.w * w->n.K;
	real *y = room + 2 * line;
	nr_resample_row(&w->rows, i, line, (const real *)k->x[0].p + b * w->n.h * line, room);
	nr_resample_across(&w->cols, w->n.K, room, y);
	return y;
}

static const int32_t *labels_of(const struct nr_call *k, const struct work *w, int64_t row) { return nr_ints(&k->x[1]) + row * w->n.W; }

static void forward(const struct nr_call *k)
{
	const struct work w = work_of(k);
	const int64_t rows = w.n.B * w.n.H, K = w.n.K, W = w.n.W;
	const int32_t ignore = ((const struct pixels *)k->node->attr)->ignore;
	const int64_t count = nr_xent_count(rows * W, nr_ints(&k->x[1]), ignore);
	real *inverse = k->stash;
	*inverse = count ? 1 / (real)count : 0;
#pragma omp parallel for schedule(static) num_threads(w.team) if (rows * W * K > 4096)
	for (int64_t r = 0; r < rows; r++) {
		real *room = w.room + room_of(&w.n) * omp_get_thread_num(), *y = pixels_of(k, &w, r / w.n.H, r % w.n.H, room);
		real *loss = y + W * K;
		double sum = 0;
		nr_row_active->xent_labels(W, K, y, K, labels_of(k, &w, r), ignore, 0, 1, loss, NULL, 0, 0);
		for (int64_t j = 0; j < W; j++) sum += (double)loss[j];
		w.rest[r] = (real)sum;
	}
	*(real *)k->y[0].p = nr_array_sum(rows, w.rest, w.rest + rows) * *inverse;
}

/* What the band of grid row s has for that row and for the next. */
static void band_backward(const struct nr_call *k, const struct work *w, int64_t b, int64_t s, real scale, real *above)
{
	const int64_t K = w->n.K, W = w->n.W, line = w->n.w * K;
	const int32_t ignore = ((const struct pixels *)k->node->attr)->ignore;
	real *room = w->room + room_of(&w->n) * omp_get_thread_num(), *d_line = room + line;
	memset(above, 0, (size_t)(2 * line) * sizeof(real));
	for (int64_t i = 0; i < w->n.H; i++) {
		if (w->rows.first[i] != s) continue;
		real *y = pixels_of(k, w, b, i, room);
		nr_row_active->xent_labels(W, K, y, K, labels_of(k, w, b * w->n.H + i), ignore, 0, scale, NULL, y, K, 0);
		memset(d_line, 0, (size_t)line * sizeof(real));
		nr_resample_across_back(&w->cols, K, y, d_line);
		for (int64_t row = s; row < w->rows.last[i]; row++)
			nr_row_axpy(line, w->rows.weight[i * w->n.h + row], d_line, above + (row - s) * line);
	}
}

static void backward(const struct nr_call *k)
{
	if (!(k->want & 1)) return;
	const struct work w = work_of(k);
	const int64_t bands = w.n.B * w.n.h, line = w.n.w * w.n.K;
	const real scale = *(const real *)k->dy[0].p * *(const real *)k->stash;
#pragma omp parallel for schedule(static) num_threads(w.team) if (w.n.B * w.n.H * w.n.W * w.n.K > 4096)
	for (int64_t q = 0; q < bands; q++) band_backward(k, &w, q / w.n.h, q % w.n.h, scale, w.rest + 2 * q * line);
#pragma omp parallel for schedule(static) num_threads(w.team) if (bands * line > 16384)
	for (int64_t q = 0; q < bands; q++) {
		real *dx = (real *)k->dx[0].p + q * line;
		nr_row_put(line, w.rest + 2 * q * line, dx, k->add[0]);
		if (q % w.n.h) nr_row_put(line, w.rest + (2 * q - 1) * line, dx, 1);
	}
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	return nr_pixel_cross_entropy(n, x[0], x[1], strstr(options, "ignore") ? 1 : -1, strstr(options, "corners") != NULL);
}
static const struct nr_case cases[] = {
	{ "2x3x4x5 2x7x9:i5", "" }, { "1x1x1x2 1x3x2:i2", "" }, { "2x4x3x3 2x2x5:i3", "ignore" }, { "1x5x4x3 1x5x4:i3", "ignore" },
	{ "1x2x2x3 1x4x4:i1-1", "ignore" }, { "3x6x5x7 3x24x20:i7", "ignore" },
	{ "2x3x4x5 2x7x9:i5", "corners" }, { "1x1x3x2 1x3x7:i2", "corners" }, { "2x4x3x3 2x2x5:i3", "ignore corners" }, { NULL, NULL },
};
const struct nr_op nr_op_pixel_cross_entropy = {
	.name = "pixel_cross_entropy", .shape = shape, .forward = forward, .backward = backward, .keeps = NR_KEEP_X(0) | NR_KEEP_X(1),
	.try_case = try_case, .cases = cases,
};

nr_t *nr_pixel_cross_entropy(struct nr_net *n, nr_t *logits, nr_t *labels, int32_t ignore, int align_corners)
{
	const struct pixels a = { ignore, align_corners };
	return nr_apply(n, &nr_op_pixel_cross_entropy, &a, sizeof a, logits, labels);
}
