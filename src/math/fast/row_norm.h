/* Layer and RMS normalization in vectors; included once, by fast/row.c. The equations are in row_plain.c.
 *
 * Four rows form a block that stays in the first-level cache: their moments are made row after row (so that memory is
 * read as one stream), reduced together, and then the rows are written. Layer's moments need one pass: they are taken
 * about a pivot p, the mean of the row's first vector, which removes the offset; with d = mean - p the variance is
 * mean((x - p)^2) - d^2. Where d^2 exceeds the variance (one row in 200 of normal numbers) the row is done again about
 * p + d, so at most one bit cancels and mean >> std keeps its digits. */
struct forward {
	int64_t C;
	const float *x, *b; /* rows of C; b: added to x first, or NULL */
	int64_t ldx, ldb;
	float *sum, *y;     /* sum: x + b, only with b */
	int64_t lds, ldy;
	const float *gain, *bias;
	float eps, *mean, *rstd;
};

/* n values of a row about p (center) or as they are: into the sum *s and the sum of squares *q. */
INL void moment_step(int center, const float *x, const float *b, float *sum_to, vf p, int64_t n, vf *s, vf *q)
{
	vf v = get(x, n);
	if (b) {
		v += get(b, n);
		set(sum_to, v, n);
	}
	if (center) {
		v -= p;
		if (n < VL) v = (vf)((vi)v & lanes(n));
		*s += v;
	}
	*q += v * v;
}

INL void moments(int center, int64_t C, const float *x, const float *b, float *sum_to, float pivot, vf *s, vf *q)
{
	const vf p = bc(pivot), zero = bc(0);
	vf s0 = zero, s1 = zero, s2 = zero, s3 = zero, q0 = zero, q1 = zero, q2 = zero, q3 = zero;
	int64_t i = 0;
#define STEP(k, n) moment_step(center, x + i, b ? b + i : 0, b ? sum_to + i : 0, p, n, &s##k, &q##k)
	while (i + 4 * VL <= C) {
		STEP(0, VL), i += VL;
		STEP(1, VL), i += VL;
		STEP(2, VL), i += VL;
		STEP(3, VL), i += VL;
	}
	for (; i + VL <= C; i += VL) STEP(0, VL);
	if (i < C) STEP(1, C - i);
#undef STEP
	*s = (s0 + s1) + (s2 + s3);
	*q = (q0 + q1) + (q2 + q3);
}

/* n values of y = (x - p) k + o, then the gain and the bias. */
INL void apply_step(int center, const float *x, vf p, vf k, vf o, const float *gain, const float *bias, float *y, int64_t i,
	int64_t n)
{
	vf v = get(x + i, n);
	v = center ? (v - p) * k + o : v * k;
	if (gain && bias) v = v * get(gain + i, n) + get(bias + i, n);
	else if (gain) v *= get(gain + i, n);
	else if (bias) v += get(bias + i, n);
	set(y + i, v, n);
}

INL void apply(int center, int64_t C, const float *x, float pivot, float rstd, float offset, const float *gain,
	const float *bias, float *y)
{
	const vf p = bc(pivot), k = bc(rstd), o = bc(offset);
	int64_t i = 0;
	for (; i + VL <= C; i += VL) apply_step(center, x, p, k, o, gain, bias, y, i, VL);
	if (i < C) apply_step(center, x, p, k, o, gain, bias, y, i, C - i);
}

struct moments { float pivot, d, rstd; };

/* The moments of row r; with b also the row's sum. */
INL struct moments row_moments(int center, const struct forward *f, int64_t r)
{
	const int64_t C = f->C, n = C < VL ? C : VL;
	const float *x = f->x + r * f->ldx, *b = f->b ? f->b + r * f->ldb : 0, inv = 1 / (float)C;
	float *sum_to = f->b ? f->sum + r * f->lds : 0, p = 0, d = 0;
	vf s, q;
	if (center) p = hsum(b ? ldn(x, n) + ldn(b, n) : ldn(x, n)) * (1 / (float)n);
	moments(center, C, x, b, sum_to, p, &s, &q);
	if (center) d = hsum(s) * inv;
	float var = hsum(q) * inv - d * d;
	if (center && d * d > var) {
		p += d;
		moments(1, C, b ? sum_to : x, 0, 0, p, &s, &q);
		d = hsum(s) * inv;
		var = hsum(q) * inv - d * d;
		if (var < 0) var = 0;
	}
	return (struct moments){ p, d, 1 / __builtin_sqrtf(var + f->eps) };
}

