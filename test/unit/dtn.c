/* DTN: the kernels of every instruction set against the plain ones, products with P against P written out, initial values,
 * the limits that the paper names, and what is refused. Gradients: test/gradcheck.c. */
#include "unit/rig.h"

#include "math/token.h"
#include "math/token_mix.h"
#include "norma/norm.h"

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

enum { ROWS = 7, MOST = 40 };

struct work {
	real x[ROWS * MOST], dy[ROWS * MOST], mean[ROWS], var[ROWS], rms[ROWS], centre[MOST],
		mq[2 * ROWS * MOST], weight[MOST], bias[MOST];
	real u[2 * ROWS * MOST], y[ROWS * MOST], dz[ROWS * MOST], dx[ROWS * MOST], dmq[2 * ROWS * MOST],
		dmean[ROWS], dvar[ROWS];
	real dweight[MOST], dbias[MOST], dlam[2], s[MOST];
	double da[3];
};

static struct nr_token_unit unit(struct work *w, int64_t d, int pooled, int affine, int scaled)
{
	static const int32_t at[ROWS] = { 0, 0, 1, 1, 2, 2, 0 };
	return (struct nr_token_unit){ .n = ROWS, .d = d, .x = w->x, .ldx = MOST, .rms = scaled ? w->rms : NULL, .ldr = 1,
		.mean = w->mean, .var = w->var, .centre = w->centre, .mq = w->mq, .ldmq = 2 * d,
		.at = pooled ? at : NULL, .lam_mean = (real).3, .lam_var = (real).6, .eps = (real)1e-2,
		.weight = affine ? w->weight : NULL, .bias = affine ? w->bias : NULL, .y = w->y, .ldy = MOST,
		.dy = w->dy, .lddy = MOST, .dz = w->dz, .lddz = MOST, .dmq = w->dmq,
		.dmean = w->dmean, .dvar = w->dvar, .ldd = 1,
		.dweight = affine ? w->dweight : NULL, .dbias = affine ? w->dbias : NULL, .dlam = w->dlam };
}

static void kernels(struct work *w, int64_t d, int pooled, int affine, int scaled)
{
	real *p = (real *)w;
	value_seed = 5;
	for (size_t i = 0; i < offsetof(struct work, u) / sizeof(real); i++) p[i] = value();
	memset(w->u, 0, sizeof *w - offsetof(struct work, u));
	for (int i = 0; i < ROWS; i++) w->var[i] += 1, w->rms[i] += 1;
	const struct nr_token_unit k = unit(w, d, pooled, affine, scaled);
	nr_token_active->gather(&k, 3, (real).5, w->u);
	nr_token_active->normalize(&k);
	nr_token_active->gradients(&k);
	nr_token_active->scatter(&k, (real).5, w->u, w->dmq);
	nr_token_active->spread(2, d / 2, w->x, scaled ? w->rms : NULL, (real).1, (real).2, (real).3, w->dz,
		w->dx, 0);
	nr_token_active->spread(1, d, w->x + MOST, NULL, (real).1, (real).2, (real).3, w->dz + MOST,
		w->dx + MOST, 1);
	nr_token_active->scores(d, w->x, w->dy, (real).5, (real)-.5, w->weight, w->s);
	nr_token_active->score_sums(d, w->x, w->dy, (real).5, (real)-.5, w->bias, w->da);
}

static void every_instruction_set_agrees_with_the_plain_kernels(void **state)
{
	(void)state;
	static struct work plain, fast;
	static const int64_t widths[] = { 1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 31, 33, 40 };
	for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
		for (int kind = 0; kind < 8; kind++) {
			assert_int_equal(nr_isa_select("plain", NULL), 0);
			kernels(&plain, widths[i], kind & 1, kind >> 1 & 1, kind >> 2);
			for (int s = isa_next(NR_ISA_PLAIN); s >= 0; s = isa_next(s)) {
				kernels(&fast, widths[i], kind & 1, kind >> 1 & 1, kind >> 2);
				const real *a = (const real *)&plain, *b = (const real *)&fast;
				for (size_t j = 0; j < offsetof(struct work, da) / sizeof(real); j++)
					if (!(nr_fabs(a[j] - b[j]) <= (real)3e-5 * (1 + nr_fabs(a[j]))))
						fail_msg("width %d kind %d value %zu: %g, plain %g",
							(int)widths[i], kind, j, (double)b[j], (double)a[j]);
				for (int j = 0; j < 3; j++) assert_true(fabs(plain.da[j] - fast.da[j]) < 1e-5);
			}
		}
}

