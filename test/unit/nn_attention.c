/* src/nn/attention.c against a double computation that stores T x T. */
#include "unit/rig.h"

struct plain {
	int64_t B, H, Tq, Tk, d, dv, window, ldq, ldk, ldv, n_bias;
	int causal;
	double scale;
	const real *q, *k, *v, *bias;
	const int32_t *len;
};

/* One row of probabilities; 0 where a key does not count. */
static void plain_row(const struct plain *a, int64_t b, int64_t h, int64_t i, double *p)
{
	double top = -INFINITY, sum = 0;
	for (int64_t j = 0; j < a->Tk; j++) {
		const int64_t far = i > j ? i - j : j - i;
		const int out = (a->len && j >= a->len[b]) || (a->causal && j > i) || (a->window && far > a->window);
		double s = 0;
		for (int64_t c = 0; c < a->d; c++)
			s += (double)a->q[(b * a->Tq + i) * a->ldq + h * a->d + c] *
			     (double)a->k[(b * a->Tk + j) * a->ldk + h * a->d + c];
		s *= a->scale;
		if (a->bias) s += (double)a->bias[((b % a->n_bias * a->H + h) * a->Tq + i) * a->Tk + j];
		p[j] = out ? -INFINITY : s;
		top = fmax(top, p[j]);
	}
	for (int64_t j = 0; j < a->Tk; j++) sum += p[j] = top > -INFINITY ? exp(p[j] - top) : 0;
	for (int64_t j = 0; j < a->Tk; j++) p[j] /= sum > 0 ? sum : 1;
}
static double *plain_out(const struct plain *a)
{
	double *out = calloc((size_t)(a->B * a->Tq * a->H * a->dv), sizeof *out),
		*p = calloc((size_t)a->Tk, sizeof *p);
	for (int64_t b = 0; b < a->B; b++)
		for (int64_t h = 0; h < a->H; h++)
			for (int64_t i = 0; i < a->Tq; i++) {
				plain_row(a, b, h, i, p);
				double *row = out + ((b * a->Tq + i) * a->H + h) * a->dv;
				for (int64_t j = 0; j < a->Tk; j++) {
					const real *v = a->v + (b * a->Tk + j) * a->ldv + h * a->dv;
					for (int64_t c = 0; c < a->dv; c++) row[c] += p[j] * (double)v[c];
				}
			}
	free(p);
	return out;
}
static struct plain packed(const real *qkv, int64_t B, int64_t T, int64_t H, int64_t d)
{
	const int64_t C = H * d;
	return (struct plain){ .B = B, .H = H, .Tq = T, .Tk = T, .d = d, .dv = d, .scale = 1 / sqrt((double)d),
		.q = qkv, .k = qkv + C,
			       .v = qkv + 2 * C, .ldq = 3 * C, .ldk = 3 * C, .ldv = 3 * C };
}

static void attention_is_softmax_of_scores(void **state)
{
	(void)state;
	struct rig r = rig();
	nr_t *y = nr_attention(r.n, reals(&r, 3, 2, 7, 30, 1), 2);
	shape_is(y, "2x7x10");
	const struct plain a = packed(data(&r, 0), 2, 7, 2, 5);
	double *want = plain_out(&a);
	close_to(run(&r, y), want, 140, 1e-6);
	free(want);
	release(&r);
}

static void attention_obeys_every_option(void **state)
{
	(void)state;
	static const int32_t len[] = { 5, 2, 6 };
	struct rig r = rig();
	nr_t *x = reals(&r, 3, 3, 6, 18, 1), *bias = reals(&r, 4, 2, 2, 6, 6), *valid = ints(&r, len, 1, 3, 1);
	nr_t *y = nr_attention_with(r.n, x, (struct nr_attention_options){
		.heads = 2, .window = 2, .causal = 1, .scale = 0.7f, .bias = bias, .valid = valid });
	struct plain a = packed(data(&r, 0), 3, 6, 2, 3);
	a.window = 2, a.causal = 1, a.scale = (double)0.7f, a.bias = data(&r, 1), a.n_bias = 2, a.len = len;
	double *want = plain_out(&a);
	close_to(run(&r, y), want, 108, 1e-6);
	free(want);
	release(&r);
}

