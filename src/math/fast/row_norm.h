/* Normalization of rows in vectors; included once, by fast/row.c. The equations are in row_plain.c.
 *
 * A row is read from memory once: while row r is written, the moments of row r + 1 are taken, in one loop, so that loads,
 * sums and stores fill the same cycles. Layer's moments need one pass: they are taken about a pivot p, the mean of the row's
 * first vector, which removes the offset; with d = mean - p the variance is mean((x - p)^2) - d^2. Where d^2 exceeds the
 * variance (one row in 200 of normal numbers) the row is done again about p + d, so at most one bit cancels and mean >> std
 * keeps its digits. Backward takes rows in pairs, which share their look at the gain and at the sums for it. */

struct moments { float pivot, d, rstd; };
struct sums { vf s0, s1, q0, q1; };     /* of x - pivot and of its square, in two chains */

/* Row r of the input; with b what it becomes once the sum is made. */
INL const float *row_in(const struct nr_norm_forward *f, int64_t r) { return f->x + r * f->ldx; }
INL const float *row_again(const struct nr_norm_forward *f, int64_t r) { return f->b ? f->sum + r * f->lds : row_in(f, r); }

/* n values of row r, from column i on, about p (center) or as they are. */
INL void moment_step(int center, const struct nr_norm_forward *f, int64_t r, vf p, int64_t i, int64_t n, vf *s, vf *q)
{
	vf v = get(row_in(f, r) + i, n);
	if (f->b) {
		v += get(f->b + r * f->ldb + i, n);
		set(f->sum + r * f->lds + i, v, n);
	}
	if (center) {
		v -= p;
		if (n < VL) v = (vf)((vi)v & lanes(n));
		*s += v;
	}
	*q += v * v;
}

/* n values of y = (x - p) k + o, then the gain and the bias. */
INL void apply_step(int center, const struct nr_norm_forward *f, int64_t r, vf p, vf k, vf o, int64_t i, int64_t n)
{
	vf v = get(row_again(f, r) + i, n);
	v = center ? (v - p) * k + o : v * k;
	if (f->bias) v = v * get(f->gain + i, n) + get(f->bias + i, n);
	else if (f->gain) v *= get(f->gain + i, n);
	set(f->y + r * f->ldy + i, v, n);
}

/* Sums of row r + 1 about `pivot` (unless `last`) and, with m, row r written. */
INL struct sums pass(int center, const struct nr_norm_forward *f, int64_t r, const struct moments *m, int last, float pivot)
{
	const int64_t C = f->C;
	const vf next = bc(pivot), p = bc(m ? m->pivot : 0), k = bc(m ? m->rstd : 0), o = bc(m ? -m->d * m->rstd : 0), zero = bc(0);
	struct sums t = { zero, zero, zero, zero };
	int64_t i = 0;
#define STEP(n, s, q)                                                                                                  \
	do {                                                                                                           \
		if (!last) moment_step(center, f, r + 1, next, i, n, &t.s, &t.q);                                      \
		if (m) apply_step(center, f, r, p, k, o, i, n);                                                        \
	} while (0)
	while (i + 2 * VL <= C) {
		STEP(VL, s0, q0);
		i += VL;
		STEP(VL, s1, q1);
		i += VL;
	}
	if (i + VL <= C) {
		STEP(VL, s0, q0);
		i += VL;
	}
	if (i < C) STEP(C - i, s1, q1);
#undef STEP
	return t;
}

INL float pivot_of(const struct nr_norm_forward *f, int64_t r)
{
	const int64_t n = f->C < VL ? f->C : VL;
	return hsum(f->b ? ldn(row_in(f, r), n) + ldn(f->b + r * f->ldb, n) : ldn(row_in(f, r), n)) * (1 / (float)n);
}

/* One row about a better pivot: rare. */
static __attribute__((noinline)) struct moments moments_again(int64_t C, const float *x, float pivot, float eps)
{
	const struct nr_norm_forward f = { .C = C, .x = x };
	const struct sums t = pass(1, &f, -1, 0, 0, pivot);
	const float inv = 1 / (float)C, d = hsum(t.s0 + t.s1) * inv, var = hsum(t.q0 + t.q1) * inv - d * d;
	return (struct moments){ pivot, d, 1 / __builtin_sqrtf((var > 0 ? var : 0) + eps) };
}

