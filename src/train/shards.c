/* Sums over the shards of a batch: see shards.h. */
#include "train/shards.h"

#include <stdlib.h>
#include <string.h>

#include "graph/store.h"
#include "math/row.h"

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory"); }

/* Of a rank's shards a whole subtree must be its own: their number is a power of two, unless each rank has one. */
int nr_shards_share(struct nr_shards *s, struct nr_comm *comm, int64_t batch, int64_t wanted, struct nr_error *err)
{
	const int64_t ranks = nr_comm_size(comm), count = wanted ? wanted : ranks;
	*s = (struct nr_shards){ .comm = comm, .count = count, .local = count / ranks };
	s->first = s->local * nr_comm_rank(comm);
	if (wanted && (wanted & (wanted - 1)))
		return nr_fail(err, NR_EVALUE, "cannot train with", "--shards", "%lld is no power of two", (long long)wanted);
	if (ranks > count) {
		nr_fail(err, NR_EVALUE, "cannot train on so many ranks", NULL, "%lld ranks, but a batch has %lld shards", (long long)ranks,
			(long long)count);
		return nr_hint(err, "use more --shards, or fewer ranks");
	}
	if (count % ranks) {
		nr_fail(err, NR_EVALUE, "cannot share the batch", NULL, "%lld ranks cannot have as many of %lld shards each",
			(long long)ranks, (long long)count);
		return nr_hint(err, "use 1, 2, 4, ... ranks up to %lld", (long long)count);
	}
	if (batch % count) {
		nr_fail(err, NR_EVALUE, "cannot share the batch", NULL, "--batch %lld is no multiple of %lld %s", (long long)batch,
			(long long)count, wanted ? "shards" : "ranks");
		return nr_hint(err, "use --batch %lld", (long long)((batch / count + 1) * count));
	}
	return NR_OK;
}

static void add_piece(struct nr_shards *s, real *p, int64_t n)
{
	if (n <= 0) return;
	s->piece[s->pieces].p = p;
	s->piece[s->pieces++].n = n;
	s->n += n;
}

static void add_buffers(struct nr_shards *s, const struct nr_store *store)
{
	int64_t all, params;
	if (!store) return;
	real *values = nr_store_values(store, &all);
	nr_store_grads(store, &params);
	add_piece(s, values + params, all - params);
}

/* Zeros, as the gradients of a store: what no backward writes is added, too. */
static int open_beside(struct nr_shards *s, struct nr_error *err)
{
	s->beside = calloc((size_t)s->local, sizeof *s->beside);
	if (!s->beside) return out_of_memory(err);
	for (int64_t i = 1; i < s->local; i++)
		if (!(s->beside[i] = calloc((size_t)s->n, sizeof(real)))) return out_of_memory(err);
	return NR_OK;
}

/* What this rank's shards before the last one left, to a piece of the last one's gradients. */
static void leave(void *context, int64_t from, int64_t n)
{
	struct nr_shards *s = context;
	for (int d = s->waiting - 1; d >= 0; d--) nr_row_add(n, s->partial[d] + from, s->piece[0].p + from, s->piece[0].p + from);
}

int nr_shards_open(struct nr_shards *s, const struct nr_train *c, const struct nr_plan *plan, const struct nr_store *store,
	const struct nr_store *teacher, struct nr_error *err)
{
	int64_t params;
	const size_t says = NR_SHARD_SAYS * sizeof *s->said;
	s->said = calloc((size_t)s->local, says);
	s->all = calloc((size_t)s->count, says);
	if (!s->said || !s->all) return out_of_memory(err);
	if (s->count == 1) return NR_OK;
	real *grads = nr_store_grads(store, &params);
	add_piece(s, grads, params);
	add_buffers(s, store);
	add_buffers(s, teacher);
	s->start = malloc((size_t)(s->n - params + 1) * sizeof(real));
	if (!s->start) return out_of_memory(err);
	for (int64_t deep = 0; !s->together && (int64_t)1 << deep < s->local; deep++)
		if (!(s->partial[deep] = malloc((size_t)s->n * sizeof(real)))) return out_of_memory(err);
	if (s->together && open_beside(s, err)) return err->code;
	if (s->comm && !(s->room = malloc((size_t)(params > s->n - params ? params : s->n - params) * sizeof(real))))
		return out_of_memory(err);
	if (!s->comm) return NR_OK;
	const enum nr_overlap overlap = s->together ? NR_OVERLAP_AFTER : (enum nr_overlap)c->overlap;
	return nr_buckets_open(&s->buckets, s->comm, plan, s->room, overlap, c->compress, leave, s, err);
}

