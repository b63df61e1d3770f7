/* The plain reference of the row family, in real: short loops to read and to compare with. Sums run in lanes, as a
 * single float sum of 30000 values would lose three digits. */
#include "math/bf16.h"
#include "math/row.h"

#define LANES 16

static real total(const real *s)
{
	real t = 0;
	for (int k = 0; k < LANES; k++) t += s[k];
	return t;
}

static real sum(int64_t n, const real *x)
{
	real s[LANES] = { 0 };
	for (int64_t i = 0; i < n; i++) s[i % LANES] += x[i];
	return total(s);
}

static real dot(int64_t n, const real *a, const real *b)
{
	real s[LANES] = { 0 };
	for (int64_t i = 0; i < n; i++) s[i % LANES] += a[i] * b[i];
	return total(s);
}

static real dot3(int64_t n, const real *a, const real *b, const real *c)
{
	real s[LANES] = { 0 };
	for (int64_t i = 0; i < n; i++) s[i % LANES] += a[i] * b[i] * c[i];
	return total(s);
}

static real sum_sq_about(int64_t n, const real *x, real m)
{
	real s[LANES] = { 0 };
	for (int64_t i = 0; i < n; i++) s[i % LANES] += (x[i] - m) * (x[i] - m);
	return total(s);
}

