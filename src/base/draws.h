/* Random draws of one sample or batch: a run of blocks of a counter stream (base/rng.h), taken one after another. */
#ifndef NR_DRAWS_H
#define NR_DRAWS_H

#include "base/rng.h"

/* Above those of graph/streams.h. A sample takes blocks i << 16 ..., its noise i << 22 ...; the step is the epoch, or the
 * batch for NR_STREAM_MIX. */
enum nr_data_stream {
	NR_STREAM_ORDER = 32 << 24,
	NR_STREAM_SAMPLE = 33 << 24,
	NR_STREAM_NOISE = 34 << 24,
	NR_STREAM_MIX = 35 << 24,
	NR_STREAM_VIEW = 36 << 24,          /* where a picture and its label map are cut, blocks i << 16 ... */
	NR_STREAM_CORRUPT = 36 << 24,       /* + 16 corruption + severity, which is not 0; the step is the sample */
	NR_STREAM_SHAPES = 37 << 24,        /* + 1: grain; the step is the picture */
};

struct nr_draws { struct nr_rng rng; uint64_t next; };

static inline struct nr_draws nr_draws_of(uint64_t seed, enum nr_data_stream stream, int64_t step, uint64_t first)
{
	return (struct nr_draws){ nr_rng_make(seed, (uint32_t)stream, (uint32_t)step), first };
}
/* [0,1), 53 bits. */
static inline double nr_draw(struct nr_draws *d)
{
	uint32_t w[4];
	nr_rng_block(d->rng, d->next++, w);
	return (double)(((uint64_t)w[0] << 32 | w[1]) >> 11) * 0x1p-53;
}
static inline double nr_draw_between(struct nr_draws *d, double low, double high)
{
	return low + (high - low) * nr_draw(d);
}
/* 0 .. n-1. */
static inline int32_t nr_draw_below(struct nr_draws *d, int32_t n)
{
	return (int32_t)nr_rng_below(d->rng, d->next++, (uint64_t)n);
}
/* Both take as many draws as they need. */
double nr_draw_normal(struct nr_draws *);
double nr_draw_beta(struct nr_draws *, double alpha);   /* Beta(alpha, alpha), alpha > 0 */

#endif
