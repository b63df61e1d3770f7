/* See rle.h. */
#include "picture/rle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "picture/picture.h"

enum { SCALE = 5 };                             /* polygons are walked on a grid this much finer */
#define FARTHEST 1e6                            /* coordinates, pixels: one step of a walk is a fifth of one */

void nr_rle_free(struct nr_rle *r) { free(r); }

struct nr_rle *nr_rle_keep(const struct nr_rle *r, struct nr_arena *arena)
{
	const size_t runs = (size_t)r->runs * sizeof *r->run;
	struct nr_rle *copy = nr_arena_alloc(arena, sizeof *copy + runs);
	if (!copy) return NULL;
	*copy = (struct nr_rle){ r->h, r->w, r->runs, (uint32_t *)(copy + 1) };
	if (runs) memcpy(copy->run, r->run, runs);
	return copy;
}

static struct nr_rle *make(int32_t h, int32_t w, int64_t runs, struct nr_error *err)
{
	if (h < 1 || w < 1 || (int64_t)h * w > NR_PICTURE_PIXELS) {
		nr_fail(err, NR_EVALUE, "cannot make a mask", NULL, "its size is %d x %d", h, w);
		return NULL;
	}
	struct nr_rle *r = malloc(sizeof *r + (size_t)(runs + 1) * sizeof *r->run);
	if (r) *r = (struct nr_rle){ h, w, runs, (uint32_t *)(r + 1) };
	else nr_fail(err, NR_EMEMORY, "cannot make a mask", NULL, "out of memory");
	return r;
}

struct nr_rle *nr_rle_of_runs(int32_t h, int32_t w, const uint32_t *run, int64_t runs, struct nr_error *err)
{
	struct nr_rle *r = make(h, w, runs, err);
	uint64_t sum = 0;
	for (int64_t i = 0; r && i < runs; i++) sum += r->run[i] = run[i];
	if (!r || sum == (uint64_t)h * (uint64_t)w) return r;
	nr_fail(err, NR_EFORMAT, "cannot read a mask", NULL, "its runs add up to %llu pixels instead of %d x %d", (unsigned long long)sum,
		h, w);
	free(r);
	return NULL;
}

/* ---- masks and texts --------------------------------------------------------------------------------------------------- */

struct nr_rle *nr_rle_of_mask(int32_t h, int32_t w, const uint8_t *mask, struct nr_error *err)
{
	int64_t runs = 1;
	for (int64_t x = 0, old = 0; x < w; x++)
		for (int64_t y = 0; y < h; y++) {
			const bool now = mask[y * w + x];
			runs += now != old;
			old = now;
		}
	struct nr_rle *r = make(h, w, runs, err);
	if (!r) return NULL;
	memset(r->run, 0, (size_t)runs * sizeof *r->run);
	int64_t at = 0;
	for (int64_t x = 0, old = 0; x < w; x++)
		for (int64_t y = 0; y < h; y++) {
			const bool now = mask[y * w + x];
			at += now != old;
			old = now;
			r->run[at]++;
		}
	return r;
}

void nr_rle_to_mask(const struct nr_rle *r, uint8_t *mask)
{
	int64_t x = 0, y = 0;
	memset(mask, 0, (size_t)r->h * (size_t)r->w);
	for (int64_t i = 0; i < r->runs; i++) {
		for (uint32_t k = 0; i % 2 && k < r->run[i]; k++) {
			mask[y * r->w + x] = 1;
			if (++y == r->h) y = 0, x++;
		}
		if (i % 2) continue;
		const int64_t to = x * r->h + y + r->run[i];
		x = to / r->h, y = to % r->h;
	}
}

/* Numbers in pieces of 5 bits, low ones first, bit 5: more follow, bit 4 of the last: negative; from the fourth run on what it differs
 * from the one two before. */
struct nr_rle *nr_rle_of_string(int32_t h, int32_t w, const char *text, size_t size, struct nr_error *err)
{
	struct nr_rle *r = make(h, w, (int64_t)size, err);
	const int64_t most = (int64_t)h * w;
	int64_t n = 0, sum = 0;
	for (size_t p = 0; r && p < size; n++) {
		int64_t x = 0;
		int piece, shift = 0;
		do {
			piece = p < size ? (unsigned char)text[p] - 48 : -1;
			if (piece < 0 || piece > 63 || shift > 30) {
				nr_fail(err, NR_EFORMAT, "cannot read a mask", NULL, "character %zu of %zu of its runs is wrong", p + 1,
					size);
				free(r);
				return NULL;
			}
			x |= (int64_t)(piece & 31) << shift;
			shift += 5;
			p++;
		} while (piece & 32);
		if (piece & 16) x -= (int64_t)1 << shift;
		if (n > 2) x += r->run[n - 2];
		if (x < 0 || (sum += x) > most) {
			nr_fail(err, NR_EFORMAT, "cannot read a mask", NULL, "run %lld is %lld long, but the picture has %d x %d pixels",
				(long long)n + 1, (long long)x, h, w);
			free(r);
			return NULL;
		}
		r->run[n] = (uint32_t)x;
	}
	if (!r) return NULL;
	r->runs = n;
	if (sum == most) return r;
	nr_fail(err, NR_EFORMAT, "cannot read a mask", NULL, "its runs add up to %lld pixels instead of %d x %d", (long long)sum, h, w);
	free(r);
	return NULL;
}

