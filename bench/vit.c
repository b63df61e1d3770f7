/* ViT at 224 px as timm builds it: Dosovitskiy et al. arXiv:2010.11929, eq. 1 to 4. The class token feeds the head. */
#include "bench.h"
#include "norma/model.h"
#include "norma/nn.h"

static nr_t *vit_logits(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	struct nr_model_spec model;
	struct nr_error err = { 0 };
	char text[256];
	snprintf(text, sizeof text,
		"vit:image=%lld,channels=%lld,patch=%lld,dim=%lld,depth=%lld,heads=%lld,classes=%lld",
		(long long)s->image, (long long)s->channels, (long long)s->patch, (long long)s->dim,
		(long long)s->depth, (long long)s->heads, (long long)s->classes);
	if (nr_model_parse(&model, text, nr_net_arena(n), &err)) return nr_net_fail(n, err.code, text, "%s", err.detail);
	in->image = nr_input(n, "image", NR_REAL, NR_SHAPE(s->batch, s->channels, s->image, s->image));
	return nr_model_logits(n, &model, &(struct nr_inputs){ .image = in->image });
}

static nr_t *vit_loss(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	in->labels = nr_input(n, "labels", NR_I32, NR_SHAPE(s->batch));
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
