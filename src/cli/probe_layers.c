/* Probes of every block: see probe_layers.h. */
#include "probe_layers.h"

#include <stdio.h>

#include "base/table.h"

static int take(struct cli *c, struct cli_opened *o, enum nr_split split, int64_t limit, unsigned want, int64_t batch,
	struct nr_layer_features *f)
{
	struct nr_evaluation e = cli_model_split(o, split, split == NR_TRAIN ? "blocks, train" : "blocks");
	e.count = limit && limit < o->source->count[split] ? limit : 0;
	const int code = nr_layer_features_of(f, o->w, &e, batch, want, c->err);
	nr_progress_release(&o->bar);
	return code;
}

int probe_layers(struct cli *c, struct cli_opened *o, struct probed_layers *to, const struct nr_probe *conf, unsigned want, int64_t batch,
	int64_t train_limit, int64_t limit)
{
	struct nr_layer_features train = { 0 }, test = { 0 };
	int code = take(c, o, NR_TRAIN, train_limit, want, batch, &train);
	if (!code) code = take(c, o, o->e.split, limit, want, batch, &test);
	if (!code && !(to->found = nr_arena_alloc(c->arena, (size_t)train.layers * sizeof *to->found)))
		code = nr_fail(c->err, NR_EMEMORY, "cannot probe", NULL, "out of memory");
	nr_progress_init(&o->bar, stderr, "probe blocks", 1, 0);
	for (int64_t i = 0; !code && i < train.layers; i++, to->layers++)
		for (int k = 0; !code && k < NR_FEATURE_KINDS; k++) {
			const struct nr_token_features *a = &train.layer[i], *b = &test.layer[i];
			const struct nr_probe_data fit = { a->count, a->width, a->x[k], a->label };
			const struct nr_probe_data see = { b->count, b->width, b->x[k], b->label };
			to->samples = b->count;
			to->found[i][k] = (struct nr_probe_result){ 0 };
			if (a->x[k]) code = nr_probe_run(conf, &fit, &see, &to->found[i][k], c->err);
		}
	nr_progress_release(&o->bar);
	nr_layer_features_release(&train);
	nr_layer_features_release(&test);
	return code;
}

json_t *probe_layers_json(const struct probed_layers *p)
{
	json_t *all = json_array();
	for (int64_t i = 0; i < p->layers; i++) {
		json_t *one = json_pack("{s:I}", "block", (json_int_t)i);
		for (int k = 0; k < NR_FEATURE_KINDS; k++) {
			const struct nr_probe_try *b = &p->found[i][k].best;
			double low, high;
			if (!p->found[i][k].tries) continue;
			nr_wilson(b->top1, p->samples, 1.959963984540054, &low, &high);
			json_object_set_new(one, nr_feature_names[k], json_pack("{s:f, s:f, s:f, s:f, s:f}", "top1", b->top1, "top5",
				b->top5, "low", low, "high", high, "weight_decay", b->weight_decay));
		}
		json_array_append_new(all, one);
	}
	return all;
}

void probe_layers_print(const struct probed_layers *p)
{
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "after block", NR_RIGHT);
	for (int k = 0; k < NR_FEATURE_KINDS; k++) {
		nr_table_column(t, nr_feature_names[k], NR_RIGHT);
		nr_table_column(t, "95 %", NR_RIGHT);
	}
	for (int64_t i = 0; i < p->layers; i++) {
		nr_table_cell(t, "%lld", (long long)i);
		for (int k = 0; k < NR_FEATURE_KINDS; k++) {
			double low, high;
			const bool there = p->found[i][k].tries > 0;
			nr_wilson(p->found[i][k].best.top1, p->samples, 1.959963984540054, &low, &high);
			if (there) {
				nr_table_cell(t, "%.2f %%", 100 * p->found[i][k].best.top1);
				nr_table_cell(t, "%.2f to %.2f", 100 * low, 100 * high);
			} else for (int empty = 0; empty < 2; empty++) nr_table_cell(t, "%s", "");
		}
	}
	printf("\ntop-1 by depth, of probes fitted to the tokens as they leave each block:\n");
	cli_print_table(t);
}
