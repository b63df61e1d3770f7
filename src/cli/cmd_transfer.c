/* norma transfer MODEL: SentEval's transfer tasks on frozen embeddings. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/transfer.h"
#include "base/progress.h"
#include "base/table.h"
#include "text_model.h"

static const char *const protocols[] = { "convex", "senteval", "fast", NULL };
struct transfer { struct cli_judge by; int32_t protocol; int64_t seed; bool sentences, json; };
static const struct nr_option options[] = {
	CLI_JUDGE_OPTIONS(struct transfer, by, "senteval", "MR, CR, SUBJ, MPQA, SST2, TREC, MRPC"),
	NR_OPT_ENUM(struct transfer, protocol, "convex", protocols,
		"convex: logistic regression to convergence, without randomness; senteval: SentEval's own, random; "
		"fast: its quick form"),
	NR_OPT_INT(struct transfer, seed, 1111, 0, 9e15, "seed of SentEval's protocol"),
	NR_OPT_BOOL(struct transfer, sentences, "0", "SST2: train on whole sentences instead of phrases"),
	NR_OPT_BOOL(struct transfer, json, "0", "print one line of JSON"),
	NR_OPT_END
};

struct scores { const struct transfer *o; struct nr_transfer_score of[NR_SENTEVAL_TASKS]; int n; };

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

static const char *name_of(int task) { return nr_senteval_tasks[task].name; }
static bool known(const char *name, struct nr_error *err) { return nr_senteval_find(name, err) != NULL; }

static int score(void *of, int task, const struct cli_judged *j, struct nr_error *err)
{
	struct scores *s = of;
	struct nr_progress bar;
	const struct nr_transfer with = { .protocol = (enum nr_transfer_protocol)s->o->protocol, .root = j->root,
		.sentences = s->o->sentences, .seed = (uint64_t)s->o->seed, .tell = tell, .context = &bar };
	nr_progress_init(&bar, stderr, j->how.what, 1, 0);
	const int code = nr_transfer_evaluate(&s->of[s->n++], &with, &nr_senteval_tasks[task], &j->embedder, err);
	nr_progress_release(&bar);
	return code;
}

static int show(struct cli *c, const void *of, const struct cli_judged *j)
{
	const struct scores *s = of;
	const char *pooling = nr_text_poolings[j->model.pooling], *protocol = protocols[s->o->protocol];
	double average = 0;
	for (int i = 0; i < s->n; i++) average += s->of[i].accuracy / s->n;
	if (s->o->json) {
		json_t *out = json_pack("{s:s, s:s, s:s, s:f}", "file", j->path, "pooler", pooling, "protocol", protocol, "average",
			average);
		for (int i = 0; i < s->n; i++) json_object_set_new(out, s->of[i].task->name, task_json(&s->of[i]));
		return cli_print_json(out, c->err);
	}
	struct nr_table *t = nr_table_make();
	static const char *const titles[] = { "task", "rows", "accuracy", "F1", "dev" };
	for (int i = 0; i < 5; i++) nr_table_column(t, titles[i], i ? NR_RIGHT : NR_LEFT);
	for (int i = 0; i < s->n; i++) {
		nr_table_cell(t, "%s", s->of[i].task->name);
		nr_table_cell(t, "%lld", (long long)s->of[i].rows);
		nr_table_cell(t, "%.2f %%", s->of[i].accuracy);
		nr_table_number(t, s->of[i].f1, " %");
		nr_table_cell(t, "%.2f %%", s->of[i].dev);
	}
	printf("%s, pooled by %s, protocol %s\n", j->path, pooling, protocol);
	cli_print_table(t);
	if (s->n > 1) printf("average of accuracy over %d tasks: %s%.2f %%%s\n", s->n, cli_bold(), average, cli_plain());
	return NR_OK;
}

static const struct cli_judging judging = {
	.command = "transfer", .tasks = NR_SENTEVAL_TASKS, .name = name_of, .known = known, .score = score, .show = show,
};

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct transfer *o = conf;
	struct scores s = { .o = o };
	return cli_judge(c, &judging, &o->by, &s, args);
}

const struct cli_command cli_transfer = {
	.name = "transfer",
	.title = "linear classifiers on frozen sentence embeddings (SentEval)",
	.usage = "CHECKPOINT",
	.about = "The convex protocol involves no randomness: logistic regression solved to convergence, with a regularisation chosen\n"
		 "on fixed folds or the development set. --protocol senteval is the one that papers use: a softmax layer trained by\n"
		 "Adam with early stopping and random folds; it varies by half a point from seed to seed.",
	.conf_size = sizeof(struct transfer),
	.options = options,
	.run = run,
};
