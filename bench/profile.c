/* Where a step's time goes: each instruction of the plan is timed, then summed by op and direction, and held against its limit: the
 * time that its operations take at the peak of multiply-adds or its bytes at the rate of a copy, whichever is longer. A value counts
 * once for each instruction that reads or writes it; one that is still in a cache may come faster than a copy. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/real.h"
#include "base/str.h"
#include "base/table.h"
#include "bench.h"
#include "graph/plan.h"
#include "math/isa.h"

enum { MAX_KINDS = 128, WARM = 3, ADAMW_SLABS = 7 };    /* parameters, gradients and both moments read; all but gradients written */

struct kind { const char *op, *pass; int64_t calls; double seconds, flops, bytes, limit; };
struct profile { struct kind kind[MAX_KINDS]; int count; int64_t steps; double seconds; struct bench_limits limits; };

/* Seconds at the machine's limit. */
static double limit_of(const struct bench_limits *l, double flops, double bytes)
{
	return fmax(l->gflops > 0 ? 1e-9 * flops / l->gflops : 0, l->gbs > 0 ? 1e-9 * bytes / l->gbs : 0);
}

static void add(struct profile *p, const char *op, const char *pass, double seconds, double flops, double bytes)
{
	int i = 0;
	while (i < p->count && (strcmp(p->kind[i].op, op) || strcmp(p->kind[i].pass, pass))) i++;
	if (i == MAX_KINDS) return;
	if (i == p->count) p->kind[p->count++] = (struct kind){ .op = op, .pass = pass };
	struct kind *k = &p->kind[i];
	k->calls++;
	k->seconds += seconds;
	k->flops += flops;
	k->bytes += bytes;
	k->limit += limit_of(&p->limits, flops, bytes);
}

static void run_instr(struct profile *out, const struct nr_plan *p, int32_t i)
{
	static const char *const pass[] = { "forward", "backward", "again", "backward" };
	const struct nr_instr *in = &p->instr[i];
	const struct nr_work w = nr_instr_work(p, i);
	const double start = nr_clock();
	in->fn(&in->call);
	add(out, w.pass == NR_PASS_SEED ? "seed" : in->call.node->op->name, pass[w.pass], nr_clock() - start, w.flops, w.bytes);
}

static void profile_step(struct profile *out, struct bench *b)
{
	const struct bench_model *m = b->target.of->model;
	b->exec.step++;
	double start = nr_clock();
	if (b->target.train && m->draw) {
		m->draw(b->target.size, &b->in, b->plan, b->exec.step);
		add(out, "draw", "forward", nr_clock() - start, 0, 0);
	}
	b->plan->exec = b->exec;
	for (int32_t i = 0; i < b->plan->n_first_write; i++) *b->plan->first_write[i] = 0;
	for (int32_t i = 0; i < (b->target.train ? b->plan->n_instr : b->plan->n_forward); i++)
		run_instr(out, b->plan, i);
	if (!b->target.train) return;
	start = nr_clock();
	bench_update(b);
	add(out, "adamw", "update", nr_clock() - start, 0, ADAMW_SLABS * (double)nr_plan_stats(b->plan).param_count * sizeof(real));
}

