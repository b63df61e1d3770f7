/* The blend family: every set against the plain reference on odd sizes and strides, with and without the rows' parts. */
#include "unit/values.h"

#include "math/blend.h"

struct run { real *y, *dx, *sums[4], *rows[2]; };

static struct run run(const struct nr_blend_kernels *k, const struct nr_blend *b, const real *dy, const struct nr_blend_grad *g,
	const struct run *start, int add)
{
	const int64_t ld = b->ldx, n = b->rows * ld;
	struct run t = { copy_of(start->y, n), copy_of(start->dx, n), { 0 }, { 0 } };
	for (int i = 0; i < 4; i++) t.sums[i] = copy_of(start->sums[i], b->C + 1);
	for (int i = 0; i < 2; i++) t.rows[i] = copy_of(start->rows[i], b->rows + 1);
	k->forward(b, t.y, ld);
	k->sums(b, dy, ld, &(struct nr_blend_sums){ t.sums[0], t.sums[1], t.sums[2], t.sums[3], b->row_mean ? t.rows[0] : NULL,
		b->row_mean ? t.rows[1] : NULL });
	k->apply(b, dy, ld, g, t.dx, ld, add);
	return t;
}

static void run_free(struct run *t)
{
	free(t->y), free(t->dx);
	for (int i = 0; i < 4; i++) free(t->sums[i]);
	for (int i = 0; i < 2; i++) free(t->rows[i]);
}

static real *positive(int64_t n)
{
	real *x = values(n);
	for (int64_t i = 0; i < n; i++) x[i] += (real).75;
	return x;
}

static void check(int64_t rows, int64_t C, int tokens, int channels, int add)
{
	const int64_t ld = C + 3;
	real *x = values(rows * ld), *dy = values(rows * ld), *v[10];
	for (int i = 0; i < 10; i++) v[i] = i == 1 || i == 3 ? positive(nr_max64(C, rows)) : values(nr_max64(C, rows));
	struct nr_blend b = { rows, C, x, ld, v[0], v[1], tokens ? v[2] : NULL, tokens ? v[3] : NULL, v[4], v[5], (real)1e-3 };
	const struct nr_blend_grad g = { channels ? v[6] : NULL, channels ? v[7] : NULL, channels ? v[8] : NULL,
		tokens ? v[9] : NULL, tokens ? v[6] : NULL, tokens ? v[7] : NULL };
	struct run start = { values(rows * ld), values(rows * ld), { values(C + 1), values(C + 1), values(C + 1), values(C + 1) },
		{ values(rows + 1), values(rows + 1) } };
	struct run want = run(&nr_blend_plain, &b, dy, &g, &start, add), got = run(nr_blend_active, &b, dy, &g, &start, add);
	assert_near(got.y, want.y, rows * ld, 2e-6);
	assert_near(got.dx, want.dx, rows * ld, 2e-6);
	for (int i = 0; i < 4; i++) assert_near(got.sums[i], want.sums[i], C + 1, 1e-6 * (double)(rows + 4));
	for (int i = 0; i < 2; i++) assert_near(got.rows[i], want.rows[i], rows + 1, 1e-6 * (double)(C + 4));
	for (int64_t r = 0; r < rows; r++) /* gaps keep their values */
		for (int64_t i = C; i < ld; i++)
			assert_true(got.y[r * ld + i] == start.y[r * ld + i] &&
				got.dx[r * ld + i] == start.dx[r * ld + i]);
	run_free(&start), run_free(&want), run_free(&got);
	free(x), free(dy);
	for (int i = 0; i < 10; i++) free(v[i]);
}

static void every_set_agrees_with_the_reference(void **state)
{
	(void)state;
	const int64_t widths[] = { 1, 3, 7, 8, 9, 16, 17, 33, 70 }, heights[] = { 0, 1, 5 };
	for (int s = isa_next(-1); s >= 0; s = isa_next(s))
		for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
			for (size_t h = 0; h < sizeof heights / sizeof *heights; h++)
				for (int kind = 0; kind < 8; kind++) check(heights[h], widths[w], kind & 1, kind >> 1 & 1, kind >> 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_set_agrees_with_the_reference) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
