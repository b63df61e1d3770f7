/* Fuzzer: any bytes as the files that a resumed run reads: metrics.csv and a TensorBoard file. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "record/recorder.h"
#include "record/recorder_csv.h"
#include "record/tensorboard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const columns[] = { "loss", "top1", NULL };

struct seen { int64_t step; struct nr_str text; };

/* Rows come in order and not beyond the last step; each is written again. */
static int each(void *arg, const struct nr_csv_row *row, struct nr_error *err)
{
	(void)err;
	struct seen *s = arg;
	assert(row->step >= s->step && row->step <= 1000);
	s->step = row->step;
	nr_csv_line(&s->text, row, 2);
	return NR_OK;
}

/* What is kept of a file is kept by a second look at that part alone; what was written reads back. */
static void try_csv(char *data, size_t size)
{
	struct seen s = { 0 }, again = { 0 };
	struct nr_error err = { 0 };
	int64_t kept = 0, same = 0, third = 0;
	FILE *f = fmemopen(data, size, "rb");
	const int code = nr_csv_scan(f, "x", columns, 1000, each, &s, &kept, &err);
	fclose(f);
	assert(code == (int)err.code && kept >= 0 && kept <= (int64_t)size);
	if (!code && kept) {
		f = fmemopen(data, (size_t)kept, "rb");
		assert(!nr_csv_scan(f, "x", columns, 1000, each, &again, &same, &err) && same == kept);
		fclose(f);
		struct nr_str whole = { 0 };
		nr_csv_header(&whole, columns);
		nr_str_add(&whole, nr_str_text(&s.text));
		f = fmemopen(whole.text, whole.len, "rb");
		assert(!nr_csv_scan(f, "x", columns, 1000, NULL, NULL, &third, &err) && third == (int64_t)whole.len);
		fclose(f);
		nr_str_release(&whole);
	}
	nr_str_release(&s.text);
	nr_str_release(&again.text);
}

static void try_scalars(char *data, size_t size)
{
	int64_t kept = 0, same = 0;
	bool damaged = false;
	FILE *f = fmemopen(data, size, "rb");
	assert(!nr_tb_scan(f, "x", 1000, &kept, &damaged, NULL) && kept >= 0 && kept <= (int64_t)size);
	fclose(f);
	if (!kept) return;
	f = fmemopen(data, (size_t)kept, "rb");
	assert(!nr_tb_scan(f, "x", 1000, &same, &damaged, NULL) && same == kept && !damaged);
	fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = size ? malloc(size) : NULL;
	if (!copy) return 0;
	memcpy(copy, data, size);
	try_csv(copy, size);
	try_scalars(copy, size);
	free(copy);
	return 0;
}
