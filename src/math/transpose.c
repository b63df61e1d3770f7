/* Transposes in blocks of 4 x 4 registers inside strips of STRIP rows, so that reads and writes both use whole lines. */
#include "math/transpose.h"

#include <string.h>

enum { STRIP = 64 };  /* rows of x in one task */
#define SMALL 16384   /* fewer values are not worth waking threads */

typedef real v4 __attribute__((vector_size(4 * sizeof(real))));
typedef real v4u __attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));

/* By address: how a vector is passed by value depends on the instruction set. */
static inline void put4(real *y, const v4 *v, int add)
{
	*(v4u *)y = add ? *v + *(const v4u *)y : *v;
}

static inline void block4(const real *x, int64_t ldx, real *y, int64_t ldy, int add)
{
	const v4 a = *(const v4u *)x, b = *(const v4u *)(x + ldx), c = *(const v4u *)(x + 2 * ldx),
		 d = *(const v4u *)(x + 3 * ldx);
	const v4 e = __builtin_shufflevector(a, b, 0, 4, 1, 5), f = __builtin_shufflevector(c, d, 0, 4, 1, 5);
	const v4 g = __builtin_shufflevector(a, b, 2, 6, 3, 7), h = __builtin_shufflevector(c, d, 2, 6, 3, 7);
	const v4 out[4] = {
		__builtin_shufflevector(e, f, 0, 1, 4, 5), __builtin_shufflevector(e, f, 2, 3, 6, 7),
		__builtin_shufflevector(g, h, 0, 1, 4, 5), __builtin_shufflevector(g, h, 2, 3, 6, 7),
	};
	for (int i = 0; i < 4; i++) put4(y + i * ldy, &out[i], add);
}

static void edge(int64_t rows, int64_t cols, const real *x, int64_t ldx, real *y, int64_t ldy, int add)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++) y[j * ldy + i] = x[i * ldx + j] + (add ? y[j * ldy + i] : 0);
}

/* At most STRIP rows. Sixteen columns at a time: a line of x is used up before the next one comes. */
static void strip(int64_t rows, int64_t cols, const real *x, int64_t ldx, real *y, int64_t ldy, int add)
{
	const int64_t r4 = rows / 4 * 4, c4 = cols / 4 * 4;
	for (int64_t j0 = 0; j0 < c4; j0 += 16)
		for (int64_t i = 0; i < r4; i += 4)
			for (int64_t j = j0; j < c4 && j < j0 + 16; j += 4)
				block4(x + i * ldx + j, ldx, y + j * ldy + i, ldy, add);
	edge(r4, cols - c4, x + c4, ldx, y + c4 * ldy, ldy, add);
	edge(rows - r4, cols, x + r4 * ldx, ldx, y + r4, ldy, add);
}

void nr_matrix_transpose(int64_t rows, int64_t cols, const real *x, int64_t ldx, real *y, int64_t ldy, int add)
{
#pragma omp parallel for schedule(static) if (rows * cols > SMALL)
	for (int64_t i = 0; i < rows; i += STRIP)
		strip(nr_min64(STRIP, rows - i), cols, x + i * ldx, ldx, y + i, ldy, add);
}

void nr_transpose_batch(int64_t B, int64_t rows, int64_t cols, const real *x, real *y, int add)
{
	const int64_t strips = (rows + STRIP - 1) / STRIP;
#pragma omp parallel for schedule(static) if (B * rows * cols > SMALL)
	for (int64_t s = 0; s < B * strips; s++) {
		const int64_t b = s / strips, i = s % strips * STRIP;
		strip(nr_min64(STRIP, rows - i), cols, x + (b * rows + i) * cols, cols, y + b * rows * cols + i, rows, add);
	}
}

static void copy_row(int64_t n, const real *x, real *y, int add)
{
	if (!add) memcpy(y, x, (size_t)n * sizeof(real));
	else
		for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

/* One step of the outer loops is a row copy (last axis stays last) or a 2-D transposition between x's last axis and y's. */
void nr_permute(int nd, const int64_t *d, const int *perm, const real *x, real *y, int add)
{
	int64_t sx[NR_PERMUTE_MAX], sy[NR_PERMUTE_MAX], total = 1, outer = 1;   /* both by axis of y */
	int64_t stride[NR_PERMUTE_MAX] = { 0 };
	int turned = nd - 1;                                                    /* axis of y that is last in x */
	for (int i = nd - 1; i >= 0; i--) {
		stride[i] = total;
		total *= d[i];
	}
	if (total == 0) return;
	for (int64_t i = nd - 1, s = 1; i >= 0; i--) {
		sx[i] = stride[perm[i]];
		sy[i] = s;
		s *= d[perm[i]];
		if (perm[i] == nd - 1) turned = (int)i;
	}
	for (int i = 0; i < nd - 1; i++)
		if (i != turned) outer *= d[perm[i]];
	const int64_t last = d[perm[nd - 1]], cols = d[nd - 1], strips = turned == nd - 1 ? 1 : (last + STRIP - 1) / STRIP;
#pragma omp parallel for schedule(static) if (total > SMALL)
	for (int64_t o = 0; o < outer * strips; o++) {
		int64_t rest = o / strips, px = 0, py = 0;
		for (int i = nd - 2; i >= 0; i--) {
			if (i == turned) continue;
			const int64_t at = rest % d[perm[i]];
			rest /= d[perm[i]];
			px += at * sx[i];
			py += at * sy[i];
		}
		const int64_t r = o % strips * STRIP;
		if (turned == nd - 1) copy_row(last, x + px, y + py, add);
		else
			strip(nr_min64(STRIP, last - r), cols, x + px + r * sx[nd - 1], sx[nd - 1], y + py + r, sy[turned], add);
	}
}
