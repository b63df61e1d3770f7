/* src/models/fpn.c: levels and their sizes, the way down, further levels, norms of the neck. */
#include "models/fpn.h"

#include "models/stages.h"
#include "norma/norm.h"
#include "unit/rig.h"

/* Maps of 5 x 7, 3 x 4 and 2 x 2 places with 3, 4 and 5 channels. */
static int pyramid(struct rig *r, const char *plan, struct nr_fpn c, nr_t **out)
{
	static const int32_t size[3][3] = { { 5, 7, 3 }, { 3, 4, 4 }, { 2, 2, 5 } };
	nr_t *level[3];
	assert_int_equal(nr_norms_use(r->n, plan, &(struct nr_norm_defaults){ .norm = "layer", .placement = "pre" }, &r->err), 0);
	for (int i = 0; i < 3; i++) {
		nr_t *x = reals(r, 3, 2, size[i][0] * size[i][1], size[i][2], 1);
		level[i] = nr_with_tokens(r->n, x, (struct nr_tokens){ .h = size[i][0], .w = size[i][1] });
	}
	return nr_fpn(r->n, &c, level, 3, out);
}

static void levels_keep_their_size_and_get_one_width(void **state)
{
	static const int32_t want[5][2] = { { 5, 7 }, { 3, 4 }, { 2, 2 }, { 1, 1 }, { 1, 1 } };
	(void)state;
	for (int extra = NR_FPN_NO_EXTRA; extra <= NR_FPN_CONV_OUTPUT; extra++) {
		struct rig r = rig();
		nr_t *out[NR_MAXLEVELS];
		const struct nr_fpn c = { .dim = 6, .extra = (enum nr_fpn_extra)extra, .extras = 2, .relu_between = true };
		assert_int_equal(pyramid(&r, "", c, out), extra ? 5 : 3);
		for (int i = 0; i < (extra ? 5 : 3); i++) {
			assert_int_equal(out[i]->tok->h, want[i][0]);
			assert_int_equal(out[i]->tok->w, want[i][1]);
			assert_int_equal(nr_cols(out[i]), 6);
		}
		const struct nr_entry *e = nr_store_find(r.store, "levels.3.neck.extra.conv.weight");
		assert_int_equal(e ? e->d[1] : 0, extra == NR_FPN_CONV_INPUT ? 5 : extra == NR_FPN_CONV_OUTPUT ? 6 : 0);
		assert_non_null(nr_store_find(r.store, "levels.2.neck.lateral.conv.bias"));
		assert_null(nr_store_find(r.store, "levels.2.neck.lateral.weight"));
		release(&r);
	}
}

static void a_norm_takes_the_place_of_the_bias(void **state)
{
	(void)state;
	struct rig r = rig();
	nr_t *out[NR_MAXLEVELS];
	assert_int_equal(pyramid(&r, "layer neck.lateral=group:groups=2 levels[1:].neck.out=batch neck.extra=batch",
		(struct nr_fpn){ .dim = 6, .extra = NR_FPN_CONV_OUTPUT, .extras = 1 }, out), 4);
	assert_null(nr_store_find(r.store, "levels.0.neck.lateral.conv.bias"));
	assert_non_null(nr_store_find(r.store, "levels.0.neck.lateral.weight"));
	assert_non_null(nr_store_find(r.store, "levels.0.neck.out.conv.bias"));
	assert_non_null(nr_store_find(r.store, "levels.3.neck.extra.running_mean"));
	assert_int_equal(nr_norms_done(r.n, &r.err), 0);
	release(&r);
}

static void every_place_gets_the_nearest_of_the_coarser_map(void **state)
{
	(void)state;
	struct rig r = rig();
	nr_t *x = reals(&r, 4, 1, 5, 7, 2), *s = reals(&r, 4, 1, 3, 4, 2);
	const real *y = run_with(&r, nr_upsample_add(r.n, x, s), (struct nr_exec){ 0 }, NR_RUN_FORWARD);
	static const int row[5] = { 0, 0, 1, 1, 2 }, col[7] = { 0, 0, 1, 1, 2, 2, 3 };
	for (int i = 0; i < 5; i++)
		for (int j = 0; j < 7; j++)
			for (int c = 0; c < 2; c++)
				assert_true(y[(i * 7 + j) * 2 + c] == data(&r, 0)[(i * 7 + j) * 2 + c] +
					data(&r, 1)[(row[i] * 4 + col[j]) * 2 + c]);
	release(&r);
}

static void strides_are_powers_of_two_where_sizes_are_not(void **state)
{
	(void)state;
	static const struct { int64_t size, n[4]; double want[4]; } cases[] = {
		{ 96, { 24, 12, 6, 3 }, { 4, 8, 16, 32 } }, { 75, { 19, 10, 5, 3 }, { 4, 8, 16, 32 } },        /* rounded up */
		{ 101, { 25, 12, 6, 3 }, { 4, 8, 16, 32 } }, { 33, { 9, 5, 3, 2 }, { 4, 8, 16, 32 } },
		{ 56, { 16, 8, 4, 2 }, { 3.5, 7, 14, 28 } },                                                    /* patches of 14 */
		{ 64, { 8, 8, 4, 1 }, { 8, 8, 16, 64 } },
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct rig r = rig();
		nr_t *map[4];
		double stride[4];
		for (int i = 0; i < 4; i++)
			map[i] = nr_with_tokens(r.n, reals(&r, 3, 1, cases[k].n[i], 1, 1), (struct nr_tokens){ .h = (int32_t)cases[k].n[i],
				.w = 1 });
		nr_level_strides(cases[k].size, map, 4, stride);
		for (int i = 0; i < 4; i++) assert_true(stride[i] == cases[k].want[i]);
		release(&r);
	}
}

static void too_many_levels_are_an_error(void **state)
{
	(void)state;
	struct rig r = rig();
	nr_t *out[NR_MAXLEVELS];
	assert_int_equal(pyramid(&r, "", (struct nr_fpn){ .dim = 6, .extra = NR_FPN_POOL, .extras = 6 }, out), 0);
	assert_non_null(strstr(nr_net_error(r.n)->detail, "1 to 8 levels, not 9"));
	release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_keep_their_size_and_get_one_width),
		cmocka_unit_test(a_norm_takes_the_place_of_the_bias),
		cmocka_unit_test(every_place_gets_the_nearest_of_the_coarser_map),
		cmocka_unit_test(strides_are_powers_of_two_where_sizes_are_not),
		cmocka_unit_test(too_many_levels_are_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
