/* See segmenter.h. What the model sees are windows: one that is the whole picture, or several. Their logits stay coarse; a row of the
 * result is made at a time: windows that lie on it are enlarged and averaged, then the row is enlarged to the label's width. */
#include "infer/segmenter.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "infer/finite.h"
#include "math/resample.h"
#include "math/softmax.h"
#include "norma/nn.h"
#include "norma/norm.h"
#include "picture/augment.h"

enum { PLANS = 4 };                     /* sizes whose plan is kept */

const char *const nr_segment_views[] = { "whole", "slide", "square", NULL };
const struct nr_option nr_segment_view_options[] = { NR_SEGMENT_VIEW_OPTIONS(struct nr_segment_view, , "whole"), NR_OPT_END };

struct plan { int64_t h, w; struct nr_net *net; struct nr_plan *plan; nr_t *image, *logits; };

struct buffer { void *p; size_t size; };

struct nr_segmenter {
	const struct nr_weights *w;
	struct nr_segmentation o;
	char *norms;
	struct nr_segment_view view;
	struct nr_pixel_scale scaling;
	int64_t window, unit;
	int32_t channels;
	struct plan plan[PLANS];
	int plans, next;
	struct nr_picture converted, resized;
	struct nr_resize_scratch scratch;
	struct buffer grids, axes, room, losses;
};

static int no_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot segment", NULL, "out of memory"); }

static void *grow(struct buffer *b, size_t size)
{
	if (size <= b->size) return b->p;
	void *more = malloc(size);
	if (!more) return NULL;
	free(b->p);
	*b = (struct buffer){ more, size };
	return more;
}

int nr_segmenter_open(struct nr_segmenter **out, const struct nr_weights *w, const struct nr_segmentation *o, const char *norms,
	const struct nr_segment_view *view, const struct nr_augment *colours, const struct nr_pixel_stats *stats, struct nr_error *err)
{
	struct nr_segmenter *s = *out = calloc(1, sizeof *s);
	if (!s) return no_memory(err);
	*s = (struct nr_segmenter){ .w = w, .o = *o, .norms = strdup(norms), .view = *view, .window = nr_model_int(&w->model, "image"),
		.unit = nr_segment_unit(&w->model), .channels = (int32_t)nr_model_int(&w->model, "channels") };
	int code = s->norms ? nr_augment_pixel_scale(colours, stats, s->channels, &s->scaling, err) : no_memory(err);
	if (!code && s->view.stride > s->window)
		code = nr_fail(err, NR_EVALUE, "cannot slide", w->model.text, "stride %lld is more than the square of %lld pixels",
			(long long)s->view.stride, (long long)s->window);
	if (!s->view.stride) s->view.stride = s->window > 2 ? 2 * s->window / 3 : 1;
	if (code) nr_segmenter_close(s), *out = NULL;
	return code;
}

static void free_plan(struct plan *p)
{
	nr_plan_free(p->plan);
	nr_net_free(p->net);
	*p = (struct plan){ 0 };
}

void nr_segmenter_close(struct nr_segmenter *s)
{
	if (!s) return;
	for (int i = 0; i < s->plans; i++) free_plan(&s->plan[i]);
	nr_picture_release(&s->converted);
	nr_picture_release(&s->resized);
	nr_resize_scratch_release(&s->scratch);
	free(s->grids.p), free(s->axes.p), free(s->room.p), free(s->losses.p);
	free(s->norms);
	free(s);
}

/* ---- the model -------------------------------------------------------------------------------------------------------------- */

static int record(const struct nr_segmenter *s, struct plan *p, struct nr_error *err)
{
	if (!(p->net = nr_net_make(s->w->store))) return no_memory(err);
	if (nr_norms_use(p->net, s->norms, &s->w->model.norms, err)) return err->code;
	p->image = nr_input(p->net, "image", NR_REAL, NR_SHAPE(1, s->channels, p->h, p->w));
	p->logits = nr_tap(p->net, "logits", nr_segment_logits(p->net, &s->w->model, &s->o, &(struct nr_inputs){ .image = p->image }));
	if (nr_norms_done(p->net, err)) return err->code;
	return nr_plan_make(&p->plan, p->net, p->logits, 0, err);
}