/* The moments of row r + 1 are begun before row r is written: the processor need not wait for either's sum. */
INL void forward_all(int center, int64_t rows, struct forward f)
{
	const float *x = f.b ? f.sum : f.x; /* from the second look on */
	const int64_t ldx = f.b ? f.lds : f.ldx;
	struct moments m = { 0 }, next = { 0 };
	if (rows > 0) m = row_moments(center, &f, 0);
	for (int64_t r = 0; r < rows; r++, m = next) {
		if (r + 1 < rows) next = row_moments(center, &f, r + 1);
		if (f.mean) f.mean[r] = m.pivot + m.d;
		if (f.rstd) f.rstd[r] = m.rstd;
		apply(center, f.C, x + r * ldx, m.pivot, m.rstd, -m.d * m.rstd, f.gain, f.bias, f.y + r * f.ldy);
	}
}

static void layer_forward(int64_t rows, int64_t C, const float *x, int64_t ldx, const float *gain, const float *bias,
	float eps, float *y, int64_t ldy, float *mean, float *rstd)
{
	forward_all(1, rows, (struct forward){ .C = C, .x = x, .ldx = ldx, .y = y, .ldy = ldy, .gain = gain, .bias = bias,
		.eps = eps, .mean = mean, .rstd = rstd });
}

static void add_layer_forward(int64_t rows, int64_t C, const float *a, int64_t lda, const float *b, int64_t ldb,
	const float *gain, const float *bias, float eps, float *s, int64_t lds, float *y, int64_t ldy, float *mean,
	float *rstd)
{
	forward_all(1, rows, (struct forward){ .C = C, .x = a, .ldx = lda, .b = b, .ldb = ldb, .sum = s, .lds = lds, .y = y,
		.ldy = ldy, .gain = gain, .bias = bias, .eps = eps, .mean = mean, .rstd = rstd });
}

static void rms_forward(int64_t rows, int64_t C, const float *x, int64_t ldx, const float *gain, float eps, float *y,
	int64_t ldy, float *rstd)
{
	forward_all(0, rows, (struct forward){ .C = C, .x = x, .ldx = ldx, .y = y, .ldy = ldy, .gain = gain, .eps = eps,
		.rstd = rstd });
}

static void add_rms_forward(int64_t rows, int64_t C, const float *a, int64_t lda, const float *b, int64_t ldb,
	const float *gain, float eps, float *s, int64_t lds, float *y, int64_t ldy, float *rstd)
{
	forward_all(0, rows, (struct forward){ .C = C, .x = a, .ldx = lda, .b = b, .ldb = ldb, .sum = s, .lds = lds, .y = y,
		.ldy = ldy, .gain = gain, .eps = eps, .rstd = rstd });
}

struct backward {
	int64_t C;
	const float *x, *dy;
	int64_t ldx, lddy;
	const float *gain, *mean, *rstd;
	float *dx;
	int64_t lddx;
	int add;
	float *dgain, *dbias;
};

/* n values of a row: the sums of g = dy gain and of g h, and the row's share of dgain and dbias, at column i. */
INL void sums_step(int center, const struct backward *f, const float *x, const float *dy, vf m, vf k, int64_t i, int64_t n,
	vf *sg, vf *sgh)
{
	const vf v = get(x + i, n), t = get(dy + i, n), g = f->gain ? t * get(f->gain + i, n) : t;
	const vf h = (center ? v - m : v) * k;
	if (center) *sg += g;
	*sgh += g * h;
	if (f->dgain) set(f->dgain + i, get(f->dgain + i, n) + t * h, n);
	if (center && f->dbias) set(f->dbias + i, get(f->dbias + i, n) + t, n);
}

