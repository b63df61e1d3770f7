/* Softmax, log-softmax and cross entropies in vectors; included once, by fast/row.c. What each computes stands in
 * softmax.h. */

/* scale x + mask at i; lanes from n on are -inf. mask may be NULL. */
INL vf logit(const float *x, float k, const float *mask, int64_t i, int64_t n)
{
	vf z = get(x + i, n) * bc(k);
	if (mask) z += get(mask + i, n);
	return n < VL ? vsel(lanes(n), z, bc(-INFINITY)) : z;
}

/* The largest logit, 0 for a row that is masked whole, so that it can be subtracted. */
INL float shift_of(int64_t C, const float *x, float k, const float *mask)
{
	const int64_t full = down(C);
	vf m = bc(-INFINITY);
	for (int64_t i = 0; i < full; i += VL) m = VMAX(m, logit(x, k, mask, i, VL));
	if (full < C) m = VMAX(m, logit(x, k, mask, full, C - full));
	const float top = hmax(m);
	return top == -INFINITY ? 0 : top;
}

/* sum e^(z - m); the terms are left in out unless it is NULL. out may be x. */
INL float exp_sum(int64_t C, const float *x, float k, const float *mask, float m, float *out)
{
	const int64_t full = down(C), n = C - full;
	vf s = bc(0);
	for (int64_t i = 0; i < full; i += VL) {
		vf e = vexpz(logit(x, k, mask, i, VL) - bc(m));
		if (out) st(out + i, e);
		s += e;
	}
	if (n > 0) {
		vf e = vexpz(logit(x, k, mask, full, n) - bc(m));
		if (out) stn(out + full, e, n);
		s += e;
	}
	return hsum(s);
}

static void softmax(int64_t rows, int64_t C, const float *x, int64_t ldx, float k, const float *mask, int64_t ldm,
	float *y, int64_t ldy)
{
	for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy, mask = mask ? mask + ldm : NULL) {
		const float m = shift_of(C, x, k, mask), s = exp_sum(C, x, k, mask, m, y);
		scale(C, s == 0 ? 0 : 1 / s, y, y);
	}
}

static void softmax_backward(int64_t rows, int64_t C, const float *y, int64_t ldy, const float *dy, int64_t lddy, float k,
	float *dx, int64_t lddx, int add_to)
{
	const int64_t full = down(C), n = C - full;
	for (int64_t r = 0; r < rows; r++, y += ldy, dy += lddy, dx += lddx) {
		const vf s = bc(dot(C, y, dy));
		for (int64_t i = 0; i < full; i += VL) {
			vf d = ld(y + i) * (ld(dy + i) - s) * bc(k);
			st(dx + i, add_to ? ld(dx + i) + d : d);
		}
		if (n > 0) {
			vf d = ldn(y + full, n) * (ldn(dy + full, n) - s) * bc(k);
			stn(dx + full, add_to ? ldn(dx + full, n) + d : d, n);
		}
	}
}

static void log_softmax(int64_t rows, int64_t C, const float *x, int64_t ldx, float k, const float *mask, int64_t ldm,
	float *y, int64_t ldy)
{
	const int64_t full = down(C);
	for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy, mask = mask ? mask + ldm : NULL) {
		const float m = shift_of(C, x, k, mask), s = exp_sum(C, x, k, mask, m, 0);
		const vf l = bc(s == 0 ? 0 : logf(s));
		for (int64_t i = 0; i < full; i += VL) st(y + i, logit(x, k, mask, i, VL) - bc(m) - l);
		if (full < C) stn(y + full, logit(x, k, mask, full, C - full) - bc(m) - l, C - full);
	}
}

static void log_softmax_backward(int64_t rows, int64_t C, const float *y, int64_t ldy, const float *dy, int64_t lddy,
	float k, float *dx, int64_t lddx, int add_to)
{
	const int64_t full = down(C), n = C - full;
	for (int64_t r = 0; r < rows; r++, y += ldy, dy += lddy, dx += lddx) {
		const vf s = bc(sum(C, dy));
		for (int64_t i = 0; i < full; i += VL) {
			vf d = (ld(dy + i) - vexpz(ld(y + i)) * s) * bc(k);
			st(dx + i, add_to ? ld(dx + i) + d : d);
		}
		if (n > 0) {
			vf d = (ldn(dy + full, n) - vexpz(ldn(y + full, n)) * s) * bc(k);
			stn(dx + full, add_to ? ldn(dx + full, n) + d : d, n);
		}
	}
}

