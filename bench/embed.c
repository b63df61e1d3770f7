/* Sentence embeddings of a real model, texts in and vectors out, beside PyTorch with batches sorted by length: each in a process of its
 * own, in turn, so that peak memory is honest. Texts are every fourth sentence of the STS test sets, or the lines of --text. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/real.h"
#include "base/str.h"
#include "bench.h"
#include "base/bytes.h"
#include "data/dataset.h"
#include "data/sts.h"
#include "norma/infer.h"
#include "norma/tokenizer.h"

enum { EVERY = 4, TINY = 64 };
/* size: mean absolute value of all embeddings, by which two programs agree. */
struct result { double rate, rss, size, gflops; struct bench_limits limits; int64_t texts, different; };

/* ---- the texts -------------------------------------------------------------------------------------------------------------------- */

static int add_set(struct nr_str *s, const char *root, const struct nr_sts_task *task, const char *subset, int64_t *number,
	struct nr_error *err)
{
	struct nr_tsv t;
	if (nr_sts_open(&t, root, false, task, subset, err)) return err->code;
	for (int64_t i = 0; i < t.count; i++)
		for (int k = 0; k < 2; k++)
			if ((*number)++ % EVERY == 0 && *t.text[k][i]) nr_str_printf(s, "%s\n", t.text[k][i]);
	nr_tsv_release(&t);
	return NR_OK;
}

static int read_sts(struct nr_str *s, struct nr_error *err)
{
	struct nr_arena *arena = nr_arena_make();
	const char *root = arena ? nr_data_root(NULL, arena, err) : NULL;
	int64_t number = 0;
	int code = root ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot read the texts", NULL, "out of memory");
	for (int i = 0; i < NR_STS_TASKS && !code; i++) {
		const struct nr_sts_task *task = &nr_sts_tasks[i];
		for (int k = 0; task->subset[k] && !code; k++)
			if (!task->splits || !strcmp(task->subset[k], "test")) code = add_set(s, root, task, task->subset[k], &number, err);
	}
	nr_arena_free(arena);
	return code;
}

/* A file with one text a line, for both; made in /tmp unless --text names it. */
static int text_file(const struct bench_options *o, char *path, size_t size, struct nr_error *err)
{
	struct nr_str s = { 0 };
	snprintf(path, size, "%s", o->text);
	if (*o->text) return NR_OK;
	int code = read_sts(&s, err);
	if (!code && s.failed) code = nr_fail(err, NR_EMEMORY, "cannot read the texts", NULL, "out of memory");
	snprintf(path, size, "/tmp/norma-bench-XXXXXX");
	const int fd = code ? -1 : mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!code && (!f || fwrite(s.text, 1, s.len, f) != s.len)) code = nr_fail(err, NR_EIO, "cannot write", path, "%s", strerror(errno));
	if (f) fclose(f);
	nr_str_release(&s);
	return code;
}

/* ---- ours ------------------------------------------------------------------------------------------------------------------------ */

struct work {
	struct nr_weights *w;
	struct nr_tokenizer *tokenizer;
	struct nr_text_runner *runner;
	char *memory;
	const char **text;
	real *out;
	int64_t count;
};

static int cut_lines(struct work *k, const char *path, bool tiny, struct nr_error *err)
{
	struct nr_bytes file;
	if (nr_bytes_open(&file, path, (size_t)1 << 32, err)) return err->code;
	const size_t size = file.size;
	if ((k->memory = malloc(size + 1))) memcpy(k->memory, file.data, size);
	nr_bytes_release(&file);
	size_t lines = 1;
	for (size_t i = 0; k->memory && i < size; i++) lines += k->memory[i] == '\n';
	if (!k->memory || !(k->text = malloc(lines * sizeof *k->text)))
		return nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	k->memory[size] = 0;
	char *rest = k->memory;
	for (char *line; (line = strsep(&rest, "\n")) && !(tiny && k->count == TINY);)
		if (*line) k->text[k->count++] = line;
	return k->count ? NR_OK : nr_fail(err, NR_EFORMAT, "cannot read", path, "it has no lines");
}