/* The means over row r: a of g, b of g h. */
INL void row_means(int center, const struct backward *f, int64_t r, float *a, float *b)
{
	const int64_t C = f->C;
	const float *x = f->x + r * f->ldx, *dy = f->dy + r * f->lddy;
	const vf m = bc(center ? f->mean[r] : 0), k = bc(f->rstd[r]), zero = bc(0);
	vf a0 = zero, a1 = zero, b0 = zero, b1 = zero;
	int64_t i = 0;
	for (; i + 2 * VL <= C; i += 2 * VL) {
		sums_step(center, f, x, dy, m, k, i, VL, &a0, &b0);
		sums_step(center, f, x, dy, m, k, i + VL, VL, &a1, &b1);
	}
	if (i + VL <= C) {
		sums_step(center, f, x, dy, m, k, i, VL, &a0, &b0);
		i += VL;
	}
	if (i < C) sums_step(center, f, x, dy, m, k, i, C - i, &a1, &b1);
	const float inv = 1 / (float)C;
	*a = center ? hsum(a0 + a1) * inv : 0;
	*b = hsum(b0 + b1) * inv;
}

/* n values of dx = k (g - a - h b) = (g - a) k - (x - m) k k b. g is rounded before a is taken off, as it was in the sum
 * that gave a: where all g are equal (one channel) nothing must be left, and k may be large. */
INL void dx_step(int center, int add_to, const float *x, const float *dy, const float *gain, vf m, vf k, vf a, vf kkb,
	float *dx, int64_t i, int64_t n)
{
	const vf v = get(x + i, n), t = get(dy + i, n);
	vf g = gain ? t * get(gain + i, n) : t;
	if (center) __asm__("" : "+v"(g)); /* keeps the compiler from contracting the product and the difference */
	vf d = center ? (g - a) * k - (v - m) * kkb : g * k - v * kkb;
	if (add_to) d += get(dx + i, n);
	set(dx + i, d, n);
}

INL void dx_row(int center, int add_to, const struct backward *f, int64_t r, float a, float b)
{
	const int64_t C = f->C;
	const float *x = f->x + r * f->ldx, *dy = f->dy + r * f->lddy, *gain = f->gain;
	const float rstd = f->rstd[r];
	float *dx = f->dx + r * f->lddx;
	const vf m = bc(center ? f->mean[r] : 0), k = bc(rstd), mean_g = bc(a), kkb = bc(rstd * rstd * b);
	int64_t i = 0;
	for (; i + VL <= C; i += VL) dx_step(center, add_to, x, dy, gain, m, k, mean_g, kkb, dx, i, VL);
	if (i < C) dx_step(center, add_to, x, dy, gain, m, k, mean_g, kkb, dx, i, C - i);
}

/* The means of row r + 1 are begun before dx of row r is written: the processor need not wait for either's sum. */
INL void backward_all(int center, int64_t rows, struct backward f)
{
	float a = 0, b = 0, next_a = 0, next_b = 0;
	if (rows > 0) row_means(center, &f, 0, &a, &b);
	for (int64_t r = 0; r < rows; r++, a = next_a, b = next_b) {
		if (r + 1 < rows) row_means(center, &f, r + 1, &next_a, &next_b);
		if (f.add) dx_row(center, 1, &f, r, a, b);
		else dx_row(center, 0, &f, r, a, b);
	}
}

static void layer_backward(int64_t rows, int64_t C, const float *x, int64_t ldx, const float *dy, int64_t lddy,
	const float *gain, const float *mean, const float *rstd, float *dx, int64_t lddx, int add_to, float *dgain,
	float *dbias)
{
	backward_all(1, rows, (struct backward){ .C = C, .x = x, .ldx = ldx, .dy = dy, .lddy = lddy, .gain = gain,
		.mean = mean, .rstd = rstd, .dx = dx, .lddx = lddx, .add = add_to, .dgain = dgain, .dbias = dbias });
}

static void rms_backward(int64_t rows, int64_t C, const float *x, int64_t ldx, const float *dy, int64_t lddy,
	const float *gain, const float *rstd, float *dx, int64_t lddx, int add_to, float *dgain)
{
	backward_all(0, rows, (struct backward){ .C = C, .x = x, .ldx = ldx, .dy = dy, .lddy = lddy, .gain = gain,
		.rstd = rstd, .dx = dx, .lddx = lddx, .add = add_to, .dgain = dgain });
}
