/* Repulsion of t-SNE through a quadtree (van der Maaten 2014). See tsne_inner.h.
 *
 * Points are sorted along a Z curve; a cell is a range of them, and cells lie in the order of a walk from the root, each with
 * the place where the walk goes on when it is taken as a whole. Building is serial and short; points are independent after. */
#include "analysis/tsne_inner.h"

#include <stdlib.h>
#include <string.h>

enum {
	LEVELS = 26,            /* of the tree: the grid has 2^26 steps a side */
	LEAF = 6,               /* so few points are not split further */
	DIGIT = 13,             /* bits of a key sorted at once */
};

struct cell {
	double x, y;            /* centre of mass */
	double side2;           /* square of the larger extent of its points */
	double count;
	int32_t skip;           /* the next cell that is not inside */
	int32_t first, end;     /* its points, if it is a leaf; else end = first */
};
struct box { double low[2], high[2], sum[2]; };

struct nr_tree {
	uint64_t *key, *key2;
	int32_t *order, *order2; /* (N) sorted place to row */
	double *x, *y;          /* (N) sorted */
	struct cell *cell;      /* a split gives at least two: fewer than 2N */
	int32_t cells;
};

struct nr_tree *nr_tree_make(int64_t N)
{
	struct nr_tree *t = calloc(1, sizeof *t);
	if (!t) return NULL;
	const size_t n = (size_t)N;
	*t = (struct nr_tree){ malloc(n * sizeof *t->key), malloc(n * sizeof *t->key), malloc(n * sizeof *t->order),
		malloc(n * sizeof *t->order), malloc(n * sizeof *t->x), malloc(n * sizeof *t->y), malloc(2 * n * sizeof *t->cell), 0 };
	if (t->key && t->key2 && t->order && t->order2 && t->x && t->y && t->cell) return t;
	nr_tree_free(t);
	return NULL;
}

void nr_tree_free(struct nr_tree *t)
{
	if (!t) return;
	free(t->key);
	free(t->key2);
	free(t->order);
	free(t->order2);
	free(t->x);
	free(t->y);
	free(t->cell);
	free(t);
}

/* The 26 bits of v with a zero before each. */
static uint64_t spread_bits(uint64_t v)
{
	v = (v | v << 16) & 0x0000ffff0000ffff;
	v = (v | v << 8) & 0x00ff00ff00ff00ff;
	v = (v | v << 4) & 0x0f0f0f0f0f0f0f0f;
	v = (v | v << 2) & 0x3333333333333333;
	return (v | v << 1) & 0x5555555555555555;
}

static void make_keys(struct nr_tree *t, int64_t N, const double *x, const double *y)
{
	double low_x = x[0], low_y = y[0], high_x = x[0], high_y = y[0];
	for (int64_t i = 1; i < N; i++) {
		low_x = fmin(low_x, x[i]);
		low_y = fmin(low_y, y[i]);
		high_x = fmax(high_x, x[i]);
		high_y = fmax(high_y, y[i]);
	}
	const double side = fmax(high_x - low_x, high_y - low_y), steps = side > 0 ? ((1 << LEVELS) - 1) / side : 0;
	for (int64_t i = 0; i < N; i++)
		t->key[i] = spread_bits((uint64_t)((x[i] - low_x) * steps)) << 1 | spread_bits((uint64_t)((y[i] - low_y) * steps));
}

/* Rows by key, equal keys by row: four passes over digits. */
static void sort(struct nr_tree *t, int64_t N)
{
	for (int64_t i = 0; i < N; i++) t->order[i] = (int32_t)i;
	for (int shift = 0; shift < 2 * LEVELS; shift += DIGIT) {
		int32_t place[(1 << DIGIT) + 1] = { 0 };
		const uint64_t mask = (1 << DIGIT) - 1;
		for (int64_t i = 0; i < N; i++) place[(t->key[i] >> shift & mask) + 1]++;
		for (int d = 0; d < 1 << DIGIT; d++) place[d + 1] += place[d];
		for (int64_t i = 0; i < N; i++) {
			const int32_t to = place[t->key[i] >> shift & mask]++;
			t->key2[to] = t->key[i];
			t->order2[to] = t->order[i];
		}
		uint64_t *const key = t->key;
		int32_t *const order = t->order;
		t->key = t->key2;
		t->order = t->order2;
		t->key2 = key;
		t->order2 = order;
	}
}