static int by_time(const void *a, const void *b)
{
	const struct kind *x = a, *y = b;
	return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static double limit_of_step(const struct profile *p)
{
	double sum = 0;
	for (int i = 0; i < p->count; i++) sum += p->kind[i].limit;
	return sum;
}

static const char *bound_of(const struct profile *p, const struct kind *k)
{
	if (!(k->limit > 0)) return "";
	return limit_of(&p->limits, k->flops, 0) > limit_of(&p->limits, 0, k->bytes) ? "fma" : "memory";
}

static json_t *as_json(const struct profile *p, const char *name)
{
	json_t *ops = json_array(), *r = json_object();
	const double steps = (double)p->steps;
	for (int i = 0; i < p->count; i++) {
		const struct kind *k = &p->kind[i];
		json_array_append_new(ops, json_pack("{s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:s, s:o}", "op", k->op, "pass", k->pass, "calls",
			(json_int_t)(k->calls / p->steps), "ms", bench_rounded(k->seconds / steps * 1e3), "share",
			json_real(k->seconds / p->seconds), "gflops", bench_rounded(k->flops / k->seconds * 1e-9), "gbs",
			bench_rounded(k->bytes / k->seconds * 1e-9), "bound", bound_of(p, k), "of_limit",
			bench_rounded(k->limit / k->seconds)));
	}
	json_object_set_new(r, "case", json_string(name));
	json_object_set_new(r, "threads", json_integer(omp_get_max_threads()));
	json_object_set_new(r, "isa", json_string(nr_isa_name(nr_isa_active())));
	json_object_set_new(r, "ms", bench_rounded(p->seconds / steps * 1e3));
	json_object_set_new(r, "of_limit", bench_rounded(limit_of_step(p) / p->seconds));
	json_object_set_new(r, "ops", ops);
	double flops = 0;
	for (int i = 0; i < p->count; i++) flops += p->kind[i].flops;
	bench_limits_put(r, &p->limits, flops / p->seconds * 1e-9);
	return r;
}

static void print(const struct profile *p, const char *name, FILE *f)
{
	struct nr_table *t = nr_table_make();
	static const char *const titles[] = { "op", "pass", "calls", "ms", "share", "GFLOP/s", "GB/s", "bound by", "of limit" };
	for (int i = 0; i < 9; i++) nr_table_column(t, titles[i], i < 2 || i == 7 ? NR_LEFT : NR_RIGHT);
	for (int i = 0; i < p->count; i++) {
		const struct kind *k = &p->kind[i];
		nr_table_cell(t, "%s", k->op);
		nr_table_cell(t, "%s", k->pass);
		nr_table_cell(t, "%lld", (long long)(k->calls / p->steps));
		nr_table_cell(t, "%.3f", k->seconds / (double)p->steps * 1e3);
		nr_table_cell(t, "%.1f %%", 100 * k->seconds / p->seconds);
		nr_table_cell(t, "%.1f", k->flops / k->seconds * 1e-9);
		nr_table_cell(t, "%.1f", k->bytes / k->seconds * 1e-9);
		nr_table_cell(t, "%s", bound_of(p, k));
		nr_table_cell(t, "%.0f %%", 100 * k->limit / k->seconds);
	}
	struct nr_str text = { 0 };
	nr_table_text(t, &text);
	fprintf(f, "%s: %.2f ms per step, mean of %lld; limit %.2f ms at %.1f GFLOP/s and %.1f GB/s: %.0f %%\n%s", name,
		p->seconds / (double)p->steps * 1e3, (long long)p->steps, limit_of_step(p) / (double)p->steps * 1e3, p->limits.gflops,
		p->limits.gbs, 100 * limit_of_step(p) / p->seconds, nr_str_text(&text));
	nr_str_release(&text);
	nr_table_free(t);
}

int bench_profile(const struct bench_target *g, const struct bench_options *o, struct nr_error *err)
{
	struct bench *b;
	struct profile p = { .steps = g->tiny ? 1 : 10 };
	char name[128];
	bench_limits_measure(&p.limits, g->tiny);
	if (bench_open(&b, g, g->rebuild ? NR_PLAN_REBUILD : 0, err)) return err->code;
	for (int i = 0; i < WARM; i++) bench_step(b);
	const double start = nr_clock();
	for (int64_t i = 0; i < p.steps; i++) profile_step(&p, b);
	p.seconds = nr_clock() - start;
	qsort(p.kind, (size_t)p.count, sizeof *p.kind, by_time);
	bench_target_text(g, name, sizeof name);
	if (o->json) bench_json_line(stdout, as_json(&p, name), err);
	else print(&p, name, stdout);
	bench_close(b);
	return err->code;
}
