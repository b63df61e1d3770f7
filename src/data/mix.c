/* Mixup (Zhang et al. 2018) and CutMix (Yun et al. 2019) of pairs, in place. math/mix.h has the same for any partner. */
#include "data/mix.h"

#include <string.h>

#include "base/draws.h"

struct nr_mixing nr_mix_draw(const struct nr_loader_config *c, int64_t number, int32_t h, int32_t w)
{
	struct nr_mixing m = { .kind = NR_MIX_NONE, .lam = 1 };
	struct nr_draws d = nr_draws_of(c->seed, NR_STREAM_MIX, number, 0);
	if (!(c->mixup > 0 || c->cutmix > 0) || nr_draw(&d) >= c->mix_prob) return m;
	const double toss = nr_draw(&d);
	m.kind = c->cutmix > 0 && (!(c->mixup > 0) || toss < c->mix_switch) ? NR_MIX_CUT : NR_MIX_UP;
	m.lam = nr_draw_beta(&d, m.kind == NR_MIX_CUT ? c->cutmix : c->mixup);
	if (m.kind == NR_MIX_CUT) {
		const int32_t cy = nr_draw_below(&d, h), cx = nr_draw_below(&d, w);
		m.box = nr_cutmix_box(h, w, m.lam, cy, cx);
		m.lam = nr_cutmix_lam(h, w, m.box);
	}
	return m;
}

static void blend(int64_t n, float lam, float *a, float *b)
{
	const float rest = 1 - lam;
	for (int64_t i = 0; i < n; i++) {
		const float x = a[i], y = b[i];
		a[i] = lam * x + rest * y;
		b[i] = lam * y + rest * x;
	}
}

static void exchange(const struct nr_box *box, int32_t channels, int32_t h, int32_t w, float *a, float *b)
{
	for (int64_t p = 0; p < channels; p++)
		for (int64_t y = box->y0; y < box->y1; y++)
			for (int64_t i = (p * h + y) * w + box->x0, end = i + box->x1 - box->x0; i < end; i++) {
				const float x = a[i];
				a[i] = b[i];
				b[i] = x;
			}
}

void nr_mix_run(const struct nr_mixing *m, int64_t B, int32_t channels, int32_t h, int32_t w, float *image)
{
	const int64_t n = (int64_t)channels * h * w;
	for (int64_t i = 0; i < B / 2; i++) {
		float *a = image + i * n, *b = image + nr_mix_partner(NR_MIX_FLIP, B, i) * n;
		if (m->kind == NR_MIX_UP) blend(n, (float)m->lam, a, b);
		if (m->kind == NR_MIX_CUT) exchange(&m->box, channels, h, w, a, b);
	}
}

/* A label of -1 adds nothing: its row holds the smoothing alone. */
void nr_mix_soften(const struct nr_mixing *m, int64_t B, int32_t classes, const int32_t *label, double smoothing, float *target)
{
	const float off = (float)(smoothing / classes), on = (float)(1 - smoothing), lam = (float)m->lam;
	for (int64_t i = 0; i < B; i++) {
		float *t = target + i * classes;
		for (int32_t k = 0; k < classes; k++) t[k] = off;
		const int32_t mine = label[i], other = label[nr_mix_partner(NR_MIX_FLIP, B, i)];
		if (mine >= 0) t[mine] += lam * on;
		if (other >= 0) t[other] += (1 - lam) * on;
	}
}
