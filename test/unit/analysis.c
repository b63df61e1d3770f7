/* src/analysis/{taps,attention_stats,gradients,analysis}.c on a small ViT with first values. */
#include "unit/built.h"

#include "analysis/analysis.h"
#include "analysis/attention_distance.h"
#include "analysis/attention_stats.h"
#include "analysis/gradients.h"

#define TINY "vit:image=8,channels=1,patch=2,dim=8,depth=2,heads=2,classes=3"
enum { B = 4, T = 17, C = 8, PIXELS = 64 };

static struct nr_weights made(const char *model, const char *norms)
{
	const struct built b = build_whole(model, norms, 7);
	struct nr_weights w = { .arena = b.arena, .store = b.store, .model = b.model, .norms = norms };
	for (int64_t i = 0; i < nr_store_count(w.store); i++) {         /* gains and biases that differ */
		struct nr_entry *e = nr_store_at(w.store, i);
		for (int64_t k = 0; !e->buffer && k < e->count; k++) nr_value(e)[k] += value();
	}
	return w;
}

static void drop(struct nr_weights *w)
{
	nr_store_free(w->store);
	nr_arena_free(w->arena);
}

static void open_taps(struct nr_taps *t, const struct nr_weights *w, unsigned want, const char *sites)
{
	struct nr_error err = { 0 };
	char line[1200];
	float image[B * PIXELS];
	if (nr_taps_open(t, w, B, want, sites, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	for (int i = 0; i < B * PIXELS; i++) image[i] = (float)value();
	nr_taps_run(t, image);
}

static void taps_are_the_blocks_and_the_sites_asked_for(void **state)
{
	(void)state;
	struct nr_weights w = made(TINY, "layer");
	struct nr_taps t;
	open_taps(&t, &w, NR_TAPS_SITES | NR_TAPS_ATTENTION, "final blocks[1].attn.in");
	static const char *const names[] = { "embed", "block0", "block1", "final" };
	assert_int_equal(t.layers, 4);
	for (int i = 0; i < 4; i++) {
		assert_string_equal(t.layer[i].name, names[i]);
		assert_int_equal(t.layer[i].cls, i > 0);
		assert_int_equal(t.layer[i].x->d[1], i ? T : T - 1);
		assert_non_null(nr_plan_data(t.plan, t.layer[i].x));
	}
	assert_int_equal(t.attentions, 2);
	assert_int_equal(t.sites, 2);
	assert_string_equal(t.site[0].name, "blocks.1.attn.in");
	assert_ptr_equal(t.site[0].before, t.layer[1].x);
	assert_string_equal(t.site[1].name, "final");
	assert_ptr_equal(t.site[1].after, t.layer[3].x);
	assert_int_equal(t.dtns, 0);
	/* another place for each picture */
	const real *x = nr_plan_data(t.plan, t.layer[1].x);
	assert_ptr_equal(nr_taps_cls(&t, t.layer[1].x, 2, true), x + 2 * T * C);
	assert_ptr_equal(nr_taps_token(&t, t.layer[1].x, 1, 2, 18), x + (2 * T + 1 + 2) * C);
	nr_taps_close(&t);
	drop(&w);
}

static void without_patterns_the_first_and_the_last_norm_are_taken(void **state)
{
	(void)state;
	static const char *const plans[] = { "layer", "placement=post", "layer patch=dual" }, *const last[] = { "final", NULL, "final" };
	static const char *const first[] = { "blocks.0.attn.in", "blocks.0.attn.res", "blocks.0.attn.in" };
	for (int i = 0; i < 3; i++) {
		struct nr_weights w = made(TINY, plans[i]);
		struct nr_taps t;
		open_taps(&t, &w, NR_TAPS_SITES, NULL);
		assert_int_equal(t.sites, last[i] ? 2 : 1);
		assert_string_equal(t.site[0].name, first[i]);
		if (last[i]) assert_string_equal(t.site[1].name, last[i]);
		nr_taps_close(&t);
		drop(&w);
	}
}

static void a_site_without_norm_is_refused(void **state)
{
	(void)state;
	struct nr_weights w = made(TINY, "layer");
	struct nr_taps t;
	struct nr_error err = { 0 };
	assert_int_equal(nr_taps_open(&t, &w, B, NR_TAPS_SITES, "final attn.inn", &err), NR_ENAME);
	assert_non_null(strstr(err.subject, "attn.inn"));
	drop(&w);
}

static void a_late_class_token_and_registers_are_told_apart(void **state)
{
	(void)state;
	struct nr_weights w = made(TINY ",class_at=1,registers=2", "blocks[0].*=dtn blocks[1].*=layer final=layer");
	struct nr_taps t;
	open_taps(&t, &w, 0, "");
	assert_int_equal(t.layer[1].special, 2);
	assert_false(t.layer[1].cls);
	assert_int_equal(t.layer[2].special, 3);
	assert_true(t.layer[2].cls);
	assert_int_equal(t.dtns, 2);
	assert_string_equal(t.dtn[0]->where.scope, "blocks.0.attn.in");
	nr_taps_close(&t);
	drop(&w);
}

/* The probabilities themselves, from the op that stores them. */
static void attention_is_what_its_map_says(void **state)
{
	(void)state;
	enum { H = 2, S = 2, h = 3, w = 2, A = S + h * w, D = 3 };
	struct rig r = rig();
	nr_t *qkv = reals(&r, 3, B, A, 3 * H * D, 1), *bias = reals(&r, 3, H, A, A, 1);
	for (int i = 0; i < B * A * 3 * H * D; i++) ((real *)r.data[0])[i] *= 6;
	nr_t *map = nr_attention_map(r.n, qkv, (struct nr_attention_options){ .heads = H, .bias = bias });
	const real *p = run(&r, map);
	struct nr_head_sums sum[H] = { 0 };
	const struct nr_attention_shape shape = { .H = H, .T = A, .d = D, .special = S, .h = h, .w = w, .cls = 1 };
	double distance[H];
	/* two calls, as batches come */
	assert_int_equal(nr_attention_stats(&shape, &(struct nr_attention_batch){ .B = 1, .qkv = data(&r, 0), .bias = data(&r,
		1) }, sum, NULL), 0);
	assert_int_equal(nr_attention_stats(&shape, &(struct nr_attention_batch){ .B = B - 1, .qkv = data(&r,
		0) + A * 3 * H * D, .bias = data(&r, 1) }, sum, NULL), 0);
	nr_attention_distance(B, H, S, h, w, p, 1, distance, NULL);
	for (int64_t k = 0; k < B * H * A; k++) {
		double row[A];
		nr_attention_weights(&shape, data(&r, 0) + k / (H * A) * A * 3 * H * D, data(&r, 1), k / A % H, k % A, row);
		for (int64_t j = 0; j < A; j++) assert_float_equal(row[j], (double)p[k * A + j], 1e-5);
	}
	for (int k = 0; k < H; k++) {
		double entropy = 0, cls = 0, special = 0;
		for (int64_t b = 0; b < B; b++)
			for (int64_t i = 0; i < A; i++)
				for (int64_t j = 0; j < A; j++) {
					const double q = (double)p[((b * H + k) * A + i) * A + j];
					if (i >= S) entropy -= q * log(q) / (B * (A - S));
					if (!i) cls -= q * log(q) / B;
					if (i >= S && j < S) special += q / (B * (A - S));
				}
		assert_int_equal(sum[k].samples, B);
		assert_float_equal(sum[k].distance / B, distance[k], 1e-5);
		assert_float_equal(sum[k].entropy / B, entropy, 1e-5);
		assert_float_equal(sum[k].cls_entropy / B, cls, 1e-5);
		assert_float_equal(sum[k].on_special / B, special, 1e-5);
		assert_true(sum[k].logit_max * sum[k].logit_max >= sum[k].logit_square / B);
	}
	release(&r);
}

/* A graph of three nodes and the virtual one: the same whether it stands alone or is padded; far pairs count in bonds, and those that
 * have no path, or that the bias cuts off, in nothing. */
static void attention_of_graphs_knows_padding_and_bonds(void **state)
{
	(void)state;
	enum { H = 2, D = 2, SMALL = 4, LARGE = 6, W = 3 * H * D };
	real small[SMALL * W], large[LARGE * W], small_bias[H * SMALL * SMALL], large_bias[H * LARGE * LARGE];
	int32_t three[9] = { 1, 2, 3, 2, 1, 511, 3, 511, 1 }, five[25];
	const int32_t nodes = 3;
	for (int i = 0; i < LARGE * W; i++) large[i] = i < SMALL * W ? (small[i] = (real)sin(7.0 * i)) : 1000;
	for (int i = 0; i < 25; i++) five[i] = i / 5 < 3 && i % 5 < 3 ? three[i / 5 * 3 + i % 5] : 0;
	for (int h = 0; h < H; h++)
		for (int i = 0; i < LARGE * LARGE; i++) {
			const int r = i / LARGE, c = i % LARGE;
			const bool inside = r < SMALL && c < SMALL, cut = r == 3 && c == 2;
			const real v = cut ? (real)-1e30 : inside ? (real)cos(3.0 * (h + r) + c) : 1000;
			large_bias[h * LARGE * LARGE + i] = v;
			if (inside) small_bias[(h * SMALL + r) * SMALL + c] = v;
		}
	struct nr_head_sums one[H] = { 0 }, other[H] = { 0 };
	const struct nr_attention_shape tight = { .H = H, .T = SMALL, .d = D, .special = 1, .cls = 1 }, padded = { .H = H, .T = LARGE,
		.d = D, .special = 1, .cls = 1 };
	assert_int_equal(nr_attention_stats(&tight, &(struct nr_attention_batch){ .B = 1, .qkv = small, .bias = small_bias, .biases = true,
		.nodes = &nodes, .steps = three }, one, NULL), 0);
	assert_int_equal(nr_attention_stats(&padded, &(struct nr_attention_batch){ .B = 1, .qkv = large, .bias = large_bias, .biases = true,
		.nodes = &nodes, .steps = five }, other, NULL), 0);
	for (int h = 0; h < H; h++) {
		assert_memory_equal(&one[h], &other[h], sizeof one[h]);
		assert_true(one[h].distance > 0 && one[h].distance < 2);
		assert_true(one[h].logit_max < 100);
		assert_float_equal(one[h].most_entropy, log(4), 1e-12);
		/* node 2 sees itself and node 0, two bonds away */
		double row[SMALL], near = 0, far = 0, sum = 0;
		for (int q = 0; q < 3; q++) {
			nr_attention_weights(&tight, small, small_bias, h, q + 1, row);
			near = far = 0;
			for (int k = 0; k < 3; k++)
				if (three[q * 3 + k] < 511) near += row[k + 1], far += row[k + 1] * (three[q * 3 + k] - 1);
			sum += far / near / 3;
		}
		assert_float_equal(one[h].distance, sum, 1e-6);
	}
}

/* What [CLS] and the other tokens contribute adds up to the gradient that the norm's own backward finds. */
static void shares_add_up_to_the_gradient(void **state)
{
	(void)state;
	static const char *const plans[] = { "layer", "batch", "rms", "dtn", "instance", "sep(batch,layer)" };
	for (size_t p = 0; p < sizeof plans / sizeof *plans; p++)
		for (int labels = 0; labels < 2; labels++) {
			struct nr_weights w = made(TINY, plans[p]);
			struct nr_gradients g;
			struct nr_error err = { 0 };
			float image[B * PIXELS];
			int32_t label[B] = { 0, 1, 2, 1 };
			const struct nr_batch batch = { .samples = B, .image = image, .label = label };
			assert_int_equal(nr_gradients_open(&g, &w, NULL, B, labels, &err), 0);
			assert_int_equal(g.kind, labels ? NR_GRAD_CROSS_ENTROPY : NR_GRAD_UNIFORMITY);
			assert_int_equal(g.sites, 5);
			for (int step = 0; step < 2; step++) {
				for (int i = 0; i < B * PIXELS; i++) image[i] = (float)value();
				nr_gradients_step(&g, &batch);
			}
			for (int64_t i = 0; i < g.sites; i++) {
				const struct nr_grad_site *s = &g.site[i];
				assert_int_equal(s->gain == NULL, p == 5);
				for (int64_t c = 0; s->gain && c < C; c++)
					assert_float_equal(s->sum[c] + s->sum[C + c], (double)nr_grad(s->gain)[c], 2e-4);
				for (int64_t c = 0; s->bias && c < C; c++)
					assert_float_equal(s->sum[2 * C + c] + s->sum[3 * C + c], (double)nr_grad(s->bias)[c], 2e-4);
			}
			int64_t parameters;
			assert_true(nr_gradients_norm(&g, "blocks.1.", &parameters) > 0);
			assert_true(parameters > 700);
			nr_gradients_close(&g);
			drop(&w);
		}
}

static void parts_are_read_by_name(void **state)
{
	(void)state;
	unsigned want;
	struct nr_error err = { 0 };
	assert_int_equal(nr_parts_read("layers, attention", &want, &err), 0);
	assert_int_equal(want, 1u | 1u << 3);
	assert_int_equal(nr_parts_read("layers,atention", &want, &err), NR_EUSAGE);
	assert_non_null(strstr(err.hint, "attention"));
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_parts_read(" ,", &want, &err), NR_EUSAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taps_are_the_blocks_and_the_sites_asked_for),
		cmocka_unit_test(without_patterns_the_first_and_the_last_norm_are_taken),
		cmocka_unit_test(a_site_without_norm_is_refused),
		cmocka_unit_test(a_late_class_token_and_registers_are_told_apart),
		cmocka_unit_test(attention_is_what_its_map_says),
		cmocka_unit_test(attention_of_graphs_knows_padding_and_bonds),
		cmocka_unit_test(shares_add_up_to_the_gradient),
		cmocka_unit_test(parts_are_read_by_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
