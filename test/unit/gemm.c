/* gemm: every transposition, tail, and epilogue against a loop in double; equal bits at 1, 2 and 3 threads. */
#include "unit/values.h"

#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include "math/gemm.h"

static double act(enum nr_act f, double x)
{
	switch (f) {
	case NR_ACT_RELU: return x > 0 ? x : 0;
	case NR_ACT_GELU: return x * .5 * erfc(-x / sqrt(2));
	case NR_ACT_TANH: return tanh(x);
	default: return x;
	}
}

static double slope(enum nr_act f, double x) { return (act(f, x + 1e-6) - act(f, x - 1e-6)) / 2e-6; }

static double at(const real *x, int64_t ld, int t, int64_t i, int64_t j) { return t ? x[j * ld + i] : x[i * ld + j]; }

/* Runs g and compares every element of C (and pre) with double. The bound: rounding of a sum of k products of numbers
 * below 1/4, then of the epilogue. Elements between the rows must stay as they were. */
static void check(struct nr_gemm g)
{
	const int64_t count = g.count ? g.count : 1, rows = g.m * count;
	g.stride_c = g.m * g.ldc;
	real *c = values(rows * g.ldc), *old = malloc((size_t)(rows * g.ldc + 1) * sizeof(real));
	memcpy(old, c, (size_t)(rows * g.ldc) * sizeof(real));
	real *pre = g.pre ? values(g.m * g.ldc) : NULL;
	g.c = c;
	g.pre = pre;
	g.ldpre = g.ldc;
	void *scratch = malloc(nr_gemm_scratch_of(&g) + 1);
	nr_gemm_run(&g, scratch);
	const double eps = sizeof(real) == 4 ? 6e-8 : 1.1e-16, bound = eps * (4 * sqrt((double)g.k) + 40);
	for (int64_t b = 0; b < count; b++)
		for (int64_t i = 0; i < g.m; i++)
			for (int64_t j = 0; j < g.ldc; j++) {
				const int64_t at_c = b * g.stride_c + i * g.ldc + j;
				if (j >= g.n) {
					assert_true(c[at_c] == old[at_c]);
					continue;
				}
				double s = g.bias ? (double)g.bias[j] : 0;
				for (int64_t p = 0; p < g.k; p++)
					s += at(g.a + b * g.stride_a, g.lda, g.ta, i, p) * at(g.b + b * g.stride_b, g.ldb, g.tb, p, j);
				if (pre) assert_true(fabs((double)pre[i * g.ldpre + j] - s) <= bound);
				s = g.dact ? s * slope(g.act, (double)g.dact[i * g.lddact + j]) : act(g.act, s);
				if (g.residual) s += (double)g.residual[i * g.ldr + j];
				if (g.add) s += (double)old[at_c];
				if (fabs((double)c[at_c] - s) > bound + (g.dact ? 2e-6 : 0))
					fail_msg("%ldx%ldx%ld ta %d tb %d at %ld,%ld: %.9g, want %.9g", (long)g.m, (long)g.n,
						(long)g.k, g.ta, g.tb, (long)i, (long)j, (double)c[at_c], s);
			}
	free(scratch);
	free(pre);
	free(old);
	free(c);
}

static void every_transposition(int64_t m, int64_t n, int64_t k, int64_t pad)
{
	for (int t = 0; t < 4; t++) {
		const int ta = t & 1, tb = t >> 1;
		const int64_t lda = (ta ? m : k) + pad, ldb = (tb ? k : n) + pad;
		real *a = values((ta ? k : m) * lda), *b = values((tb ? n : k) * ldb), *bias = values(n);
		struct nr_gemm g = { .m = m, .n = n, .k = k, .a = a, .lda = lda, .ta = ta, .b = b, .ldb = ldb, .tb = tb,
			.ldc = n + pad };
		check(g);
		g.bias = bias;
		check(g);
		g.add = 1;
		check(g);
		free(a);
		free(b);
		free(bias);
	}
}

static void products_of_odd_sizes_are_right(void **state)
{
	(void)state;
	static const int64_t m[] = { 1, 3, 6, 17, 29, 150 }, n[] = { 1, 5, 16, 17, 40, 131 }, k[] = { 0, 1, 7, 64, 401 };
	for (int set = isa_next(-1); set >= 0; set = isa_next(set))
		for (int i = 0; i < 6; i++)
			for (int j = 0; j < 6; j++)
				for (int p = 0; p < 5; p++) every_transposition(m[i], n[j], k[p], (i + j + p) % 3 * 5);
}

