/* Optimizers, learning-rate schedules, layer-wise decay and moving averages. All are pure functions of their
 * arguments: a resumed run needs m, v and the step number, nothing else. */
#ifndef NORMA_TRAIN_H
#define NORMA_TRAIN_H

#include <stdbool.h>

#include "norma/option.h"

/* ---- optimizers: one file in src/optim and one line in optimizers.def each ---- */

enum nr_clip_kind {
	NR_CLIP_NONE,
	NR_CLIP_GLOBAL,    /* PyTorch: g *= min(1, c / (|all g| + 1e-6)) */
	NR_CLIP_GLOBAL_BV, /* big_vision, optax: g *= min(1, c / |all g|) */
	NR_CLIP_TENSOR,    /* DINO: g *= min(1, c / (|g| + 1e-6)), each tensor for itself */
};

struct nr_optim {
	int32_t kind, clip; /* nr_optim_kind("adamw"), enum nr_clip_kind */
	double lr, weight_decay, beta1, beta2, eps, momentum, dampening, trust, clip_norm, layer_decay;
	bool nesterov;
	double own[8];      /* values of options that one optimizer alone has */
};
/* Rows of all optimizers; each says whose it is. */
NR_API const struct nr_option *nr_optim_options(void);
NR_API int32_t nr_optim_kind(const char *name); /* "sgd", "adam", "adamw", "adam-bv", "lars", "lars-timm"; -1: no such name */

/* One parameter. m: momentum or Adam's first moment; v: Adam's second moment (NULL where the kind has none,
 * see nr_optim_slots). grad NULL: frozen, left alone. */
struct nr_segment {
	real *value, *grad, *m, *v;
	int64_t count;
	int32_t nd;        /* dimensions of the tensor: LARS treats vectors apart */
	const int64_t *d;  /* (nd) sizes, for optimizers of matrices; NULL: not known */
	float lr_scale;    /* 1, or what layer-wise decay says */
	float decay;       /* factor on the weight decay: 0 for parameters without, else 1 */
};

/* What the schedules say for this step. weight_decay as in nr_optim unless scheduled itself (DINO). */
struct nr_rates { double lr, weight_decay; };
struct nr_optim_info { double grad_norm, clip_scale; }; /* before clipping; 1 with NR_CLIP_TENSOR */

/* How many of m, v the kind needs: 0, 1 or 2. */
NR_API int nr_optim_slots(const struct nr_optim *);
/* Bytes; nr_optim NULL: what nr_optim_grad_norm alone needs. */
NR_API size_t nr_optim_scratch(const struct nr_optim *, const struct nr_segment *, int64_t count);
/* One step. t counts from 1. info may be NULL: then the norm is only computed where clipping needs it. The
 * gradients are only read. Returns 0, NR_ENAME if there is no such kind, or NR_EDIVERGED with nothing changed when the
 * norm was computed and is not finite. */
NR_API int nr_optim_step(const struct nr_optim *, const struct nr_rates *, int64_t t,
	const struct nr_segment *, int64_t count, void *scratch, struct nr_optim_info *info);
/* Norm over all gradients. */
NR_API double nr_optim_grad_norm(const struct nr_segment *, int64_t count, void *scratch);
/* What clipping multiplies a gradient of this norm by. */
NR_API double nr_clip_scale(int clip, double clip_norm, double norm);

/* ---- schedules ---- */

/* value(s) = warm-up for s < warmup, then the decay that `kind` names; src/optim/schedules.def has the formulas.
 * Warm-up goes linearly from warmup_start to base; it arrives at s = warmup, or, if inclusive (DINO's
 * linspace), at s = warmup - 1. counted = 0 (timm without prefix): x = s / total, as without warm-up. */
struct nr_schedule {
	int32_t kind; /* nr_schedule_kind("cosine") */
	double base, final, warmup_start;
	int64_t warmup, total;
	bool inclusive, counted;
	double power, timescale, gamma;
	char *milestones; /* steps, separated by spaces, e.g. "8 11" */
};
extern NR_DATA const struct nr_option nr_schedule_options[];
extern NR_DATA const char *const nr_schedule_names[]; /* ends with NULL */
NR_API int32_t nr_schedule_kind(const char *name);    /* -1: no such name */
/* NR_OK, or what the kind lacks: milestones, for one. */
NR_API int nr_schedule_check(const struct nr_schedule *, struct nr_error *);
NR_API double nr_schedule_at(const struct nr_schedule *, int64_t step);

/* ---- layer-wise learning-rate decay, moving averages ---- */

/* MAE's fine-tuning rule. cls_token, pos_embed, patch_embed*: 0; blocks.I.*: I + 1; all else: depth + 1. */
NR_API int nr_layer_id(const char *name, int depth);
NR_API double nr_layer_scale(int id, int depth, double decay); /* decay^(depth + 1 - id) */

/* average = keep average + (1 - keep) value. Buffers of integers are to be copied by the caller. */
NR_API void nr_ema_step(int64_t count, real *average, const real *value, double keep);

#endif
