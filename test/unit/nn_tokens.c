/* src/nn/patch.c and tokens.c against plain loops; at the end a masked autoencoder of all of it, which must learn. */
#include "unit/rig.h"

#include "norma/norm.h"

static void patches_lie_in_the_order_asked_for(void **state)
{
	(void)state;
	for (int mixed = 0; mixed < 2; mixed++) {
		struct rig r = rig();
		nr_t *x = reals(&r, 4, 2, 3, 4, 6);
		nr_t *y = nr_patches(r.n, x, 2, mixed ? NR_PATCH_ROW_COL_CHANNEL : NR_PATCH_CHANNEL_ROW_COL);
		shape_is(y, "2x6x12");
		assert_int_equal(y->tok->h, 2);
		assert_int_equal(y->tok->w, 3);
		const real *p = run(&r, y);
		for (int b = 0; b < 2; b++)
			for (int c = 0; c < 3; c++)
				for (int i = 0; i < 4; i++)
					for (int j = 0; j < 6; j++) {
						const int feature = mixed ? (i % 2 * 2 + j % 2) * 3 + c
							: (c * 2 + i % 2) * 2 + j % 2;
						const real want = data(&r, 0)[((b * 3 + c) * 4 + i) * 6 + j];
						assert_true(p[((b * 6) + i / 2 * 3 + j / 2) * 12 + feature] == want);
					}
		release(&r);
	}
}

static void patch_embedding_is_a_convolution_with_stride_p(void **state)
{
	(void)state;
	struct rig r = rig();
	nr_t *y = nr_patch_linear(r.n, "proj", nr_patches(r.n, reals(&r, 4, 2, 3, 4, 6), 2, NR_PATCH_CHANNEL_ROW_COL), 2, 5);
	shape_is(y, "2x6x5");
	assert_int_equal(y->tok->w, 3);
	const real *out = run(&r, y), *x = data(&r, 0);
	const struct nr_entry *w = nr_store_find(r.store, "proj.weight");
	assert_int_equal(w->nd, 4);
	nr_value(nr_store_find(r.store, "proj.bias"))[3] = 1;
	run(&r, y);
	for (int b = 0; b < 2; b++)
		for (int t = 0; t < 6; t++)
			for (int o = 0; o < 5; o++) {
				double s = o == 3;
				for (int f = 0; f < 12; f++) { /* channel, row, column of the patch */
					const int c = f / 4, i = t / 3 * 2 + f / 2 % 2, j = t % 3 * 2 + f % 2;
					s += (double)nr_value(w)[o * 12 + f] * (double)x[((b * 3 + c) * 4 + i) * 6 + j];
				}
				close_to(&out[(b * 6 + t) * 5 + o], &s, 1, 1e-6);
			}
	release(&r);
}

static void class_token_and_positions_as_in_timm(void **state)
{
	(void)state;
	static const int32_t len[] = { 2, 3 };
	struct rig r = rig();
	nr_t *x = reals(&r, 3, 2, 3, 2, 1), *cls = reals(&r, 3, 1, 1, 2, 1), *pos = reals(&r, 3, 1, 4, 2, 1),
		*valid = ints(&r, len, 1, 2, 1);
	nr_with_tokens(r.n, x, (struct nr_tokens){ .h = 1, .w = 3, .heads = 5, .valid = valid });
	nr_t *y = nr_add_table(r.n, nr_prepend(r.n, cls, x), pos);
	shape_is(y, "2x4x2");
	assert_int_equal(y->tok->special, 1);
	assert_int_equal(y->tok->w, 3);
	assert_int_equal(y->tok->heads, 5);
	nr_tap(r.n, "lengths", y->tok->valid);
	const real *out = run(&r, y);
	for (int i = 0; i < 16; i++) {
		const int b = i / 8, t = i / 2 % 4, c = i % 2;
		const double want = (double)(t ? data(&r, 0)[(b * 3 + t - 1) * 2 + c] : data(&r,
			1)[c]) + (double)data(&r, 2)[t * 2 + c];
		close_to(&out[i], &want, 1, 1e-7);
	}
	const int32_t *longer = nr_plan_data(r.plan, y->tok->valid);
	assert_int_equal(longer[0], 3);
	assert_int_equal(longer[1], 4);
	release(&r);
}

