/* base/yaml.c: configurations by option tables, every error with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/optdoc.h"
#include "base/str.h"
#include "base/yaml.h"

struct run { char *name; struct nr_list norm; };
struct train { int64_t steps; double rate; bool amp; int32_t schedule; char *data; };

static const char *const schedules[] = { "constant", "cosine", NULL };
static const struct nr_option run_options[] = {
	NR_OPT_STRING(struct run, name, "run", "name of the run"),
	NR_OPT_LIST(struct run, norm, "normalizations"),
	NR_OPT_END
};
static const struct nr_option train_options[] = {
	NR_OPT_INT(struct train, steps, 100, 1, 1e9, "training steps"),
	NR_OPT_FLOAT(struct train, rate, 0.1, 0, 10, "learning rate"),
	NR_OPT_BOOL(struct train, amp, "false", "half precision"),
	NR_OPT_ENUM(struct train, schedule, "cosine", schedules, "schedule"),
	{ .name = "data",
	  .type = NR_TSTRING,
	  .offset = offsetof(struct train, data),
	  .size = sizeof(char *),
	  .help = "data" },
	NR_OPT_END
};

static struct fixture {
	struct nr_arena *arena;
	struct run run;
	struct train train;
	struct nr_yaml_errors errors;
	struct nr_error err;
	struct nr_str text;
} f;

static const struct nr_yaml_section sections[] = {
	{ NULL, run_options, &f.run },
	{ "train", train_options, &f.train },
	{ 0 }
};

static int setup(void **state)
{
	(void)state;
	f = (struct fixture){ .arena = nr_arena_make() };
	nr_option_defaults(run_options, &f.run);
	nr_option_defaults(train_options, &f.train);
	return f.arena ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	nr_arena_free(f.arena);
	nr_str_release(&f.text);
	return 0;
}

static int parse_n(const char *text, size_t n)
{
	f.err = (struct nr_error){ 0 };
	nr_str_release(&f.text);
	int code = nr_yaml_parse(text, n, "recipe.yaml", sections, f.arena, &f.errors, &f.err);
	nr_yaml_errors_text(&f.errors, &f.text);
	assert_int_equal(code, f.err.code);
	assert_int_equal(code != NR_OK, f.errors.count > 0);
	return code;
}

static int parse(const char *text)
{
	f.train.data = f.train.data ? f.train.data : nr_arena_strdup(f.arena, "given");
	return parse_n(text, strlen(text));
}

static void shows(const char *part)
{
	if (!strstr(nr_str_text(&f.text), part))
		fail_msg("no '%s' in:\n%s", part, nr_str_text(&f.text));
}

/* One error, at this place, with this text. */
static void one_error(const char *yaml, const char *part)
{
	assert_int_equal(parse(yaml), NR_EFORMAT);
	shows(part);
	if (f.errors.count != 1)
		fail_msg("expected one error:\n%s", nr_str_text(&f.text));
}

static void good_file_fills_every_section(void **state)
{
	(void)state;
	assert_int_equal(
		parse("# a comment\nname: \"a b\"\nnorm: [ln, 'dtn:eps=1e-5']\n"
		      "train:\n  steps: 7\n  rate: 1e-3\n  amp: yes\n  schedule: constant\n  data: d\n"),
		NR_OK);
	assert_string_equal(f.run.name, "a b");
	assert_int_equal(f.run.norm.count, 2);
	assert_string_equal(f.run.norm.item[1], "dtn:eps=1e-5");
	assert_int_equal(f.train.steps, 7);
	assert_true(f.train.rate == 1e-3 && f.train.amp);
	assert_int_equal(f.train.schedule, 0);
	assert_string_equal(f.train.data, "d");
}

static void empty_files_keep_the_defaults(void **state)
{
	(void)state;
	const char *const empty[] = { "", "# nothing\n", "---\n", "---\n...\n", "train:\n", "{}" };
	for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
		assert_int_equal(parse(empty[i]), NR_OK);
	assert_int_equal(f.train.steps, 100);
}

