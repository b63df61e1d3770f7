/* base/crc32c.c: known answers, pieces, and the instruction against the table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/rng.h"

/* RFC 3720, B.4, and the check value of the Castagnoli polynomial. */
static void known_answers(void **state)
{
	(void)state;
	unsigned char data[32];
	assert_int_equal(nr_crc32c(0, "123456789", 9), 0xE3069283u);
	assert_int_equal(nr_crc32c(0, "", 0), 0);
	memset(data, 0, 32);
	assert_int_equal(nr_crc32c(0, data, 32), 0x8A9136AAu);
	memset(data, 0xFF, 32);
	assert_int_equal(nr_crc32c(0, data, 32), 0x62A8AB43u);
	for (int i = 0; i < 32; i++) data[i] = (unsigned char)i;
	assert_int_equal(nr_crc32c(0, data, 32), 0x46DD794Eu);
	assert_int_equal(nr_crc32c_plain(0, data, 32), 0x46DD794Eu);
}

static void table_and_instruction_agree_at_every_length_and_place(void **state)
{
	(void)state;
	unsigned char data[300];
	const struct nr_rng r = nr_rng_make(1, 2, 3);
	for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)nr_rng_below(r, i, 256);
	for (size_t from = 0; from < 9; from++)
		for (size_t n = 0; n < 280; n++)
			assert_int_equal(nr_crc32c((uint32_t)n, data + from, n), nr_crc32c_plain((uint32_t)n, data + from, n));
}

static void pieces_give_the_whole(void **state)
{
	(void)state;
	const char *text = "the quick brown fox jumps over the lazy dog";
	const uint32_t whole = nr_crc32c(0, text, strlen(text));
	for (size_t n = 0; n <= strlen(text); n++)
		assert_int_equal(nr_crc32c(nr_crc32c(0, text, n), text + n, strlen(text) - n), whole);
}

/* The length field of a record of 24 bytes, as the tensorboard package masks it. */
static void mask_is_that_of_tfrecord(void **state)
{
	(void)state;
	const unsigned char length[8] = { 24 };
	assert_int_equal(nr_crc32c_mask(nr_crc32c(0, length, 8)), 0x224b7fa3u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers),
		cmocka_unit_test(table_and_instruction_agree_at_every_length_and_place),
		cmocka_unit_test(pieces_give_the_whole),
		cmocka_unit_test(mask_is_that_of_tfrecord),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
