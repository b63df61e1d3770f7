/* Optimizers, learning-rate schedules, layer-wise decay and moving averages. All are pure functions of their
 * arguments: a resumed run needs m, v and the step number, nothing else. */
#ifndef NORMA_TRAIN_H
#define NORMA_TRAIN_H

#include <stdbool.h>

#include "norma/option.h"

/* ---- optimizers ---- */

enum nr_optim_kind {
	NR_OPTIM_SGD,       /* momentum, dampening, nesterov; decay is L2, as in PyTorch */
	NR_OPTIM_ADAM,      /* decay is L2: added to the gradient */
	NR_OPTIM_ADAMW,     /* Loshchilov & Hutter 2019: w -= lr wd w beside the Adam step */
	NR_OPTIM_ADAM_BV,   /* big_vision: w -= schedule (lr adam + wd w): decay without lr */
	NR_OPTIM_LARS,      /* MAE: ratio trust |w| / |g + wd w|; vectors: no ratio, no decay */
	NR_OPTIM_LARS_TIMM, /* ratio trust |w| / (|g| + wd |w| + eps), only where wd > 0 */
};

enum nr_clip_kind {
	NR_CLIP_NONE,
	NR_CLIP_GLOBAL,    /* PyTorch: g *= min(1, c / (|all g| + 1e-6)) */
	NR_CLIP_GLOBAL_BV, /* big_vision, optax: g *= min(1, c / |all g|) */
	NR_CLIP_TENSOR,    /* DINO: g *= min(1, c / (|g| + 1e-6)), each tensor for itself */
};

struct nr_optim {
	int32_t kind, clip; /* enum nr_optim_kind, nr_clip_kind */
	double lr, weight_decay, beta1, beta2, eps, momentum, dampening, trust, clip_norm, layer_decay;
	bool nesterov;
};
extern NR_DATA const struct nr_option nr_optim_options[];

/* One parameter. m: momentum or Adam's first moment; v: Adam's second moment (NULL where the kind has none,
 * see nr_optim_slots). grad NULL: frozen, left alone. */
struct nr_segment {
	real *value, *grad, *m, *v;
	int64_t count;
	int32_t nd;        /* dimensions of the tensor: LARS treats vectors apart */
	float lr_scale;    /* 1, or what layer-wise decay says */
	float decay;       /* factor on the weight decay: 0 for parameters without, else 1 */
};

/* What the schedules say for this step. weight_decay as in nr_optim unless scheduled itself (DINO). */
struct nr_rates { double lr, weight_decay; };
struct nr_optim_info { double grad_norm, clip_scale; }; /* before clipping; 1 with NR_CLIP_TENSOR */

/* How many of m, v the kind needs: 0, 1 or 2. */
NR_API int nr_optim_slots(const struct nr_optim *);
NR_API size_t nr_optim_scratch(const struct nr_segment *, int64_t count); /* bytes */
/* One step. t counts from 1. info may be NULL: then the norm is only computed where clipping needs it. The
 * gradients are only read. Returns 0, or NR_EDIVERGED with nothing changed when the norm was computed and is
 * not finite. */
NR_API int nr_optim_step(const struct nr_optim *, const struct nr_rates *, int64_t t,
	const struct nr_segment *, int64_t count, void *scratch, struct nr_optim_info *info);
/* Norm over all gradients. */
NR_API double nr_optim_grad_norm(const struct nr_segment *, int64_t count, void *scratch);
/* What clipping multiplies a gradient of this norm by. */
NR_API double nr_clip_scale(int clip, double clip_norm, double norm);

/* ---- schedules ---- */

enum nr_schedule_kind {
	NR_SCHED_CONSTANT, NR_SCHED_COSINE, NR_SCHED_LINEAR, NR_SCHED_RSQRT, NR_SCHED_STEP, NR_SCHED_POLY
};

/* value(s) = warm-up for s < warmup, then the decay. With x = (s - warmup) / (total - warmup), in 0..1:
 *   constant  base
 *   cosine    final + (base - final) (1 + cos(pi x)) / 2
 *   poly      final + (base - final) (1 - x)^power         linear: power 1
 *   rsqrt     base / sqrt(1 + (s - warmup) / timescale)
 *   step      base gamma^(milestones <= s)
 * Warm-up goes linearly from warmup_start to base; it arrives at s = warmup, or, if inclusive (DINO's
 * linspace), at s = warmup - 1. counted = 0 (timm without prefix): x = s / total, as without warm-up. */
struct nr_schedule {
	int32_t kind;
	double base, final, warmup_start;
	int64_t warmup, total;
	bool inclusive, counted;
	double power, timescale, gamma;
	char *milestones; /* steps, separated by spaces, e.g. "8 11" */
};
extern NR_DATA const struct nr_option nr_schedule_options[];
NR_API double nr_schedule_at(const struct nr_schedule *, int64_t step);

/* ---- layer-wise learning-rate decay, moving averages ---- */

/* MAE's fine-tuning rule. cls_token, pos_embed, patch_embed*: 0; blocks.I.*: I + 1; all else: depth + 1. */
NR_API int nr_layer_id(const char *name, int depth);
NR_API double nr_layer_scale(int id, int depth, double decay); /* decay^(depth + 1 - id) */

/* average = keep average + (1 - keep) value. Buffers of integers are to be copied by the caller. */
NR_API void nr_ema_step(int64_t count, real *average, const real *value, double keep);

#endif
