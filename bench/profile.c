/* Where a step's time goes: each instruction of the plan is timed, then summed by op and direction. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/table.h"
#include "bench.h"
#include "graph/plan.h"

enum { MAX_KINDS = 128 };

struct kind { const char *op, *pass; int64_t calls; double seconds, flops; };
struct profile { struct kind kind[MAX_KINDS]; int count; };

static void add(struct profile *p, const char *op, const char *pass, double seconds, double flops)
{
	int i = 0;
	while (i < p->count && (strcmp(p->kind[i].op, op) || strcmp(p->kind[i].pass, pass))) i++;
	if (i == MAX_KINDS) return;
	if (i == p->count) p->kind[p->count++] = (struct kind){ .op = op, .pass = pass };
	p->kind[i].calls++;
	p->kind[i].seconds += seconds;
	p->kind[i].flops += flops;
}

static void run_instr(struct profile *out, const struct nr_plan *p, int32_t i)
{
	const struct nr_instr *in = &p->instr[i];
	const struct nr_op *op = in->call.node->op;
	double forward = 0, backward = 0;
	nr_node_cost(in->call.node, &forward, &backward);
	const double start = nr_clock();
	in->fn(&in->call);
	const double s = nr_clock() - start;
	if (i < p->n_forward) add(out, op->name, "forward", s, forward);
	else if (in->fn == op->backward) add(out, op->name, "backward", s, backward);
	else if (in->fn == op->forward || in->fn == op->rebuild) add(out, op->name, "again", s, forward);
	else add(out, "seed", "backward", s, 0);
}

static void profile_step(struct profile *out, struct bench *b)
{
	const struct bench_model *m = b->target.of->model;
	b->exec.step++;
	double start = nr_clock();
	if (b->target.train && m->draw) {
		m->draw(b->target.size, &b->in, b->plan, b->exec.step);
		add(out, "draw", "forward", nr_clock() - start, 0);
	}
	b->plan->exec = b->exec;
	for (int32_t i = 0; i < b->plan->n_first_write; i++) *b->plan->first_write[i] = 0;
	for (int32_t i = 0; i < (b->target.train ? b->plan->n_instr : b->plan->n_forward); i++)
		run_instr(out, b->plan, i);
	if (!b->target.train) return;
	start = nr_clock();
	bench_update(b);
	add(out, "adamw", "update", nr_clock() - start, 0);
}

static int by_time(const void *a, const void *b)
{
	const struct kind *x = a, *y = b;
	return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

int bench_profile(const struct bench_target *g, int64_t steps, FILE *f, struct nr_error *err)
{
	struct bench *b;
	if (bench_open(&b, g, 0, err)) return err->code;
	for (int i = 0; i < 3; i++) bench_step(b);
	struct profile p = { .count = 0 };
	const double start = nr_clock();
	for (int64_t i = 0; i < steps; i++) profile_step(&p, b);
	const double all = nr_clock() - start;
	qsort(p.kind, (size_t)p.count, sizeof *p.kind, by_time);
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "op", NR_LEFT);
	nr_table_column(t, "pass", NR_LEFT);
	nr_table_column(t, "calls", NR_RIGHT);
	nr_table_column(t, "ms", NR_RIGHT);
	nr_table_column(t, "share", NR_RIGHT);
	nr_table_column(t, "GFLOP/s", NR_RIGHT);
	for (int i = 0; i < p.count; i++) {
		const struct kind *k = &p.kind[i];
		nr_table_cell(t, "%s", k->op);
		nr_table_cell(t, "%s", k->pass);
		nr_table_cell(t, "%lld", (long long)(k->calls / steps));
		nr_table_cell(t, "%.3f", k->seconds / (double)steps * 1e3);
		nr_table_cell(t, "%.1f %%", 100 * k->seconds / all);
		nr_table_cell(t, "%.1f", k->flops > 0 ? k->flops / k->seconds * 1e-9 : 0);
	}
	struct nr_str text = { 0 };
	nr_table_text(t, &text);
	char name[128];
	fprintf(f, "%s: %.2f ms per step, mean of %lld\n%s", bench_target_text(g, name, sizeof name),
		all / (double)steps * 1e3, (long long)steps, nr_str_text(&text));
	nr_str_release(&text);
	nr_table_free(t);
	bench_close(b);
	return NR_OK;
}