static void attention_takes_lengths_and_heads_from_the_tokens(void **state)
{
	(void)state;
	static const int32_t len[] = { 1, 3 };
	struct rig r = rig();
	nr_t *x = reals(&r, 3, 2, 4, 12, 1), *valid = ints(&r, len, 1, 2, 1);
	nr_with_tokens(r.n, x, (struct nr_tokens){ .valid = valid, .heads = 2 });
	nr_t *y = nr_attention_with(r.n, x, (struct nr_attention_options){ 0 });
	struct plain a = packed(data(&r, 0), 2, 4, 2, 2);
	a.len = len;
	double *want = plain_out(&a);
	close_to(run(&r, y), want, 32, 1e-6);
	assert_ptr_equal(y->tok, x->tok);
	free(want);
	release(&r);
}

static void cross_attention_has_its_own_keys(void **state)
{
	(void)state;
	struct rig r = rig();
	nr_t *q = reals(&r, 3, 2, 3, 8, 1), *k = reals(&r, 3, 2, 5, 8, 1), *v = reals(&r, 3, 2, 5, 6, 1);
	nr_t *y = nr_cross_attention(r.n, q, k, v, (struct nr_attention_options){ .heads = 2 });
	shape_is(y, "2x3x6");
	const struct plain a = { .B = 2, .H = 2, .Tq = 3, .Tk = 5, .d = 4, .dv = 3, .scale = 0.5,
		.q = data(&r, 0), .k = data(&r, 1),
				 .v = data(&r, 2), .ldq = 8, .ldk = 8, .ldv = 6 };
	double *want = plain_out(&a);
	close_to(run(&r, y), want, 36, 1e-6);
	free(want);
	release(&r);
}

static void attention_map_is_the_probabilities(void **state)
{
	(void)state;
	static const int32_t len[] = { 4, 3 };
	struct rig r = rig();
	nr_t *x = reals(&r, 3, 2, 5, 12, 1), *valid = ints(&r, len, 1, 2, 1);
	nr_t *y = nr_attention_map(r.n, x, (struct nr_attention_options){ .heads = 2, .valid = valid,
		.dropout = 0.5f });
	shape_is(y, "2x2x5x5");
	struct plain a = packed(data(&r, 0), 2, 5, 2, 2);
	a.len = len;
	const real *P = run_with(&r, y, (struct nr_exec){ .train = 1 }, NR_RUN_FORWARD);
	for (int64_t row = 0; row < 20; row++) {
		double p[5];
		plain_row(&a, row / 10, row / 5 % 2, row % 5, p);
		close_to(P + row * 5, p, 5, 1e-6);
	}
	release(&r);
}

static void attention_drops_only_in_training(void **state)
{
	(void)state;
	struct rig r = rig();
	nr_t *x = reals(&r, 3, 1, 16, 12, 1);
	nr_t *y = nr_attention_with(r.n, x, (struct nr_attention_options){ .heads = 2, .dropout = 0.5f });
	const struct plain a = packed(data(&r, 0), 1, 16, 2, 2);
	double *want = plain_out(&a);
	real once[64];
	close_to(run(&r, y), want, 64, 1e-6);
	memcpy(once, run_with(&r, y, (struct nr_exec){ .train = 1, .step = 1 }, NR_RUN_FORWARD), sizeof once);
	double change = 0;
	for (int i = 0; i < 64; i++) change = fmax(change, fabs((double)once[i] - want[i]));
	assert_true(change > 0.01);
	assert_same_bits(once, run_with(&r, y, (struct nr_exec){ .train = 1, .step = 1 }, NR_RUN_FORWARD), 64);
	assert_memory_not_equal(once, run_with(&r, y, (struct nr_exec){ .train = 1, .step = 2 }, NR_RUN_FORWARD),
		sizeof once);
	free(want);
	release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attention_is_softmax_of_scores),
		cmocka_unit_test(attention_obeys_every_option),
		cmocka_unit_test(attention_takes_lengths_and_heads_from_the_tokens),
		cmocka_unit_test(cross_attention_has_its_own_keys),
		cmocka_unit_test(attention_map_is_the_probabilities),
		cmocka_unit_test(attention_drops_only_in_training),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
