/* Linear heads with batch norm and LARS. See probe_heads.h. */
#include "analysis/probe_heads.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "math/column.h"
#include "math/gemm.h"
#include "math/moments.h"
#include "math/softmax.h"

enum { STREAM = 0x50524f42 };               /* first weights */

static struct nr_gemm forward_of(const struct nr_probe_heads *p, int64_t n, real *out)
{
	const int64_t C = p->width, K = p->heads * p->classes;
	return (struct nr_gemm){ .m = n, .n = K, .k = C, .a = p->normal, .lda = C, .b = p->weight, .ldb = C, .tb = 1, .c = out, .ldc = K,
		.bias = p->bias };
}

static struct nr_gemm backward_of(const struct nr_probe_heads *p, int64_t n)
{
	const int64_t C = p->width, K = p->heads * p->classes;
	return (struct nr_gemm){ .m = K, .n = C, .k = n, .a = p->d, .lda = K, .ta = 1, .b = p->normal, .ldb = C, .c = p->dweight,
		.ldc = C };
}

static int share_memory(struct nr_probe_heads *p, struct nr_arena *a)
{
	const int64_t C = p->width, H = p->heads, K = H * p->classes, B = p->batch;
	size_t most = 64;
	for (int64_t n = 1; n <= B; n++) {              /* the last batch may be of any size */
		const struct nr_gemm up = forward_of(p, n, NULL), down = backward_of(p, n);
		if (nr_gemm_scratch_of(&up) > most) most = nr_gemm_scratch_of(&up);
		if (nr_gemm_scratch_of(&down) > most) most = nr_gemm_scratch_of(&down);
	}
	double *wide = nr_arena_alloc(a, (size_t)(4 * C) * sizeof *wide);
	real *flat = nr_arena_alloc(a, (size_t)(3 * K * (C + 1) + B * (C + 2 * K + H) + 2 * C) * sizeof *flat);
	p->segment = nr_arena_alloc(a, (size_t)(2 * H) * sizeof *p->segment);
	p->gemm = nr_arena_alloc(a, most);
	if (!wide || !flat || !p->segment || !p->gemm) return NR_EMEMORY;
	p->mean = wide, p->var = wide + C, p->batch_mean = wide + 2 * C, p->batch_var = wide + 3 * C;
	p->weight = flat, p->bias = p->weight + K * C;
	p->dweight = p->bias + K, p->dbias = p->dweight + K * C;
	p->m = p->dbias + K;
	p->normal = p->m + K * (C + 1);
	p->logits = p->normal + B * C, p->d = p->logits + B * K, p->loss = p->d + B * K;
	p->shift = p->loss + B * H, p->scale = p->shift + C;
	for (int64_t h = 0; h < H; h++) {
		const int64_t w = h * p->classes * C, b = h * p->classes;
		p->segment[2 * h] = (struct nr_segment){ .value = p->weight + w, .grad = p->dweight + w, .m = p->m + w,
			.count = p->classes * C, .nd = 2, .lr_scale = 1, .decay = 1 };
		p->segment[2 * h + 1] = (struct nr_segment){ .value = p->bias + b, .grad = p->dbias + b, .m = p->m + K * C + b,
			.count = p->classes, .nd = 1, .lr_scale = 1, .decay = 1 };
	}
	p->update = nr_arena_alloc(a, nr_optim_scratch(&p->optim, p->segment, 2));
	return p->update ? NR_OK : NR_EMEMORY;
}

int nr_probe_heads_make(struct nr_probe_heads **out, int64_t width, int64_t classes, int64_t heads, int64_t batch,
	struct nr_error *err)
{
	struct nr_arena *a = nr_arena_make();
	struct nr_probe_heads *p = a ? nr_arena_alloc(a, sizeof *p) : NULL;
	*out = NULL;
	if (p) {
		*p = (struct nr_probe_heads){ .width = width, .classes = classes, .heads = heads, .batch = batch, .eps = 1e-6,
			.momentum = .1, .optim = { .kind = nr_optim_kind("lars"), .momentum = .9, .trust = 1e-3 }, .memory = a };
		if (share_memory(p, a)) p = NULL;
	}
	if (!p) {
		nr_arena_free(a);
		return nr_fail(err, NR_EMEMORY, "cannot make probing heads", NULL, "out of memory");
	}
	for (int64_t c = 0; c < width; c++) p->var[c] = 1;
	*out = p;
	return NR_OK;
}

