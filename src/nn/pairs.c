/* Losses over all pairs of embeddings: what spreads them over the sphere.
 *
 *   square  mean (z_i.z_j)^2                  U-MAE's uniformity term (Zhang et al. 2022, arXiv:2210.08344)
 *   linear  mean z_i.z_j                      Eq. 8 of the SepNorm text
 *   gauss   log mean exp(-2 |z_i - z_j|^2)    uniformity, SepNorm Eq. 4 (Wang & Isola 2020, arXiv:2005.10242)
 *
 * z are the rows, divided by their lengths if `normalize`. Means run over all ordered pairs, the item itself included if
 * `self`; gauss is always normalised and without it. (B,T,C) takes the pairs of each sample and the mean over samples;
 * (N,C) is one set. With the
 * C x C product of all embeddings square needs no N x N matrix: sum (z_i.z_j)^2 = |Z^T Z|^2. */
#include <math.h>
#include <stdbool.h>

#include "math/gemm.h"
#include "math/row.h"
#include "nn/op.h"

static const double GAUSS_T = 2;

struct sizes { int64_t sets, N, C; };
static struct sizes sizes_of(const nr_t *x)
{
	const int64_t sets = x->nd == 3 ? x->d[0] : 1;
	return (struct sizes){ sets, nr_rows(x) / sets, nr_cols(x) };
}

struct stash { real *z, *length, *gram; double *total; };       /* (rows,C) (rows) (sets,C,C) (sets) */
static size_t stash_layout(const nr_t *x, void *base, struct stash *s)
{
	const struct sizes n = sizes_of(x);
	const int64_t rows = n.sets * n.N;
	*s = (struct stash){ .total = base };
	if (base) {
		s->z = (real *)(s->total + n.sets);
		s->length = s->z + rows * n.C;
		s->gram = s->length + rows;
	}
	return (size_t)n.sets * sizeof(double) + (size_t)(rows * n.C + rows + n.sets * n.C * n.C) * sizeof(real);
}

static struct nr_gemm gram_product(const struct sizes *n, const real *z, real *gram)
{
	return (struct nr_gemm){ .m = n->C, .n = n->C, .k = n->N, .a = z, .lda = n->C, .ta = 1, .b = z, .ldb = n->C, .c = gram,
		.ldc = n->C };
}
static struct nr_gemm spread_product(const struct sizes *n, const real *z, const real *gram, real *dz)
{
	return (struct nr_gemm){ .m = n->N, .n = n->C, .k = n->C, .a = z, .lda = n->C, .b = gram, .ldb = n->C, .c = dz, .ldc = n->C };
}

static double pairs_of(const struct sizes *n, const struct nr_pair_options *o)
{
	const double N = (double)n->N;
	return o->kind == NR_PAIRS_GAUSS || !o->self ? N * (N - 1) : N * N;
}

static int shape(struct nr_node *k)
{
	const nr_t *x = k->in[0];
	const struct nr_pair_options *o = k->attr;
	struct stash s;
	if (nr_expect(k, x->nd == 2 || x->nd == 3, "embeddings are (N,C) or (B,T,C)")) return NR_ESHAPE;
	const struct sizes n = sizes_of(x);
	if (nr_expect(k, n.N > 1 || o->self, "pairs need at least two embeddings")) return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 0, NULL, NULL);
	k->stash = stash_layout(x, NULL, &s);
	const struct nr_gemm a = gram_product(&n, NULL, NULL), b = spread_product(&n, NULL, NULL, NULL);
	const size_t ga = nr_gemm_scratch_of(&a), gb = nr_gemm_scratch_of(&b);
	k->scratch = (size_t)(n.N * n.C) * sizeof(real) + (size_t)n.N * sizeof(double) + (ga > gb ? ga : gb);
	return 0;
}

static void normalise(const struct nr_view *x, bool on, const struct stash *s)
{
	const int64_t C = x->c;
#pragma omp parallel for schedule(static) if (x->rows * C > 16384)
	for (int64_t r = 0; r < x->rows; r++) {
		const real *row = nr_row(x, r);
		s->length[r] = on ? nr_sqrt(nr_dot(C, row, row)) : 1;
		nr_row_scale(C, s->length[r] > 0 ? 1 / s->length[r] : 0, row, s->z + r * C);
	}
}

/* The sum over pairs; for gauss the sum of the exponentials. part: (N) */
static double total_of(const struct sizes *n, const struct nr_pair_options *o, const real *z, real *gram, void *scratch)
{
	const int64_t N = n->N, C = n->C;
	double sum = 0, self = 0, *part = scratch;
	for (int64_t i = 0; i < N && !o->self; i++) {
		const double q = (double)nr_dot(C, z + i * C, z + i * C);
		self += o->kind == NR_PAIRS_SQUARE ? q * q : q;
	}
	if (o->kind == NR_PAIRS_LINEAR) {               /* |sum z|^2 */
		memset(gram, 0, (size_t)C * sizeof *gram);
		nr_row_active->col_sum(N, C, z, C, gram);
		for (int64_t c = 0; c < C; c++) sum += (double)gram[c] * gram[c];
		return sum - self;
	}
	if (o->kind == NR_PAIRS_SQUARE) {
		const struct nr_gemm g = gram_product(n, z, gram);
		nr_gemm_run(&g, scratch);
		for (int64_t c = 0; c < C * C; c++) sum += (double)gram[c] * gram[c];
		return sum - self;
	}
#pragma omp parallel for schedule(dynamic, 16) if (N > 64)
	for (int64_t i = 0; i < N; i++) {
		part[i] = 0;
		for (int64_t j = 0; j < N; j++)
			if (j != i) part[i] += exp(-GAUSS_T * (2 - 2 * (double)nr_dot(C, z + i * C, z + j * C)));
	}
	for (int64_t i = 0; i < N; i++) sum += part[i];
	return sum;
}

