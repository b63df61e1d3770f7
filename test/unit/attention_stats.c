/* Statistics of sparse attention (src/analysis/attention_stats.c, src/nn/sparse.c) against the probabilities themselves: values that
 * are unit vectors make the op's output the matrix of its weights. */
#include "unit/rig.h"

#include "analysis/attention_distance.h"
#include "analysis/attention_stats.h"

enum { B = 2, H = 2, T = 23, D = 24 };          /* a head has room for a unit vector of every token */

/* Queries (and keys) of any values; the values of token t are the t-th unit vector, in every head. */
static nr_t *marked(struct rig *r, int parts)
{
	const int64_t width = parts * H * D;
	nr_t *x = reals(r, 3, B, T, width, 1);
	real *p = r->data[0];
	for (int64_t i = 0; i < B * T; i++)
		for (int64_t c = 0; c < width; c++) {
			real *v = p + i * width + c;
			if (c < (parts - 1) * H * D) *v *= 2;
			else *v = c % D == i % T;
		}
	return x;
}

/* out (B,T,H D) -> (B,H,T,T) */
static void weights_of(const real *out, real *p)
{
	for (int64_t b = 0; b < B; b++)
		for (int64_t h = 0; h < H; h++)
			for (int64_t i = 0; i < T; i++)
				for (int64_t j = 0; j < T; j++)
					p[((b * H + h) * T + i) * T + j] = out[(b * T + i) * H * D + h * D + j];
}

static void as_the_weights_say(struct rig *r, nr_t *y, int64_t special)
{
	static real p[B * H * T * T];
	double distance[H];
	struct nr_head_sums sum[H] = { 0 };
	const struct nr_attention_shape s = { .H = H, .T = T, .d = D, .special = special, .h = 1, .w = T - special, .cls = special > 0 };
	weights_of(run(r, y), p);
	nr_attention_distance(B, H, special, 1, T - special, p, 1, distance, NULL);
	assert_int_equal(nr_sparse_stats(&s, y->src, r->data, B, sum, NULL), 0);
	for (int k = 0; k < H; k++) {
		double entropy = 0, cls = 0, shared = 0, most = 0;
		for (int64_t i = 0; i < B * T; i++) {
			const real *row = p + ((i / T * H + k) * T + i % T) * T;
			const double part = i % T >= special ? 1.0 / (B * (double)(T - special)) : 0;
			int seen = 0;
			for (int64_t j = 0; j < T; j++) {
				const double q = (double)row[j], e = q > 0 ? -q * log(q) : 0;
				seen += q > 0;
				entropy += e * part;
				if (i % T == 0) cls += e / B;
				if (j < special) shared += q * part;
			}
			most += log(seen) * part;
		}
		assert_int_equal(sum[k].samples, B);
		assert_float_equal(sum[k].distance / B, distance[k], 1e-4);
		assert_float_equal(sum[k].entropy / B, entropy, 1e-4);
		assert_float_equal(sum[k].on_special / B, shared, 1e-5);
		assert_float_equal(sum[k].most_entropy / B, most, 1e-9);
		if (special) assert_float_equal(sum[k].cls_entropy / B, cls, 1e-4);
		assert_true(sum[k].logit_max * sum[k].logit_max >= sum[k].logit_square / B);
	}
	release(r);
}

static void blocks_are_what_their_weights_say(void **state)
{
	(void)state;
	for (int64_t special = 0; special < 2; special++) {
		struct rig r = rig();
		as_the_weights_say(&r, nr_block_attention(r.n, marked(&r, 3), (struct nr_block_attention_options){ .heads = H, .block = 3,
			.random = 1 }), special);
	}
	struct rig r = rig();           /* block 0 in place of the drawn ones: it counts three times */
	as_the_weights_say(&r, nr_block_attention(r.n, marked(&r, 3), (struct nr_block_attention_options){ .heads = H, .block = 2,
		.random = 2, .zero_in_eval = true }), 1);
}

static void buckets_are_what_their_weights_say(void **state)
{
	(void)state;
	struct rig r = rig();           /* Reformer: a key may be found in both rounds */
	as_the_weights_say(&r, nr_lsh_attention(r.n, marked(&r, 2), (struct nr_lsh_options){ .heads = H, .rounds = 2, .buckets = { 4 },
		.chunk = 4, .before = 1, .normalize_keys = true, .masked = true, .not_self = true }, NULL), 1);
	r = rig();                      /* the Long Range Arena's */
	as_the_weights_say(&r, nr_lsh_attention(r.n, marked(&r, 2), (struct nr_lsh_options){ .heads = H, .rounds = 1, .buckets = { 2 },
		.multiple = 2, .before = 1, .masked = true, .scale = 1.5F }, NULL), 0);
}

static void chunks_are_what_their_weights_say(void **state)
{
	(void)state;
	struct rig r = rig();
	as_the_weights_say(&r, nr_local_attention(r.n, marked(&r, 3), (struct nr_lsh_options){ .heads = H, .chunk = 4, .before = 1,
		.after = 1, .masked = true }), 0);
}

/* Where every block is seen once, sparse attention is the dense one. */
static void all_blocks_are_the_dense_attention(void **state)
{
	(void)state;
	struct rig r = rig();
	nr_t *x = marked(&r, 3), *y = nr_block_attention(r.n, x, (struct nr_block_attention_options){ .heads = H, .block = 12 });
	const struct nr_attention_shape s = { .H = H, .T = T, .d = D, .special = 1, .h = 1, .w = T - 1, .cls = 1 };
	struct nr_head_sums sparse[H] = { 0 }, dense[H] = { 0 };
	run(&r, y);
	assert_int_equal(nr_sparse_stats(&s, y->src, r.data, B, sparse, NULL), 0);
	assert_int_equal(nr_attention_stats(&s, &(struct nr_attention_batch){ .B = B, .qkv = data(&r, 0) }, dense, NULL), 0);
	for (int k = 0; k < H; k++) {
		assert_float_equal(sparse[k].distance, dense[k].distance, 1e-9);
		assert_float_equal(sparse[k].entropy, dense[k].entropy, 1e-9);
		assert_float_equal(sparse[k].logit_square, dense[k].logit_square, 1e-9);
		assert_float_equal(sparse[k].most_entropy, dense[k].most_entropy, 1e-9);
	}
	release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_what_their_weights_say),
		cmocka_unit_test(buckets_are_what_their_weights_say),
		cmocka_unit_test(chunks_are_what_their_weights_say),
		cmocka_unit_test(all_blocks_are_the_dense_attention),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
