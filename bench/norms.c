/* norma bench norms: every normalization of the registry, forward and forward with backward, beside a plain copy and, with
 * --peer, beside PyTorch's (bench/peers/norms.py).
 *
 * Bytes count as in the peer's script: forward reads x and writes y; backward reads x and dy and writes dx. With a peer the
 * two sides take turns, shape by shape, each in a process of its own; a ratio is taken within a round. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/real.h"
#include "base/str.h"
#include "base/table.h"
#include "laws/norm_card.h"
#include "bench.h"
#include "math/isa.h"
#include "norma/norm.h"

enum { MAX_NORMS = 64 };
static const char *const modes[] = { "eager", "compile" };

/* What PyTorch has, and the options that make ours do the same. */
static const struct peer { const char *norm, *name, *options; } peers[] = {
	{ "layer", "ln", "" }, { "rms", "rms", "" }, { "scale", "scale", "" }, { "batch", "bn_flat", "" },
	{ "group", "gn", ":groups=8" }, { "instance", "in", "" }, { "dtn", "dtn", "" }, { "dyt", "dyt", "" },
	{ "derf", "derf", "" }, { "seednorm", "seednorm", "" },
};

struct item { const char *name, *text; const struct peer *peer; bool grid; };
struct set {
	const struct bench_options *opt;
	int threads;
	struct nr_arena *arena;
	struct item item[MAX_NORMS];
	int count;
	double seconds;                         /* of each measurement */
};

/* text NULL: the norm's own defaults, or what makes it equal to the peer's. */
static void add(struct set *s, const struct nr_norm *norm, const char *text)
{
	if (s->count == MAX_NORMS) return;
	struct item *k = &s->item[s->count++];
	*k = (struct item){ .text = text, .grid = norm->needs & NR_NEED_GRID };
	for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
		if (!strcmp(peers[i].norm, norm->name)) k->peer = &peers[i];
	char example[128];
	nr_norm_example(norm, example, sizeof example);
	if (!text) k->text = nr_arena_printf(s->arena, "%s%s", example, k->peer ? k->peer->options : "");
	/* a name, an alias, or the defaults: the registry's name; else the text tells them apart */
	k->name = (text ? strpbrk(text, ":(") : strchr(k->text, '(')) ? k->text : norm->name;
}

/* `none` does nothing, so there is nothing to time. */
static int choose(struct set *s, struct nr_error *err)
{
	for (int64_t i = 0; i < s->opt->norm.count; i++) {
		const struct nr_norm *norm = nr_norm_of_text(s->opt->norm.item[i], err);
		if (!norm) return err->code;
		add(s, norm, s->opt->norm.item[i]);
	}
	for (const struct nr_norm *const *n = nr_norms(); *n && !s->opt->norm.count; n++)
		if (strcmp((*n)->name, "none")) add(s, *n, NULL);
	s->seconds = s->opt->seconds / (2 * s->count + 1);
	return NR_OK;
}

/* ---- records ---------------------------------------------------------------------------------------------------- */

static double num(const json_t *r, const char *key) { return json_number_value(json_object_get(r, key)); }
static const char *text_of(const json_t *r, const char *key) { return json_string_value(json_object_get(r, key)); }

static json_t *record(const struct set *s, const char *name, struct bench_shape at, struct bench_times t, const struct bench_limits *l)
{
	const double bytes = (double)(at.B * at.T * at.C) * sizeof(real);
	json_t *r = json_pack("{s:s, s:s, s:s, s:i, s:[I,I,I]}", "case", "norm", "norm", name, "mode", "norma", "threads",
		s->threads, "shape", (json_int_t)at.B, (json_int_t)at.T, (json_int_t)at.C);
	if (t.forward > 0) json_object_set_new(r, "fwd_us", bench_rounded(1e6 * t.forward));
	if (t.forward > 0) json_object_set_new(r, "fwd_gbps", bench_rounded(2e-9 * bytes / t.forward));
	if (t.both > 0) json_object_set_new(r, "fwdbwd_us", bench_rounded(1e6 * t.both));
	if (t.both > 0) json_object_set_new(r, "fwdbwd_gbps", bench_rounded(5e-9 * bytes / t.both));
	bench_limits_put(r, l, t.forward > 0 ? 1e-9 * t.flops / t.forward : 0);
	return r;
}

