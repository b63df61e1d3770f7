/* The squash family in vectors: one pass over memory; the curve is what takes the time. */
#include "math/squash.h"

#include "math/fast/vec.h"

/* erf(x), whose value rounds to 1 from 3.83 on; relative error below 6e-7 (test/unit/squash.c). */
#if VL == 16 /* x g(|x|), where g is a polynomial around the nearest quarter: no division, which takes longer than all the rest */
INL vf verf(vf x)
{
	static const float g[][16] = {
		{ 1.12837923f, 1.10530555f, 1.04099977f, 0.948207498f, 0.842700779f, 0.738320112f, 0.644070089f, 0.563812375f,
			0.497661144f, 0.44379434f, 0.399837226f, 0.363599777f, 0.333325982f, 0.307690978f, 0.28571406f, 0.266666651f },
		{ 0, -0.181162998f, -0.324430555f, -0.407032371f, -0.427592337f, -0.401439846f, -0.350094497f, -0.292022496f,
			-0.238497749f, -0.194067836f, -0.159063607f, -0.132004857f, -0.111062169f, -0.0946651101f, -0.0816310123f,
			-0.0711108446f },
		{ -0.376124352f, -0.335349828f, -0.229913875f, -0.100218505f, 0.0124844974f, 0.0846294537f, 0.114465065f,
			0.114094615f, 0.0985818729f, 0.079110153f, 0.0614472441f, 0.0474155322f, 0.0368814915f, 0.0290985443f,
			0.0233177487f, 0.0189620107f },
		{ 0, 0.104022667f, 0.165925518f, 0.168604344f, 0.125638917f, 0.0664917156f, 0.0165240709f, -0.013385307f,
			-0.0250061024f, -0.0254365802f, -0.0212302338f, -0.0162520651f, -0.0120479865f, -0.00890717842f, -0.00666017458f,
			-0.00506132375f },
		{ 0.112314776f, 0.0886779577f, 0.0323597454f, -0.0245886967f, -0.0563657023f, -0.0577894524f, -0.0404974595f,
			-0.0197380707f, -0.00471470924f, 0.00279856683f, 0.00502131181f, 0.0047132927f, 0.00366304419f, 0.00265090377f,
			0.00188312226f, 0.00134589395f },
	};
	const vf v = VMAX(bc(-3.8325f), VMIN(bc(3.8325f), x)), a = vabs(v), t = a * 4.f + 12582912.f, f = a - (t - 12582912.f) * .25f;
	vf p = pick(g[4], t);
	for (int i = 3; i >= 0; i--) p = p * f + pick(g[i], t);
	return v * p;
}
#else /* x P(x^2) / Q(x^2) */
INL vf verf(vf x)
{
	const vf a = VMAX(bc(-3.8325f), VMIN(bc(3.8325f), x)), z = a * a;
	vf p = z * 2.800868907e-4f + 7.746394111e-3f, q = z * 1.661956182e-5f + 1.951536995e-3f;
	p = p * z + 6.474974535e-2f;
	q = q * z + 2.302919967e-2f;
	p = p * z + 2.957668676e-1f;
	q = q * z + 1.558981678e-1f;
	p = p * z + 1.128378925f;
	q = (q * z + 5.954431418e-1f) * z + 1.f;
	return VMAX(bc(-1), VMIN(bc(1), a * p / q));
}
#endif

/* What all steps share, in vectors. */
struct job {
	vf alpha, shift;
	const float *weight, *bias;
	float *dweight, *dbias;
	int add;
};

/* A curve's value at u; tanh has no shift. */
INL vf value(enum nr_squash_curve c, const struct job *f, vf x, vf *u)
{
	*u = c == NR_CURVE_TANH ? f->alpha * x : f->alpha * x + f->shift;
	return c == NR_CURVE_TANH ? vtanh(*u) : verf(*u);
}

/* n values from column i on, whose x and y these are. */
INL void value_step(enum nr_squash_curve c, const struct job *f, int64_t n, int64_t i, const float *x, float *y)
{
	vf u;
	const vf t = value(c, f, get(x, n), &u);
	set(y, f->weight ? t * get(f->weight + i, n) + get(f->bias + i, n) : t, n);
}

