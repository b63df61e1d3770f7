/* Fuzzer: any bytes as the files of a run, read as `norma report` does. */
#include "base/mem.h"
#include "files.h"
#include "report/runfolder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "config.yaml", "env.json", "metrics.csv", "events.jsonl", "probe.json", "analysis.json",
		"predictions.csv", NULL };
	struct nr_arena *arena = nr_arena_make();
	struct nr_runfolder r = { 0 };
	struct nr_error err = { 0 };
	for (int i = 0; names[i]; i++) unlink(fuzz_path(names[i]));
	fuzz_split(data, size, names);
	if (!nr_runfolder_read(&r, fuzz_folder(), arena, &err)) {
		volatile double last = nr_runfolder_last(&r, "loss");
		(void)last;
		nr_runfolder_env(&r, "command");
		nr_runfolder_header(&r, "batch statistics", arena);
		nr_runfolder_probe(&r, "cls", "top1");
		nr_runfolder_release(&r);
	} else assert(err.detail[0]);
	nr_arena_free(arena);
	return 0;
}
