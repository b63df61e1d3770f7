/* muon: momentum, made orthogonal, for the matrices of hidden layers; AdamW for everything else. Jordan et al. 2024, as torch.optim.Muon of
 * PyTorch 2.15 has it, but with Newton-Schulz in float (torch: bfloat16).
 *
 *   B = mu B + (1 - mu) g; U = (1 - mu) g + mu B (nesterov) or B; w = (1 - lr wd) w - lr ratio NS(U)
 *   NS: X = U / max(|U|, 1e-7), then a few times S = X X^T, X = a X + (b S + c S S) X, from the smaller side
 *
 * ratio: original sqrt(max(1, rows / columns)), match_rms_adamw .2 sqrt(max(rows, columns)), spectral_unclamped sqrt(rows / columns). With
 * match_rms_adamw a learning rate of AdamW fits both kinds. A packed layer of queries, keys and values is one matrix. */
#include <string.h>

#include "math/chunk.h"
#include "math/gemm.h"
#include "optim/optimizers.h"

struct muon { double muon_momentum, adamw_rate; int64_t ns_steps; int32_t ns, adjust; bool muon_nesterov; };

static const char *const triples[] = { "torch", "quintic", NULL };
static const char *const adjusts[] = { "original", "match_rms_adamw", "spectral_unclamped", NULL };
enum { ORIGINAL, MATCH_RMS, SPECTRAL };

static const struct nr_option own[] = {
	NR_OPT_FLOAT(struct muon, muon_momentum, 0.95, 0, 1, "share of the previous step that is kept"),
	NR_OPT_BOOL(struct muon, muon_nesterov, "1", "look ahead by one step of momentum"),
	NR_OPT_INT(struct muon, ns_steps, 5, 1, 100, "steps of Newton and Schulz"),
	NR_OPT_ENUM(struct muon, ns, "torch", triples, "their coefficients: one triple, or timm's five"),
	NR_OPT_ENUM(struct muon, adjust, "original", adjusts, "how the step grows with the matrix"),
	NR_OPT_FLOAT(struct muon, adamw_rate, 1, 0, 1e6, "learning rate of the parameters under AdamW, as a multiple"),
	NR_OPT_END
};
/* AdamW's, for the others */
static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct nr_optim, beta1, 0.9, 0, 1, "decay of the first moment"),
	NR_OPT_FLOAT(struct nr_optim, beta2, 0.999, 0, 1, "decay of the second moment"), NR_OPTIM_EPS, NR_OPT_END
};

static int slots(const struct nr_optim *o) { return 2; }

static bool orthogonal(const struct nr_segment *s) { return s->flags & NR_SEGMENT_MATRIX && s->nd == 2 && s->d && s->count > 0; }

/* The room of one matrix: X, its next value, S and b S + c S S of the smaller side, and that of the products. */
struct room { real *x, *next, *s, *t; void *gemm; };
struct sizes { int64_t rows, columns, side, other; bool tall; };

static struct sizes sizes_of(const struct nr_segment *p)
{
	const int64_t r = p->d[0], c = p->d[1];
	return (struct sizes){ r, c, nr_min64(r, c), nr_max64(r, c), r > c };
}

static size_t gemm_room(struct sizes z)
{
	const size_t square = nr_gemm_scratch(z.side, z.side, z.other, z.tall, !z.tall);
	const size_t power = nr_gemm_scratch(z.side, z.side, z.side, 0, 0);
	const size_t apply = z.tall ? nr_gemm_scratch(z.rows, z.side, z.side, 0, 0) : nr_gemm_scratch(z.side, z.columns, z.side, 0, 0);
	const size_t most = square > power ? square : power;
	return most > apply ? most : apply;
}

static size_t reals(int64_t n) { return ((size_t)n * sizeof(real) + 63) / 64 * 64; }

/* Coefficients of AdamW for all, then room for the largest matrix. */
static size_t lead(int64_t count) { return ((size_t)count * sizeof(struct nr_adam_coef) + 63) / 64 * 64; }

static size_t scratch(const struct nr_segment *s, int64_t count, int64_t chunks)
{
	size_t most = 0;
	for (int64_t i = 0; i < count; i++) {
		if (!orthogonal(&s[i])) continue;
		const struct sizes z = sizes_of(&s[i]);
		const size_t here = 2 * reals(s[i].count) + 2 * reals(z.side * z.side) + gemm_room(z) + 64;
		if (here > most) most = here;
	}
	return lead(count) + most + 64;
}

static struct room room_of(const struct nr_optim_call *k, const struct nr_segment *p)
{
	const struct sizes z = sizes_of(p);
	char *at = (char *)k->scratch + lead(k->count);
	at += -(uintptr_t)at % 64;
	struct room r = { .x = (real *)at };
	r.next = (real *)(at += reals(p->count));
	r.s = (real *)(at += reals(p->count));
	r.t = (real *)(at += reals(z.side * z.side));
	r.gemm = at + reals(z.side * z.side);
	return r;
}