static int open_work(struct work *k, const char *model, const char *path, bool tiny, struct nr_error *err)
{
	char file[1024];
	snprintf(file, sizeof file, "%s/model.safetensors", model);
	const struct nr_text_runner_how how = { .pooling = NR_TEXT_AVG };
	if (cut_lines(k, path, tiny, err) || nr_weights_open(&k->w, file, NULL, err)) return err->code;
	if (nr_model_expect(&k->w->model, NR_TEXTS, err) || nr_tokenizer_open(&k->tokenizer, model, err)) return err->code;
	if (nr_text_runner_open(&k->runner, k->w, k->tokenizer, &how, err)) return err->code;
	k->out = malloc((size_t)(k->count * nr_text_runner_width(k->runner)) * sizeof *k->out);
	return k->out ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot embed", model, "out of memory");
}

static int measure(const struct bench_options *o, const char *model, const char *path, struct result *r, struct nr_error *err)
{
	struct work k = { 0 };
	struct bench_limits limits = bench_limits_before(o->tiny);
	int code = open_work(&k, model, path, o->tiny, err);
	double spent = 0;
	int64_t passes = 0;
	while (!code && (passes < 2 || (spent < o->seconds && !o->tiny))) {     /* the first makes the plans */
		const double start = nr_clock();
		code = nr_text_runner_run(k.runner, k.text, k.count, k.out, err);
		if (passes++) spent += nr_clock() - start;
	}
	if (!code) {
		const int64_t values = k.count * nr_text_runner_width(k.runner);
		double sum = 0;
		for (int64_t i = 0; i < values; i++) sum += fabs((double)k.out[i]);
		*r = (struct result){ .rate = (double)(k.count * (passes - 1)) / spent, .rss = (double)bench_peak_rss_mib(),
			.size = sum / (double)values, .gflops = 1e-9 * nr_text_runner_flops(k.runner) * (double)(passes - 1) / spent,
			.texts = k.count, .different = nr_text_runner_different(k.runner) };
		bench_limits_measure(&limits, o->tiny);
		r->limits = limits;
	}
	nr_text_runner_close(k.runner);
	nr_tokenizer_close(k.tokenizer);
	nr_weights_close(k.w);
	free(k.memory);
	free(k.text);
	free(k.out);
	return code;
}

/* ---- in processes ------------------------------------------------------------------------------------------------------------------ */

static int ask(char *const argv[], struct result *r, struct nr_error *err)
{
	json_t *records = bench_records(argv, err);
	if (!records) return err->code;
	const json_t *one = json_array_get(records, 0);
	*r = (struct result){ .rate = json_number_value(json_object_get(one, "texts_per_s")),
		.rss = json_number_value(json_object_get(one, "peak_rss_mib")), .size = json_number_value(json_object_get(one, "size")),
		.texts = json_integer_value(json_object_get(one, "texts")),
		.different = json_integer_value(json_object_get(one, "different")),
		.gflops = json_number_value(json_object_get(one, "gflops")),
		.limits = { json_number_value(json_object_get(one, "peak_gflops")), json_number_value(json_object_get(one, "copy_gbs")) } };
	json_decref(records);
	return r->rate > 0 ? NR_OK : nr_fail(err, NR_EFORMAT, "no result from", argv[1], "texts_per_s is missing");
}

