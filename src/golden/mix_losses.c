/* metrics/mix_losses: mixup, CutMix, their soft targets, and cross entropies with gradients. */
#include "golden/check.h"
#include "math/mix.h"
#include "math/softmax.h"

enum loss { SOFT, SIGMOID };

/* Mean over `count` of a row's or an element's loss, and its gradient. */
static void check_loss(struct golden_case *c, enum loss kind, const struct golden_tensor *x,
	const real *target, int64_t count, const char *name)
{
	const int64_t rows = x->d[0], C = x->d[1];
	real *loss = golden_reals(c, rows), *dx = golden_reals(c, rows * C);
	(kind == SOFT ? nr_xent_soft : nr_xent_sigmoid)(
		rows, C, x->x, C, target, C, 1 / (real)count, loss, dx, C, 0);
	golden_check_value(c, "out", (double)nr_sum(rows, loss) / (double)count, "%s", name);
	golden_check(c, "out", dx, rows * C, "%s_grad", name);
}

static void check_labels(struct golden_case *c, const struct golden_tensor *x, const int32_t *label,
	double smoothing, const char *name)
{
	const int64_t rows = x->d[0], C = x->d[1];
	real *loss = golden_reals(c, rows), *dx = golden_reals(c, rows * C);
	nr_xent_labels(rows, C, x->x, C, label, -1, (real)smoothing, 1 / (real)rows, loss, dx, C, 0);
	golden_check_value(c, "out", (double)nr_sum(rows, loss) / (double)rows, "%s", name);
	golden_check(c, "out", dx, rows * C, "%s_grad", name);
}

int golden_metric_mix_losses(struct golden_case *c)
{
	const struct golden_tensor image = golden_tensor(c, 4, "in.image"),
				   x = golden_tensor(c, 2, "in.logits");
	const struct golden_ints label = golden_ints(c, 1, "in.label");
	const int64_t B = image.d[0], planes = image.d[1], h = image.d[2], w = image.d[3], n = planes * h * w,
		      C = x.d[1];
	const double s = golden_number(c, "smoothing"), lam = golden_number(c, "lam_mixup");
	golden_expect(c, x.d[0] == B && label.n == B && C == (int64_t)golden_number(c, "classes"),
		"images, logits, labels");
	for (int64_t i = 0; i < B; i++) golden_expect(c, label.x[i] >= 0 && label.x[i] < C, "labels");
	real *mixed = golden_reals(c, B * n), *target = golden_reals(c, B * C);

	check_labels(c, &x, label.x, 0, "plain.ce");
	check_labels(c, &x, label.x, s, "label_smoothing.ce");

	nr_mixup(B, n, image.x, NR_MIX_FLIP, (real)lam, mixed);
	golden_check(c, "out", mixed, B * n, "mixup.image");
	nr_mix_targets(B, C, label.x, (real)s, NR_MIX_FLIP, (real)lam, target);
	golden_check(c, "out", target, B * C, "mixup.target");
	check_loss(c, SOFT, &x, target, B, "mixup.soft_ce");
	check_loss(c, SIGMOID, &x, target, B * C, "bce.mean");

	const struct nr_box box = nr_cutmix_box(h, w, golden_number(c, "lam_cutmix"),
		(int64_t)golden_item(c, "cutmix_center", 0), (int64_t)golden_item(c, "cutmix_center", 1));
	const double kept = nr_cutmix_lam(h, w, box);
	golden_check_ints(
		c, (const int32_t[]){ box.y0, box.y1, box.x0, box.x1 }, 4, "cutmix.box_yl_yh_xl_xh");
	golden_check_value(c, "out", kept, "cutmix.lam_corrected");
	nr_cutmix(B, planes, h, w, 1, image.x, NR_MIX_FLIP, box, mixed);
	golden_check(c, "out", mixed, B * n, "cutmix.image");
	nr_mix_targets(B, C, label.x, (real)s, NR_MIX_FLIP, (real)kept, target);
	golden_check(c, "out", target, B * C, "cutmix.target");
	check_loss(c, SOFT, &x, target, B, "cutmix.soft_ce");

	const double larger = lam > 1 - lam ? lam : 1 - lam;
	nr_mixup(B, n, image.x, NR_MIX_ROLL, (real)larger, mixed);
	golden_check(c, "out", mixed, B * n, "bigvision_mixup.image");
	nr_mix_targets(B, C, label.x, 0, NR_MIX_ROLL, (real)larger, target);
	golden_check(c, "out", target, B * C, "bigvision_mixup.target");
	check_loss(c, SOFT, &x, target, B, "bigvision.softmax_xent");
	check_loss(c, SIGMOID, &x, target, B, "bigvision.sigmoid_xent");
	return GOLDEN_RAN;
}
