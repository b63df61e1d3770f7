/* Texts for norma analyze: all of one length, so that no part has to know of padding. */
#include "analyze_texts.h"

#include <stdlib.h>
#include <string.h>

#include "data/corpus.h"
#include "models/text_heads.h"
#include "norma/infer.h"
#include "norma/tokenizer.h"

enum { MOST = 64, TRIES = 4 };                  /* tokens of a text; texts that are looked at for one that is taken */

/* The length that one half of the texts reach. */
static int64_t median_length(const struct nr_corpus *c)
{
	int64_t reach[MOST + 2] = { 0 }, sum = 0;
	for (int64_t i = 0; i < c->samples; i++) reach[c->length[i] < MOST ? c->length[i] : MOST]++;
	for (int64_t n = MOST; n > 0; n--)
		if (2 * (sum += reach[n]) >= c->samples) return n;
	return 1;
}

/* Longer texts lose what stands before their last token, shorter ones are left out. */
static int take(struct cli *c, struct cli_analyze_texts *t, const struct nr_corpus *all, int64_t samples)
{
	t->ids = nr_arena_alloc(c->arena, (size_t)(all->samples * t->length) * sizeof *t->ids);
	if (!t->ids) return nr_fail(c->err, NR_EMEMORY, "cannot read the texts", NULL, "out of memory");
	for (int64_t i = 0; i < all->samples && t->count < samples; i++) {
		int64_t n;
		const int32_t *text = nr_corpus_text(all, i, 0, &n);
		if (n < t->length) continue;
		int32_t *to = t->ids + t->count++ * t->length;
		memcpy(to, text, (size_t)t->length * sizeof *to);
		to[t->length - 1] = text[n - 1];
	}
	if (t->count > 1) return NR_OK;
	return nr_fail(c->err, NR_EVALUE, "cannot analyse", NULL, "fewer than two texts have %lld tokens", (long long)t->length);
}

int cli_analyze_texts(struct cli *c, struct cli_analyze_texts *t, struct nr_weights *w, const struct nr_evaluation *e,
	const char *tokenizer, int64_t samples)
{
	struct nr_tokenizer *with = NULL;
	struct nr_corpus all = { 0 };
	const int64_t there = e->source->count[e->split], tries = samples < there / TRIES ? TRIES * samples : there;
	char text[32];
	if (nr_tokenizer_open(&with, tokenizer, c->err)) return c->err->code;
	int code = nr_text_fits(&w->model, with, c->err);
	if (!code) code = nr_corpus_make(&all, e->source, e->split, e->index, tries, with, nr_text_length(&w->model), c->err);
	if (!code && t->length > nr_text_length(&w->model))
		code = nr_fail(c->err, NR_EVALUE, "cannot analyse", w->model.text, "it has %lld positions, not %lld",
			(long long)nr_text_length(&w->model), (long long)t->length);
	if (!code && !t->length) t->length = median_length(&all);
	snprintf(text, sizeof text, "%lld", (long long)t->length);
	if (!code) code = nr_model_set(&w->model, "length", text, w->arena, c->err);
	if (!code) code = take(c, t, &all, samples);
	nr_corpus_release(&all);
	nr_tokenizer_close(with);
	return code;
}
