/* Tokens: position tables, class tokens, subsets and their return (MAE, arXiv:2111.06377), means.
 *
 * Lengths (tok->valid) count every row of a sample, special tokens too. Places on the grid (tok->pos) belong to the
 * tokens that are not special. Indices outside their range read zeros (or the mask token) and send no gradient. */
#include "graph/blocks.h"
#include "graph/net.h"
#include "math/pool.h"
#include "math/gather.h"
#include "math/row.h"
#include "nn/op.h"

static int is_tokens(struct nr_node *k, const nr_t *x)
{
	char s[64];
	return !nr_expect(k, x->nd == 3 && x->dtype == NR_REAL, "tokens are (B,T,C), not %s",
		nr_shape_text(x, s, sizeof s));
}

/* out (T,C) = sum over samples of x (B,T,C), or +=; each value is summed by one thread, in order. */
static void sum_samples(const struct nr_view *x, real *out, int add)
{
	const int64_t B = x->rows / x->t, C = x->c;
#pragma omp parallel for schedule(static) if (x->rows * C > 16384)
	for (int64_t t = 0; t < x->t; t++) {
		nr_row_put(C, nr_row(x, t), out + t * C, add);
		for (int64_t b = 1; b < B; b++) nr_row_axpy(C, 1, nr_row(x, b * x->t + t), out + t * C);
	}
}

/* ---- add_table ------------------------------------------------------------------------------------------------- */

static int table_shape(struct nr_node *k)
{
	const nr_t *x = k->in[0], *table = k->in[1];
	char sx[64], st[64];
	if (nr_expect(k, x->nd >= 3 && nr_cols(table) == nr_cols(x) && nr_rows(table) == nr_rows_per_sample(x),
		      "the table %s does not fit %s", nr_shape_text(table, st, sizeof st),
		nr_shape_text(x, sx, sizeof sx)))
		return NR_ESHAPE;
	nr_out_like(k, 0, x);
	return 0;
}
static void table_forward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[0], *y = &k->y[0];
	const real *table = k->x[1].p;
	const struct nr_blocks n = nr_blocks_of(x, 0);
#pragma omp parallel for schedule(static) if (x->rows * x->c > 16384)
	for (int64_t q = 0; q < n.count; q++) {
		int64_t rows, r = nr_block(&n, q, &rows);
		nr_row_add(rows * x->c, nr_row(x, r), table + r % x->t * x->c, nr_row(y, r));
	}
}
static void table_backward(const struct nr_call *k)
{
	if (k->want & 2) sum_samples(&k->dy[0], k->dx[1].p, k->add[1]);
	if (k->want & 1 && k->dx[0].p != k->dy[0].p) nr_rows_put(&k->dx[0], &k->dy[0], k->add[0]);
}
static nr_t *table_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_add_table(n, x[0], x[1]);
}
static const struct nr_case table_cases[] = {
	{ "3x5x7 1x5x7", "" }, { "2x70x3 70x3", "" }, { "1x1x1 1x1x1", "" }, { "2x2x3x5 2x3x5", "" }, { NULL, NULL },
};
const struct nr_op nr_op_add_table = {
	.name = "add_table", .shape = table_shape, .forward = table_forward, .backward = table_backward,
	.flags = NR_CHEAP | NR_STRIDED | NR_INPLACE | NR_INPLACE_GRAD, .try_case = table_try, .cases = table_cases,
};

nr_t *nr_add_table(struct nr_net *n, nr_t *x, nr_t *table)
{
	return nr_apply(n, &nr_op_add_table, NULL, 0, x, table);
}

/* ---- expand, prepend: a join lets the tokens before it be written in place ------------------------------------- */

struct expand { int64_t samples; };

static int expand_shape(struct nr_node *k)
{
	const nr_t *x = k->in[0];
	char s[64];
	if (nr_expect(k, x->nd == 2 || (x->nd == 3 && x->d[0] == 1),
		"a learned token is (n,C) or (1,n,C), not %s", nr_shape_text(x, s, sizeof s)))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ ((const struct expand *)k->attr)->samples, nr_rows(x), nr_cols(x) },
		NULL);
	return 0;
}
static void expand_forward(const struct nr_call *k)
{
	const struct nr_view *y = &k->y[0];
	for (int64_t b = 0; b < y->rows / y->t; b++)
		memcpy(nr_row(y, b * y->t), k->x[0].p, (size_t)(y->t * y->c) * sizeof(real));
}
static void expand_backward(const struct nr_call *k) { sum_samples(&k->dy[0], k->dx[0].p, k->add[0]); }
static nr_t *expand_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_prepend(n, x[0], x[1]);
}
static const struct nr_case expand_cases[] = { { "1x1x5 3x4x5", "" }, { "2x3 1x1x3", "" }, { NULL, NULL } };
const struct nr_op nr_op_expand = {
	.name = "expand", .shape = expand_shape, .forward = expand_forward, .backward = expand_backward,
	.flags = NR_CHEAP | NR_STRIDED,
	.try_case = expand_try, .cases = expand_cases,
};

