/* The seed family: every set against the plain reference on odd sizes, heads and strides, in place. */
#include "unit/values.h"

#include "math/seed.h"

enum { GRADS = 3, GAP = 16 };           /* between rows; whole lines may stream */
struct run { real *y, *dx, *d[GRADS], *rstd, *gate; };

static struct run run(const struct nr_seed_kernels *k, const struct nr_seed *f, int64_t rows, const real *x, const real *dy,
	const struct run *start, int add)
{
	const int64_t ld = f->C + GAP;
	struct run t = { .y = line_copy_of(start->y, rows * ld), .dx = line_copy_of(start->dx, rows * ld), .rstd = blank(rows),
		.gate = blank(rows * f->heads) };
	for (int i = 0; i < GRADS; i++) t.d[i] = copy_of(start->d[i], f->C);
	k->forward(f, rows, x, ld, t.y, ld, t.rstd, t.gate);
	k->backward(f, rows, x, ld, dy, ld, t.rstd, t.gate, t.dx, ld, add, t.d[0], t.d[1], t.d[2]);
	return t;
}

static void run_free(struct run *t)
{
	for (int i = 0; i < GRADS; i++) free(t->d[i]);
	free(t->y), free(t->dx), free(t->rstd), free(t->gate);
}

static void check(int64_t rows, int64_t width, int64_t heads, int add, int stream)
{
	const int64_t C = width * heads, ld = C + GAP, n = rows * ld;
	real *x = values(n), *dy = values(n), *weight = values(C), *alpha = values(C), *beta = values(C);
	const struct nr_seed f = { C, heads, weight, alpha, beta, (real)1e-3, stream };
	struct run start = { values(n), values(n), { values(C), values(C), values(C) }, NULL, NULL };
	struct run want = run(&nr_seed_plain, &f, rows, x, dy, &start, add), got = run(nr_seed_active, &f, rows, x, dy, &start, add);
	assert_near(got.y, want.y, n, 1e-5);            /* with the gaps, which keep their values */
	assert_near(got.dx, want.dx, n, 1e-5);
	assert_near(got.gate, want.gate, rows * heads, 1e-5);
	for (int i = 0; i < GRADS; i++) assert_near(got.d[i], want.d[i], C, 1e-5 * (double)(rows + 1));
	if (!add) {                                     /* dx may be dy, y may be x */
		nr_seed_active->backward(&f, rows, x, ld, dy, ld, got.rstd, got.gate, dy, ld, 0, start.d[0], start.d[1], start.d[2]);
		nr_seed_active->forward(&f, rows, x, ld, x, ld, got.rstd, got.gate);
		for (int64_t r = 0; r < rows; r++) {
			assert_near(dy + r * ld, got.dx + r * ld, C, 0);
			assert_near(x + r * ld, got.y + r * ld, C, 0);
		}
	}
	run_free(&start), run_free(&want), run_free(&got);
	free(x), free(dy), free(weight), free(alpha), free(beta);
}

static void every_set_agrees_with_the_reference(void **state)
{
	static const int64_t widths[] = { 1, 5, 8, 15, 16, 17, 33, 96 };
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s))
		for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
			for (int64_t rows = 0; rows < 5; rows += 2)
				for (int i = 0; i < 8; i++) check(rows, widths[w], i & 1 ? 3 : 1, i >> 1 & 1, i >> 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_set_agrees_with_the_reference) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
