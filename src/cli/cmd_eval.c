/* norma eval CKPT: scores on a split, with running, batch or newly measured statistics. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "class_tables.h"
#include "infer/metrics.h"
#include "model_flags.h"
#include "predict_texts.h"
#include "segments.h"

enum { RUNNING, BATCH, RECOMPUTE };
enum { MOST_COUNTED = 4096 };                   /* classes whose confusion is counted unasked: 128 MiB */
struct eval { struct cli_model m; int32_t stats; int64_t stats_batches; bool confusion; struct cli_view view; };

static const char *const kinds[] = { "running", "batch", "recompute", NULL };
static const struct nr_option options[] = {
	CLI_MODEL_OPTIONS(struct eval, m),
	NR_OPT_ENUM(struct eval, stats, "running", kinds,
		"statistics of batchwise norms: running ones, the batch's own, or measured again"),
	NR_OPT_INT(struct eval, stats_batches, 50, 1, 1000000, "training batches used by recompute"),
	NR_OPT_BOOL(struct eval, confusion, "0", "print the confusion matrix; rows are true classes"),
	CLI_VIEW_OPTIONS(struct eval, view),
	NR_OPT_END
};

/* Norms that were put in place of others have statistics of nothing. */
static void hint_statistics(const struct nr_store *s)
{
	int64_t all = 0, first = 0;
	for (int64_t i = 0; i < nr_store_count(s); i++) {
		const struct nr_entry *e = nr_store_at(s, i);
		const char *dot = strrchr(e->name, '.');
		if (!e->buffer || !dot || strcmp(dot + 1, "running_mean") != 0) continue;
		int64_t k = 0;
		while (k < e->count && nr_value(e)[k] == 0) k++;
		all++;
		first += k == e->count;
	}
	if (first) nr_log_line(NR_LOG_WARNING,
		"the running statistics of %lld of %lld norms were never measured: --stats recompute does so",
		(long long)first, (long long)all);
}

static int print_score(const struct eval *v, const struct cli_opened *o, const char *path,
	const struct nr_score *s, const int64_t *confusion, struct nr_error *err)
{
	const struct nr_class_counts told = { nr_model_int(&o->w->model, "classes"), confusion, o->source->class_name };
	if (v->m.json) {
		json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:I}", "file", path, "data",
			o->source->of->name, "split", nr_split_name(o->e.split), "stats", kinds[v->stats],
			"top1", s->top1, "top5", s->top5, "nll", s->loss, "ece", s->ece, "samples",
			(json_int_t)s->samples);
		if (confusion) cli_json_classes(j, &told, v->confusion);
		return cli_print_json(j, err);
	}
	printf("%s on %s/%s, %lld samples, %s statistics\n", path, o->source->of->name, nr_split_name(o->e.split), (long long)s->samples,
		kinds[v->stats]);
	printf("top-1 %s%.2f %%%s   top-5 %.2f %%   NLL %.4f   calibration error %.2f %%", cli_bold(),
		100 * s->top1, cli_plain(), 100 * s->top5, s->loss, 100 * s->ece);
	if (confusion) printf("   macro-F1 %.2f %%", 100 * nr_metric_macro_f1(told.classes, confusion));
	putchar('\n');
	if (confusion) cli_print_classes(&told, v->confusion);
	return NR_OK;
}

static int measure(struct cli *c, const struct cli_model *m, struct cli_opened *o, const char *path)
{
	const struct eval *v = (const struct eval *)(const void *)m;
	if (o->w->segment) {
		if (v->stats != RUNNING) return cli_usage(c, "--stats does not apply to a model of segmentation");
		return cli_eval_segments(c, o, &v->view, v->confusion, v->m.json, path);
	}
	if (cli_view_given(&v->view)) return cli_usage(c, "--view, --side and --stride are for models of `norma segment`");
	if (o->w->model.of->reads == NR_TEXTS) {
		nr_progress_release(&o->bar);
		if (v->stats != RUNNING) return cli_usage(c, "--stats does not apply to a model that reads texts");
		return cli_eval_texts(c, o->w, path, o->source, o->e.split, o->e.count, &(struct eval_texts){ v->m.json, v->confusion });
	}
	const int64_t K = nr_model_int(&o->w->model, "classes");
	const bool counts = v->confusion || K <= MOST_COUNTED;
	int64_t *confusion = counts ? calloc((size_t)(K * K), sizeof *confusion) : NULL;
	if (counts && !confusion) return nr_fail(c->err, NR_EMEMORY, "cannot evaluate", path, "out of memory");
	struct nr_runner r = { 0 };
	struct nr_score s;
	int code = NR_OK;
	if (v->stats == RUNNING) hint_statistics(o->w->store);
	if (v->stats == RECOMPUTE) code = cli_model_recompute(c, o, v->m.batch, v->stats_batches);
	o->e.stats = v->stats == BATCH ? NR_STATS_BATCH : NR_STATS_RUNNING;
	o->e.confusion = confusion;
	if (!code) code = nr_runner_open(&r, o->w, v->m.batch, c->err);
	if (!code) code = nr_evaluate(&r, &o->e, &s, c->err);
	nr_progress_release(&o->bar);
	if (!code) code = print_score(v, o, path, &s, confusion, c->err);
	nr_runner_close(&r);
	free(confusion);
	return code;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args) { return cli_model_run(c, conf, args, measure); }

const struct cli_command cli_eval = {
	.name = "eval",
	.title = "accuracy, likelihood and calibration of a trained model",
	.usage = "CHECKPOINT",
	.about = "Scores a checkpoint on a split. --stats shows the effect of batch statistics: `running` uses the statistics kept\n"
		 "in training, `batch` those of each evaluation batch, `recompute` first measures them again on training data.\n"
		 "The difference is what batchwise norms lose between training and use.\n"
		 "\n"
		 "It prints accuracy, precision and F1 of each class and their mean (macro-F1), which does not favour frequent\n"
		 "classes; --confusion prints who is taken for whom, --json has all of it.\n"
		 "\n"
		 "A model of `norma segment` is scored by mean IoU and the IoU of each class.\n"
		 "\n"
		 "A model of `norma text` is scored by accuracy, F1 and Matthews' correlation, or by Spearman's and Pearson's.",
	.conf_size = sizeof(struct eval),
	.options = options,
	.run = run,
};
