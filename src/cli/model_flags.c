/* See model_flags.h. */
#include "model_flags.h"

#include "base/yaml.h"
#include "data/listed.h"
#include "ranks.h"
#include "surgery/recalibrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int show(void *context, int64_t done, int64_t of)
{
	struct nr_progress *bar = context;
	bar->total = of;
	nr_progress_update(bar, done, NULL);
	return 0;
}

struct nr_evaluation cli_model_split(struct cli_opened *o, enum nr_split split, const char *label)
{
	struct nr_evaluation e = o->e;
	e.split = split;
	e.count = 0;
	nr_progress_release(&o->bar);
	nr_progress_init(&o->bar, stderr, label, 1, 0);
	e.watch = show;
	e.context = &o->bar;
	return e;
}

static int choose_split(const struct cli_model *m, const struct nr_source *s, struct nr_error *err)
{
	if (strcmp(m->split, "auto")) return nr_split_find(m->split, err);
	const bool alone = s->of->kind == NR_TEXTS || m->split_alone;
	return s->count[NR_TEST] ? NR_TEST : s->count[NR_VAL] || !alone ? NR_VAL : NR_TRAIN;
}

/* One per line; as many as the model has classes. */
static int read_names(struct cli *c, const char *file, struct nr_weights *w)
{
	const int64_t classes = nr_model_int(&w->model, "classes");
	size_t size;
	char *text = nr_yaml_load(file, &size, c->arena, c->err);
	char **name = text ? nr_arena_alloc(w->arena, ((size_t)classes + 1) * sizeof *name) : NULL;
	int64_t n = 0;
	if (!text) return c->err->code;
	if (!name) return nr_fail(c->err, NR_EMEMORY, "cannot read", file, "out of memory");
	for (char *line = text; *line;) {
		char *end = line + strcspn(line, "\r\n"), *next = end + strspn(end, "\r\n");
		*end = 0;
		if (*line && n < classes && !(name[n] = nr_arena_strdup(w->arena, line)))
			return nr_fail(c->err, NR_EMEMORY, "cannot read", file, "out of memory");
		n += *line != 0;
		line = next;
	}
	if (n != classes)
		return nr_fail(c->err, NR_EVALUE, "cannot use the names", file, "there are %lld for the %lld classes of the model",
			(long long)n, (long long)classes);
	name[n] = NULL;
	w->class_name = name;
	return NR_OK;
}

int cli_model_open(struct cli_opened *o, struct cli *c, const struct cli_model *m, const char *path)
{
	*o = (struct cli_opened){ .bar = { .out = NULL } };
	const struct nr_weights_how how = { .model = m->model, .norms = m->norm, .resample = m->resample, .detector = m->detector };
	if (nr_weights_open(&o->w, path, &how, c->err)) return c->err->code;
	if (m->names && *m->names && read_names(c, m->names, o->w)) return c->err->code;
	const char *data = *m->data ? m->data : o->w->data;
	if (!data) {
		cli_usage(c, "the file does not say what it was trained on");
		return nr_hint(c->err, "name a data set: --data %s", o->w->model.of->reads == NR_TEXTS ? "text:path=FILE" : "cifar10");
	}
	if (nr_source_open(&o->source, data, *m->data_root ? m->data_root : NULL, c->err)) return c->err->code;
	int64_t names = 0;
	while (o->w->class_name && o->w->class_name[names]) names++;
	if (names && nr_weights_has_head(o->w) &&
		nr_source_relabel(o->source, o->w->class_name, (int32_t)names, c->err)) return c->err->code;
	const int split = choose_split(m, o->source, c->err);
	if (split < 0) return c->err->code;
	/* as in the evaluation of the training */
	const struct nr_augment *view = &o->w->view;
	struct nr_augment a = nr_augment_for_eval(view, nr_model_int(&o->w->model, "image"),
		(int32_t)nr_model_int(&o->w->model, "channels"),
		m->crop_share > 0 ? m->crop_share : view->crop_share);
	a.normalize = o->w->normalize;
	o->e = (struct nr_evaluation){ .source = o->source, .augment = a, .workers = (int)m->workers, .comm = c->comm };
	o->e = cli_model_split(o, (enum nr_split)split, "eval");
	o->e.count = m->limit && m->limit < o->source->count[split] ? m->limit : 0;
	return o->source->count[split] ? NR_OK
				       : nr_fail(c->err, NR_EVALUE, "no samples in the split",
						 nr_split_name((enum nr_split)split), NULL);
}

void cli_model_close(struct cli_opened *o)
{
	nr_progress_release(&o->bar);
	nr_source_close(o->source);
	nr_weights_close(o->w);
	*o = (struct cli_opened){ 0 };
}

int cli_model_run(struct cli *c, const struct cli_model *m, const struct nr_list *args,
	int (*measure)(struct cli *, const struct cli_model *m, struct cli_opened *, const char *path))
{
	if (args->count != 1) return cli_usage(c, "one checkpoint is needed, not %d", (int)args->count);
	cli_bound_spin(c);
	struct cli_opened o = { .w = NULL };
	int code = cli_ranks_open(c, &c->comm);
	if (!code) code = cli_model_open(&o, c, m, args->item[0]);
	if (!code) code = measure(c, m, &o, args->item[0]);
	cli_model_close(&o);
	cli_ranks_close(c, c->comm);
	return code;
}

int cli_model_features(struct cli *c, const struct cli_model *m, struct cli_opened *o, int64_t limit, struct nr_feature_set *train,
	struct nr_feature_set *test)
{
	struct nr_evaluation e = cli_model_split(o, NR_TRAIN, "train features");
	e.count = limit && limit < o->source->count[NR_TRAIN] ? limit : 0;
	int code = nr_features_of(train, o->w, &e, m->batch, c->err);
	if (!code) {
		e = cli_model_split(o, o->e.split, "features");
		e.count = o->e.count;
		code = nr_features_of(test, o->w, &e, m->batch, c->err);
	}
	nr_progress_release(&o->bar);
	return code;
}

int cli_model_recompute(struct cli *c, struct cli_opened *o, int64_t batch, int64_t batches)
{
	struct nr_evaluation train = o->e;
	int64_t changed = 0;
	train.split = NR_TRAIN;
	train.count = 0;
	const int code = nr_recalibrate(o->w, &train, batch, batches, &changed, c->err);
	if (!code && !changed) fprintf(stderr, "norma: warning: the model keeps no running statistics\n");
	return code;
}
