/* norma sts MODEL: semantic textual similarity, no training. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/sts.h"
#include "base/table.h"
#include "text_model.h"

struct sts { struct cli_judge by; bool raw, subsets, json; };
static const struct nr_option options[] = {
	CLI_JUDGE_OPTIONS(struct sts, by, "sts", "STS12 to STS16, STSB, SICK"),
	NR_OPT_BOOL(struct sts, raw, "0", "use the original, cased text instead of SentEval's tokenized text"),
	NR_OPT_BOOL(struct sts, subsets, "0", "also print a line for each subset"),
	NR_OPT_BOOL(struct sts, json, "0", "print one line of JSON"),
	NR_OPT_END
};

struct scores { const struct sts *o; struct nr_sts_score of[NR_STS_TASKS]; int n; };

static void add_rows(struct nr_table *t, const struct nr_sts_score *s, bool subsets)
{
	nr_table_cell(t, "%s", s->task->name);
	nr_table_cell(t, "%lld", (long long)s->pairs);
	nr_table_number(t, s->all.spearman, "");
	nr_table_number(t, s->task->splits ? NAN : s->mean.spearman, "");
	nr_table_number(t, s->task->splits ? NAN : s->wmean.spearman, "");
	nr_table_number(t, s->all.pearson, "");
	for (int i = 0; subsets && i < s->subsets; i++) {
		nr_table_cell(t, "  %s", s->subset[i].name);
		nr_table_cell(t, "%lld", (long long)s->subset[i].pairs);
		nr_table_number(t, s->subset[i].with.spearman, "");
		nr_table_cell(t, "%s", "");
		nr_table_cell(t, "%s", "");
		nr_table_number(t, s->subset[i].with.pearson, "");
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

static const char *name_of(int task) { return nr_sts_tasks[task].name; }
static bool known(const char *name, struct nr_error *err) { return nr_sts_find(name, err) != NULL; }

static int score(void *of, int task, const struct cli_judged *j, struct nr_error *err)
{
	struct scores *s = of;
	return nr_sts_evaluate(&s->of[s->n++], &nr_sts_tasks[task], &j->embedder, j->root, s->o->raw, err);
}

static int show(struct cli *c, const void *of, const struct cli_judged *j)
{
	const struct scores *s = of;
	const struct sts *o = s->o;
	const char *pooling = nr_text_poolings[j->model.pooling];
	double average = 0;
	for (int i = 0; i < s->n; i++) average += s->of[i].all.spearman / s->n;
	if (o->json) {
		json_t *out = json_pack("{s:s, s:s, s:s, s:o, s:I, s:f}", "file", j->path, "pooler", pooling, "text",
			o->raw ? "raw" : "tokenized", "average", nr_json_number(average), "texts", (json_int_t)j->how.texts, "seconds",
			j->how.seconds);
		for (int i = 0; i < s->n; i++) json_object_set_new(out, s->of[i].task->name, task_json(&s->of[i]));
		return cli_print_json(out, c->err);
	}
	struct nr_table *t = nr_table_make();
	static const char *const titles[] = { "task", "pairs", "Spearman", "mean", "wmean", "Pearson" };
	for (int i = 0; i < 6; i++) nr_table_column(t, titles[i], i ? NR_RIGHT : NR_LEFT);
	for (int i = 0; i < s->n; i++) add_rows(t, &s->of[i], o->subsets);
	printf("%s, pooled by %s%s, %s text; correlations x 100\n", j->path, pooling, j->model.layer ? " and its layer" : "",
		o->raw ? "original" : "tokenized");
	cli_print_table(t);
	if (s->n > 1) printf("average of Spearman over %d tasks: %s%.2f%s\n", s->n, cli_bold(), average, cli_plain());
	printf("%lld sentences in %.1f s\n", (long long)j->how.texts, j->how.seconds);
	return NR_OK;
}

static const struct cli_judging judging = {
	.command = "sts", .tasks = NR_STS_TASKS, .name = name_of, .known = known, .score = score, .show = show,
};

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct sts *o = conf;
	struct scores s = { .o = o };
	return cli_judge(c, &judging, &o->by, &s, args);
}

const struct cli_command cli_sts = {
	.name = "sts",
	.title = "sentence similarity against human scores (STS12-16, STS-B, SICK-R)",
	.usage = "CHECKPOINT",
	.about = "Embeds both sentences of each pair and correlates their cosine with human scores, like SentEval and SimCSE:\n"
		 "Spearman over all pairs of a task, the mean over its subsets and the mean weighted by pairs; for STS-B and SICK on\n"
		 "the test split. The average over the seven tasks is the number that papers report.",
	.conf_size = sizeof(struct sts),
	.options = options,
	.run = run,
};
