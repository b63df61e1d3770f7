/* Optimizers over a list of parameters: SGD, Adam, AdamW, big_vision's Adam, LARS; clipping by norm.
 *
 * All parameters are cut into fixed chunks, numbered through; one parallel region walks the chunks, so that
 * many small parameters cost no more than one large one, and sums are folded in chunk order: equal bits at
 * any thread count. */
#include "norma/train.h"

#include <string.h>

#include "math/chunk.h"
#include "math/update.h"

static const char *const kinds[] = { "sgd", "adam", "adamw", "adam-bv", "lars", "lars-timm", NULL };
static const char *const clips[] = { "none", "global", "global-bv", "tensor", NULL };

const struct nr_option nr_optim_options[] = {
	NR_OPT_ENUM(struct nr_optim, kind, "adamw", kinds, "update rule"),
	NR_OPT_FLOAT(struct nr_optim, lr, 1e-3, 0, 1e6, "learning rate before the schedule"),
	NR_OPT_FLOAT(struct nr_optim, weight_decay, 0.05, 0, 1e6,
		"weight decay of the parameters that have any"),
	NR_OPT_FLOAT(struct nr_optim, beta1, 0.9, 0, 1, "decay of adam's first moment"),
	NR_OPT_FLOAT(struct nr_optim, beta2, 0.999, 0, 1, "decay of adam's second moment"),
	NR_OPT_FLOAT(struct nr_optim, eps, 1e-8, 0, 1, "added to adam's root and to lars-timm's divisor"),
	NR_OPT_FLOAT(struct nr_optim, momentum, 0.9, 0, 1, "of sgd and lars; 0 keeps no buffer"),
	NR_OPT_FLOAT(struct nr_optim, dampening, 0, 0, 1, "of sgd's momentum"),
	NR_OPT_BOOL(struct nr_optim, nesterov, "0", "look ahead by one step of momentum (sgd, lars-timm)"),
	NR_OPT_FLOAT(struct nr_optim, trust, 1e-3, 0, 1e6, "trust coefficient of lars"),
	NR_OPT_ENUM(struct nr_optim, clip, "none", clips, "what gradient clipping takes the norm of"),
	NR_OPT_FLOAT(struct nr_optim, clip_norm, 1, 0, 1e30, "largest norm that clipping lets through"),
	NR_OPT_FLOAT(struct nr_optim, layer_decay, 1, 0, 1,
		"learning-rate factor from one layer down to the next"),
	NR_OPT_END
};

struct work {
	int64_t first; /* number of the first chunk */
	double scale;  /* gradient factor from clipping */
	double wd;     /* weight decay of this parameter */
	union {
		struct nr_adam_coef adam;
		struct nr_sgd_coef sgd;
	};
};

static int64_t chunks_of(const struct nr_segment *s)
{
	return s->grad && s->count > 0 ? (s->count + NR_UPDATE_CHUNK - 1) / NR_UPDATE_CHUNK : 0;
}

static int64_t number(const struct nr_segment *seg, int64_t count, struct work *w)
{
	int64_t total = 0;
	for (int64_t i = 0; i < count; i++) {
		w[i].first = total;
		total += chunks_of(&seg[i]);
	}
	return total;
}

size_t nr_optim_scratch(const struct nr_segment *seg, int64_t count)
{
	int64_t total = 0;
	for (int64_t i = 0; i < count; i++) total += chunks_of(&seg[i]);
	return (size_t)count * sizeof(struct work) + 2 * (size_t)total * sizeof(double);
}

/* Chunk k: which parameter, from which value on, how many values. */
struct piece { int64_t seg, at, n; };

static struct piece piece_of(const struct nr_segment *seg, int64_t count, const struct work *w, int64_t k)
{
	/* The last parameter with first <= k; empty ones share a number and come before. */
	int64_t lo = 0, hi = count - 1;
	while (lo < hi) {
		const int64_t mid = lo + (hi - lo + 1) / 2;
		if (w[mid].first <= k)
			lo = mid;
		else
			hi = mid - 1;
	}
	while (chunks_of(&seg[lo]) == 0) lo--;
	const int64_t at = (k - w[lo].first) * NR_UPDATE_CHUNK;
	return (struct piece){ lo, at, nr_min64(NR_UPDATE_CHUNK, seg[lo].count - at) };
}

