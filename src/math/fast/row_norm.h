/* Normalization of rows in vectors; included once, by fast/row.c. The equations are in row_plain.c.
 *
 * A row is read from memory once and found in the first-level cache for its second look; the moments of row r + 1 are begun
 * before row r is written, so that nothing waits for a row's sums. Memory is read as one stream per array: loops over two
 * rows at a time win in cache and lose half the speed beyond it.
 *
 * Layer's sums of x and x^2 are taken in one pass as they are. Where the square of the mean exceeds the variance (or nothing
 * of it is a number) the row is done again about a pivot p, its mean, and written as (x - p) - d with d what p misses: at most
 * one bit cancels, and mean >> std keeps its digits.
 *
 * stream: what is written goes past the caches (math/stream.h); only where a norm stands alone, as the sum of a residual is
 * read again at once. */

struct moments { float pivot, d, rstd; };        /* mean = pivot + d */
struct sums { vf s[4], q[4]; };                  /* of x - pivot and of its square, in four chains */

/* Row r of the input; with b what it becomes once the sum is made. */
INL const float *row_in(const struct nr_norm_forward *f, int64_t r) { return f->x + r * f->ldx; }
INL const float *row_again(const struct nr_norm_forward *f, int64_t r) { return f->b ? f->sum + r * f->lds : row_in(f, r); }

/* n values of row r, from column i on. pivot: they are taken about p. */
INL void moment_step(int center, int pivot, const struct nr_norm_forward *f, int64_t r, vf p, int64_t i, int64_t n, vf *s, vf *q)
{
	vf v = get(row_in(f, r) + i, n);
	if (f->b) {
		v += get(f->b + r * f->ldb + i, n);
		set(f->sum + r * f->lds + i, v, n);
	}
	if (pivot) {
		v -= p;
		if (n < VL) v = (vf)((vi)v & lanes(n));
	}
	if (center) *s += v;
	*q += v * v;
}

INL struct sums sums_of(int center, int pivot, const struct nr_norm_forward *f, int64_t r, float about)
{
	const int64_t C = f->C;
	const vf p = bc(about);
	struct sums t;
	int64_t i = 0;
	for (int j = 0; j < 4; j++) t.s[j] = t.q[j] = bc(0);
	for (; i + 4 * VL <= C; i += 4 * VL)
		for (int j = 0; j < 4; j++) moment_step(center, pivot, f, r, p, i + j * VL, VL, &t.s[j], &t.q[j]);
	for (; i + VL <= C; i += VL) moment_step(center, pivot, f, r, p, i, VL, &t.s[0], &t.q[0]);
	if (i < C) moment_step(center, pivot, f, r, p, i, C - i, &t.s[1], &t.q[1]);
	return t;
}
INL float total(const vf *v) { return hsum((v[0] + v[1]) + (v[2] + v[3])); }

/* n values of y = (x - p) k + o, then the gain and the bias. */
INL void apply_step(int stream, int center, int pivot, const struct nr_norm_forward *f, int64_t r, vf p, vf k, vf o, int64_t i,
	int64_t n)
{
	vf v = get(row_again(f, r) + i, n);
	if (pivot) v -= p;
	v = center ? v * k + o : v * k;
	if (f->bias) v = v * get(f->gain + i, n) + get(f->bias + i, n);
	else if (f->gain) v *= get(f->gain + i, n);
	st_by(stream, f->y + r * f->ldy + i, v, n);
}

INL void write_row(int stream, int center, int pivot, const struct nr_norm_forward *f, int64_t r, struct moments m)
{
	const vf p = bc(m.pivot), k = bc(m.rstd), o = bc(-m.d * m.rstd);
	int64_t i = 0;
	for (; i + 4 * VL <= f->C; i += 4 * VL)
		for (int j = 0; j < 4; j++) apply_step(stream, center, pivot, f, r, p, k, o, i + j * VL, VL);
	for (; i + VL <= f->C; i += VL) apply_step(stream, center, pivot, f, r, p, k, o, i, VL);
	if (i < f->C) apply_step(stream, center, pivot, f, r, p, k, o, i, f->C - i);
}

static __attribute__((noinline)) struct moments moments_about(int64_t C, const float *x, float pivot, float eps)
{
	const struct nr_norm_forward f = { .C = C, .x = x };
	const struct sums t = sums_of(1, 1, &f, 0, pivot);
	const float inv = 1 / (float)C, d = total(t.s) * inv, var = total(t.q) * inv - d * d;
	return (struct moments){ pivot, d, 1 / __builtin_sqrtf((var > 0 ? var : 0) + eps) };
}