static void taken_tokens_come_back_to_their_places(void **state)
{
	(void)state;
	static const int32_t kept[] = { 3, 0, 1, 2 }, restore[] = { 1, 3, 2, 0, 2, 0, 1, 3 };
	struct rig r = rig();
	nr_t *x = reals(&r, 3, 2, 4, 3, 1), *mask = reals(&r, 3, 1, 1, 3, 1), *index = ints(&r, kept, 2, 2, 2),
		*back = ints(&r, restore, 2, 2, 4);
	nr_with_tokens(r.n, x, (struct nr_tokens){ .h = 2, .w = 2 });
	nr_t *few = nr_take_tokens(r.n, x, index);
	shape_is(few, "2x2x3");
	assert_ptr_equal(few->tok->pos, index);
	assert_int_equal(few->tok->h, 2);
	nr_t *y = nr_restore_tokens(r.n, few, mask, back);
	assert_null(y->tok->pos);
	assert_int_equal(y->tok->w, 2);
	nr_tap(r.n, "few", few);
	const real *out = run(&r, y), *some = nr_plan_data(r.plan, few);
	for (int b = 0; b < 2; b++) {
		for (int i = 0; i < 2; i++)
			assert_same_bits(some + (b * 2 + i) * 3, data(&r, 0) + (b * 4 + kept[b * 2 + i]) * 3, 3);
		for (int t = 0; t < 4; t++) {
			const int visible = t == kept[b * 2] || t == kept[b * 2 + 1];
			assert_same_bits(out + (b * 4 + t) * 3, visible ? data(&r, 0) + (b * 4 + t) * 3 : data(&r,
				1), 3);
		}
	}
	release(&r);
}

static void indices_out_of_range_read_zeros(void **state)
{
	(void)state;
	static const int32_t index[] = { -1, 7, 1 };
	struct rig r = rig();
	nr_t *x = reals(&r, 3, 1, 2, 2, 1);
	const real *y = run(&r, nr_take_tokens(r.n, x, ints(&r, index, 2, 1, 3)));
	for (int i = 0; i < 4; i++) assert_true(y[i] == 0);
	assert_same_bits(y + 4, data(&r, 0) + 2, 2);
	release(&r);
}

static void mean_leaves_out_special_tokens_and_padding(void **state)
{
	(void)state;
	static const int32_t len[] = { 4, 2, 1 };
	struct rig r = rig();
	nr_t *x = reals(&r, 3, 3, 4, 2, 1), *valid = ints(&r, len, 1, 3, 1);
	nr_with_tokens(r.n, x, (struct nr_tokens){ .special = 1, .valid = valid });
	nr_t *y = nr_mean_tokens(r.n, x, NULL);
	shape_is(y, "3x2");
	const real *out = run(&r, y), *v = data(&r, 0);
	for (int c = 0; c < 2; c++) {
		const double want[] = { ((double)v[2 + c] + (double)v[4 + c] + (double)v[6 + c]) / 3,
			(double)v[10 + c], 0 };
		for (int b = 0; b < 3; b++) close_to(&out[b * 2 + c], &want[b], 1, 1e-7);
	}
	release(&r);
}

static nr_t *block(struct nr_net *n, const char *name, int i, nr_t *x, int64_t heads)
{
	nr_push(n, "%s.%d", name, i);
	nr_t *a = nr_attention(n, nr_linear(n, "attn.qkv", nr_norm_make(n, "norm1", "layer", x), 3 * x->d[2]), heads);
	x = nr_add(n, x, nr_drop_path(n, nr_linear(n, "attn.proj", a, x->d[2]), 0.1));
	nr_t *h = nr_linear_gelu(n, "mlp.fc1", nr_norm_make(n, "norm2", "rms", x), 4 * x->d[2]);
	return nr_pop(n, nr_add(n, x, nr_linear(n, "mlp.fc2", h, x->d[2])));
}