nr_t *nr_prepend(struct nr_net *n, nr_t *token, nr_t *x)
{
	if (!token || !x) return NULL;
	nr_t *lead = nr_apply(n, &nr_op_expand, (&(struct expand){ x->d[0] }), sizeof(struct expand), token);
	nr_t *y = nr_join(n, lead, x);
	if (!y) return NULL;
	struct nr_tokens tok = x->tok ? *x->tok : (struct nr_tokens){ 0 };
	tok.special += (int32_t)lead->d[1];
	if (tok.valid) tok.valid = nr_lengths(n, tok.valid, lead->d[1], y->d[1]);
	return nr_with_tokens(n, y, tok);
}

/* ---- take_tokens ----------------------------------------------------------------------------------------------- */

static int check_index(struct nr_node *k, const nr_t *x, const nr_t *index)
{
	char sx[64], si[64];
	return nr_expect(k, index->dtype == NR_I32 && index->nd == 2 && index->d[0] == x->d[0],
		"the indices %s of %s must be int32 (B,K)",
			 nr_shape_text(index, si, sizeof si), nr_shape_text(x, sx, sizeof sx));
}

static int take_shape(struct nr_node *k)
{
	const nr_t *x = k->in[0], *index = k->in[1];
	if (!is_tokens(k, x) || check_index(k, x, index)) return NR_ESHAPE;
	const struct nr_tokens *tok = x->tok;
	if (nr_expect(k, !tok || (!tok->special && !tok->valid && !tok->pos),
		      "a subset is taken of all tokens: without special ones, padding or an earlier choice"))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ x->d[0], index->d[1], x->d[2] }, NULL);
	return 0;
}
static void take_forward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[0], *y = &k->y[0];
	nr_gather_tokens(y->rows / y->t, x->t, y->t, x->c, x->p, x->bs, nr_ints(&k->x[1]), y->p, y->bs, 0);
}
static void take_backward(const struct nr_call *k)
{
	const struct nr_view *dx = &k->dx[0], *dy = &k->dy[0];
	if (k->want & 1)
		nr_scatter_tokens(dx->rows / dx->t, dx->t, dy->t, dx->c, dx->p, dx->bs, nr_ints(&k->x[1]), dy->p, dy->bs, k->add[0]);
}
static nr_t *take_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_take_tokens(n, x[0], x[1]);
}
static const struct nr_case take_cases[] = {
	{ "2x5x3 2x3:i5u", "" }, { "1x1x2 1x1:i1", "" }, { "3x4x7 3x6:i4", "" }, { NULL, NULL },
};
const struct nr_op nr_op_take_tokens = {
	.name = "take_tokens", .shape = take_shape, .forward = take_forward, .backward = take_backward,
	.keeps = NR_KEEP_X(1),
	.gathers = 1, .flags = NR_CHEAP | NR_STRIDED, .try_case = take_try, .cases = take_cases,
};

nr_t *nr_take_tokens(struct nr_net *n, nr_t *x, nr_t *index)
{
	nr_t *y = nr_apply(n, &nr_op_take_tokens, NULL, 0, x, index);
	if (!y || !x->tok) return y;
	struct nr_tokens tok = *x->tok;
	tok.pos = index;
	return nr_with_tokens(n, y, tok);
}

/* ---- restore_tokens -------------------------------------------------------------------------------------------- */

static int restore_shape(struct nr_node *k)
{
	const nr_t *x = k->in[0], *mask = k->in[1], *restore = k->in[2];
	if (!is_tokens(k, x) || check_index(k, x, restore) ||
	    nr_expect(k, nr_len(mask) == x->d[2], "the mask token has %lld channels, but the others have %lld",
		(long long)nr_len(mask), (long long)x->d[2]))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ x->d[0], restore->d[1], x->d[2] }, NULL);
	k->scratch = (size_t)(x->d[0] * x->d[2]) * sizeof(real); /* dmask by sample */
	return 0;
}
static void restore_forward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[0], *y = &k->y[0];
	const int32_t *restore = nr_ints(&k->x[2]);