static void list_may_be_one_text_and_replaces_the_old(void **state)
{
	(void)state;
	assert_int_equal(parse("norm: [a, b]\n"), NR_OK);
	assert_int_equal(parse("norm: rms\n"), NR_OK);
	assert_int_equal(f.run.norm.count, 1);
	assert_string_equal(f.run.norm.item[0], "rms");
	assert_int_equal(parse("norm: []\n"), NR_OK);
	assert_int_equal(f.run.norm.count, 0);
}

static void unknown_key_names_the_nearest(void **state)
{
	(void)state;
	one_error("train:\n  setps: 3\n",
		  "recipe.yaml:2:3: unknown key 'setps' in 'train' (did you mean 'steps'?)\n"
		  "    2 |   setps: 3\n"
		  "      |   ^\n");
	one_error("trian:\n  steps: 3\n", "recipe.yaml:1:1: unknown key 'trian' (did you mean 'train'?)");
	one_error("zzzzz: 1\n", "unknown key 'zzzzz'\n");
}

static void misplaced_key_is_told_where_it_belongs(void **state)
{
	(void)state;
	one_error("steps: 3\n", "unknown key 'steps' (it belongs under 'train:')");
	one_error("train: {name: x}\n", "1:9: unknown key 'name' in 'train' (it belongs at the top)");
}

static void wrong_types_and_ranges_point_at_the_value(void **state)
{
	(void)state;
	one_error("train:\n  steps: many\n", "2:10: bad value for 'steps': 'many' is not a whole number");
	one_error("train:\n  steps: 0\n", "2:10: bad value for 'steps': 0 is not between 1 and 1000000000");
	one_error("train:\n  steps: 99999999999999999999\n", "2:10: bad value for 'steps'");
	one_error("train:\n  steps: [1]\n", "2:10: 'steps' should be a whole number, not a list");
	one_error("train:\n  rate: {a: 1}\n", "2:9: 'rate' should be a number, not a mapping");
	one_error("train:\n  steps: '3'\n",
		  "2:10: 'steps' should be a whole number, not text (remove the quotes)");
	one_error("train:\n  steps:\n", "'steps' has no value");
	one_error("train:\n  amp: ~\n", "'amp' has no value");
	one_error("train:\n  schedule: cosin\n", "(did you mean 'cosine'?)");
	one_error("norm: [ln, [x]]\n", "1:12: 'norm' should be text or a list of texts, not a list");
	one_error("train: 3\n", "1:8: 'train' should be a mapping of keys, not a value");
	one_error("[a, b]\n", "1:1: a configuration should be a mapping of keys, not a list");
	one_error("? [a]\n: b\n", "1:3: a key should be text, not a list");
	one_error("name: \"a\\0b\"\n", "zero byte");
}

static void duplicate_keys_are_found(void **state)
{
	(void)state;
	one_error("train:\n  steps: 3\n  steps: 4\n", "3:3: key 'steps' is given twice, first in line 2");
	assert_int_equal(f.train.steps, 3);
	one_error("train: {}\nname: a\ntrain: {}\n", "3:1: key 'train' is given twice, first in line 1");
	one_error("name: a\nname: b\n", "2:1: key 'name' is given twice, first in line 1");
}

static void all_errors_are_collected(void **state)
{
	(void)state;
	assert_int_equal(parse("nmae: x\ntrain:\n  steps: -1\n  rate: fast\n  depth: 3\n"), NR_EFORMAT);
	assert_int_equal(f.errors.count, 4);
	shows("recipe.yaml:1:1:");
	shows("recipe.yaml:3:10:");
	shows("recipe.yaml:4:9:");
	shows("recipe.yaml:5:3:");
	char line[1024];
	assert_string_equal(
		nr_error_text(&f.err, line, sizeof line),
		"cannot read 'recipe.yaml': line 1, column 1: unknown key 'nmae'; and 3 more errors "
		"(did you mean 'name'?)");
}

