/* Steps on several ranks, on paper: see plan_ranks.h. */
#include "plan_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/table.h"
#include "cli.h"

/* Channels of the norms that keep running statistics, one entry for each. */
static int64_t *batch_norms(const struct bench *b, int64_t *layers)
{
	static const char end[] = ".running_mean";
	int64_t *channels = calloc((size_t)nr_store_count(b->store) + 1, sizeof *channels);
	*layers = 0;
	for (int64_t i = 0; channels && i < nr_store_count(b->store); i++) {
		const struct nr_entry *e = nr_store_at(b->store, i);
		const size_t n = strlen(e->name), k = sizeof end - 1;
		if (e->buffer && n > k && !strcmp(e->name + n - k, end)) channels[(*layers)++] = e->count;
	}
	return channels;
}

static struct nr_scaling model_of(const struct bench *b, const struct cli_ranks *o, const int64_t *channels, int64_t layers)
{
	const struct nr_plan_stats p = nr_plan_stats(b->plan);
	const double products = p.forward_flops + p.backward_flops, update = 7 * 4 * (double)p.param_count / (1e9 * o->memory);
	double own = products / (1e9 * o->gflops);
	if (o->step > 0) own = o->step * 1e-3 > update ? o->step * 1e-3 - update : 0;
	return (struct nr_scaling){ .forward = own * p.forward_flops / products, .backward = own * p.backward_flops / products,
		.update = o->step > 0 && o->step * 1e-3 < update ? o->step * 1e-3 : update, .latency = 1e-6 * o->latency,
		.bandwidth = 1e9 * o->bandwidth, .memory = 1e9 * o->memory, .params = p.param_count,
		.held = (double)(p.arena_bytes + p.scratch_bytes + 4 * p.buffer_count), .reduce = (enum nr_reduce)o->reduce,
		.bf16 = o->bf16, .overlap = o->overlap, .bucket = o->bucket * (1 << 20), .steal = o->steal, .jitter = o->jitter,
		.shards = o->shards,
		.channels = channels, .layers = o->sync ? layers : 0 };
}

static json_t *json_of(const struct nr_scaled *r, int64_t ranks, int64_t batch)
{
	static const char format[] = "{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I}";
	return json_pack(format, "ranks", (json_int_t)ranks, "step_ms", 1e3 * r->step, "own_ms", 1e3 * r->own,
		"exposed_ms", 1e3 * r->exposed, "sum_ms", 1e3 * r->sum, "sync_ms", 1e3 * r->sync, "wait_ms", 1e3 * r->wait,
		"efficiency", r->efficiency, "samples_per_second", (double)(ranks * batch) / r->step, "sent_bytes", r->sent, "memory_bytes",
		r->memory, "messages", (json_int_t)r->messages, "buckets", (json_int_t)r->buckets);
}

static void row(struct nr_table *t, const struct nr_scaled *r, int64_t ranks, int64_t batch)
{
	nr_table_cell(t, "%lld", (long long)ranks);
	nr_table_cell(t, "%.2f", 1e3 * r->step);
	nr_table_cell(t, "%.2f", 1e3 * r->exposed);
	nr_table_cell(t, "%.2f", 1e3 * r->sum);
	nr_table_cell(t, "%.2f", 1e3 * r->sync);
	nr_table_cell(t, "%.1f %%", 100 * r->efficiency);
	nr_table_cell(t, "%.1f", (double)(ranks * batch) / r->step);
	nr_table_cell(t, "%.1f", r->sent / (1 << 20));
	nr_table_cell(t, "%lld", (long long)r->messages);
	nr_table_cell(t, "%.0f", r->memory / (1 << 20));
}

int cli_ranks_print(const struct bench *b, const struct cli_ranks *o, bool json, struct nr_error *err)
{
	static const char *const columns[] = { "ranks", "step ms", "waits ms", "sums ms", "sync ms", "efficiency", "samples/s", "sent MiB",
		"messages", "memory MiB", NULL };
	int64_t layers;
	int64_t *channels = batch_norms(b, &layers);
	if (!channels) return nr_fail(err, NR_EMEMORY, "cannot plan the ranks", NULL, "out of memory");
	const struct nr_scaling s = model_of(b, o, channels, layers);
	const int64_t batch = b->target.size->batch;
	struct nr_table *t = nr_table_make();
	json_t *all = json_array();
	for (int i = 0; columns[i]; i++) nr_table_column(t, columns[i], NR_RIGHT);
	for (int64_t ranks = 1; ranks <= o->ranks; ranks = ranks < o->ranks && 2 * ranks > o->ranks ? o->ranks : 2 * ranks) {
		struct nr_scaled r;
		nr_scaling_at(&s, ranks, &r);
		row(t, &r, ranks, batch);
		json_array_append_new(all, json_of(&r, ranks, batch));
	}
	char name[128];
	bench_target_text(&b->target, name, sizeof name);
	if (json) {
		nr_table_free(t);
		free(channels);
		const json_int_t bytes = (s.bf16 ? 2 : 4) * s.params;
		return cli_print_json(json_pack("{s:s, s:s, s:I, s:I, s:o}", "case", name, "reduce", nr_reduce_names[s.reduce],
			"gradient_bytes", bytes, "sync_layers", (json_int_t)s.layers, "ranks", all), err);
	}
	json_decref(all);
	printf("%s%s%s: %.1f MiB of gradients, %s sums, %.3g GB/s, %.3g us; a prediction, nothing was run\n", cli_bold(), name, cli_plain(),
		(s.bf16 ? 2.0 : 4.0) * (double)s.params / (1 << 20), nr_reduce_names[s.reduce], o->bandwidth, o->latency);
	if (o->sync) printf("%lld norms share their statistics\n", (long long)layers);
	cli_print_table(t);
	free(channels);
	return NR_OK;
}