/* The plan for inputs of h x w; one that was not used for long makes room. */
static struct plan *plan_for(struct nr_segmenter *s, int64_t h, int64_t w, struct nr_error *err)
{
	struct nr_error own = { 0 };
	for (int i = 0; i < s->plans; i++)
		if (s->plan[i].h == h && s->plan[i].w == w) return &s->plan[i];
	struct plan *p = &s->plan[s->next];
	free_plan(p);
	p->h = h, p->w = w;
	s->next = (s->next + 1) % PLANS;
	s->plans = s->plans < PLANS ? s->plans + 1 : PLANS;
	if (!record(s, p, &own)) return p;
	free_plan(p);
	if (err) *err = own;
	if (own.code == NR_ESHAPE && (h != s->window || w != s->window))
		nr_hint(err, "this model may be made for squares of %lld pixels alone: --view slide, or --view square",
			(long long)s->window);
	return NULL;
}

/* The part of the picture at (y,x), zeros where it ends before. */
static void fill(const struct nr_segmenter *s, const struct nr_picture *p, int64_t y, int64_t x, const struct plan *to)
{
	real *out = nr_plan_data(to->plan, to->image);
	for (int32_t c = 0; c < s->channels; c++) {
		const real mean = (real)s->scaling.mean[c], rstd = (real)(1 / s->scaling.std[c]);
		for (int64_t i = 0; i < to->h; i++, out += to->w) {
			const int64_t n = y + i < p->h ? p->w - x < to->w ? p->w - x : to->w : 0;
			const uint8_t *from = n > 0 ? p->pixels + ((y + i) * p->w + x) * s->channels + c : NULL;
			for (int64_t j = 0; j < n; j++) out[j] = ((real)from[j * s->channels] / 255 - mean) * rstd;
			for (int64_t j = n; j < to->w; j++) out[j] = 0;
		}
	}
}

/* ---- windows ------------------------------------------------------------------------------------------------------------------ */

/* Where windows lie in a map of h x w: rows x cols of them. Each has gh x gw places, which `down` and `across` enlarge to its size; a
 * window that is the map itself is not enlarged. */
struct windows {
	int64_t h, w, rows, cols, side, stride, gh, gw, K;
	const real *grid;                       /* (rows,cols,gh,gw,K) */
	bool one;
	struct nr_axis down, across, to_h, to_w;
};

static int64_t count_of(int64_t length, int64_t side, int64_t stride)
{
	return length <= side ? 1 : (length - side + stride - 1) / stride + 1;
}
static int64_t start_of(int64_t i, int64_t length, int64_t side, int64_t stride)
{
	const int64_t last = length > side ? length - side : 0;
	return i * stride < last ? i * stride : last;
}

static int run_window(struct nr_segmenter *s, const struct nr_picture *p, int64_t y, int64_t x, struct plan *q, real *grid,
	struct nr_error *err)
{
	const struct nr_exec ex = { .no_dropout = 1 };
	fill(s, p, y, x, q);
	nr_plan_run(q->plan, &ex, NR_RUN_FORWARD);
	if (!nr_rows_finite(q->plan, q->logits, 1)) {
		fill(s, p, y, x, q);
		return nr_not_finite(q->plan, s->w->store, &ex, s->w->model.text, err);
	}
	memcpy(grid, nr_plan_data(q->plan, q->logits), (size_t)nr_len(q->logits) * sizeof *grid);
	return NR_OK;
}

