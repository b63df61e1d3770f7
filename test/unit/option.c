/* base/option.c and base/args.c, base/optdoc.c: one table, every form of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/args.h"
#include "base/mem.h"
#include "base/optdoc.h"
#include "base/str.h"
#include "norma/option.h"

struct knobs {
	bool affine;
	int32_t depth;
	int64_t steps;
	float eps;
	double rate;
	char *out;
	int32_t init;
	struct nr_list norm;
	char *data;
};

static const char *const inits[] = { "zeros", "ones", "normal", NULL };

static const struct nr_option table[] = {
	NR_OPT_BOOL(struct knobs, affine, "true", "learn scale and shift"),
	NR_OPT_INT(struct knobs, depth, 12, 1, 1000, "number of blocks"),
	NR_OPT_INT(struct knobs, steps, -1, -1, INFINITY, "training steps"),
	NR_OPT_FLOAT(struct knobs, eps, 1e-6, 0, 1, "added to the variance"),
	NR_OPT_FLOAT(struct knobs, rate, 0.001, 0, INFINITY, "learning rate"),
	{ .name = "out",
	  .type = NR_TSTRING,
	  .offset = offsetof(struct knobs, out),
	  .size = sizeof(char *),
	  .text = "run",
	  .metavar = "DIR",
	  .help = "where results go",
	  .letter = 'o' },
	NR_OPT_ENUM(struct knobs, init, "normal", inits, "how weights start"),
	NR_OPT_LIST(struct knobs, norm, "normalization, may be repeated"),
	{ .name = "data_dir",
	  .type = NR_TSTRING,
	  .offset = offsetof(struct knobs, data),
	  .size = sizeof(char *),
	  .help = "data" },
	NR_OPT_END
};

struct fixture { struct nr_arena *arena; struct knobs k; struct nr_error err; };

static int setup(void **state)
{
	static struct fixture f;
	f = (struct fixture){ .arena = nr_arena_make() };
	nr_option_defaults(table, &f.k);
	*state = &f;
	return f.arena ? 0 : -1;
}

static int teardown(void **state)
{
	nr_arena_free(((struct fixture *)*state)->arena);
	return 0;
}

static const char *message(const struct nr_error *e)
{
	static char buf[1024];
	return nr_error_text(e, buf, sizeof buf);
}

static void defaults_fill_every_field(void **state)
{
	struct knobs *k = &((struct fixture *)*state)->k;
	assert_true(k->affine);
	assert_int_equal(k->depth, 12);
	assert_int_equal(k->steps, -1);
	assert_true(k->eps == 1e-6f);
	assert_true(k->rate == 0.001);
	assert_string_equal(k->out, "run");
	assert_int_equal(k->init, 2);
	assert_int_equal(k->norm.count, 0);
	assert_null(k->data);
}

static void set_reads_back_what_text_wrote(void **state)
{
	struct fixture *f = *state;
	static const char *const pairs[][2] = {
		{ "affine", "false" }, { "depth", "7" }, { "steps", "9007199254740993" }, { "eps", "1e-5" },
		{ "rate", "0.30000000000000004" }, { "out", "a b" }, { "init", "ones" },
	};
	char buf[64];
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		assert_int_equal(nr_option_set(table, &f->k, pairs[i][0], pairs[i][1], f->arena, &f->err),
				 NR_OK);
		const struct nr_option *o = nr_option_find(table, pairs[i][0]);
		assert_string_equal(nr_option_text(o, &f->k, buf, sizeof buf), pairs[i][1]);
	}
}

static void unknown_name_gets_the_nearest(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(nr_option_set(table, &f->k, "dpeth", "3", f->arena, &f->err), NR_ENAME);
	assert_string_equal(message(&f->err), "unknown option 'dpeth' (did you mean 'depth'?)");
	f->err = (struct nr_error){ 0 };
	assert_int_equal(nr_option_set(table, &f->k, "zzzzzz", "3", f->arena, &f->err), NR_ENAME);
	assert_non_null(strstr(message(&f->err), "unknown option 'zzzzzz' (there are affine, depth, "));
}

static void refuses(struct fixture *f, const char *name, const char *text, const char *part)
{
	struct nr_error e = { 0 };
	struct knobs before = f->k;
	assert_int_equal(nr_option_set(table, &f->k, name, text, f->arena, &e), NR_EVALUE);
	if (!strstr(message(&e), part))
		fail_msg("'%s' should contain '%s'", message(&e), part);
	assert_memory_equal(&before, &f->k, sizeof before);
}

static void bad_values_are_refused_and_change_nothing(void **state)
{
	struct fixture *f = *state;
	refuses(f, "depth", "0", "0 is not between 1 and 1000");
	refuses(f, "depth", "12x", "not a whole number");
	refuses(f, "steps", "9223372036854775808", "not a whole number");
	refuses(f, "steps", "-2", "-2 is below -1");
	refuses(f, "eps", "nan", "between");
	refuses(f, "eps", "", "not a number");
	refuses(f, "affine", "maybe", "true or false");
	refuses(f, "init", "norml", "did you mean 'normal'?");
}

static void parse_takes_pairs_and_parentheses(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(nr_option_parse(table, &f->k, "eps=1e-5,affine=0,norm=sep(bn,ln),norm=rms", f->arena,
					 &f->err),
			 0);
	assert_true(f->k.eps == 1e-5f);
	assert_false(f->k.affine);
	assert_int_equal(f->k.norm.count, 2);
	assert_string_equal(f->k.norm.item[0], "sep(bn,ln)");
	assert_string_equal(f->k.norm.item[1], "rms");
	assert_int_equal(nr_option_parse(table, &f->k, "", f->arena, &f->err), 0);
	assert_int_equal(nr_option_parse(table, &f->k, "affine", f->arena, &f->err), NR_EUSAGE);
	assert_non_null(strstr(message(&f->err), "bad option 'affine': it has no value"));
}

static int parse(struct fixture *f, struct nr_list *rest, int argc, const char *const *argv)
{
	char *copy[32];
	for (int i = 0; i < argc; i++)
		copy[i] = nr_arena_strdup(f->arena, argv[i]);
	return nr_args_parse(table, &f->k, argc, copy, rest, f->arena, &f->err);
}
#define PARSE(f, rest, ...) \
	parse(f, rest, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *), \
	      (const char *[]){ __VA_ARGS__ })

static void arguments_in_every_form(void **state)
{
	struct fixture *f = *state;
	struct nr_list rest = { 0 };
	assert_int_equal(PARSE(f, &rest, "--depth", "3", "in", "--eps=0.5", "--no-affine", "-odir", "--steps",
			       "-1", "--norm", "ln", "--norm=dtn", "--data-dir", "d", "-", "--", "--depth"),
			 NR_OK);
	assert_int_equal(f->k.depth, 3);
	assert_true(f->k.eps == 0.5f);
	assert_false(f->k.affine);
	assert_string_equal(f->k.out, "dir");
	assert_string_equal(f->k.data, "d");
	assert_int_equal(f->k.norm.count, 2);
	assert_string_equal(f->k.norm.item[1], "dtn");
	assert_int_equal(rest.count, 3);
	assert_string_equal(rest.item[0], "in");
	assert_string_equal(rest.item[1], "-");
	assert_string_equal(rest.item[2], "--depth");
}

static void arguments_replace_a_list_from_elsewhere(void **state)
{
	struct fixture *f = *state;
	nr_option_set(table, &f->k, "norm", "from-yaml", f->arena, &f->err);
	assert_int_equal(PARSE(f, NULL, "--norm", "a", "--norm", "b"), NR_OK);
	assert_int_equal(f->k.norm.count, 2);
	assert_string_equal(f->k.norm.item[0], "a");
}

static void args_refuse(struct fixture *f, const char *a, const char *b, const char *wanted)
{
	f->err = (struct nr_error){ 0 };
	struct nr_list rest = { 0 };
	assert_int_equal(b ? PARSE(f, &rest, a, b) : PARSE(f, &rest, a), NR_EUSAGE);
	if (!strstr(message(&f->err), wanted))
		fail_msg("'%s' should contain '%s'", message(&f->err), wanted);
}

static void bad_arguments_are_usage_errors(void **state)
{
	struct fixture *f = *state;
	args_refuse(f, "--dept", "3", "unknown option '--dept' (did you mean '--depth'?)");
	args_refuse(f, "--no-afine", NULL, "did you mean '--no-affine'?");
	args_refuse(f, "--zzzzzz", NULL, "unknown option '--zzzzzz'");
	args_refuse(f, "--no-depth", NULL, "unknown option '--no-depth'");
	args_refuse(f, "-z", NULL, "unknown option '-z'");
	args_refuse(f, "--depth", NULL, "needs a value");
	args_refuse(f, "--depth", "--eps", "needs a value");
	args_refuse(f, "-o", NULL, "needs a value");
	args_refuse(f, "--depth=0", NULL, "--depth': 0 is not between 1 and 1000");
	args_refuse(f, "--no-affine=1", NULL, "takes no value");
}

static void surplus_arguments_are_refused_where_none_belong(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(PARSE(f, NULL, "stray"), NR_EUSAGE);
	assert_non_null(strstr(message(&f->err), "'stray'"));
}

static void required_option_is_missed_by_name(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(nr_args_require(table, &f->k, &f->err), NR_EUSAGE);
	assert_non_null(strstr(message(&f->err), "--data-dir"));
	assert_int_equal(PARSE(f, NULL, "--data-dir=x"), NR_OK);
	f->err = (struct nr_error){ 0 };
	assert_int_equal(nr_args_require(table, &f->k, &f->err), NR_OK);
}

static void has(const struct nr_str *s, const char *part)
{
	if (!strstr(nr_str_text(s), part))
		fail_msg("no '%s' in:\n%s", part, nr_str_text(s));
}

static void help_shows_default_and_range(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	nr_option_help(table, &s);
	has(&s, "      --[no-]affine    learn scale and shift (default: true)\n");
	has(&s, "      --depth N        number of blocks (default: 12; 1 to 1000)\n");
	has(&s, "      --steps N        training steps (default: -1; at least -1)\n");
	has(&s, "  -o, --out DIR        where results go (default: run)\n");
	has(&s, "      --init CHOICE    how weights start (default: normal; one of zeros, ones,\n                       normal)\n");
	has(&s, "      --data-dir TEXT  data (required)\n");
	nr_str_release(&s);
	static const struct nr_option without[] = {
		{ .name = "no_token", .type = NR_TBOOL, .size = sizeof(bool), .text = "0", .help = "open" }, NR_OPT_END
	};
	nr_option_help(without, &s);
	has(&s, "      --no-token  open");
	nr_str_release(&s);
}

static void man_rows_are_scdoc(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	nr_option_man(table, &s);
	has(&s, "*-o*, *--out* _DIR_\n\tWhere results go. Default: run.\n\n");
	has(&s, "*--affine*, *--no-affine*\n\tLearn scale and shift. Default: true.\n\n");
	has(&s, "*--data-dir* _TEXT_\n\tData. Required.\n\n");
	nr_str_release(&s);
}

static void completion_offers_flags_then_choices(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	nr_option_complete(table, NULL, &s);
	has(&s, "--affine\n--no-affine\n--depth\n");
	has(&s, "--data-dir\n");
	nr_str_release(&s);
	nr_option_complete(table, "--init", &s);
	assert_string_equal(nr_str_text(&s), "zeros\nones\nnormal\n");
	nr_str_release(&s);
	nr_option_complete(table, "--depth", &s);
	assert_string_equal(nr_str_text(&s), "");
	nr_str_release(&s);
}

static void yaml_template_comments_every_key(void **state)
{
	struct fixture *f = *state;
	struct nr_str s = { 0 };
	nr_option_yaml(table, NULL, 2, &s);
	has(&s, "  # number of blocks (1 to 1000)\n  depth: 12\n");
	has(&s, "  # data (required)\n  # data_dir:\n");
	has(&s, "  norm: []\n");
	nr_str_release(&s);
	nr_option_set(table, &f->k, "norm", "ln", f->arena, NULL);
	nr_option_set(table, &f->k, "norm", "a: b", f->arena, NULL);
	nr_option_set(table, &f->k, "out", "true", f->arena, NULL);
	nr_option_yaml(table, &f->k, 0, &s);
	has(&s, "norm: [\"ln\", \"a: b\"]\n");
	has(&s, "out: \"true\"\n");
	nr_str_release(&s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(defaults_fill_every_field),
		TEST(set_reads_back_what_text_wrote),
		TEST(unknown_name_gets_the_nearest),
		TEST(bad_values_are_refused_and_change_nothing),
		TEST(parse_takes_pairs_and_parentheses),
		TEST(arguments_in_every_form),
		TEST(arguments_replace_a_list_from_elsewhere),
		TEST(bad_arguments_are_usage_errors),
		TEST(surplus_arguments_are_refused_where_none_belong),
		TEST(required_option_is_missed_by_name),
		TEST(help_shows_default_and_range),
		TEST(man_rows_are_scdoc),
		TEST(completion_offers_flags_then_choices),
		TEST(yaml_template_comments_every_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
