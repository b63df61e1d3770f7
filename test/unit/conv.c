/* conv: dense and depthwise convolution against loops in double; backward functions as exact transposes of the forward. */
#include "unit/values.h"

#include <omp.h>

#include "math/conv.h"
#include "math/depthwise.h"

static const struct nr_conv cases[] = {
	{ { 2, 7, 9, 5, 3, 3, 1, 1, 1, 1 }, 4 },
	{ { 3, 8, 8, 3, 4, 4, 4, 4, 0, 0 }, 17 },
	{ { 1, 11, 6, 16, 3, 2, 2, 1, 1, 0 }, 8 },
	{ { 2, 5, 5, 7, 1, 1, 1, 1, 0, 0 }, 9 },
	{ { 2, 6, 6, 3, 1, 1, 2, 2, 0, 0 }, 5 },
	{ { 1, 1, 1, 1, 1, 1, 1, 1, 0, 0 }, 1 },
	{ { 1, 3, 3, 2, 7, 7, 4, 4, 3, 3 }, 3 },
	{ { 7, 40, 40, 12, 3, 3, 1, 1, 1, 1 }, 10 },       /* several tiles */
	{ { 1, 2, 2, 3, 5, 5, 1, 1, 0, 0 }, 2 },           /* the window does not fit: nothing to do */
	{ { 2, 9, 10, 4, 2, 3, 3, 4, 1, 2 }, 3 },          /* windows apart, with gaps; some hang over */
	{ { 1, 6, 70, 3, 17, 5, 2, 1, 8, 2 }, 4 },         /* more lines than pointers are held for */
	{ { 2, 9, 21, 23, 3, 3, 2, 2, 1, 1 }, 7 },
	/* wide, by minimal filtering: odd and even sides, one pixel, other padding, channels that fill no vector, many blocks */
	{ { 2, 7, 5, 33, 3, 3, 1, 1, 1, 1 }, 37 },
	{ { 3, 4, 6, 32, 3, 3, 1, 1, 0, 2 }, 48 },
	{ { 1, 1, 1, 40, 3, 3, 1, 1, 1, 1 }, 32 },
	{ { 1, 3, 4, 32, 3, 3, 1, 1, 2, 0 }, 200 },
	{ { 3, 30, 31, 48, 3, 3, 1, 1, 1, 1 }, 70 },
	{ { 2, 2, 2, 16, 3, 3, 1, 1, 1, 1 }, 260 },
};
enum { CASES = sizeof cases / sizeof *cases };

static int64_t in_size(const struct nr_window *w) { return w->B * w->H * w->W * w->C; }

/* One output value in double; depthwise: only channel o of the input. */
static double direct(const struct nr_window *w, int depthwise, int64_t O, const real *x, const real *f, int64_t at)
{
	const int64_t Wo = nr_window_w(w), Ho = nr_window_h(w), I = depthwise ? 1 : w->C;
	const int64_t o = at % O, ox = at / O % Wo, oy = at / O / Wo % Ho, b = at / O / Wo / Ho;
	double s = 0;
	for (int64_t ky = 0; ky < w->kh; ky++)
		for (int64_t kx = 0; kx < w->kw; kx++)
			for (int64_t i = 0; i < I; i++) {
				const int64_t y = oy * w->sh - w->ph + ky, c = ox * w->sw - w->pw + kx;
				if (y < 0 || y >= w->H || c < 0 || c >= w->W) continue;
				s += (double)x[((b * w->H + y) * w->W + c) * w->C + (depthwise ? o : i)] *
					(double)f[((o * I + i) * w->kh + ky) * w->kw + kx];
			}
	return s;
}

struct problem {
	struct nr_conv c;
	int depthwise;
	int64_t nx, nw, ny, O;
	real *x, *weight, *bias, *dy;
	void *scratch;
};

static void plan(struct problem *p, int threads)
{
	p->c.threads = threads;
	free(p->scratch);
	p->scratch = malloc((p->depthwise ? nr_depthwise_scratch(&p->c.w) : nr_conv_scratch(&p->c)) + 1);
}

