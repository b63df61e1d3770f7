/* train/state.c: a state reads back as the same bits; one that is damaged is refused, never taken for the beginning. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/checkpoint.h"

static const struct nr_progress_state some = { .step = 7, .best_step = 6, .stale = 1, .seconds = 0.1, .loss_sum = 1.0 / 3, .seen = 32,
	.train_loss = 2.3, .sum = { 1, 0.7 }, .train = { 0.5 }, .last = { 1e-300 }, .best = 0.9, .eval_samples = 50 };

static void a_state_reads_back_as_the_same_bits(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	struct nr_progress_state back, want = some;
	want.last[1] = want.best = NAN;
	char *text = nr_state_text(&want);
	assert_int_equal(nr_state_read(&back, text, "x", 7, &err), NR_OK);
	assert_true(isnan(back.best) && isnan(back.last[1]));
	back.best = want.best = back.last[1] = want.last[1] = 0;
	assert_memory_equal(&back, &want, sizeof want);
	free(text);
}

/* The text of `some` with one piece replaced. */
static void refuses(const char *piece, const char *by)
{
	struct nr_error err = { 0 };
	struct nr_progress_state back;
	char *text = nr_state_text(&some), *at = strstr(text, piece), changed[2048];
	assert_non_null(at);
	snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, by, at + strlen(piece));
	if (nr_state_read(&back, changed, "last.safetensors", 10, &err) == NR_OK) fail_msg("taken: %s", changed);
	assert_int_equal(err.code, NR_EFORMAT);
	free(text);
}

static void a_damaged_state_is_refused(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	struct nr_progress_state back;
	assert_int_equal(nr_state_read(&back, "{}", "x", 10, &err), NR_EFORMAT);
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_state_read(&back, "[]", "x", 10, &err), NR_EFORMAT);
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_state_read(&back, "", "x", 10, &err), NR_EFORMAT);
	refuses("\"step\":7", "\"step\":\"x\"");
	refuses("\"step\":7", "\"step\":7.5");
	refuses("\"step\":7", "\"step\":9223372036854775807");
	refuses("\"step\":7", "\"step\":11");
	refuses("\"step\":7", "\"step\":-1");
	refuses("\"step\":7", "\"step\":5");               /* before its best */
	refuses("\"step\":7", "\"steps\":7");
	refuses("\"stale\":1", "\"stale\":-1");
	refuses("\"seen\":32.0", "\"seen\":true");
	refuses("\"sum\":[", "\"sum\":[[],");
	refuses("\"last\":[", "\"last\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_state_reads_back_as_the_same_bits),
		cmocka_unit_test(a_damaged_state_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
