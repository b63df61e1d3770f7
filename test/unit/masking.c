/* src/tasks/masking.c: how many words are masked and what becomes of them, places in the batch, a list that is full. */
#include "unit/values.h"
#include "unit/folder.h"

#include "models/text_heads.h"
#include "tasks/masking.h"

enum { WORDS = 400, FIRST = 5, T = 600, K = 1000 };      /* five special tokens come first */

static struct nr_tokenizer *words(void)
{
	struct nr_tokenizer *t;
	struct nr_error err = { 0 };
	static char text[32 + 8 * WORDS];
	int at = sprintf(text, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
	for (int i = 0; i < WORDS; i++) at += sprintf(text + at, "w%d\n", i);
	assert_int_equal(nr_tokenizer_open(&t, made_with("vocab.txt", text), &err), 0);
	return t;
}

static void fill(int32_t *ids)
{
	for (int i = 0; i < T; i++) ids[i] = FIRST + (i * 7) % WORDS;
	ids[0] = 2, ids[T - 1] = 3;
}

static void a_share_of_the_words_is_masked(void **state)
{
	(void)state;
	static int32_t ids[T], masked[3][T], index[K], labels[K];
	struct nr_tokenizer *t = words();
	struct nr_masker m = { .tokenizer = t, .share = 0.3, .index = index, .labels = labels, .room = K };
	const struct nr_rng rng = nr_rng_make(3, 1, 7);
	int mask = 0, other = 0, same = 0;
	fill(ids);
	for (int b = 0; b < 3; b++) nr_masker_add(&m, rng, (uint64_t)b << 20, b * T, T, ids, masked[b]);
	assert_in_range(m.count, 540 - 80, 540 + 80);
	for (int64_t k = 0; k < m.count; k++) {
		const int32_t b = index[k] / T, i = index[k] % T, is = masked[b][i];
		assert_true(k == 0 || index[k] > index[k - 1]);
		assert_true(i > 0 && i < T - 1);                /* never [CLS] or [SEP] */
		assert_int_equal(labels[k], ids[i]);
		mask += is == 4, same += is == ids[i], other += is != 4 && is != ids[i];
	}
	assert_in_range(mask, 0.72 * (double)m.count, 0.88 * (double)m.count);
	assert_true(same > 20 && other > 20);
	for (int64_t at = 0, k = 0; at < (int64_t)3 * T; at++) {
		if (k < m.count && index[k] == at) k++;
		else assert_int_equal(masked[at / T][at % T], ids[at % T]);
	}
	assert_true(memcmp(masked[0], masked[1], sizeof ids) != 0);
	const int64_t count = m.count;
	nr_masker_end(&m);
	for (int64_t k = count; k < K; k++) assert_true(!index[k] && labels[k] == NR_TEXT_IGNORED);
	nr_tokenizer_close(t);
}

static void a_full_list_leaves_the_rest_as_it_is(void **state)
{
	(void)state;
	static int32_t ids[T], masked[T], index[11], labels[11] = { [10] = 77 };
	struct nr_tokenizer *t = words();
	struct nr_masker m = { .tokenizer = t, .share = 1, .index = index, .labels = labels, .room = 10 };
	fill(ids);
	nr_masker_add(&m, nr_rng_make(3, 1, 7), 0, 0, T, ids, masked);
	nr_masker_end(&m);
	assert_int_equal(m.count, 10);
	assert_int_equal(index[9], 10);                     /* all but [CLS] */
	assert_int_equal(labels[10], 77);
	assert_memory_equal(masked + 11, ids + 11, (T - 11) * sizeof *ids);
	nr_tokenizer_close(t);
}

static void what_cannot_be_masked_is_told(void **state)
{
	(void)state;
	struct nr_tokenizer *t = words();
	struct nr_error err = { 0 };
	assert_int_equal(nr_masking_check(t, "words", 0.15, &err), 0);
	assert_int_equal(nr_masking_check(t, "words", 0, &err), NR_EVALUE);
	nr_tokenizer_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_share_of_the_words_is_masked), cmocka_unit_test(a_full_list_leaves_the_rest_as_it_is),
		cmocka_unit_test(what_cannot_be_masked_is_told),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
