/* norma-golden-model-1, task segmentation: public names of backbone and decoder; coarse and enlarged logits, predictions, IoU, loss,
 * gradients, buffers and three steps of AdamW out. */
#include <string.h>

#include "golden/model.h"
#include "infer/metrics.h"
#include "math/resample.h"
#include "models/names.h"
#include "models/segment.h"
#include "norma/nn.h"

struct run {
	struct golden_model m;
	struct nr_segmentation decoder;
	nr_t *image, *labels, *logits;
	struct golden_ints truth;
};

/* The backbone has a prefix, the decoder the names of the paper's dense layer or of mmsegmentation. */
static const struct nr_naming *names_of(struct golden_case *c, const struct nr_naming *backbone, bool bn)
{
	static const struct nr_rename dense[] = { { "head.", "head." }, { NULL, NULL } };
	static const struct nr_rename mmseg[] = { { "bn.", "decode_head.bn." }, { "head.", "decode_head.conv_seg." }, { NULL, NULL } };
	static const struct nr_naming of_dense = { .name = "dense", .rules = dense }, of_mmseg = { .name = "mmseg", .rules = mmseg };
	static const struct nr_scope_names scopes[][2] = { { { "segment.", &of_dense }, { 0 } }, { { "segment.", &of_mmseg }, { 0 } } };
	struct nr_naming *n = golden_alloc(c, 1, sizeof *n);
	*n = *backbone;
	n->prefix = "backbone.";
	n->scopes = scopes[bn];
	return n;
}

static void open_case(struct golden_case *c, struct run *r, const char *text, const char *norms)
{
	const struct golden_tensor x = golden_tensor(c, 4, "in.image");
	const bool bn = strcmp(golden_text(c, "decoder"), "dense") != 0;
	struct nr_error err = { 0 };
	r->truth = golden_ints(c, 3, "in.gt");
	golden_model_open(c, &r->m, text, "timm", norms, golden_config(c, "ln_eps", "layer_norm_eps", 1e-6));
	r->m.naming = names_of(c, r->m.naming, bn);
	r->decoder = (struct nr_segmentation){ .decoder = bn ? NR_SEGMENT_BN : NR_SEGMENT_DENSE,
		.align_corners = strstr(golden_text(c, "upsample"), "align_corners true") != NULL,
		.classes = (int64_t)golden_number(c, "classes"),
		.batch = nr_arena_printf(c->arena, "batch:eps=%.17g,momentum=%.17g", golden_number_or(c, "bn_eps", 1e-5),
			golden_number_or(c, "bn_momentum", 0.1)) };
	golden_expect(c, !nr_segment_settle(&r->m.model, &r->decoder, c->arena, &err), "a final norm on tokens");
	r->m.model.norms.eps = golden_config(c, "ln_eps", "layer_norm_eps", 1e-6);
	struct nr_net *n = r->m.net;
	golden_expect(c, !nr_norms_use(n, norms, &r->m.model.norms, &err), "a plan with the decoder's norm");
	r->image = nr_input(n, "image", NR_REAL, NR_SHAPE(x.d[0], x.d[1], x.d[2], x.d[3]));
	r->labels = nr_input(n, "label", NR_I32, NR_SHAPE(r->truth.d[0], r->truth.d[1], r->truth.d[2]));
	r->logits = nr_tap(n, "logits", nr_segment_logits(n, &r->m.model, &r->decoder, &(struct nr_inputs){ .image = r->image }));
	golden_model_load(c, &r->m, nr_pixel_cross_entropy(n, r->logits, r->labels, (int32_t)golden_number(c, "ignore"),
		r->decoder.align_corners), NULL);
	golden_model_put(c, &r->m, r->image, "in.image");
	golden_expect(c, r->truth.n == nr_len(r->labels), "in.gt");
	memcpy(nr_plan_data(r->m.plan, r->labels), r->truth.x, (size_t)r->truth.n * sizeof(int32_t));
}

