/* For training loops of one's own: optimizers, learning-rate schedules, layer-wise decay and moving averages.
 *
 * All are pure functions of their arguments: a resumed run needs m, v and the step number, nothing else.
 *
 * Example:
 *   struct nr_store *store;
 *   struct nr_optim adamw;
 *   struct nr_params params = { 0 };
 *   if (nr_store_make(&store, 1, &err)) return 1;
 *   struct nr_net *net = nr_net_make(store);
 *   nr_param(net, "weight", NR_XAVIER, NR_SHAPE(3, 4));
 *   if (!nr_optim_init(&adamw, "adamw", &err) && !nr_params_init(&params, store, &adamw, &err)) {
 *           for (int step = 1; step <= 10; step++) {
 *                   *nr_grad(nr_store_find(store, "weight")) = 1;           // NR_RUN_BACKWARD of a plan writes it
 *                   if (nr_params_step(&params, &adamw, NULL, step, &err)) break;
 *           }
 *           printf("%g\n", *nr_value(nr_store_find(store, "weight")));
 *   }
 *   nr_params_release(&params);
 *   nr_net_free(net);
 *   nr_store_free(store);
 */
#ifndef NORMA_OPTIM_H
#define NORMA_OPTIM_H

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
	double own[16];     /* values of options that one optimizer alone has */
};
/* The defaults of an optimizer: "adamw". */
NR_API int nr_optim_init(struct nr_optim *, const char *name, struct nr_error *);
/* Rows of all optimizers; each says whose it is. */
NR_API const struct nr_option *nr_optim_options(void);
/* Bytes of nr_optim.own that are free for the own options of optimizers to come. */
NR_API size_t nr_optim_own_left(void);
/* "sgd", "adam", "adamw", "adam-bv", "lars", "lars-timm", "lion", "muon"; -1: no such name */
NR_API int32_t nr_optim_kind(const char *name);

/* One parameter. m: momentum or Adam's first moment; v: Adam's second moment (NULL where the kind has none,
 * see nr_optim_slots). grad NULL: frozen, left alone. */
enum nr_segment_flags {
	NR_SEGMENT_MATRIX = 1,        /* weights of a hidden layer (rows,columns), which Muon makes orthogonal */
	NR_SEGMENT_UNIT_ROWS = 2,     /* after each step its rows, or its columns, are brought back to length 1 (nGPT) */
	NR_SEGMENT_UNIT_COLUMNS = 4,
};
struct nr_segment {
	nr_real *value, *grad, *m, *v;
	int64_t count;
	int32_t nd;        /* dimensions of the tensor: LARS treats vectors apart */
	const int64_t *d;  /* (nd) sizes, for optimizers of matrices; NULL: not known */
	int32_t flags;     /* enum nr_segment_flags */
	float lr_scale;    /* 1, or what layer-wise decay says */
	float decay;       /* factor on the weight decay: 0 for parameters without, else 1 */
	int64_t still;     /* steps that it was left alone at first (grad NULL): its own moments begin after them */
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

/* All parameters of a store, with the moments that the optimizer keeps. lr_scale is 1: change it for layer-wise decay. */
struct nr_store;
struct nr_params { struct nr_segment *segment; int64_t count; void *scratch; };
/* Seals the store, which outlives it. */
NR_API int nr_params_init(struct nr_params *, struct nr_store *, const struct nr_optim *, struct nr_error *);
NR_API void nr_params_release(struct nr_params *);     /* all zero is fine */
/* One step of them all; t counts from 1. rates NULL: lr and weight_decay of nr_optim. */
NR_API int nr_params_step(const struct nr_params *, const struct nr_optim *, const struct nr_rates *, int64_t t, struct nr_error *);

/* Norm over all gradients. */
NR_API double nr_optim_grad_norm(const struct nr_segment *, int64_t count, void *scratch);
/* What clipping multiplies a gradient of this norm by. */
NR_API double nr_clip_scale(int clip, double clip_norm, double norm);

/* ---- what an optimizer is ----
 *
 * All parameters are cut into fixed chunks, numbered through, and the gradients are clipped (as a factor: they are only read) when
 * `step` is called. nr_optim_each walks the chunks in one parallel region, so that many small parameters cost no more than one large
 * one; sums are made for each chunk and folded in order: equal bits at any thread count. */

struct nr_optim_arg {                       /* of one parameter in one step */
	int64_t first;                      /* number of its first chunk */
	double scale;                       /* of the gradient, from clipping */
	double lr, decay;                   /* learning rate and weight decay, with the parameter's own factors */
};

struct nr_optim_call {                      /* one step */
	const struct nr_optim *o;
	const void *own;                    /* values of the optimizer's own options */
	int64_t t;                          /* from 1 */
	const struct nr_segment *segment;
	const struct nr_optim_arg *arg;     /* (count) */
	int64_t count, chunks;
	void *scratch;                      /* as many bytes as `scratch` says */
};

struct nr_optimizer {
	const char *name, *title, *cite;
	const char *formula;                /* one step, for documentation */
	const struct nr_option *options;    /* rows of struct nr_optim that it reads, beside those that all have */
	const struct nr_option *own;        /* rows of a struct of its own, for what no other has; NULL: none */
	size_t own_size;                    /* of that struct; all own ones fit into nr_optim.own */
	int (*slots)(const struct nr_optim *);                             /* how many of m, v it keeps: 0, 1 or 2 */
	size_t (*scratch)(const struct nr_segment *, int64_t count, int64_t chunks);     /* bytes */
	void (*step)(const struct nr_optim_call *);
};
NR_API const struct nr_optimizer *const *nr_optimizers(void);       /* ends with NULL; nr_optim.kind is the place in it */

/* Chunk `number`: values at .. at + n - 1 of a parameter. */
struct nr_optim_chunk { int64_t number, parameter, at, n; };
NR_API void nr_optim_each(const struct nr_optim_call *, void (*run)(const struct nr_optim_call *, struct nr_optim_chunk));
/* Sum over the chunks of a parameter; part has a number for each chunk of the step. */
NR_API double nr_optim_fold(const struct nr_optim_call *, int64_t parameter, const double *part);

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
struct nr_schedule_at { double x, past; int64_t step; };     /* x: how far it is, 0..1; past: steps since the warm-up */
struct nr_schedule_rule {
	const char *name, *formula;
	double (*at)(const struct nr_schedule *, struct nr_schedule_at);
};
NR_API const struct nr_schedule_rule *const *nr_schedules(void);     /* ends with NULL; nr_schedule.kind is the place in it */
NR_API const struct nr_option *nr_schedule_options(void);
NR_API const char *const *nr_schedule_names(void);           /* ends with NULL */
NR_API int32_t nr_schedule_kind(const char *name);    /* -1: no such name */
/* NR_OK, or what the kind lacks: milestones, for one. */
NR_API int nr_schedule_check(const struct nr_schedule *, struct nr_error *);
NR_API double nr_schedule_at(const struct nr_schedule *, int64_t step);

/* ---- layer-wise learning-rate decay, moving averages ---- */

/* MAE's fine-tuning rule. cls_token, pos_embed, patch_embed*: 0; blocks.I.*: I + 1; all else: depth + 1. */
NR_API int nr_layer_id(const char *name, int depth);
NR_API double nr_layer_scale(int id, int depth, double decay); /* decay^(depth + 1 - id) */

/* average = keep average + (1 - keep) value. Buffers of integers are to be copied by the caller. */
NR_API void nr_ema_step(int64_t count, nr_real *average, const nr_real *value, double keep);

#endif
