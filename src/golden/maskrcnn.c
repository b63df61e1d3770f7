/* norma-golden-model-1, family maskrcnn: feature maps, proposals, masks and public weights in; neck, anchors, proposals, sampled boxes and
 * their targets, five losses, gradients, detections and their masks out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden/detector.h"
#include "math/detect.h"
#include "math/paste.h"
#include "norma/nn.h"

struct run {
	struct golden_detector d;
	struct nr_mask_rcnn o;
	struct nr_mask_rcnn_graph g;
	struct golden_ints image;           /* of each proposal */
	nr_t *masks, *proposals, *count, *of_rpn, *of_rpn_count, *box, *score, *label, *mask;
	int64_t most, places;               /* proposals of a picture; of a mask */
};

/* How many layers have a weight by this name. */
static int64_t count_layers(struct golden_case *c, const char *before, const char *after)
{
	int64_t n = 0;
	while (golden_has(c, nr_arena_printf(c->arena, "param.%s%lld%s.weight", before, (long long)n, after))) n++;
	return n;
}

/* "0, 3, 6, ..." */
static int64_t step_of(struct golden_case *c, const char *sentence)
{
	const char *first = strstr(sentence, "numbers"), *second = first ? strchr(first, ',') : NULL;
	const int64_t step = second ? (int64_t)(strtod(second + 1, NULL) - golden_after(c, sentence, "numbers")) : 0;
	golden_expect(c, step > 0, "every how many negative anchors are drawn");
	return step;
}

static struct nr_mask_rcnn settings(struct golden_case *c, const struct golden_detector *d)
{
	const bool tv = !d->mmdet;
	const int64_t classes = (int64_t)golden_number(c, "num_classes");
	const struct nr_box_code rpn = golden_box_code(c, "rpn.stds", "rpn.coder_weights"), roi = golden_box_code(c, "roi.stds",
		"roi.coder_weights");
	const double first = log2(nr_level_stride(d->h, d->map[0]->tok->h));
	struct nr_mask_rcnn o = {
		.classes = classes,
		.fc = (int64_t)golden_number(c, "roi.fc"),
		.neck = golden_neck(c),
		.rpn = { .match = { .high = golden_number_in(c, "rpn.pos", "rpn.high"),
				 .low = golden_number_in(c, "rpn.neg", "rpn.low"),
				 .low_iou = golden_number_or(c, "rpn.min_pos", 0),
				 .low_quality = tv ? NR_MATCH_OWN : NR_MATCH_THAT },
			.mean = tv ? NR_ANCHOR_DRAWN : NR_ANCHOR_DRAWN_BOTH,
			.every = step_of(c, golden_text(c, "rpn.sample")) },
		.rpn_convs = tv ? count_layers(c, "rpn.head.conv.", ".0") : 1,
		.rpn_cost = { .kind = NR_BOX_L1, .beta = tv ? 1 / 9. : 0 },
		.proposals = { .code = rpn,
			.nms = golden_number(c, "rpn.nms"),
			.min_size = golden_number_or(c, "rpn.min_size", 0),
			.before = (int64_t)golden_number(c, "rpn.pre_nms"),
			.keep = (int64_t)golden_number(c, "rpn.post_nms") },
		.background_first = tv,
		.sample = { .iou = golden_number(c, "roi.iou"),
			.low_quality = golden_config(c, "match_low_quality", NULL, 0) != 0,
			.low_iou = golden_number(c, "roi.iou"),
			.boxes_first = !tv,
			.positives_first = !tv,
			.background = tv ? 0 : (int32_t)classes },
		.roi_beta = tv ? 1 / 9. : 0,
		.pool = { .size = (int64_t)golden_number(c, "roi.pool"),
			.samples = (int64_t)golden_number(c, "roi.sampling_ratio"),
			.aligned = !tv,
			.side = golden_after(c, golden_text(c, "roi.level"), "sqrt(area)"),
			.at = tv ? golden_after(c, golden_text(c, "roi.level"), "floor") - first : 0,
			.inside = !tv },
		.mask_convs = tv ? count_layers(c, "roi_heads.mask_head.", ".0") : count_layers(c, "roi_head.mask_head.convs.", ".conv"),
		.mask_pool = (int64_t)golden_number(c, "mask.pool"),
		.mask_threshold = !tv,
		.rule = { .code = roi,
			.score = golden_number_in(c, "post.score_thr", "post.score_thresh"),
			.nms = golden_number(c, "post.nms"),
			.min_size = golden_number_or(c, "post.min_size", 0),
			.keep = (int64_t)golden_number_in(c, "post.max_per_img", "post.detections") },
	};
	const json_t *low = json_object_get(json_object_get(c->config, "roi"), "match_low_quality");
	o.sample.low_quality = json_is_true(low);
	memcpy(o.rpn_cost.std, rpn.std, sizeof o.rpn_cost.std);
	memcpy(o.roi_std, roi.std, sizeof o.roi_std);
	golden_expect(c, (int64_t)golden_number(c, "mask.size") == 2 * o.mask_pool, "mask.size is twice mask.pool");
	golden_anchor_plan(c, d, &o.anchors);
	return o;
}