static void collecting_stops_at_the_limit(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	for (int i = 0; i < 50000; i++)
		nr_str_printf(&s, "unknown_%d: 1\n", i);
	assert_int_equal(parse(s.text), NR_EFORMAT);
	assert_int_equal(f.errors.count, NR_YAML_MAX_ERRORS);
	assert_true(f.errors.more);
	shows("more than 20 errors");
	nr_str_release(&s);
}

static void missing_required_key_is_an_error(void **state)
{
	(void)state;
	const char *text = "train:\n  steps: 3\n";
	assert_int_equal(parse_n(text, strlen(text)), NR_EFORMAT);
	shows("key 'data' is missing in 'train'");
}

static void broken_yaml_is_one_error_with_its_place(void **state)
{
	(void)state;
	one_error("train:\n  steps: 3\n rate: 2\n", "recipe.yaml:3:2:");
	one_error("name: [a, b\n", "recipe.yaml:2:1:");
	one_error("name: \"abc\n", "recipe.yaml:2:1:");
	one_error("name: a\n\tx: b\n", "recipe.yaml:2:1:");
	one_error("a: *nobody\n", "recipe.yaml:1:4:");
	one_error("name: a\n---\nname: b\n", "recipe.yaml:3:1: a second document");
	one_error("name: a\n---\n[\n", "recipe.yaml:");
	one_error("name: a\nx\xFFy: 1\n", "recipe.yaml:2:2: it is not UTF-8");
	one_error("name: a\nb: \x01\n", "recipe.yaml:2:4: control characters are not allowed");
	one_error("<<: 3\n", "merge keys are not supported");
}

static void caret_stands_under_wide_letters(void **state)
{
	(void)state;
	one_error("{name: \xE4\xB8\xAD\xE6\x96\x87, x: 1}\n", "1:12: unknown key 'x'\n"
		  "    1 | {name: \xE4\xB8\xAD\xE6\x96\x87, x: 1}\n"
		  "      |              ^\n");
}

static void windows_line_ends_keep_the_count(void **state)
{
	(void)state;
	one_error("name: a\r\n\r\nx: 1\r\n", "3:1: unknown key 'x'\n    3 | x: 1\n");
}

static void aliases_work_and_bombs_do_not(void **state)
{
	(void)state;
	assert_int_equal(parse("name: &n hello\nnorm: [*n, *n]\n"), NR_OK);
	assert_string_equal(f.run.norm.item[1], "hello");
	one_error("norm: &x [*x]\n", "'norm' should be");
	one_error("train: &t\n  rate: *t\n", "'rate' should be a number, not a mapping");
	struct nr_str s = { 0 };
	nr_str_add(&s, "name: x\nl0: &l0 [a]\n");
	for (int i = 1; i < 40; i++)
		nr_str_printf(&s, "l%d: &l%d [*l%d, *l%d, *l%d]\n", i, i, i - 1, i - 1, i - 1);
	nr_str_printf(&s, "norm: *l39\n");
	assert_int_equal(parse(s.text), NR_EFORMAT);
	nr_str_release(&s);
}

static void depth_and_size_are_bounded(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	nr_str_add(&s, "name: ");
	nr_str_fill(&s, '[', 1000000);
	one_error(s.text, "nested deeper than 64 levels");
	s.len = 0;
	for (int i = 0; i < 200; i++) {
		nr_str_fill(&s, ' ', (size_t)i);
		nr_str_add(&s, "a:\n");
	}
	one_error(s.text, "nested deeper");
	s.len = 0;
	nr_str_fill(&s, '#', NR_YAML_MAX_BYTES + 1);
	one_error(s.text, "at most 1048576 are accepted");
	s.len = 0;
	for (int i = 0; i < 80000; i++) nr_str_printf(&s, "k%d: 1\n", i);       /* each is looked up once, in a table */
	assert_int_equal(parse(s.text), NR_EFORMAT);
	shows("unknown key 'k0'");
	nr_str_release(&s);
}

