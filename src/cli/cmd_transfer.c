/* norma transfer MODEL: SentEval's transfer tasks on frozen embeddings. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/transfer.h"
#include "base/progress.h"
#include "base/table.h"
#include "data/dataset.h"
#include "text_model.h"

static const char *const protocols[] = { "convex", "senteval", "fast", NULL };
struct transfer { struct cli_text t; char *data_root; struct nr_list task; int32_t protocol; int64_t seed; bool sentences, json; };
static const struct nr_option options[] = {
	CLI_TEXT_MODEL_OPTIONS(struct transfer, t),
	CLI_TEXT(struct transfer, data_root, "", "DIR",
		"folder of the data sets, with senteval in it; default $NORMA_DATA, else ~/.cache/norma/data"),
	NR_OPT_LIST(struct transfer, task, "only these of MR, CR, SUBJ, MPQA, SST2, TREC, MRPC; may be repeated"),
	NR_OPT_ENUM(struct transfer, protocol, "convex", protocols,
		"logistic regression to convergence, without chance; or SentEval's own, with its draws; fast: SentEval's quick one"),
	NR_OPT_INT(struct transfer, seed, 1111, 0, 9e15, "of SentEval's draws"),
	NR_OPT_BOOL(struct transfer, sentences, "0", "SST2: train on whole sentences instead of phrases"),
	NR_OPT_BOOL(struct transfer, json, "0", "one line of JSON"),
	NR_OPT_END
};

static bool wanted(const struct transfer *o, const struct nr_senteval_task *t)
{
	for (int64_t i = 0; i < o->task.count; i++)
		if (nr_senteval_find(o->task.item[i], NULL) == t) return true;
	return !o->task.count;
}

static void tell(void *context, int64_t done, int64_t of)
{
	struct nr_progress *bar = context;
	bar->total = of;
	nr_progress_update(bar, done, NULL);
}

static json_t *task_json(const struct nr_transfer_score *s)
{
	json_t *j = json_pack("{s:f, s:f, s:I, s:I}", "accuracy", s->accuracy, "dev", s->dev, "rows", (json_int_t)s->rows, "tests",
		(json_int_t)s->tests);
	json_t *folds = json_array(), *strengths = json_array();
	for (int i = 0; i < s->folds; i++) {
		json_array_append_new(folds, json_real(s->fold[i]));
		json_array_append_new(strengths, json_real(s->strength[i]));
	}
	if (isfinite(s->f1)) json_object_set_new(j, "f1", json_real(s->f1));
	json_object_set_new(j, "folds", folds);
	json_object_set_new(j, "strength", strengths);
	return j;
}

static int show(struct cli *c, const struct transfer *o, const struct cli_embedder *e, const char *path,
	const struct nr_transfer_score *score, int n, double average)
{
	if (o->json) {
		json_t *j = json_pack("{s:s, s:s, s:s, s:f}", "file", path, "pooler", nr_text_poolings[e->pooling], "protocol",
			protocols[o->protocol], "average", average);
		for (int i = 0; i < n; i++) json_object_set_new(j, score[i].task->name, task_json(&score[i]));
		return cli_print_json(j, c->err);
	}
	struct nr_table *t = nr_table_make();
	static const char *const titles[] = { "task", "rows", "accuracy", "F1", "dev" };
	for (int i = 0; i < 5; i++) nr_table_column(t, titles[i], i ? NR_RIGHT : NR_LEFT);
	for (int i = 0; i < n; i++) {
		nr_table_cell(t, "%s", score[i].task->name);
		nr_table_cell(t, "%lld", (long long)score[i].rows);
		nr_table_cell(t, "%.2f %%", score[i].accuracy);
		nr_table_cell(t, isfinite(score[i].f1) ? "%.2f %%" : "", score[i].f1);
		nr_table_cell(t, "%.2f %%", score[i].dev);
	}
	printf("%s, pooled by %s, protocol %s\n", path, nr_text_poolings[e->pooling], protocols[o->protocol]);
	cli_print_table(t);
	if (n > 1) printf("average of accuracy over %d tasks: %s%.2f %%%s\n", n, cli_bold(), average, cli_plain());
	return NR_OK;
}

static int evaluate(struct cli *c, const struct transfer *o, struct cli_embedder *e, const char *path)
{
	struct nr_transfer_score score[NR_SENTEVAL_TASKS];
	struct cli_embedding how = { .of = e };
	const struct nr_embedder embedder = { .embed = cli_embed_texts, .context = &how, .dim = nr_text_runner_width(e->e) };
	const char *root = nr_data_root(*o->data_root ? o->data_root : NULL, c->arena, c->err);
	double sum = 0;
	int n = 0;
	if (!root) return c->err->code;
	for (int i = 0; i < NR_SENTEVAL_TASKS; i++) {
		if (!wanted(o, &nr_senteval_tasks[i])) continue;
		struct nr_progress bar;
		const struct nr_transfer with = { .protocol = (enum nr_transfer_protocol)o->protocol, .root = root,
			.sentences = o->sentences, .seed = (uint64_t)o->seed, .tell = tell, .context = &bar };
		how.what = nr_senteval_tasks[i].name;
		nr_progress_init(&bar, stderr, how.what, 1, 0);
		const int code = nr_transfer_evaluate(&score[n], &with, &nr_senteval_tasks[i], &embedder, c->err);
		nr_progress_release(&bar);
		if (code) return code;
		sum += score[n++].accuracy;
	}
	return show(c, o, e, path, score, n, sum / n);
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct transfer *o = conf;
	struct cli_embedder e = { 0 };
	if (args->count != 1) return cli_usage(c, "transfer needs one model");
	for (int64_t i = 0; i < o->task.count; i++)
		if (!nr_senteval_find(o->task.item[i], c->err)) return c->err->code;
	int code = cli_embedder_open(c, &e, &o->t, args->item[0]);
	if (!code) code = evaluate(c, o, &e, args->item[0]);
	cli_embedder_close(&e);
	return code;
}

const struct cli_command cli_transfer = {
	.name = "transfer",
	.title = "linear classifiers on frozen sentence embeddings (SentEval's MR, CR, SUBJ, MPQA, SST2, TREC, MRPC)",
	.usage = "CHECKPOINT",
	.about = "The convex protocol has no chance in it: logistic regression solved to convergence, its strength chosen by fixed\n"
		 "folds or the development set. --protocol senteval is the one that papers use: a softmax layer by Adam with early\n"
		 "stopping and random folds; it differs by half a point from draw to draw.",
	.conf_size = sizeof(struct transfer),
	.options = options,
	.run = run,
};
