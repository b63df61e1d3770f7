/* t-SNE of 10,000 x 128 (a mixture of 10 Gaussians), perplexity 30, 1000 steps; with --peer scikit-learn on the same rows, in turn and
 * with as many threads. Both layouts are judged by the same measures: the divergence of p on 90 neighbours with every pair in q, and
 * trustworthiness at 12 neighbours. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/trustworthiness.h"
#include "analysis/tsne.h"
#include "analysis/tsne_inner.h"
#include "base/clock.h"
#include "base/rng.h"
#include "bench.h"
#include "data/npy.h"

enum { STREAM = 42 << 24, GROUPS = 10, TRUST = 12 };
static const char what[] = "cannot bench t-SNE";

struct layout { double seconds, kl, trust; };

struct work {
	const struct bench_options *o;
	int64_t N, C;
	int threads;
	real *x;                /* (N,C) */
	double *y;              /* (N,2) */
	struct nr_tsne_p p;
	char folder[64], input[96], output[96];
};

static void draw(struct work *w)
{
	const struct nr_rng centre = nr_rng_make(1, STREAM, 0), noise = nr_rng_make(1, STREAM, 1);
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < w->N; i++)
		for (int64_t c = 0; c < w->C; c++)
			w->x[i * w->C + c] = (real)(1.5 * nr_rng_normal(centre, (uint64_t)(i % GROUPS * w->C + c)) +
				nr_rng_normal(noise, (uint64_t)(i * w->C + c)));
}

/* Quality of the layout in w->y, by the exact sum over all pairs. */
static int judge(struct work *w, struct layout *l, struct nr_error *err)
{
	const size_t n = (size_t)w->N;
	double *at = malloc(2 * n * sizeof *at);
	struct nr_tsne_row *row = malloc(n * sizeof *row);
	struct nr_tree *tree = nr_tree_make(w->N);
	struct nr_trustworthiness trust = { 0 };
	int code = at && row && tree ? NR_OK : nr_fail(err, NR_EMEMORY, what, NULL, "out of memory");
	if (!code) {
		double z = 0, stress = 0;
		for (size_t i = 0; i < n; i++) at[i] = w->y[2 * i], at[n + i] = w->y[2 * i + 1];
		nr_tsne_barnes_hut(&w->p, tree, 0, at, at + n, 1, row);
		for (size_t i = 0; i < n; i++) z += row[i].z, stress += row[i].stress;
		l->kl = w->p.entropy + stress + log(z);
		code = nr_trustworthiness(w->N, w->C, w->x, 2, w->y, TRUST, &trust, err);
		l->trust = trust.value;
	}
	free(at);
	free(row);
	nr_tree_free(tree);
	return code;
}

static int ours(struct work *w, struct layout *l, struct nr_error *err)
{
	struct nr_tsne settings = NR_TSNE_DEFAULTS;
	struct nr_tsne_result result;
	if (w->o->tiny) settings.steps = 50, settings.exact = 0;
	const double start = nr_clock();
	const int code = nr_tsne_run(&settings, w->N, w->C, w->x, w->y, &result, err);
	l->seconds = nr_clock() - start;
	return code ? code : judge(w, l, err);
}

static int theirs(struct work *w, struct layout *l, struct nr_error *err)
{
	char script[512], python[512], t[16];
	if (bench_find_peer("bench/peers/tsne.py", script, python, sizeof python, err)) return err->code;
	snprintf(t, sizeof t, "%d", w->threads);
	char in[] = "--input", out[] = "--output", threads[] = "--threads";
	char *argv[] = { python, script, in, w->input, out, w->output, threads, t, NULL };
	json_t *records = bench_records(argv, err);
	if (!records) return err->code;
	l->seconds = json_number_value(json_object_get(json_array_get(records, 0), "seconds"));
	json_decref(records);
	struct nr_npy y;
	if (nr_npy_open(&y, w->output, err)) return err->code;
	int code = nr_st_to_f64(&y.array, w->y, 2 * w->N, err);
	nr_npy_close(&y);
	if (!code && !(l->seconds > 0)) code = nr_fail(err, NR_EFORMAT, "no result from", script, "seconds is missing");
	return code ? code : judge(w, l, err);
}

