/* Optimizers: clipping rules, frozen parameters, many segments against one, divergence, threads; moving
 * averages. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <omp.h>

#include "optim/optimizers.h"

enum { N = 5 };

struct model { real value[N], grad[N], m[N], v[N]; struct nr_segment seg; char scratch[1024]; };

static struct model *fill(struct model *k)
{
	*k = (struct model){ .value = { 1, -2, 3, (real).5, 0 }, .grad = { 3, 0, -4, 0, 0 } };
	k->seg = (struct nr_segment){ .value = k->value,
		.grad = k->grad,
		.m = k->m,
		.v = k->v,
		.count = N,
		.nd = 2,
		.lr_scale = 1,
		.decay = 1 };
	for (int32_t kind = 0; nr_optimizers()[kind]; kind++)
		assert_true(nr_optim_scratch(&(struct nr_optim){ .kind = kind }, &k->seg, 1) <= sizeof k->scratch);
	return k;
}

static void near(double got, double want) { assert_true(fabs(got - want) <= 2e-6 * (1 + fabs(want))); }

static void clipping_scales_by_the_rule_of_its_library(void **state)
{
	near(nr_clip_scale(NR_CLIP_NONE, 1, 5), 1);
	assert_true(nr_clip_scale(NR_CLIP_GLOBAL, 1, 5) == 1 / (5 + 1e-6));
	assert_true(nr_clip_scale(NR_CLIP_TENSOR, 1, 5) == 1 / (5 + 1e-6));
	assert_true(nr_clip_scale(NR_CLIP_GLOBAL_BV, 1, 5) == .2);
	assert_true(nr_clip_scale(NR_CLIP_GLOBAL, 9, 5) == 1);
	assert_true(nr_clip_scale(NR_CLIP_GLOBAL_BV, 1, 0) == 1);
}

static void the_gradient_norm_is_reported_before_clipping(void **state)
{
	struct model k;
	struct nr_optim_info info;
	const struct nr_optim o = {
		.kind = nr_optim_kind("sgd"), .lr = 1, .clip = NR_CLIP_GLOBAL_BV, .clip_norm = 1
	};
	fill(&k);
	assert_int_equal(nr_optim_step(&o, &(struct nr_rates){ 1, 0 }, 1, &k.seg, 1, k.scratch, &info), 0);
	near(info.grad_norm, 5);
	near(info.clip_scale, .2);
	near(k.value[0], 1 - .6);
	near(k.value[2], 3 + .8);
	near(k.grad[0], 3); /* only read */
}

static void per_tensor_clipping_looks_at_one_tensor(void **state)
{
	struct model a, b;
	const struct nr_optim o = { .kind = nr_optim_kind("sgd"), .lr = 1, .clip = NR_CLIP_TENSOR, .clip_norm = 1 };
	fill(&a);
	fill(&b);
	for (int i = 0; i < N; i++) b.grad[i] *= (real).1;
	const struct nr_segment seg[2] = { a.seg, b.seg };
	char scratch[1024];
	assert_int_equal(nr_optim_step(&o, &(struct nr_rates){ 1, 0 }, 1, seg, 2, scratch, NULL), 0);
	near(a.value[0], 1 - 3. / (5 + 1e-6));
	near(b.value[0], 1 - .3); /* below the limit: untouched */
}

static void plain_sgd_needs_no_buffer(void **state)
{
	struct model k;
	const struct nr_optim o = { .kind = nr_optim_kind("sgd"), .lr = .1 };
	fill(&k);
	k.seg.m = k.seg.v = NULL;
	assert_int_equal(nr_optim_slots(&o), 0);
	for (int t = 1; t <= 2; t++)
		assert_int_equal(
			nr_optim_step(&o, &(struct nr_rates){ .1, .5 }, t, &k.seg, 1, k.scratch, NULL), 0);
	const double once = 1 - .1 * (3 + .5 * 1);
	near(k.value[0], once - .1 * (3 + .5 * once));
}

static void frozen_and_empty_parameters_are_left_alone(void **state)
{
	struct model a, b, c;
	const struct nr_optim o = {
		.kind = nr_optim_kind("adamw"), .lr = .1, .beta1 = .9, .beta2 = .999, .eps = 1e-8
	};
	fill(&a);
	fill(&b);
	fill(&c);
	b.seg.grad = NULL;
	struct nr_segment seg[5] = { { 0 }, a.seg, b.seg, { 0 }, c.seg };
	char scratch[2048];
	assert_true(nr_optim_scratch(&o, seg, 5) <= sizeof scratch);
	assert_int_equal(nr_optim_step(&o, &(struct nr_rates){ .1, .1 }, 1, seg, 5, scratch, NULL), 0);
	assert_memory_equal(b.value, fill(&b)->value, sizeof b.value);
	assert_memory_equal(a.value, c.value, sizeof a.value);
	near(a.value[0], 1 - .1 * .1 - .1); /* Adam's first step has length lr */
}