static double sum_of(const struct work *w, const struct nr_segment *seg, int64_t i, const double *part)
{
	double s = 0;
	for (int64_t k = 0; k < chunks_of(&seg[i]); k++) s += part[w[i].first + k];
	return s;
}

enum { THREADS_FROM = 4 }; /* chunks */

static void grad_sums(
	const struct nr_segment *seg, int64_t count, const struct work *w, int64_t total, double *part)
{
#pragma omp parallel for schedule(static) if (total >= THREADS_FROM)
	for (int64_t k = 0; k < total; k++) {
		const struct piece p = piece_of(seg, count, w, k);
		part[k] = nr_update_active->sum_sq(p.n, seg[p.seg].grad + p.at);
	}
}

double nr_optim_grad_norm(const struct nr_segment *seg, int64_t count, void *scratch)
{
	struct work *w = scratch;
	double *part = (double *)(w + count), sum = 0;
	const int64_t total = number(seg, count, w);
	grad_sums(seg, count, w, total, part);
	for (int64_t k = 0; k < total; k++) sum += part[k];
	return sqrt(sum);
}

double nr_clip_scale(int clip, double clip_norm, double norm)
{
	double s = 1;
	if (clip == NR_CLIP_GLOBAL || clip == NR_CLIP_TENSOR) s = clip_norm / (norm + 1e-6);
	if (clip == NR_CLIP_GLOBAL_BV && norm > 0) s = clip_norm / norm;
	return s < 1 ? s : 1;
}

static bool is_adam(const struct nr_optim *o)
{
	return o->kind == NR_OPTIM_ADAM || o->kind == NR_OPTIM_ADAMW || o->kind == NR_OPTIM_ADAM_BV;
}

int nr_optim_slots(const struct nr_optim *o)
{
	return is_adam(o) ? 2 : o->momentum != 0;
}

static struct nr_adam_coef adam_coef(const struct nr_optim *o, const struct nr_rates *r, int64_t t,
	double lr_scale, double scale, double wd)
{
	const double lr = r->lr * lr_scale, schedule = o->lr > 0 ? lr / o->lr : 0;
	const double rate = o->kind == NR_OPTIM_ADAMW ? lr : o->kind == NR_OPTIM_ADAM_BV ? schedule : 0;
	return (struct nr_adam_coef){
		.scale = (real)scale,
		.l2 = (real)(o->kind == NR_OPTIM_ADAM ? wd : 0),
		.beta1 = (real)o->beta1,
		.rest1 = (real)(1 - o->beta1),
		.beta2 = (real)o->beta2,
		.rest2 = (real)(1 - o->beta2),
		.step = (real)(lr / (1 - pow(o->beta1, (double)t))),
		.root = (real)(1 / sqrt(1 - pow(o->beta2, (double)t))),
		.eps = (real)o->eps,
		.keep = (real)(1 - rate * wd),
	};
}

/* ratio: LARS's trust ratio, 1 otherwise. The first step fills the buffer with the gradient, undamped, as
 * PyTorch does. */
static struct nr_sgd_coef sgd_coef(
	const struct nr_optim *o, double lr, int64_t t, double scale, double wd, double ratio)
{
	const bool lars = o->kind == NR_OPTIM_LARS, ahead = o->nesterov && !lars && o->momentum != 0;
	const double damp = lars ? 0 : o->dampening;
	return (struct nr_sgd_coef){
		.scale = (real)(ratio * scale),
		.l2 = (real)(ratio * wd),
		.keep_m = (real)(t == 1 ? 0 : o->momentum),
		.add_m = (real)(t == 1 ? 1 : 1 - damp),
		.rate_g = (real)(ahead || o->momentum == 0 ? lr : 0),
		.rate_m = (real)(ahead ? lr * o->momentum : lr),
	};
}

/* Trust ratio of each parameter, left in part[first]: part holds |w|^2 per chunk, part2 |g + wd w|^2 or
 * |g|^2. */