static struct problem problem(const struct nr_conv *c, int depthwise)
{
	const int64_t O = depthwise ? c->w.C : c->O;
	struct problem p = { .c = *c, .depthwise = depthwise, .O = O, .nx = in_size(&c->w),
		.nw = O * c->w.kh * c->w.kw * (depthwise ? 1 : c->w.C), .ny = nr_window_rows(&c->w) * O };
	p.x = values(p.nx);
	p.weight = values(p.nw);
	p.bias = values(O);
	p.dy = values(p.ny);
	p.scratch = NULL;
	plan(&p, 3);
	return p;
}

static void done(struct problem *p)
{
	free(p->x);
	free(p->weight);
	free(p->bias);
	free(p->dy);
	free(p->scratch);
}

static void forward(const struct problem *p, const real *x, const real *weight, const real *bias, real *y)
{
	if (p->depthwise) nr_depthwise_forward(&p->c.w, x, weight, bias, y, p->scratch);
	else nr_conv_forward(&p->c, x, weight, bias, y, p->scratch);
}

static void data(const struct problem *p, real *dx, int add)
{
	if (p->depthwise) nr_depthwise_backward_data(&p->c.w, p->dy, p->weight, dx, add, p->scratch);
	else nr_conv_backward_data(&p->c, p->dy, p->weight, dx, add, p->scratch);
}

static void weights(const struct problem *p, real *dw, int add, real *db, int add_bias)
{
	if (p->depthwise) nr_depthwise_backward_weight(&p->c.w, p->x, p->dy, dw, add, db, add_bias, p->scratch);
	else nr_conv_backward_weight(&p->c, p->x, p->dy, dw, add, db, add_bias, p->scratch);
}

static void values_are_the_definition(void **state)
{
	(void)state;
	for (int set = isa_next(-1); set >= 0; set = isa_next(set))
		for (int i = 0; i < 2 * CASES; i++) {
			struct problem p = problem(&cases[i / 2], i % 2);
			real *y = values(p.ny), *z = values(p.ny);
			forward(&p, p.x, p.weight, p.bias, y);
			forward(&p, p.x, p.weight, NULL, z);
			for (int64_t o = 0; o < p.ny; o++) {
				const double want = direct(&p.c.w, p.depthwise, p.O, p.x, p.weight, o);
				assert_true(fabs((double)z[o] - want) < 3e-6);
				assert_true(fabs((double)y[o] - want - (double)p.bias[o % p.O]) < 3e-6);
			}
			free(y);
			free(z);
			done(&p);
		}
}

/* <dy, conv(u, w)> = <dx, u> for every u, and the same for the weight: u is each unit vector in turn where that is cheap,
 * random otherwise. */
static void gradients_are_the_transpose(void **state)
{
	(void)state;
	for (int set = isa_next(-1); set >= 0; set = isa_next(set))
		for (int i = 0; i < 2 * CASES; i++) {
			struct problem p = problem(&cases[i / 2], i % 2);
			real *dx = values(p.nx), *dw = values(p.nw), *db = values(p.O), *y = blank(p.ny);
			data(&p, dx, 0);
			weights(&p, dw, 0, db, 0);
			const double bound = 2e-6 * sqrt((double)p.nx * (double)p.nw) + 1e-5;
			for (int t = 0; t < 8; t++) {
				real *u = t < 2 ? values(p.nx) : blank(p.nx), *v = t < 2 ? values(p.nw) : blank(p.nw);
				if (t >= 2) u[(int64_t)(((double)value() + .5) * (double)p.nx)] = 1;
				if (t >= 2) v[(int64_t)(((double)value() + .5) * (double)p.nw)] = 1;
				forward(&p, u, p.weight, NULL, y);
				assert_true(fabs(dot_of(p.dy, y, p.ny) - dot_of(dx, u, p.nx)) < bound);
				forward(&p, p.x, v, NULL, y);
				assert_true(fabs(dot_of(p.dy, y, p.ny) - dot_of(dw, v, p.nw)) < bound);
				free(u);
				free(v);
			}
			for (int64_t o = 0; o < p.O; o++) {
				double s = 0;
				for (int64_t r = 0; r < p.ny / p.O; r++) s += (double)p.dy[r * p.O + o];
				assert_true(fabs(s - (double)db[o]) < 1e-5 + 1e-7 * (double)(p.ny / p.O));
			}
			free(dx);
			free(dw);
			free(db);
			free(y);
			done(&p);
		}
}

