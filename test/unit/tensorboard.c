/* record/tensorboard.c: bytes as the tensorboard package writes them; files cut and damaged at every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "record/recorder.h"
#include "record/tensorboard.h"

/* tensorboard.summary.writer.record_writer of Event(wall_time=1.5, file_version="brain.Event:2") and of
 * Event(wall_time=2.25, step=300) with the scalars train_loss 0.25 and lr -3. */
static const unsigned char version[40] = {
	0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xa3, 0x7f, 0x4b, 0x22, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8,
	0x3f, 0x1a, 0x0d, 0x62, 0x72, 0x61, 0x69, 0x6e, 0x2e, 0x45, 0x76, 0x65, 0x6e, 0x74, 0x3a, 0x32, 0x2a, 0x28, 0x64, 0x6c,
};
static const unsigned char scalars[60] = {
	0x2c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf4, 0xae, 0xcc, 0x45, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
	0x40, 0x10, 0xac, 0x02, 0x2a, 0x1e, 0x0a, 0x11, 0x0a, 0x0a, 0x74, 0x72, 0x61, 0x69, 0x6e, 0x5f, 0x6c, 0x6f, 0x73, 0x73,
	0x15, 0x00, 0x00, 0x80, 0x3e, 0x0a, 0x09, 0x0a, 0x02, 0x6c, 0x72, 0x15, 0x00, 0x00, 0x40, 0xc0, 0x43, 0x22, 0xd3, 0x70,
};
static const struct nr_metric two[] = { { "train_loss", 0.25 }, { "lr", -3 } };

static void records_are_those_of_the_tensorboard_package(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	nr_tb_begin(&s, 1.5);
	nr_tb_scalars(&s, 2.25, 300, two, 2);
	assert_int_equal(s.len, sizeof version + sizeof scalars);
	assert_memory_equal(s.text, version, sizeof version);
	assert_memory_equal(s.text + sizeof version, scalars, sizeof scalars);
	nr_str_release(&s);
}

static int64_t scan(const void *data, size_t n, int64_t last, bool *damaged)
{
	char copy[512];
	int64_t size = -1;
	struct nr_error e = { 0 };
	memcpy(copy, data, n);
	FILE *f = n ? fmemopen(copy, n, "rb") : fopen("/dev/null", "rb");
	assert_non_null(f);
	assert_int_equal(nr_tb_scan(f, "x", last, &size, damaged, &e), NR_OK);
	fclose(f);
	return size;
}

static void records_after_the_step_are_not_counted(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	bool damaged = true;
	int64_t end[6];
	nr_tb_begin(&s, 0);
	for (int i = 0; i < 5; i++) {
		end[i] = (int64_t)s.len;
		nr_tb_scalars(&s, i, 100 * i, two, 1);
	}
	end[5] = (int64_t)s.len;
	assert_int_equal(scan(s.text, s.len, 0, &damaged), end[1]);
	assert_int_equal(scan(s.text, s.len, 250, &damaged), end[3]);
	assert_int_equal(scan(s.text, s.len, 400, &damaged), end[5]);
	assert_false(damaged);
	nr_str_release(&s);
}

static void a_file_cut_anywhere_ends_with_its_last_whole_record(void **state)
{
	(void)state;
	unsigned char both[100];
	memcpy(both, version, 40);
	memcpy(both + 40, scalars, 60);
	for (size_t n = 0; n <= 100; n++) {
		bool damaged = true;
		assert_int_equal(scan(both, n, INT64_MAX, &damaged), n < 40 ? 0 : n < 100 ? 40 : 100);
		assert_false(damaged);
	}
}

static void any_changed_byte_is_noticed(void **state)
{
	(void)state;
	unsigned char both[100];
	memcpy(both, version, 40);
	memcpy(both + 40, scalars, 60);
	for (size_t i = 0; i < 100; i++) {
		bool damaged = false;
		both[i] ^= 0x10;
		assert_int_equal(scan(both, 100, INT64_MAX, &damaged), i < 40 ? 0 : 40);
		assert_true(damaged);
		both[i] ^= 0x10;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_those_of_the_tensorboard_package),
		cmocka_unit_test(records_after_the_step_are_not_counted),
		cmocka_unit_test(a_file_cut_anywhere_ends_with_its_last_whole_record),
		cmocka_unit_test(any_changed_byte_is_noticed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
