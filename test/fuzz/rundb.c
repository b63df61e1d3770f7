/* Fuzzer: any bytes as the run database, read as `norma runs` does. */
#include "base/mem.h"
#include "files.h"
#include "record/rundb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nr_rundb *db;
	struct nr_error err = { 0 };
	struct nr_arena *arena = nr_arena_make();
	fuzz_write("runs.db", data, size);
	if (!nr_rundb_open(&db, fuzz_path("runs.db"), 0, false, &err)) {
		struct nr_run *run;
		int64_t runs = 0, results = 0;
		if (!nr_rundb_runs(db, arena, &run, &runs, NULL)) {
			for (int64_t i = 0; i < runs && i < 4; i++) {
				struct nr_curve curve;
				struct nr_metric *result;
				nr_rundb_curve(db, run[i].id, "loss", arena, &curve, NULL);
				nr_rundb_results(db, run[i].id, arena, &result, &results, NULL);
			}
		}
		nr_rundb_close(db);
	} else assert(err.code && err.detail[0]);
	unlink(fuzz_path("runs.db-wal"));
	unlink(fuzz_path("runs.db-shm"));
	unlink(fuzz_path("runs.db-journal"));
	nr_arena_free(arena);
	return 0;
}
