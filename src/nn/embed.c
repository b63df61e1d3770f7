/* embedding: rows of a table by index. Backward adds the rows of dy, in their order, to the rows of the table; the
 * padding's row gets none. Indices outside the table read zeros and send no gradient. */
#include "math/gather.h"
#include "nn/op.h"

struct embedding { int32_t pad; };          /* the id of a token */

static int shape(struct nr_node *k)
{
	const nr_t *table = k->in[0], *ids = k->in[1];
	char st[64], si[64];
	if (nr_expect(k, table->nd == 2 && table->dtype == NR_REAL && ids->dtype == NR_I32 && ids->nd < NR_MAXD,
		      "a table (count,C) and int32 indices are wanted, not %s and %s",
		nr_shape_text(table, st, sizeof st),
		      nr_shape_text(ids, si, sizeof si)))
		return NR_ESHAPE;
	int64_t d[NR_MAXD];
	memcpy(d, ids->d, sizeof d);
	d[ids->nd] = table->d[1];
	nr_out(k, 0, NR_REAL, ids->nd + 1, d, ids->tok);
	k->scratch = nr_scatter_scratch(nr_len(ids), table->d[0]);
	return 0;
}
static void forward(const struct nr_call *k)
{
	nr_gather(k->y[0].rows, k->y[0].c, k->x[0].p, k->x[0].rows, nr_ints(&k->x[1]), k->y[0].p, 0);
}
static void backward(const struct nr_call *k)
{
	const struct embedding *a = k->node->attr;
	if (k->want & 1)
		nr_scatter(k->dy[0].rows, k->dy[0].c, k->dx[0].p, k->dx[0].rows, nr_ints(&k->x[1]), a->pad,
			k->dy[0].p, k->add[0], k->scratch);
}
static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_apply(n, &nr_op_embedding, (&(struct embedding){ -1 }), sizeof(struct embedding), x[0], x[1]);
}
static const struct nr_case cases[] = { { "7x3 2x5:i7", "" }, { "1x1 1x1:i1", "" }, { "3x5 2x40:i3", "" },
	{ "9x2 4:i9", "" }, { NULL, NULL } };
const struct nr_op nr_op_embedding = {
	.name = "embedding", .shape = shape, .forward = forward, .backward = backward, .keeps = NR_KEEP_X(1),
	.gathers = 1, .flags = NR_CHEAP,
	.try_case = try_case, .cases = cases,
};

nr_t *nr_embedding(struct nr_net *n, const char *name, nr_t *ids, int64_t count, int64_t dim, int32_t pad_id)
{
	if (!ids) return NULL;
	nr_push(n, "%s", name);
	nr_t *table = nr_param(n, "weight", NR_NORMAL_02, NR_SHAPE(count, dim));
	const struct embedding a = { pad_id < 0 ? -1 : pad_id };
	return nr_pop(n, nr_apply(n, &nr_op_embedding, &a, sizeof a, table, ids));
}

/* ---- embedding_sum: the rows of several features, added up; row 0 is that of padding and gets no gradient ---------------------- */

static int sum_shape(struct nr_node *k)
{
	const nr_t *table = k->in[0], *ids = k->in[1];
	char st[64], si[64];
	if (nr_expect(k, table->nd == 2 && table->dtype == NR_REAL && ids->dtype == NR_I32 && (ids->nd == 2 || ids->nd == 3),
		      "a table (count,C) and int32 indices (B,T) or (B,T,F) are wanted, not %s and %s",
		      nr_shape_text(table, st, sizeof st), nr_shape_text(ids, si, sizeof si)))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ ids->d[0], ids->d[1], table->d[1] }, ids->tok);
	k->scratch = nr_scatter_scratch(nr_len(ids), table->d[0]);
	return 0;
}
static int64_t features(const struct nr_call *k) { return k->node->in[1]->nd == 3 ? k->node->in[1]->d[2] : 1; }
static void sum_forward(const struct nr_call *k)
{
	nr_gather_sum(k->y[0].rows, features(k), k->y[0].c, k->x[0].p, k->x[0].rows, nr_ints(&k->x[1]), k->y[0].p);
}
static void sum_backward(const struct nr_call *k)
{
	if (k->want & 1)
		nr_scatter_sum(k->dy[0].rows, features(k), k->dy[0].c, k->dx[0].p, k->dx[0].rows, nr_ints(&k->x[1]), 0, k->dy[0].p,
			k->add[0], k->scratch);
}
static nr_t *sum_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_apply(n, &nr_op_embedding_sum, NULL, 0, x[0], x[1]);
}
static const struct nr_case sum_cases[] = { { "7x3 2x5x2:i1-6", "" }, { "2x1 1x1:i1-1", "" }, { "4x5 2x40x3:i1-3", "" },
	{ "9x2 4x3:i1-8", "" }, { NULL, NULL } };