static void control_characters_are_not_echoed(void **state)
{
	(void)state;
	one_error("\"a\\e[2Jb\": 1\n", "unknown key 'a?[2Jb'");
}

static void template_reads_back(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	f.run.name = nr_arena_strdup(f.arena, "odd \"name\"\\\n\t: # \xC3\xA9");
	f.train.rate = 0.1 + 0.2;
	f.train.data = nr_arena_strdup(f.arena, "true");
	struct train want = f.train;
	char *name = f.run.name;
	nr_option_yaml(run_options, &f.run, 0, &s);
	nr_str_add(&s, "train:\n");
	nr_option_yaml(train_options, &f.train, 2, &s);
	nr_option_defaults(run_options, &f.run);
	nr_option_defaults(train_options, &f.train);
	assert_int_equal(parse_n(s.text, s.len), NR_OK);
	assert_string_equal(f.run.name, name);
	assert_true(f.train.rate == want.rate && f.train.steps == want.steps);
	assert_string_equal(f.train.data, "true");
	nr_str_release(&s);
}

static void peek_finds_one_scalar(void **state)
{
	(void)state;
	const char *text = "name: a\nmodel: {name: vit, depth: 3}\nnothing:\n";
	size_t n = strlen(text);
	assert_string_equal(nr_yaml_peek(text, n, "model", "name", f.arena), "vit");
	assert_string_equal(nr_yaml_peek(text, n, NULL, "name", f.arena), "a");
	assert_null(nr_yaml_peek(text, n, "model", "heads", f.arena));
	assert_null(nr_yaml_peek(text, n, NULL, "model", f.arena));
	assert_null(nr_yaml_peek(text, n, NULL, "nothing", f.arena));
	assert_null(nr_yaml_peek("{", 1, NULL, "name", f.arena));
}

static void files_are_read_and_their_absence_named(void **state)
{
	(void)state;
	char path[] = "/tmp/norma-yaml-XXXXXX";
	int fd = mkstemp(path);
	assert_int_equal(write(fd, "train: {data: x}\n", 17), 17);
	close(fd);
	assert_int_equal(nr_yaml_read(path, sections, f.arena, &f.errors, &f.err), NR_OK);
	assert_string_equal(f.train.data, "x");
	unlink(path);
	assert_int_equal(nr_yaml_read(path, sections, f.arena, &f.errors, &f.err), NR_EIO);
	assert_string_equal(f.err.subject, path);
	assert_string_equal(f.err.detail, "No such file or directory");
	f.err = (struct nr_error){ 0 };
	assert_int_equal(nr_yaml_read("/tmp", sections, f.arena, &f.errors, &f.err), NR_EIO);
	assert_string_equal(f.err.detail, "Is a directory");
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(good_file_fills_every_section),
		TEST(empty_files_keep_the_defaults),
		TEST(list_may_be_one_text_and_replaces_the_old),
		TEST(unknown_key_names_the_nearest),
		TEST(misplaced_key_is_told_where_it_belongs),
		TEST(wrong_types_and_ranges_point_at_the_value),
		TEST(duplicate_keys_are_found),
		TEST(all_errors_are_collected),
		TEST(collecting_stops_at_the_limit),
		TEST(missing_required_key_is_an_error),
		TEST(broken_yaml_is_one_error_with_its_place),
		TEST(caret_stands_under_wide_letters),
		TEST(windows_line_ends_keep_the_count),
		TEST(aliases_work_and_bombs_do_not),
		TEST(depth_and_size_are_bounded),
		TEST(control_characters_are_not_echoed),
		TEST(template_reads_back),
		TEST(peek_finds_one_scalar),
		TEST(files_are_read_and_their_absence_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
