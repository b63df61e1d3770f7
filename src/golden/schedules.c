/* metrics/schedules: the public recipes' schedules, each as settings of one nr_schedule. */
#include <stdlib.h>
#include <string.h>

#include "golden/check.h"
#include "norma/optim.h"

/* Compares value(first), value(first+1), ... with the tensor of that name, as long as it is. */
static void compare(struct golden_case *c, const char *name, const struct nr_schedule *s)
{
	if (!golden_has(c, name)) return;
	const int64_t n = golden_tensor(c, 1, "%s", name).n;
	real *got = golden_reals(c, n);
	for (int64_t i = 0; i < n; i++) got[i] = (real)nr_schedule_at(s, i);
	golden_check(c, "out", got, n, "%s", name);
}

static void dino(struct golden_case *c, double lr, double min_lr, int64_t warmup, int64_t total)
{
	struct nr_schedule s = { .kind = nr_schedule_kind("cosine"),
		.base = lr,
		.final = min_lr,
		.warmup = warmup,
		.total = total,
		.inclusive = true,
		.counted = true };
	compare(c, "dino_lr", &s);
	s = (struct nr_schedule){
		.kind = nr_schedule_kind("cosine"), .base = .04, .final = .4, .total = total, .counted = true
	};
	compare(c, "dino_weight_decay", &s);
	s.base = .996;
	s.final = 1;
	compare(c, "dino_ema_momentum", &s);
	s = (struct nr_schedule){ .kind = nr_schedule_kind("constant"),
		.warmup_start = golden_item(c, "teacher_temp", 0),
		.base = golden_item(c, "teacher_temp", 1),
		.warmup = (int64_t)golden_item(c, "teacher_temp", 2),
		.inclusive = true };
	compare(c, "dino_teacher_temp", &s);
}

/* "linear warm-up, 50 iterations here, ratio 0.001; 1x: x0.1 at epochs 8 and 11 of 12" */
static void mmdet(struct golden_case *c, double lr)
{
	const char *text = golden_text(c, "mmdet");
	struct nr_schedule s = { .kind = nr_schedule_kind("constant"),
		.base = lr,
		.warmup_start = lr * golden_after(c, text, "ratio"),
		.warmup = (int64_t)golden_before(c, text, " iterations") };
	compare(c, "mmdet_warmup", &s);

	char list[128] = "";
	const char *at = strstr(text, "at epoch");
	if (!at) golden_stop(c, NULL, "no milestones in '%s'", text);
	const char *end = strstr(at, " of ");
	for (const char *p = at; *p && (!end || p < end) && strlen(list) < sizeof list - 24;) {
		char *next;
		const long v = strtol(p, &next, 10);
		if (next != p) {
			snprintf(list + strlen(list), 24, "%ld ", v);
			p = next;
		} else {
			p++;
		}
	}
	const char *rule = strstr(text, "1x:");
	s = (struct nr_schedule){ .kind = nr_schedule_kind("step"), .base = lr, .milestones = list,
		.gamma = golden_after(c, rule ? rule + 3 : text, "x") };
	compare(c, "mmdet_step_1x", &s);
}

int golden_metric_schedules(struct golden_case *c)
{
	const double lr = golden_number(c, "lr"), min_lr = golden_number(c, "min_lr");
	const int64_t per_epoch = (int64_t)golden_number(c, "iters_per_epoch"),
		      epochs = (int64_t)golden_number(c, "epochs");
	const int64_t warm = (int64_t)golden_number(c, "warmup_epochs");
	struct nr_schedule s = { .kind = nr_schedule_kind("cosine"),
		.base = lr,
		.final = min_lr,
		.warmup = warm * per_epoch,
		.total = epochs * per_epoch,
		.counted = true };
	compare(c, "mae_per_iteration", &s);
	s.final = 0;
	compare(c, "bigvision_cosine", &s);
	s.kind = nr_schedule_kind("rsqrt");
	s.timescale = golden_number(c, "rsqrt_timescale");
	compare(c, "bigvision_rsqrt", &s);
	dino(c, lr, min_lr, warm * per_epoch, epochs * per_epoch);

	s = (struct nr_schedule){ .kind = nr_schedule_kind("cosine"),
		.base = lr,
		.final = min_lr,
		.warmup = warm,
		.total = epochs,
		.warmup_start = golden_after(c, golden_text(c, "timm"), "warmup_lr_init"),
		.counted = false };
	compare(c, "timm_cosine_epochs", &s);
	mmdet(c, lr);

	const char *poly = golden_text(c, "poly");
	s = (struct nr_schedule){ .kind = nr_schedule_kind("poly"), .base = lr, .power = golden_after(c, poly, "power"),
		.total = (int64_t)golden_before(c, poly, " iteration") };
	compare(c, "poly", &s);
	return GOLDEN_RAN;
}
