/* ViT at 224 px as timm builds it: Dosovitskiy et al. arXiv:2010.11929, eq. 1 to 4. The class token feeds the head. */
#include "bench.h"
#include "norma/nn.h"
#include "norma/norm.h"

static nr_t *vit_logits(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	const int64_t tokens = bench_patches(s) + 1;
	in->image = nr_input(n, "image", NR_REAL, 4, s->batch, s->channels, s->image, s->image);
	nr_t *x = nr_norm(n, "patch.in", nr_patches(n, in->image, s->patch, NR_PATCH_CHANNEL_ROW_COL));
	x = nr_norm(n, "patch.out", nr_patch_linear(n, "patch_embed.proj", x, s->patch, s->dim));
	x = nr_prepend(n, nr_param(n, "cls_token", NR_TRUNC_02, 3, (int64_t)1, (int64_t)1, s->dim), x);
	x = nr_add_table(n, x, nr_param(n, "pos_embed", NR_TRUNC_02, 3, (int64_t)1, tokens, s->dim));
	x = bench_blocks(n, nr_norm(n, "patch.pos", x), s->depth, s->heads);
	return nr_linear(n, "head", nr_reshape(n, nr_span(n, x, 0, 1), 2, s->batch, s->dim), s->classes);
}

static nr_t *vit_loss(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	in->labels = nr_input(n, "labels", NR_I32, 1, s->batch);
	return nr_cross_entropy(n, vit_logits(n, s, in), in->labels, 0, -1);
}

static double vit_flops(const struct bench_size *s, bool train)
{
	(void)train;
	const double B = (double)s->batch, N = (double)bench_patches(s), C = (double)s->dim;
	const double embed = N * (double)(s->channels * s->patch * s->patch) * C, head = C * (double)s->classes;
	return 2 * B * (embed + head) + (double)s->depth * bench_block_flops(B, N + 1, C);
}

const struct bench_model bench_vit = { .train = vit_loss, .infer = vit_logits, .flops = vit_flops,
	.norms = { .norm = "layer", .placement = "pre", .eps = 1e-6 } };
