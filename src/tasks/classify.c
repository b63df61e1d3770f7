/* classify: a linear head on what the model pools, and cross entropy: softmax, or a sigmoid for each class as big_vision has it
 * (arXiv:2106.10270). Labels may be smoothed or mixed by the loader. */
#include <stdlib.h>

#include "norma/nn.h"
#include "tasks/tasks.h"
#include "train/floats.h"
#include "train/metrics.h"

struct classify {
	nr_t *image, *label, *target, *logits;          /* label or target is NULL */
	struct nr_runner eval;
	int32_t *rank;
};

static int settle(struct nr_task_run *r, struct nr_error *err)
{
	if (nr_model_expect(&r->w->model, NR_READS_IMAGE, err)) return err->code;
	if (r->source->classes < 1) return nr_fail(err, NR_EVALUE, "cannot classify", r->c->data, "it has no labels");
	return nr_task_set(r, "classes", r->source->classes, err) ? (int)err->code : nr_task_set(r, "channels", r->source->channels, err);
}

static nr_t *loss_of(struct nr_net *n, const struct classify *s, const struct nr_train *c)
{
	if (c->loss == NR_LOSS_SIGMOID) return nr_sigmoid_cross_entropy(n, s->logits, s->target, NR_BCE_MEAN_ROWS);
	if (s->target) return nr_soft_cross_entropy(n, s->logits, s->target);
	return nr_cross_entropy(n, s->logits, s->label, c->smoothing, -1);
}

static nr_t *record(struct nr_task_run *r)
{
	struct classify *s = r->own;
	struct nr_net *n = r->net;
	const struct nr_model_spec *m = &r->w->model;
	const int64_t B = r->c->batch, size = nr_model_int(m, "image");
	s->image = nr_input(n, "image", NR_REAL, 4, B, nr_model_int(m, "channels"), size, size);
	if (r->c->mixup > 0 || r->c->cutmix > 0 || r->c->loss == NR_LOSS_SIGMOID)
		s->target = nr_input(n, "target", NR_REAL, 2, B, nr_model_int(m, "classes"));
	else s->label = nr_input(n, "label", NR_I32, 1, B);
	s->logits = nr_tap(n, "logits", nr_model_logits(n, m, &(struct nr_inputs){ .image = s->image }));
	struct nr_entry *head = nr_store_find(r->w->store, "head.weight"), *bias = nr_store_find(r->w->store, "head.bias");
	if (head && r->c->zero_head) head->init = NR_ZEROS | (head->init & ~NR_INIT_KIND);
	if (bias && r->c->head_bias != 0) bias->init = NR_ONES | NR_NO_DECAY, bias->value = r->c->head_bias;
	return loss_of(n, s, r->c);
}

static int ready(struct nr_task_run *r, int64_t batch, struct nr_error *err)
{
	struct classify *s = r->own;
	if (!(s->rank = malloc((size_t)r->c->batch * sizeof *s->rank)))
		return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	return nr_runner_open(&s->eval, r->w, batch, err);
}

static void bind(struct nr_task_run *r, const struct nr_batch *b, int64_t number)
{
	const struct classify *s = r->own;
	const int64_t B = r->c->batch, K = nr_cols(s->logits);
	(void)number;
	nr_from_floats(nr_plan_data(r->plan, s->image), b->image, nr_len(s->image));
	if (s->label) memcpy(nr_plan_data(r->plan, s->label), b->label, (size_t)B * sizeof *b->label);
	real *target = s->target ? nr_plan_data(r->plan, s->target) : NULL;
	if (target && b->target) nr_from_floats(target, b->target, B * K);
	else if (target)                                /* nothing is mixed, but the sigmoid loss wants a row per sample */
		for (int64_t i = 0; i < B * K; i++)
			target[i] = (real)(r->c->smoothing / (double)K + (i % K == b->label[i / K] ? 1 - r->c->smoothing : 0));
}

static void measure(struct nr_task_run *r, const struct nr_batch *b, double *sum)
{
	const struct classify *s = r->own;
	nr_metric_rank(r->c->batch, nr_cols(s->logits), nr_plan_data(r->plan, s->logits), b->label, s->rank);
	for (int64_t i = 0; i < r->c->batch; i++) sum[0] += s->rank[i] < 1;
}

static int evaluate(struct nr_task_run *r, const struct nr_evaluation *e, double *value, int64_t *samples, struct nr_error *err)
{
	struct classify *s = r->own;
	struct nr_score score;
	if (nr_evaluate(&s->eval, e, &score, err)) return err->code;
	value[0] = score.loss;
	value[1] = score.top1;
	value[2] = score.top5;
	value[3] = score.ece;
	*samples = score.samples;
	return NR_OK;
}

static void close(struct nr_task_run *r)
{
	struct classify *s = r->own;
	nr_runner_close(&s->eval);
	free(s->rank);
}

static const struct nr_task_metric of_step[] = { { "top1", "acc", true }, { NULL, NULL, false } };
static const struct nr_task_metric of_eval[] = { { "loss", NULL, false }, { "top1", "eval", true }, { "top5", NULL, true },
	{ "ece", NULL, true }, { NULL, NULL, false } };

const struct nr_task nr_task_classify = {
	.name = "classify", .title = "classification of pictures", .own_size = sizeof(struct classify), .of_step = of_step,
	.of_eval = of_eval, .decides = 1, .settle = settle, .record = record, .ready = ready, .bind = bind, .measure = measure,
	.evaluate = evaluate, .close = close,
};