static void trust_sums(const struct nr_optim *o, const struct nr_segment *seg, int64_t count,
	const struct work *w, int64_t total, double *part, double *part2)
{
#pragma omp parallel for schedule(static) if (total >= THREADS_FROM)
	for (int64_t k = 0; k < total; k++) {
		const struct piece p = piece_of(seg, count, w, k);
		const struct nr_segment *s = &seg[p.seg];
		const double wd = o->kind == NR_OPTIM_LARS ? w[p.seg].wd : 0;
		part[k] = nr_update_active->sum_sq(p.n, s->value + p.at);
		part2[k] = nr_update_active->sum_sq_mix(
			p.n, w[p.seg].scale, s->grad + p.at, wd, s->value + p.at);
	}
}

static double trust_ratio(
	const struct nr_optim *o, const struct nr_segment *s, double wd, double value, double grad)
{
	if (o->kind == NR_OPTIM_LARS ? s->nd <= 1 : wd == 0) return 1;
	if (value == 0 || grad == 0) return 1;
	return o->trust * value / (o->kind == NR_OPTIM_LARS ? grad : grad + wd * value + o->eps);
}

static void apply(const struct nr_optim *o, const struct nr_segment *seg, int64_t count, const struct work *w,
	int64_t total)
{
	const bool adam = is_adam(o), momentum = o->momentum != 0;
#pragma omp parallel for schedule(static) if (total >= THREADS_FROM)
	for (int64_t k = 0; k < total; k++) {
		const struct piece p = piece_of(seg, count, w, k);
		const struct nr_segment *s = &seg[p.seg];
		if (adam)
			nr_update_active->adam(p.n, s->value + p.at, s->grad + p.at, s->m + p.at, s->v + p.at,
				&w[p.seg].adam);
		else
			nr_update_active->sgd(p.n, s->value + p.at, s->grad + p.at,
				momentum ? s->m + p.at : NULL, &w[p.seg].sgd);
	}
}

int nr_optim_step(const struct nr_optim *o, const struct nr_rates *r, int64_t t, const struct nr_segment *seg,
	int64_t count, void *scratch, struct nr_optim_info *info)
{
	struct work *w = scratch;
	const bool lars = o->kind == NR_OPTIM_LARS || o->kind == NR_OPTIM_LARS_TIMM;
	const int64_t total = number(seg, count, w);
	double *part = (double *)(w + count), *part2 = part + total, norm = 0, clip = 1;
	if (info || o->clip != NR_CLIP_NONE) {
		grad_sums(seg, count, w, total, part);
		for (int64_t k = 0; k < total; k++) norm += part[k];
		norm = sqrt(norm);
		if (o->clip != NR_CLIP_TENSOR) clip = nr_clip_scale(o->clip, o->clip_norm, norm);
		if (info) *info = (struct nr_optim_info){ norm, clip };
		if (!isfinite(norm)) return NR_EDIVERGED;
	}
	for (int64_t i = 0; i < count; i++) {
		w[i].scale = clip;
		if (o->clip == NR_CLIP_TENSOR)
			w[i].scale = nr_clip_scale(o->clip, o->clip_norm, sqrt(sum_of(w, seg, i, part)));
		const bool plain = o->kind == NR_OPTIM_LARS && seg[i].nd <= 1;
		w[i].wd = plain ? 0 : r->weight_decay * seg[i].decay;
	}
	if (lars) trust_sums(o, seg, count, w, total, part, part2);
	for (int64_t i = 0; i < count; i++) {
		const double scale = w[i].scale, wd = w[i].wd;
		if (is_adam(o)) {
			w[i].adam = adam_coef(o, r, t, seg[i].lr_scale, scale, wd);
			continue;
		}
		const double value = lars ? sqrt(sum_of(w, seg, i, part)) : 0;
		const double grad = lars ? sqrt(sum_of(w, seg, i, part2)) : 0;
		const double ratio = lars ? trust_ratio(o, &seg[i], wd, value, grad) : 1;
		w[i].sgd = sgd_coef(o, r->lr * seg[i].lr_scale, t, scale, wd, ratio);
	}
	apply(o, seg, count, w, total);
	return 0;
}
