/* simcse: the contrastive loss of sentence embeddings. Gao et al. 2021, arXiv:2104.08821, Eq. 1 and 5.
 *
 *   z (B,S,C): a sentence, its positive and, with S = 3, its hard negative; u = z / max(|z|, 1e-8)
 *   sim_ij     = u1_i . u2_j / temperature
 *   sim_i(B+j) = u1_i . u3_j / temperature, + hard_weight where j = i
 *   loss       = mean over i of  log sum_j e^sim_ij - sim_ii
 *
 * Backward reads the unit vectors and sim; sums over the batch are products, so their order does not depend on threads. */
#include "math/gemm.h"
#include "math/softmax.h"
#include "nn/op.h"

static const real SHORTEST = (real)1e-8;

struct simcse { double temperature, hard_weight; };
struct sizes { int64_t B, S, C, M; };       /* M: columns of sim */
static struct sizes sizes_of(const nr_t *z)
{
	return (struct sizes){ z->d[0], z->d[1], z->d[2], z->d[0] * (z->d[1] - 1) };
}

/* Stash: u (S,B,C), so that the rows of one role follow each other, and lengths (S,B). */
struct stash { real *u, *length; };
static struct stash stash_at(const struct sizes *n, void *base)
{
	return (struct stash){ base, (real *)base + n->S * n->B * n->C };
}

/* The second views; none while only sizes are asked for. */
static const real *behind(const struct sizes *n, const real *u) { return u ? u + n->B * n->C : NULL; }

static struct nr_gemm sim_product(const struct sizes *n, const real *u, real *sim)
{
	return (struct nr_gemm){ .m = n->B, .n = n->M, .k = n->C, .a = u, .lda = n->C, .b = behind(n, u), .ldb = n->C, .tb = 1,
		.c = sim, .ldc = n->M };
}
static struct nr_gemm first_product(const struct sizes *n, const real *dsim, const real *u, real *du)
{
	return (struct nr_gemm){ .m = n->B, .n = n->C, .k = n->M, .a = dsim, .lda = n->M, .b = behind(n, u), .ldb = n->C, .c = du,
		.ldc = n->C };
}
static struct nr_gemm other_product(const struct sizes *n, const real *dsim, const real *u, real *du)
{
	return (struct nr_gemm){ .m = n->M, .n = n->C, .k = n->B, .a = dsim, .lda = n->M, .ta = 1, .b = u, .ldb = n->C,
		.c = du ? du + n->B * n->C : NULL, .ldc = n->C };
}

/* Scratch: the products' own, then dsim (B,M), du (S,B,C), each row's loss and label (B). */
struct scratch { void *product; real *dsim, *du, *loss; int32_t *label; };
static size_t scratch_layout(const struct sizes *n, void *base, struct scratch *s)
{
	const struct nr_gemm g[] = { sim_product(n, NULL, NULL), first_product(n, NULL, NULL, NULL), other_product(n, NULL, NULL, NULL) };
	size_t most = 0;
	for (int i = 0; i < 3; i++) most = nr_gemm_scratch_of(&g[i]) > most ? nr_gemm_scratch_of(&g[i]) : most;
	most = (most + 63) / 64 * 64;
	if (base) {
		s->product = base;
		s->dsim = (real *)((char *)base + most);
		s->du = s->dsim + n->B * n->M;
		s->loss = s->du + n->S * n->B * n->C;
		s->label = (int32_t *)(s->loss + n->B);
	}
	return most + (size_t)(n->B * n->M + n->S * n->B * n->C + n->B) * sizeof(real) + (size_t)n->B * sizeof(int32_t);
}

static int shape(struct nr_node *k)
{
	const nr_t *z = k->in[0];
	const struct simcse *a = k->attr;
	char s[64];
	if (nr_expect(k, z->nd == 3 && (z->d[1] == 2 || z->d[1] == 3), "embeddings are (B,2,C) or (B,3,C), not %s",
		      nr_shape_text(z, s, sizeof s)) ||
	    nr_expect(k, a->temperature > 0, "temperature must be positive, not %g", a->temperature))
		return NR_ESHAPE;
	const struct sizes n = sizes_of(z);
	nr_out(k, 0, NR_REAL, 1, (int64_t[]){ 1 }, NULL);
	nr_out(k, 1, NR_REAL, 2, (int64_t[]){ n.B, n.M }, NULL);
	k->stash = (size_t)(n.S * n.B * (n.C + 1)) * sizeof(real);
	k->scratch = scratch_layout(&n, NULL, NULL);
	return 0;
}