void nr_shards_close(struct nr_shards *s)
{
	for (int i = 0; i < NR_SHARD_DEEP; i++) free(s->partial[i]);
	for (int64_t i = 1; s->beside && i < s->local; i++) free(s->beside[i]);
	free(s->beside);
	nr_buckets_close(s->buckets);
	free(s->start);
	free(s->room);
	free(s->said);
	free(s->all);
	*s = (struct nr_shards){ 0 };
}

/* The buffers go from the first to the second, or back. */
static void keep_buffers(struct nr_shards *s, bool back)
{
	real *at = s->start;
	for (int64_t i = 1; i < s->pieces; at += s->piece[i++].n)
		memcpy(back ? s->piece[i].p : at, back ? at : s->piece[i].p, (size_t)s->piece[i].n * sizeof *at);
}

/* to NULL: what lies in the stores, from piece j on. */
static void add_to(const struct nr_shards *s, real *to, const real *other, int64_t j)
{
	if (to) nr_array_add(s->n, other, to, to);
	if (j) other += s->piece[0].n;
	for (; j < (to ? 0 : s->pieces); other += s->piece[j++].n) nr_array_add(s->piece[j].n, other, s->piece[j].p, s->piece[j].p);
}

void nr_shards_begin(struct nr_shards *s, int64_t i)
{
	if (s->count > 1) keep_buffers(s, i > 0);
}

void nr_shards_end(struct nr_shards *s, int64_t i)
{
	if (s->count == 1) return;
	const bool travels = s->buckets && i + 1 == s->local;
	for (int64_t q = i; q & 1; q >>= 1) add_to(s, NULL, s->partial[--s->depth], travels);
	if (i + 1 == s->local) return;
	real *to = s->partial[s->depth++];
	for (int64_t j = 0; j < s->pieces; to += s->piece[j++].n)
		memcpy(to, s->piece[j].p, (size_t)s->piece[j].n * sizeof *to);
}

void nr_shards_begin_beside(struct nr_shards *s)
{
	for (int64_t i = 1; i < s->local; i++) {
		real *to = s->beside[i] + s->piece[0].n;
		for (int64_t j = 1; j < s->pieces; to += s->piece[j++].n) memcpy(to, s->piece[j].p, (size_t)s->piece[j].n * sizeof *to);
	}
}

void nr_shards_end_beside(struct nr_shards *s)
{
	for (int64_t d = 1; d < s->local; d *= 2)
		for (int64_t i = 0; i + d < s->local; i += 2 * d) add_to(s, s->beside[i], s->beside[i + d], 0);
}

int nr_shards_last(struct nr_shards *s, const struct nr_plan *plan, struct nr_exec *ex, struct nr_error *err)
{
	s->waiting = s->depth;
	return s->buckets ? nr_buckets_begin(s->buckets, plan, ex, err) : NR_OK;
}

int nr_shards_sum(struct nr_shards *s, struct nr_error *err)
{
	if (s->buckets && nr_buckets_end(s->buckets, err)) return err->code;
	s->waiting = 0;
	for (int64_t j = s->buckets ? 1 : 0; j < s->pieces; j++) {
		if (nr_comm_sum(s->comm, s->piece[j].n, s->piece[j].p, s->room, err)) return err->code;
		for (int64_t i = 0; j > 0 && i < s->piece[j].n; i++) s->piece[j].p[i] /= (real)s->count;
	}
	return NR_OK;
}

int nr_shards_tell(struct nr_shards *s, struct nr_error *err)
{
	if (nr_comm_gather(s->comm, s->said, (size_t)s->local * NR_SHARD_SAYS * sizeof *s->said, s->all, err)) return err->code;
	double sum[NR_SHARD_DEEP][NR_SAID_BAD];                 /* the tree, as a stack of sums of 1, 2, 4, ... shards */
	int depth = 0;
	for (int64_t i = 0; i < s->count; i++) {
		memcpy(sum[depth++], s->all + i * NR_SHARD_SAYS, sizeof *sum);
		for (int64_t q = i; q & 1 || (i + 1 == s->count && depth > 1); q >>= 1, depth--)
			for (int k = 0; k < NR_SAID_BAD; k++) sum[depth - 2][k] += sum[depth - 1][k];
	}
	memcpy(s->said, sum[0], sizeof *sum);
	return NR_OK;
}
