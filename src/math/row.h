/* Rows of channels: sums, elementwise passes, normalization of a row, softmax and losses; the kernels of the `row` family
 * and the threaded drivers on top.
 *
 * Table entries and the inline wrappers are serial. Names with `array` and the norm drivers run threads over fixed
 * chunks. ld* is the distance between rows in values; a vector of C is gain, bias or a partial sum. Softmax and the
 * losses have their drivers in softmax.h, bf16 in bf16.h. Lengths may be 0; pointers need no alignment. */
#ifndef NR_ROW_H
#define NR_ROW_H

#include <stddef.h>

#include "math/chunk.h"
#include "math/isa.h"

/* What a row is freed of and divided by; rstd is one over the divisor. */
enum nr_norm_kind {
	NR_NORM_LAYER,      /* (x - mean) / sqrt(var + eps) */
	NR_NORM_RMS,        /* x / sqrt(mean(x^2) + eps) */
	NR_NORM_LENGTH,     /* x / max(|x|, eps) */
};
struct nr_norm_forward {                /* y = (x + b - mean) rstd gain + bias */
	enum nr_norm_kind kind;
	int64_t rows, C;
	const real *x, *b;              /* b: added first, or NULL */
	int64_t ldx, ldb;
	real *sum, *y;                  /* sum = x + b, only with b, may be x or b; y may be x */
	int64_t lds, ldy;
	const real *gain, *bias;        /* (C), or NULL: 1, 0; bias: layer only, and not without gain */
	real eps, *mean, *rstd;         /* (rows), or NULL: not wanted; mean: layer only */
	int stream;                     /* y may go past the caches, see stream.h; not with b */
};
struct nr_norm_backward {
	enum nr_norm_kind kind;
	int64_t rows, C;
	const real *x, *dy;
	int64_t ldx, lddy;
	const real *gain, *mean, *rstd; /* as forward left them */
	real eps;                       /* length: rows below it have a constant divisor */
	real *dx;                       /* may be dy */
	int64_t lddx;
	int add;                        /* dx is added to */
	int stream;                     /* dx may go past the caches */
	real *dgain, *dbias;            /* (C), these rows' part is added; NULL: not wanted; dbias: layer only */
};

struct nr_row_kernels {
	real (*sum)(int64_t n, const real *x);
	real (*dot)(int64_t n, const real *a, const real *b);
	real (*dot3)(int64_t n, const real *a, const real *b, const real *c);
	real (*sum_sq_about)(int64_t n, const real *x, real m); /* sum (x - m)^2 */
	real (*max)(int64_t n, const real *x);                  /* -inf when n = 0 */
	void (*axpy)(int64_t n, real a, const real *x, real *y);              /* y += a x */
	void (*add)(int64_t n, const real *x, const real *y, real *z);        /* z = x + y */
	void (*mul)(int64_t n, const real *x, const real *y, real *z, int add); /* z = x y, or += */
	void (*scale)(int64_t n, real a, const real *x, real *y);             /* y = a x */
	void (*put)(int64_t n, const real *x, real *y, int add);              /* y = x, or += */
	/* out (C) += the column sums of x (rows,C) */
	void (*col_sum)(int64_t rows, int64_t C, const real *x, int64_t ldx, real *out);
	/* x (rows,C) += bias (C) */
	void (*bias)(int64_t rows, int64_t C, real *x, int64_t ldx, const real *bias);

	void (*norm_forward)(const struct nr_norm_forward *);
	void (*norm_backward)(const struct nr_norm_backward *);

	/* See softmax.h for what these compute. */
	void (*softmax)(int64_t rows, int64_t C, const real *x, int64_t ldx, real scale, const real *mask, int64_t ldm,
		real *y, int64_t ldy);
	void (*softmax_backward)(int64_t rows, int64_t C, const real *y, int64_t ldy, const real *dy, int64_t lddy,
		real scale, real *dx, int64_t lddx, int add);
	void (*log_softmax)(int64_t rows, int64_t C, const real *x, int64_t ldx, real scale, const real *mask,
		int64_t ldm, real *y, int64_t ldy);
	void (*log_softmax_backward)(int64_t rows, int64_t C, const real *y, int64_t ldy, const real *dy, int64_t lddy,
		real scale, real *dx, int64_t lddx, int add);
	void (*xent_labels)(int64_t rows, int64_t C, const real *x, int64_t ldx, const int32_t *label, int32_t ignore,
		real smoothing, real scale, real *loss, real *dx, int64_t lddx, int add);
	void (*xent_soft)(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *target, int64_t ldt,
		real scale, real *loss, real *dx, int64_t lddx, int add);
	void (*xent_sigmoid)(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *target, int64_t ldt,
		real scale, real *loss, real *dx, int64_t lddx, int add);

