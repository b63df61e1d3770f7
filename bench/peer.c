/* Us against PyTorch in one run: rounds of ours, then each peer, each in a process of its own, so that peak memory is
 * honest and no thread team of one disturbs the other. A ratio is taken within a round; the median of rounds counts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "bench.h"
#include "math/isa.h"

enum { EAGER, COMPILE, STRONG, ONNX, MODES, MAX_ROUNDS = BENCH_MAX_ROUNDS, MAX_ARGS = 32 };
static const struct { const char *name, *title; } modes[MODES] = {
	[EAGER] = { "eager", "torch eager" }, [COMPILE] = { "compile", "torch compile" }, [STRONG] = { "strong", "torch strong" },
	[ONNX] = { "onnx", "onnxruntime" },
};
static const unsigned asked[] = { [BENCH_NONE] = 0, [BENCH_EAGER] = 1 << EAGER, [BENCH_COMPILE] = 1 << COMPILE,
	[BENCH_BOTH] = 1 << EAGER | 1 << COMPILE, [BENCH_STRONG] = 1 << STRONG,
	[BENCH_ALL] = 1 << EAGER | 1 << COMPILE | 1 << STRONG, [BENCH_ONNX] = 1 << EAGER | 1 << ONNX };

const char *bench_peer_title(const char *mode)
{
	int m = 0;
	while (m < MODES && strcmp(modes[m].name, mode)) m++;
	return m < MODES ? modes[m].title : mode;
}

struct work {
	const struct bench_target *target;
	const struct bench_options *opt;
	int threads;
	char name[128], threads_text[16], seconds[32], python[1024], script[1024];
};

/* Programs may write more than one record; the last one is asked for. */
static json_t *last_record(char *const argv[], struct nr_error *err)
{
	json_t *all = bench_records(argv, err), *r = NULL;
	if (all && !(r = json_incref(json_array_get(all, json_array_size(all) - 1))))
		nr_fail(err, NR_EFORMAT, "no record from", argv[1], "it printed nothing");
	json_decref(all);
	return r;
}

static json_t *run_own(struct work *w, struct nr_error *err)
{
	static char exe[] = "/proc/self/exe", bench[] = "bench", step[] = "step", json[] = "--json",
		    threads[] = "--threads", seconds[] = "--seconds", isa[] = "--isa", tiny[] = "--tiny", rebuild[] = "--rebuild";
	char set[16];
	snprintf(set, sizeof set, "%s", nr_isa_name(nr_isa_active()));
	char *argv[MAX_ARGS] = { exe, bench, step, w->name, json, threads, w->threads_text, seconds, w->seconds, isa, set };
	int n = 11;
	if (w->target->tiny) argv[n++] = tiny;
	if (w->target->rebuild) argv[n++] = rebuild;
	return last_record(argv, err);
}

/* `before`: a record of an earlier round. The settings that won then are run again, and no others. */
static json_t *run_peer(struct work *w, int mode, const json_t *before, struct nr_error *err)
{
	char words[512];
	const char *won = json_string_value(json_object_get(before, "candidate"));
	snprintf(words, sizeof words, "%s --task %s --mode %s --threads %s --seconds %s%s%s", w->target->of->peer,
		w->target->train ? "train" : "infer", modes[mode].name, w->threads_text, w->seconds,
		won ? " --candidate " : "", won ? won : "");
	char *argv[MAX_ARGS + 2] = { w->python, w->script }, *save = NULL;
	int n = 2;
	char *word = strtok_r(words, " ", &save);   /* the script's own name */
	while (word && n < MAX_ARGS && (word = strtok_r(NULL, " ", &save))) argv[n++] = word;
	argv[n] = NULL;
	return last_record(argv, err);
}

static double num(const json_t *r, const char *key) { return json_number_value(json_object_get(r, key)); }