static void add_point(struct box *b, double x, double y)
{
	b->low[0] = fmin(b->low[0], x);
	b->low[1] = fmin(b->low[1], y);
	b->high[0] = fmax(b->high[0], x);
	b->high[1] = fmax(b->high[1], y);
	b->sum[0] += x;
	b->sum[1] += y;
}

static void add_box(struct box *b, const struct box *part)
{
	for (int d = 0; d < 2; d++) {
		b->low[d] = fmin(b->low[d], part->low[d]);
		b->high[d] = fmax(b->high[d], part->high[d]);
		b->sum[d] += part->sum[d];
	}
}

static int quadrant(uint64_t key, int level) { return (int)(key >> 2 * level & 3); }

/* The cell of points first..end, whose keys agree above `level`; levels at which they still agree need no cell. */
static struct box build(struct nr_tree *t, int32_t first, int32_t end, int level)
{
	struct box box = { { INFINITY, INFINITY }, { -INFINITY, -INFINITY }, { 0, 0 } };
	const int32_t at = t->cells++;
	while (level >= 0 && quadrant(t->key[first], level) == quadrant(t->key[end - 1], level)) level--;
	const int leaf = end - first <= LEAF || level < 0;
	for (int32_t i = first; leaf && i < end; i++) add_point(&box, t->x[i], t->y[i]);
	for (int32_t i = first, next; !leaf && i < end; i = next) {
		for (next = i + 1; next < end && quadrant(t->key[next], level) == quadrant(t->key[i], level);) next++;
		const struct box part = build(t, i, next, level - 1);
		add_box(&box, &part);
	}
	const double side = fmax(box.high[0] - box.low[0], box.high[1] - box.low[1]), count = end - first;
	t->cell[at] = (struct cell){ box.sum[0] / count, box.sum[1] / count, side * side, count, t->cells, first, leaf ? end : first };
	if (side == 0) t->cell[at].x = box.low[0], t->cell[at].y = box.low[1]; /* one place: its centre to the bit */
	return box;
}

/* A cell of one place is always taken whole. It stands for the point itself too only when their distance is 0: equal points have
 * equal keys, so they share a leaf. A wider cell is never the point's own, for theta < 1 / sqrt 2. */
static void push(const struct nr_tree *t, int32_t i, double theta2, struct nr_tsne_row *row)
{
	const double xi = t->x[i], yi = t->y[i];
	double rx = 0, ry = 0, z = 0;
	for (int32_t c = 0; c < t->cells;) {
		const struct cell *cell = &t->cell[c];
		const double dx = xi - cell->x, dy = yi - cell->y, d2 = dx * dx + dy * dy;
		if (cell->side2 <= theta2 * d2) {
			const double q = 1 / (1 + d2), mass = (cell->count - (d2 == 0)) * q;
			z += mass;
			rx += mass * q * dx;
			ry += mass * q * dy;
			c = cell->skip;
			continue;
		}
		for (int32_t j = cell->first; j < cell->end; j++) {
			const double ex = xi - t->x[j], ey = yi - t->y[j], q = j == i ? 0 : 1 / (1 + ex * ex + ey * ey);
			z += q;
			rx += q * q * ex;
			ry += q * q * ey;
		}
		c++;
	}
	*row = (struct nr_tsne_row){ .push = { rx, ry }, .z = z };
}

void nr_tree_push(struct nr_tree *t, int64_t N, const double *x, const double *y, double theta, struct nr_tsne_row *row)
{
	make_keys(t, N, x, y);
	sort(t, N);
	for (int64_t i = 0; i < N; i++) {
		t->x[i] = x[t->order[i]];
		t->y[i] = y[t->order[i]];
	}
	t->cells = 0;
	build(t, 0, (int32_t)N, LEVELS - 1);
#pragma omp parallel for schedule(dynamic, 64) if (N > 64)
	for (int64_t i = 0; i < N; i++) push(t, (int32_t)i, theta * theta, &row[t->order[i]]);
}