static int compare(const struct bench_options *o, const char *model, const char *path, int threads, struct result *ours,
	struct result *peer, double *ratio, struct nr_error *err)
{
	static char exe[] = "/proc/self/exe", bench[] = "bench", embed[] = "embed", json[] = "--json", with_model[] = "--model",
		    with_text[] = "--text", with_seconds[] = "--seconds", with_threads[] = "--threads";
	char script[512], python[512], seconds[32], count[16], folder[1024], file[1024];
	double rate[3][BENCH_MAX_ROUNDS];
	if (bench_find_peer("bench/peers/embed.py", script, python, sizeof python, err)) return err->code;
	snprintf(seconds, sizeof seconds, "%g", o->seconds);
	snprintf(count, sizeof count, "%d", threads);
	snprintf(folder, sizeof folder, "%s", model);
	snprintf(file, sizeof file, "%s", path);
	char *own[] = { exe, bench, embed, json, with_model, folder, with_text, file, with_seconds, seconds, with_threads, count, NULL };
	char *other[] = { python, script, with_model, folder, with_text, file, with_seconds, seconds, with_threads, count, NULL };
	for (int64_t i = 0; i < o->rounds; i++) {
		if (ask(own, ours, err) || ask(other, peer, err)) return err->code;
		rate[0][i] = ours->rate, rate[1][i] = peer->rate, rate[2][i] = ours->rate / peer->rate;
	}
	ours->rate = bench_median(rate[0], o->rounds);
	peer->rate = bench_median(rate[1], o->rounds);
	*ratio = bench_median(rate[2], o->rounds);
	return NR_OK;
}

static int report(const struct bench_options *o, int threads, const struct result *ours, const struct result *peer, double ratio,
	struct nr_error *err)
{
	const bool agrees = peer && ours->texts == peer->texts && fabs(ours->size - peer->size) < 1e-4 * peer->size;
	if (o->json) {
		json_t *r = json_pack("{s:s,s:i,s:I,s:I,s:f,s:f,s:f,s:o}", "case", "embed", "threads", threads, "texts",
			(json_int_t)ours->texts, "different", (json_int_t)ours->different, "texts_per_s", ours->rate, "peak_rss_mib",
			ours->rss, "size", ours->size, "gflops", bench_rounded(ours->gflops));
		if (r) bench_limits_put(r, &ours->limits, ours->gflops);
		if (r && peer)
			json_object_update_new(r, json_pack("{s:f,s:f,s:f,s:f,s:b}", "peer_texts_per_s", peer->rate, "ratio", ratio,
				"peer_rss_mib", peer->rss, "rss_share", ours->rss / peer->rss, "agrees", agrees));
		return bench_json_line(stdout, r, err);
	}
	printf("%lld texts, %lld of them distinct, %d threads\n", (long long)ours->texts, (long long)ours->different, threads);
	printf("norma    %8.0f texts/s %6.0f MiB, %.0f %% of the peak\n", ours->rate, ours->rss, 100 * ours->gflops / ours->limits.gflops);
	if (peer)
		printf("PyTorch  %8.0f texts/s %6.0f MiB\n%.2fx the speed, %.2f of the memory; embeddings %s\n", peer->rate, peer->rss,
			ratio, ours->rss / peer->rss, agrees ? "agree" : "DIFFER");
	return NR_OK;
}

int bench_embed(const struct bench_options *o, int threads, struct nr_error *err)
{
	const char *named = getenv("NORMA_MINILM"), *model = *o->model ? o->model : named;
	const bool with = o->peer != BENCH_NONE;
	struct result ours = { 0 }, peer = { 0 };
	char path[1024];
	double ratio = 0;
	if (!model || !*model) {
		nr_fail(err, NR_EUSAGE, "bench embed needs a text model", NULL, NULL);
		return nr_hint(err, "--model FOLDER or NORMA_MINILM names it; scripts/setup-minilm fetches one");
	}
	int code = text_file(o, path, sizeof path, err);
	if (!code && with) code = compare(o, model, path, threads, &ours, &peer, &ratio, err);
	else if (!code) code = measure(o, model, path, &ours, err);
	if (!code) code = report(o, threads, &ours, with ? &peer : NULL, ratio, err);
	if (!*o->text) unlink(path);
	return code;
}