/* (B,n,K) -> (B,K,n): the file has channels first. */
static void check_flipped(struct golden_case *c, const real *x, int64_t B, int64_t n, int64_t K, const char *name)
{
	real *moved = golden_reals(c, B * n * K);
	for (int64_t i = 0; i < B * n * K; i++) moved[(i / (n * K) * K + i % K) * n + i / K % n] = x[i];
	golden_check(c, "out", moved, B * n * K, "out.%s", name);
}

/* (B,H,W,K) of the logits as they are now. */
static real *enlarged(struct golden_case *c, struct run *r)
{
	const int64_t B = r->logits->d[0], h = r->logits->d[1], w = r->logits->d[2], K = r->logits->d[3];
	const int64_t H = r->truth.d[1], W = r->truth.d[2];
	const enum nr_resample how = r->decoder.align_corners ? NR_RESAMPLE_BILINEAR_CORNERS : NR_RESAMPLE_BILINEAR;
	const struct nr_axis rows = nr_axis_init(how, h, H, golden_alloc(c, 1, nr_axis_bytes(h, H)));
	const struct nr_axis cols = nr_axis_init(how, w, W, golden_alloc(c, 1, nr_axis_bytes(w, W)));
	real *high = golden_reals(c, B * H * W * K), *tmp = golden_reals(c, H * w * K);
	for (int64_t b = 0; b < B; b++)
		nr_resample_forward(&rows, &cols, K, (const real *)nr_plan_data(r->m.plan, r->logits) + b * h * w * K,
			high + b * H * W * K, tmp);
	return high;
}

/* A pixel in a thousand may be on the edge between two classes; the scores are then those of the file's own predictions. */
static void check_predictions(struct golden_case *c, struct run *r)
{
	const int64_t K = r->decoder.classes, n = r->truth.n;
	const real *high = enlarged(c, r);
	const struct golden_ints want = golden_ints(c, 3, "out.pred");
	int32_t *pred = golden_alloc(c, n, sizeof *pred);
	int64_t *confusion = golden_alloc(c, K * K, sizeof *confusion), wrong = 0;
	double *iou = golden_alloc(c, K, sizeof *iou);
	golden_expect(c, want.n == n, "out.pred");
	for (int64_t i = 0; i < n; i++) {
		for (int64_t k = 1; k < K; k++)
			if (high[i * K + k] > high[i * K + pred[i]]) pred[i] = (int32_t)k;
		wrong += pred[i] != want.x[i];
	}
	c->checks++;
	if (1000 * wrong > n) golden_fail(c, "out.pred", "%lld of %lld pixels differ", (long long)wrong, (long long)n);
	nr_metric_confusion(n, r->truth.x, wrong ? want.x : pred, (int32_t)K, (int32_t)golden_number(c, "ignore"), confusion);
	const struct nr_iou of = nr_metric_iou((int32_t)K, confusion, iou);
	real *out = golden_reals(c, K * K);
	for (int64_t i = 0; i < K * K; i++) out[i] = (real)confusion[i];
	golden_check(c, "out", out, K * K, "out.confusion");
	for (int64_t i = 0; i < K; i++) out[i] = (real)iou[i];
	golden_check(c, "out", out, K, "out.iou");
	golden_check_value(c, "out", of.miou, "out.miou");
}

int golden_segmentation(struct golden_case *c, const char *text, const char *norms)
{
	struct run r = { 0 };
	open_case(c, &r, text, norms);
	const int64_t B = r.logits->d[0], T = r.logits->d[1] * r.logits->d[2], K = r.decoder.classes;
	nr_plan_run(r.m.plan, &(struct nr_exec){ 0 }, NR_RUN_FORWARD);
	if (golden_has(c, "out.logits_low_eval")) check_flipped(c, nr_plan_data(r.m.plan, r.logits), B, T, K, "logits_low_eval");
	check_predictions(c, &r);
	golden_model_run(c, &r.m, 0);
	check_flipped(c, nr_plan_data(r.m.plan, r.logits), B, T, K, "logits_low");
	check_flipped(c, enlarged(c, &r), 1, r.truth.d[1] * r.truth.d[2], K, "logits_first_image");
	golden_model_check(c, &r.m);
	golden_model_train(c, &r.m);
	golden_model_close(&r.m);
	return GOLDEN_RAN;
}
