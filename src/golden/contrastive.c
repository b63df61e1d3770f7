/* metrics/contrastive: softmax and sigmoid image-text losses with gradients. */
#include "golden/check.h"
#include "math/contrastive.h"

static void run(struct golden_case *c, enum nr_contrastive_kind kind, const char *name)
{
	const struct golden_tensor image = golden_tensor(c, 2, "in.image_embedding");
	const struct golden_tensor text = golden_tensor(c, 2, "in.text_embedding");
	const int64_t B = image.d[0], C = image.d[1];
	golden_expect(c, text.d[0] == B && text.d[1] == C, "images and texts");
	struct nr_contrastive k = { .B = B,
		.C = C,
		.kind = kind,
		.log_t = golden_number(c, "log_temperature"),
		.bias = golden_number(c, "bias"),
		.image = image.x,
		.text = text.x,
		.logits = golden_reals(c, B * B),
		.d_image = golden_reals(c, B * C),
		.d_text = golden_reals(c, B * C) };
	nr_contrastive_run(&k, golden_alloc(c, 1, nr_contrastive_scratch(B, C)));
	golden_check_value(c, "out", k.loss, "%s.loss", name);
	golden_check(c, "out", k.d_image, B * C, "%s.grad_image", name);
	golden_check(c, "out", k.d_text, B * C, "%s.grad_text", name);
	golden_check_value(c, "out", k.d_log_t, "%s.grad_log_t", name);
	golden_check_value(c, "out", k.d_bias, "%s.grad_bias", name);
	golden_check(c, "out", k.logits, B * B, "logits_%s", name);
}

int golden_metric_contrastive(struct golden_case *c)
{
	run(c, NR_CONTRASTIVE_SOFTMAX, "softmax");
	run(c, NR_CONTRASTIVE_SIGMOID, "sigmoid");
	return GOLDEN_RAN;
}