/* A norm that mixes tokens by a T x T matrix: its time over that of its products at the rate of our own SGEMM. */
static void add_bound(json_t *r, const struct item *k, struct bench_shape at, struct bench_times t, double gflops)
{
	const struct nr_tokens tok = bench_tokens(at, strchr(k->text, '(') != NULL);
	const double tokens = (double)tok.h * tok.w, flops = 4 * (double)(at.B * at.C) * tokens * tokens;
	json_object_set_new(r, "ref_gflops", bench_rounded(gflops));
	json_object_set_new(r, "gemm_bound_fwd", bench_rounded(t.forward * gflops * 1e9 / flops));
	json_object_set_new(r, "gemm_bound_fwdbwd", bench_rounded(t.both * gflops * 1e9 / (3 * flops)));
}

/* All norms at one shape, in this process: an array of records, `copy` first. */
static json_t *measure(const struct set *s, struct bench_shape at, struct nr_error *err)
{
	const bool tiny = s->opt->tiny;
	json_t *all = json_array();
	struct bench_limits limits = { 0 };
	bench_limits_measure(&limits, tiny);
	const struct bench_times copy = { .forward = bench_copy_time(at, tiny, s->seconds) };
	json_array_append_new(all, record(s, "copy", at, copy, &limits));
	for (int i = 0; i < s->count; i++) {
		const struct item *k = &s->item[i];
		struct bench_times t;
		const double before = k->grid ? bench_ref_gflops(tiny) : 0;
		const struct bench_load load = bench_load_start();
		if (bench_norm_time(k->text, at, tiny, s->seconds, &t, err)) {
			json_decref(all);
			return NULL;
		}
		json_t *r = record(s, k->name, at, t, &limits);
		if (k->peer) json_object_set_new(r, "peer_name", json_string(k->peer->name));
		json_object_set_new(r, "foreign_cpu", bench_rounded(bench_load_share(&load)));
		if (k->grid) add_bound(r, k, at, t, (before + bench_ref_gflops(tiny)) / 2);
		json_array_append_new(all, r);
	}
	return all;
}

/* ---- beside the peer -------------------------------------------------------------------------------------------- */

struct rounds { json_t *own[BENCH_MAX_ROUNDS], *peer[2][BENCH_MAX_ROUNDS]; int64_t n; };

static json_t *run_own(const struct set *s, const char *shape, struct nr_error *err)
{
	char threads[16], seconds[32], isa[16];
	snprintf(threads, sizeof threads, "--threads=%d", s->threads);
	snprintf(seconds, sizeof seconds, "--seconds=%g", s->opt->seconds);
	snprintf(isa, sizeof isa, "--isa=%s", nr_isa_name(nr_isa_active()));
	struct nr_list args = { NULL, 0 };
	const char *const words[] = { "/proc/self/exe", "bench", "norms", "--json", threads, seconds, isa };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		nr_list_add(&args, nr_arena_strdup(s->arena, words[i]), s->arena);
	nr_list_add(&args, nr_arena_printf(s->arena, "--shapes=%s", shape), s->arena);
	for (int64_t i = 0; i < s->opt->norm.count; i++)
		nr_list_add(&args, nr_arena_printf(s->arena, "--norm=%s", s->opt->norm.item[i]), s->arena);
	if (nr_list_add(&args, NULL, s->arena)) return NULL;
	return bench_records(args.item, err);
}

static json_t *run_peer(const struct set *s, const char *shape, int mode, struct nr_error *err)
{
	char python[1024], script[1024], names[512] = "copy", threads[16], seconds[32];
	char norms_flag[] = "--norms", shapes_flag[] = "--shapes", mode_flag[] = "--mode", threads_flag[] = "--threads",
	     seconds_flag[] = "--seconds";
	size_t used = 4;
	if (bench_find_peer("bench/peers/norms.py", script, python, sizeof python, err)) return NULL;
	for (int i = 0; i < s->count; i++)
		if (s->item[i].peer && used < sizeof names)
			used += (size_t)snprintf(names + used, sizeof names - used, ",%s", s->item[i].peer->name);
	snprintf(threads, sizeof threads, "%d", s->threads);
	snprintf(seconds, sizeof seconds, "%g", s->seconds);
	char *argv[] = { python, script, norms_flag, names, shapes_flag, nr_arena_strdup(s->arena, shape), mode_flag,
		nr_arena_strdup(s->arena, modes[mode]), threads_flag, threads, seconds_flag, seconds, NULL };
	return bench_records(argv, err);
}

