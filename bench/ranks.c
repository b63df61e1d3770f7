/* Data-parallel training steps on the ranks of an MPI launcher, the batch for each of them: the first rank alone, all of them without a
 * word to each other, and with gradients summed, in turn within one run: `mpirun -n 2 norma bench ranks vit_tiny_bs8/train`. --peer: then
 * PyTorch's DistributedDataParallel over gloo on as many processes, while the ranks wait. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench.h"
#include "graph/buckets.h"

enum phase { ALONE, APART, AFTER, BETWEEN, THREAD, PHASES };
static const struct { const char *key, *title; } phases[PHASES] = {
	[ALONE] = { "alone", "one rank, the others wait" }, [APART] = { "apart", "all ranks, nothing summed" },
	[AFTER] = { "after", "summed after backward" }, [BETWEEN] = { "between", "summed between its calls" },
	[THREAD] = { "thread", "summed by a thread beside it" },
};
enum { ROUNDS = 5, WARM = 2, LIMIT = 300 };

static int step(struct bench *b, struct nr_buckets *sums, struct nr_error *err)
{
	const struct bench_model *m = b->target.of->model;
	struct nr_exec ex = b->exec;
	ex.step = ++b->exec.step;
	if (m->draw) m->draw(b->target.size, &b->in, b->plan, ex.step);
	if (m->before) m->before(b);
	if (sums && nr_buckets_begin(sums, b->plan, &ex, err)) return err->code;
	nr_plan_run(b->plan, &ex, NR_RUN_FORWARD | NR_RUN_BACKWARD | NR_RUN_COMMIT);
	if (sums && nr_buckets_end(sums, err)) return err->code;
	bench_update(b);
	if (m->after) m->after(b);
	return NR_OK;
}

/* Seconds of a step: from when all are there until all are done. */
static int time_phase(struct bench *b, struct nr_comm *c, struct nr_buckets *sums, bool runs, int64_t steps, double *seconds,
	struct nr_error *err)
{
	if (nr_comm_meet(c, false, err)) return err->code;
	const double began = nr_clock();
	for (int64_t i = 0; i < steps && runs; i++)
		if (step(b, sums, err)) return err->code;
	if (nr_comm_meet(c, false, err)) return err->code;
	*seconds = (nr_clock() - began) / (double)steps;
	return NR_OK;
}

/* As many steps as fit in so many seconds by the first rank's clock. */
static int count_steps(struct bench *b, struct nr_comm *c, double seconds, int64_t *steps, struct nr_error *err)
{
	double one, *all = calloc((size_t)nr_comm_size(c), sizeof *all);
	int code = all ? time_phase(b, c, NULL, true, WARM, &one, err) : nr_fail(err, NR_EMEMORY, "cannot measure", NULL, "out of memory");
	if (!code) code = nr_comm_gather(c, &one, sizeof one, all, err);
	if (!code) *steps = 1 + (int64_t)(seconds / (ROUNDS * PHASES) / all[0]);
	free(all);
	return code;
}

/* The record of bench/peers/ddp_step.py. */
static json_t *ask_peer(const struct bench_target *g, const struct nr_comm *c, const struct bench_options *o, struct nr_error *err)
{
	char script[512], python[512], number[3][32], words[] = "--model --ranks --threads --seconds", *flag[4], *rest;
	char vit[] = "vit", mae[] = "mae", *model = NULL;
	if (!strcmp(g->of->name, "vit_tiny_bs8")) model = vit;
	if (!strcmp(g->of->name, "mae32_bs128")) model = mae;
	if (!model) {
		nr_fail(err, NR_EUSAGE, "the peer has no case", g->of->name, NULL);
		nr_hint(err, "vit_tiny_bs8 and mae32_bs128 have one");
		return NULL;
	}
	if (bench_find_peer("bench/peers/ddp_step.py", script, python, sizeof python, err)) return NULL;
	for (int i = 0; i < 4; i++) flag[i] = strtok_r(i ? NULL : words, " ", &rest);
	snprintf(number[0], sizeof *number, "%d", nr_comm_size(c));
	snprintf(number[1], sizeof *number, "%d", omp_get_max_threads());
	snprintf(number[2], sizeof *number, "%g", o->seconds / 2);
	char *argv[] = { python, script, flag[0], model, flag[1], number[0], flag[2], number[1], flag[3], number[2], NULL };
	json_t *records = bench_records(argv, err), *one = records ? json_incref(json_array_get(records, 0)) : NULL;
	json_decref(records);
	if (records && !one) nr_fail(err, NR_EFORMAT, "no result from", script, NULL);
	return one;
}

