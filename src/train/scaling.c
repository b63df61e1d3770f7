/* A model of training on several ranks: see scaling.h. */
#include "train/scaling.h"

#include <math.h>
#include <stddef.h>

const char *const nr_reduce_names[] = { "halving", "ring", "tree", NULL };

/* Levels of the binary tree over so many. */
static int64_t levels(int64_t count)
{
	int64_t n = 0;
	while (((int64_t)1 << n) < count) n++;
	return n;
}

/* Of one sum: messages one after the other, bytes that the busiest rank sends and adds, each as a multiple of the sum's size. */
struct cost { double messages, sent, carried, added; };     /* carried: bytes on the way, one after the other */

static struct cost cost_of(enum nr_reduce reduce, int64_t ranks)
{
	const double K = (double)ranks, L = (double)levels(ranks);
	if (ranks < 2) return (struct cost){ 0 };
	if (reduce == NR_REDUCE_RING) return (struct cost){ 2 * (K - 1), 2 * (K - 1) / K, 2 * (K - 1) / K, (K - 1) / K };
	if (reduce == NR_REDUCE_TREE) return (struct cost){ 2 * L, L, 2 * L, L };
	const int64_t whole = (int64_t)1 << ((ranks & (ranks - 1)) ? levels(ranks) - 1 : levels(ranks));
	const double P = (double)whole, beyond = ranks > whole;     /* those hand over all of it, and get all of it back */
	const double halves = (P - 1) / P;
	return (struct cost){ 2 * (double)levels(whole) + 2 * beyond, 2 * halves + beyond, 2 * halves + 2 * beyond, halves + beyond };
}

static double sum_seconds(const struct nr_scaling *s, const struct cost *c, double bytes)
{
	const double width = s->bf16 ? 2 : 1;           /* values are added as floats, whatever travelled */
	return c->messages * s->latency + c->carried * bytes / s->bandwidth + 3 * width * c->added * bytes / s->memory;
}

double nr_scaling_sum(const struct nr_scaling *s, int64_t ranks, double bytes)
{
	const struct cost c = cost_of(s->reduce, ranks);
	return ranks > 1 ? sum_seconds(s, &c, bytes) : 0;
}

/* Bucket i of M can leave when i / M of backward is done, and when the one before it has arrived. */
static void overlap(const struct nr_scaling *s, const struct cost *c, double bytes, struct nr_scaled *r)
{
	const double least = s->bucket > 0 && s->bucket < bytes ? s->bucket : bytes;
	r->buckets = bytes > 0 ? (int64_t)ceil(bytes / least) : 0;
	double at = 0;
	for (int64_t i = 1; i <= r->buckets; i++) {
		const double size = i < r->buckets ? least : bytes - least * (double)(r->buckets - 1), took = sum_seconds(s, c, size);
		const double ready = s->backward * (double)i / (double)r->buckets;
		at = fmax(at, ready) + took;
		r->sum += took;
	}
	r->exposed = fmax(0, at - s->backward);
	r->exposed += s->steal * fmin(s->backward, fmax(0, r->sum - r->exposed));
}

/* Bruck's gather of what each shard knows: a count, and for each channel mean and M2 (or two sums in backward), as doubles. */
static void synchronize(const struct nr_scaling *s, int64_t ranks, struct nr_scaled *r)
{
	for (int64_t i = 0; i < s->layers; i++) {
		const double mine = 8 * (double)s->shards * (1 + 2 * (double)s->channels[i]), bytes = (double)(ranks - 1) * mine;
		r->sync += 2 * ((double)levels(ranks) * s->latency + bytes / s->bandwidth);
		r->sent += 2 * bytes;
		r->messages += 2 * levels(ranks);
	}
}

void nr_scaling_at(const struct nr_scaling *s, int64_t ranks, struct nr_scaled *r)
{
	const struct cost c = cost_of(s->reduce, ranks);
	const double bytes = (s->bf16 ? 2.0 : 4.0) * (double)s->params, values = 4 * (double)s->params;
	*r = (struct nr_scaled){ .own = s->forward + s->backward + s->update };
	r->memory = 4 * values + s->held + values * (double)levels(s->shards);  /* weights, gradients, two moments; sums that wait */
	if (ranks > 1) {
		if (s->overlap) {
			overlap(s, &c, bytes, r);
		} else {
			r->sum = r->exposed = sum_seconds(s, &c, bytes);
			r->buckets = 1;
		}
		r->sent = c.sent * bytes;
		r->messages = (int64_t)c.messages * r->buckets;
		r->memory += values;                    /* room for what arrives */
		r->wait = s->jitter * (s->forward + s->backward) * sqrt(2 * log((double)ranks));
		synchronize(s, ranks, r);
	}
	r->step = r->own + r->wait + r->exposed + r->sync;
	r->efficiency = r->step > 0 ? r->own / r->step : 1;
}
