/* Some steps of an optimizer on made-up parameters, one of them frozen: finite, equal bits at 1, 2 and 3 threads, nothing moves that
 * should not. */
#include <omp.h>
#include <stdlib.h>

#include "base/real.h"
#include "base/rng.h"
#include "check/check.h"

enum { SEGMENTS = 4, STEPS = 3 };
static const int64_t sizes[SEGMENTS][2] = { { 300, 129 }, { 1, 7 }, { 33, 64 }, { 5, 5 } };     /* the last is frozen */

struct parameters { real *all; int64_t count; struct nr_segment s[SEGMENTS]; };

static bool make(struct parameters *p)
{
	p->count = 0;
	for (int i = 0; i < SEGMENTS; i++) p->count += sizes[i][0] * sizes[i][1];
	p->all = calloc((size_t)(4 * p->count), sizeof *p->all);
	real *at = p->all;
	for (int i = 0; i < SEGMENTS && at; i++) {
		const int64_t n = sizes[i][0] * sizes[i][1];
		p->s[i] = (struct nr_segment){ .value = at, .grad = i < SEGMENTS - 1 ? at + n : NULL, .m = at + 2 * n, .v = at + 3 * n,
			.count = n, .nd = sizes[i][0] > 1 ? 2 : 1, .d = sizes[i][0] > 1 ? sizes[i] : &sizes[i][1],
			.lr_scale = 1, .decay = i != 1 };
		for (int64_t j = 0; j < n; j++) at[j] = (real)nr_rng_normal(nr_rng_make(3, 4, (uint32_t)i), (uint64_t)j);
		at += 4 * n;
	}
	return p->all;
}

static int steps(struct parameters *p, const struct nr_optim *o, int threads)
{
	int code = make(p) ? NR_OK : NR_EMEMORY;
	void *scratch = code ? NULL : calloc(1, nr_optim_scratch(o, p->s, SEGMENTS) + 1);
	omp_set_num_threads(threads);
	for (int64_t t = 1; t <= STEPS && scratch && !code; t++) {
		for (int i = 0; i < SEGMENTS; i++)
			for (int64_t j = 0; p->s[i].grad && j < p->s[i].count; j++)
				p->s[i].grad[j] = (real)nr_rng_normal(nr_rng_make(5, 6, (uint32_t)(16 * t + i)), (uint64_t)j);
		code = nr_optim_step(o, &(struct nr_rates){ .lr = 1e-2, .weight_decay = 1e-2 }, t, p->s, SEGMENTS, scratch, NULL);
	}
	omp_set_num_threads(2);
	if (!scratch) code = NR_EMEMORY;
	free(scratch);
	return code;
}

static void look(struct nr_checker *k, const struct parameters *p)
{
	struct parameters first;
	bool finite = true, still = true, moved = true;
	if (!make(&first)) return;
	for (int64_t i = 0; i < 4 * p->count; i++) finite &= isfinite((double)p->all[i]) != 0;
	for (int i = 0; i < SEGMENTS; i++) {
		const bool same = !memcmp(p->s[i].value, first.s[i].value, (size_t)p->s[i].count * sizeof(real));
		if (p->s[i].grad) moved &= !same;
		else still &= same;
	}
	nr_check_tell(k, NR_CHECK_FINITE, finite, "a value is not finite after %d steps", STEPS);
	nr_check_tell(k, NR_CHECK_BUILDS, moved && still, moved ? "a frozen parameter moved" : "a parameter with a gradient did not move");
	free(first.all);
}

int nr_check_optimizer(struct nr_checker *k, const struct nr_optimizer *of, struct nr_error *err)
{
	const struct nr_subject s = { .name = of->name };
	struct parameters one = { 0 };
	struct nr_optim o;
	nr_option_defaults(nr_optim_options(), &o);
	o.kind = nr_optim_kind(of->name);
	k->subject = &s, k->at = NULL;
	int code = steps(&one, &o, 1);
	if (!code) look(k, &one);
	for (int threads = 2; threads <= 3 && !code; threads++) {
		struct parameters other = { 0 };
		code = steps(&other, &o, threads);
		nr_check_tell(k, NR_CHECK_THREADS, !code && !memcmp(one.all, other.all, (size_t)(4 * one.count) * sizeof(real)),
			"%d threads change bits", threads);
		free(other.all);
	}
	free(one.all);
	k->subject = NULL;
	return code ? nr_fail(err, code, "cannot check the optimizer", of->name, "%s", nr_strerror(code)) : NR_OK;
}
