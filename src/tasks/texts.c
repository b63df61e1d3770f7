/* Texts of a task: see texts.h. */
#include "tasks/texts.h"

#include <string.h>
#include <unistd.h>

#include "models/text_heads.h"
#include "norma/trainer.h"

/* The tokenizer that was named, else the one beside the weights to begin with, else the one beside the data. */
static int open_tokenizer(struct nr_texts *t, const struct nr_task_run *r, struct nr_error *err)
{
	const char *path = ((const struct nr_text_settings *)r->settings)->tokenizer;
	if (!*path && *r->c->init) path = r->c->init;
	const char *beside = r->source->dir ? nr_arena_printf(r->arena, "%s/tokenizer.json", r->source->dir) : NULL;
	if (!*path && beside && !access(beside, R_OK)) path = beside;    /* of the data */
	if (!*path && t->otherwise) path = t->otherwise;
	t->path = path;
	if (*path) return nr_tokenizer_open(&t->tokenizer, path, err);
	nr_fail(err, NR_EUSAGE, "no tokenizer was given", NULL, NULL);
	return nr_hint(err, "use --tokenizer vocab.txt (or a folder with tokenizer.json)");
}

/* At most NR_TASK_SHAPES lengths, multiples of 4 apart, none above what the model has places for. */
void nr_texts_shapes(struct nr_texts *t, int64_t places)
{
	const int64_t rounded = (t->longest + 3) / 4 * 4;
	t->longest = rounded < places ? rounded : places;
	const int64_t step = (t->longest + NR_TASK_SHAPES - 1) / NR_TASK_SHAPES;
	t->step = (step + 3) / 4 * 4;
	t->shapes = (t->longest + t->step - 1) / t->step;
}

int nr_texts_open(struct nr_texts *t, struct nr_task_run *r, struct nr_error *err)
{
	const struct nr_text_settings *o = r->settings;
	if (nr_model_expect(&r->w->model, NR_TEXTS, err) || open_tokenizer(t, r, err)) return err->code;
	if (nr_task_set(r, "vocab", nr_tokenizer_size(t->tokenizer), err)) return err->code;
	const int32_t pad = nr_tokenizer_special(t->tokenizer, NR_TOKEN_PAD);
	const int64_t places = nr_text_length(&r->w->model);
	if (pad >= 0 && nr_task_set(r, "pad", pad, err)) return err->code;
	if (o->max_length > places)
		return nr_fail(err, NR_EVALUE, "cannot train", r->c->model,
			"max_length is %lld, but the model has %lld positions",
			(long long)o->max_length, (long long)places);
	if (nr_task_set(r, "length", o->max_length, err)) return err->code;
	if (nr_text_fits(&r->w->model, t->tokenizer, err)) return err->code;
	if ((t->joined ? nr_corpus_join : nr_corpus_make)(&t->corpus, r->source, r->train.split, r->train.index, r->train.count,
		    t->tokenizer, o->max_length, err))
		return err->code;
	t->longest = t->corpus.longest;
	nr_texts_shapes(t, places);
	return nr_order_make(&t->order, t->corpus.length, t->corpus.samples, r->c->batch, o->window, (uint64_t)r->c->seed, err);
}

void nr_texts_close(struct nr_texts *t)
{
	nr_order_release(&t->order);
	nr_corpus_release(&t->corpus);
	nr_tokenizer_close(t->tokenizer);
}

int64_t nr_texts_length(const struct nr_texts *t, int64_t shape) { return t->longest - shape * t->step; }

int64_t nr_texts_choose(struct nr_texts *t, int64_t number)
{
	int32_t longest;
	t->sample = nr_order_batch(&t->order, number, &longest);
	return (t->longest - longest) / t->step;
}

void nr_texts_put(const struct nr_texts *t, const int32_t *text, int64_t count, int64_t T, int32_t *ids, int32_t *valid)
{
	const int32_t pad = nr_tokenizer_special(t->tokenizer, NR_TOKEN_PAD);
	memcpy(ids, text, (size_t)count * sizeof *ids);
	for (int64_t k = count; k < T; k++) ids[k] = pad < 0 ? 0 : pad;
	*valid = (int32_t)count;
}

void nr_texts_describe(const struct nr_texts *t, const struct nr_task_run *r, struct nr_str *s)
{
	const struct nr_corpus *c = &t->corpus;
	const struct nr_text_settings *o = r->settings;
	nr_str_printf(s, "texts             %lld tokens, %.1f a text; at most %lld, which %lld texts reach; batches of %lld lengths%s\n",
		(long long)c->start[c->samples * c->columns], (double)c->start[c->samples * c->columns] / (double)(c->samples * c->columns),
		(long long)o->max_length, (long long)c->cut, (long long)t->shapes,
		o->window ? ", sorted within windows" : "");
}
