/* src/math/moments.c, src/train/microscope.c and src/report/microscope.c: what is recorded of a norm is what brute force finds. */
#include "unit/rig.h"

#include <omp.h>
#include <unistd.h>

#include "base/json.h"
#include "math/moments.h"
#include "norma/norm.h"
#include "report/microscope.h"
#include "train/microscope.h"

static void near(double got, double want, double bound)
{
	if (!(fabs(got - want) <= bound * (1 + fabs(want)))) fail_msg("%.12g, not %.12g", got, want);
}

/* ---- moments ------------------------------------------------------------------------------------------------------------- */

struct brute { long double mean, var, kurtosis; };

static struct brute brute(const double *x, int64_t n)
{
	struct brute b = { 0 };
	long double m4 = 0;
	for (int64_t i = 0; i < n; i++) b.mean += (long double)x[i] / (long double)n;
	for (int64_t i = 0; i < n; i++) {
		const long double d = (long double)x[i] - b.mean;
		b.var += d * d / (long double)n;
		m4 += d * d * d * d / (long double)n;
	}
	b.kurtosis = m4 / (b.var * b.var);
	return b;
}

static void moments_are_those_of_brute_force_also_far_from_zero(void **state)
{
	(void)state;
	enum { N = 1000 };
	static const double offset[] = { 0, 5, -1e4 };
	for (int k = 0; k < 3; k++) {
		real x[N];
		double exact[N];
		for (int i = 0; i < N; i++) x[i] = value() * value() + (real)offset[k], exact[i] = (double)x[i];
		const struct brute b = brute(exact, N);
		const struct nr_moments whole = nr_moments_of(N, x);
		struct nr_moments parts = { 0 };
		for (int from = 0, n = 1; from < N; from += n, n = n * 3 % 101) {       /* parts of many sizes */
			const int rest = n < N - from ? n : N - from;
			const struct nr_moments part = nr_moments_of(rest, x + from);
			nr_moments_join(&parts, &part);
		}
		const struct nr_moments *both[] = { &whole, &parts };
		for (int i = 0; i < 2; i++) {
			assert_true(both[i]->n == N);
			near(both[i]->mean, (double)b.mean, 1e-12);
			near(nr_moments_var(both[i]), (double)b.var, 1e-9);
			near(nr_moments_kurtosis(both[i]), (double)b.kurtosis, 1e-9);
		}
	}
	const real same[] = { 2, 2, 2 };
	const struct nr_moments flat = nr_moments_of(3, same), none = nr_moments_of(0, same);
	assert_true(isnan(nr_moments_kurtosis(&flat)) && nr_moments_var(&flat) == 0 && isnan(nr_moments_var(&none)));
}

/* ---- a graph with norms -------------------------------------------------------------------------------------------------- */

enum { B = 5, T = 30, C = 12, SPECIAL = 2 };
static const int32_t lengths[B] = { 30, 7, 2, 19, 1 };           /* of one sample not even all special tokens */

static nr_t *kept_before, *kept_after;
static nr_t *keep_site(void *context, struct nr_net *n, const char *site, const char *full, nr_t *before, nr_t *after)
{
	(void)site;
	if (strcmp(full, context) != 0) return after;
	kept_before = nr_tap(n, "before", before);
	return kept_after = nr_tap(n, "after", after);
}

/* Residual sums, so that a norm is fused; sep, so that parts are views; dtn and switch. */
static nr_t *build(struct rig *r, const real *x, const char *norms, const char *site, struct nr_microscope **m, struct nr_arena *arena)
{
	const struct nr_norm_defaults d = { .norm = "layer", .placement = "pre", .eps = 1e-6 };
	assert_int_equal(nr_norms_use(r->n, norms, &d, &r->err), 0);
	if (m) assert_int_equal(nr_microscope_make(m, r->n, arena, &r->err), 0);
	else nr_norms_watch(r->n, (struct nr_norm_watch){ keep_site, (void *)(uintptr_t)site });
	nr_t *h = leaf(r, NR_REAL, x, 3, B, T, C, 1), *valid = ints(r, lengths, 1, B, 1);
	h = nr_with_tokens(r->n, nr_linear(r->n, "embed", h, C),
		(struct nr_tokens){ .special = SPECIAL, .heads = 3, .h = 4, .w = (T - SPECIAL) / 4, .valid = valid });
	for (int64_t i = 0; i < 3; i++) {
		nr_push_nth(r->n, "blocks", i, 3);
		nr_t *y = nr_linear(r->n, "fc", nr_norm(r->n, "attn.in", h), C);
		h = nr_pop(r->n, nr_add(r->n, h, nr_with_tokens(r->n, y, *h->tok)));
	}
	return nr_norm(r->n, "final", h);
}