void nr_rle_to_string(const struct nr_rle *r, struct nr_str *out)
{
	for (int64_t i = 0; i < r->runs; i++) {
		int64_t x = (int64_t)r->run[i] - (i > 2 ? (int64_t)r->run[i - 2] : 0);
		bool more;
		do {
			const int piece = (int)(x & 31);
			x = (x - piece) / 32;
			more = piece & 16 ? x != -1 : x != 0;
			const char c = (char)(piece + (more ? 32 : 0) + 48);
			nr_str_add_n(out, &c, 1);
		} while (more);
	}
}

/* ---- polygons ------------------------------------------------------------------------------------------------------------ */

struct walk {
	int32_t h, w, u, v;                 /* where the walk is, on the finer grid */
	bool begun;
	uint32_t *at;                       /* where the outline crosses a column of pixels: places in the order of pixels */
	int64_t count, room;
	bool failed;
};

/* A step to the side may cross the middle of a column of pixels: x = 5 k + 2. */
static void step(struct walk *k, int32_t u, int32_t v)
{
	const int32_t left = u < k->u ? u : u - 1, upper = v < k->v ? v : k->v;
	const bool crosses = k->begun && u != k->u && left >= 0 && left % SCALE == SCALE / 2 && left / SCALE < k->w;
	k->begun = true;
	k->u = u, k->v = v;
	if (!crosses) return;
	const double y = ceil(fmin(fmax((upper + 0.5) / SCALE - 0.5, 0), k->h));
	if (k->count + 1 >= k->room) {
		const int64_t room = 2 * k->room + 64;
		uint32_t *more = realloc(k->at, (size_t)room * sizeof *more);
		if (!more) {
			k->failed = true;
			return;
		}
		k->at = more;
		k->room = room;
	}
	k->at[k->count++] = (uint32_t)(left / SCALE) * (uint32_t)k->h + (uint32_t)y;
}

/* The points of a line are rounded from its left or upper end, in whichever direction one walks. */
static void line(struct walk *k, int32_t xs, int32_t ys, int32_t xe, int32_t ye)
{
	const int32_t dx = abs(xe - xs), dy = abs(ye - ys), n = dx >= dy ? dx : dy;
	const bool flat = dx >= dy, back = flat ? xs > xe : ys > ye;
	const int32_t x0 = back ? xe : xs, y0 = back ? ye : ys, x1 = back ? xs : xe, y1 = back ? ys : ye;
	const double slope = n == 0 ? 0 : flat ? (double)(y1 - y0) / dx : (double)(x1 - x0) / dy;
	for (int32_t d = 0; d <= n; d++) {
		const int32_t t = back ? n - d : d;
		if (flat) step(k, x0 + t, (int32_t)(y0 + slope * t + .5));
		else step(k, (int32_t)(x0 + slope * t + .5), y0 + t);
	}
}

