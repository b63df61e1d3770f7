/* A small masked autoencoder: He et al. arXiv:2111.06377, section 3; the settings of bench/peers/mae_step.py.
 *
 * Token 0 is the class token, so the decoder's list of places starts with it, and patch i is token i + 1. The mask is
 * drawn inside the step, as the peer does: noise from counters, sorted per sample. */
#include "base/rng.h"
#include "bench.h"
#include "norma/nn.h"
#include "norma/norm.h"

enum { MAX_PATCHES = 1024, MASK_SEED = 0x3a5c, MASK_STREAM = 1 };

static int64_t kept_patches(const struct bench_size *s) { return (int64_t)((double)bench_patches(s) * s->keep); }

/* Patches with their places; kept NULL: all of them. The class token has place 0 and comes first. */
static nr_t *embed(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in, nr_t *kept)
{
	in->image = nr_input(n, "image", NR_REAL, 4, s->batch, s->channels, s->image, s->image);
	nr_t *cls = nr_param(n, "cls", NR_ZEROS, 3, (int64_t)1, (int64_t)1, s->dim);
	nr_t *pos = nr_param(n, "pos", NR_NORMAL_02, 3, (int64_t)1, bench_patches(s) + 1, s->dim);
	nr_t *x = nr_norm(n, "patch.in", nr_patches(n, in->image, s->patch, NR_PATCH_CHANNEL_ROW_COL));
	x = nr_norm(n, "patch.out", nr_patch_linear(n, "embed", x, s->patch, s->dim));
	x = nr_norm(n, "patch.pos", nr_add_table(n, x, nr_span(n, pos, 1, NR_END)));
	if (kept) x = nr_take_tokens(n, x, kept);
	return nr_prepend(n, nr_add(n, cls, nr_span(n, pos, 0, 1)), x);
}

static nr_t *mae_features(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	return bench_blocks(n, embed(n, s, in, NULL), s->depth, s->heads);
}

static nr_t *mae_loss(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	const int64_t N = bench_patches(s), K = kept_patches(s), C = s->decoder_dim;
	in->kept = nr_input(n, "kept", NR_I32, 2, s->batch, K);
	in->restore = nr_input(n, "restore", NR_I32, 2, s->batch, N + 1);
	in->weight = nr_input(n, "weight", NR_REAL, 2, s->batch, N);

	nr_t *x = bench_blocks(n, embed(n, s, in, in->kept), s->depth, s->heads);

	x = nr_linear(n, "dembed", x, C);
	x = nr_restore_tokens(n, x, nr_param(n, "mask", NR_ZEROS, 3, (int64_t)1, (int64_t)1, C), in->restore);
	x = nr_add_table(n, x, nr_param(n, "dpos", NR_NORMAL_02, 3, (int64_t)1, N + 1, C));
	nr_push(n, "decoder");
	x = nr_pop(n, bench_blocks(n, x, s->decoder_depth, s->decoder_heads));
	x = nr_linear(n, "pred", x, s->patch * s->patch * s->channels);

	nr_t *target = nr_patches(n, in->image, s->patch, NR_PATCH_ROW_COL_CHANNEL);
	return nr_masked_mse(n, nr_span(n, x, 1, NR_END), target, in->weight, 1);
}

/* Ascending; the place in the low bits makes every key different, so that the order is one. */
static void sort_keys(uint64_t *v, int64_t n)
{
	for (int64_t i = 1; i < n; i++) {
		const uint64_t key = v[i];
		int64_t j = i;
		for (; j > 0 && v[j - 1] > key; j--) v[j] = v[j - 1];
		v[j] = key;
	}
}

/* kept: the patches that the encoder sees; restore: where a token's features are, beyond K for masked ones. */
static void draw_mask(const struct bench_size *s, const struct bench_inputs *in, const struct nr_plan *p, int64_t step)
{
	const int64_t N = bench_patches(s), K = kept_patches(s);
	const struct nr_rng rng = nr_rng_make(MASK_SEED, MASK_STREAM, (uint32_t)step);
	int32_t *kept = nr_plan_data(p, in->kept), *restore = nr_plan_data(p, in->restore);
	real *weight = nr_plan_data(p, in->weight);
	const int64_t blocks = (N + 3) / 4;
#pragma omp parallel for schedule(static)
	for (int64_t b = 0; b < s->batch; b++) {
		uint64_t key[MAX_PATCHES + 3];
		for (int64_t q = 0; q < blocks; q++) {
			uint32_t word[4];
			nr_rng_block(rng, (uint64_t)(b * blocks + q), word);
			for (int64_t i = 0; i < 4; i++)
				key[4 * q + i] = (uint64_t)word[i] << 32 | (uint64_t)(4 * q + i);
		}
		sort_keys(key, N);
		restore[b * (N + 1)] = 0;
		for (int64_t r = 0; r < N; r++) {
			const int64_t i = (int64_t)(key[r] & 0xffffffff);
			if (r < K) kept[b * K + r] = (int32_t)i;
			restore[b * (N + 1) + 1 + i] = (int32_t)(r + 1);
			weight[b * N + i] = r >= K;
		}
	}
}

static double mae_flops(const struct bench_size *s, bool train)
{
	const double B = (double)s->batch, N = (double)bench_patches(s), K = (double)kept_patches(s);
	const double C = (double)s->dim, D = (double)s->decoder_dim, P = (double)(s->channels * s->patch * s->patch);
	const double embedding = 2 * B * N * P * C;
	if (!train) return embedding + (double)s->depth * bench_block_flops(B, N + 1, C);
	return embedding + (double)s->depth * bench_block_flops(B, K + 1, C) + 2 * B * (K + 1) * C * D +
	       (double)s->decoder_depth * bench_block_flops(B, N + 1, D) + 2 * B * (N + 1) * D * P;
}

const struct bench_model bench_mae = { .train = mae_loss,
	.infer = mae_features,
	.flops = mae_flops,
	.draw = draw_mask,
	.norms = { .norm = "layer", .placement = "pre", .eps = 1e-6 } };