static void large_products_are_right(void **state)
{
	(void)state;
	for (int set = isa_next(-1); set >= 0; set = isa_next(set)) {
		every_transposition(401, 196, 391, 0);
		every_transposition(64, 70, 2100, 3);  /* K is cut */
		every_transposition(8, 1000, 33, 0);   /* columns are cut */
		every_transposition(517, 37, 301, 2);  /* three tiles of a transposed A */
		every_transposition(30, 210, 2, 3);    /* a short k */
		every_transposition(203, 900, 16, 0);
		every_transposition(2, 70, 700, 1);    /* two rows: pieces of K side by side, three of them */
		every_transposition(1, 33, 400, 0);
		every_transposition(77, 1, 80, 0);     /* a single column */
	}
}

static void empty_products_touch_nothing(void **state)
{
	(void)state;
	real c = 7;
	nr_gemm_run(&(struct nr_gemm){ .m = 0, .n = 1, .k = 1, .c = &c }, NULL);
	nr_gemm_run(&(struct nr_gemm){ .m = 1, .n = 0, .k = 1, .c = &c }, NULL);
	assert_true(c == 7);
}

static void epilogues_follow_the_product(void **state)
{
	(void)state;
	static const enum nr_act acts[] = { NR_ACT_NONE, NR_ACT_RELU, NR_ACT_GELU, NR_ACT_TANH };
	static const int64_t sizes[][3] = { { 37, 45, 19 }, { 1, 1, 1 }, { 300, 270, 40 }, { 20, 33, 1100 } };
	for (int set = isa_next(-1); set >= 0; set = isa_next(set))
		for (int s = 0; s < 4; s++)
			for (int f = 0; f < 4; f++)
				for (int bits = 0; bits < 32; bits++) {
					const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
					if (s > 1 && bits != 7 && bits != 24 && bits != 31) continue;
					real *a = values(m * k), *b = values(n * k), *bias = values(n), *x = values(m * n), dummy;
					struct nr_gemm g = { .m = m, .n = n, .k = k, .a = a, .lda = bits & 16 ? m : k,
						.ta = !!(bits & 16), .b = b, .ldb = k, .tb = 1, .ldc = n, .act = acts[f],
						.bias = bits & 1 ? bias : NULL, .residual = bits & 2 ? x : NULL, .ldr = n,
						.pre = bits & 4 ? &dummy : NULL };
					if (bits & 8) {
						g.dact = x;
						g.lddact = n;
						g.pre = NULL;
						g.bias = NULL;
						/* no kink of relu near a sample */
						for (int64_t i = 0; i < m * n; i++)
							if (nr_fabs(x[i]) < (real)1e-5) x[i] = (real).1;
					}
					check(g);
					free(a);
					free(b);
					free(bias);
					free(x);
				}
}

static void batches_are_single_products(void **state)
{
	(void)state;
	for (int set = isa_next(-1); set >= 0; set = isa_next(set))
		for (int t = 0; t < 4; t++) {
			const int64_t m = 23, n = 19, k = 31, count = 5;
			real *a = values(m * k * count + 11 * count), *b = values(n * k * count);
			check((struct nr_gemm){ .m = m, .n = n, .k = k, .a = a, .ta = t & 1, .lda = t & 1 ? m : k, .b = b,
				.tb = t >> 1, .ldb = t >> 1 ? k : n, .ldc = n + 2, .count = count, .stride_a = m * k + 11,
				.stride_b = n * k });
			free(a);
			free(b);
		}
}

/* The cuts depend on the shape only. */
static void bits_do_not_depend_on_threads(void **state)
{
	(void)state;
	static const int64_t sizes[][3] = { { 700, 130, 90 }, { 64, 48, 3000 }, { 190, 300, 1000 }, { 8, 1000, 192 } };
	for (int set = isa_next(-1); set >= 0; set = isa_next(set))
		for (int s = 0; s < 4; s++)
			for (int t = 0; t < 4; t++) {
				const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
				real *a = values(m * k), *b = values(n * k), *bias = values(n), *c[3];
				for (int i = 0; i < 3; i++) {
					c[i] = malloc((size_t)(m * n) * sizeof(real));
					struct nr_gemm g = { .m = m, .n = n, .k = k, .a = a, .ta = t & 1, .lda = t & 1 ? m : k,
						.b = b, .tb = t >> 1, .ldb = t >> 1 ? k : n, .c = c[i], .ldc = n,
						.bias = bias, .act = NR_ACT_GELU };
					void *scratch = malloc(nr_gemm_scratch(m, n, k, t & 1, t >> 1) + 1);
					omp_set_num_threads(i + 1);
					nr_gemm_run(&g, scratch);
					free(scratch);
				}
				omp_set_num_threads(2);
				assert_memory_equal(c[0], c[1], (size_t)(m * n) * sizeof(real));
				assert_memory_equal(c[0], c[2], (size_t)(m * n) * sizeof(real));
				for (int i = 0; i < 3; i++) free(c[i]);
				free(a);
				free(b);
				free(bias);
			}
}

