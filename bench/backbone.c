/* Hierarchical models by their names, as timm and transformers build them: Swin, PVT, PVT v2, LeViT. */
#include "bench.h"
#include "norma/model.h"
#include "norma/nn.h"

static nr_t *backbone_logits(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	struct nr_model_spec model;
	struct nr_error err = { 0 };
	if (nr_model_parse(&model, s->model, nr_net_arena(n), &err)) return nr_net_fail(n, err.code, s->model, "%s", err.detail);
	in->image = nr_input(n, "image", NR_REAL, NR_SHAPE(s->batch, s->channels, s->image, s->image));
	return nr_model_logits(n, &model, &(struct nr_inputs){ .image = in->image });
}

static nr_t *backbone_loss(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	in->labels = nr_input(n, "labels", NR_I32, NR_SHAPE(s->batch));
	return nr_cross_entropy(n, backbone_logits(n, s, in), in->labels, 0, -1);
}

const struct bench_model bench_backbone = { .train = backbone_loss, .infer = backbone_logits };
