/* Numbers in texts in a host process whose locale has a decimal comma: norm plans, models, options, what is printed. Exit code 77: no such
 * locale can be had. */
#include "unit/commas.h"
#include "unit/rig.h"

#include "base/str.h"
#include "models/stages.h"
#include "norma/model.h"
#include "norma/norm.h"

static void the_locale_has_commas(void **state)
{
	(void)state;
	assert_true(strtod("0,5", NULL) == 0.5);
	assert_true(strtod("0.5", NULL) == 0);
}

static void norm_plans_have_points(void **state)
{
	(void)state;
	static const struct nr_norm_defaults defaults = { .norm = "layer", .placement = "pre", .eps = 1e-6 };
	static const char *const plans[] = { "dtn:lam=0.5", "batch:momentum=0.25", "eps=1.5e-3", "residual=layerscale:init=0.5", NULL };
	for (const char *const *plan = plans; *plan; plan++) {
		struct rig r = rig();
		nr_norms_use(r.n, *plan, &defaults, &r.err);
		nr_t *x = reals(&r, 3, 2, 5, 12, 1);
		nr_with_tokens(r.n, x, (struct nr_tokens){ .special = 1, .h = 2, .w = 2, .heads = 3 });
		nr_norm(r.n, "attn.in", x);
		if (nr_norms_done(r.n, &r.err)) fail_msg("'%s': %s", *plan, r.err.detail);
		release(&r);
	}
}

static void models_have_points(void **state)
{
	(void)state;
	struct nr_model_spec spec = { 0 };
	struct nr_error err = { 0 };
	struct nr_arena *arena = nr_arena_make();
	assert_int_equal(nr_stages_count("1.5-2.5-4"), 3);
	assert_int_equal(nr_stages_count("1,5-2"), 0);
	if (nr_model_parse(&spec, "vit_nano:dropout=0.25", arena, &err)) fail_msg("%s", err.detail);
	assert_non_null(strstr(nr_options_text(spec.of->options, spec.conf, arena), "dropout=0.25"));
	nr_arena_free(arena);
}

static void numbers_have_points(void **state)
{
	(void)state;
	double v = 0;
	char text[32];
	assert_true(nr_parse_double("-1.5e-3", &v) && v == -1.5e-3);
	assert_false(nr_parse_double("0,5", &v));
	assert_string_equal(nr_double_text(0.5, false, text, sizeof text), "0.5");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_locale_has_commas), cmocka_unit_test(norm_plans_have_points),
		cmocka_unit_test(models_have_points), cmocka_unit_test(numbers_have_points) };
	if (!commas_begin()) return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
