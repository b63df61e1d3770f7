/* Fuzzer: any bytes as microscope.csv of a report. What is read can be aligned and told, and the JSON is one. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "report/microscope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nr_microscope_arm arm = { 0 };
	struct nr_microscope_view v = { .arm = &arm, .arms = 1 };
	struct nr_error err = { 0 };
	struct nr_arena *arena = nr_arena_make();
	FILE *f = size ? fmemopen((void *)(uintptr_t)data, size, "rb") : NULL;
	if (!f || !arena) {
		nr_arena_free(arena);
		return 0;
	}
	const int code = nr_microscope_read(&arm.file, f, "x", arena, &err);
	fclose(f);
	assert(code == (int)err.code);
	if (!code && arm.file.steps) {
		struct nr_str s = { 0 };
		assert(!nr_microscope_align(&v, arena) && v.sites == arm.file.sites);
		nr_microscope_json(&s, &v);
		json_t *o = nr_json_parse(s.text, s.len, "x", &err);
		assert(o);
		json_decref(o);
		nr_str_release(&s);
	}
	nr_microscope_release(&arm.file);
	nr_arena_free(arena);
	return 0;
}