static int by_value(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* Between two crossings of a column lie pixels of one kind; crossings at one place cancel out. */
static struct nr_rle *of_crossings(struct walk *k, struct nr_error *err)
{
	if (k->count) qsort(k->at, (size_t)k->count, sizeof *k->at, by_value);
	struct nr_rle *r = make(k->h, k->w, k->count + 1, err);
	int64_t n = 0;
	uint32_t old = 0;
	bool joins = false;
	for (int64_t i = 0; r && i <= k->count; i++) {
		const uint32_t at = i < k->count ? k->at[i] : (uint32_t)k->h * (uint32_t)k->w, length = at - old;
		old = at;
		if (joins) r->run[n - 1] += length, joins = false;
		else if (length || !n) r->run[n++] = length;
		else joins = true;
	}
	if (r) r->runs = n;
	return r;
}

struct nr_rle *nr_rle_of_polygon(int32_t h, int32_t w, const double *xy, int64_t points, struct nr_error *err)
{
	struct walk k = { .h = h, .w = w };
	for (int64_t i = 0; i < 2 * points; i++)
		if (!(fabs(xy[i]) <= FARTHEST)) {
			nr_fail(err, NR_EVALUE, "cannot draw a polygon", NULL, "coordinate %lld is %g", (long long)i + 1, xy[i]);
			return NULL;
		}
	for (int64_t i = 0; i < points; i++) {
		const double *a = xy + 2 * i, *b = xy + 2 * ((i + 1) % points);
		line(&k, (int32_t)(SCALE * a[0] + .5), (int32_t)(SCALE * a[1] + .5), (int32_t)(SCALE * b[0] + .5),
			(int32_t)(SCALE * b[1] + .5));
	}
	if (k.failed) nr_fail(err, NR_EMEMORY, "cannot draw a polygon", NULL, "out of memory");
	struct nr_rle *r = k.failed ? NULL : of_crossings(&k, err);
	free(k.at);
	return r;
}

struct nr_rle *nr_rle_of_box(int32_t h, int32_t w, const double box[4], struct nr_error *err)
{
	const double xs = box[0], ys = box[1], xe = xs + box[2], ye = ys + box[3];
	return nr_rle_of_polygon(h, w, (const double[]){ xs, ys, xs, ye, xe, ye, xe, ys }, 4, err);
}

/* ---- two masks ------------------------------------------------------------------------------------------------------------ */

/* Walks over pieces in which both masks stay what they are. */
struct pair { const struct nr_rle *a, *b; int64_t i, j; uint32_t left_a, left_b; };

static uint32_t next_piece(struct pair *p, bool *in_a, bool *in_b)
{
	while (!p->left_a && p->i + 1 < p->a->runs) p->left_a = p->a->run[++p->i];
	while (!p->left_b && p->j + 1 < p->b->runs) p->left_b = p->b->run[++p->j];
	const uint32_t n = p->left_a < p->left_b ? p->left_a : p->left_b;
	*in_a = p->i % 2, *in_b = p->j % 2;
	p->left_a -= n;
	p->left_b -= n;
	return n;
}

static struct pair pair_of(const struct nr_rle *a, const struct nr_rle *b)
{
	return (struct pair){ a, b, 0, 0, a->runs ? a->run[0] : 0, b->runs ? b->run[0] : 0 };
}

static struct nr_rle *merge_two(const struct nr_rle *a, const struct nr_rle *b, bool common, struct nr_error *err)
{
	struct nr_rle *r = make(a->h, a->w, a->runs + b->runs + 1, err);
	struct pair p = pair_of(a, b);
	bool in_a, in_b;
	int64_t n = 1;
	if (r) r->run[0] = 0;
	for (uint32_t k; r && (k = next_piece(&p, &in_a, &in_b));) {
		const bool in = common ? in_a && in_b : in_a || in_b;
		if (in == !(n % 2)) r->run[n - 1] += k;
		else r->run[n++] = k;
	}
	if (r) r->runs = n;
	return r;
}

struct nr_rle *nr_rle_merge(const struct nr_rle *const *part, int64_t n, bool common, struct nr_error *err)
{
	struct nr_rle *all = nr_rle_of_runs(part[0]->h, part[0]->w, part[0]->run, part[0]->runs, err);
	for (int64_t i = 1; i < n && all; i++) {
		struct nr_rle *more = NULL;
		if (part[i]->h == all->h && part[i]->w == all->w) more = merge_two(all, part[i], common, err);
		else nr_fail(err, NR_ESHAPE, "cannot merge masks", NULL, "their sizes are %d x %d and %d x %d", all->h, all->w, part[i]->h,
			part[i]->w);
		free(all);
		all = more;
	}
	return all;
}

int64_t nr_rle_area(const struct nr_rle *r)
{
	int64_t n = 0;
	for (int64_t i = 1; i < r->runs; i += 2) n += r->run[i];
	return n;
}

void nr_rle_box(const struct nr_rle *r, double box[4])
{
	int64_t at = 0, left = r->w, top = r->h, right = -1, bottom = -1;
	for (int64_t i = 0; i < r->runs; at += r->run[i++]) {
		if (i % 2 == 0 || !r->run[i]) continue;
		const int64_t last = at + r->run[i] - 1, x0 = at / r->h, x1 = last / r->h;
		const int64_t y0 = x1 > x0 ? 0 : at % r->h, y1 = x1 > x0 ? r->h - 1 : last % r->h;
		if (x0 < left) left = x0;
		if (x1 > right) right = x1;
		if (y0 < top) top = y0;
		if (y1 > bottom) bottom = y1;
	}
	const bool none = right < 0;
	box[0] = none ? 0 : (double)left;
	box[1] = none ? 0 : (double)top;
	box[2] = none ? 0 : (double)(right - left + 1);
	box[3] = none ? 0 : (double)(bottom - top + 1);
}

double nr_rle_iou(const struct nr_rle *detection, const struct nr_rle *truth, bool crowd)
{
	if (detection->h != truth->h || detection->w != truth->w) return -1;
	struct pair p = pair_of(detection, truth);
	int64_t both = 0, any = 0, own = 0;
	bool in_a, in_b;
	for (uint32_t k; (k = next_piece(&p, &in_a, &in_b));) {
		both += in_a && in_b ? k : 0;
		any += in_a || in_b ? k : 0;
		own += in_a ? k : 0;
	}
	return both ? (double)both / (double)(crowd ? own : any) : 0;
}

double nr_box_iou_xywh(const double d[4], const double t[4], bool crowd)
{
	const double w = fmin(d[0] + d[2], t[0] + t[2]) - fmax(d[0], t[0]), h = fmin(d[1] + d[3], t[1] + t[3]) - fmax(d[1], t[1]);
	if (w <= 0 || h <= 0) return 0;
	const double both = w * h, own = d[2] * d[3];
	return both / (crowd ? own : own + t[2] * t[3] - both);
}
