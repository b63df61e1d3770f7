/* Texts as ids, and batches of like lengths: see corpus.h. */
#include "data/corpus.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/sort.h"
#include "data/draws.h"
#include "norma/tokenizer.h"

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot read the texts", NULL, "out of memory"); }

/* ---- ids ---------------------------------------------------------------------------------------------------------------------- */

struct filling { struct nr_corpus *c; struct nr_encoder *encoder; struct nr_encode_how how; int64_t room; };

static int add(struct filling *f, int64_t at, const char *text, struct nr_error *err)
{
	struct nr_corpus *c = f->c;
	struct nr_encoding e;
	const int64_t sample = at / c->columns;
	if (nr_encode(f->encoder, text, strlen(text), NULL, 0, &f->how, &e, err)) return err->code;
	while (c->start[at] + e.count > f->room) {
		const int64_t room = 2 * f->room + 1024;
		int32_t *ids = realloc(c->ids, (size_t)room * sizeof *ids);
		if (!ids) return out_of_memory(err);
		c->ids = ids;
		f->room = room;
	}
	memcpy(c->ids + c->start[at], e.ids, (size_t)e.count * sizeof *e.ids);
	c->start[at + 1] = c->start[at] + e.count;
	c->cut += f->how.max_length && e.count == f->how.max_length;
	if (e.count > c->length[sample]) c->length[sample] = (int32_t)e.count;
	if (e.count > c->longest) c->longest = (int32_t)e.count;
	return NR_OK;
}

int nr_corpus_make(struct nr_corpus *c, const struct nr_source *s, enum nr_split split, const int32_t *index, int64_t count,
	const struct nr_tokenizer *t, int64_t max_length, struct nr_error *err)
{
	*c = (struct nr_corpus){ .samples = count, .columns = s->columns };
	struct filling f = { .c = c, .how = { .max_length = max_length } };
	c->start = calloc((size_t)(count * s->columns + 1), sizeof *c->start);
	c->length = calloc((size_t)count + 1, sizeof *c->length);
	int code = c->start && c->length ? nr_encoder_make(&f.encoder, t, err) : out_of_memory(err);
	for (int64_t i = 0; i < count && !code; i++)
		for (int32_t k = 0; k < s->columns && !code; k++)
			code = add(&f, i * s->columns + k, nr_source_text(s, split, index ? index[i] : i, k), err);
	nr_encoder_free(f.encoder);
	if (code) nr_corpus_release(c);
	return code;
}

void nr_corpus_release(struct nr_corpus *c)
{
	free(c->ids);
	free(c->start);
	free(c->length);
	*c = (struct nr_corpus){ 0 };
}

const int32_t *nr_corpus_text(const struct nr_corpus *c, int64_t sample, int32_t column, int64_t *count)
{
	const int64_t at = sample * c->columns + column;
	*count = c->start[at + 1] - c->start[at];
	return c->ids + c->start[at];
}

/* ---- order --------------------------------------------------------------------------------------------------------------------- */

int nr_order_make(struct nr_order *o, const int32_t *length, int64_t samples, int64_t batch, int64_t window, uint64_t seed,
	struct nr_error *err)
{
	*o = (struct nr_order){ .length = length, .samples = samples, .batch = batch, .window = window, .seed = seed, .epoch = -1 };
	if (samples > INT32_MAX) return nr_fail(err, NR_ELIMIT, "cannot shuffle", NULL, "%lld samples are too many", (long long)samples);
	if (batch < 1 || samples < batch) {
		nr_fail(err, NR_EVALUE, "cannot make batches", NULL, "%lld sample%s do%s not fill one of %lld", (long long)samples,
			samples == 1 ? "" : "s", samples == 1 ? "es" : "", (long long)batch);
		return nr_hint(err, "take a smaller batch");
	}
	for (int64_t i = 0; i < samples; i++) o->longest = length[i] > o->longest ? length[i] : o->longest;
	o->sample = malloc((size_t)(samples + 1) * sizeof *o->sample);
	o->place = malloc((size_t)(samples / batch + 1) * sizeof *o->place);
	o->spare = malloc(nr_sort_spare(samples, o->longest) * sizeof *o->spare);
	return o->sample && o->place && o->spare ? NR_OK : out_of_memory(err);
}

void nr_order_release(struct nr_order *o)
{
	free(o->sample);
	free(o->place);
	free(o->spare);
	*o = (struct nr_order){ 0 };
}

static void begin_epoch(struct nr_order *o, int64_t epoch)
{
	const struct nr_rng rng = nr_rng_make(o->seed, NR_STREAM_ORDER, (uint32_t)epoch);
	const int64_t batches = o->samples / o->batch, whole = batches * o->batch, step = o->window * o->batch;
	nr_rng_shuffle(rng, 0, o->sample, (int32_t)o->samples);
	for (int64_t i = 0; i < batches; i++) o->place[i] = (int32_t)i;
	if (o->window) nr_rng_shuffle(rng, (uint64_t)o->samples + 1, o->place, (int32_t)batches);
	for (int64_t from = 0; o->window && from < whole; from += step)
		nr_sort_by_key(o->sample + from, whole - from < step ? whole - from : step, o->length, o->longest, o->spare);
	o->epoch = epoch;
}

const int32_t *nr_order_batch(struct nr_order *o, int64_t number, int32_t *longest)
{
	const int64_t batches = o->samples / o->batch, epoch = number / batches;
	if (epoch != o->epoch) begin_epoch(o, epoch);
	const int32_t *sample = o->sample + o->place[number % batches] * o->batch;
	*longest = 0;
	for (int64_t i = 0; i < o->batch; i++) *longest = o->length[sample[i]] > *longest ? o->length[sample[i]] : *longest;
	return sample;
}
