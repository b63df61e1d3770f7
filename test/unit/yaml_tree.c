/* base/yaml_tree.c: a document as a tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/yaml.h"

static struct nr_yaml_tree tree;
static struct nr_yaml_errors errors;
static struct nr_error err;

static int read(struct nr_arena *arena, const char *text)
{
	err = (struct nr_error){ 0 };
	return nr_yaml_tree(&tree, text, strlen(text), "t.yaml", arena, &errors, &err);
}

static void lists_and_mappings_keep_order_and_lines(void **state)
{
	struct nr_arena *arena = *state = nr_arena_make();
	assert_int_equal(read(arena, "a: [1, {b: x}]\nc:\n  d: ~\n"), NR_OK);
	assert_int_equal(tree.root->kind, NR_YAML_MAP);
	assert_int_equal(tree.root->count, 2);
	const struct nr_yaml_node *list = nr_yaml_value(tree.root, "a");
	assert_int_equal(list->kind, NR_YAML_LIST);
	assert_string_equal(list->item[0]->text, "1");
	assert_string_equal(nr_yaml_value(list->item[1], "b")->text, "x");
	const struct nr_yaml_node *d = nr_yaml_value(nr_yaml_value(tree.root, "c"), "d");
	assert_int_equal(d->kind, NR_YAML_NULL);
	assert_int_equal(d->line, 3);
	assert_int_equal(d->column, 6);
	assert_null(nr_yaml_value(tree.root, "d"));
	assert_null(nr_yaml_value(list, "a"));
	nr_arena_free(arena);
}

static void empty_text_has_no_root(void **state)
{
	struct nr_arena *arena = *state = nr_arena_make();
	assert_int_equal(read(arena, ""), NR_OK);
	assert_null(tree.root);
	nr_arena_free(arena);
}

static void aliases_are_shared_and_loops_end(void **state)
{
	struct nr_arena *arena = *state = nr_arena_make();
	assert_int_equal(read(arena, "a: &x [1]\nb: *x\n"), NR_OK);
	assert_ptr_equal(nr_yaml_value(tree.root, "a"), nr_yaml_value(tree.root, "b"));
	const int code = read(arena, "&r [*r]\n");
	assert_true(code || tree.root->item[0] == tree.root);
	nr_arena_free(arena);
}

static void repeated_and_odd_keys_are_errors(void **state)
{
	struct nr_arena *arena = *state = nr_arena_make();
	assert_int_equal(read(arena, "a: 1\na: 2\n[x]: 3\n"), NR_EFORMAT);
	assert_int_equal(errors.count, 2);
	assert_int_equal(errors.item[0].line, 2);
	assert_int_equal(errors.item[1].line, 3);
	assert_int_equal(read(arena, "a: [\n"), NR_EFORMAT);
	nr_arena_free(arena);
}

static void complaints_show_the_line(void **state)
{
	struct nr_arena *arena = *state = nr_arena_make();
	assert_int_equal(read(arena, "a: 1\nb: 2\n"), NR_OK);
	nr_yaml_tree_complain(&tree, nr_yaml_value(tree.root, "b"), "try 3", "%d is wrong", 2);
	assert_int_equal(nr_yaml_tree_done(&tree, &err), NR_EFORMAT);
	assert_int_equal(errors.item[0].line, 2);
	assert_int_equal(errors.item[0].column, 4);
	assert_string_equal(errors.item[0].source, "b: 2");
	assert_string_equal(errors.item[0].hint, "try 3");
	nr_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_and_mappings_keep_order_and_lines), cmocka_unit_test(empty_text_has_no_root),
		cmocka_unit_test(aliases_are_shared_and_loops_end), cmocka_unit_test(repeated_and_odd_keys_are_errors),
		cmocka_unit_test(complaints_show_the_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