static void a_parameter_that_rested_begins_with_its_own_first_step(void **state)
{
	struct model a, b;
	const struct nr_optim o = { .kind = nr_optim_kind("adamw"), .lr = .1, .beta1 = .9, .beta2 = .999, .eps = 1e-8 };
	fill(&a);
	fill(&b);
	b.seg.still = 6;
	assert_int_equal(nr_optim_step(&o, &(struct nr_rates){ .1, .1 }, 1, &a.seg, 1, a.scratch, NULL), 0);
	assert_int_equal(nr_optim_step(&o, &(struct nr_rates){ .1, .1 }, 7, &b.seg, 1, b.scratch, NULL), 0);
	assert_memory_equal(a.value, b.value, sizeof a.value);
}

static void a_gradient_that_is_not_finite_changes_nothing(void **state)
{
	struct model k, was;
	struct nr_optim_info info;
	const struct nr_optim o = {
		.kind = nr_optim_kind("adamw"), .lr = .1, .beta1 = .9, .beta2 = .999, .eps = 1e-8
	};
	fill(&k);
	k.grad[3] = NAN;
	memcpy(&was, &k, sizeof k);
	assert_int_equal(nr_optim_step(&o, &(struct nr_rates){ .1, .1 }, 1, &k.seg, 1, k.scratch, &info),
		NR_EDIVERGED);
	assert_memory_equal(k.value, was.value, sizeof k.value);
	assert_memory_equal(k.m, was.m, sizeof k.m);
	assert_true(isnan(info.grad_norm));
}

static void decay_factors_and_rate_factors_are_per_parameter(void **state)
{
	struct model k;
	const struct nr_optim o = {
		.kind = nr_optim_kind("adamw"), .lr = .1, .beta1 = .9, .beta2 = .999, .eps = 1e-8
	};
	fill(&k);
	k.seg.decay = 0;
	k.seg.lr_scale = .5f;
	assert_int_equal(nr_optim_step(&o, &(struct nr_rates){ .1, 1 }, 1, &k.seg, 1, k.scratch, NULL), 0);
	near(k.value[0], 1 - .05);
	near(k.value[3], .5);
}

enum { LARGE = 5 * 8192 + 13 };

/* All kinds, on parameters whose borders lie inside chunks; value, m and v of all steps end in out. */
static void run_all(int threads, int pieces, int kind, real *out)
{
	static real grad[LARGE];
	struct nr_segment seg[3];
	real *value = out, *m = out + LARGE, *v = m + LARGE;
	const int64_t cut[4] = { 0, pieces == 1 ? LARGE : 100, pieces == 1 ? LARGE : 30001, LARGE };
	for (int i = 0; i < LARGE; i++) value[i] = (real)sin(i), grad[i] = (real)cos(3. * i), m[i] = v[i] = 0;
	for (int s = 0; s < pieces; s++)
		seg[s] = (struct nr_segment){ .value = value + cut[s],
			.grad = grad + cut[s],
			.m = m + cut[s],
			.v = v + cut[s],
			.count = cut[s + 1] - cut[s],
			.nd = 2,
			.lr_scale = 1,
			.decay = 1 };
	const struct nr_optim o = { .kind = kind,
		.lr = .1,
		.beta1 = .9,
		.beta2 = .99,
		.eps = 1e-8,
		.momentum = .9,
		.trust = .01,
		.clip = kind == nr_optim_kind("adamw") && pieces == 1 ? NR_CLIP_GLOBAL : NR_CLIP_NONE,
		.clip_norm = 1 };
	void *scratch = malloc(nr_optim_scratch(&o, seg, pieces));
	omp_set_num_threads(threads);
	for (int t = 1; t <= 3; t++)
		assert_int_equal(
			nr_optim_step(&o, &(struct nr_rates){ .1, .01 }, t, seg, pieces, scratch, NULL), 0);
	omp_set_num_threads(1);
	free(scratch);
}

static void threads_do_not_change_a_bit(void **state)
{
	static real one[3 * LARGE], many[3 * LARGE];
	for (int kind = 0; nr_optimizers()[kind]; kind++)
		for (int pieces = 1; pieces <= 3; pieces += 2) {
			run_all(1, pieces, kind, one);
			for (int t = 2; t <= 3; t++) {
				run_all(t, pieces, kind, many);
				assert_memory_equal(one, many, sizeof one);
			}
		}
}

/* A tall and a wide matrix, a vector, and a matrix that is none of a hidden layer, all of which change in a step. */
enum { ROWS = 24, COLS = 10, SIZE = ROWS * COLS };
struct mixed { real value[4][SIZE], grad[4][SIZE], m[4][SIZE], v[4][SIZE]; struct nr_segment seg[4]; };
static const int64_t tall[] = { ROWS, COLS }, wide[] = { COLS, ROWS }, flat[] = { SIZE };