/* Parameters of the blocks' norms have moved by a half when the step is looked at. */
static void run_once(struct rig *r, nr_t *y, struct nr_microscope *m, const char *path)
{
	if (nr_plan_make(&r->plan, r->n, y, NR_PLAN_TRAIN, &r->err)) fail_msg("%s", r->err.detail);
	if (m) assert_int_equal(nr_microscope_ready(m, r->plan, &r->err), 0);
	if (m) assert_int_equal(nr_microscope_open(m, path, NULL, false, 0, &r->err), 0);
	for (int64_t i = 0; i < nr_store_count(r->store); i++) {
		const struct nr_entry *e = nr_store_at(r->store, i);
		for (int64_t k = 0; strstr(e->name, "attn.in") && !e->buffer && k < e->count; k++) nr_value(e)[k] += (real)0.5;
	}
	struct nr_exec ex = { .train = 1 };
	if (m) nr_microscope_look(m, &ex);
	run_with(r, y, ex, NR_RUN_FORWARD | NR_RUN_BACKWARD);
	if (m) assert_int_equal(nr_microscope_write(m, m, 1, &r->err), 0);
}

static double recorded(const struct nr_microscope_file *f, const char *stat, int group, const char *site)
{
	int s = 0, i = 0;
	while (s < f->stats && strcmp(f->stat[s], stat)) s++;
	while (i < f->sites && strcmp(f->site[i], site)) i++;
	if (s == f->stats || i == f->sites) fail_msg("%s at %s is not there", stat, site);
	return nr_microscope_value(f, s, group, i, 0);
}

static void compare(const struct nr_microscope_file *f, const char *site, const char *side, int group, const real *x)
{
	static double all[B * T * C], length[B * T];
	int64_t n = 0, rows = 0;
	double longest = 0;
	for (int b = 0; b < B; b++)
		for (int t = 0; t < T && t < lengths[b]; t++) {
			if ((t < SPECIAL) != (group == NR_GROUP_SPECIAL)) continue;
			double square = 0;
			for (int c = 0; c < C; c++) {
				all[n] = (double)x[(b * T + t) * C + c];
				square += all[n] * all[n];
				n++;
			}
			length[rows++] = sqrt(square);
			if (sqrt(square) > longest) longest = sqrt(square);
		}
	const struct brute v = brute(all, n), l = brute(length, rows);
	const struct { const char *name; double want; } stats[] = { { "mean", (double)v.mean }, { "var", (double)v.var },
		{ "kurtosis", (double)v.kurtosis }, { "length", (double)l.mean }, { "length_sd", sqrt((double)l.var) },
		{ "length_max", longest } };
	for (size_t i = 0; i < sizeof stats / sizeof *stats; i++) {
		char name[64];
		snprintf(name, sizeof name, "%s_%s", side, stats[i].name);
		near(recorded(f, name, group, site), stats[i].want, 1e-7);
	}
}

