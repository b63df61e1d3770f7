/* Laws and cards of normalizations: they find what is equal, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "laws/norm_card.h"
#include "laws/norm_trial.h"
#include "laws/prove.h"

static struct nr_proof prove(const char *text)
{
	struct nr_error err = { 0 };
	struct nr_proof p;
	char line[1200];
	if (nr_prove_equation(text, &nr_prove_default, &p, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	return p;
}

static void a_norm_equals_itself_to_the_last_bit(void **state)
{
	(void)state;
	for (const struct nr_norm *const *n = nr_norms(); *n; n++) {
		char one[128], both[300];
		nr_norm_example(*n, one, sizeof one);
		snprintf(both, sizeof both, "%s = %s", one, one);
		const struct nr_proof p = prove(both);
		assert_true(p.holds);
		for (int i = 0; i < p.parts; i++) assert_true(p.part[i].difference <= 0);
	}
}

static void every_law_holds(void **state)
{
	(void)state;
	static struct nr_law law[NR_MAXLAWS];
	const int n = nr_laws(law, NR_MAXLAWS);
	assert_in_range(n, 10, NR_MAXLAWS - 1);
	for (int i = 0; i < n; i++) {
		struct nr_error err = { 0 };
		struct nr_proof p;
		assert_int_equal(nr_law_prove(&law[i], &nr_prove_default, &p, &err), 0);
		if (!p.holds) fail_msg("%s: values %g, gradients %g", law[i].text, p.values, p.gradients);
	}
}

/* Laws with code of their own are there, and hold in other shapes too: one channel more, one sample, one token. */
static void laws_hold_in_other_shapes(void **state)
{
	(void)state;
	static const char *const parts[] = { "gain and bias fold", "repbn(x) + b", "before batch", "patch=dual", "|layer(x)|", "crms(",
		"|bias|^2", "band=5",
		"no other sample", "flops of dtn" };
	static const struct { int64_t batch, tokens, channels; } shapes[] = { { 2, 7, 5 }, { 4, 1, 8 }, { 5, 30, 33 } };
	static struct nr_law law[NR_MAXLAWS];
	const int n = nr_laws(law, NR_MAXLAWS);
	for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
		int at = 0;
		while (at < n && !(law[at].prove && strstr(law[at].text, parts[k]))) at++;
		if (at == n) fail_msg("no law '%s'", parts[k]);
		for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
			struct nr_error err = { 0 };
			struct nr_proof p;
			struct nr_prove_options o = nr_prove_default;
			o.batch = shapes[i].batch, o.tokens = shapes[i].tokens, o.channels = shapes[i].channels;
			assert_int_equal(nr_law_prove(&law[at], &o, &p, &err), 0);
			if (!p.holds) fail_msg("%s in shape %d: values %g, gradients %g", law[at].text, (int)i, p.values, p.gradients);
		}
	}
}

static void different_norms_differ_in_values_and_gradients(void **state)
{
	(void)state;
	const struct nr_proof p = prove("layer = rms");
	assert_false(p.holds);
	assert_true(p.values > .01 && p.gradients > .01);
	assert_false(prove("layer:eps=1e-5 = layer:eps=1e-2").holds);
	assert_false(prove("sep(batch,layer) = layer").holds);
}

static void a_missing_eps_is_the_same_on_both_sides(void **state)
{
	(void)state;
	assert_true(prove("rms = rms:eps=1e-5").holds);         /* its own default is 1e-6 */
	assert_true(prove("sep(rms,rms) = rms:eps=1e-5").holds);
}

static void gradients_of_split_parameters_are_added(void **state)
{
	(void)state;
	const struct nr_proof p = prove("sep(layer,layer) = layer");
	int weights = 0;
	for (int i = 0; i < p.parts; i++) weights += !strcmp(p.part[i].name, "d weight");
	assert_int_equal(weights, 1);
	assert_true(p.holds);
}

static void a_value_that_is_not_finite_is_a_difference(void **state)
{
	(void)state;
	const real got[] = { 1, (real)NAN, 3 }, want[] = { 1, 2, 3 };
	struct nr_proof p = { .parts = 0 };
	nr_proof_compare(&p, "y", 3, want, want);
	nr_proof_compare(&p, "y", 3, got, want);
	nr_proof_compare(&p, "y", 3, want, want);
	nr_proof_close(&p, 1);
	assert_int_equal(p.parts, 1);
	assert_false(p.holds);
}

static void wrong_texts_are_errors(void **state)
{
	(void)state;
	static const struct { const char *text; int code; } wrong[] = {
		{ "layer", NR_EUSAGE }, { "layer=rms", NR_EUSAGE }, { "layer = rms = rms", NR_EUSAGE }, { "layre = rms", NR_ENAME },
		{ "rms = layre", NR_ENAME },
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct nr_error err = { 0 };
		struct nr_proof p;
		assert_int_equal(nr_prove_equation(wrong[i].text, &nr_prove_default, &p, &err), wrong[i].code);
	}
}

static void the_picture_is_what_the_norm_sees(void **state)
{
	(void)state;
	static const struct { const char *text, *over; } known[] = {
		{ "layer", "channels" }, { "batch", "tokens, samples" }, { "instance", "tokens" }, { "none", "nothing" },
		{ "group:groups=3", "a group of channels, tokens" }, { "group:groups=1", "channels, tokens" },
		{ "group:groups=2,scope=token", "a group of channels" },
	};
	struct nr_arena *arena = nr_arena_make();
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		struct nr_error err = { 0 };
		struct nr_norm_picture p;
		struct nr_str over = { 0 };
		assert_int_equal(nr_norm_look(&p, known[i].text, 0, 1, arena, &err), 0);
		nr_norm_over(&p, &over);
		assert_string_equal(nr_str_text(&over), known[i].over);
		assert_int_equal(p.cell[p.token * p.C + p.channel], NR_SELF);
		nr_str_release(&over);
	}
	nr_arena_free(arena);
}

static void grids_are_as_square_as_they_can_be(void **state)
{
	(void)state;
	static const int32_t want[][3] = { { 12, 3, 4 }, { 196, 14, 14 }, { 7, 1, 7 }, { 1, 1, 1 }, { 195, 13, 15 } };
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		int32_t h, w;
		nr_grid_of(want[i][0], &h, &w);
		assert_int_equal(h, want[i][1]);
		assert_int_equal(w, want[i][2]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_norm_equals_itself_to_the_last_bit),
		cmocka_unit_test(every_law_holds),
		cmocka_unit_test(laws_hold_in_other_shapes),
		cmocka_unit_test(different_norms_differ_in_values_and_gradients),
		cmocka_unit_test(a_missing_eps_is_the_same_on_both_sides),
		cmocka_unit_test(gradients_of_split_parameters_are_added),
		cmocka_unit_test(a_value_that_is_not_finite_is_a_difference),
		cmocka_unit_test(wrong_texts_are_errors),
		cmocka_unit_test(the_picture_is_what_the_norm_sees),
		cmocka_unit_test(grids_are_as_square_as_they_can_be),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