static void fill_mixed(struct mixed *k)
{
	const int64_t *const d[] = { tall, wide, flat, tall };
	memset(k, 0, sizeof *k);
	for (int s = 0; s < 4; s++) {
		for (int i = 0; i < SIZE; i++) k->value[s][i] = (real)sin(i + 5. * s), k->grad[s][i] = (real)cos(3. * i + s);
		k->seg[s] = (struct nr_segment){ .value = k->value[s], .grad = k->grad[s], .m = k->m[s], .v = k->v[s], .count = SIZE,
			.nd = s == 2 ? 1 : 2, .d = d[s], .flags = s < 2 ? NR_SEGMENT_MATRIX : 0, .lr_scale = 1, .decay = 1 };
	}
}

static void step_mixed(struct mixed *k, const char *text, double decay, int threads)
{
	struct nr_error err = { 0 };
	struct nr_optim o;
	nr_option_defaults(nr_optim_options(), &o);
	assert_int_equal(nr_option_parse(nr_optim_options(), &o, text, NULL, &err), 0);
	void *scratch = malloc(nr_optim_scratch(&o, k->seg, 4));
	omp_set_num_threads(threads);
	for (int t = 1; t <= 2; t++) assert_int_equal(nr_optim_step(&o, &(struct nr_rates){ .1, decay }, t, k->seg, 4, scratch, NULL), 0);
	omp_set_num_threads(1);
	free(scratch);
}

static void muon_turns_matrices_and_leaves_the_rest_to_adamw(void **state)
{
	static struct mixed was, muon, adamw, many;
	fill_mixed(&was), fill_mixed(&muon), fill_mixed(&adamw), fill_mixed(&many);
	step_mixed(&muon, "kind=muon", .01, 1);
	step_mixed(&adamw, "kind=adamw", .01, 1);
	step_mixed(&many, "kind=muon", .01, 3);
	assert_memory_equal(muon.value, many.value, sizeof muon.value);
	assert_memory_equal(muon.m, many.m, sizeof muon.m);
	for (int s = 0; s < 2; s++) assert_memory_not_equal(muon.value[s], adamw.value[s], sizeof was.value[s]);
	for (int s = 2; s < 4; s++) assert_memory_equal(muon.value[s], adamw.value[s], sizeof was.value[s]);
	/* frozen: neither it nor its momentum moves, and the others do as before */
	fill_mixed(&many);
	many.seg[0].grad = NULL;
	step_mixed(&many, "kind=muon", .01, 1);
	assert_memory_equal(many.value[0], was.value[0], sizeof was.value[0]);
	assert_memory_equal(many.m[0], was.m[0], sizeof was.m[0]);
	assert_memory_equal(many.value[1], muon.value[1], sizeof was.value[1]);
}

/* With enough steps of Newton and Schulz all singular values of a step lie near 1: W^T W has about ones on its diagonal. */
static void a_step_of_muon_has_no_preferred_direction(void **state)
{
	static struct mixed k, was;
	fill_mixed(&k), fill_mixed(&was);
	/* one column is 50 times as long */
	for (int i = 0; i < SIZE; i++) k.grad[0][i] = (real)(sin(i * i * .37) * (i % COLS ? .1 : 5));
	step_mixed(&k, "kind=muon,ns_steps=10", 0, 1);
	double least = 1e9, most = 0;
	for (int c = 0; c < COLS; c++) {
		double square = 0;
		for (int r = 0; r < ROWS; r++) square += pow((double)(k.value[0][r * COLS + c] - was.value[0][r * COLS + c]), 2);
		least = fmin(least, sqrt(square)), most = fmax(most, sqrt(square));
	}
	const double one = .1 * 2 * sqrt((double)ROWS / COLS);      /* two steps of the same direction, the tall matrix's ratio */
	assert_true(least > .6 * one && most < 1.3 * one);
}

/* Every value moves by lr, against the sign of its momentum; what is cautious moves only with its gradient, and further. */
static void lion_goes_by_signs(void **state)
{
	static struct mixed was, lion, many;
	fill_mixed(&was), fill_mixed(&lion), fill_mixed(&many);
	step_mixed(&lion, "kind=lion", 0, 1);
	step_mixed(&many, "kind=lion", 0, 3);
	assert_memory_equal(lion.value, many.value, sizeof lion.value);
	for (int s = 0; s < 4; s++)
		for (int i = 0; i < SIZE; i++) near(lion.value[s][i], was.value[s][i] - .2 * (was.grad[s][i] > 0 ? 1 : -1));
	fill_mixed(&lion);
	lion.seg[2].grad = NULL;
	for (int i = 0; i < SIZE; i++) lion.m[0][i] = -100 * lion.grad[0][i], lion.m[1][i] = (real)(i % 2 ? 1 : -1) * 100 * lion.grad[1][i];
	step_mixed(&lion, "kind=lion,caution=1", 0, 1);
	assert_memory_equal(lion.value[2], was.value[2], sizeof was.value[2]);
	for (int i = 0; i < SIZE; i++) {
		near(lion.value[0][i], was.value[0][i]);                                    /* all against the gradient */
		near(lion.value[1][i], was.value[1][i] - (i % 2 ? .4 * (was.grad[1][i] > 0 ? 1 : -1) : 0));     /* half: twice as far */
	}
}

