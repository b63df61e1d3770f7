/* src/train/shards.c: which shards a rank has, and sums by the tree over them. */
#include "unit/rig.h"

#include "train/shards.h"

static void a_batch_that_cannot_be_shared_is_refused(void **state)
{
	struct nr_shards s;
	struct nr_error err = { 0 };
	(void)state;
	assert_int_equal(nr_shards_share(&s, NULL, 12, 0, &err), 0);
	assert_true(s.count == 1 && s.local == 1 && s.first == 0);
	assert_int_equal(nr_shards_share(&s, NULL, 12, 4, &err), 0);
	assert_true(s.count == 4 && s.local == 4 && s.first == 0);
	assert_true(nr_shards_share(&s, NULL, 12, 3, &err) < 0);
	assert_non_null(strstr(err.detail, "no power of two"));
	err = (struct nr_error){ 0 };
	assert_true(nr_shards_share(&s, NULL, 12, 8, &err) < 0);
	assert_non_null(strstr(err.hint, "--batch 16"));
}

/* The sum of four shards is (0 + 1) + (2 + 3), and buffers become means of what each made of those before the step. */
static void shards_are_summed_by_the_tree(void **state)
{
	enum { SHARDS = 4 };
	const real grad[SHARDS] = { (real)1e8, 1, (real)-1e8, (real)0.5 };
	struct nr_error err = { 0 };
	const struct nr_train c = { 0 };
	struct nr_shards s;
	struct rig r = rig();
	(void)state;
	nr_t *x = reals(&r, 2, 3, 4, 1, 1), *w = nr_param(r.n, "w", NR_ONES, NR_SHAPE(4)), *b = nr_buffer(r.n, "b", NR_ONES, NR_SHAPE(1));
	assert_non_null(b);
	nr_t *y = nr_scale_channels(r.n, x, w), *loss = nr_mse(r.n, y, x);
	assert_int_equal(nr_plan_make(&r.plan, r.n, loss, NR_PLAN_TRAIN, &r.err), 0);
	assert_int_equal(nr_shards_share(&s, NULL, 8, SHARDS, &err), 0);
	assert_int_equal(nr_shards_open(&s, &c, r.plan, r.store, NULL, &err), 0);
	real *g = nr_grad(w->entry), *v = nr_value(b->entry);
	for (int i = 0; i < SHARDS; i++) {
		nr_shards_begin(&s, i);
		assert_true(*v == 1);
		g[0] = grad[i];
		*v += (real)i;
		nr_shards_end(&s, i);
		s.said[i * NR_SHARD_SAYS] = (double)grad[i];
	}
	assert_int_equal(nr_shards_sum(&s, &err), 0);
	assert_int_equal(nr_shards_tell(&s, &err), 0);
	assert_true(g[0] == (grad[0] + grad[1]) + (grad[2] + grad[3]));
	assert_true(*v == (real)2.5);
	assert_true(s.said[NR_SAID_LOSS] == ((double)grad[0] + (double)grad[1]) + ((double)grad[2] + (double)grad[3]));
	nr_shards_close(&s);
	release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_that_cannot_be_shared_is_refused),
		cmocka_unit_test(shards_are_summed_by_the_tree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