INL struct moments moments_of(enum nr_norm_kind kind, const struct nr_norm_forward *f, int64_t r)
{
	const int center = kind == NR_NORM_LAYER;
	const struct sums t = sums_of(center, 0, f, r, 0);
	const float inv = 1 / (float)f->C, square = total(t.q), d = center ? total(t.s) * inv : 0, var = square * inv - d * d;
	if (kind == NR_NORM_LENGTH) {
		const float length = __builtin_sqrtf(square);
		return (struct moments){ 0, 0, 1 / (length > f->eps ? length : f->eps) };
	}
	if (center && !(d * d <= var)) return moments_about(f->C, row_again(f, r), d, f->eps);
	return (struct moments){ 0, d, 1 / __builtin_sqrtf(var + f->eps) };
}

/* The compiler learns whether the pointer is NULL, so that no loop asks. */
#define KNOWN(pointer, there)                                                                                          \
	do {                                                                                                           \
		if (!(there)) (pointer) = 0;                                                                           \
		else if (!(pointer)) __builtin_unreachable();                                                          \
	} while (0)

INL void forward_all(enum nr_norm_kind kind, int stream, int adds, int gain, int bias, const struct nr_norm_forward *all)
{
	struct nr_norm_forward copy = *all, *f = &copy; /* which no store through a pointer can change */
	struct moments m = { 0 }, next = { 0 };
	KNOWN(copy.b, adds);
	KNOWN(copy.gain, gain);
	KNOWN(copy.bias, bias);
	if (f->rows > 0) m = moments_of(kind, f, 0);
	for (int64_t r = 0; r < f->rows; r++, m = next) {
		if (r + 1 < f->rows) next = moments_of(kind, f, r + 1);
		if (f->mean) f->mean[r] = m.pivot + m.d;
		if (f->rstd) f->rstd[r] = m.rstd;
		if (kind == NR_NORM_LAYER && m.pivot != 0) write_row(stream, 1, 1, f, r, m);
		else write_row(stream, kind == NR_NORM_LAYER, 0, f, r, m);
	}
}

INL void forward_by(enum nr_norm_kind kind, int stream, int adds, const struct nr_norm_forward *f)
{
	if (f->gain && f->bias && kind == NR_NORM_LAYER) forward_all(kind, stream, adds, 1, 1, f);
	else if (f->gain) forward_all(kind, stream, adds, 1, 0, f);
	else forward_all(kind, stream, adds, 0, 0, f);
}

INL void forward_as(enum nr_norm_kind kind, int adds, const struct nr_norm_forward *f)
{
	if (adds || !f->stream || !stream_fits(f->C, f->y, f->ldy)) {
		forward_by(kind, 0, adds, f);
		return;
	}
	forward_by(kind, 1, 0, f);
	stream_end();
}