static real max(int64_t n, const real *x)
{
	real m = -INFINITY;
	for (int64_t i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
	return m;
}

static void axpy(int64_t n, real a, const real *x, real *y)
{
	for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

static void add(int64_t n, const real *x, const real *y, real *z)
{
	for (int64_t i = 0; i < n; i++) z[i] = x[i] + y[i];
}

static void mul(int64_t n, const real *x, const real *y, real *z, int add_to)
{
	for (int64_t i = 0; i < n; i++) nr_put(&z[i], x[i] * y[i], add_to);
}

static void scale(int64_t n, real a, const real *x, real *y)
{
	for (int64_t i = 0; i < n; i++) y[i] = a * x[i];
}

static void put(int64_t n, const real *x, real *y, int add_to)
{
	for (int64_t i = 0; i < n; i++) nr_put(&y[i], x[i], add_to);
}

static void col_sum(int64_t rows, int64_t C, const real *x, int64_t ldx, real *out)
{
	for (int64_t r = 0; r < rows; r++) add(C, out, x + r * ldx, out);
}

static void bias_add(int64_t rows, int64_t C, real *x, int64_t ldx, const real *bias)
{
	for (int64_t r = 0; r < rows; r++) add(C, x + r * ldx, bias, x + r * ldx);
}

/* Corrected two-pass moments: the rounding d of the first mean is measured in the second pass and taken out of the
 * variance and of y, so that mean >> std keeps its digits. */
static void layer_row(const struct nr_norm_forward *f, const real *x, real *y, real *mean, real *rstd)
{
	const int64_t C = f->C;
	const real m = sum(C, x) / (real)C;
	real s[LANES] = { 0 };
	for (int64_t i = 0; i < C; i++) s[i % LANES] += x[i] - m;
	const real d = total(s) / (real)C;
	const real k = 1 / nr_sqrt(sum_sq_about(C, x, m) / (real)C - d * d + f->eps);
	for (int64_t i = 0; i < C; i++) y[i] = (x[i] - m - d) * k * (f->gain ? f->gain[i] : 1) + (f->bias ? f->bias[i] : 0);
	*mean = m + d;
	*rstd = k;
}

static void scaled_row(const struct nr_norm_forward *f, const real *x, real *y, real *rstd)
{
	const real sq = dot(f->C, x, x), length = nr_sqrt(sq);
	const real k = 1 / (f->kind == NR_NORM_RMS ? nr_sqrt(sq / (real)f->C + f->eps) : length > f->eps ? length : f->eps);
	for (int64_t i = 0; i < f->C; i++) y[i] = x[i] * k * (f->gain ? f->gain[i] : 1);
	*rstd = k;
}

static void norm_forward(const struct nr_norm_forward *f)
{
	for (int64_t r = 0; r < f->rows; r++) {
		const real *x = f->x + r * f->ldx;
		real mean = 0, rstd, *y = f->y + r * f->ldy;
		if (f->b) {
			add(f->C, x, f->b + r * f->ldb, f->sum + r * f->lds);
			x = f->sum + r * f->lds;
		}
		if (f->kind == NR_NORM_LAYER) layer_row(f, x, y, &mean, &rstd);
		else scaled_row(f, x, y, &rstd);
		if (f->mean) f->mean[r] = mean;
		if (f->rstd) f->rstd[r] = rstd;
	}
}

/* With h = (x - mean) rstd and g = dy gain: dx = rstd (g - mean(g) - h mean(g h)). Only layer has a mean, and so mean(g);
 * the length sums instead of averaging; a row below eps has a constant divisor, so that only g is left. */
static void norm_backward(const struct nr_norm_backward *f)
{
	const int64_t C = f->C;
	const int center = f->kind == NR_NORM_LAYER;
	for (int64_t r = 0; r < f->rows; r++) {
		const real *x = f->x + r * f->ldx, *dy = f->dy + r * f->lddy, m = center ? f->mean[r] : 0, k = f->rstd[r];
		real *dx = f->dx + r * f->lddx, sg[LANES] = { 0 }, sgh[LANES] = { 0 };
		for (int64_t i = 0; i < C; i++) {
			const real h = (x[i] - m) * k, g = dy[i] * (f->gain ? f->gain[i] : 1);
			sg[i % LANES] += g;
			sgh[i % LANES] += g * h;
			if (f->dgain) f->dgain[i] += dy[i] * h;
			if (f->dbias) f->dbias[i] += dy[i];
		}
		const real a = center ? total(sg) / (real)C : 0;
		const real b = f->kind != NR_NORM_LENGTH ? total(sgh) / (real)C : k < 1 / f->eps ? total(sgh) : 0;
		for (int64_t i = 0; i < C; i++) {
			const real h = (x[i] - m) * k, g = dy[i] * (f->gain ? f->gain[i] : 1);
			nr_put(&dx[i], k * (g - a - h * b), f->add);
		}
	}
}

/* The largest of scale x + mask, 0 for a row that is masked whole, so that it can be subtracted. */
static real shift_of(int64_t C, const real *x, real scale_by, const real *mask)
{
	real m = -INFINITY;
	for (int64_t i = 0; i < C; i++) {
		const real z = scale_by * x[i] + (mask ? mask[i] : 0);
		m = z > m ? z : m;
	}
	return m == -INFINITY ? 0 : m;
}

static real exp_sum(int64_t C, const real *x, real scale_by, const real *mask, real m)
{
	real s[LANES] = { 0 };
	for (int64_t i = 0; i < C; i++) s[i % LANES] += nr_exp(scale_by * x[i] + (mask ? mask[i] : 0) - m);
	return total(s);
}

static void softmax(int64_t rows, int64_t C, const real *x, int64_t ldx, real scale_by, const real *mask, int64_t ldm,
	real *y, int64_t ldy)
{
	for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy, mask = mask ? mask + ldm : NULL) {
		const real m = shift_of(C, x, scale_by, mask), s = exp_sum(C, x, scale_by, mask, m);
		const real k = s == 0 ? 0 : 1 / s;
		for (int64_t i = 0; i < C; i++) y[i] = k * nr_exp(scale_by * x[i] + (mask ? mask[i] : 0) - m);
	}
}

static void softmax_backward(int64_t rows, int64_t C, const real *y, int64_t ldy, const real *dy, int64_t lddy,
	real scale_by, real *dx, int64_t lddx, int add_to)
{
	for (int64_t r = 0; r < rows; r++, y += ldy, dy += lddy, dx += lddx) {
		const real s = dot(C, y, dy);
		for (int64_t i = 0; i < C; i++) nr_put(&dx[i], scale_by * y[i] * (dy[i] - s), add_to);
	}
}

static void log_softmax(int64_t rows, int64_t C, const real *x, int64_t ldx, real scale_by, const real *mask, int64_t ldm,
	real *y, int64_t ldy)
{
	for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy, mask = mask ? mask + ldm : NULL) {
		const real m = shift_of(C, x, scale_by, mask), s = exp_sum(C, x, scale_by, mask, m);
		const real l = s == 0 ? 0 : nr_log(s);
		for (int64_t i = 0; i < C; i++) y[i] = scale_by * x[i] + (mask ? mask[i] : 0) - m - l;
	}
}

