/* How long the command takes to start: `norma --version` as a process of its own, many times; with --peer Python imports PyTorch in
 * turn. */
#include <string.h>

#include "base/clock.h"
#include "bench.h"

enum { RUNS = 20, TINY = 3 };

/* Milliseconds from the start of a program to its end; negative: it failed. */
static double time_of(char *const argv[], struct nr_error *err)
{
	const double start = nr_clock();
	json_t *records = bench_records(argv, err);
	if (!records) return -1;
	json_decref(records);
	return 1e3 * (nr_clock() - start);
}

int bench_startup(const struct bench_options *o, struct nr_error *err)
{
	const bool with = o->peer != BENCH_NONE;
	const int runs = o->tiny ? TINY : RUNS;
	const int64_t rounds = with ? o->rounds : 1;
	char self[] = "/proc/self/exe", version[] = "--version", script[512], python[512], flag[] = "-c", import[] = "import torch";
	char *ours[] = { self, version, NULL }, *theirs[] = { python, flag, import, NULL };
	double ms[BENCH_MAX_ROUNDS], peer[BENCH_MAX_ROUNDS], ratio[BENCH_MAX_ROUNDS], best = 1e9;
	if (with && bench_find_peer("bench/peers/startup.sh", script, python, sizeof python, err)) return err->code;
	for (int64_t r = 0; r < rounds; r++) {
		double each[RUNS];
		for (int i = 0; i < runs; i++) {
			if ((each[i] = time_of(ours, err)) < 0) return err->code;
			if (each[i] < best) best = each[i];
		}
		ms[r] = bench_median(each, runs);
		if (with && (peer[r] = time_of(theirs, err)) < 0) return err->code;
		ratio[r] = with ? peer[r] / ms[r] : 0;
	}
	const double median = bench_median(ms, rounds);
	if (o->json) {
		json_t *j = json_pack("{s:s,s:f,s:f,s:i}", "case", "startup", "ms", median, "ms_best", best, "runs", runs * (int)rounds);
		if (j) bench_limits_add(j, o->tiny);
		if (j && with) {
			json_object_set_new(j, "peer_ms", json_real(bench_median(peer, rounds)));
			json_object_set_new(j, "ratio", json_real(bench_median(ratio, rounds)));
		}
		return bench_json_line(stdout, j, err);
	}
	printf("norma --version  %.1f ms, at best %.1f ms\n", median, best);
	if (with) printf("import torch     %.0f ms, %.0fx\n", bench_median(peer, rounds), bench_median(ratio, rounds));
	return NR_OK;
}