/* A sample's numbers do not depend on the batch: rows of A, alone and among others, with every epilogue that steps use. */
static void rows_do_not_depend_on_their_number(void **state)
{
	(void)state;
	enum { M = 301, MOST_N = 150, MOST_K = 700 };
	static const int64_t n[] = { 33, MOST_N, 1, MOST_N }, k[] = { 65, MOST_K, 80, 20 };
	real *a = values(M * MOST_K), *b = values(MOST_N * MOST_K), *bias = values(MOST_N);
	real *all = blank(M * MOST_N), *few = blank(M * MOST_N);
	for (int set = isa_next(-1); set >= 0; set = isa_next(set))
		for (int s = 0; s < 8; s++) {
			const int tb = s & 1;
			struct nr_gemm g = { .m = M, .n = n[s >> 1], .k = k[s >> 1], .a = a, .lda = k[s >> 1], .b = b, .tb = tb,
				.ldb = tb ? k[s >> 1] : n[s >> 1], .c = all, .ldc = n[s >> 1], .bias = bias, .act = NR_ACT_GELU };
			nr_gemm_run(&g, NULL);
			for (int64_t rows = 1; rows <= 40; rows += rows < 18 ? 1 : 11) {
				const int64_t from = 7 * rows % (M - rows);
				g.m = rows;
				g.a = a + from * g.lda;
				g.c = few;
				nr_gemm_run(&g, NULL);
				assert_same_bits(few, all + from * g.ldc, rows * g.n);
			}
		}
	free(a);
	free(b);
	free(bias);
	free(all);
	free(few);
}

/* n values whose last one is followed by memory that may not be touched. */
static real *guarded(int64_t n, void **map, size_t *size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = ((size_t)n * sizeof(real) + page - 1) / page * page;
	*size = bytes + page;
	char *p = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(mprotect(p + bytes, page, PROT_NONE), 0);
	*map = p;
	real *x = (real *)(void *)(p + bytes) - n;
	for (int64_t i = 0; i < n; i++) x[i] = value();
	return x;
}

static void nothing_is_touched_beyond_the_arrays(void **state)
{
	(void)state;
	static const int64_t sizes[][3] = { { 1, 1, 1 }, { 13, 17, 5 }, { 29, 33, 300 }, { 200, 47, 515 }, { 15, 31, 16 },
		{ 2, 37, 517 }, { 21, 150, 3 }, { 40, 1, 33 } };
	for (int set = isa_next(-1); set >= 0; set = isa_next(set))
		for (int s = 0; s < 8; s++)
			for (int t = 0; t < 4; t++) {
				const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
				void *map[4];
				size_t size[4];
				const real *a = guarded(m * k, &map[0], &size[0]), *b = guarded(n * k, &map[1], &size[1]);
				real *c = guarded(m * n, &map[2], &size[2]), *bias = guarded(n, &map[3], &size[3]);
				void *scratch = malloc(nr_gemm_scratch(m, n, k, t & 1, t >> 1) + 1);
				nr_gemm_run(&(struct nr_gemm){ .m = m, .n = n, .k = k, .a = a, .ta = t & 1, .lda = t & 1 ? m : k,
						    .b = b, .tb = t >> 1, .ldb = t >> 1 ? k : n, .c = c, .ldc = n, .bias = bias,
						    .add = 1 }, scratch);
				free(scratch);
				for (int i = 0; i < 4; i++) munmap(map[i], size[i]);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_of_odd_sizes_are_right),
		cmocka_unit_test(large_products_are_right),
		cmocka_unit_test(empty_products_touch_nothing),
		cmocka_unit_test(epilogues_follow_the_product),
		cmocka_unit_test(batches_are_single_products),
		cmocka_unit_test(bits_do_not_depend_on_threads),
		cmocka_unit_test(rows_do_not_depend_on_their_number),
		cmocka_unit_test(nothing_is_touched_beyond_the_arrays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
