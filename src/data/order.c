/* Batches of like lengths: see order.h. */
#include "data/order.h"

#include <stdlib.h>

#include "base/draws.h"
#include "base/rng.h"
#include "base/sort.h"

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
	return o->sample && o->place && o->spare ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot shuffle", NULL, "out of memory");
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
