/* norma zeroshot CKPT: pictures classified by texts that describe the classes. Radford et al. 2021, arXiv:2103.00020, section 3.1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/zeroshot.h"
#include "base/json.h"
#include "base/progress.h"
#include "cli.h"
#include "data/prompts.h"
#include "infer/features.h"
#include "infer/metrics.h"
#include "infer/weights.h"
#include "norma/safetensors.h"
#include "norma/tokenizer.h"
#include "tasks/tower_features.h"

struct zeroshot {
	char *data, *data_root, *split, *names, *templates, *tower, *model, *tower_model, *tokenizer;
	int64_t batch, workers, limit;
	bool json;
};

static const struct nr_option options[] = {
	CLI_TEXT(struct zeroshot, data, "", "NAME", "data set of pictures"),
	CLI_TEXT(struct zeroshot, data_root, "", "DIR", "folder of the data sets"),
	CLI_TEXT(struct zeroshot, split, "auto", "SPLIT", "split to classify; auto: test if there is one, otherwise val"),
	CLI_TEXT(struct zeroshot, names, "", "FILE", "names of the classes, one per line; default: those of the data set"),
	CLI_TEXT(struct zeroshot, templates, "", "FILE", "texts, one per line, {} stands for the name; default: a photo of a {}."),
	CLI_TEXT(struct zeroshot, tower, "", "FILE", "checkpoint of the image tower; default: in the file, or where `norma lit` found it"),
	CLI_TEXT(struct zeroshot, model, "", "MODEL", "model of the text tower, if the file does not name it"),
	CLI_TEXT(struct zeroshot, tower_model, "", "MODEL", "model of the image tower, if its file does not name it"),
	CLI_TEXT(struct zeroshot, tokenizer, "", "PATH", "vocab.txt, tokenizer.json, or a folder with one; default: beside the weights"),
	NR_OPT_INT(struct zeroshot, batch, 64, 1, 1000000, "pictures at once"),
	NR_OPT_INT(struct zeroshot, workers, 1, 1, 64, "threads that prepare batches"),
	NR_OPT_INT(struct zeroshot, limit, 0, 0, 1e15, "use only the first N pictures; 0: all"),
	NR_OPT_BOOL(struct zeroshot, json, "0", "print one line of JSON"), NR_OPT_END
};

struct towers {
	struct nr_weights *text, *image;
	struct nr_tokenizer *tokenizer;
	struct nr_text_runner *runner;
	struct nr_source *source;
	struct nr_prompts prompts;
	enum nr_split split;
	bool projected;                         /* pictures go through the head of their tower: it is part of the model (CLIP) */
	int64_t count, width, scored;
	real *image_at, *of_class;
	int32_t *label;
	double top1, top5;
};

/* The file that `norma lit` trained against, as the checkpoint tells; NULL: it does not. */
static const char *tower_of(struct cli *c, const char *path, const char **model)
{
	struct nr_st_file *f;
	if (nr_st_open(&f, path, c->err)) return NULL;
	const char *tower = nr_st_metadata(f, "norma.tower"), *text = nr_st_metadata(f, "norma.tower_model");
	tower = tower ? nr_arena_strdup(c->arena, tower) : NULL;
	*model = tower && text ? nr_arena_strdup(c->arena, text) : NULL;
	nr_st_close(f);
	return tower;
}