	void (*bf16_pack)(int64_t n, const real *x, uint16_t *y);
	void (*bf16_unpack)(int64_t n, const uint16_t *x, real *y);
};
NR_FAMILY_DECLARE(row);

/* Serial, through the active table: for use inside a caller's own chunks. */
static inline real nr_sum(int64_t n, const real *x) { return nr_row_active->sum(n, x); }
static inline real nr_dot(int64_t n, const real *a, const real *b) { return nr_row_active->dot(n, a, b); }
static inline real nr_dot3(int64_t n, const real *a, const real *b, const real *c)
{
	return nr_row_active->dot3(n, a, b, c);
}
static inline real nr_sum_sq_about(int64_t n, const real *x, real m) { return nr_row_active->sum_sq_about(n, x, m); }
static inline real nr_row_max(int64_t n, const real *x) { return nr_row_active->max(n, x); }
static inline void nr_row_axpy(int64_t n, real a, const real *x, real *y) { nr_row_active->axpy(n, a, x, y); }
static inline void nr_row_add(int64_t n, const real *x, const real *y, real *z) { nr_row_active->add(n, x, y, z); }
static inline void nr_row_mul(int64_t n, const real *x, const real *y, real *z, int add)
{
	nr_row_active->mul(n, x, y, z, add);
}
static inline void nr_row_scale(int64_t n, real a, const real *x, real *y) { nr_row_active->scale(n, a, x, y); }
static inline void nr_row_put(int64_t n, const real *x, real *y, int add) { nr_row_active->put(n, x, y, add); }

/* Whole arrays, threaded over chunks of NR_ARRAY_CHUNK values. Outputs may be inputs. */
#define NR_ARRAY_CHUNK 16384
static inline int64_t nr_array_chunks(int64_t n) { return (n + NR_ARRAY_CHUNK - 1) / NR_ARRAY_CHUNK; }
void nr_array_add(int64_t n, const real *x, const real *y, real *z);
void nr_array_mul(int64_t n, const real *x, const real *y, real *z, int add);
void nr_array_axpy(int64_t n, real a, const real *x, real *y);
void nr_array_scale(int64_t n, real a, const real *x, real *y);
void nr_array_put(int64_t n, const real *x, real *y, int add);
void nr_array_fill(int64_t n, real v, real *y);
/* Sums of all values; scratch: nr_array_chunks(n) values. */
real nr_array_sum(int64_t n, const real *x, real *scratch);
real nr_array_dot(int64_t n, const real *x, const real *y, real *scratch);

/* part (chunks,C) summed over chunks in order into out (C), overwritten or added to. Threaded over columns. */
void nr_fold(int64_t chunks, int64_t C, const real *part, real *out, int add);
/* Column sums of x (rows,C) into out (C); scratch: nr_col_sum_scratch values. */
static inline size_t nr_col_sum_scratch(int64_t rows, int64_t C) { return (size_t)(nr_chunks(rows) * C); }
void nr_col_sum(int64_t rows, int64_t C, const real *x, int64_t ldx, real *out, int add, real *scratch);
/* x (rows,C) += bias (C) */
void nr_bias_add(int64_t rows, int64_t C, real *x, int64_t ldx, const real *bias);

/* Layer norm of packed rows, threaded over chunks of NR_CHUNK rows; mean, rstd may be NULL forward. */
void nr_layer_forward(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *gain, const real *bias, real eps,
	real *y, int64_t ldy, real *mean, real *rstd);
void nr_add_layer_forward(int64_t rows, int64_t C, const real *a, int64_t lda, const real *b, int64_t ldb,
	const real *gain, const real *bias, real eps, real *sum, int64_t lds, real *y, int64_t ldy, real *mean, real *rstd);
/* Bit flags of what to add to instead of overwriting. */
enum { NR_ADD_X = 1, NR_ADD_GAIN = 2, NR_ADD_BIAS = 4 };
/* dgain, dbias (C) may be NULL; scratch: nr_norm_scratch values. */
static inline size_t nr_norm_scratch(int64_t rows, int64_t C) { return (size_t)(2 * nr_chunks(rows) * C); }
void nr_layer_backward(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *dy, int64_t lddy,
	const real *gain, const real *mean, const real *rstd, real *dx, int64_t lddx, real *dgain, real *dbias,
	unsigned add, real *scratch);

#endif
