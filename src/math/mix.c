/* Mixup and CutMix. See mix.h. */
#include "math/mix.h"

#include <string.h>

int64_t nr_mix_partner(enum nr_mix_partner kind, int64_t B, int64_t i)
{
	return kind == NR_MIX_FLIP ? B - 1 - i : i > 0 ? i - 1 : B - 1;
}

void nr_mixup(int64_t B, int64_t n, const real *x, enum nr_mix_partner kind, real lam, real *y)
{
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < B; i++) {
		const real *a = x + i * n, *b = x + nr_mix_partner(kind, B, i) * n;
		for (int64_t k = 0; k < n; k++) y[i * n + k] = lam * a[k] + (1 - lam) * b[k];
	}
}

static int32_t clamp(int64_t v, int64_t hi) { return (int32_t)(v < 0 ? 0 : v > hi ? hi : v); }

struct nr_box nr_cutmix_box(int64_t h, int64_t w, double lam, int64_t cy, int64_t cx)
{
	const double side = sqrt(1 - lam);
	const int64_t dy = (int64_t)((double)h * side), dx = (int64_t)((double)w * side);       /* odd ones: more of it after the centre */
	return (struct nr_box){ clamp(cy - dy / 2, h), clamp(cy + (dy + 1) / 2, h), clamp(cx - dx / 2, w), clamp(cx + (dx + 1) / 2, w) };
}

double nr_cutmix_lam(int64_t h, int64_t w, struct nr_box b)
{
	return 1 - (double)(b.y1 - b.y0) * (b.x1 - b.x0) / ((double)h * (double)w);
}

void nr_cutmix(int64_t B, int64_t planes, int64_t h, int64_t w, int64_t inner, const real *x,
	enum nr_mix_partner kind, struct nr_box box, real *y)
{
	const int64_t n = planes * h * w * inner;
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < B; i++) {
		const real *other = x + nr_mix_partner(kind, B, i) * n;
		memcpy(y + i * n, x + i * n, (size_t)n * sizeof(real));
		for (int64_t p = 0; p < planes; p++)
			for (int64_t r = box.y0; r < box.y1; r++) {
				const int64_t at = ((p * h + r) * w + box.x0) * inner;
				memcpy(y + i * n + at, other + at,
					(size_t)((box.x1 - box.x0) * inner) * sizeof(real));
			}
	}
}

void nr_mix_targets(int64_t B, int64_t C, const int32_t *label, real smoothing, enum nr_mix_partner kind,
	real lam, real *target)
{
	const real off = smoothing / (real)C, on = 1 - smoothing;
	for (int64_t i = 0; i < B; i++) {
		real *t = target + i * C;
		for (int64_t k = 0; k < C; k++) t[k] = off;
		t[label[i]] += lam * on;
		t[label[nr_mix_partner(kind, B, i)]] += (1 - lam) * on;
	}
}