/* ---- mixing ----------------------------------------------------------------------------------------------------- */

static void shift(const struct nr_token_mix *k, int64_t i, int64_t j, double *dx, double *dy)
{
	const int64_t from = k->place ? k->place[i] : i, to = k->place ? k->place[j] : j;
	*dx = (double)(to % k->w - from % k->w);
	*dy = (double)(to / k->w - from / k->w);
}

static double score(const struct nr_token_mix *k, int64_t i, int64_t j)
{
	double dx, dy;
	shift(k, i, j, &dx, &dy);
	if (j >= k->valid || (k->kind == NR_MIX_BAND && llabs(i - j) > k->reach)) return -INFINITY;
	if (k->kind == NR_MIX_FREE) return (double)k->logit[i * k->n + j];
	if (k->kind != NR_MIX_POS) return 0;
	return (double)k->a[0] * (dx * dx + dy * dy) + (double)k->a[1] * dx + (double)k->a[2] * dy;
}

/* P_ij as the header has it. */
static void written_out(const struct nr_token_mix *k, double *P)
{
	for (int64_t i = 0; i < k->n; i++) {
		double sum = 0, top = -1e300;
		double *p = P + i * k->n;
		for (int pass = 0; pass < 2; pass++)
			for (int64_t j = 0; j < k->n; j++) {
				const double s = score(k, i, j);
				if (!pass) top = fmax(top, s);
				else sum += p[j] = isinf(s) ? 0 : exp(s - top);
			}
		for (int64_t j = 0; j < k->n; j++) p[j] = sum > 0 ? p[j] / sum : i == j;
	}
}

static void mixes(struct nr_token_mix k, int part)
{
	const int64_t n = k.n, c = k.c;
	real *u = values(n * c), *dout = values(n * c), *out = blank(n * c), *du = blank(n * c);
	real *logit = values(n * n), *dlogit = blank(n * n), da[3] = { 0 };
	double *P = calloc((size_t)(n * n), sizeof *P);
	k.logit = logit;
	k.work = values((int64_t)nr_token_mix_work(&k, part));
	written_out(&k, P);
	nr_token_mix_forward(&k, u, out);
	nr_token_mix_backward(&k, u, dout, du, k.kind == NR_MIX_POS ? da : NULL,
		k.kind == NR_MIX_FREE ? dlogit : NULL);
	for (int64_t i = 0; i < n; i++)
		for (int64_t q = 0; q < c; q++) {
			double forward = 0, backward = 0;
			for (int64_t j = 0; j < n; j++) {
				forward += P[i * n + j] * (double)u[j * c + q];
				backward += P[j * n + i] * (double)dout[j * c + q];
			}
			close_to(&out[i * c + q], &forward, 1, 1e-5);
			close_to(&du[i * c + q], &backward, 1, 1e-5);
		}
	double want[3] = { 0 }, scale = 1;
	for (int64_t i = 0; i < n; i++) {
		double mean = 0;
		for (int pass = 0; pass < 2; pass++)
			for (int64_t j = 0; j < n; j++) {
				double g = 0;
				for (int64_t q = 0; q < c; q++) g += (double)dout[i * c + q] * (double)u[j * c + q];
				if (!pass) {
					mean += P[i * n + j] * g;
					continue;
				}
				double dx, dy;
				shift(&k, i, j, &dx, &dy);
				const double ds = k.valid > 0 ? P[i * n + j] * (g - mean) : 0;
				scale += P[i * n + j] * (fabs(g) + fabs(mean)) * (dx * dx + dy * dy);
				want[0] += ds * (dx * dx + dy * dy);
				want[1] += ds * dx;
				want[2] += ds * dy;
				if (k.kind == NR_MIX_FREE) close_to(&dlogit[i * n + j], &ds, 1, 1e-5);
			}
	}
	if (k.kind == NR_MIX_POS) close_to(da, want, 3, 1e-6 * scale);
	free(u), free(dout), free(out), free(du), free(logit), free(dlogit), free(P), free(k.work);
}