static int run_windows(struct nr_segmenter *s, const struct nr_picture *p, struct windows *v, struct nr_error *err)
{
	const bool slides = s->view.view == NR_SEGMENT_SLIDE;
	struct plan *q = slides ? plan_for(s, s->window, s->window, err) : plan_for(s, p->h, p->w, err);
	if (!q) return err ? (int)err->code : NR_ESHAPE;
	*v = (struct windows){ .h = p->h, .w = p->w, .rows = 1, .cols = 1, .side = s->window, .stride = s->view.stride,
		.gh = q->logits->d[1],
		.gw = q->logits->d[2], .K = q->logits->d[3], .one = !slides };
	if (slides) v->rows = count_of(p->h, v->side, v->stride), v->cols = count_of(p->w, v->side, v->stride);
	else v->h = v->gh, v->w = v->gw;
	const int64_t size = v->gh * v->gw * v->K;
	real *grid = grow(&s->grids, (size_t)(v->rows * v->cols * size) * sizeof *grid);
	if (!grid) return no_memory(err);
	v->grid = grid;
	for (int64_t i = 0; i < v->rows * v->cols; i++, grid += size)
		if (run_window(s, p, start_of(i / v->cols, v->h, v->side, v->stride), start_of(i % v->cols, v->w, v->side, v->stride), q,
			grid, err))
			return err ? (int)err->code : NR_EDIVERGED;
	return NR_OK;
}

/* Row r of the map of windows: the mean of those that lie there. room: for a row of places and a row of a window. */
static const real *map_row(const struct windows *v, int64_t r, real *line, real *room)
{
	const int64_t places = v->gw * v->K, size = v->gh * places;
	real *wide = room + places;
	int64_t above = 0;
	if (v->one) return v->grid + r * places;
	memset(line, 0, (size_t)(v->w * v->K) * sizeof *line);
	for (int64_t i = 0; i < v->rows; i++) {
		const int64_t y = start_of(i, v->h, v->side, v->stride);
		if (r < y || r >= y + v->side) continue;
		above++;
		for (int64_t j = 0; j < v->cols; j++) {
			const int64_t x = start_of(j, v->w, v->side, v->stride), n = v->w - x < v->side ? v->w - x : v->side;
			nr_resample_row(&v->down, r - y, places, v->grid + (i * v->cols + j) * size, room);
			nr_resample_across(&v->across, v->K, room, wide);
			for (int64_t k = 0; k < n * v->K; k++) line[x * v->K + k] += wide[k];
		}
	}
	for (int64_t x = 0; x < v->w; x++) {
		int64_t beside = 0;
		for (int64_t j = 0; j < v->cols; j++) {
			const int64_t from = start_of(j, v->w, v->side, v->stride);
			beside += x >= from && x < from + v->side;
		}
		for (int64_t k = 0; k < v->K; k++) line[x * v->K + k] /= (real)(above * beside);
	}
	return line;
}

/* ---- pixels -------------------------------------------------------------------------------------------------------------------- */

/* Of a thread, in reals: a row of places, of a window, two of the map, a row of pixels, their losses and labels. */
static int64_t room_of(const struct windows *v, int64_t W)
{
	return v->gw * v->K + (v->one ? 0 : v->side * v->K) + 2 * v->w * v->K + W * v->K + 2 * W;
}

static size_t whole(size_t bytes) { return (bytes + 63) / 64 * 64; }

static struct nr_axis axis(const struct nr_segmenter *s, char **at, int64_t from, int64_t to)
{
	const enum nr_resample how = s->o.align_corners ? NR_RESAMPLE_BILINEAR_CORNERS : NR_RESAMPLE_BILINEAR;
	const struct nr_axis a = nr_axis_init(how, from, to, *at);
	*at += whole(nr_axis_bytes(from, to));
	return a;
}

static int make_axes(struct nr_segmenter *s, struct windows *v, int64_t H, int64_t W)
{
	const int64_t side = v->one ? 1 : v->side;
	char *at = grow(&s->axes, whole(nr_axis_bytes(v->h, H)) + whole(nr_axis_bytes(v->w, W)) + whole(nr_axis_bytes(v->gh, side)) +
		whole(nr_axis_bytes(v->gw, side)));
	if (!at) return NR_EMEMORY;
	v->to_h = axis(s, &at, v->h, H), v->to_w = axis(s, &at, v->w, W);
	v->down = axis(s, &at, v->gh, side), v->across = axis(s, &at, v->gw, side);
	return NR_OK;
}