static void adding_adds(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * CASES; i++) {
		struct problem p = problem(&cases[i / 2], i % 2);
		real *a = blank(p.nx), *b = values(p.nx), *start = copy_of(b, p.nx);
		data(&p, a, 0);
		data(&p, b, 1);
		for (int64_t j = 0; j < p.nx; j++) assert_true(fabs((double)(b[j] - start[j] - a[j])) < 1e-5);
		real *dw = blank(p.nw), *ew = values(p.nw), *from = copy_of(ew, p.nw);
		real *db = blank(p.O), *eb = copy_of(p.bias, p.O);
		weights(&p, dw, 0, db, 0);
		weights(&p, ew, 1, eb, 1);
		for (int64_t j = 0; j < p.nw; j++) assert_true(fabs((double)(ew[j] - from[j] - dw[j])) < 1e-4);
		for (int64_t j = 0; j < p.O; j++) assert_true(fabs((double)(eb[j] - p.bias[j] - db[j])) < 1e-4);
		weights(&p, ew, 0, NULL, 0);
		assert_same_bits(ew, dw, p.nw);
		free(a);
		free(b);
		free(start);
		free(dw);
		free(ew);
		free(from);
		free(db);
		free(eb);
		done(&p);
	}
}

static void bits_do_not_depend_on_threads(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * CASES; i++) {
		struct problem p = problem(&cases[i / 2], i % 2);
		const int64_t n[4] = { p.ny, p.nx, p.nw, p.O };
		real *out[3][4];
		for (int t = 0; t < 3; t++) {
			for (int j = 0; j < 4; j++) out[t][j] = blank(n[j]);
			plan(&p, t + 1);
			omp_set_num_threads(t + 1);
			forward(&p, p.x, p.weight, p.bias, out[t][0]);
			data(&p, out[t][1], 0);
			weights(&p, out[t][2], 0, out[t][3], 0);
		}
		omp_set_num_threads(2);
		for (int j = 0; j < 4; j++) {
			assert_same_bits(out[0][j], out[1][j], n[j]);
			assert_same_bits(out[0][j], out[2][j], n[j]);
		}
		for (int t = 0; t < 3; t++)
			for (int j = 0; j < 4; j++) free(out[t][j]);
		done(&p);
	}
}

/* Outputs and gradients of the data: of all samples, and of each one alone. */
static void a_sample_does_not_depend_on_its_batch(void **state)
{
	(void)state;
	for (int set = isa_next(-1); set >= 0; set = isa_next(set))
		for (int i = 0; i < 2 * CASES; i++) {
			struct problem p = problem(&cases[i / 2], i % 2);
			const int64_t B = p.c.w.B, nx = p.nx / B, ny = p.ny / B;
			real *y = blank(p.ny), *dx = blank(p.nx), *alone_y = blank(ny), *alone_dx = blank(nx);
			real *dy = p.dy;
			forward(&p, p.x, p.weight, p.bias, y);
			data(&p, dx, 0);
			p.c.w.B = 1;
			plan(&p, 2);
			for (int64_t b = 0; b < B; b++) {
				forward(&p, p.x + b * nx, p.weight, p.bias, alone_y);
				p.dy = dy + b * ny;
				data(&p, alone_dx, 0);
				assert_same_bits(alone_y, y + b * ny, ny);
				assert_same_bits(alone_dx, dx + b * nx, nx);
			}
			p.dy = dy;
			free(y);
			free(dx);
			free(alone_y);
			free(alone_dx);
			done(&p);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_the_definition),
		cmocka_unit_test(gradients_are_the_transpose),
		cmocka_unit_test(adding_adds),
		cmocka_unit_test(bits_do_not_depend_on_threads),
		cmocka_unit_test(a_sample_does_not_depend_on_its_batch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