#pragma omp parallel for schedule(static) if (y->rows * y->c > 16384)
	for (int64_t r = 0; r < y->rows; r++) {
		const int visible = restore[r] >= 0 && restore[r] < x->t;
		memcpy(nr_row(y, r), visible ? nr_row(x, r / y->t * x->t + restore[r]) : k->x[1].p,
			(size_t)x->c * sizeof(real));
	}
}
static void restore_backward(const struct nr_call *k)
{
	const struct nr_view *dx = &k->dx[0], *dy = &k->dy[0];
	const int32_t *restore = nr_ints(&k->x[2]);
	const int64_t K = dx->t, T = dy->t, C = dx->c, samples = dy->rows / T;
	real *part = k->scratch;                        /* (B,C) */
#pragma omp parallel for schedule(static) if (dy->rows * C > 16384)
	for (int64_t b = 0; b < samples; b++) {
		memset(part + b * C, 0, (size_t)C * sizeof(real));
		if (!k->add[0]) memset(nr_row(dx, b * K), 0, (size_t)(K * C) * sizeof(real));
		for (int64_t r = b * T; r < (b + 1) * T; r++) {
			const int visible = restore[r] >= 0 && restore[r] < K;
			nr_row_axpy(C, 1, nr_row(dy, r), visible ? nr_row(dx, b * K + restore[r]) : part + b * C);
		}
	}
	if (k->want & 2) nr_fold(samples, C, part, k->dx[1].p, k->add[1]);
}
static nr_t *restore_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_restore_tokens(n, x[0], x[1], x[2]);
}
static const struct nr_case restore_cases[] = {
	{ "2x2x3 1x1x3 2x5:i5u", "" }, { "1x1x2 2 1x1:i2", "" }, { "3x4x5 1x1x5 3x9:i9u", "" }, { NULL, NULL },
};
const struct nr_op nr_op_restore_tokens = {
	.name = "restore_tokens", .shape = restore_shape, .forward = restore_forward, .backward = restore_backward,
	.keeps = NR_KEEP_X(2), .flags = NR_CHEAP | NR_STRIDED, .try_case = restore_try, .cases = restore_cases,
};

nr_t *nr_restore_tokens(struct nr_net *n, nr_t *x, nr_t *mask_token, nr_t *restore)
{
	nr_t *y = nr_apply(n, &nr_op_restore_tokens, NULL, 0, x, mask_token, restore);
	if (!y || !x->tok) return y;
	struct nr_tokens tok = *x->tok;
	tok.pos = NULL;
	return nr_with_tokens(n, y, tok);
}

/* ---- mean_tokens: over the tokens that are not special and not padding ----------------------------------------- */

struct mean { int64_t special; };

static int mean_shape(struct nr_node *k)
{
	const nr_t *x = k->in[0];
	const struct mean *a = k->attr;
	if (!is_tokens(k, x) || nr_expect(k, x->d[1] > a->special, "all %lld tokens are special",
		(long long)x->d[1]) ||
	    nr_expect(k, k->n_in < 2 || (k->in[1]->dtype == NR_I32 && nr_len(k->in[1]) == x->d[0]),
		"lengths must be %lld int32",
		      (long long)x->d[0]))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 2, (int64_t[]){ x->d[0], x->d[2] }, NULL);
	return 0;
}
static const int32_t *mean_lengths(const struct nr_call *k) { return k->node->n_in > 1 ? nr_ints(&k->x[1]) : NULL; }
static void mean_forward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[0];
	const struct mean *a = k->node->attr;
	nr_pool_tokens_forward(x->rows / x->t, x->t, x->c, a->special, mean_lengths(k), x->p, k->y[0].p);
}
static void mean_backward(const struct nr_call *k)
{
	const struct nr_view *dx = &k->dx[0];
	const struct mean *a = k->node->attr;
	if (k->want & 1)
		nr_pool_tokens_backward(dx->rows / dx->t, dx->t, dx->c, a->special, mean_lengths(k), k->dy[0].p,
			dx->p, k->add[0]);
}
static nr_t *mean_try(struct nr_net *n, nr_t **x, const char *options)
{
	if (strstr(options, "special")) nr_with_tokens(n, x[0], (struct nr_tokens){ .special = 1 });
	return nr_mean_tokens(n, x[0], strstr(options, "valid") ? x[1] : NULL);
}
static const struct nr_case mean_cases[] = {
	{ "2x5x3", "" }, { "1x1x1", "" }, { "2x70x3", "special" }, { "3x4x5 3:i1-4", "valid" },
	{ "3x4x5 3:i1-4", "special,valid" },
	{ NULL, NULL },
};
const struct nr_op nr_op_mean_tokens = {
	.name = "mean_tokens", .shape = mean_shape, .forward = mean_forward, .backward = mean_backward,
	.keeps = NR_KEEP_X(1),
	.try_case = mean_try, .cases = mean_cases,
};

static nr_t *mean_of(struct nr_net *n, nr_t *x, nr_t *valid, int64_t special)
{
	const struct mean a = { special };
	if (x && !valid && x->tok) valid = x->tok->valid;
	return valid ? nr_apply(n, &nr_op_mean_tokens, &a, sizeof a, x, valid) : nr_apply(n, &nr_op_mean_tokens, &a, sizeof a, x);
}
nr_t *nr_mean_tokens(struct nr_net *n, nr_t *x, nr_t *valid) { return mean_of(n, x, valid, x && x->tok ? x->tok->special : 0); }
nr_t *nr_mean_all_tokens(struct nr_net *n, nr_t *x, nr_t *valid) { return mean_of(n, x, valid, 0); }
