/* What replaying a plan costs over calling the same kernels by hand: both steps in turn, from the same start. */
#include <string.h>

#include "base/clock.h"
#include "hand.h"

enum { WARM = 2, MIN_PAIRS = 5, MAX_PAIRS = 2000 };

struct times { double replay[MAX_PAIRS], hand[MAX_PAIRS], ratio[MAX_PAIRS]; int64_t pairs; };

static double time_replay(struct bench *b)
{
	const double s = nr_clock();
	bench_step(b);
	return nr_clock() - s;
}
static double time_hand(struct hand *h, const struct nr_optim *o)
{
	const double s = nr_clock();
	hand_step(h);
	hand_update(h, o);
	return nr_clock() - s;
}

/* Who goes first changes from pair to pair. */
static void run_pairs(struct times *t, struct bench *b, struct hand *h, double seconds, int64_t most)
{
	for (const double start = nr_clock();
		t->pairs < most && (t->pairs < MIN_PAIRS || nr_clock() - start < seconds); t->pairs++) {
		const int64_t i = t->pairs;
		if (i % 2) t->hand[i] = time_hand(h, &b->optim);
		t->replay[i] = time_replay(b);
		if (i % 2 == 0) t->hand[i] = time_hand(h, &b->optim);
		t->ratio[i] = t->replay[i] / t->hand[i];
	}
}

static int report(
	const struct bench *b, const struct bench_options *o, struct times *t, bool same, struct nr_error *err)
{
	const double replay = 1e3 * bench_median(t->replay, t->pairs), hand = 1e3 * bench_median(t->hand, t->pairs);
	const double ratio = bench_median(t->ratio, t->pairs), best = t->replay[0] / t->hand[0];
	char name[128];
	bench_target_text(&b->target, name, sizeof name);
	if (o->json) {
		json_t *r = json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:b}", "case", name, "replay_ms", replay, "hand_ms", hand,
			"ratio", ratio, "replay_ms_best", 1e3 * t->replay[0], "hand_ms_best", 1e3 * t->hand[0], "ratio_best", best, "reps",
			(json_int_t)t->pairs, "same_gradients", same);
		if (r) bench_limits_add(r, o->tiny);
		return bench_json_line(stdout, r, err);
	}
	printf("%s: replayed %.2f ms (best %.2f), by hand %.2f ms (best %.2f)\n"
	       "replayed / by hand: %.3f, median of %lld pairs; %.3f of the best; gradients of the first step: %s\n",
		name, replay, 1e3 * t->replay[0], hand, 1e3 * t->hand[0], ratio, (long long)t->pairs, best,
		same ? "equal bits" : "different");
	return NR_OK;
}

int bench_loop(const struct bench_target *g, const struct bench_options *o, struct nr_error *err)
{
	static struct times t;
	if (g->of->model != &bench_vit || !g->train) {
		nr_fail(err, NR_ENAME, "no hand-written loop", g->of->name, "the ViT cases have one, for training");
		return nr_hint(err, "norma bench loop vit_tiny_bs8/train");
	}
	struct bench *b;
	struct hand *h = NULL;
	if (bench_open(&b, g, NR_PLAN_NO_NARROW, err)) return err->code; /* the hand-written step makes all tokens */
	int code = hand_open(&h, b, err);
	if (!code) {
		nr_plan_run(b->plan, &b->exec, NR_RUN_FORWARD | NR_RUN_BACKWARD);
		hand_step(h);
		const bool same = hand_same_gradients(h, b);
		for (int i = 0; i < WARM && !g->tiny; i++) {
			time_replay(b);
			time_hand(h, &b->optim);
		}
		run_pairs(&t, b, h, o->seconds, g->tiny ? MIN_PAIRS : MAX_PAIRS);
		code = report(b, o, &t, same, err);
	}
	hand_close(h);
	bench_close(b);
	return code;
}
