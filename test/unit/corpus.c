/* src/data/corpus.c: ids and where they are cut; the order of batches as a pure function of seed and epoch. */
#include <malloc.h>
#include <stdio.h>

#include "unit/values.h"
#include "unit/folder.h"

#include "data/corpus.h"
#include "data/order.h"
#include "norma/tokenizer.h"

static void ids_have_special_tokens_and_are_cut(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	struct nr_tokenizer *t;
	struct nr_source *s;
	struct nr_corpus c;
	char text[300];
	assert_int_equal(nr_tokenizer_open(&t, made_with("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n"), &err), 0);
	snprintf(text, sizeof text, "text:path=%s", made_with("pairs.csv", "x,y\na b,c\n\"a, b\",a b c a b c\n\"\",z\n"));
	assert_int_equal(nr_source_open(&s, text, NULL, &err), 0);
	assert_int_equal(nr_corpus_make(&c, s, NR_TRAIN, NULL, 3, t, 5, &err), 0);
	static const int32_t want[][5] = { { 2, 5, 6, 3 }, { 2, 7, 3 }, { 2, 5, 1, 6, 3 }, { 2, 5, 6, 7, 3 }, { 2, 3 }, { 2, 1, 3 } };
	static const int64_t counts[] = { 4, 3, 5, 5, 2, 3 };
	for (int i = 0; i < 6; i++) {
		int64_t n;
		const int32_t *ids = nr_corpus_text(&c, i / 2, i % 2, &n);
		assert_int_equal(n, counts[i]);
		assert_memory_equal(ids, want[i], (size_t)n * sizeof *ids);
	}
	assert_int_equal(c.longest, 5);
	assert_int_equal(c.cut, 2);
	assert_true(c.length[0] == 4 && c.length[1] == 5 && c.length[2] == 3);
	nr_corpus_release(&c);
	static const int32_t index[] = { 2, 0 };
	assert_int_equal(nr_corpus_make(&c, s, NR_TRAIN, index, 2, t, 100, &err), 0);
	assert_true(c.length[0] == 3 && c.length[1] == 4 && c.cut == 0);
	nr_corpus_release(&c);
	nr_source_close(s);
	nr_tokenizer_close(t);
}

enum { SAMPLES = 103, BATCH = 4, WINDOW = 5, BATCHES = SAMPLES / BATCH };
static int32_t lengths[SAMPLES];

static void fill_lengths(void)
{
	for (int i = 0; i < SAMPLES; i++) lengths[i] = 3 + (i * 37 + i * i) % 29;
}

/* All batches of an epoch, one after the other. */
static void epoch_of(struct nr_order *o, int64_t epoch, int32_t *out)
{
	for (int64_t b = 0; b < BATCHES; b++) {
		int32_t longest, most = 0;
		const int32_t *sample = nr_order_batch(o, epoch * BATCHES + b, &longest);
		for (int i = 0; i < BATCH; i++) most = lengths[sample[i]] > most ? lengths[sample[i]] : most;
		assert_int_equal(most, longest);
		memcpy(out + b * BATCH, sample, BATCH * sizeof *out);
	}
}

static void an_epoch_has_every_sample_once(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	fill_lengths();
	for (int64_t window = 0; window <= 100; window += WINDOW) {
		struct nr_order o;
		int32_t all[BATCHES * BATCH];
		int seen[SAMPLES] = { 0 };
		assert_int_equal(nr_order_make(&o, lengths, SAMPLES, BATCH, window, 7, &err), 0);
		epoch_of(&o, 3, all);
		for (int i = 0; i < BATCHES * BATCH; i++) assert_int_equal(seen[all[i]]++, 0);
		nr_order_release(&o);
	}
}

static void the_order_is_a_function_of_seed_and_epoch(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	struct nr_order a, b;
	int32_t first[BATCHES * BATCH], again[BATCHES * BATCH], other[BATCHES * BATCH];
	fill_lengths();
	assert_int_equal(nr_order_make(&a, lengths, SAMPLES, BATCH, WINDOW, 7, &err), 0);
	assert_int_equal(nr_order_make(&b, lengths, SAMPLES, BATCH, WINDOW, 7, &err), 0);
	epoch_of(&a, 2, first);
	epoch_of(&b, 0, other);
	assert_memory_not_equal(first, other, sizeof first);
	epoch_of(&b, 2, again);                                 /* whatever was asked before */
	assert_memory_equal(first, again, sizeof first);
	nr_order_release(&b);
	assert_int_equal(nr_order_make(&b, lengths, SAMPLES, BATCH, WINDOW, 8, &err), 0);
	epoch_of(&b, 2, other);
	assert_memory_not_equal(first, other, sizeof first);
	nr_order_release(&a);
	nr_order_release(&b);
}

static int64_t padding(const int32_t *all)
{
	int64_t sum = 0;
	for (int b = 0; b < BATCHES; b++) {
		int32_t most = 0;
		for (int i = 0; i < BATCH; i++) most = lengths[all[b * BATCH + i]] > most ? lengths[all[b * BATCH + i]] : most;
		for (int i = 0; i < BATCH; i++) sum += most - lengths[all[b * BATCH + i]];
	}
	return sum;
}

static void windows_save_padding_and_batches_allocate_nothing(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	struct nr_order plain, sorted;
	int32_t all[2][BATCHES * BATCH];
	fill_lengths();
	assert_int_equal(nr_order_make(&plain, lengths, SAMPLES, BATCH, 0, 7, &err), 0);
	assert_int_equal(nr_order_make(&sorted, lengths, SAMPLES, BATCH, WINDOW, 7, &err), 0);
	const size_t before = mallinfo2().uordblks;
	epoch_of(&plain, 0, all[0]);
	epoch_of(&sorted, 0, all[1]);
	assert_int_equal(mallinfo2().uordblks, before);
	assert_true(3 * padding(all[1]) < padding(all[0]));
	nr_order_release(&plain);
	nr_order_release(&sorted);
	assert_int_equal(nr_order_make(&plain, lengths, BATCH - 1, BATCH, 0, 7, &err), NR_EVALUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_have_special_tokens_and_are_cut),
		cmocka_unit_test(an_epoch_has_every_sample_once),
		cmocka_unit_test(the_order_is_a_function_of_seed_and_epoch),
		cmocka_unit_test(windows_save_padding_and_batches_allocate_nothing),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