static void averages_keep_their_share(void **state)
{
	real e[3] = { 1, 2, 3 };
	const real p[3] = { 5, 5, 5 };
	nr_ema_step(3, e, p, .75);
	near(e[0], 2);
	near(e[2], 3.5);
}

static void layers_are_numbered_as_mae_does(void **state)
{
	assert_int_equal(nr_layer_id("cls_token", 12), 0);
	assert_int_equal(nr_layer_id("patch_embed.proj.weight", 12), 0);
	assert_int_equal(nr_layer_id("blocks.0.attn.qkv.weight", 12), 1);
	assert_int_equal(nr_layer_id("blocks.11.norm1.bias", 12), 12);
	assert_int_equal(nr_layer_id("fc_norm.weight", 12), 13);
	near(nr_layer_scale(13, 12, .65), 1);
	near(nr_layer_scale(0, 2, .5), .125);
}

static void the_option_table_fills_the_struct(void **state)
{
	struct nr_optim o;
	struct nr_error err = { 0 };
	nr_option_defaults(nr_optim_options(), &o);
	assert_int_equal(o.kind, nr_optim_kind("adamw"));
	assert_true(o.beta2 == .999 && o.clip == NR_CLIP_NONE);
	assert_int_equal(
		nr_option_parse(nr_optim_options(), &o, "kind=lars-timm,clip=tensor,lr=0.5", NULL, &err), 0);
	assert_int_equal(o.kind, nr_optim_kind("lars-timm"));
	assert_int_equal(o.clip, NR_CLIP_TENSOR);
	assert_true(o.lr == .5);
}

static int rows_called(const char *name)
{
	int n = 0;
	for (const struct nr_option *row = nr_optim_options(); row->name; row++) n += !strcmp(row->name, name);
	return n;
}

static void every_optimizer_has_its_options_in_the_table(void **state)
{
	for (int32_t kind = 0; nr_optimizers()[kind]; kind++) {
		const struct nr_optimizer *of = nr_optimizers()[kind];
		assert_int_equal(nr_optim_kind(of->name), kind);
		for (const struct nr_option *row = of->options; row && row->name; row++) assert_int_equal(rows_called(row->name), 1);
		for (const struct nr_option *row = of->own; row && row->name; row++) assert_int_equal(rows_called(row->name), 1);
	}
	assert_string_equal(nr_option_find(nr_optim_options(), "trust")->help, "trust coefficient (lars, lars-timm)");
}

static void an_unknown_kind_changes_nothing(void **state)
{
	struct model k, was;
	fill(&k);
	memcpy(&was, &k, sizeof k);
	const struct nr_optim o = { .kind = nr_optim_kind("adams") };
	assert_int_equal(o.kind, -1);
	assert_int_equal(nr_optim_step(&o, &(struct nr_rates){ .1, .1 }, 1, &k.seg, 1, k.scratch, NULL), NR_ENAME);
	assert_memory_equal(k.value, was.value, sizeof k.value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clipping_scales_by_the_rule_of_its_library),
		cmocka_unit_test(the_gradient_norm_is_reported_before_clipping),
		cmocka_unit_test(per_tensor_clipping_looks_at_one_tensor),
		cmocka_unit_test(plain_sgd_needs_no_buffer),
		cmocka_unit_test(frozen_and_empty_parameters_are_left_alone),
		cmocka_unit_test(a_parameter_that_rested_begins_with_its_own_first_step),
		cmocka_unit_test(a_gradient_that_is_not_finite_changes_nothing),
		cmocka_unit_test(decay_factors_and_rate_factors_are_per_parameter),
		cmocka_unit_test(threads_do_not_change_a_bit),
		cmocka_unit_test(muon_turns_matrices_and_leaves_the_rest_to_adamw),
		cmocka_unit_test(a_step_of_muon_has_no_preferred_direction),
		cmocka_unit_test(lion_goes_by_signs),
		cmocka_unit_test(averages_keep_their_share),
		cmocka_unit_test(layers_are_numbered_as_mae_does),
		cmocka_unit_test(the_option_table_fills_the_struct),
		cmocka_unit_test(every_optimizer_has_its_options_in_the_table),
		cmocka_unit_test(an_unknown_kind_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