static void products_with_p_are_those_of_p_written_out(void **state)
{
	(void)state;
	static const real near[3] = { (real)-.4, (real).3, (real)-.2 }, far[3] = { (real)-2, (real)60, (real)1 };
	static const real up[3] = { (real).01, 0, (real).1 };
	static const int64_t grids[][2] = { { 1, 1 }, { 2, 3 }, { 5, 4 }, { 14, 14 }, { 1, 11 }, { 9, 1 },
		{ 1, 300 }, { 17, 2 } };
	static const int32_t some[] = { 11, 0, 5, 3, 7 };
	const real *const a[] = { near, far, up };
	for (size_t g = 0; g < sizeof grids / sizeof *grids; g++)
		for (int64_t c = 2; c <= 36; c += 17)
			for (int q = 0; q < 3; q++) {
				const int64_t n = grids[g][0] * grids[g][1];
				struct nr_token_mix k = { .n = n, .h = grids[g][0], .w = grids[g][1], .c = c,
					.valid = n, .a = a[q] };
				mixes(k, 0);
				for (int kind = NR_MIX_POS; kind <= NR_MIX_FREE; kind++)
					for (k.valid = 0; k.valid < n; k.valid += (n + 2) / 3) {
						k.kind = (enum nr_mix)kind;
						k.reach = q;
						mixes(k, 1);
					}
			}
	mixes((struct nr_token_mix){ .n = 5, .h = 3, .w = 4, .c = 6, .valid = 5, .a = near, .place = some }, 1);
	mixes((struct nr_token_mix){ .n = 5, .h = 3, .w = 4, .c = 6, .valid = 3, .a = far, .place = some }, 1);
}

/* ---- the norm --------------------------------------------------------------------------------------------------- */

static const struct nr_tokens grid_3x4 = { .h = 3, .w = 4, .heads = 3 };

static nr_t *dtn(struct rig *r, const char *text, nr_t *x, struct nr_tokens tok)
{
	return nr_norm_make(r->n, "n", text, nr_with_tokens(r->n, x, tok));
}

static void parameters_begin_as_equation_7_has_them(void **state)
{
	(void)state;
	static const double nine[3][3] = { { -1, -2, -2 }, { -1, 0, 0 }, { -1, 2, 0 } };
	static const int which[3] = { 0, 4, 7 };
	struct rig r = rig();
	dtn(&r, "dtn:heads=9", reals(&r, 3, 2, 12, 18, 1), grid_3x4);
	nr_push(r.n, "six");
	dtn(&r, "dtn:heads=6", reals(&r, 3, 2, 12, 18, 1), grid_3x4);
	nr_pop(r.n, NULL);
	nr_push(r.n, "trunc");
	dtn(&r, "dtn:init=trunc,lam=0.5,only_var=1", reals(&r, 3, 2, 12, 18, 1), grid_3x4);
	nr_pop(r.n, NULL);
	nr_push(r.n, "tied");
	dtn(&r, "dtn:tie=1,init=zero", reals(&r, 3, 2, 12, 18, 1), grid_3x4);
	nr_pop(r.n, NULL);
	assert_int_equal(nr_store_seal(r.store, &r.err), 0);
	const real *a = nr_value(nr_store_find(r.store, "n.pos"));
	const real *six = nr_value(nr_store_find(r.store, "six.n.pos"));
	for (int i = 0; i < 3; i++) close_to(a + 3 * which[i], nine[i], 3, 0);
	close_to(six, (double[]){ -1, -1, -1, -1, -1, 1, -1, 1, -1, -1, 1, 1, 0, 0, 0, 0, 0, 0 }, 18, 0);
	const real *t = nr_value(nr_store_find(r.store, "trunc.n.pos"));
	int nonzero = 0;
	for (int i = 0; i < 9; i++) assert_true(nr_fabs(t[i]) <= (real).0401), nonzero += t[i] != 0;
	assert_int_equal(nonzero, 9);
	assert_null(nr_store_find(r.store, "trunc.n.mean_logit"));
	assert_null(nr_store_find(r.store, "tied.n.var_logit"));
	assert_non_null(nr_store_find(r.store, "tied.n.mean_logit"));
	for (int i = 0; i < 9; i++) assert_true(nr_value(nr_store_find(r.store, "tied.n.pos"))[i] == 0);
	release(&r);
}

