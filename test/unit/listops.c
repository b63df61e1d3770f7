/* src/data/listops{,_set}.c: values of expressions, what is wrong with one, drawn trees, files. */
#include <stdio.h>

#include "unit/values.h"
#include "unit/folder.h"

#include "data/listops.h"
#include "norma/data.h"
#include "norma/tokenizer.h"

static struct nr_listops read_it(const char *text, const char *words)
{
	struct nr_listops x;
	struct nr_error err = { 0 };
	struct nr_str s = { 0 };
	char line[600];
	if (nr_listops_read(text, strlen(text), &x, &s, "it", 1, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	if (words) assert_string_equal(nr_str_text(&s), words);
	nr_str_release(&s);
	return x;
}

static void refused(const char *text, const char *why, const char *hint)
{
	struct nr_listops x;
	struct nr_error err = { 0 };
	assert_int_equal(nr_listops_read(text, strlen(text), &x, NULL, "it", 7, &err), NR_EFORMAT);
	if (!strstr(err.detail, why) || !strstr(err.detail, "line 7")) fail_msg("'%s' instead of '%s'", err.detail, why);
	if (hint && !strstr(err.hint, hint)) fail_msg("'%s' instead of '%s'", err.hint, hint);
}

static void expressions_have_their_values(void **state)
{
	(void)state;
	assert_int_equal(read_it("[SM [MAX 7 7 6 ] [MIN 6 6 ] ]", "SM MAX 7 7 6 X MIN 6 6 X X").value, 3);
	assert_int_equal(read_it("( ( ( [MIN 8 ) ( ( ( [MED 3 ) 7 ) ] ) ) ] )", "MIN 8 MED 3 7 X X").value, 5);
	assert_int_equal(read_it("[MED 1 2 ]", NULL).value, 1);         /* the integer part of 1.5 */
	assert_int_equal(read_it("[MED 9 0 4 ]", NULL).value, 4);
	assert_int_equal(read_it("[SM 9 9 9 ]", NULL).value, 7);
	assert_int_equal(read_it("4", "4").value, 4);
	const struct nr_listops x = read_it("[SM [MAX 7 7 6 ] [MIN 6 6 ] ]", NULL);
	assert_true(x.length == 11 && x.depth == 2);
}

static void broken_expressions_are_refused(void **state)
{
	(void)state;
	refused("[MAX 1 2", "1 operator is not closed", NULL);
	refused("[MAX 1 2 ] ]", "token 5 follows a complete expression", NULL);
	refused("]", "closes no operator", NULL);
	refused("( [MAX 1 2 ]", "1 '(' is not closed", NULL);
	refused("[MAX 1 2 ] )", "closes no '('", NULL);
	refused("[MAXX 1 2 ]", "unknown operator '[MAXX'", "did you mean '[MAX'?");
	refused("[MEAN_OF_ALL 1 2 ]", "unknown operator", "operators are");
	refused("[MAX ]", "has no arguments", NULL);
	refused("[MAX 1 12 ]", "neither a digit nor an operator", NULL);
	refused("", "it is empty", NULL);
	struct nr_str deep = { 0 };
	for (int i = 0; i <= NR_LISTOPS_DEPTH; i++) nr_str_add(&deep, "[MIN 1 ");
	refused(nr_str_text(&deep), "inside each other", NULL);
	nr_str_release(&deep);
}

static void trees_are_drawn_within_their_bounds(void **state)
{
	(void)state;
	const struct nr_listops_how how = { .shortest = 20, .longest = 60, .depth = 4, .arguments = 5, .seed = 3 };
	struct nr_str text = { 0 }, again = { 0 };
	int found = 0;
	for (uint64_t i = 0; i < 3000; i++) {
		struct nr_listops drawn, other;
		if (!nr_listops_draw(&how, i, &text, &drawn)) continue;
		found++;
		const struct nr_listops x = read_it(nr_str_text(&text), NULL);
		assert_true(x.value == drawn.value && x.length == drawn.length && x.depth == drawn.depth);
		assert_true(x.length > 20 && x.length < 60 && x.depth < 4);
		assert_true(nr_listops_draw(&how, i, &again, &other));
		assert_string_equal(nr_str_text(&again), nr_str_text(&text));
	}
	assert_true(found > 50);
	nr_str_release(&text);
	nr_str_release(&again);
}

/* The value by the brackets alone, arguments sorted: nothing in common with the reader. */
static int by_brackets(const char **at);
static int by_name(const char *name, int *v, int n)
{
	int sum = 0;
	for (int i = 1; i < n; i++)
		for (int j = i; j && v[j - 1] > v[j]; j--) v[j] ^= v[j - 1], v[j - 1] ^= v[j], v[j] ^= v[j - 1];
	for (int i = 0; i < n; i++) sum += v[i];
	if (!strncmp(name, "[MIN", 4)) return v[0];
	if (!strncmp(name, "[MAX", 4)) return v[n - 1];
	if (!strncmp(name, "[MED", 4)) return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
	return sum % 10;
}
static const char *word_of(const char **at)
{
	const char *s = *at + strspn(*at, " ");
	*at = s + strcspn(s, " ");
	return s;
}
static int by_brackets(const char **at)
{
	const char *s = word_of(at);
	int opened = 0, n = 0, v[16];
	if (*s != '(') return *s - '0';
	for (; *s == '('; s = word_of(at)) opened++;    /* one for each argument, and one for the whole */
	for (const char *name = s;; n++) {
		const char *ahead = *at;
		if (*word_of(&ahead) == ']') {
			*at = ahead;
			assert_int_equal(*word_of(at), ')');
			assert_int_equal(n, opened - 1);
			return by_name(name, v, n);
		}
		assert_in_range(n, 0, 15);
		v[n] = by_brackets(at);
		assert_int_equal(*word_of(at), ')');
	}
}

static void ten_thousand_values_are_those_of_another_evaluator(void **state)
{
	(void)state;
	const struct nr_listops_how how = { .shortest = 50, .longest = 600, .depth = 10, .arguments = 10, .seed = 8 };
	struct nr_str text = { 0 };
	int count[10] = { 0 }, found = 0;
	for (uint64_t i = 0; found < 10000; i++) {
		struct nr_listops drawn;
		if (!nr_listops_draw(&how, i, &text, &drawn)) continue;
		const char *at = nr_str_text(&text);
		assert_int_equal(by_brackets(&at), drawn.value);
		assert_int_equal(read_it(nr_str_text(&text), NULL).value, drawn.value);
		count[drawn.value]++;
		found++;
	}
	for (int v = 0; v < 10; v++) assert_true(count[v] > 300);
	nr_str_release(&text);
}

static void files_are_read_back(void **state)
{
	(void)state;
	struct nr_listops_files f = { .how = { 5, 40, 10, 10, 1 }, .count = { 50, 10, 10 } };
	struct nr_error err = { 0 };
	struct nr_source *s;
	struct nr_tokenizer *t;
	char text[600];
	assert_int_equal(nr_listops_write(&f, made_path("made"), &err), 0);
	snprintf(text, sizeof text, "listops:path=%s", made_path("made"));
	assert_int_equal(nr_source_open(&s, text, NULL, &err), 0);
	assert_true(s->count[NR_TRAIN] == 50 && s->count[NR_VAL] == 10 && s->count[NR_TEST] == 10 && s->classes == 10);
	for (int i = 0; i < 50; i++)                    /* none twice */
		for (int j = 0; j < i; j++)
			assert_string_not_equal(nr_source_text(s, NR_TRAIN, i, 0), nr_source_text(s, NR_TRAIN, j, 0));
	nr_source_close(s);
	assert_int_equal(nr_tokenizer_open(&t, made_path("made"), &err), 0);
	assert_int_equal(nr_tokenizer_size(t), 17);
	assert_int_equal(nr_tokenizer_find(t, "X"), 15);
	nr_tokenizer_close(t);
	f.how = (struct nr_listops_how){ 0, 2, 2, 2, 1 };       /* ten digits and no more */
	assert_int_equal(nr_listops_write(&f, made_path("few"), &err), NR_EVALUE);
	assert_non_null(strstr(err.detail, "only 10 different expressions"));
}

static void wrong_rows_are_refused(void **state)
{
	(void)state;
	static const char *const rows[][2] = { { "[MAX 1 2 ]\t1\n", "the expression gives 2, but its target is 1" },
		{ "[MAX 1 2 ] 2\n", "is not an expression, a tab and a digit" }, { "[MAX 1 2\t2\n", "is not closed" } };
	for (int i = 0; i < 3; i++) {
		struct nr_error err = { 0 };
		struct nr_source *s;
		char text[600], file[200];
		snprintf(file, sizeof file, "Source\tTarget\n%s", rows[i][0]);
		assert_int_equal(nr_save_file(made_path("bad/basic_train.tsv"), file, strlen(file), &err), 0);
		snprintf(text, sizeof text, "listops:path=%s", made_path("bad"));
		assert_int_not_equal(nr_source_open(&s, text, NULL, &err), 0);
		if (!strstr(err.detail, rows[i][1]) || !strstr(err.detail, "line 2")) fail_msg("'%s'", err.detail);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expressions_have_their_values),
		cmocka_unit_test(broken_expressions_are_refused),
		cmocka_unit_test(trees_are_drawn_within_their_bounds),
		cmocka_unit_test(ten_thousand_values_are_those_of_another_evaluator),
		cmocka_unit_test_setup_teardown(files_are_read_back, made_setup, made_teardown),
		cmocka_unit_test_setup_teardown(wrong_rows_are_refused, made_setup, made_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
