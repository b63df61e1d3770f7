/* Gather copies rows. Scatter sorts the indices by counting, so that each row of the table is summed by one thread in the
 * order of the input: same bits at any thread count, and rows that nobody used cost nothing. */
#include "math/gather.h"

#include <string.h>

#include "math/row.h"

enum { ROWS = 32, COLS = 128 };
#define SMALL 16384

static int inside(int32_t i, int64_t rows) { return i >= 0 && i < rows; }

int64_t nr_gather_check(int64_t n, const int32_t *index, int64_t rows)
{
	for (int64_t i = 0; i < n; i++)
		if (!inside(index[i], rows)) return i;
	return -1;
}

static void take(int64_t C, const real *table, int64_t rows, int32_t index, real *y, int add)
{
	if (inside(index, rows)) nr_row_put(C, table + index * C, y, add);
	else if (!add) memset(y, 0, (size_t)C * sizeof(real));
}

void nr_gather(int64_t n, int64_t C, const real *table, int64_t rows, const int32_t *index, real *y, int add)
{
#pragma omp parallel for schedule(static) if (n * C > SMALL)
	for (int64_t q = 0; q < n; q += ROWS)
		for (int64_t i = q; i < n && i < q + ROWS; i++) take(C, table, rows, index[i], y + i * C, add);
}

size_t nr_scatter_scratch(int64_t n, int64_t rows) { return (size_t)(rows + 1 + 2 * n) * sizeof(int32_t); }

/* start (rows+1): where the positions of each row begin in order; used: the rows that occur. Returns how many do. */
static int64_t sort(int64_t n, int64_t rows, const int32_t *index, int32_t padding, int32_t *start, int32_t *order,
	int32_t *used)
{
	int64_t count = 0;
	memset(start, 0, (size_t)(rows + 1) * sizeof(int32_t));
	for (int64_t i = 0; i < n; i++)
		if (inside(index[i], rows) && index[i] != padding) start[index[i] + 1]++;
	for (int64_t r = 0; r < rows; r++) {
		if (start[r + 1]) used[count++] = (int32_t)r;
		start[r + 1] += start[r];
	}
	for (int64_t i = 0; i < n; i++)
		if (inside(index[i], rows) && index[i] != padding) order[start[index[i]]++] = (int32_t)i;
	/* each start has moved to its end, which is the next one's start */
	memmove(start + 1, start, (size_t)rows * sizeof(int32_t));
	start[0] = 0;
	return count;
}

void nr_scatter(int64_t n, int64_t C, real *dtable, int64_t rows, const int32_t *index, int32_t padding, const real *dy,
	int add, void *scratch)
{
	nr_scatter_sum(n, 1, C, dtable, rows, index, padding, dy, add, scratch);
}

void nr_gather_sum(int64_t n, int64_t each, int64_t C, const real *table, int64_t rows, const int32_t *index, real *y)
{
#pragma omp parallel for schedule(static) if (n * each * C > SMALL)
	for (int64_t i = 0; i < n; i++)
		for (int64_t f = 0; f < each; f++) take(C, table, rows, index[i * each + f], y + i * C, f > 0);
}

void nr_scatter_sum(int64_t samples, int64_t each, int64_t C, real *dtable, int64_t rows, const int32_t *index, int32_t padding,
	const real *dy, int add, void *scratch)
{
	const int64_t n = samples * each;
	int32_t *start = scratch, *order = start + rows + 1, *used = order + n;
	if (!add) nr_array_fill(rows * C, 0, dtable);
	const int64_t count = sort(n, rows, index, padding, start, order, used), parts = (C + COLS - 1) / COLS;
	/* columns are cut too: a table of two rows (segments) keeps all threads busy */
#pragma omp parallel for schedule(dynamic, 16) if (n * C > SMALL)
	for (int64_t t = 0; t < count * parts; t++) {
		const int64_t r = used[t / parts], c = t % parts * COLS, len = nr_min64(COLS, C - c);
		real *d = dtable + r * C + c;
		for (int32_t i = start[r]; i < start[r + 1]; i++) nr_row_add(len, d, dy + order[i] / each * C + c, d);
	}
}

void nr_gather_tokens(int64_t B, int64_t T, int64_t n, int64_t C, const real *x, int64_t sx, const int32_t *index, real *y,
	int64_t sy, int add)
{
#pragma omp parallel for schedule(static) if (B * n * C > SMALL)
	for (int64_t i = 0; i < B * n; i++) take(C, x + i / n * sx, T, index[i], y + i / n * sy + i % n * C, add);
}

void nr_scatter_tokens(int64_t B, int64_t T, int64_t n, int64_t C, real *dx, int64_t sx, const int32_t *index,
	const real *dy, int64_t sy, int add)
{
	const int64_t parts = (C + COLS - 1) / COLS;
#pragma omp parallel for schedule(static) if (B * T * C > SMALL)
	for (int64_t t = 0; t < B * parts; t++) {
		const int64_t b = t / parts, c = t % parts * COLS, len = nr_min64(COLS, C - c);
		real *d = dx + b * sx + c;
		if (!add)
			for (int64_t r = 0; r < T; r++) memset(d + r * C, 0, (size_t)len * sizeof(real));
		for (int64_t i = 0; i < n; i++) {
			const int32_t r = index[b * n + i];
			if (inside(r, T)) nr_row_add(len, d + r * C, dy + b * sy + i * C + c, d + r * C);
		}
	}
}