static void norm_forward(const struct nr_norm_forward *f)
{
	switch (2 * f->kind + !!f->b) {
	case 2 * NR_NORM_LAYER: forward_as(NR_NORM_LAYER, 0, f); break;
	case 2 * NR_NORM_LAYER + 1: forward_as(NR_NORM_LAYER, 1, f); break;
	case 2 * NR_NORM_RMS: forward_as(NR_NORM_RMS, 0, f); break;
	case 2 * NR_NORM_RMS + 1: forward_as(NR_NORM_RMS, 1, f); break;
	case 2 * NR_NORM_LENGTH: forward_as(NR_NORM_LENGTH, 0, f); break;
	default: forward_as(NR_NORM_LENGTH, 1, f); break;
	}
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

struct means { float a, b; };                   /* of g = dy gain and of g h over a row */

/* n values of row r, at column i: their sums of g and g h, and their share of dgain and dbias. stream: the data come from memory,
 * and rows further on are asked for. */
INL void sums_step(int stream, int center, const struct nr_norm_backward *f, int64_t r, vf m, vf k, int64_t i, int64_t n, vf *sg, vf *sgh)
{
	const vf v = get(f->x + r * f->ldx + i, n), t = get(f->dy + r * f->lddy + i, n), g = f->gain ? t * get(f->gain + i, n) : t;
	const vf h = (center ? v - m : v) * k;
	if (stream) __builtin_prefetch(f->x + (r + 3) * f->ldx + i, 0, 2), __builtin_prefetch(f->dy + (r + 3) * f->lddy + i, 0, 2);
	if (center) *sg += g;
	*sgh += g * h;
	if (f->dgain) set(f->dgain + i, get(f->dgain + i, n) + t * h, n);
	if (center && f->dbias) set(f->dbias + i, get(f->dbias + i, n) + t, n);
}

INL struct means row_means(int stream, enum nr_norm_kind kind, const struct nr_norm_backward *f, int64_t r)
{
	const int center = kind == NR_NORM_LAYER;
	const int64_t C = f->C;
	const vf m = bc(center ? f->mean[r] : 0), k = bc(f->rstd[r]);
	const float inv = kind != NR_NORM_LENGTH ? 1 / (float)C : f->rstd[r] < 1 / f->eps ? 1 : 0;
	vf a0 = bc(0), a1 = bc(0), b0 = bc(0), b1 = bc(0);
	int64_t i = 0;
	for (; i + 2 * VL <= C; i += 2 * VL) {
		sums_step(stream, center, f, r, m, k, i, VL, &a0, &b0);
		sums_step(stream, center, f, r, m, k, i + VL, VL, &a1, &b1);
	}
	if (i + VL <= C) {
		sums_step(stream, center, f, r, m, k, i, VL, &a0, &b0);
		i += VL;
	}
	if (i < C) sums_step(stream, center, f, r, m, k, i, C - i, &a1, &b1);
	return (struct means){ center ? hsum(a0 + a1) * inv : 0, hsum(b0 + b1) * inv };
}

/* n values of dx = k (g - a - h b) = (g - a) k - (x - m) k k b. g is rounded before a is taken off, as it was in the sum
 * that gave a: where all g are equal (one channel) nothing must be left, and k may be large. */
INL void dx_step(int stream, int center, int add_to, const struct nr_norm_backward *f, int64_t r, vf m, vf k, vf a, vf kkb,
	int64_t i, int64_t n)
{
	const vf v = get(f->x + r * f->ldx + i, n), t = get(f->dy + r * f->lddy + i, n);
	float *dx = f->dx + r * f->lddx + i;
	vf g = f->gain ? t * get(f->gain + i, n) : t;
	if (center) g = rounded(g);
	vf d = center ? (g - a) * k - (v - m) * kkb : g * k - v * kkb;
	if (add_to) d += get(dx, n);
	st_by(stream, dx, d, n);
}

INL void dx_row(int stream, int center, int add_to, const struct nr_norm_backward *f, int64_t r, struct means t)
{
	const int64_t C = f->C;
	const float rstd = f->rstd[r];
	const vf m = bc(center ? f->mean[r] : 0), k = bc(rstd), a = bc(t.a), kkb = bc(rstd * rstd * t.b);
	int64_t i = 0;
	for (; i + 4 * VL <= C; i += 4 * VL)
		for (int j = 0; j < 4; j++) dx_step(stream, center, add_to, f, r, m, k, a, kkb, i + j * VL, VL);
	for (; i + VL <= C; i += VL) dx_step(stream, center, add_to, f, r, m, k, a, kkb, i, VL);
	if (i < C) dx_step(stream, center, add_to, f, r, m, k, a, kkb, i, C - i);
}

/* whole: gain and the gradients are all there. */
INL void backward_all(enum nr_norm_kind kind, int stream, int whole, int add_to, const struct nr_norm_backward *all)
{
	struct nr_norm_backward copy = *all, *f = &copy;
	const int center = kind == NR_NORM_LAYER;
	if (whole) {
		KNOWN(copy.gain, 1);
		KNOWN(copy.dgain, 1);
		KNOWN(copy.dbias, center);
	}
	for (int64_t r = 0; r < f->rows; r++) dx_row(stream, center, add_to, f, r, row_means(stream, kind, f, r));
}

INL void backward_as(enum nr_norm_kind kind, const struct nr_norm_backward *f)
{
	const int whole = f->gain && f->dgain && (f->dbias || kind != NR_NORM_LAYER);
	if (whole && !f->add && f->stream && f->dx != f->dy && stream_fits(f->C, f->dx, f->lddx)) {
		backward_all(kind, 1, 1, 0, f);
		stream_end();
	} else if (whole && f->add) {
		backward_all(kind, 0, 1, 1, f);
	} else if (whole) {
		backward_all(kind, 0, 1, 0, f);
	} else if (f->add) {
		backward_all(kind, 0, 0, 1, f);
	} else {
		backward_all(kind, 0, 0, 0, f);
	}
}

static void norm_backward(const struct nr_norm_backward *f)
{
	switch (f->kind) {
	case NR_NORM_LAYER: backward_as(NR_NORM_LAYER, f); break;
	case NR_NORM_RMS: backward_as(NR_NORM_RMS, f); break;
	case NR_NORM_LENGTH: backward_as(NR_NORM_LENGTH, f); break;
	}
}