/* The moments of row r from its sums. */
INL struct moments moments_of(enum nr_norm_kind kind, const struct nr_norm_forward *f, int64_t r, struct sums t, float pivot)
{
	const float inv = 1 / (float)f->C, square = hsum(t.q0 + t.q1);
	if (kind == NR_NORM_LENGTH) {
		const float length = __builtin_sqrtf(square);
		return (struct moments){ 0, 0, 1 / (length > f->eps ? length : f->eps) };
	}
	const float d = kind == NR_NORM_LAYER ? hsum(t.s0 + t.s1) * inv : 0, var = square * inv - d * d;
	if (kind == NR_NORM_LAYER && d * d > var) return moments_again(f->C, row_again(f, r), pivot + d, f->eps);
	return (struct moments){ pivot, d, 1 / __builtin_sqrtf(var + f->eps) };
}

/* The compiler learns whether the pointer is NULL, so that no loop asks. */
#define KNOWN(pointer, there)                                                                                          \
	do {                                                                                                           \
		if (!(there)) (pointer) = 0;                                                                           \
		else if (!(pointer)) __builtin_unreachable();                                                          \
	} while (0)

INL void forward_all(enum nr_norm_kind kind, int adds, int gain, int bias, const struct nr_norm_forward *all)
{
	struct nr_norm_forward copy = *all, *f = &copy; /* which no store through a pointer can change */
	const int center = kind == NR_NORM_LAYER;
	KNOWN(copy.b, adds);
	KNOWN(copy.gain, gain);
	KNOWN(copy.bias, bias);
	if (f->rows <= 0) return;
	float pivot = center ? pivot_of(f, 0) : 0;
	struct moments m = moments_of(kind, f, 0, pass(center, f, -1, 0, 0, pivot), pivot);
	for (int64_t r = 0; r < f->rows; r++) {
		if (f->mean) f->mean[r] = m.pivot + m.d;
		if (f->rstd) f->rstd[r] = m.rstd;
		if (r + 1 == f->rows) {
			pass(center, f, r, &m, 1, 0);
			break;
		}
		pivot = center ? pivot_of(f, r + 1) : 0;
		m = moments_of(kind, f, r + 1, pass(center, f, r, &m, 0, pivot), pivot);
	}
}