static void forward(const struct nr_call *k)
{
	const struct nr_pair_options *o = k->node->attr;
	const struct sizes n = sizes_of(k->node->in[0]);
	const double pairs = pairs_of(&n, o);
	struct stash s;
	double loss = 0;
	stash_layout(k->node->in[0], k->stash, &s);
	normalise(&k->x[0], o->normalize, &s);
	for (int64_t b = 0; b < n.sets; b++) {
		s.total[b] = total_of(&n, o, s.z + b * n.N * n.C, s.gram + b * n.C * n.C, k->scratch);
		loss += o->kind == NR_PAIRS_GAUSS ? log(s.total[b] / pairs) : s.total[b] / pairs;
	}
	*(real *)k->y[0].p = (real)(loss / (double)n.sets);
}

/* dz (N,C) = d total / dz; for gauss of log total. */
static void spread(const struct sizes *n, const struct nr_pair_options *o, const struct stash *s, int64_t b, real *dz, void *scratch)
{
	const int64_t N = n->N, C = n->C;
	const real *z = s->z + b * N * C, *gram = s->gram + b * C * C;
	if (o->kind == NR_PAIRS_SQUARE) {
		const struct nr_gemm g = spread_product(n, z, gram, dz);
		nr_gemm_run(&g, scratch);
	}
#pragma omp parallel for schedule(dynamic, 16) if (N > 64)
	for (int64_t i = 0; i < N; i++) {
		const real *zi = z + i * C, q = o->self ? 0 : nr_dot(C, zi, zi);
		real *d = dz + i * C;
		if (o->kind == NR_PAIRS_SQUARE)
			for (int64_t c = 0; c < C; c++) d[c] = 4 * (d[c] - q * zi[c]);
		else if (o->kind == NR_PAIRS_LINEAR)
			for (int64_t c = 0; c < C; c++) d[c] = 2 * (gram[c] - (o->self ? 0 : zi[c]));
		else {
			memset(d, 0, (size_t)C * sizeof *d);
			for (int64_t j = 0; j < N; j++)
				if (j != i)
					nr_row_axpy(C, (real)(4 * GAUSS_T * exp(-GAUSS_T * (2 - 2 * (double)nr_dot(C, zi, z + j * C))) /
						s->total[b]), z + j * C, d);
		}
	}
}

static void backward(const struct nr_call *k)
{
	const struct nr_pair_options *o = k->node->attr;
	const struct sizes n = sizes_of(k->node->in[0]);
	const int64_t N = n.N, C = n.C;
	const real dy = (real)((double)*(const real *)k->dy[0].p / (double)n.sets /
		(o->kind == NR_PAIRS_GAUSS ? 1 : pairs_of(&n, o)));
	struct stash s;
	stash_layout(k->node->in[0], k->stash, &s);
	real *dz = k->scratch;                          /* (N,C) */
	for (int64_t b = 0; b < n.sets; b++) {
		spread(&n, o, &s, b, dz, dz + N * C);
#pragma omp parallel for schedule(static) if (N * C > 16384)
		for (int64_t i = 0; i < N; i++) {       /* through the division by the length: dx = (dz - z (z.dz)) / length */
			const int64_t r = b * N + i;
			const real *z = s.z + r * C, dot = o->normalize ? nr_dot(C, z, dz + i * C) : 0;
			const real scale = s.length[r] > 0 ? dy / s.length[r] : 0;
			real *dx = nr_row(&k->dx[0], r);
			for (int64_t c = 0; c < C; c++) nr_put(&dx[c], scale * (dz[i * C + c] - z[c] * dot), k->add[0]);
		}
	}
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text)
{
	const struct nr_pair_options o = {
		.kind = strstr(text, "square") ? NR_PAIRS_SQUARE : strstr(text, "linear") ? NR_PAIRS_LINEAR : NR_PAIRS_GAUSS,
		.normalize = strstr(text, "raw") == NULL, .self = strstr(text, "self") != NULL,
	};
	return nr_pair_loss(n, x[0], o);
}
static const struct nr_case cases[] = {
	{ "9x7", "gauss" }, { "2x3", "gauss" }, { "70x3", "gauss" }, { "9x7", "square self" }, { "5x4", "square" },
	{ "2x4x3", "square" }, { "9x7", "linear raw self" }, { "2x4x3", "linear" }, { "6x2", "square raw" }, { "3x5x2", "gauss" },
	{ NULL, NULL },
};

const struct nr_op nr_op_pair_loss = {
	.name = "pair_loss", .shape = shape, .forward = forward, .backward = backward, .flags = NR_STRIDED | NR_BATCHWISE,
	.try_case = try_case, .cases = cases,
};

nr_t *nr_pair_loss(struct nr_net *n, nr_t *x, struct nr_pair_options o)
{
	if (o.kind == NR_PAIRS_GAUSS) o.normalize = true, o.self = false;
	return nr_apply(n, &nr_op_pair_loss, &o, sizeof o, x);
}