static int open_towers(struct cli *c, const struct zeroshot *o, const char *given, struct towers *t)
{
	const char *path = nr_weights_path(given, c->arena), *model = NULL;
	if (!path) return nr_fail(c->err, NR_EMEMORY, "cannot load", given, "out of memory");
	if (nr_weights_open(&t->text, path, &(struct nr_weights_how){ .model = o->model, .texts = true }, c->err)) return c->err->code;
	if (t->text->model.of->reads != NR_TEXTS) {
		nr_fail(c->err, NR_EVALUE, "cannot describe classes with", given, "it has no text tower");
		return nr_hint(c->err, "give a file of CLIP or SigLIP, or a run of `norma lit`");
	}
	if (!nr_weights_has_head(t->text)) return nr_fail(c->err, NR_EVALUE, "cannot describe classes with", given,
		"its text tower has no projection to the width of pictures");
	const char *trained = tower_of(c, path, &model), *tower = *o->tower ? o->tower : trained ? trained : path;
	if (c->err->code) return c->err->code;
	if (*o->tower_model) model = o->tower_model;
	else if (*o->tower && strcmp(o->tower, trained ? trained : "")) model = NULL;
	if (nr_weights_open(&t->image, tower, &(struct nr_weights_how){ .model = model }, c->err)) {
		if (trained && !*o->tower) nr_hint(c->err, "if the image tower was moved, --tower says where it is");
		return c->err->code;
	}
	if (nr_model_expect(&t->image->model, NR_PICTURES, c->err)) return c->err->code;
	t->projected = !trained && nr_weights_has_head(t->image);
	nr_store_fix(t->text->store);
	nr_store_fix(t->image->store);
	if (nr_tokenizer_open(&t->tokenizer, *o->tokenizer ? o->tokenizer : path, c->err)) {
		if (!*o->tokenizer) nr_hint(c->err, "--tokenizer names vocab.txt, tokenizer.json or a folder with one");
		return c->err->code;
	}
	return nr_text_runner_open(&t->runner, t->text, t->tokenizer, &(struct nr_text_runner_how){ .logits = true }, c->err);
}

static int open_data(struct cli *c, const struct zeroshot *o, struct towers *t)
{
	if (!*o->data) {
		cli_usage(c, "zeroshot needs pictures");
		return nr_hint(c->err, "name a data set: --data cifar10, or --data FOLDER");
	}
	if (nr_source_open(&t->source, o->data, *o->data_root ? o->data_root : NULL, c->err)) return c->err->code;
	if (!t->source->of->get) return nr_source_expect(t->source, NR_PICTURES, c->err);
	const int split = strcmp(o->split, "auto") ? nr_split_find(o->split, c->err) : t->source->count[NR_TEST] ? NR_TEST : NR_VAL;
	if (split < 0) return c->err->code;
	t->split = (enum nr_split)split;
	t->count = t->source->count[split];
	if (o->limit && o->limit < t->count) t->count = o->limit;
	if (!t->count) return nr_fail(c->err, NR_EVALUE, "no samples in the split", nr_split_name(t->split), NULL);
	return nr_prompts_make(&t->prompts, o->data, t->source->class_name, t->source->classes, o->names, o->templates, c->arena, c->err);
}

static void take(void *out, const struct nr_runner *r, const struct nr_batch *b, int64_t first)
{
	struct towers *t = out;
	const real *x = nr_plan_data(r->plan, t->projected ? r->logits : r->pooled);
	memcpy(t->image_at + first * t->width, x, (size_t)(b->samples * t->width) * sizeof *x);
	memcpy(t->label + first, b->label, (size_t)b->samples * sizeof *t->label);
}

static int show(void *context, int64_t done, int64_t of)
{
	(void)of;
	nr_progress_update(context, done, NULL);
	return 0;
}

static int see_pictures(struct cli *c, const struct zeroshot *o, struct towers *t)
{
	struct nr_runner r;
	struct nr_progress bar;
	const int64_t batch = o->batch < t->count ? o->batch : t->count;
	if (t->projected ? nr_runner_open(&r, t->image, batch, c->err) : nr_runner_open_encoder(&r, t->image, batch, c->err))
		return c->err->code;
	const int64_t width = t->projected ? r.classes : r.width;
	int code = width == t->width ? NR_OK : nr_fail(c->err, NR_EVALUE, "cannot compare pictures and texts", t->image->model.text,
		"its features have %lld numbers, those of texts %lld", (long long)width, (long long)t->width);
	t->image_at = malloc((size_t)(t->count * t->width) * sizeof(real) + 1);
	t->label = malloc((size_t)t->count * sizeof *t->label + 1);
	if (!code && (!t->image_at || !t->label)) code = nr_fail(c->err, NR_EMEMORY, "cannot classify pictures", NULL, "out of memory");
	nr_progress_init(&bar, stderr, "pictures", t->count, 0);
	const struct nr_evaluation e = { .source = t->source, .split = t->split, .count = t->count, .augment = nr_tower_view(t->image),
		.workers = (int)o->workers, .watch = show, .context = &bar };
	if (!code) code = nr_run_over(&r, &e, take, t, c->err);
	nr_progress_release(&bar);
	nr_runner_close(&r);
	return code;
}

