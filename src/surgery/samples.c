/* Samples in memory for norm surgery: see surgery.h. */
#include <stdlib.h>
#include <string.h>

#include "data/corpus.h"
#include "models/text_heads.h"
#include "norma/infer.h"
#include "norma/tokenizer.h"
#include "surgery/surgery.h"

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot keep the samples", NULL, "out of memory"); }

static int too_few(const char *data, int64_t there, int64_t batch, struct nr_error *err)
{
	return nr_fail(err, NR_EVALUE, "cannot calibrate with", data,
		"%lld training samples do not fill a batch of %lld",
		(long long)there, (long long)batch);
}

int nr_samples_pictures(struct nr_samples *s, const struct nr_weights *w, const struct nr_evaluation *e, int64_t batch,
	struct nr_error *err)
{
	const int64_t side = nr_model_int(&w->model, "image"), each = nr_model_int(&w->model, "channels") * side * side;
	const struct nr_loader_config config = { .source = e->source, .split = e->split, .augment = &e->augment, .batch = batch,
		.index = e->index, .count = e->count, .threads = e->workers, .shuffle = true, .drop_last = true };
	struct nr_loader *loader;
	*s = (struct nr_samples){ .batch = batch };
	if (nr_loader_open(&loader, &config, err)) return err->code;
	const int64_t there = nr_loader_batches(loader), wanted = (e->count ? e->count : batch * there) / batch;
	s->image = malloc((size_t)(wanted * batch * each) * sizeof *s->image + 1);
	int code = !s->image ? out_of_memory(err)
		: wanted < 1 || there < 1 ? too_few(e->source->of->name, e->source->count[e->split], batch, err) : NR_OK;
	for (int64_t b = 0; b < wanted && b < there && !code; b++) {
		struct nr_batch *one;
		if ((code = nr_loader_next(loader, &one, err))) break;
		memcpy(s->image + s->count * each, one->image, (size_t)(batch * each) * sizeof *s->image);
		s->count += batch;
		nr_loader_give_back(loader, one);
	}
	nr_loader_close(loader);
	if (code) nr_samples_release(s);
	return code;
}

int nr_samples_texts(struct nr_samples *s, const struct nr_weights *w, const struct nr_tokenizer *t, const struct nr_source *source,
	int64_t count, int64_t batch, struct nr_error *err)
{
	struct nr_corpus c = { 0 };
	const int64_t there = source->count[NR_TRAIN], most = nr_text_length(&w->model);
	const int32_t pad = nr_tokenizer_special(t, NR_TOKEN_PAD);
	*s = (struct nr_samples){ .batch = batch, .count = (count < there ? count : there) / batch * batch };
	if (!s->count) return too_few(source->of->name, there, batch, err);
	if (nr_text_fits(&w->model, t, err)) return err->code;
	if (nr_corpus_make(&c, source, NR_TRAIN, NULL, s->count, t, most < 128 ? most : 128, err)) return err->code;
	s->length = c.longest;
	s->ids = malloc((size_t)(s->count * s->length) * sizeof *s->ids);
	s->valid = malloc((size_t)s->count * sizeof *s->valid);
	for (int64_t i = 0; s->ids && s->valid && i < s->count; i++) {
		int64_t n;
		const int32_t *text = nr_corpus_text(&c, i, 0, &n);
		memcpy(s->ids + i * s->length, text, (size_t)n * sizeof *text);
		for (int64_t k = n; k < s->length; k++) s->ids[i * s->length + k] = pad < 0 ? 0 : pad;
		s->valid[i] = (int32_t)n;
	}
	const bool whole = s->ids && s->valid;
	nr_corpus_release(&c);
	if (!whole) nr_samples_release(s);
	return whole ? NR_OK : out_of_memory(err);
}

void nr_samples_release(struct nr_samples *s)
{
	free(s->image);
	free(s->ids);
	free(s->valid);
	*s = (struct nr_samples){ 0 };
}