static void a_masked_autoencoder_learns(void **state)
{
	(void)state;
	enum { B = 3, N = 16, KEPT = 4, D = 12, E = 8, P = 2 };
	int32_t kept[B * KEPT], back[B * N];
	real mask[B * N];
	for (int b = 0; b < B; b++)
		for (int i = 0; i < N; i++) {
			const int place = (i * 5 + b) % N;              /* token `place` comes i-th */
			if (i < KEPT) kept[b * KEPT + i] = place;
			back[b * N + place] = i;
			mask[b * N + place] = i >= KEPT;
		}
	struct rig r = rig();
	struct nr_net *n = r.n;
	nr_t *image = reals(&r, 4, B, 3, 8, 8), *index = ints(&r, kept, 2, B, KEPT),
		*restore = ints(&r, back, 2, B, N);
	nr_t *weight = leaf(&r, NR_REAL, mask, 2, B, N, 1, 1);
	image->flags &= ~(uint32_t)NR_GRAD;
	nr_t *t = nr_patch_linear(n, "patch_embed.proj", nr_patches(n, image, P, NR_PATCH_CHANNEL_ROW_COL), P, D);
	t = nr_add_table(n, t, nr_param(n, "pos_embed", NR_TRUNC_02, NR_SHAPE(1, N, D)));
	t = nr_prepend(n, nr_param(n, "cls_token", NR_TRUNC_02, NR_SHAPE(1, 1, D)),
		nr_take_tokens(n, t, index));
	for (int i = 0; i < 2; i++) t = block(n, "blocks", i, t, 3);
	t = nr_linear(n, "decoder_embed", nr_norm_make(n, "norm", "layer", t), E);
	nr_t *mask_token = nr_param(n, "mask_token", NR_TRUNC_02, NR_SHAPE(1, 1, E));
	nr_t *full = nr_restore_tokens(n, nr_span(n, t, 1, NR_END), mask_token, restore);
	assert_int_equal(full->tok->h, 4);
	t = nr_join(n, nr_span(n, t, 0, 1), full);
	t = nr_add_table(n, t, nr_param(n, "decoder_pos_embed", NR_TRUNC_02, NR_SHAPE(1, N + 1, E)));
	t = block(n, "decoder_blocks", 0, t, 2);
	t = nr_linear(n, "decoder_pred", nr_norm_make(n, "decoder_norm", "layer", t), P * P * 3);
	nr_t *target = nr_patches(n, image, P, NR_PATCH_ROW_COL_CHANNEL);
	nr_t *loss = nr_masked_mse(n, nr_span(n, t, 1, NR_END), target, weight, 1);
	real first = 0, last = 0;
	for (int i = 0; i < 60; i++) {
		last = *step(&r, loss);
		if (!i) first = last;
		int64_t count;
		real *v = nr_store_values(r.store, &count), *g = nr_store_grads(r.store, &count);
		for (int64_t j = 0; j < count; j++) {
			assert_true(isfinite(g[j]));
			v[j] -= (real)0.2 * g[j];
		}
	}
	if (!(first > 0.5 && last < 0.9 * first)) fail_msg("loss %g to %g", (double)first, (double)last);
	release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patches_lie_in_the_order_asked_for),
		cmocka_unit_test(patch_embedding_is_a_convolution_with_stride_p),
		cmocka_unit_test(class_token_and_positions_as_in_timm),
		cmocka_unit_test(taken_tokens_come_back_to_their_places),
		cmocka_unit_test(indices_out_of_range_read_zeros),
		cmocka_unit_test(mean_leaves_out_special_tokens_and_padding),
		cmocka_unit_test(a_masked_autoencoder_learns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