static void record(struct golden_case *c, struct run *r)
{
	struct golden_detector *d = &r->d;
	struct nr_net *n = d->m.net;
	struct nr_mask_rcnn_graph *g = &r->g;
	r->image = golden_ints(c, 1, "in.proposal_image");
	for (int64_t i = 0; i < r->image.n; i++) {
		const int64_t place = golden_place_of(&r->image, i);
		golden_expect(c, r->image.x[i] >= 0 && r->image.x[i] < d->B, "in.proposal_image");
		if (place >= r->most) r->most = place + 1;
	}
	r->masks = nr_input(n, "masks", NR_U8, NR_SHAPE(d->B, d->G, (d->h * d->w + 7) / 8));
	r->proposals = nr_input(n, "proposals", NR_REAL, NR_SHAPE(d->B, r->most, 4));
	r->count = nr_input(n, "count", NR_I32, NR_SHAPE(d->B));
	nr_mask_rcnn(n, &r->o, d->map, d->levels, d->h, d->w, d->size, g);
	r->of_rpn = nr_tap(n, "of_rpn", g->proposals), r->of_rpn_count = nr_tap(n, "of_rpn_count", g->count);
	g->proposals = r->proposals, g->count = r->count;
	nr_t *loss = nr_mask_rcnn_loss(n, &r->o, g, d->truth, d->classes, r->masks);
	nr_t *kept[] = { g->objectness, g->delta, g->match, g->weight, g->boxes, g->label, g->box_target, g->mask_target, g->own,
		g->class_logit, g->offset, g->mask_logit };
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) nr_tap(n, nr_arena_printf(c->arena, "kept%zu", i), kept[i]);
	struct nr_mask_rcnn_graph again = *g;
	r->box = nr_tap(n, "boxes", nr_mask_rcnn_detections(n, &r->o, &again, d->size, &r->score, &r->label, &r->mask));
	nr_tap(n, "scores", r->score), nr_tap(n, "labels", r->label), nr_tap(n, "mask", r->mask);
	golden_model_load(c, &d->m, loss, NULL);
}

static void bind(struct golden_case *c, struct run *r)
{
	struct golden_detector *d = &r->d;
	const struct golden_tensor box = golden_tensor(c, 2, "in.proposals");
	const struct golden_ints mask = golden_ints(c, 3, "in.masks");
	const int64_t pixels = d->h * d->w;
	int32_t *count = nr_plan_data(d->m.plan, r->count);
	uint8_t *bits = nr_plan_data(d->m.plan, r->masks);
	golden_detector_bind(c, d);
	golden_expect(c, box.d[0] == r->image.n && mask.d[0] == d->image.n && mask.n == mask.d[0] * pixels, "in.proposals, in.masks");
	memset(count, 0, (size_t)d->B * sizeof *count);
	memset(bits, 0, (size_t)nr_len(r->masks));
	for (int64_t i = 0; i < r->image.n; i++) count[r->image.x[i]]++;
	golden_by_picture(&r->image, box.x, 4, r->most, nr_plan_data(d->m.plan, r->proposals));
	for (int64_t i = 0; i < mask.d[0]; i++) {
		uint8_t *own = bits + (d->image.x[i] * d->G + golden_place_of(&d->image, i)) * ((pixels + 7) / 8);
		for (int64_t p = 0; p < pixels; p++)
			if (mask.x[i * pixels + p]) own[p / 8] |= (uint8_t)(1 << p % 8);
	}
}