static const json_t *find(const json_t *records, const char *name)
{
	size_t i;
	json_t *r;
	json_array_foreach((json_t *)(uintptr_t)records, i, r)
		if (name && text_of(r, "norm") && !strcmp(text_of(r, "norm"), name)) return r;
	return NULL;
}

static double median_of(json_t *const *records, int64_t n, size_t i, const char *key)
{
	double v[BENCH_MAX_ROUNDS];
	for (int64_t q = 0; q < n; q++) v[q] = num(json_array_get(records[q], i), key);
	return bench_median(v, n);
}

/* The peer's median time, and the median over rounds of its time by ours. */
static void add_ratio(json_t *to, const struct rounds *r, int mode, size_t i, const char *key)
{
	double ratio[BENCH_MAX_ROUNDS], theirs[BENCH_MAX_ROUNDS];
	char us[32], name[64];
	snprintf(us, sizeof us, "%s_us", key);
	for (int64_t q = 0; q < r->n; q++) {
		const json_t *own = json_array_get(r->own[q], i);
		const char *peer = text_of(own, "peer_name");
		theirs[q] = num(find(r->peer[mode][q], peer ? peer : text_of(own, "norm")), us);
		ratio[q] = num(own, us) > 0 ? theirs[q] / num(own, us) : 0;
	}
	const double t = bench_median(theirs, r->n), median = bench_median(ratio, r->n);
	if (!(t > 0)) return;
	snprintf(name, sizeof name, "peer_%s_us", key);
	json_object_set_new(to, name, bench_rounded(t));
	snprintf(name, sizeof name, "ratio_%s", key);
	json_object_set_new(to, name, bench_rounded(median));
}

static json_t *merge(const struct set *s, const struct rounds *r)
{
	static const char *const keys[] = { "fwd_us", "fwd_gbps", "fwdbwd_us", "fwdbwd_gbps", "ref_gflops", "gemm_bound_fwd",
		"gemm_bound_fwdbwd", "foreign_cpu" };
	json_t *all = json_deep_copy(r->own[0]);
	for (size_t i = 0; i < json_array_size(all); i++) {
		json_t *to = json_array_get(all, i), *by = json_object();
		for (size_t q = 0; q < sizeof keys / sizeof *keys; q++)
			if (json_object_get(to, keys[q]))
				json_object_set_new(to, keys[q], bench_rounded(median_of(r->own, r->n, i, keys[q])));
		for (int m = 0; m < 2; m++) {
			json_t *one = json_object();
			if (s->opt->peer >> m & 1) add_ratio(one, r, m, i, "fwd"), add_ratio(one, r, m, i, "fwdbwd");
			if (json_object_size(one)) {
				json_object_update_missing(to, one);        /* eager, if it ran: the goal is over it */
				json_object_set(by, modes[m], one);
			}
			json_decref(one);
		}
		if (json_object_size(by)) json_object_set(to, "peers", by);
		json_decref(by);
		json_object_set_new(to, "rounds", json_integer(r->n));
	}
	return all;
}

static json_t *compare(const struct set *s, const char *shape, struct nr_error *err)
{
	struct rounds r = { .n = s->opt->rounds < BENCH_MAX_ROUNDS ? s->opt->rounds : BENCH_MAX_ROUNDS };
	struct nr_progress bar;
	bool ok = true;
	nr_progress_init(&bar, stderr, shape, 3 * r.n, 0);
	for (int64_t q = 0; q < r.n && ok; q++) {
		nr_progress_update(&bar, 3 * q, "round %d: norma", (int)q + 1);
		ok = (r.own[q] = run_own(s, shape, err)) != NULL;
		for (int m = 0; m < 2 && ok; m++) {
			if (!(s->opt->peer >> m & 1)) continue;
			nr_progress_update(&bar, 3 * q + m + 1, "round %d: torch %s", (int)q + 1, modes[m]);
			ok = (r.peer[m][q] = run_peer(s, shape, m, err)) != NULL;
		}
	}
	nr_progress_release(&bar);
	json_t *all = ok ? merge(s, &r) : NULL;
	for (int64_t q = 0; q < r.n; q++) {
		json_decref(r.own[q]);
		for (int m = 0; m < 2; m++) json_decref(r.peer[m][q]);
	}
	return all;
}

/* ---- printing --------------------------------------------------------------------------------------------------- */

static void cell(struct nr_table *t, const json_t *r, const char *key, int digits, const char *unit)
{
	const json_t *v = json_object_get(r, key);
	if (v) nr_table_cell(t, "%.*f%s", digits, json_number_value(v), unit);
	else nr_table_cell(t, "%s", "");
}