static void print(const char *name, const struct layout *l)
{
	printf("%-13s %9.1f s   KL %.4f   trustworthiness %.4f\n", name, l->seconds, l->kl, l->trust);
}

static int report(const struct work *w, const struct layout *a, const struct layout *b, double ratio, double foreign, struct nr_error *err)
{
	if (w->o->json) {
		json_t *r = json_pack("{s:s, s:I, s:I, s:i, s:f, s:f, s:f, s:f}", "case", "tsne", "rows", (json_int_t)w->N, "channels",
			(json_int_t)w->C, "threads", w->threads, "seconds", a->seconds, "kl", a->kl, "trustworthiness", a->trust,
			"foreign_cpu", foreign);
		if (r) bench_limits_add(r, w->o->tiny);
		if (r && b)
			json_object_update_new(r, json_pack("{s:f, s:f, s:f, s:f}", "peer_seconds", b->seconds, "peer_kl", b->kl,
				"peer_trustworthiness", b->trust, "ratio", ratio));
		return bench_json_line(stdout, r, err);
	}
	printf("t-SNE of %lld x %lld on %d threads%s\n", (long long)w->N, (long long)w->C, w->threads,
		foreign > 0.15 && !b ? "   (other programs used the CPU)" : "");
	print("norma", a);
	if (b) print("scikit-learn", b);
	if (b) printf("scikit-learn's time over ours: %.2f\n", ratio);
	return NR_OK;
}

static int run(struct work *w, struct nr_error *err)
{
	const bool peer = w->o->peer != BENCH_NONE;
	const int64_t rounds = peer ? w->o->rounds : 1;
	double time[2][BENCH_MAX_ROUNDS], ratio[BENCH_MAX_ROUNDS];
	struct layout a = { 0 }, b = { 0 };
	const struct bench_load load = bench_load_start();
	for (int64_t i = 0; i < rounds; i++) {
		if (ours(w, &a, err) || (peer && theirs(w, &b, err))) return err->code;
		time[0][i] = a.seconds, time[1][i] = b.seconds, ratio[i] = b.seconds / a.seconds;
	}
	a.seconds = bench_median(time[0], rounds);
	b.seconds = bench_median(time[1], rounds);
	return report(w, &a, peer ? &b : NULL, bench_median(ratio, rounds), peer ? 0 : bench_load_share(&load), err);
}

static int write_input(struct work *w, struct nr_error *err)
{
	strcpy(w->folder, "/tmp/norma-bench-XXXXXX");
	if (!mkdtemp(w->folder)) return nr_fail(err, NR_EIO, "cannot make a folder", w->folder, "%s", strerror(errno));
	snprintf(w->input, sizeof w->input, "%s/x.npy", w->folder);
	snprintf(w->output, sizeof w->output, "%s/y.npy", w->folder);
	const struct nr_st_tensor t = { .name = "x", .dtype = NR_ST_F32, .nd = 2, .shape = { w->N, w->C }, .data = w->x,
		.bytes = (size_t)(w->N * w->C) * sizeof *w->x };
	return nr_npy_write(w->input, &t, err);
}

int bench_tsne(const struct bench_options *o, int threads, struct nr_error *err)
{
	struct work w = { .o = o, .N = o->tiny ? 200 : 10000, .C = o->tiny ? 8 : 128, .threads = threads };
	w.x = malloc((size_t)(w.N * w.C) * sizeof *w.x);
	w.y = malloc((size_t)(2 * w.N) * sizeof *w.y);
	int code = w.x && w.y ? NR_OK : nr_fail(err, NR_EMEMORY, what, NULL, "out of memory");
	if (!code) {
		draw(&w);
		code = nr_tsne_p_init(&w.p, w.N, w.C, w.x, 30, o->tiny ? w.N - 1 : 90, 0, err);
	}
	if (!code && o->peer != BENCH_NONE) code = write_input(&w, err);
	if (!code) code = run(&w, err);
	if (*w.folder) {
		unlink(w.input);
		unlink(w.output);
		rmdir(w.folder);
	}
	nr_tsne_p_release(&w.p);
	free(w.x);
	free(w.y);
	return code;
}