static void limits_are_layer_and_instance(void **state)
{
	(void)state;
	static const char *const pairs[][2] = { { "dtn:lam=1", "layer" },
		{ "dtn:lam=0,attention=uniform", "instance" },
		{ "dtn:lam=0,attention=band,band=25", "instance" }, { "dtn:attention=free", "dtn" }, { "dtn:lam=0.5", "dtn" },
		{ "dtn:attention=free,variant=official", "dtn:variant=official" }, { "dtn:tie=1", "dtn" } };
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		struct rig r = rig();
		nr_t *x = reals(&r, 3, 3, 12, 12, 1), *a = dtn(&r, pairs[i][0], x, grid_3x4), *b;
		nr_push(r.n, "b");
		b = nr_tap(r.n, "b", nr_norm_make(r.n, "n", pairs[i][1], x));
		nr_pop(r.n, NULL);
		nr_tap(r.n, "a", a);
		run(&r, nr_add(r.n, a, b));
		const real *va = nr_plan_data(r.plan, a), *vb = nr_plan_data(r.plan, b);
		for (int64_t j = 0; j < nr_len(x); j++) close_to(&va[j], &(double){ (double)vb[j] }, 1, 3e-5);
		release(&r);
	}
}

static void a_sample_of_padding_alone_stays_finite(void **state)
{
	(void)state;
	static const int32_t len[] = { 0, 1, 7 };
	static const char *const texts[] = { "dtn", "dtn:variant=official", "dtn:attention=band",
		"dtn:attention=uniform", "dtn:attention=free" };
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct rig r = rig();
		nr_t *x = reals(&r, 3, 3, 7, 6, 1), *valid = ints(&r, len, 1, 3, 1);
		nr_t *y = dtn(&r, texts[i], x, (struct nr_tokens){ .special = 1, .heads = 2, .valid = valid });
		const real *v = run(&r, y);
		for (int64_t j = 0; j < nr_len(y); j++) assert_true(isfinite(v[j]));
		release(&r);
	}
}

static void what_cannot_be_is_refused_with_a_reason(void **state)
{
	(void)state;
	static const int32_t len[] = { 12, 11 };
	static const struct { const char *text; struct nr_tokens tok; int padded; const char *says; } cases[] = {
		{ "dtn", { .h = 3, .w = 4 }, 0, "give heads=" },
		{ "dtn:heads=5", { .h = 3, .w = 4 }, 0, "cannot be split into 5 heads" },
		{ "dtn", { .h = 3, .w = 5, .heads = 3 }, 0, "not a grid of 3 x 5" },
		{ "dtn:grid_h=5", { .heads = 3 }, 0, "not a grid of 5 x 2" },
		{ "dtn:pool=2", { .h = 3, .w = 4, .heads = 3 }, 0, "cannot be pooled by 2" },
		{ "dtn:pool=2", { .h = 2, .w = 6, .heads = 3 }, 1, "pool needs whole grids" },
		{ "dtn:special_tokens=13", { .h = 3, .w = 4, .heads = 3 }, 0, "special_tokens=13, but there are 12 tokens" },
		{ "dtn:lam=2", { .h = 3, .w = 4, .heads = 3 }, 0, "neither learn nor a number" },
		{ "dtn:lam=half", { .h = 3, .w = 4, .heads = 3 }, 0, "neither learn nor a number" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rig r = rig();
		struct nr_tokens tok = cases[i].tok;
		nr_t *x = reals(&r, 3, 2, 12, 12, 1), *valid = ints(&r, len, 1, 2, 1);
		char line[1024];
		if (cases[i].padded) tok.valid = valid;
		assert_null(dtn(&r, cases[i].text, x, tok));
		nr_error_text(nr_net_error(r.n), line, sizeof line);
		if (!strstr(line, cases[i].says)) fail_msg("'%s' says: %s", cases[i].text, line);
		release(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_instruction_set_agrees_with_the_plain_kernels),
		cmocka_unit_test(products_with_p_are_those_of_p_written_out),
		cmocka_unit_test(parameters_begin_as_equation_7_has_them),
		cmocka_unit_test(limits_are_layer_and_instance),
		cmocka_unit_test(a_sample_of_padding_alone_stays_finite),
		cmocka_unit_test(what_cannot_be_is_refused_with_a_reason),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
