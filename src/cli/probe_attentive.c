/* The attentive probe: see probe_attentive.h. */
#include "probe_attentive.h"

#include <stdio.h>

static int take(struct cli *c, struct cli_opened *o, enum nr_split split, int64_t limit, int64_t batch, struct nr_token_set *s)
{
	struct nr_evaluation e = cli_model_split(o, split, split == NR_TRAIN ? "tokens, train" : "tokens");
	e.count = limit && limit < o->source->count[split] ? limit : 0;
	const int code = nr_token_set_of(s, o->w, &e, batch, c->err);
	nr_progress_release(&o->bar);
	return code;
}

int probe_attentive(struct cli *c, struct cli_opened *o, struct probed_attentive *to, const struct nr_attentive *conf, int64_t batch,
	int64_t train_limit, int64_t limit)
{
	struct nr_token_set train = { 0 }, test = { 0 };
	int code = take(c, o, NR_TRAIN, train_limit, batch, &train);
	if (!code) code = take(c, o, o->e.split, limit, batch, &test);
	nr_progress_init(&o->bar, stderr, "probe attentively", 1, 0);
	if (!code) code = nr_attentive_run(conf, &train, &test, &to->found, c->err);
	nr_progress_release(&o->bar);
	to->samples = test.count;
	to->there = !code;
	nr_token_set_release(&train);
	nr_token_set_release(&test);
	return code;
}

json_t *probe_attentive_json(const struct probed_attentive *p)
{
	const struct nr_probe_try *b = &p->found.best;
	json_t *tried = json_array();
	double low, high;
	nr_wilson(b->top1, p->samples, 1.959963984540054, &low, &high);
	for (int64_t i = 0; i < p->found.tries; i++)
		json_array_append_new(tried, json_pack("{s:f, s:f, s:f, s:f}", "lr", p->found.each[i].base_lr, "held_top1",
			p->found.each[i].held_top1, "top1", p->found.each[i].top1, "loss", p->found.each[i].loss));
	return json_pack("{s:f, s:f, s:[f,f], s:f, s:f, s:I, s:o}", "top1", b->top1, "top5", b->top5, "top1_interval", low, high, "lr",
		b->base_lr, "loss", b->loss, "steps", (json_int_t)b->iterations, "tried", tried);
}

void probe_attentive_print(const struct probed_attentive *p)
{
	const struct nr_probe_try *b = &p->found.best;
	double low, high;
	nr_wilson(b->top1, p->samples, 1.959963984540054, &low, &high);
	printf("attentive: top-1 %.2f %% (%.2f to %.2f), top-5 %.2f %%; %lld steps with learning rate %g, loss %.4f\n", 100 * b->top1,
		100 * low, 100 * high, 100 * b->top5, (long long)b->iterations, b->base_lr, b->loss);
}