/* Texts to classes, pictures to the nearest. */
static int classify(struct cli *c, const struct zeroshot *o, struct towers *t)
{
	const int64_t K = t->prompts.classes, P = t->prompts.templates;
	t->width = nr_text_runner_width(t->runner);
	if (see_pictures(c, o, t)) return c->err->code;
	real *text = malloc((size_t)(K * P * t->width) * sizeof *text + 1), *scores = malloc((size_t)(t->count * K) * sizeof *scores + 1);
	t->of_class = malloc((size_t)(K * t->width) * sizeof(real) + 1);
	int32_t *rank = malloc((size_t)t->count * sizeof *rank + 1);
	int64_t *first = malloc((size_t)(K + 1) * sizeof *first);
	const bool room = text && scores && t->of_class && rank && first;
	int code = room ? nr_text_runner_run(t->runner, t->prompts.text, K * P, text, c->err)
			: nr_fail(c->err, NR_EMEMORY, "cannot classify pictures", NULL, "out of memory");
	for (int64_t k = 0; room && k <= K; k++) first[k] = k * P;
	if (!code) nr_zeroshot_classes(K, t->width, first, text, t->of_class);
	if (!code) code = nr_zeroshot_scores(t->count, t->width, t->image_at, K, t->of_class, scores, c->err);
	if (!code) {
		nr_metric_rank(t->count, K, scores, t->label, rank);
		t->top1 = nr_metric_topk(t->count, rank, 1);
		t->top5 = nr_metric_topk(t->count, rank, 5);
	}
	free(text), free(scores), free(rank), free(first);
	return code;
}

static int print(const struct zeroshot *o, const struct towers *t, const char *path, struct nr_error *err)
{
	const long long K = (long long)t->prompts.classes, P = (long long)t->prompts.templates;
	if (o->json)
		return cli_print_json(json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:f}", "file", path, "data", o->data, "split",
			nr_split_name(t->split), "classes", (json_int_t)K, "templates", (json_int_t)P, "samples", (json_int_t)t->count,
			"top1", t->top1, "top5", t->top5), err);
	printf("%s on %s/%s: %lld pictures, %lld classes of %lld text%s each\n", path, t->source->of->name, nr_split_name(t->split),
		(long long)t->count, K, P, P == 1 ? "" : "s");
	printf("zero-shot top-1 %s%.2f %%%s   top-5 %.2f %%   (chance %.2f %%)\n", cli_bold(), 100 * t->top1, cli_plain(), 100 * t->top5,
		100. / (double)K);
	return NR_OK;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct zeroshot *o = conf;
	struct towers t = { 0 };
	if (args->count != 1) return cli_usage(c, "zeroshot needs one checkpoint, not %d", (int)args->count);
	cli_bound_spin(c);
	int code = open_data(c, o, &t);
	if (!code) code = open_towers(c, o, args->item[0], &t);
	if (!code) code = classify(c, o, &t);
	if (!code) code = print(o, &t, args->item[0], c->err);
	nr_text_runner_close(t.runner);
	nr_tokenizer_close(t.tokenizer);
	nr_weights_close(t.text);
	nr_weights_close(t.image);
	nr_source_close(t.source);
	free(t.image_at), free(t.of_class), free(t.label);
	return code;
}

const struct cli_command cli_zeroshot = {
	.name = "zeroshot",
	.title = "classify pictures by texts that describe the classes",
	.usage = "CHECKPOINT --data NAME",
	.about = "A class is described by its name in one or more templates: each text is embedded and scaled to length 1, their mean is\n"
		 "scaled to length 1 again, and a picture belongs to the class with the largest cosine. The checkpoint is a run of\n"
		 "`norma lit`, or a file of CLIP or SigLIP with both towers (names of Hugging Face or open_clip) and its tokenizer\n"
		 "beside it. A file of templates has one text per line, with {} in the place of the name.",
	.conf_size = sizeof(struct zeroshot),
	.options = options,
	.run = run,
};