INL void value_rows(enum nr_squash_curve c, const struct job *f, int64_t rows, int64_t C, const float *x, int64_t ldx, float *y,
	int64_t ldy)
{
	for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy) {
		int64_t i = 0;
		for (; i + VL <= C; i += VL) value_step(c, f, VL, i, x + i, y + i);
		if (i < C) value_step(c, f, C - i, i, x + i, y + i);
	}
}

static void forward(const struct nr_squash *s, int64_t rows, int64_t C, const float *x, int64_t ldx, float *y, int64_t ldy)
{
	const struct job f = { .alpha = bc(s->alpha), .shift = bc(s->shift), .weight = s->weight, .bias = s->bias };
	const struct job bare = { .alpha = bc(s->alpha), .shift = bc(s->shift) };
	if (s->curve == NR_CURVE_TANH && s->weight) value_rows(NR_CURVE_TANH, &f, rows, C, x, ldx, y, ldy);
	else if (s->curve == NR_CURVE_TANH) value_rows(NR_CURVE_TANH, &bare, rows, C, x, ldx, y, ldy);
	else if (s->weight) value_rows(NR_CURVE_ERF, &f, rows, C, x, ldx, y, ldy);
	else value_rows(NR_CURVE_ERF, &bare, rows, C, x, ldx, y, ldy);
}

struct sums { vf alpha, shift; };

/* n values from column i on, whose x, dy and dx these are. */
INL void grad_step(enum nr_squash_curve c, const struct job *f, int64_t n, int64_t i, const float *x, const float *dy, float *dx,
	struct sums *sum)
{
	vf u;
	const vf v = get(x, n), g = get(dy, n), t = value(c, f, v, &u);
	vf s = f->weight ? g * get(f->weight + i, n) : g;
	if (c == NR_CURVE_TANH) s -= s * t * t;
	else s *= vexp(-u * u) * 1.12837917f;
	if (f->weight) {
		set(f->dweight + i, get(f->dweight + i, n) + g * t, n);
		set(f->dbias + i, get(f->dbias + i, n) + g, n);
	}
	set(dx, f->add ? get(dx, n) + f->alpha * s : f->alpha * s, n);
	sum->alpha += s * v;
	if (c == NR_CURVE_ERF) sum->shift += s;
}

INL struct nr_squash_sums grad_rows(enum nr_squash_curve c, const struct job *f, int64_t rows, int64_t C, const float *x, int64_t ldx,
	const float *dy, int64_t lddy, float *dx, int64_t lddx)
{
	struct nr_squash_sums all = { 0, 0 };
	for (int64_t r = 0; r < rows; r++, x += ldx, dy += lddy, dx += lddx) {
		struct sums sum = { bc(0), bc(0) };
		int64_t i = 0;
		for (; i + VL <= C; i += VL) grad_step(c, f, VL, i, x + i, dy + i, dx + i, &sum);
		if (i < C) grad_step(c, f, C - i, i, x + i, dy + i, dx + i, &sum);
		all.alpha += hsum(sum.alpha);
		if (c == NR_CURVE_ERF) all.shift += hsum(sum.shift);
	}
	return all;
}

static struct nr_squash_sums backward(const struct nr_squash *s, int64_t rows, int64_t C, const float *x, int64_t ldx, const float *dy,
	int64_t lddy, float *dx, int64_t lddx, int add, float *dweight, float *dbias)
{
	const struct job f = { bc(s->alpha), bc(s->shift), s->weight, s->bias, dweight, dbias, add };
	const struct job bare = { .alpha = bc(s->alpha), .shift = bc(s->shift), .add = add };
	if (s->curve == NR_CURVE_TANH && s->weight) return grad_rows(NR_CURVE_TANH, &f, rows, C, x, ldx, dy, lddy, dx, lddx);
	if (s->curve == NR_CURVE_TANH) return grad_rows(NR_CURVE_TANH, &bare, rows, C, x, ldx, dy, lddy, dx, lddx);
	if (s->weight) return grad_rows(NR_CURVE_ERF, &f, rows, C, x, ldx, dy, lddy, dx, lddx);
	return grad_rows(NR_CURVE_ERF, &bare, rows, C, x, ldx, dy, lddy, dx, lddx);
}

const struct nr_squash_kernels NR_FAST(squash) = { forward, backward };
