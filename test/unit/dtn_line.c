/* DTN on a line of 2000 tokens, a grid of 1 x T as texts have it: values and gradients of the exact form against the equations of
 * src/norms/dtn.c written out in double, T x T weights and all; padding takes no part. */
#include "unit/rig.h"

#include "norma/norm.h"

enum { B = 2, T = 2000, C = 4, H = 2, D = C / H };
static const int32_t lengths[B] = { T, 1337 };
/* A head that looks at thirty tokens around it, and one that looks a little ahead, at three. */
static const double place[H][3] = { { -.002, .03, 0 }, { -.3, .5, .2 } }, mean_logit[H] = { .4, -.7 }, var_logit[H] = { -.2, .9 };
static const double gain[C] = { 1, .7, 1.3, -.5 }, shift[C] = { 0, .2, -.1, .3 }, eps = 1e-5;

struct grads { double x[B * T * C], gain[C], shift[C], mean_logit[H], var_logit[H], place[H][3]; };

/* One head of one sample of n tokens; x, g and out (T,C) at its first channel. */
struct head { int64_t n, h; const real *x, *g; double *y; double *dx; const double *m, *v; double *dm, *dv; };

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Row i of P. */
static void weights_of(const struct head *k, int64_t i, double *p)
{
	double sum = 0;
	for (int64_t j = 0; j < k->n; j++) {
		const double d = (double)(j - i), peak = -place[k->h][1] / (2 * place[k->h][0]);         /* the largest score, anywhere */
		sum += p[j] = exp(place[k->h][0] * (d * d - 2 * d * peak + peak * peak));
	}
	for (int64_t j = 0; j < k->n; j++) p[j] /= sum;
}

static void head_of(const struct head *k, struct grads *all)
{
	static double p[T];
	const double lm = sigmoid(mean_logit[k->h]), lv = sigmoid(var_logit[k->h]);
	for (int64_t i = 0; i < k->n; i++) {
		double s[D] = { 0 }, q[D] = { 0 }, ds[D], dq[D], mean = 0;
		weights_of(k, i, p);
		for (int64_t j = 0; j < k->n; j++)
			for (int c = 0; c < D; c++) {
				const double x = (double)k->x[j * C + c];
				s[c] += p[j] * x, q[c] += p[j] * x * x;
			}
		for (int c = 0; c < D; c++) {
			const int at = (int)k->h * D + c;
			const double x = (double)k->x[i * C + c], g = (double)k->g[i * C + c];
			const double mu = lm * k->m[i] + (1 - lm) * s[c], own = q[c] - s[c] * s[c], var = lv * k->v[i] + (1 - lv) * own;
			const double r = 1 / sqrt(var + eps), dz = g * gain[at], dmu = -dz * r, dvar = -.5 * dz * (x - mu) * r * r * r;
			k->y[i * C + c] = gain[at] * (x - mu) * r + shift[at];
			all->gain[at] += g * (x - mu) * r, all->shift[at] += g;
			all->mean_logit[k->h] += dmu * (k->m[i] - s[c]) * lm * (1 - lm);
			all->var_logit[k->h] += dvar * (k->v[i] - own) * lv * (1 - lv);
			k->dx[i * C + c] += dz * r;
			k->dm[i] += lm * dmu, k->dv[i] += lv * dvar;
			dq[c] = (1 - lv) * dvar, ds[c] = (1 - lm) * dmu - 2 * s[c] * dq[c];
		}
		for (int c = 0; c < D; c++) mean += ds[c] * s[c] + dq[c] * q[c];
		for (int64_t j = 0; j < k->n; j++) {
			double dp = 0;
			for (int c = 0; c < D; c++) {
				const double x = (double)k->x[j * C + c];
				k->dx[j * C + c] += p[j] * (ds[c] + 2 * x * dq[c]);
				dp += ds[c] * x + dq[c] * x * x;
			}
			const double d = (double)(j - i), score = p[j] * (dp - mean);
			all->place[k->h][0] += score * d * d, all->place[k->h][1] += score * d;
		}
	}
}