void nr_probe_heads_free(struct nr_probe_heads *p)
{
	if (p) nr_arena_free(p->memory);
}

void nr_probe_heads_init(struct nr_probe_heads *p, uint64_t seed, double std)
{
	const struct nr_rng rng = nr_rng_make(seed, STREAM, 0);
	const int64_t each = p->classes * p->width;
	for (int64_t i = 0; i < p->heads * each; i++) p->weight[i] = (real)(std * nr_rng_normal(rng, (uint64_t)(i % each)));
}

static void normalise(struct nr_probe_heads *p, int64_t n, const real *x, const double *mean, const double *var)
{
	const int64_t C = p->width;
	for (int64_t c = 0; c < C; c++) p->shift[c] = (real)mean[c], p->scale[c] = (real)(1 / sqrt(var[c] + p->eps));
#pragma omp parallel for schedule(static) if (n * C > 16384)
	for (int64_t q = 0; q < nr_chunks(n); q++) {
		const int64_t first = q * NR_CHUNK;
		nr_column_active->normalize(nr_min64(NR_CHUNK, n - first), C, x + first * C, C, p->shift, p->scale, NULL,
			p->normal + first * C, C);
	}
}

int nr_probe_heads_step(struct nr_probe_heads *p, int64_t n, const real *x, const int32_t *label, const struct nr_rates *rates,
	struct nr_error *err)
{
	const int64_t K = p->heads * p->classes;
	nr_column_moments(n, p->width, x, p->batch_mean, p->batch_var);
	for (int64_t c = 0; c < p->width; c++) {
		const double unbiased = n > 1 ? p->batch_var[c] * (double)n / (double)(n - 1) : p->batch_var[c];
		p->mean[c] += p->momentum * (p->batch_mean[c] - p->mean[c]);
		p->var[c] += p->momentum * (unbiased - p->var[c]);
	}
	normalise(p, n, x, p->batch_mean, p->batch_var);
	const struct nr_gemm up = forward_of(p, n, p->logits), down = backward_of(p, n);
	nr_gemm_run(&up, p->gemm);
	for (int64_t h = 0; h < p->heads; h++)
		nr_xent_labels(n, p->classes, p->logits + h * p->classes, K, label, -1, 0, 1 / (real)n, p->loss + h * p->batch,
			p->d + h * p->classes, K, 0);
	nr_gemm_run(&down, p->gemm);
	for (int64_t k = 0; k < K; k++) p->dbias[k] = 0;
	nr_row_active->col_sum(n, K, p->d, K, p->dbias);
	p->step++;
	for (int64_t h = 0; h < p->heads; h++) {
		if (!isfinite(nr_probe_heads_loss(p, h, n)) ||
			nr_optim_step(&p->optim, &rates[h], p->step, p->segment + 2 * h, 2, p->update, NULL))
			return nr_fail(err, NR_EDIVERGED, "the probe diverged", NULL, "learning rate %g, weight decay %g, step %lld",
				rates[h].lr, rates[h].weight_decay, (long long)p->step);
	}
	return NR_OK;
}

double nr_probe_heads_loss(const struct nr_probe_heads *p, int64_t head, int64_t n)
{
	return (double)nr_sum(n, p->loss + head * p->batch) / (double)n;
}

void nr_probe_heads_scores(struct nr_probe_heads *p, int64_t n, const real *x, real *out)
{
	normalise(p, n, x, p->mean, p->var);
	const struct nr_gemm up = forward_of(p, n, out);
	nr_gemm_run(&up, p->gemm);
}