static void forward(const struct nr_call *k)
{
	const struct simcse *a = k->node->attr;
	const struct sizes n = sizes_of(k->node->in[0]);
	const struct stash t = stash_at(&n, k->stash);
	struct scratch s;
	real *sim = k->y[1].p;
	double loss = 0;
	scratch_layout(&n, k->scratch, &s);
#pragma omp parallel for schedule(static) if (n.S * n.B * n.C > 16384)
	for (int64_t r = 0; r < n.S * n.B; r++) {
		const real *z = nr_row(&k->x[0], r % n.B * n.S + r / n.B), length = nr_sqrt(nr_dot(n.C, z, z));
		t.length[r] = length;
		nr_row_scale(n.C, 1 / (length > SHORTEST ? length : SHORTEST), z, t.u + r * n.C);
	}
	const struct nr_gemm g = sim_product(&n, t.u, sim);
	nr_gemm_run(&g, s.product);
	nr_row_scale(n.B * n.M, (real)(1 / a->temperature), sim, sim);
	for (int64_t i = 0; i < n.B; i++) {
		s.label[i] = (int32_t)i;
		if (n.S == 3) sim[i * n.M + n.B + i] += (real)a->hard_weight;
	}
	nr_xent_labels(n.B, n.M, sim, n.M, s.label, -1, 0, 1, s.loss, NULL, 0, 0);
	for (int64_t i = 0; i < n.B; i++) loss += (double)s.loss[i];
	*(real *)k->y[0].p = (real)(loss / (double)n.B);
}

static void backward(const struct nr_call *k)
{
	const struct simcse *a = k->node->attr;
	const struct sizes n = sizes_of(k->node->in[0]);
	const struct stash t = stash_at(&n, k->stash);
	struct scratch s;
	if (!(k->want & 1)) return;
	scratch_layout(&n, k->scratch, &s);
	for (int64_t i = 0; i < n.B; i++) s.label[i] = (int32_t)i;
	const real dloss = k->dy[0].p ? *(const real *)k->dy[0].p : 0;
	nr_xent_labels(n.B, n.M, k->y[1].p, n.M, s.label, -1, 0, dloss / (real)n.B, NULL, s.dsim, n.M, 0);
	if (k->dy[1].p) nr_row_put(n.B * n.M, k->dy[1].p, s.dsim, 1);
	nr_row_scale(n.B * n.M, (real)(1 / a->temperature), s.dsim, s.dsim);
	const struct nr_gemm first = first_product(&n, s.dsim, t.u, s.du), other = other_product(&n, s.dsim, t.u, s.du);
	nr_gemm_run(&first, s.product);
	nr_gemm_run(&other, s.product);
#pragma omp parallel for schedule(static) if (n.S * n.B * n.C > 16384)
	for (int64_t r = 0; r < n.S * n.B; r++) {       /* through the division by the length, which is a constant below the limit */
		const real *u = t.u + r * n.C, *du = s.du + r * n.C, length = t.length[r];
		const real along = length > SHORTEST ? nr_dot(n.C, u, du) : 0, scale = 1 / (length > SHORTEST ? length : SHORTEST);
		real *dz = nr_row(&k->dx[0], r % n.B * n.S + r / n.B);
		for (int64_t c = 0; c < n.C; c++) nr_put(&dz[c], (du[c] - u[c] * along) * scale, k->add[0]);
	}
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	nr_t *sim, *loss = nr_simcse_loss(n, x[0], strstr(options, "cold") ? 0.2 : 1, strstr(options, "hard") ? 0.7 : 0, &sim);
	return strstr(options, "both") ? nr_add(n, loss, nr_weighted_sum(n, sim, x[1])) : loss;
}
static const struct nr_case cases[] = {
	{ "5x2x7", "" }, { "4x3x6", "hard" }, { "1x2x3", "" }, { "1x3x1", "hard" }, { "9x3x17", "hard cold" }, { "33x2x5", "cold" },
	{ "3x3x4 3x6", "hard both" },
	{ NULL, NULL },
};
const struct nr_op nr_op_simcse = {
	.name = "simcse", .shape = shape, .forward = forward, .backward = backward, .keeps = NR_KEEP_Y(1),
	.flags = NR_STRIDED | NR_BATCHWISE, .try_case = try_case, .cases = cases,
};

nr_t *nr_simcse_loss(struct nr_net *n, nr_t *z, double temperature, double hard_weight, nr_t **sim)
{
	const struct simcse a = { temperature, hard_weight };
	nr_t *loss = nr_apply(n, &nr_op_simcse, &a, sizeof a, z);
	if (sim) *sim = loss ? loss->src->out[1] : NULL;
	return loss;
}