/* dx = (p e - t) k, or +=, with t = target (or off for all); e = e^(x - m), taken from dx if it was left there. */
INL void xent_gradient(int64_t C, const float *x, float m, float p, const float *target, float off, float k, float *dx,
	int add_to)
{
	const int64_t full = down(C), n = C - full;
	const vf pk = bc(p * k), vk = bc(k);
	for (int64_t i = 0; i < full; i += VL) {
		vf e = add_to ? vexpz(ld(x + i) - bc(m)) : ld(dx + i), t = target ? ld(target + i) : bc(off);
		vf d = e * pk - t * vk;
		st(dx + i, add_to ? ld(dx + i) + d : d);
	}
	if (n > 0) {
		vf e = add_to ? vexpz(ldn(x + full, n) - bc(m)) : ldn(dx + full, n);
		vf d = e * pk - (target ? ldn(target + full, n) : bc(off)) * vk;
		stn(dx + full, add_to ? ldn(dx + full, n) + d : d, n);
	}
}

/* sum t (x - m), with t = 1 when target is NULL */
INL float weighted(int64_t C, const float *x, float m, const float *target)
{
	const int64_t full = down(C), n = C - full;
	vf s = bc(0);
	for (int64_t i = 0; i < full; i += VL) {
		vf z = ld(x + i) - bc(m);
		s += target ? z * ld(target + i) : z;
	}
	if (n > 0) {
		vf z = (vf)((vi)(ldn(x + full, n) - bc(m)) & lanes(n));
		s += target ? z * ldn(target + full, n) : z;
	}
	return hsum(s);
}

static void xent_labels(int64_t rows, int64_t C, const float *x, int64_t ldx, const int32_t *label, int32_t ignore,
	float smoothing, float k, float *loss, float *dx, int64_t lddx, int add_to)
{
	const float off = smoothing / (float)C, on = 1 - smoothing;
	for (int64_t r = 0; r < rows; r++, x += ldx, dx = dx ? dx + lddx : NULL) {
		const int32_t l = label[r];
		if (l == ignore) {
			if (loss) loss[r] = 0;
			if (dx && !add_to) memset(dx, 0, (size_t)C * sizeof(float));
			continue;
		}
		const int valid = l >= 0 && l < C;
		const float m = shift_of(C, x, 1, 0), z = valid ? x[l] - m : NAN;
		const float all = smoothing > 0 ? weighted(C, x, m, 0) : 0;
		const float s = dx && !add_to ? exp_sum(C, x, 1, 0, m, dx) : exp_sum(C, x, 1, 0, m, 0);
		if (loss) loss[r] = logf(s) - on * z - off * all;
		if (!dx) continue;
		if (add_to) xent_gradient(C, x, m, valid ? 1 / s : NAN, 0, off, k, dx, 1);
		else xent_gradient(C, x, m, valid ? 1 / s : NAN, 0, off, k, dx, 0);
		if (valid) dx[l] -= on * k;
	}
}

static void xent_soft(int64_t rows, int64_t C, const float *x, int64_t ldx, const float *target, int64_t ldt, float k,
	float *loss, float *dx, int64_t lddx, int add_to)
{
	for (int64_t r = 0; r < rows; r++, x += ldx, target += ldt, dx = dx ? dx + lddx : NULL) {
		const float m = shift_of(C, x, 1, 0), t = sum(C, target);
		const float tz = loss ? weighted(C, x, m, target) : 0;
		const float s = dx && !add_to ? exp_sum(C, x, 1, 0, m, dx) : exp_sum(C, x, 1, 0, m, 0);
		if (loss) loss[r] = t * logf(s) - tz;
		if (dx && add_to) xent_gradient(C, x, m, t / s, target, 0, k, dx, 1);
		else if (dx) xent_gradient(C, x, m, t / s, target, 0, k, dx, 0);
	}
}

/* n elements of the sigmoid form: their losses; their gradients into dx unless it is NULL. */
INL vf sigmoid_step(const float *x, const float *target, int64_t n, vf k, float *dx, int add_to)
{
	const vf v = get(x, n), t = get(target, n), e = vexp((vf)((vi)v | bci((int32_t)0x80000000)));
	const vf l = VMAX(bc(0), v) - v * t + vlog1p(e);
	if (dx) {
		vf d = (vsel((vi)(v < bc(0)), e, bc(1)) / (e + 1.f) - t) * k;
		set(dx, add_to ? get(dx, n) + d : d, n);
	}
	return n < VL ? (vf)((vi)l & lanes(n)) : l;
}

static void xent_sigmoid(int64_t rows, int64_t C, const float *x, int64_t ldx, const float *target, int64_t ldt, float k,
	float *loss, float *dx, int64_t lddx, int add_to)
{
	const int64_t full = down(C);
	for (int64_t r = 0; r < rows; r++, x += ldx, target += ldt, dx = dx ? dx + lddx : NULL) {
		vf s = bc(0);
		for (int64_t i = 0; i < full; i += VL) s += sigmoid_step(x + i, target + i, VL, bc(k), dx ? dx + i : 0, add_to);
		if (full < C) s += sigmoid_step(x + full, target + full, C - full, bc(k), dx ? dx + full : 0, add_to);
		if (loss) loss[r] = hsum(s);
	}
}