/* ---- what came out: rows in use alone ----------------------------------------------------------------------------------------- */

static const void *data(const struct run *r, const nr_t *x) { return nr_plan_data(r->d.m.plan, x); }

static void check_rpn(struct golden_case *c, struct run *r)
{
	const struct nr_mask_rcnn_graph *g = &r->g;
	const int64_t n = nr_len(g->match), rows = r->of_rpn->d[1];
	const int32_t *match = data(r, g->match), *count = data(r, r->of_rpn_count);
	const real *box = data(r, r->of_rpn);
	int32_t *out = golden_alloc(c, n, sizeof *out), *image = golden_alloc(c, r->d.B * rows, sizeof *image);
	real *boxes = golden_reals(c, 4 * r->d.B * rows);
	golden_model_out(c, &r->d.m, g->objectness, "out", "rpn_objectness");
	golden_model_out(c, &r->d.m, g->delta, "out", "rpn_deltas");
	for (int64_t i = 0; i < n; i++) out[i] = r->d.mmdet ? match[i] + 1 : match[i] >= 0 ? 1 : match[i] == NR_MATCH_BACKGROUND ? 0 : -1;
	golden_check_ints(c, out, n, r->d.mmdet ? "out.rpn_assigned" : "out.rpn_labels");
	int64_t k = 0;
	for (int64_t i = 0; i < r->d.B * rows; i++) {
		if (i % rows >= count[i / rows]) continue;
		memcpy(boxes + 4 * k, box + 4 * i, 4 * sizeof *box);
		image[k++] = (int32_t)(i / rows);
	}
	golden_check(c, "out", boxes, 4 * k, "out.rpn_boxes");
	golden_check_ints(c, image, k, "out.rpn_box_image");
}

/* Those of the rows of x (rows,each) whose label is at least `from`; positives alone if background >= 0. */
static int64_t used(const struct run *r, const real *x, int64_t each, int32_t background, real *out)
{
	const int32_t *label = data(r, r->g.label);
	int64_t n = 0;
	for (int64_t i = 0; i < nr_len(r->g.label); i++) {
		if (label[i] < 0 || label[i] == background) continue;
		memcpy(out + n++ * each, x + i * each, (size_t)each * sizeof *x);
	}
	return n * each;
}

static void check_rois(struct golden_case *c, struct run *r)
{
	const struct nr_mask_rcnn_graph *g = &r->g;
	const int64_t rows = nr_len(g->label), S = g->label->d[1], K = nr_cols(g->class_logit), D = nr_cols(g->offset);
	const int32_t *label = data(r, g->label);
	const real *box = data(r, g->boxes);
	real *out = golden_reals(c, rows * (D > K ? D : K) + 5 * rows), *rois = golden_reals(c, 5 * rows);
	int32_t *labels = golden_alloc(c, rows, sizeof *labels);
	int64_t n = 0;
	for (int64_t i = 0; i < rows; i++) {
		if (label[i] < 0) continue;
		rois[5 * n] = (real)(i / S);
		memcpy(rois + 5 * n + 1, box + 4 * i, 4 * sizeof *box);
		labels[n++] = label[i];
	}
	golden_check_ints(c, labels, n, "out.roi_labels");
	if (golden_has(c, "out.rois")) golden_check(c, "out", rois, 5 * n, "out.rois");
	if (golden_has(c, "out.roi_boxes")) golden_check(c, "out", out, used(r, box, 4, -2, out), "out.roi_boxes");
	golden_check(c, "out", out, used(r, data(r, g->class_logit), K, -2, out), "out.class_logits");
	golden_check(c, "out", out, used(r, data(r, g->offset), D, -2, out), "out.box_regression");
	real *target = golden_reals(c, 4 * rows);
	memcpy(target, data(r, g->box_target), (size_t)(4 * rows) * sizeof *target);
	for (int64_t i = 0; i < rows && !r->d.mmdet; i++)       /* torchvision also has some for background, which count for nothing */
		if (label[i] == r->o.sample.background)
			nr_box_encode(
				1, box + 4 * i, (const real *)data(r, r->d.truth) + 4 * (i / S * r->d.G), r->o.roi_std, target + 4 * i);
	golden_check(c, "out", out, used(r, target, 4, -2, out), "out.roi_targets");
}

