/* Fuzzer: any bytes as the files of a study's folder, read as `norma report` does. */
#include "base/mem.h"
#include "files.h"
#include "report/study_read.h"
#include "studies.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "table.json", "a/seed-0/train.mark", "a/seed-0/knn.json", "a/seed-0/train/config.yaml",
		"a/seed-0/train/metrics.csv", "tune/sensitivity.csv", NULL };
	struct nr_arena *arena = nr_arena_make();
	struct nr_study_read s = { 0 };
	struct nr_error err = { 0 };
	fuzz_write("study.yaml", FUZZ_STUDY, sizeof FUZZ_STUDY - 1);
	fuzz_split(data, size, names);
	if (!nr_study_read(&s, fuzz_folder(), fuzz_commands, arena, &err)) {
		for (int metric = 0; nr_study_metric(&s, metric) && metric < 8; metric++)
			for (int arm = 0; arm < 2; arm++) nr_json_at(nr_study_cell(&s, metric, arm), "mean");
	} else assert(err.detail[0]);
	nr_study_read_release(&s);
	nr_arena_free(arena);
	fuzz_clear();
	return 0;
}