static void read_back(struct nr_microscope_file *f, const char *path, struct nr_arena *arena)
{
	struct nr_error err = { 0 };
	char line[1200];
	FILE *in = fopen(path, "rb");
	assert_non_null(in);
	if (nr_microscope_read(f, in, path, arena, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	fclose(in);
}

static void records_are_the_values_before_and_after_each_norm(void **state)
{
	(void)state;
	static const char *const plans[] = { "layer", "sep(bn,ln)",
		"blocks[0].*=sep(rms,dtn) blocks[1].*=switch blocks[2].*=bn final=rms" };
	static const char *const sites[] = { "blocks.0.attn.in", "blocks.1.attn.in", "blocks.2.attn.in", "final" };
	char path[] = "/tmp/microscopeXXXXXX";
	real x[B * T * C];
	close(mkstemp(path));
	for (int i = 0; i < B * T * C; i++) x[i] = value() * 3;
	for (int p = 0; p < 3; p++) {
		struct nr_arena *arena = nr_arena_make();
		struct nr_microscope *m;
		struct nr_microscope_file f;
		struct rig r = rig();
		nr_t *y = build(&r, x, plans[p], NULL, &m, arena);
		run_once(&r, y, m, path);
		nr_microscope_close(m);
		read_back(&f, path, arena);
		assert_int_equal(f.sites, 4);
		for (int i = 0; i < 4; i++) {
			struct rig tapped = rig();
			run_once(&tapped, build(&tapped, x, plans[p], sites[i], NULL, NULL), NULL, NULL);
			for (int g = 0; g < NR_TOKEN_GROUPS; g++) {
				compare(&f, sites[i], "in", g, nr_plan_data(tapped.plan, kept_before));
				compare(&f, sites[i], "out", g, nr_plan_data(tapped.plan, kept_after));
			}
			int64_t n;
			const real *grads = nr_store_grads(r.store, &n);        /* looking changed nothing */
			assert_memory_equal(grads, nr_store_grads(tapped.store, &n), (size_t)n * sizeof *grads);
			release(&tapped);
		}
		nr_microscope_release(&f);
		release(&r);
		nr_arena_free(arena);
	}
	unlink(path);
}

static void parameters_have_their_drift_and_their_blend(void **state)
{
	(void)state;
	static const char plan[] = "blocks[0].*=sep(rms,dtn) blocks[1].*=switch blocks[2].*=ln final=ln:affine=0";
	char path[] = "/tmp/microscopeXXXXXX";
	real x[B * T * C];
	close(mkstemp(path));
	for (int i = 0; i < B * T * C; i++) x[i] = value();
	struct nr_arena *arena = nr_arena_make();
	struct nr_microscope *m;
	struct nr_microscope_file f;
	struct rig r = rig();
	nr_t *y = build(&r, x, plan, NULL, &m, arena);
	run_once(&r, y, m, path);
	nr_microscope_close(m);
	read_back(&f, path, arena);
	const double half = 1 / (1 + exp(-0.5));
	near(recorded(&f, "gain_mean", NR_GROUP_SPECIAL, "blocks.0.attn.in"), 1.5, 1e-7);       /* each part of sep its own */
	near(recorded(&f, "gain_drift", NR_GROUP_TOKENS, "blocks.0.attn.in"), 0.5, 1e-7);
	assert_true(isnan(recorded(&f, "bias_mean", NR_GROUP_SPECIAL, "blocks.0.attn.in")));   /* rms has none */
	near(recorded(&f, "mean_ln", NR_GROUP_TOKENS, "blocks.0.attn.in"), half, 1e-7);
	near(recorded(&f, "var_in", NR_GROUP_TOKENS, "blocks.0.attn.in"), 1 - half, 1e-7);
	near(recorded(&f, "var_ln_sd", NR_GROUP_TOKENS, "blocks.0.attn.in"), 0, 1e-7);
	near(recorded(&f, "var_bn", NR_GROUP_TOKENS, "blocks.1.attn.in"), 1.0 / 3, 1e-7);
	assert_true(isnan(recorded(&f, "gain_mean", NR_GROUP_SPECIAL, "blocks.2.attn.in")));   /* shared: with the tokens */
	near(recorded(&f, "bias_mean", NR_GROUP_TOKENS, "blocks.2.attn.in"), 0.5, 1e-7);
	near(recorded(&f, "gain_sd", NR_GROUP_TOKENS, "blocks.2.attn.in"), 0, 1e-7);
	assert_true(isnan(recorded(&f, "gain_mean", NR_GROUP_TOKENS, "final")));
	assert_true(isnan(recorded(&f, "mean_ln", NR_GROUP_TOKENS, "blocks.2.attn.in")));
	nr_microscope_release(&f);
	release(&r);
	nr_arena_free(arena);
	unlink(path);
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static int read_text(const char *text, struct nr_microscope_file *f, struct nr_arena *arena, struct nr_error *err)
{
	FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "rb");
	const int code = nr_microscope_read(f, in, "text", arena, err);
	fclose(in);
	return code;
}

static void what_is_no_record_is_an_error(void **state)
{
	(void)state;
	static const struct { const char *text, *why; } cases[] = {
		{ "step,site,in\n", "columns" }, { "step,site,group\n", "columns" }, { "step,site,group,a<b\n", "columns" },
		{ "step,site,group,a\n1,x,tokens,1,2\n", "cells" }, { "step,site,group,a\n1,x,tokens\n", "cells" },
		{ "step,site,group,a\n1,x,others,1\n", "line 2" }, { "step,site,group,a\nx,x,tokens,1\n", "line 2" },
		{ "step,site,group,a\n1,<b>,tokens,1\n", "line 2" }, { "step,site,group,a\n1,x,tokens,one\n", "line 2" },
		{ "step,site,group,a\n2,x,tokens,1\n1,x,tokens,1\n", "earlier" },
		{ "step,site,group,a\n1,x,tokens,1\n2,y,tokens,1\n3,z,tokens,1\n4,u,tokens,1\n", "same sites" } };
	struct nr_arena *arena = nr_arena_make();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nr_microscope_file f;
		struct nr_error err = { 0 };
		char line[1200];
		assert_int_equal(read_text(cases[i].text, &f, arena, &err), NR_EFORMAT);
		if (!strstr(nr_error_text(&err, line, sizeof line), cases[i].why)) fail_msg("%s", line);
	}
	nr_arena_free(arena);
}

static void arms_with_other_sites_are_aligned_by_block(void **state)
{
	(void)state;
	static const char *const text[] = {
		"step,site,group,a,b\n1,blocks.0.in,tokens,1,\n1,blocks.1.in,tokens,2,\n1,final,tokens,inf,\n2,blocks.0",
		"step,site,group,a\n1,blocks.0.res,tokens,3\n1,blocks.1.res,tokens,4\n9,blocks.0.res,tokens,5\n"
		"9,blocks.1.res,tokens,nan\n" };
	struct nr_arena *arena = nr_arena_make();
	struct nr_microscope_arm arm[2] = { { .arm = 0 }, { .arm = 1 } };
	struct nr_microscope_view v = { .arm = arm, .arms = 2 };
	struct nr_error err = { 0 };
	struct nr_str s = { 0 };
	for (int i = 0; i < 2; i++) assert_int_equal(read_text(text[i], &arm[i].file, arena, &err), 0);
	assert_int_equal(nr_microscope_align(&v, arena), 0);
	nr_microscope_json(&s, &v);
	assert_string_equal(nr_str_text(&s), "{\"sites\":[\"blocks.0.in\",\"blocks.0.res\",\"blocks.1.in\",\"blocks.1.res\",\"final\"],"
		"\"stats\":[[\"a\",\"a\"]],\"arms\":[{\"arm\":0,\"steps\":[1],\"v\":[[null,[[1,null,2,null,null]]]]},"
		"{\"arm\":1,\"steps\":[1,9],\"v\":[[null,[[null,3,null,4,null],[null,5,null,null,null]]]]}]}");
	json_t *o = nr_json_parse(s.text, s.len, "text", &err);
	assert_non_null(o);
	json_decref(o);
	nr_str_release(&s);
	for (int i = 0; i < 2; i++) nr_microscope_release(&arm[i].file);
	nr_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moments_are_those_of_brute_force_also_far_from_zero),
		cmocka_unit_test(records_are_the_values_before_and_after_each_norm),
		cmocka_unit_test(parameters_have_their_drift_and_their_blend),
		cmocka_unit_test(what_is_no_record_is_an_error),
		cmocka_unit_test(arms_with_other_sites_are_aligned_by_block),
	};
	omp_set_num_threads(2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