static void written_out(const real *x, const real *g, double *y, struct grads *all)
{
	static double m[T], v[T], dm[T], dv[T];
	for (int64_t b = 0; b < B; b++) {
		const real *xb = x + b * T * C;
		for (int64_t t = 0; t < T; t++) {
			m[t] = v[t] = dm[t] = dv[t] = 0;
			for (int c = 0; c < C; c++) m[t] += (double)xb[t * C + c] / C;
			for (int c = 0; c < C; c++) v[t] += ((double)xb[t * C + c] - m[t]) * ((double)xb[t * C + c] - m[t]) / C;
		}
		for (int64_t h = 0; h < H; h++) {
			const int64_t at = b * T * C + h * D;
			head_of(&(struct head){ lengths[b], h, x + at, g + at, y + at, all->x + at, m, v, dm, dv }, all);
		}
		for (int64_t t = 0; t < lengths[b]; t++)
			for (int c = 0; c < C; c++)
				all->x[(b * T + t) * C + c] += (dm[t] + 2 * dv[t] * ((double)xb[t * C + c] - m[t])) / C;
	}
}

static void set(struct rig *r, const char *name, const double *from, int64_t n)
{
	for (int64_t i = 0; i < n; i++) nr_value(nr_store_find(r->store, name))[i] = (real)from[i];
}

/* Sums over thousands of tokens: relative to the largest of the gradient. */
static void grads_are(struct rig *r, const char *name, const double *want, int64_t n)
{
	double most = 1;
	for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(want[i]));
	close_to(nr_grad(nr_store_find(r->store, name)), want, n, 1e-4 * most);
}

static void a_line_of_2000_tokens_is_as_written_out(void **state)
{
	(void)state;
	static double y[B * T * C];
	static struct grads want;
	struct rig r = rig();
	nr_t *x = reals(&r, 3, B, T, C, 1), *g = reals(&r, 3, B, T, C, 1), *valid = ints(&r, lengths, 1, B, 1);
	for (int64_t i = 0; i < B * T * C; i++)
		if (i / C % T >= lengths[i / C / T]) ((real *)r.data[0])[i] = 1000, ((real *)r.data[1])[i] = 0;         /* padding */
	nr_t *line = nr_with_tokens(r.n, x, (struct nr_tokens){ .h = 1, .w = T, .heads = H, .valid = valid });
	nr_t *out = nr_tap(r.n, "out", nr_norm_make(r.n, "n", "dtn", line));
	nr_t *loss = nr_weighted_sum(r.n, out, g);
	assert_int_equal(nr_store_seal(r.store, &r.err), 0);
	set(&r, "n.weight", gain, C), set(&r, "n.bias", shift, C);
	set(&r, "n.mean_logit", mean_logit, H), set(&r, "n.var_logit", var_logit, H), set(&r, "n.pos", place[0], 3 * H);
	step(&r, loss);
	written_out(data(&r, 0), data(&r, 1), y, &want);
	const real *got = nr_plan_data(r.plan, out), *dx = nr_plan_grad(r.plan, x);
	for (int64_t i = 0; i < B * T * C; i++) {
		if (i / C % T >= lengths[i / C / T]) assert_true(dx[i] == 0);
		else close_to(got + i, y + i, 1, 2e-5), close_to(dx + i, want.x + i, 1, 1e-4);
	}
	grads_are(&r, "n.weight", want.gain, C), grads_are(&r, "n.bias", want.shift, C);
	grads_are(&r, "n.mean_logit", want.mean_logit, H), grads_are(&r, "n.var_logit", want.var_logit, H);
	for (int h = 0; h < H; h++) {   /* dy is 0 on a line */
		const real *place_grad = nr_grad(nr_store_find(r.store, "n.pos")) + 3 * h;
		for (int i = 0; i < 3; i++) close_to(place_grad + i, &want.place[h][i], 1, 1e-4 * fmax(1, fabs(want.place[h][i])));
	}
	release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_line_of_2000_tokens_is_as_written_out) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
