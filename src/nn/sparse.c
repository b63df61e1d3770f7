/* Whom the tokens of sparse attention see. See sparse.h; BigBird's part is in block_attention.c. */
#include "nn/sparse.h"

#include "math/chunk.h"
#include "nn/lsh.h"

bool nr_is_sparse(const struct nr_op *op)
{
	return op == &nr_op_block_attention || op == &nr_op_lsh_attention || op == &nr_op_local_attention;
}

int64_t nr_sparse_keys(const struct nr_node *k)
{
	if (k->op == &nr_op_block_attention) return nr_block_keys(k);
	const struct nr_lsh_sizes s = nr_lsh_sizes(k);
	return s.rounds * s.seen * s.chunk;
}

/* Keys of token t from all rounds; place (rounds,L): where each token stands in the order of a round. */
static int64_t keys_of_token(const struct nr_lsh_unit *w, const int32_t *place, int64_t t, int32_t *key)
{
	int64_t n = 0;
	for (int64_t r = 0; r < w->s.rounds; r++) {
		const int64_t chunk = (r * w->s.L + place[r * w->s.L + t]) / w->s.chunk;
		for (int64_t j = 0; j < w->s.seen; j++) {
			const int32_t *from = nr_lsh_keys(w, chunk, j);
			for (int64_t i = 0; i < w->s.chunk; i++)
				if (from[i] < w->valid && !(w->c->o.not_self && from[i] == t)) key[n++] = from[i];
		}
	}
	if (!n && w->c->o.not_self) key[n++] = (int32_t)t;
	return n;
}

static void look_at_chunks(const struct nr_call *k, int64_t unit, int32_t *room, nr_sparse_row *each, void *context)
{
	struct nr_lsh_unit w = nr_lsh_unit(k, unit);
	nr_lsh_order(&w);
	nr_lsh_norms(&w);
	int32_t *place = w.m.bucket;            /* sorted: the buckets have served */
	for (int64_t i = 0; i < w.s.rounds * w.s.L; i++) place[i / w.s.L * w.s.L + w.order[i]] = (int32_t)(i % w.s.L);
	const struct nr_sparse_head head = { .q = w.q, .k = w.keys, .norm = w.m.norm, .d = w.s.d, .width = w.s.width, .tokens = w.s.T,
		.scale = w.c->o.scale != 0 ? (double)w.c->o.scale : 1 / sqrt((double)w.s.d) };
	for (int64_t t = 0; t < nr_min64(w.s.T, w.valid); t++) each(context, &head, t, keys_of_token(&w, place, t, room), room);
}

void nr_sparse_look(const struct nr_call *k, int64_t unit, int32_t *room, nr_sparse_row *each, void *context)
{
	if (k->node->op == &nr_op_block_attention) nr_block_look(k, unit, room, each, context);
	else look_at_chunks(k, unit, room, each, context);
}