static void log_softmax_backward(int64_t rows, int64_t C, const real *y, int64_t ldy, const real *dy, int64_t lddy,
	real scale_by, real *dx, int64_t lddx, int add_to)
{
	for (int64_t r = 0; r < rows; r++, y += ldy, dy += lddy, dx += lddx) {
		const real s = sum(C, dy);
		for (int64_t i = 0; i < C; i++) nr_put(&dx[i], scale_by * (dy[i] - nr_exp(y[i]) * s), add_to);
	}
}

static void xent_labels(int64_t rows, int64_t C, const real *x, int64_t ldx, const int32_t *label, int32_t ignore,
	real smoothing, real scale_by, real *loss, real *dx, int64_t lddx, int add_to)
{
	const real off = smoothing / (real)C, on = 1 - smoothing;
	for (int64_t r = 0; r < rows; r++, x += ldx, dx = dx ? dx + lddx : NULL) {
		if (label[r] == ignore) {
			if (loss) loss[r] = 0;
			if (dx && !add_to) scale(C, 0, x, dx);
			continue;
		}
		const int valid = label[r] >= 0 && label[r] < C;
		const real m = shift_of(C, x, 1, NULL), s = exp_sum(C, x, 1, NULL, m);
		const real z = valid ? x[label[r]] - m : NAN, k = valid ? 1 / s : NAN;
		real all[LANES] = { 0 };
		for (int64_t i = 0; smoothing > 0 && i < C; i++) all[i % LANES] += x[i] - m;
		if (loss) loss[r] = nr_log(s) - on * z - off * total(all);
		for (int64_t i = 0; dx && i < C; i++) {
			const real t = off + (i == label[r] ? on : 0);
			nr_put(&dx[i], scale_by * (k * nr_exp(x[i] - m) - t), add_to);
		}
	}
}

static void xent_soft(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *target, int64_t ldt, real scale_by,
	real *loss, real *dx, int64_t lddx, int add_to)
{
	for (int64_t r = 0; r < rows; r++, x += ldx, target += ldt, dx = dx ? dx + lddx : NULL) {
		const real m = shift_of(C, x, 1, NULL), s = exp_sum(C, x, 1, NULL, m), t = sum(C, target);
		real tz[LANES] = { 0 };
		for (int64_t i = 0; i < C; i++) tz[i % LANES] += target[i] * (x[i] - m);
		if (loss) loss[r] = t * nr_log(s) - total(tz);
		for (int64_t i = 0; dx && i < C; i++)
			nr_put(&dx[i], scale_by * (t / s * nr_exp(x[i] - m) - target[i]), add_to);
	}
}

static void xent_sigmoid(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *target, int64_t ldt,
	real scale_by, real *loss, real *dx, int64_t lddx, int add_to)
{
	for (int64_t r = 0; r < rows; r++, x += ldx, target += ldt, dx = dx ? dx + lddx : NULL) {
		real s[LANES] = { 0 };
		for (int64_t i = 0; i < C; i++) {
			const real e = nr_exp(-nr_fabs(x[i])), t = target[i];
			s[i % LANES] += (x[i] < 0 ? 0 : x[i]) - x[i] * t + (real)log1p((double)e);
			if (dx) nr_put(&dx[i], scale_by * ((x[i] < 0 ? e : 1) / (1 + e) - t), add_to);
		}
		if (loss) loss[r] = total(s);
	}
}

static void bf16_pack(int64_t n, const real *x, uint16_t *y)
{
	for (int64_t i = 0; i < n; i++) y[i] = nr_bf16_of((float)x[i]);
}

static void bf16_unpack(int64_t n, const uint16_t *x, real *y)
{
	for (int64_t i = 0; i < n; i++) y[i] = nr_bf16_float(x[i]);
}

const struct nr_row_kernels nr_row_plain = {
	.sum = sum, .dot = dot, .dot3 = dot3, .sum_sq_about = sum_sq_about, .max = max, .axpy = axpy, .add = add, .mul = mul,
	.scale = scale, .put = put, .col_sum = col_sum, .bias = bias_add, .norm_forward = norm_forward,
	.norm_backward = norm_backward, .softmax = softmax, .softmax_backward = softmax_backward, .log_softmax = log_softmax,
	.log_softmax_backward = log_softmax_backward, .xent_labels = xent_labels, .xent_soft = xent_soft,
	.xent_sigmoid = xent_sigmoid, .bf16_pack = bf16_pack, .bf16_unpack = bf16_unpack,
};