static double median_of(json_t **r, int64_t n, const char *key)
{
	double v[MAX_ROUNDS];
	for (int64_t i = 0; i < n; i++) v[i] = num(r[i], key);
	return bench_median(v, n);
}
static double least_of(json_t **r, int64_t n, const char *key)
{
	double best = num(r[0], key);
	for (int64_t i = 1; i < n; i++) best = fmin(best, num(r[i], key));
	return best;
}
static double most_of(json_t **r, int64_t n, const char *key)
{
	double most = num(r[0], key);
	for (int64_t i = 1; i < n; i++) most = fmax(most, num(r[i], key));
	return most;
}

/* Our own record over the rounds: median of medians, best of bests, largest memory. */
static json_t *merge_own(json_t **own, int64_t n)
{
	json_t *r = json_copy(own[0]);
	const double ms = median_of(own, n, "ms"), gflops = num(r, "gflop") / ms * 1e3,
		     ref = median_of(own, n, "ref_gflops");
	json_object_set_new(r, "ms", bench_rounded(ms));
	json_object_set_new(r, "ms_best", bench_rounded(least_of(own, n, "ms_best")));
	json_object_set_new(r, "ms_p95", bench_rounded(median_of(own, n, "ms_p95")));
	json_object_set_new(r, "steps_per_s", bench_rounded(1e3 / ms));
	json_object_set_new(r, "samples_per_s", bench_rounded(1e3 / ms * num(r, "samples")));
	json_object_set_new(r, "gflops", bench_rounded(gflops));
	json_object_set_new(r, "ref_gflops", bench_rounded(ref));
	json_object_set_new(r, "share_of_ref", bench_rounded(median_of(own, n, "share_of_ref")));
	json_object_set_new(r, "peak_gflops", bench_rounded(most_of(own, n, "peak_gflops")));
	json_object_set_new(r, "share_of_peak", bench_rounded(median_of(own, n, "share_of_peak")));
	json_object_set_new(r, "copy_gbs", bench_rounded(most_of(own, n, "copy_gbs")));
	json_object_set_new(r, "foreign_cpu", bench_rounded(median_of(own, n, "foreign_cpu")));
	json_object_set_new(r, "peak_rss_mib", json_integer((json_int_t)most_of(own, n, "peak_rss_mib")));
	json_object_set_new(r, "rounds", json_integer(n));
	return r;
}

static json_t *merge_peer(json_t **own, json_t **peer, int64_t n)
{
	double ratio[MAX_ROUNDS];
	json_t *all = json_array();
	for (int64_t i = 0; i < n; i++) {
		ratio[i] = num(peer[i], "ms") / num(own[i], "ms");
		json_array_append_new(all, bench_rounded(ratio[i]));
	}
	const double best = least_of(peer, n, "ms_best") / least_of(own, n, "ms_best");
	json_t *r = json_object();
	json_object_set_new(r, "ms", bench_rounded(median_of(peer, n, "ms")));
	json_object_set_new(r, "ms_best", bench_rounded(least_of(peer, n, "ms_best")));
	json_object_set_new(r, "ratio", bench_rounded(bench_median(ratio, n)));
	json_object_set_new(r, "ratio_best", bench_rounded(best));
	json_object_set_new(r, "ratio_rounds", all);
	json_object_set_new(r, "rss_mib", json_integer((json_int_t)most_of(peer, n, "peak_rss_mib")));
	json_object_set_new(
		r, "rss_share", bench_rounded(most_of(own, n, "peak_rss_mib") / most_of(peer, n, "peak_rss_mib")));
	json_object_set_new(r, "ms_p95", bench_rounded(median_of(peer, n, "ms_p95")));
	json_object_set_new(r, "gflop", bench_rounded(num(peer[0], "gflop")));
	json_object_set_new(r, "params", json_integer((json_int_t)num(peer[0], "params")));
	json_object_set_new(r, "foreign_cpu", bench_rounded(median_of(peer, n, "foreign_cpu")));
	static const char *const copied[] = { "candidate", "candidates", "version" };
	for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
		if (json_object_get(peer[0], copied[i])) json_object_set(r, copied[i], json_object_get(peer[0], copied[i]));
	return r;
}