/* y = a x + b y, n values; threads take whole chunks. */
static void blend(int64_t n, real a, const real *x, real b, real *y)
{
#pragma omp parallel for schedule(static) if (n >= 4 * NR_UPDATE_CHUNK)
	for (int64_t q = 0; q < (n + NR_UPDATE_CHUNK - 1) / NR_UPDATE_CHUNK; q++)
		for (int64_t i = q * NR_UPDATE_CHUNK; i < nr_min64(n, (q + 1) * NR_UPDATE_CHUNK); i++) y[i] = a * x[i] + b * y[i];
}

static double length(const real *x, int64_t n)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i += NR_UPDATE_CHUNK) sum += nr_update_active->sum_sq(nr_min64(NR_UPDATE_CHUNK, n - i), x + i);
	return sqrt(sum);
}

/* One step of Newton and Schulz: next = a X + (b S + c S S) X, S = X X^T; of a tall X from the other side. */
static void newton_schulz(const struct room *r, struct sizes z, const real *abc)
{
	const int64_t n = z.side * z.side, side = z.side, ld = z.columns;
	nr_gemm_run(&(struct nr_gemm){ .m = side, .n = side, .k = z.other, .a = r->x, .lda = ld, .ta = z.tall, .b = r->x, .ldb = ld,
		.tb = !z.tall, .c = r->s, .ldc = side }, r->gemm);
	nr_gemm_run(&(struct nr_gemm){ .m = side, .n = side, .k = side, .a = r->s, .lda = side, .b = r->s, .ldb = side, .c = r->t,
		.ldc = side }, r->gemm);
	blend(n, abc[1], r->s, abc[2], r->t);
	struct nr_gemm apply = { .m = z.rows, .n = z.columns, .k = side, .a = z.tall ? r->x : r->t, .lda = z.tall ? ld : side,
		.b = z.tall ? r->t : r->x, .ldb = z.tall ? side : ld, .c = r->next, .ldc = ld };
	nr_gemm_run(&apply, r->gemm);
	blend(z.rows * z.columns, abc[0], r->x, 1, r->next);
}

static const real torch_triple[][3] = { { 3.4445, -4.7750, 2.0315 } };
static const real timm_triples[][3] = {
	{ 4.0848, -6.8946, 2.9270 }, { 3.9505, -6.3029, 2.6377 }, { 3.7418, -5.5913, 2.3037 }, { 2.8769, -3.1427, 1.2046 },
	{ 2.8366, -3.0525, 1.2012 },
};

static void orthogonalize(const struct muon *c, struct room *r, struct sizes z)
{
	const int64_t n = z.rows * z.columns, last = c->ns ? 4 : 0;
	const real(*abc)[3] = c->ns ? timm_triples : torch_triple;
	blend(n, 0, r->x, (real)(1 / fmax(length(r->x, n), 1e-7)), r->x);
	for (int64_t i = 0; i < c->ns_steps; i++) {
		newton_schulz(r, z, abc[nr_min64(i, last)]);
		real *x = r->x;
		r->x = r->next, r->next = x;
	}
}

static double ratio_of(int32_t adjust, struct sizes z)
{
	const double rows = (double)z.rows, columns = (double)z.columns;
	if (adjust == MATCH_RMS) return .2 * sqrt(fmax(rows, columns));
	return sqrt(adjust == ORIGINAL ? fmax(1, rows / columns) : rows / columns);
}

static void matrix_step(const struct nr_optim_call *k, int64_t i)
{
	const struct muon *c = k->own;
	const struct nr_segment *p = &k->segment[i];
	const struct nr_optim_arg *a = &k->arg[i];
	const struct sizes z = sizes_of(p);
	const real mu = (real)c->muon_momentum, scale = (real)a->scale;
	struct room r = room_of(k, p);
	blend(p->count, (1 - mu) * scale, p->grad, mu, p->m);
	memcpy(r.x, p->m, (size_t)p->count * sizeof(real));
	if (c->muon_nesterov) blend(p->count, (1 - mu) * scale, p->grad, mu, r.x);
	orthogonalize(c, &r, z);
	blend(p->count, (real)(-a->lr * ratio_of(c->adjust, z)), r.x, (real)(1 - a->lr * a->decay), p->value);
}

static void adamw(const struct nr_optim_call *k, struct nr_optim_chunk c)
{
	const struct nr_segment *s = &k->segment[c.parameter];
	const struct nr_adam_coef *coef = k->scratch;
	if (!orthogonal(s)) nr_update_active->adam(c.n, s->value + c.at, s->grad + c.at, s->m + c.at, s->v + c.at, &coef[c.parameter]);
}

static void step(const struct nr_optim_call *k)
{
	const struct muon *c = k->own;
	struct nr_adam_coef *coef = k->scratch;
	for (int64_t i = 0; i < k->count; i++) coef[i] = nr_adamw_coef(k, i, c->adamw_rate);
	nr_optim_each(k, adamw);
	for (int64_t i = 0; i < k->count; i++)
		if (orthogonal(&k->segment[i]) && k->segment[i].grad) matrix_step(k, i);
}

const struct nr_optimizer nr_optimizer_muon = {
	.name = "muon", .title = "orthogonal steps for matrices, AdamW for the rest", .cite = "torch.optim.Muon",
	.formula = "B = mu B + (1 - mu) g; U = (1 - mu) g + mu B; w -= lr (ratio orthogonal(U) + wd w)",
	.options = options, .own = own, .own_size = sizeof(struct muon), .slots = slots, .scratch = scratch, .step = step,
};