const struct nr_op nr_op_embedding_sum = {
	.name = "embedding_sum", .shape = sum_shape, .forward = sum_forward, .backward = sum_backward, .keeps = NR_KEEP_X(1),
	.flags = NR_CHEAP, .try_case = sum_try, .cases = sum_cases,
};

nr_t *nr_embedding_sum(struct nr_net *n, const char *name, nr_t *ids, int64_t count, int64_t dim)
{
	if (!ids) return NULL;
	nr_push(n, "%s", name);
	nr_t *table = nr_param(n, "weight", NR_NORMAL_02 | NR_ZERO_ROW, NR_SHAPE(count, dim));
	return nr_pop(n, nr_apply(n, &nr_op_embedding_sum, NULL, 0, table, ids));
}

/* ---- text_positions: places of RoBERTa's tokens, which pads do not count in ------------------------------------------------ */

static int positions_shape(struct nr_node *k)
{
	const nr_t *ids = k->in[0];
	char s[64];
	if (nr_expect(k, ids->nd == 2 && ids->dtype == NR_I32, "ids are (B,T) int32, not %s", nr_shape_text(ids, s, sizeof s)))
		return NR_ESHAPE;
	nr_out_like(k, 0, ids);
	return 0;
}
static void positions_forward(const struct nr_call *k)
{
	const int32_t pad = ((const struct embedding *)k->node->attr)->pad;
	const int64_t T = k->node->in[0]->d[1], B = k->node->in[0]->d[0];
	for (int64_t b = 0; b < B; b++) {
		const int32_t *id = nr_ints(&k->x[0]) + b * T;
		int32_t *place = nr_ints(&k->y[0]) + b * T, count = 0;
		for (int64_t t = 0; t < T; t++) place[t] = id[t] == pad ? pad : pad + ++count;
	}
}
static const struct nr_op op_positions = { .name = "text_positions", .shape = positions_shape, .forward = positions_forward };

nr_t *nr_text_positions(struct nr_net *n, nr_t *ids, int32_t pad_id)
{
	const struct embedding a = { pad_id };
	return nr_apply(n, &op_positions, &a, sizeof a, ids);
}

/* ---- text_lengths: CLIP's texts end with a token, which padding follows -------------------------------------------------------- */

static int lengths_shape(struct nr_node *k)
{
	const nr_t *ids = k->in[0];
	char s[64];
	if (nr_expect(k, ids->nd == 2 && ids->dtype == NR_I32, "ids are (B,T) int32, not %s", nr_shape_text(ids, s, sizeof s)))
		return NR_ESHAPE;
	nr_out(k, 0, NR_I32, 1, (int64_t[]){ ids->d[0] }, NULL);
	return 0;
}
static void lengths_forward(const struct nr_call *k)
{
	const int32_t end = ((const struct embedding *)k->node->attr)->pad;
	const int64_t T = k->node->in[0]->d[1], B = k->node->in[0]->d[0];
	for (int64_t b = 0; b < B; b++) {
		const int32_t *id = nr_ints(&k->x[0]) + b * T;
		int32_t best = 0;
		for (int32_t t = 1; t < T; t++)
			if (end < 0 ? id[t] > id[best] : id[best] != end && id[t] == end) best = t;
		nr_ints(&k->y[0])[b] = best + 1;
	}
}
static const struct nr_op op_lengths = { .name = "text_lengths", .shape = lengths_shape, .forward = lengths_forward };

nr_t *nr_text_lengths(struct nr_net *n, nr_t *ids, int32_t end_id)
{
	const struct embedding a = { end_id };
	return nr_apply(n, &op_lengths, &a, sizeof a, ids);
}