/* peer: its record; r gets it and how many of its samples per second ours are. */
static void add_peer(const struct bench_options *o, json_t *r, const json_t *peer, double best)
{
	const double ms = json_number_value(json_object_get(peer, "ms")), rate = json_number_value(json_object_get(peer, "samples_per_s"));
	const double of_alone = json_number_value(json_object_get(peer, "of_alone"));
	if (!o->json) {
		printf("%-30s %8.2f ms  %8.1f samples/s  %5.1f %% of alone\n", "PyTorch DDP over gloo", ms, rate, 100 * of_alone);
		printf("%.2fx its samples per second\n", best / rate);
	}
	json_object_set_new(r, "ddp", json_pack("{s:o, s:o, s:o}", "ms", bench_rounded(ms), "samples_per_s", bench_rounded(rate),
		"of_alone", bench_rounded(of_alone)));
	json_object_set_new(r, "ratio", bench_rounded(best / rate));
}

static int report(const struct bench *b, const struct nr_comm *c, const struct bench_options *o, double (*t)[ROUNDS], struct nr_error *err)
{
	const int ranks = nr_comm_size(c);
	json_t *peer = o->peer != BENCH_NONE ? ask_peer(&b->target, c, o, err) : NULL;
	if (o->peer != BENCH_NONE && !peer) return err->code;
	double best = 0;
	const double batch = (double)b->target.size->batch, alone = bench_median(t[ALONE], ROUNDS), apart = bench_median(t[APART], ROUNDS);
	char name[128];
	bench_target_text(&b->target, name, sizeof name);
	json_t *r = json_pack("{s:s, s:i, s:i, s:s}", "case", name, "ranks", ranks, "threads", omp_get_max_threads(), "mpi",
		nr_comm_library(c));
	if (!o->json) printf("%s on %d ranks, %d threads each (%s)\n", name, ranks, omp_get_max_threads(), nr_comm_library(c));
	for (int i = 0; i < PHASES; i++) {
		const double s = bench_median(t[i], ROUNDS), rate = batch * (i == ALONE ? 1 : ranks) / s;
		if (i >= AFTER && rate > best) best = rate;
		if (!o->json)
			printf("%-30s %8.2f ms  %8.1f samples/s  %5.1f %% of alone  %5.1f %% of apart\n", phases[i].title, 1e3 * s, rate,
				100 * alone / s, 100 * apart / s);
		json_object_set_new(r, phases[i].key, json_pack("{s:o, s:o, s:o, s:o}", "ms", bench_rounded(1e3 * s), "samples_per_s",
			bench_rounded(rate), "of_alone", bench_rounded(alone / s), "of_apart", bench_rounded(apart / s)));
	}
	if (peer) add_peer(o, r, peer, best);
	json_decref(peer);
	if (o->json) return bench_json_line(stdout, r, err);
	json_decref(r);
	return NR_OK;
}

static int measure(struct bench *b, struct nr_comm *c, const struct bench_options *o, struct nr_error *err)
{
	double t[PHASES][ROUNDS];
	int64_t n, steps = 1;
	nr_store_grads(b->store, &n);
	real *room = malloc((size_t)n * sizeof *room);
	struct nr_buckets *sums[PHASES] = { NULL };
	int code = room ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot measure", NULL, "out of memory");
	for (int i = AFTER; i < PHASES && !code; i++)
		code = nr_buckets_open(&sums[i], c, b->plan, room, NR_OVERLAP_AFTER + (enum nr_overlap)(i - AFTER), false, NULL, NULL, err);
	if (!code && !o->tiny) code = count_steps(b, c, o->seconds, &steps, err);
	for (int i = 0; i < ROUNDS && !code; i++)
		for (int k = 0; k < PHASES && !code; k++)
			code = time_phase(b, c, sums[k], k != ALONE || nr_comm_rank(c) == 0, steps, &t[k][i], err);
	if (!code && nr_comm_rank(c) == 0) code = report(b, c, o, t, err);
	if (!code) code = nr_comm_meet(c, true, err);           /* the others wait while the first one asks the peer */
	for (int i = AFTER; i < PHASES; i++) nr_buckets_close(sums[i]);
	free(room);
	return code;
}

int bench_ranks(const struct bench_target *g, const struct bench_options *o, struct nr_error *err)
{
	struct nr_comm *c;
	struct bench *b = NULL;
	if (nr_comm_open(&c, LIMIT, true, err)) return err->code;
	int code = g->train ? bench_open(&b, g, 0, err) : nr_fail(err, NR_EUSAGE, "ranks share a training step only", g->of->name, NULL);
	if (!code && !c) {
		nr_fail(err, NR_EUSAGE, "there is one rank", NULL, "no MPI launcher started this process");
		code = nr_hint(err, "mpirun -n 2 norma bench ranks vit_tiny_bs8/train");
	} else if (!code) code = measure(b, c, o, err);
	bench_close(b);
	nr_comm_close(c, code != 0);
	return code;
}