/* The fastest peer's figures at the top of the record: the ratio that has to hold. */
static void promote(json_t *r, const char *mode, const json_t *peer)
{
	char key[64];
	snprintf(key, sizeof key, "ratio_%s", mode);
	json_object_set_new(r, key, bench_rounded(num(peer, "ratio")));
	const json_t *old = json_object_get(r, "ratio");
	if (old && json_number_value(old) <= num(peer, "ratio")) return;
	json_object_set_new(r, "peer", json_string(mode));
	json_object_set(r, "peer_ms", json_object_get(peer, "ms"));
	json_object_set(r, "peer_ms_best", json_object_get(peer, "ms_best"));
	json_object_set(r, "ratio", json_object_get(peer, "ratio"));
	json_object_set(r, "peer_rss_mib", json_object_get(peer, "rss_mib"));
	json_object_set(r, "rss_share", json_object_get(peer, "rss_share"));
}

static int prepare(struct work *w, struct nr_error *err)
{
	char relative[512];
	bench_target_text(w->target, w->name, sizeof w->name);
	snprintf(w->threads_text, sizeof w->threads_text, "%d", w->threads);
	snprintf(w->seconds, sizeof w->seconds, "%g", w->opt->seconds);
	if (w->opt->peer == BENCH_NONE) return NR_OK;
	snprintf(relative, sizeof relative, "bench/peers/%.*s", (int)strcspn(w->target->of->peer, " "),
		w->target->of->peer);
	return bench_find_peer(relative, w->script, w->python, sizeof w->python, err);
}

/* "peers" of the record, and their ratios. */
static void add_peers(json_t *r, unsigned which, json_t **own, json_t *peer[MODES][MAX_ROUNDS], int64_t rounds)
{
	json_t *peers = json_object();
	for (int m = 0; m < MODES; m++) {
		if (!(which >> m & 1)) continue;
		json_t *p = merge_peer(own, peer[m], rounds);
		promote(r, modes[m].name, p);
		json_object_set_new(peers, modes[m].name, p);
	}
	json_object_set_new(r, "peers", peers);
}

json_t *bench_compare(const struct bench_target *t, const struct bench_options *o, int threads, struct nr_error *err)
{
	struct work w = { .target = t, .opt = o, .threads = threads };
	if (prepare(&w, err)) return NULL;
	const unsigned which = asked[o->peer];
	const int64_t rounds = !which ? 1 : o->rounds < MAX_ROUNDS ? o->rounds : MAX_ROUNDS;
	json_t *own[MAX_ROUNDS] = { NULL }, *peer[MODES][MAX_ROUNDS] = { { NULL } }, *r = NULL;
	struct nr_progress bar;
	nr_progress_init(&bar, stderr, w.name, (MODES + 1) * rounds, 0);
	bool ok = true;
	for (int64_t i = 0; i < rounds && ok; i++) {
		nr_progress_update(&bar, (MODES + 1) * i, "round %d: norma", (int)i + 1);
		ok = (own[i] = run_own(&w, err)) != NULL;
		for (int m = 0; m < MODES && ok; m++) {
			if (!(which >> m & 1)) continue;
			nr_progress_update(&bar, (MODES + 1) * i + m + 1, "round %d: %s", (int)i + 1, modes[m].title);
			ok = (peer[m][i] = run_peer(&w, m, peer[m][0], err)) != NULL;
		}
	}
	nr_progress_release(&bar);
	if (ok && (r = merge_own(own, rounds)) && which) add_peers(r, which, own, peer, rounds);
	for (int64_t i = 0; i < rounds; i++) {
		json_decref(own[i]);
		for (int m = 0; m < MODES; m++) json_decref(peer[m][i]);
	}
	return r;
}
