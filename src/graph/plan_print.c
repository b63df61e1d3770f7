/* A plan as text: what runs, what it costs, and who holds the memory at the peak. */
#include "base/real.h"
#include "graph/plan.h"

#include <stdlib.h>

static double mib(int64_t bytes) { return (double)bytes / (1 << 20); }

static void print_instr(const struct nr_plan *p, FILE *out, int32_t i)
{
	static const char *const pass[] = { "fwd", "bwd", "again", "seed" };
	const struct nr_node *k = p->instr[i].call.node;
	const struct nr_work w = nr_instr_work(p, i);
	char shape[96];
	fprintf(out, "%5d  %-5s %-16s %-28s %-20s %9.1f MFLOP\n", i, pass[w.pass], k->op->name, k->where.scope,
		nr_shape_text(k->out[0], shape, sizeof shape), w.flops * 1e-6);
}

static int by_bytes(const void *a, const void *b)
{
	const struct buffer *x = *(const struct buffer *const *)a, *y = *(const struct buffer *const *)b;
	return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes) : (x > y) - (x < y);
}

/* The instruction at which most bytes are alive, and the largest owners there. */
static void print_peak(const struct nr_plan *p, FILE *out)
{
	int64_t best = 0;
	int32_t when = 0;
	for (int32_t t = 0; t < p->n_instr; t++) {
		int64_t alive = 0;
		for (int32_t b = 0; b < p->n_buf; b++)
			if (p->buf[b].root == b && p->buf[b].first <= t && t <= p->buf[b].last) alive += p->buf[b].bytes;
		if (alive > best) best = alive, when = t;
	}
	const struct buffer *top[8] = { NULL };
	int n = 0;
	for (int32_t b = 0; b < p->n_buf; b++) {
		const struct buffer *x = &p->buf[b];
		if (x->root != b || x->first > when || when > x->last) continue;
		if (n < 8) top[n++] = x;
		else if (x->bytes > top[7]->bytes) top[7] = x;
		qsort(top, (size_t)n, sizeof *top, by_bytes);
	}
	fprintf(out, "peak: %.1f MiB alive at instruction %d (%s %s); largest there:\n", mib(best), when,
		p->instr[when].call.node->op->name, p->instr[when].call.node->where.scope);
	for (int i = 0; i < n; i++) {
		char shape[96] = "";
		if (top[i]->tensor) nr_shape_text(top[i]->tensor, shape, sizeof shape);
		fprintf(out, "  %8.2f MiB  %-9s %-16s %-28s %s\n", mib(top[i]->bytes), top[i]->what,
			top[i]->node ? top[i]->node->op->name : "input", top[i]->node ? top[i]->node->where.scope : "", shape);
	}
}

void nr_plan_print(const struct nr_plan *p, FILE *out, int instructions)
{
	for (int32_t i = 0; instructions && i < p->n_instr; i++) print_instr(p, out, i);
	const struct nr_plan_stats *s = &p->stats;
	fprintf(out, "instructions: %lld forward, %lld backward; %lld narrowed to leading tokens, %lld pairs fused, %lld outputs made "
		"again, %lld tensors aliased\n", (long long)s->forward, (long long)s->backward, (long long)s->narrowed,
		(long long)s->fused, (long long)s->rebuilt, (long long)s->aliased);
	fprintf(out, "parameters: %lld (%.1f MiB), buffers: %lld\n", (long long)s->param_count,
		mib(s->param_count * (int64_t)sizeof(real)), (long long)s->buffer_count);
	fprintf(out, "flops: %.3f G forward, %.3f G backward", s->forward_flops * 1e-9, s->backward_flops * 1e-9);
	if (s->left_out_flops > 0) fprintf(out, "; narrowing saves %.3f G of forward", s->left_out_flops * 1e-9);
	fprintf(out, "\n");
	fprintf(out, "memory: %.1f MiB planned (%.1f MiB without reuse), %.1f MiB scratch\n", mib(s->arena_bytes), mib(s->no_reuse_bytes),
		mib(s->scratch_bytes));
	if (p->n_instr) print_peak(p, out);
}