static void share(struct nr_table *t, const json_t *r, const char *key, double ceiling)
{
	const json_t *v = json_object_get(r, key);
	if (v && ceiling > 0) nr_table_cell(t, "%.0f %%", 100 * json_number_value(v) / ceiling);
	else nr_table_cell(t, "%s", "");
}

/* Columns that nothing fills are left out. */
static bool any(const json_t *all, const char *key)
{
	size_t i;
	json_t *r;
	json_array_foreach((json_t *)(uintptr_t)all, i, r)
		if (json_object_get(r, key)) return true;
	return false;
}

static void print(const char *shape, const json_t *all)
{
	struct nr_table *t = nr_table_make();
	const bool peer = any(all, "ratio_fwd"), bound = any(all, "gemm_bound_fwd");
	const double ceiling = num(json_array_get(all, 0), "fwd_gbps");
	nr_table_column(t, shape, NR_LEFT);
	static const char *const own[] = { "forward us", "GB/s", "of copy", "with backward us", "GB/s", "of copy" };
	for (size_t i = 0; i < sizeof own / sizeof *own; i++) nr_table_column(t, own[i], NR_RIGHT);
	static const char *const theirs[] = { "torch us", "ratio", "with backward us", "ratio" };
	for (size_t i = 0; peer && i < sizeof theirs / sizeof *theirs; i++) nr_table_column(t, theirs[i], NR_RIGHT);
	if (bound) nr_table_column(t, "of its GEMMs", NR_RIGHT), nr_table_column(t, "with backward", NR_RIGHT);
	size_t i;
	json_t *r;
	double busy = 0;
	json_array_foreach((json_t *)(uintptr_t)all, i, r) {
		busy = fmax(busy, num(r, "foreign_cpu"));
		nr_table_cell(t, "%s", text_of(r, "norm"));
		cell(t, r, "fwd_us", 1, ""), cell(t, r, "fwd_gbps", 1, ""), share(t, r, "fwd_gbps", ceiling);
		cell(t, r, "fwdbwd_us", 1, ""), cell(t, r, "fwdbwd_gbps", 1, ""), share(t, r, "fwdbwd_gbps", ceiling);
		if (peer) {
			cell(t, r, "peer_fwd_us", 1, ""), cell(t, r, "ratio_fwd", 2, "x");
			cell(t, r, "peer_fwdbwd_us", 1, ""), cell(t, r, "ratio_fwdbwd", 2, "x");
		}
		if (bound) cell(t, r, "gemm_bound_fwd", 2, "x"), cell(t, r, "gemm_bound_fwdbwd", 2, "x");
	}
	struct nr_str text = { 0 };
	nr_table_text(t, &text);
	fputs(nr_str_text(&text), stdout);
	if (busy > .2) printf("other processes used up to %.1f CPUs meanwhile: times are too long and ratios "
		"uncertain\n", busy);
	putchar('\n');
	fflush(stdout);
	nr_str_release(&text);
	nr_table_free(t);
}

static int one_shape(const struct set *s, const char *shape, struct nr_error *err)
{
	struct bench_shape at;
	if (bench_shape_parse(&at, shape, err)) return err->code;
	json_t *all = s->opt->peer == BENCH_NONE ? measure(s, at, err) : compare(s, shape, err);
	if (!all) return err->code;
	size_t i;
	json_t *r;
	int code = NR_OK;
	if (!s->opt->json) print(shape, all);
	else
		json_array_foreach(all, i, r)
			if (!code) code = bench_json_line(stdout, json_incref(r), err);
	json_decref(all);
	return code;
}

int bench_norms(const struct bench_options *o, int threads, struct nr_error *err)
{
	static const char *const full[] = { "128x50x128", "8x197x768", "64x196x384", NULL },
				 *const tiny[] = { "2x10x16", "3x12x16", NULL };
	struct set s = { .opt = o, .threads = threads, .arena = nr_arena_make() };
	if (!s.arena) return nr_fail(err, NR_EMEMORY, "cannot start", "bench norms", "out of memory");
	int code = choose(&s, err);
	for (int64_t i = 0; i < o->shapes.count && !code; i++) code = one_shape(&s, o->shapes.item[i], err);
	for (const char *const *shape = o->tiny ? tiny : full; !o->shapes.count && *shape && !code; shape++)
		code = one_shape(&s, *shape, err);
	nr_arena_free(s.arena);
	return code;
}
