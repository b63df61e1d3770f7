/* norma-golden-model-1, family retinanet: feature maps and public weights in; neck, anchors, heads, matches, losses, gradients and
 * detections out. */
#include <math.h>
#include <string.h>

#include "golden/detector.h"
#include "math/detect.h"
#include "norma/nn.h"

static struct nr_retinanet settings(struct golden_case *c, const struct golden_detector *d)
{
	const struct nr_box_code code = golden_box_code(c, "coder_stds", "coder_weights");
	const char *loss = golden_text(c, "loss_type");
	struct nr_retinanet o = {
		.classes = (int64_t)golden_number(c, "num_classes"),
		.prior = .01,
		.convs = (int64_t)golden_before(c, golden_text(c, "head"), "convs"),
		.neck = golden_neck(c),
		.focal = { golden_number(c, "focal.alpha"), golden_number(c, "focal.gamma") },
		.mean = d->mmdet ? NR_ANCHOR_POSITIVES : NR_ANCHOR_PER_PICTURE,
		.match = { .high = golden_number_in(c, "assigner.pos", "matcher.high"),
			.low = golden_number_in(c, "assigner.neg", "matcher.low"),
			.low_iou = golden_number_or(c, "assigner.min_pos", 0),
			.low_quality = d->mmdet ? NR_MATCH_THAT : NR_MATCH_OWN },
		.cost = { .kind = strcmp(loss, "giou") ? NR_BOX_L1 : NR_BOX_GIOU, .limit = code.limit, .both_sides = code.both_sides },
		.rule = { .code = code,
			.score = golden_number_in(c, "score_thr", "score_thresh"),
			.nms = golden_number_in(c, "nms_iou", "nms_thresh"),
			.min_size = -1,
			.before = (int64_t)golden_number_in(c, "nms_pre", "topk_candidates"),
			.keep = (int64_t)golden_number_in(c, "max_per_img", "detections_per_img") },
	};
	if (!strcmp(loss, "smooth_l1")) o.cost.beta = golden_number_or(c, "beta", 1);
	else if (strcmp(loss, "giou") != 0 && strcmp(loss, "l1") != 0) golden_stop(c, NULL, "a loss of boxes '%s'", loss);
	memcpy(o.cost.std, code.std, sizeof o.cost.std);
	golden_anchor_plan(c, d, &o.anchors);
	return o;
}

/* Matches as the libraries count them: torchvision from 0, mmdetection from 1. */
static void check_matches(struct golden_case *c, struct golden_detector *d, const struct nr_retinanet_graph *g)
{
	const int64_t n = nr_len(g->match);
	const int32_t *match = nr_plan_data(d->m.plan, g->match);
	int32_t *out = golden_alloc(c, n, sizeof *out);
	for (int64_t i = 0; i < n; i++) out[i] = match[i] + d->mmdet;
	golden_check_ints(c, out, n, "out.matched");
}

static void check_targets(struct golden_case *c, struct golden_detector *d, const struct nr_retinanet *o,
	const struct nr_retinanet_graph *g)
{
	const int64_t n = nr_len(g->match), N = g->match->d[1];
	const int32_t *match = nr_plan_data(d->m.plan, g->match);
	const real *truth = nr_plan_data(d->m.plan, d->truth);
	real *out = golden_reals(c, 4 * n);
	for (int64_t i = 0; i < n; i++) {
		double box[4];
		nr_anchor_box(&g->grid, i % N, box);
		const real prior[4] = { (real)box[0], (real)box[1], (real)box[2], (real)box[3] };
		if (match[i] >= 0) nr_box_encode(1, prior, truth + 4 * (i / N * d->G + match[i]), o->cost.std, out + 4 * i);
	}
	if (golden_has(c, "out.reg_targets")) golden_check(c, "out", out, 4 * n, "out.reg_targets");
}

int golden_model_retinanet(struct golden_case *c)
{
	struct golden_detector d = { .levels = 0 };
	struct nr_retinanet_graph g;
	const double groups = golden_number_or(c, "groups", 0);
	golden_detector_open(c, &d, groups > 0 ? nr_arena_printf(c->arena, "layer head.class=group:groups=%g,eps=%.17g "
		"head.box=group:groups=%g,eps=%.17g", groups, 1e-5, groups, 1e-5) : "");
	const struct nr_retinanet o = settings(c, &d);
	struct nr_net *n = d.m.net;
	nr_t *score, *label;
	nr_retinanet(n, &o, d.map, d.levels, d.h, d.w, &g);
	nr_t *loss = nr_retinanet_loss(n, &o, &g, d.truth, d.classes);
	nr_t *box = nr_tap(n, "boxes", nr_retinanet_detections(n, &o, &g, d.size, &score, &label));
	nr_tap(n, "logits", g.logit), nr_tap(n, "offsets", g.offset), nr_tap(n, "match", g.match);
	nr_tap(n, "scores", score), nr_tap(n, "labels", label);
	for (int l = 0; l < g.levels; l++) nr_tap(n, nr_arena_printf(c->arena, "map%d", l), g.map[l]);
	golden_model_load(c, &d.m, loss, NULL);
	golden_detector_bind(c, &d);
	golden_model_run(c, &d.m, 0);
	golden_check_maps(c, &d, g.map, g.levels, (int)lrint(log2(nr_level_stride(d.h, d.map[0]->tok->h))));
	golden_check_anchors(c, &g.grid);
	golden_model_out(c, &d.m, g.logit, "out", "cls_logits");
	golden_model_out(c, &d.m, g.offset, "out", "bbox_regression");
	check_matches(c, &d, &g);
	check_targets(c, &d, &o, &g);
	golden_model_out(c, &d.m, g.class_loss, "loss", d.mmdet ? "loss.cls" : "loss.classification");
	golden_model_out(c, &d.m, g.box_loss, "loss", d.mmdet ? "loss.bbox" : "loss.bbox_regression");
	golden_check_detections(c, &d, box, score, label, 0);
	golden_model_check(c, &d.m);
	golden_check_map_grads(c, &d);
	golden_model_close(&d.m);
	return GOLDEN_RAN;
}