static void check_masks(struct golden_case *c, struct run *r)
{
	const struct nr_mask_rcnn_graph *g = &r->g;
	const int64_t K = nr_cols(g->mask_logit), P = r->places, rows = nr_len(g->label);
	real *first = golden_reals(c, rows * P * K), *out = golden_reals(c, rows * P * K);
	const real *logit = data(r, g->mask_logit);
	for (int64_t i = 0; i < rows * P * K; i++) first[(i / (P * K) * K + i % K) * P + i / K % P] = logit[i];
	golden_check(c, "out", out, used(r, first, P * K, r->o.sample.background, out), "out.mask_logits");
	if (!golden_has(c, "out.mask_targets")) return;
	const int64_t n = used(r, data(r, g->mask_target), P, r->o.sample.background, out);
	int32_t *target = golden_alloc(c, n, sizeof *target);
	for (int64_t i = 0; i < n; i++) target[i] = (int32_t)out[i];
	golden_check_ints(c, target, n, "out.mask_targets");
}

/* Pixels of masks may differ where a probability is next to 1/2. */
static void check_pasted(struct golden_case *c, struct run *r)
{
	const int64_t all = nr_len(r->label), P = r->places, pixels = r->d.h * r->d.w;
	const struct golden_ints want = golden_ints(c, 3, "out.det_masks");
	const int32_t *label = data(r, r->label);
	const real *mask = data(r, r->mask), *box = data(r, r->box);
	uint8_t *pasted = golden_alloc(c, pixels, 1);
	real *out = golden_reals(c, all * P);
	int64_t n = 0, wrong = 0;
	for (int64_t i = 0; i < all; i++) {
		if (label[i] < 0) continue;
		nr_mask_paste(r->d.mmdet ? NR_PASTE_CENTRES : NR_PASTE_PADDED, 2 * r->o.mask_pool, mask + i * P, box + 4 * i, r->d.h,
			r->d.w, pasted);
		golden_expect(c, (n + 1) * pixels <= want.n, "as many out.det_masks");
		for (int64_t p = 0; p < pixels; p++) wrong += pasted[p] != want.x[n * pixels + p];
		memcpy(out + n++ * P, mask + i * P, (size_t)P * sizeof *mask);
	}
	golden_check(c, "out", out, n * P, "out.det_mask_prob");
	c->checks++;
	if (n * pixels != want.n || 1000 * wrong > want.n)
		golden_fail(c, "out.det_masks", "%lld of %lld pixels differ", (long long)wrong, (long long)want.n);
}

int golden_model_maskrcnn(struct golden_case *c)
{
	struct run r = { .most = 0 };
	golden_detector_open(c, &r.d, "");
	r.o = settings(c, &r.d);
	r.places = 4 * r.o.mask_pool * r.o.mask_pool;
	record(c, &r);
	bind(c, &r);
	golden_model_run(c, &r.d.m, 0);
	golden_check_anchors(c, &r.g.grid);
	check_rpn(c, &r);
	check_rois(c, &r);
	check_masks(c, &r);
	const nr_t *losses[] = { r.g.loss_objectness, r.g.loss_rpn, r.g.loss_class, r.g.loss_box, r.g.loss_mask };
	static const char *const names[][2] = { { "loss.objectness", "loss.rpn_cls" }, { "loss.rpn_box_reg", "loss.rpn_bbox" },
		{ "loss.classifier", "loss.cls" }, { "loss.box_reg", "loss.bbox" }, { "loss.mask", "loss.mask" } };
	for (int i = 0; i < 5; i++) golden_model_out(c, &r.d.m, losses[i], "loss", names[i][r.d.mmdet]);
	golden_check_detections(c, &r.d, r.box, r.score, r.label, !r.d.mmdet);
	check_pasted(c, &r);
	golden_model_check(c, &r.d.m);
	golden_check_map_grads(c, &r.d);
	golden_model_close(&r.d.m);
	return GOLDEN_RAN;
}
