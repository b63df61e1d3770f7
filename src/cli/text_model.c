/* A text model for the commands that embed: see text_model.h. */
#include "text_model.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/progress.h"
#include "data/dataset.h"
#include "infer/finite.h"
#include "infer/weights.h"
#include "norma/tokenizer.h"

const char *const cli_text_poolers[] = { "auto", "cls", "cls_before_pooler", "avg", "avg_top2", "avg_first_last", NULL };

int cli_embedder_open(struct cli *c, struct cli_embedder *o, const struct cli_text *t, const char *path)
{
	const char *file = nr_weights_path(path, c->arena);
	*o = (struct cli_embedder){ 0 };
	if (!file) return nr_fail(c->err, NR_EMEMORY, "cannot load", path, "out of memory");
	cli_bound_spin(c);
	const struct nr_weights_how how_weights = { .model = t->model, .norms = t->norm, .texts = true };
	if (nr_weights_open(&o->w, file, &how_weights, c->err)) return c->err->code;
	if (nr_model_expect(&o->w->model, NR_TEXTS, c->err)) return c->err->code;     /* before its tokenizer is looked for */
	nr_store_fix(o->w->store);
	if (nr_tokenizer_open(&o->tokenizer, *t->tokenizer ? t->tokenizer : file, c->err)) {
		if (!*t->tokenizer) nr_hint(c->err, "--tokenizer names vocab.txt, tokenizer.json or a folder with one");
		return c->err->code;
	}
	struct nr_text_runner_how how = { .max_length = t->max_length };
	if (nr_text_runner_pool_by(&how, o->w, t->pooler ? cli_text_poolers[t->pooler] : NULL, c->err)) return c->err->code;
	o->pooling = how.pooling;
	o->layer = how.layer;
	return nr_text_runner_open(&o->e, o->w, o->tokenizer, &how, c->err);
}

void cli_embedder_close(struct cli_embedder *o)
{
	nr_text_runner_close(o->e);
	nr_tokenizer_close(o->tokenizer);
	nr_weights_close(o->w);
}

static int tell(void *context, int64_t done, int64_t of)
{
	(void)of;
	nr_progress_update(context, done, NULL);
	return 0;
}

int cli_embed_texts(void *context, const char *const *text, int64_t n, real *out, struct nr_error *err)
{
	struct cli_embedding *of = context;
	struct nr_progress bar;
	const double began = nr_clock();
	nr_progress_init(&bar, stderr, of->what, n, 0);
	const int64_t width = nr_text_runner_width(of->of->e);
	nr_text_runner_watch(of->of->e, tell, &bar);
	int code = nr_text_runner_run(of->of->e, text, n, out, err);
	nr_text_runner_watch(of->of->e, NULL, NULL);
	nr_progress_release(&bar);
	for (int64_t i = 0; !code && i < n * width; i++) {
		if (isfinite(out[i])) continue;
		const char *tensor = nr_store_first_bad(of->of->w->store);
		code = nr_fail(err, NR_EDIVERGED, "cannot embed", of->what, "the embedding of text %lld is not finite: '%.60s'",
			(long long)(i / width) + 1, text[i / width]);
		if (tensor) nr_hint(err, "the tensor '%s' has values that are not finite", tensor);
	}
	of->texts += n;
	of->seconds += nr_clock() - began;
	return code;
}

static bool wanted(const struct nr_list *names, const char *name)
{
	for (int64_t i = 0; i < names->count; i++)
		if (!strcmp(names->item[i], name)) return true;
	return !names->count;
}

int cli_judge(struct cli *c, const struct cli_judging *by, const struct cli_judge *o, void *of, const struct nr_list *args)
{
	struct cli_judged j = { .path = args->count ? args->item[0] : NULL, .how = { .of = &j.model } };
	if (args->count != 1) return cli_usage(c, "%s needs one model", by->command);
	for (int64_t i = 0; i < o->task.count; i++)
		if (!by->known(o->task.item[i], c->err)) return c->err->code;
	int code = cli_embedder_open(c, &j.model, &o->t, j.path);
	if (!code && !(j.root = nr_data_root(*o->data_root ? o->data_root : NULL, c->arena, c->err))) code = c->err->code;
	if (!code) j.embedder = (struct nr_embedder){ .embed = cli_embed_texts, .context = &j.how, .dim = nr_text_runner_width(j.model.e) };
	for (int i = 0; !code && i < by->tasks; i++) {
		if (!wanted(&o->task, by->name(i))) continue;
		j.how.what = by->name(i);
		code = by->score(of, i, &j, c->err);
	}
	if (!code) code = by->show(c, of, &j);
	cli_embedder_close(&j.model);
	return code;
}