static void pixel_row(const struct windows *v, int64_t i, const struct nr_picture *truth, struct nr_picture *map, real *room, double *loss)
{
	const int64_t K = v->K, W = map->w, line = v->w * K;
	real *one = room + v->gw * K + (v->one ? 0 : v->side * K), *sum = one + line, *y = sum + line, *own = y + W * K;
	int32_t *label = (int32_t *)(void *)(own + W);
	memset(sum, 0, (size_t)line * sizeof *sum);
	for (int64_t r = v->to_h.first[i]; r < v->to_h.last[i]; r++)
		nr_row_axpy(line, v->to_h.weight[i * v->h + r], map_row(v, r, one, room), sum);
	nr_resample_across(&v->to_w, K, sum, y);
	for (int64_t j = 0; j < W; j++) {
		const real *x = y + j * K;
		int64_t best = 0;
		for (int64_t k = 1; k < K; k++)
			if (x[k] > x[best]) best = k;
		map->pixels[i * W + j] = (uint8_t)best;
		label[j] = truth ? truth->pixels[i * W + j] : NR_NO_CLASS;
	}
	*loss = 0;
	if (truth) nr_row_active->xent_labels(W, K, y, K, label, NR_NO_CLASS, 0, 1, own, NULL, 0, 0);
	for (int64_t j = 0; truth && j < W; j++) *loss += (double)own[j];
}

static int make_pixels(struct nr_segmenter *s, struct windows *v, const struct nr_picture *truth, struct nr_picture *map, double *loss,
	struct nr_error *err)
{
	const int64_t H = map->h, W = map->w, room = room_of(v, W);
	const int team = omp_get_max_threads();
	real *rooms = grow(&s->room, (size_t)(room * team) * sizeof *rooms);
	double *losses = grow(&s->losses, (size_t)H * sizeof *losses), sum = 0;
	if (!rooms || !losses || make_axes(s, v, H, W)) return no_memory(err);
#pragma omp parallel for schedule(static) num_threads(team) if (H * W * v->K > 4096)
	for (int64_t i = 0; i < H; i++) pixel_row(v, i, truth, map, rooms + room * omp_get_thread_num(), &losses[i]);
	for (int64_t i = 0; i < H; i++) sum += losses[i];
	if (loss) *loss = sum;
	return NR_OK;
}

/* The size at which a picture is looked at. */
static void size_of(const struct nr_segmenter *s, const struct nr_picture *p, int64_t *h, int64_t *w)
{
	const double scale = s->view.side ? (double)s->view.side / (p->h < p->w ? p->h : p->w) : 1;
	const double unit = s->view.view == NR_SEGMENT_WHOLE ? (double)s->unit : 1;
	*h = *w = s->window;
	if (s->view.view == NR_SEGMENT_SQUARE) return;
	*h = (int64_t)(fmax(floor(p->h * scale / unit + .5), 1) * unit);
	*w = (int64_t)(fmax(floor(p->w * scale / unit + .5), 1) * unit);
}

int nr_segmenter_run(struct nr_segmenter *s, const struct nr_picture *p, const struct nr_picture *truth, struct nr_picture *map,
	double *loss,
	int64_t *pixels, struct nr_error *err)
{
	struct nr_error own = { 0 };
	struct windows v;
	int64_t h, w;
	int code = NR_OK;
	if (!err) err = &own;
	const int32_t H = p->h, W = p->w;
	size_of(s, p, &h, &w);
	if (p->channels != s->channels) code = nr_picture_convert(p, s->channels, &s->converted, err), p = &s->converted;
	if (!code && (h != H || w != W)) {
		code = nr_resize(p, NULL, (int32_t)h, (int32_t)w, NR_FILTER_BILINEAR, &s->resized, &s->scratch, err);
		p = &s->resized;
	}
	if (!code) code = run_windows(s, p, &v, err);
	if (!code) code = nr_picture_resize(map, H, W, 1, err);
	if (!code) code = make_pixels(s, &v, truth, map, loss, err);
	if (code || !truth) return code;
	*pixels = 0;
	for (int64_t i = 0; i < (int64_t)H * W; i++) *pixels += truth->pixels[i] != NR_NO_CLASS;
	return NR_OK;
}
