/* norma sts MODEL: semantic textual similarity, no training. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/sts.h"
#include "base/table.h"
#include "data/dataset.h"
#include "text_model.h"

struct sts { struct cli_text t; char *data_root; struct nr_list task; bool raw, subsets, json; };
static const struct nr_option options[] = {
	CLI_TEXT_MODEL_OPTIONS(struct sts, t),
	CLI_TEXT(struct sts, data_root, "", "DIR",
		"folder of the data sets, with sts in it; default $NORMA_DATA, else ~/.cache/norma/data"),
	NR_OPT_LIST(struct sts, task, "only these of STS12 to STS16, STSB, SICK; may be repeated"),
	NR_OPT_BOOL(struct sts, raw, "0", "original, cased text instead of the tokenized one that SentEval has"),
	NR_OPT_BOOL(struct sts, subsets, "0", "a line for each subset too"),
	NR_OPT_BOOL(struct sts, json, "0", "one line of JSON"),
	NR_OPT_END
};

static bool wanted(const struct sts *o, const struct nr_sts_task *t)
{
	for (int64_t i = 0; i < o->task.count; i++)
		if (nr_sts_find(o->task.item[i], NULL) == t) return true;
	return !o->task.count;
}

static void cell(struct nr_table *t, double v) { nr_table_cell(t, isfinite(v) ? "%.2f" : "", v); }

static void add_rows(struct nr_table *t, const struct nr_sts_score *s, bool subsets)
{
	nr_table_cell(t, "%s", s->task->name);
	nr_table_cell(t, "%lld", (long long)s->pairs);
	cell(t, s->all.spearman);
	cell(t, s->task->splits ? NAN : s->mean.spearman);
	cell(t, s->task->splits ? NAN : s->wmean.spearman);
	cell(t, s->all.pearson);
	for (int i = 0; subsets && i < s->subsets; i++) {
		nr_table_cell(t, "  %s", s->subset[i].name);
		nr_table_cell(t, "%lld", (long long)s->subset[i].pairs);
		cell(t, s->subset[i].with.spearman);
		nr_table_cell(t, "%s", "");
		nr_table_cell(t, "%s", "");
		cell(t, s->subset[i].with.pearson);
	}
}

static json_t *task_json(const struct nr_sts_score *s)
{
	json_t *subsets = json_object();
	for (int i = 0; i < s->subsets; i++)
		json_object_set_new(subsets, s->subset[i].name, json_pack("{s:I, s:o, s:o}", "pairs", (json_int_t)s->subset[i].pairs,
			"spearman", nr_json_number(s->subset[i].with.spearman), "pearson", nr_json_number(s->subset[i].with.pearson)));
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "pairs", (json_int_t)s->pairs, "spearman", nr_json_number(s->all.spearman),
		"mean", nr_json_number(s->mean.spearman), "wmean", nr_json_number(s->wmean.spearman), "pearson",
		nr_json_number(s->all.pearson), "subsets", subsets);
}

static int evaluate(struct cli *c, const struct sts *o, struct cli_embedder *e, const char *path)
{
	struct nr_sts_score score[NR_STS_TASKS];
	struct cli_embedding how = { .of = e };
	const struct nr_embedder embedder = { .embed = cli_embed_texts, .context = &how, .dim = nr_text_runner_width(e->e) };
	const char *root = nr_data_root(*o->data_root ? o->data_root : NULL, c->arena, c->err);
	double sum = 0;
	int n = 0;
	if (!root) return c->err->code;
	for (int i = 0; i < NR_STS_TASKS; i++) {
		if (!wanted(o, &nr_sts_tasks[i])) continue;
		how.what = nr_sts_tasks[i].name;
		if (nr_sts_evaluate(&score[n], &nr_sts_tasks[i], &embedder, root, o->raw, c->err)) return c->err->code;
		sum += score[n++].all.spearman;
	}
	if (o->json) {
		json_t *j = json_pack("{s:s, s:s, s:s, s:o, s:I, s:f}", "file", path, "pooler", nr_text_poolings[e->pooling], "text",
			o->raw ? "raw" : "tokenized", "average", nr_json_number(sum / n), "texts", (json_int_t)how.texts, "seconds",
			how.seconds);
		for (int i = 0; i < n; i++) json_object_set_new(j, score[i].task->name, task_json(&score[i]));
		return cli_print_json(j, c->err);
	}
	struct nr_table *t = nr_table_make();
	static const char *const titles[] = { "task", "pairs", "Spearman", "mean", "wmean", "Pearson" };
	for (int i = 0; i < 6; i++) nr_table_column(t, titles[i], i ? NR_RIGHT : NR_LEFT);
	for (int i = 0; i < n; i++) add_rows(t, &score[i], o->subsets);
	printf("%s, pooled by %s%s, %s text; correlations x 100\n", path, nr_text_poolings[e->pooling], e->layer ? " and its layer" : "",
		o->raw ? "original" : "tokenized");
	cli_print_table(t);
	if (n > 1) printf("average of Spearman over %d tasks: %s%.2f%s\n", n, cli_bold(), sum / n, cli_plain());
	printf("%lld sentences in %.1f s\n", (long long)how.texts, how.seconds);
	return NR_OK;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct sts *o = conf;
	struct cli_embedder e = { 0 };
	if (args->count != 1) return cli_usage(c, "sts needs one model");
	for (int64_t i = 0; i < o->task.count; i++)
		if (!nr_sts_find(o->task.item[i], c->err)) return c->err->code;
	int code = cli_embedder_open(c, &e, &o->t, args->item[0]);
	if (!code) code = evaluate(c, o, &e, args->item[0]);
	cli_embedder_close(&e);
	return code;
}

const struct cli_command cli_sts = {
	.name = "sts",
	.title = "similarity of sentences against people's scores (STS12-16, STS-B, SICK-R)",
	.usage = "CHECKPOINT",
	.about = "Embeds both sentences of each pair and correlates their cosine with the score that people gave, as SentEval and\n"
		 "SimCSE do: Spearman over all pairs of a task, the mean over its subsets and the mean weighted by pairs; of STS-B and\n"
		 "SICK the test split. The average over the seven tasks is the number that papers report.",
	.conf_size = sizeof(struct sts),
	.options = options,
	.run = run,
};
