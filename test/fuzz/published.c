/* Fuzzer: any bytes as a file of published numbers that a study compares itself with. */
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "files.h"
#include "studies.h"
#include "study/published.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char text[] = FUZZ_STUDY
		"published: {file: published.yaml, table: t/1, match: {a: {norm: LN}, b: {norm: BN}}, "
		"metrics: {knn.top1: {metric: acc}}}\n";
	struct nr_arena *arena = nr_arena_make();
	struct nr_study *s = calloc(1, sizeof *s);
	struct nr_yaml_errors errors = { 0 };
	struct nr_error err = { 0 };
	fuzz_write("published.yaml", data, size);
	if (!nr_study_parse(s, text, sizeof text - 1, fuzz_path("study.yaml"), fuzz_commands, arena, &errors, &err) &&
		!nr_study_check(s, &err) && !nr_published_read(s, fuzz_path("study.yaml"), &err)) {
		struct nr_str out = { 0 };
		char cell[128];
		for (int64_t arm = 0; arm < s->arms; arm++) {
			const struct nr_published_cell *c = nr_published_cell(s, 0, arm);
			if (c) nr_published_text(c, cell, sizeof cell);
		}
		if (s->published) nr_published_write(s, &out);
		nr_str_release(&out);
	}
	free(s);
	nr_arena_free(arena);
	return 0;
}
