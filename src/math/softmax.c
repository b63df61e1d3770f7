/* Softmax and cross entropies: threaded drivers over chunks of rows; the kernels are in the row family. */
#include "math/softmax.h"

/* Rows per chunk: about 16384 values, so that many short rows and few long ones both split well. */
static int64_t step_of(int64_t C) { return nr_max64(1, NR_ARRAY_CHUNK / nr_max64(C, 1)); }
static inline const real *mask_at(const real *mask, int64_t i) { return mask ? mask + i : NULL; }
static inline real *at(real *p, int64_t i) { return p ? p + i : NULL; }

void nr_softmax_forward(int64_t rows, int64_t C, const real *x, int64_t ldx, real scale, const real *mask, int64_t ldm,
	real *y, int64_t ldy)
{
	const int64_t step = step_of(C);
#pragma omp parallel for schedule(static) if (rows * C > NR_ARRAY_CHUNK)
	for (int64_t r = 0; r < rows; r += step)
		nr_row_active->softmax(nr_min64(step, rows - r), C, x + r * ldx, ldx, scale, mask_at(mask, r * ldm), ldm,
			y + r * ldy, ldy);
}

void nr_softmax_backward(int64_t rows, int64_t C, const real *y, int64_t ldy, const real *dy, int64_t lddy, real scale,
	real *dx, int64_t lddx, int add)
{
	const int64_t step = step_of(C);
#pragma omp parallel for schedule(static) if (rows * C > NR_ARRAY_CHUNK)
	for (int64_t r = 0; r < rows; r += step)
		nr_row_active->softmax_backward(nr_min64(step, rows - r), C, y + r * ldy, ldy, dy + r * lddy, lddy, scale,
			dx + r * lddx, lddx, add);
}

void nr_log_softmax_forward(int64_t rows, int64_t C, const real *x, int64_t ldx, real scale, const real *mask,
	int64_t ldm, real *y, int64_t ldy)
{
	const int64_t step = step_of(C);
#pragma omp parallel for schedule(static) if (rows * C > NR_ARRAY_CHUNK)
	for (int64_t r = 0; r < rows; r += step)
		nr_row_active->log_softmax(nr_min64(step, rows - r), C, x + r * ldx, ldx, scale, mask_at(mask, r * ldm), ldm,
			y + r * ldy, ldy);
}

void nr_log_softmax_backward(int64_t rows, int64_t C, const real *y, int64_t ldy, const real *dy, int64_t lddy,
	real scale, real *dx, int64_t lddx, int add)
{
	const int64_t step = step_of(C);
#pragma omp parallel for schedule(static) if (rows * C > NR_ARRAY_CHUNK)
	for (int64_t r = 0; r < rows; r += step)
		nr_row_active->log_softmax_backward(nr_min64(step, rows - r), C, y + r * ldy, ldy, dy + r * lddy, lddy, scale,
			dx + r * lddx, lddx, add);
}

int64_t nr_xent_count(int64_t rows, const int32_t *label, int32_t ignore)
{
	int64_t n = 0;
	for (int64_t r = 0; r < rows; r++) n += label[r] != ignore;
	return n;
}

void nr_xent_labels(int64_t rows, int64_t C, const real *x, int64_t ldx, const int32_t *label, int32_t ignore,
	real smoothing, real scale, real *loss, real *dx, int64_t lddx, int add)
{
	const int64_t step = step_of(C);
#pragma omp parallel for schedule(static) if (rows * C > NR_ARRAY_CHUNK)
	for (int64_t r = 0; r < rows; r += step)
		nr_row_active->xent_labels(nr_min64(step, rows - r), C, x + r * ldx, ldx, label + r, ignore, smoothing, scale,
			at(loss, r), at(dx, r * lddx), lddx, add);
}

void nr_xent_soft(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *target, int64_t ldt, real scale,
	real *loss, real *dx, int64_t lddx, int add)
{
	const int64_t step = step_of(C);
#pragma omp parallel for schedule(static) if (rows * C > NR_ARRAY_CHUNK)
	for (int64_t r = 0; r < rows; r += step)
		nr_row_active->xent_soft(nr_min64(step, rows - r), C, x + r * ldx, ldx, target + r * ldt, ldt, scale,
			at(loss, r), at(dx, r * lddx), lddx, add);
}

void nr_xent_sigmoid(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *target, int64_t ldt, real scale,
	real *loss, real *dx, int64_t lddx, int add)
{
	const int64_t step = step_of(C);
#pragma omp parallel for schedule(static) if (rows * C > NR_ARRAY_CHUNK)
	for (int64_t r = 0; r < rows; r += step)
		nr_row_active->xent_sigmoid(nr_min64(step, rows - r), C, x + r * ldx, ldx, target + r * ldt, ldt, scale,
			at(loss, r), at(dx, r * lddx), lddx, add);
}