INL void forward_as(enum nr_norm_kind kind, int adds, const struct nr_norm_forward *f)
{
	if (f->gain && f->bias && kind == NR_NORM_LAYER) forward_all(kind, adds, 1, 1, f);
	else if (f->gain) forward_all(kind, adds, 1, 0, f);
	else forward_all(kind, adds, 0, 0, f);
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

enum { PAIR = 2 };
struct means { float a[PAIR], b[PAIR]; };       /* of g = dy gain and of g h over a row */

INL vf mean_of(int center, const struct nr_norm_backward *f, int64_t r) { return bc(center ? f->mean[r] : 0); }

/* n values of `count` rows, at column i: their sums of g and g h, and their share of dgain and dbias. */
INL void sums_step(int center, int count, const struct nr_norm_backward *f, int64_t r, const vf *m, const vf *k, int64_t i,
	int64_t n, vf *sg, vf *sgh)
{
	const vf gain = f->gain ? get(f->gain + i, n) : bc(1);
	vf dgain = bc(0), dbias = bc(0);
	for (int j = 0; j < count; j++) {
		const vf v = get(f->x + (r + j) * f->ldx + i, n), t = get(f->dy + (r + j) * f->lddy + i, n);
		const vf h = (center ? v - m[j] : v) * k[j], g = f->gain ? t * gain : t;
		if (center) sg[j] += g;
		sgh[j] += g * h;
		dgain += t * h;
		dbias += t;
	}
	if (f->dgain) set(f->dgain + i, get(f->dgain + i, n) + dgain, n);
	if (center && f->dbias) set(f->dbias + i, get(f->dbias + i, n) + dbias, n);
}

INL struct means row_means(enum nr_norm_kind kind, int count, const struct nr_norm_backward *f, int64_t r)
{
	const int center = kind == NR_NORM_LAYER;
	const int64_t C = f->C;
	const float inv = 1 / (float)C;
	vf m[PAIR], k[PAIR], sg[PAIR], sgh[PAIR];
	for (int j = 0; j < count; j++) m[j] = mean_of(center, f, r + j), k[j] = bc(f->rstd[r + j]), sg[j] = sgh[j] = bc(0);
	int64_t i = 0;
	for (; i + VL <= C; i += VL) sums_step(center, count, f, r, m, k, i, VL, sg, sgh);
	if (i < C) sums_step(center, count, f, r, m, k, i, C - i, sg, sgh);
	struct means t;
	for (int j = 0; j < count; j++) {
		t.a[j] = center ? hsum(sg[j]) * inv : 0;
		t.b[j] = kind != NR_NORM_LENGTH ? hsum(sgh[j]) * inv : f->rstd[r + j] < 1 / f->eps ? hsum(sgh[j]) : 0;
	}
	return t;
}

/* n values of dx = k (g - a - h b) = (g - a) k - (x - m) k k b. g is rounded before a is taken off, as it was in the sum
 * that gave a: where all g are equal (one channel) nothing must be left, and k may be large. */
INL void dx_step(int center, int add_to, int count, const struct nr_norm_backward *f, int64_t r, const vf *m, const vf *k,
	const vf *a, const vf *kkb, int64_t i, int64_t n)
{
	const vf gain = f->gain ? get(f->gain + i, n) : bc(1);
	for (int j = 0; j < count; j++) {
		const vf v = get(f->x + (r + j) * f->ldx + i, n), t = get(f->dy + (r + j) * f->lddy + i, n);
		float *dx = f->dx + (r + j) * f->lddx + i;
		vf g = f->gain ? t * gain : t;
		if (center) __asm__("" : "+v"(g)); /* keeps the compiler from contracting the product and the difference */
		vf d = center ? (g - a[j]) * k[j] - (v - m[j]) * kkb[j] : g * k[j] - v * kkb[j];
		if (add_to) d += get(dx, n);
		set(dx, d, n);
	}
}

INL void dx_rows(int center, int add_to, int count, const struct nr_norm_backward *f, int64_t r, const struct means *t)
{
	const int64_t C = f->C;
	vf m[PAIR], k[PAIR], a[PAIR], kkb[PAIR];
	for (int j = 0; j < count; j++) {
		const float rstd = f->rstd[r + j];
		m[j] = mean_of(center, f, r + j), k[j] = bc(rstd), a[j] = bc(t->a[j]), kkb[j] = bc(rstd * rstd * t->b[j]);
	}
	int64_t i = 0;
	for (; i + VL <= C; i += VL) dx_step(center, add_to, count, f, r, m, k, a, kkb, i, VL);
	if (i < C) dx_step(center, add_to, count, f, r, m, k, a, kkb, i, C - i);
}

/* whole: gain and the gradients are all there. */
INL void backward_all(enum nr_norm_kind kind, int whole, int add_to, const struct nr_norm_backward *all)
{
	struct nr_norm_backward copy = *all, *f = &copy;
	const int center = kind == NR_NORM_LAYER;
	int64_t r = 0;
	if (whole) {
		KNOWN(copy.gain, 1);
		KNOWN(copy.dgain, 1);
		KNOWN(copy.dbias, center);
	}
	for (; r + PAIR <= f->rows; r += PAIR) {
		const struct means t = row_means(kind, PAIR, f, r);
		dx_rows(center, add_to, PAIR, f, r, &t);
	}
	for (; r < f->rows; r++) {
		const struct means t = row_means(kind, 1, f, r);
		dx_rows(center, add_to, 1, f, r, &t);
	}
}

INL void backward_as(enum nr_norm_kind kind, const struct nr_norm_backward *f)
{
	const int whole = f->gain && f->dgain && (f->dbias || kind != NR_NORM_LAYER);
	if (whole && f->add) backward_all(kind, 1, 1, f);
	else if (whole) backward_all(kind, 1, 0, f);
	else if (f->add) backward_all(kind, 0, 1, f);
	else backward_all(kind, 0, 0, f);
}

static void norm_backward(const struct nr_norm_backward *f)
{
	switch (f->kind) {
	case NR_NORM_LAYER: backward_as(NR_NORM_LAYER, f); break;
	case NR_NORM_RMS: backward_as(NR_NORM_RMS, f); break;
	case NR_NORM_LENGTH: backward_as(NR_NORM_LENGTH, f); break;
	}
}
